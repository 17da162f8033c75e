"""Beam steps of the profile `focused`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import CALIBRATED_SCHEMA, SCALE
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import bounded_slices, column_array, int64s
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables, MergePartitions, WriteOne, one_table
from semrank.transforms.columnar.vectors import read_vectors, vector_tables
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import calibration, exact_sums, focused, topic_lattice
from semrank.transforms.ranking.memory import MODEL, SUMS
from semrank.transforms.ranking.registry import Making
from semrank.transforms.ranking.topic_words import Vocabulary
from semrank.transforms.weblog.memory import VOCABULARY

Tables: TypeAlias = Iterator[pa.Table]
"""The tables of a broadcast collection, each of which is held for as long as it is read."""

SUM_BYTES = 128 << 10
"""Bytes of a table of sums."""

_STEPS = {step.stage: step for step in focused.PASSES}
_BY_ALL = {step.stage.replace(" ", "_"): step for step in focused.PASSES if step.by_all}


class RankByFocused(beam.PTransform[Any, Any]):
    """Scores of the profile `focused` (see `focused`); returns tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary`, `harvested`, and `sizes` (`topic_lattice.SIZE_SCHEMA`) and
    `word_weights` (`topic_lattice.WEIGHT_SCHEMA`) of SemRank.

    Args:
        query: words of the query.
        partitions: number of partitions of words.
        folder: folder where the scale of the scores is written (`SCALE`), or None.
        precision: share of relevant pages that a threshold is calibrated to, or None for no calibration.

    Attributes:
        calibrated: after the steps were applied, the threshold (`CALIBRATED_SCHEMA`), or None.
    """

    def __init__(
        self, *, query: list[str], partitions: int, folder: str | None = None, precision: float | None = None
    ) -> None:
        super().__init__("rank by focused")
        self._query, self._partitions, self._folder, self._precision = query, partitions, folder, precision
        self.calibrated: Collection | None = None

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        known = inputs["descriptions"]
        trained = known | MapTables("keep harvested pages", _harvested_pages)
        begin = {name: inputs[name] for name in ("vocabulary", "harvested", "sizes")}
        first = begin | GatherTables("begin model", partial(_first, query=self._query), holds=VOCABULARY, streams=True)
        found: dict[str, Collection] = {}
        for step in focused.PASSES:
            sides = _chosen(first, found, step.reads)
            if step is focused.PASSES[-1]:
                sides["word_weights"] = inputs["word_weights"]
            sums = (trained if step.harvested else known) | MapTables(
                step.stage,
                partial(_pass_sums, stage=step.stage),
                sides=sides,
                prepare=_model,
                combine=exact_sums.added_sums,
                holds=MODEL,
                streams=True,
            )
            if step.overlaps:
                sums = {"rows": sums} | MergePartitions(
                    f"{step.stage} of all parts",
                    _added,
                    partitions=self._partitions,
                    key="slot",
                    combine={"rows": exact_sums.added_sums},
                )
            if not step.by_all:
                sums = {**_chosen(first, found, step.concludes_with), "sums": sums} | GatherTables(
                    f"conclude: {step.stage}", partial(_concluded, stage=step.stage), holds=SUMS, streams=True
                )
            found[step.stage] = sums
        sides[_parameter(step.stage)] = sums
        scale = dict(sides)
        if self._precision is not None:
            bins = trained | MapTables("measure harvest", _bins, sides=sides, prepare=_model, holds=MODEL, streams=True)
            calibrate = GatherTables("calibrate threshold", partial(_threshold, precision=self._precision))
            self.calibrated = scale["calibrated"] = {"bins": bins} | calibrate
        if self._folder is not None:
            scale | WriteOne("write scale", self._folder, _scale, holds=MODEL, streams=True)
        return known | MapTables(  # type: ignore[no-any-return]
            "score by focused",
            _score,
            sides={**sides, "vocabulary": inputs["vocabulary"]},
            prepare=_Judge.of,
            holds=MODEL,
            streams=True,
        )


def _chosen(first: Collection, found: Mapping[str, Collection], stages: Sequence[str]) -> dict[str, Collection]:
    """The first vectors and those that some passes found, by parameter name; later ones replace those before."""
    return {"first": first, **{_parameter(stage): found[stage] for stage in found if stage in stages}}


def _parameter(stage: str) -> str:
    return stage.replace(" ", "_")


def make_step(_: str, making: Making) -> RankByFocused:
    """The ranker's step; see `registry.step`."""
    return RankByFocused(
        query=list(making.query),
        partitions=making.partitions,
        folder=files.join(making.output, SCALE.name),
        precision=making.precision,
    )


def _bins(table: pa.Table, prepared: focused.Model) -> pa.Table:
    return focused.harvest_scores(_part(table, prepared), prepared)


def _threshold(bins: pa.Table | None, *, precision: float) -> pa.Table:
    found = calibration.calibrated_threshold(calibration.BIN_SCHEMA.empty_table() if bins is None else bins, precision)
    return pa.table([[value] for value in found], schema=CALIBRATED_SCHEMA)


def _scale(calibrated: Tables | None = None, **sides: Tables) -> pa.Table:
    scale = focused.scale_table(_model(**sides))
    found = one_table(calibrated or ())
    if found is None:
        return scale
    named = pa.table([found.column_names, [column[0].as_py() for column in found]], schema=SCALE.schema)
    return pa.concat_tables([scale, named.filter(pc.is_valid(named["value"]))])


def _harvested_pages(table: pa.Table) -> pa.Table:
    return table.filter(pc.and_(table["harvested"], table["described"]))


def _first(vocabulary: Tables, harvested: Tables, sizes: Tables, *, query: list[str]) -> Iterator[pa.Table]:
    """The vectors before the first pass, tables of `VECTOR_SCHEMA`."""
    known = topic_lattice.Collection.of_parts(Vocabulary.of_table(one_table(vocabulary)), query, one_table(sizes))
    count = sum(table.num_rows for table in harvested)
    return vector_tables(focused.float_vectors(focused.first_vectors(known, count)))


def _model(word_weights: Tables | None = None, **found: Tables) -> focused.Model:
    """What the passes have found out whose vectors, or sums, are given in their order."""
    model = focused.Model({})
    for name, tables in found.items():
        step = _BY_ALL.get(name)
        model = model.having(read_vectors(tables) if step is None else _after(step, model, tables))
    if word_weights is None:
        return model
    semrank = np.zeros(len(model["idf"]))
    for table in word_weights:
        semrank[int64s(table["slot"])] = table["weight"].to_numpy()
    return model.having({"semrank": semrank})


def _added(rows: pa.Table) -> Iterator[pa.Table]:
    """Sums of several parts added up, in small tables: they are read one after another."""
    return bounded_slices(exact_sums.added_sums(rows), SUM_BYTES)


def _after(step: focused.Pass, model: focused.Model, sums: Tables) -> focused.Vectors:
    found = exact_sums.sum_vectors(sums, step.lengths(model))
    return step.conclude(model, found) if step.applies(model) else {}


def _concluded(sums: Tables, *, stage: str, **vectors: Tables) -> Iterator[pa.Table]:
    """The vectors that follow from a pass, tables of `VECTOR_SCHEMA`."""
    return vector_tables(focused.float_vectors(_after(_STEPS[stage], _model(**vectors), sums)))


def _part(table: pa.Table, model: focused.Model) -> focused.Part:
    words, harvested = model.widths
    return focused.Part(Descriptions.of_table(table, words=words, harvested=harvested), model["idf"])


def _pass_sums(table: pa.Table, prepared: focused.Model, *, stage: str) -> pa.Table:
    step = _STEPS[stage]
    if not step.applies(prepared):
        return exact_sums.SUM_SCHEMA.empty_table()
    return exact_sums.sum_rows(step.sums(_part(table, prepared), prepared), step.lengths(prepared))


class _Judge(NamedTuple):
    model: focused.Model
    words: pa.Array

    @staticmethod
    def of(vocabulary: Tables, **sides: Tables) -> _Judge:
        words = [column_array(table["word"]) for table in vocabulary]
        return _Judge(_model(**sides), pa.concat_arrays(words or [pa.array([], pa.string())]))


def _score(table: pa.Table, prepared: _Judge) -> pa.Table:
    return focused.score_part(_part(table, prepared.model), prepared.model, prepared.words)
