"""The tables of an evaluation, made of its crawls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from semrank.pipelines.evaluation_config import EvaluationConfig
from semrank.pipelines.evaluation_crawls import Replayed
from semrank.schemas.tables import CURVE, SUMMARY, SWEEP
from semrank.transforms.columnar.arrays import Bools, concatenate
from semrank.transforms.replay import measures

HARVEST_PAGES = 100
"""Pages after which the summary has the harvest rate, or the budget if it is smaller."""

THRESHOLDS = np.round(np.linspace(0, 1, 21), 2)
"""Thresholds of the sweep; P13 tries every other one."""

MEASURES = ("harvest", "recall", "f_measure", "harvest_area", "seconds")


Values: TypeAlias = dict[tuple[str, str], dict[str, list[dict[str, float]]]]
"""(ranker, mode) -> topic -> the measures of each of its crawls, by name."""


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of an evaluation (`CURVE`, `SUMMARY`, `SWEEP`), and the measures of each crawl."""

    curve: pa.Table
    summary: pa.Table
    sweep: pa.Table
    values: Values

    @classmethod
    def of(cls, crawls: Iterable[Replayed], rankers: Sequence[str], config: EvaluationConfig) -> Results:
        """Measures all crawls; the others are compared with the first ranker."""
        curves: dict[tuple[str, str], list[pa.Table]] = {}
        sweeps: dict[tuple[str, str], list[pa.Table]] = {}
        values: Values = {}
        bounded: dict[tuple[str, str], bool] = {}
        for done in crawls:
            key = (done.ranker, done.setting.mode)
            relevant = done.setting.relevant(len(done.crawl.scores))
            curves.setdefault(key, []).append(_curve_rows(done, relevant))
            sweeps.setdefault(key, []).append(_sweep_rows(done, relevant))
            values.setdefault(key, {}).setdefault(done.setting.topic.name, []).append(
                _measured(done, relevant, config.budget)
            )
            inside = done.crawl.lowest >= 0 and done.crawl.highest <= 1
            bounded[key] = bounded.get(key, True) and inside
        keys = [(ranker, mode) for ranker in rankers for mode in config.modes]
        return cls(
            concatenate((table for key in keys for table in curves[key]), CURVE.schema),
            summary_rows(keys, values, config),
            concatenate((table for key in keys if bounded[key] for table in sweeps[key]), SWEEP.schema),
            values,
        )


def _curve_rows(done: Replayed, relevant: Bools) -> pa.Table:
    curve = measures.crawl_curve(relevant[done.crawl.order], int(relevant.sum()))
    numbers = [curve.pages, curve.relevant, curve.harvest, curve.precision, curve.recall, curve.f_measure]
    return _rows_of(done, [*numbers, done.crawl.seconds], CURVE.schema)


def _sweep_rows(done: Replayed, relevant: Bools) -> pa.Table:
    ranked = np.isfinite(done.crawl.scores)
    found = measures.threshold_sweep(done.crawl.scores[ranked], relevant[ranked], int(relevant.sum()), THRESHOLDS)
    precision = pa.array(found.precision, from_pandas=True)
    numbers = [THRESHOLDS, found.selected, found.relevant, precision, found.recall, found.f_measure]
    return _rows_of(done, numbers, SWEEP.schema)


def _rows_of(done: Replayed, numbers: Sequence[Any], schema: pa.Schema) -> pa.Table:
    count = len(numbers[0])
    names = (done.ranker, done.setting.mode, done.setting.topic.name)
    texts = [pa.array([value] * count, pa.string()) for value in names]
    seed_set = pa.array(np.full(count, done.setting.seed_set, dtype=np.int32))
    return pa.table([*texts, seed_set, *(pa.array(values) for values in numbers)], schema=schema)


def _measured(done: Replayed, relevant: Bools, budget: int) -> dict[str, float]:
    """The measures of one crawl; one that ran out of candidates counts as if irrelevant pages had followed."""
    hits = measures.padded_hits(relevant[done.crawl.order], budget)
    curve = measures.crawl_curve(hits, int(relevant.sum()))
    return {
        "harvest": float(curve.harvest[_harvest_pages(budget) - 1]),
        "recall": float(curve.recall[-1]),
        "f_measure": float(curve.f_measure[-1]),
        "harvest_area": measures.harvest_area(hits, budget),
        "seconds": float(done.crawl.seconds[-1]) if len(done.crawl.seconds) else 0.0,
    }


def _harvest_pages(budget: int) -> int:
    return min(HARVEST_PAGES, budget)


def summary_rows(keys: Sequence[tuple[str, str]], values: Values, config: EvaluationConfig) -> pa.Table:
    """Means over topics with intervals, and paired differences to the first ranker, in the order of the keys.

    Args:
        keys: (ranker, mode) of each row; the first ranker has all modes.
        values: the measures of each crawl.
        config: budget and random seed.
    """
    topics = sorted(values[keys[0]])
    draws = measures.resamples(len(topics), config.random_seed)
    rows: list[tuple[Any, ...]] = []
    for ranker, mode in keys:
        for measure in MEASURES:
            own, first = (
                np.array([np.mean([crawl[measure] for crawl in values[name, mode][topic]]) for topic in topics])
                for name in (ranker, keys[0][0])
            )
            other = (None, None, None) if ranker == keys[0][0] else measures.interval(own - first, draws)
            pages = _harvest_pages(config.budget) if measure == "harvest" else config.budget
            rows.append((ranker, mode, measure, pages, len(topics), *measures.interval(own, draws), *other))
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SUMMARY.schema, strict=True)], schema=SUMMARY.schema)


def measure_heading(measure: str, pages: int) -> str:
    """The heading of a measure that is taken after some pages, as in "F@200"."""
    if measure in ("harvest_area", "seconds"):
        return measure.removeprefix("harvest_")
    return f"{'F' if measure == 'f_measure' else measure}@{pages}"


def summary_text(summary: pa.Table, rankers: Sequence[str], config: EvaluationConfig) -> str:
    """The means as a table for people, with their intervals."""
    found = {(row["ranker"], row["mode"], row["measure"]): row for row in summary.to_pylist()}
    pages = {"harvest": _harvest_pages(config.budget)}
    heads = [measure_heading(measure, pages.get(measure, config.budget)) for measure in MEASURES]
    lines: list[str] = []
    for mode in config.modes:
        cells = [["mode " + mode, *heads]]
        for ranker in rankers:
            rows = [found[ranker, mode, measure] for measure in MEASURES]
            cells.append([ranker, *map(_with_interval, rows[:-1]), f"{rows[-1]['mean']:.3f}"])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        lines.append("")
    return "\n".join(lines).rstrip()


def _with_interval(row: dict[str, Any]) -> str:
    return f"{row['mean']:.3f}" + ("" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]")
