"""Beam steps of the profile `focused`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import CALIBRATED_SCHEMA, SCALE
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import int64s
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables, WriteOne
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.context.memory import DESCRIBED
from semrank.transforms.ranking import calibration, exact_sums, focused
from semrank.transforms.ranking.registry import Making
from semrank.transforms.ranking.topic_words import Vocabulary


class RankByFocused(beam.PTransform[Any, Any]):
    """Scores of the profile `focused` (see `focused`); gives tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary` and `harvested`, and with `told_weights`
    (`topic_lattice.WEIGHT_SCHEMA`) where SemRank takes part.

    Args:
        query: words of the query.
        folder: folder where the scale of the scores is written (`SCALE`), or None.
        precision: share of relevant pages that a threshold is calibrated to, or None for no calibration.

    Attributes:
        calibrated: after the steps were applied, the threshold (`CALIBRATED_SCHEMA`), or None.
    """

    def __init__(self, *, query: list[str], folder: str | None = None, precision: float | None = None) -> None:
        super().__init__("rank by focused")
        self._query, self._folder, self._precision = query, folder, precision
        self.calibrated: Collection | None = None

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        known = inputs["descriptions"]
        trained = known | MapTables("keep harvested pages", _harvested_pages)
        # A worker concludes from all sums so far by itself: they are small, and a stage that does so would be one to
        # wait for.
        sides = {"vocabulary": inputs["vocabulary"], "harvested": inputs["harvested"]}
        for number, step in enumerate(focused.PASSES):
            if step.semrank and "told_weights" in inputs:
                sides["told_weights"] = inputs["told_weights"]
            sides[f"sums{number}"] = (trained if step.harvested else known) | MapTables(
                step.stage,
                partial(_sums, number=number),
                sides=dict(sides),
                prepare=partial(_model, query=self._query),
                combine=exact_sums.added_sums,
                holds=DESCRIBED,
            )
        scale = dict(sides)
        if self._precision is not None:
            bins = trained | MapTables(
                "measure harvest",
                _bins,
                sides=sides,
                prepare=partial(_model, query=self._query),
                holds=DESCRIBED,
            )
            calibrate = GatherTables("calibrate threshold", partial(_threshold, precision=self._precision))
            self.calibrated = scale["calibrated"] = {"bins": bins} | calibrate
        if self._folder is not None:
            scale | WriteOne("write scale", self._folder, partial(_scale, query=self._query), holds=DESCRIBED)
        return known | MapTables(  # type: ignore[no-any-return]
            "score by focused", _score, sides=sides, prepare=partial(_Judge.of, query=self._query), holds=DESCRIBED
        )


def make_step(_: str, making: Making) -> RankByFocused:
    """The ranker's step; see `registry.step`."""
    return RankByFocused(
        query=list(making.query), folder=files.join(making.output, SCALE.name), precision=making.precision
    )


def _bins(table: pa.Table, prepared: focused.Model) -> pa.Table:
    return focused.harvest_scores(_part(table, prepared), prepared)


def _threshold(bins: pa.Table | None, *, precision: float) -> pa.Table:
    found = calibration.calibrated_threshold(calibration.BIN_SCHEMA.empty_table() if bins is None else bins, precision)
    return pa.table([[value] for value in found], schema=CALIBRATED_SCHEMA)


def _scale(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    calibrated: pa.Table | None = None,
    *,
    query: list[str],
    **found: pa.Table | None,
) -> pa.Table:
    scale = focused.scale_table(_model(vocabulary, harvested, query=query, **found))
    if calibrated is None:
        return scale
    named = pa.table([calibrated.column_names, [column[0].as_py() for column in calibrated]], schema=SCALE.schema)
    return pa.concat_tables([scale, named.filter(pc.is_valid(named["value"]))])


def _harvested_pages(table: pa.Table) -> pa.Table:
    return table.filter(pc.and_(table["harvested"], table["described"]))


def _model(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    told_weights: pa.Table | None = None,
    *,
    query: list[str],
    **sums: pa.Table | None,
) -> focused.Model:
    """What the passes whose sums are given have found out."""
    words = Vocabulary.of_table(vocabulary)
    count = 0 if harvested is None else harvested.num_rows
    semrank = np.zeros(len(words.documents))
    if told_weights is not None:
        semrank[int64s(told_weights["slot"])] = told_weights["weight"].to_numpy()
    model = focused.start_model(words.documents, words.numbers(query), count, semrank)
    for number, step in enumerate(focused.PASSES[: len(sums)]):
        if step.applies(model):
            model = step.conclude(model, exact_sums.sum_vectors(sums[f"sums{number}"], step.lengths(model)))
    return model


def _part(table: pa.Table, model: focused.Model) -> focused.Part:
    known = Descriptions.of_table(table, words=len(model["idf"]), harvested=len(model["trained"]))
    return focused.Part(known, model["idf"])


def _sums(table: pa.Table, prepared: focused.Model, *, number: int) -> pa.Table:
    step = focused.PASSES[number]
    if not step.applies(prepared):
        return exact_sums.SUM_SCHEMA.empty_table()
    return exact_sums.sum_rows(step.sums(_part(table, prepared), prepared), step.lengths(prepared))


class _Judge(NamedTuple):
    model: focused.Model
    words: pa.Array

    @classmethod
    def of(cls, vocabulary: pa.Table | None, *, query: list[str], **tables: pa.Table | None) -> _Judge:
        return cls(_model(vocabulary, query=query, **tables), Vocabulary.of_table(vocabulary).words)


def _score(table: pa.Table, prepared: _Judge) -> pa.Table:
    return focused.score_part(_part(table, prepared.model), prepared.model, prepared.words)
