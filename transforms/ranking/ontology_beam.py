"""Beam steps of the ontology ranker."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from semrank.schemas.tables import CLASSES
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables, MergePartitions, WriteOne
from semrank.transforms.ranking import ontology, topic_words
from semrank.transforms.ranking.ontology import Learned, Lexicon, OntologySettings
from semrank.transforms.ranking.ontology_database import learn_from_database
from semrank.transforms.ranking.ontology_files import read_ontology
from semrank.transforms.ranking.ontology_model import Ontology
from semrank.transforms.ranking.registry import DEFAULT_ONTOLOGY, Making
from semrank.transforms.ranking.text_beam import Widths
from semrank.transforms.ranking.topic_words import Topic, Vocabulary

_SIZES = "sizes"


class RankByOntology(beam.PTransform[Any, Any]):
    """Scores the current URLs by the classes of an ontology (see `ontology`); gives tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary` and `harvested`.

    Args:
        known: the ontology.
        settings: how it is used.
        language: language of its words.
        query: words of the query.
        partitions: number of partitions of sums.
        folder: folder where what was learned of the classes is written (`CLASSES`).
    """

    def __init__(
        self,
        known: Ontology,
        settings: OntologySettings,
        *,
        language: str,
        query: list[str],
        partitions: int,
        folder: str,
    ) -> None:
        super().__init__("rank by ontology")
        self._making = _Making(known, settings, language, query)
        self._partitions, self._folder = partitions, folder

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        sides = {"vocabulary": inputs["vocabulary"], "harvested": inputs["harvested"]}
        counted = inputs["descriptions"] | MapTables(
            "count seeds' words", _seed_words, sides=sides, prepare=Widths.of, tags=(MAIN, _SIZES)
        )
        seeds = {"counts": counted[MAIN]} | MergePartitions(
            "add seeds' words", topic_words.added_words, partitions=self._partitions, key="word"
        )
        known = {**sides, "counts": seeds, "sizes": counted[_SIZES]}
        means = self._sums(inputs["descriptions"], "measure harvest", _mean_sums, known)
        known = {**known, "means": means}
        lessons = self._sums(inputs["descriptions"], "learn classes", _learning_sums, known)
        {"lessons": lessons} | WriteOne("write classes", self._folder, partial(_class_rows, making=self._making))
        return inputs["descriptions"] | MapTables(  # type: ignore[no-any-return]
            "score by ontology",
            _scores,
            sides={**known, "lessons": lessons},
            prepare=partial(_prepared, making=self._making),
        )

    def _sums(self, rows: Collection, stage: str, function: Any, sides: dict[str, Collection]) -> Collection:
        sums = rows | MapTables(stage, function, sides=sides, prepare=partial(_prepared, making=self._making))
        added = {"sums": sums} | MergePartitions(
            f"{stage}: add", ontology.added, partitions=self._partitions, key="number"
        )
        return {"sums": added} | GatherTables(f"{stage}: gather", _whole)  # type: ignore[no-any-return]


def make_step(_: str, making: Making) -> RankByOntology:
    """The ranker's step; see `registry.step`."""
    options = making.options
    return RankByOntology(
        named_ontology(options["ontology"], options["topic"]),
        ontology.settings_of(options),
        language=making.language,
        query=list(making.query),
        partitions=making.partitions,
        folder=files.join(making.output, CLASSES.name),
    )


def named_ontology(name: str | None, topic: str | None) -> Ontology:
    """The ontology that an option names: a shipped one, a file, or a database's URL; the default one for None.

    Raises:
        InputError: it can't be read, or has no such topic.
    """
    name = DEFAULT_ONTOLOGY if name is None else name
    scheme = name.partition("://")[0] if "://" in name else ""
    if scheme and scheme not in ("gs", "s3", "file"):
        return learn_from_database(name, topic)
    return read_ontology(name, topic)


class _Making(NamedTuple):
    known: Ontology
    settings: OntologySettings
    language: str
    query: list[str]


class _Prepared(NamedTuple):
    widths: Widths
    lexicon: Lexicon
    mean: float
    learned: Learned
    settings: OntologySettings


def _prepared(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    counts: pa.Table | None,
    sizes: pa.Table | None,
    means: pa.Table | None = None,
    lessons: pa.Table | None = None,
    *,
    making: _Making,
) -> _Prepared:
    widths = Widths.of(vocabulary, harvested)
    words = Vocabulary.of_table(vocabulary)
    topic = Topic.of_parts(words, words.numbers(making.query), counts, sizes)
    lexicon = Lexicon.of(making.known, topic, making.settings, making.language)
    learned = Learned.of_sums(lessons, len(lexicon.weights), widths.harvested, making.settings)
    return _Prepared(widths, lexicon, ontology.mean_content(means), learned, making.settings)


def _seed_words(table: pa.Table, prepared: Widths) -> Any:
    rows = prepared.read(table)
    yield MAIN, topic_words.seed_words(rows)
    yield _SIZES, topic_words.collection_size(rows)


def _mean_sums(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return ontology.mean_sums(prepared.widths.read(table), prepared.lexicon)


def _learning_sums(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return ontology.learning_sums(prepared.widths.read(table), prepared.lexicon, prepared.mean)


def _class_rows(lessons: pa.Table | None, *, making: _Making) -> pa.Table:
    return ontology.class_rows(making.known, lessons, making.settings)


def _whole(sums: pa.Table | None) -> pa.Table:
    return ontology.SUM_SCHEMA.empty_table() if sums is None else sums


def _scores(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return ontology.scores(prepared.widths.read(table), prepared.lexicon, prepared.learned, prepared.settings)
