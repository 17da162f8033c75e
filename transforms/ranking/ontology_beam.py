"""Beam steps of the ontology ranker."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from semrank.schemas.tables import CLASSES
from semrank.transforms.columnar import files
from semrank.transforms.columnar.beam import Collection, GatherTables, MergePartitions, WriteOne
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import ontology
from semrank.transforms.ranking.ontology import Learned, Lexicon, OntologySettings
from semrank.transforms.ranking.ontology_database import learn_from_database
from semrank.transforms.ranking.ontology_files import read_ontology
from semrank.transforms.ranking.ontology_model import Ontology
from semrank.transforms.ranking.registry import DEFAULT_ONTOLOGY, Making
from semrank.transforms.ranking.text_beam import Tables, Widths, count_topic, map_descriptions, topic_of


class RankByOntology(beam.PTransform[Any, Any]):
    """Scores the current URLs by the classes of an ontology (see `ontology`); returns tables of `SCORED_SCHEMA`.

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
        sides = count_topic(inputs, self._partitions)
        sides["means"] = self._sums(inputs, "measure harvest", _mean_sums, sides)
        sides["lessons"] = self._sums(inputs, "learn classes", _learning_sums, sides)
        write = WriteOne("write classes", self._folder, partial(_class_rows, making=self._making))
        {"lessons": sides["lessons"]} | write
        return map_descriptions(  # type: ignore[no-any-return]
            inputs, "score by ontology", _scores, model=partial(_model, making=self._making), sides=sides
        )

    def _sums(
        self, inputs: dict[str, Collection], stage: str, function: Any, sides: dict[str, Collection]
    ) -> Collection:
        sums = map_descriptions(inputs, stage, function, model=partial(_model, making=self._making), sides=dict(sides))
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


class _Model(NamedTuple):
    lexicon: Lexicon
    mean: float
    learned: Learned
    settings: OntologySettings


def _model(tables: Tables, *, making: _Making) -> _Model:
    lexicon = Lexicon.of(making.known, topic_of(tables, query=making.query), making.settings, making.language)
    harvested = Widths.of(tables["vocabulary"], tables["harvested"]).harvested
    learned = Learned.of_sums(tables.get("lessons"), len(lexicon.weights), harvested, making.settings)
    return _Model(lexicon, ontology.mean_content(tables.get("means")), learned, making.settings)


def _mean_sums(descriptions: Descriptions, model: _Model) -> pa.Table:
    return ontology.mean_sums(descriptions, model.lexicon)


def _learning_sums(descriptions: Descriptions, model: _Model) -> pa.Table:
    return ontology.learning_sums(descriptions, model.lexicon, model.mean)


def _class_rows(lessons: pa.Table | None, *, making: _Making) -> pa.Table:
    return ontology.class_rows(making.known, lessons, making.settings)


def _whole(sums: pa.Table | None) -> pa.Table:
    return ontology.SUM_SCHEMA.empty_table() if sums is None else sums


def _scores(descriptions: Descriptions, model: _Model) -> pa.Table:
    return ontology.scores(descriptions, model.lexicon, model.learned, model.settings)
