"""Plots of an evaluation, as P13 draws its Figs. 5 to 9 and EC its times: PNG and SVG files, one panel a mode."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import Float64s, int64s

MISSING = "no plots: they need Matplotlib, which the extra `report` installs"

FORMATS = ("png", "svg")

MOST_TOPICS = 60
"""Topics up to which there are plots with a row of panels for each."""

PLOTS = (
    ("harvest", "pages crawled", "harvest rate", "pages", "harvest"),
    ("precision-recall", "recall", "precision", "recall", "harvest"),
    ("f-measure", "pages crawled", "F-measure", "pages", "f_measure"),
    ("f-measure-recall", "recall", "F-measure", "recall", "f_measure"),
    ("time-recall", "recall", "seconds of ranking", "recall", "seconds"),
    ("time-pages", "pages crawled", "seconds of ranking", "pages", "seconds"),
)
"""Name, titles of the axes, and what they show; see `mean_curves`."""

BY_TOPIC = ("harvest", "precision-recall", "f-measure-recall")
"""Plots that there are for each topic, too, in one file NAME-by-topic."""

Lines: TypeAlias = Mapping[tuple[str, str], tuple[Float64s, Float64s]]
"""(ranker, mode) -> points of its line."""

_SALT = "semrank"  # makes the ids inside an SVG the same in every run
_WIDTH, _HEIGHT, _LEGEND_WIDTH, _DOTS_PER_INCH = 5.0, 4.2, 1.6, 120  # of a panel in inches, and beside the panels


def available() -> bool:
    """Whether the plotting library is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write_plots(folder: str, curve: pa.Table, sweep: pa.Table, budget: int) -> list[str]:
    """Draws means over all crawls and writes folder/NAME.png and NAME.svg.

    Args:
        folder: where the files go.
        curve: measures of crawls (`evaluate.CURVE_SCHEMA`).
        sweep: what thresholds select (`evaluate.SWEEP_SCHEMA`).
        budget: pages of a crawl.

    Returns:
        Names of the files; none where Matplotlib is not installed.
    """
    if not available():
        return []
    means = mean_curves(curve, budget)
    topics = pc.unique(curve["topic"]).sort().to_pylist()
    by_topic = {
        topic: mean_curves(curve.filter(pc.equal(curve["topic"], topic)), budget)
        for topic in (topics if 1 < len(topics) <= MOST_TOPICS else [])
    }
    written: list[str] = []
    for name, across, upwards, x, y in PLOTS:
        # What rankers cost differs by orders of magnitude.
        scale = "log" if y == "seconds" else "linear"
        written += _write(folder, name, {"": _lines(means, x, y)}, across, upwards, scale=scale)
        if name in BY_TOPIC and by_topic:
            rows = {topic: _lines(found, x, y) for topic, found in by_topic.items()}
            written += _write(folder, f"{name}-by-topic", rows, across, upwards)
    thresholds = mean_sweeps(sweep)
    if thresholds:
        written += _write(folder, "threshold", {"": thresholds}, "threshold", "F-measure of what is selected")
    return written


def _lines(means: Mapping[tuple[str, str], Mapping[str, Float64s]], x: str, y: str) -> Lines:
    return {key: (found[x], found[y]) for key, found in means.items()}


def mean_curves(curve: pa.Table, budget: int) -> dict[tuple[str, str], dict[str, Float64s]]:
    """Means over all crawls of a ranker and mode after 1 to `budget` pages.

    A crawl that ran out of candidates goes on with what it had: relevant pages, recall and seconds stay.

    Returns:
        (ranker, mode) -> `pages`, `harvest`, `recall`, `f_measure` and `seconds`, and the standard errors
        `harvest_error` and `f_measure_error`, float64[budget] each.
    """
    means: dict[tuple[str, str], dict[str, Float64s]] = {}
    for key, rows in _by_ranker(curve):
        crawl = int64s(rows["pages"]) == 1
        number = np.cumsum(crawl) - 1
        pages = np.arange(1, budget + 1, dtype=np.float64)
        filled = {
            name: _filled(number, int64s(rows["pages"]), rows[name].to_numpy(), budget)
            for name in ("relevant", "recall", "seconds")
        }
        harvest = filled["relevant"] / pages
        total = harvest + filled["recall"]
        f_measure = np.where(total > 0, 2 * harvest * filled["recall"] / np.where(total > 0, total, 1), 0.0)
        means[key] = {
            "pages": pages,
            "harvest": harvest.mean(axis=0),
            "recall": filled["recall"].mean(axis=0),
            "f_measure": f_measure.mean(axis=0),
            "seconds": filled["seconds"].mean(axis=0),
            "harvest_error": _standard_error(harvest),
            "f_measure_error": _standard_error(f_measure),
        }
    return means


def _standard_error(values: Float64s) -> Float64s:
    """Standard error of the mean over crawls, float64[budget] of float64[crawls, budget]; 0 of a single crawl."""
    count = len(values)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(values.shape[1]))


def _filled(crawl: Any, pages: Any, values: Any, budget: int) -> Float64s:
    """Values by crawl and page, the last of a crawl repeated to the budget, float64[crawls, budget]."""
    table = np.zeros((int(crawl.max(initial=-1)) + 1, budget))
    table[crawl, pages - 1] = values
    lengths = np.bincount(crawl)
    last = table[np.arange(len(table)), lengths - 1]
    return np.where(np.arange(budget) < lengths[:, None], table, last[:, None])


def mean_sweeps(sweep: pa.Table) -> dict[tuple[str, str], tuple[Float64s, Float64s]]:
    """(ranker, mode) -> thresholds and the mean F-measure of what each selects, float64[t] each."""
    found: dict[tuple[str, str], tuple[Float64s, Float64s]] = {}
    for key, rows in _by_ranker(sweep):
        thresholds, number = np.unique(rows["threshold"].to_numpy(), return_inverse=True)
        sums = np.bincount(number, weights=rows["f_measure"].to_numpy())
        found[key] = (thresholds, sums / np.bincount(number))
    return found


def _by_ranker(table: pa.Table) -> list[tuple[tuple[str, str], pa.Table]]:
    """The rows of each ranker and mode, in the order in which they stand."""
    pairs = table.select(["ranker", "mode"]).group_by(["ranker", "mode"], use_threads=False).aggregate([]).to_pylist()
    return [
        (
            (pair["ranker"], pair["mode"]),
            table.filter(pc.and_(pc.equal(table["ranker"], pair["ranker"]), pc.equal(table["mode"], pair["mode"]))),
        )
        for pair in pairs
    ]


def _write(
    folder: str, name: str, rows: Mapping[str, Lines], across: str, upwards: str, *, scale: str = "linear"
) -> list[str]:
    """Draws a row of panels for each title, a panel a mode, and writes the files; returns their names."""
    matplotlib: Any = importlib.import_module("matplotlib")
    figure_class: Callable[..., Any] = importlib.import_module("matplotlib.figure").Figure
    keys = [key for lines in rows.values() for key in lines]
    modes, rankers = (list(dict.fromkeys(key[side] for key in keys)) for side in (1, 0))
    written: list[str] = []
    with matplotlib.rc_context({"svg.hashsalt": _SALT}):
        size = (_LEGEND_WIDTH + _WIDTH * len(modes), _HEIGHT * len(rows))
        figure = figure_class(figsize=size, layout="constrained")
        panels = figure.subplots(len(rows), len(modes), squeeze=False, sharey="row")
        for row, (title, lines) in zip(panels, rows.items(), strict=True):
            for panel, mode in zip(row, modes, strict=True):
                _draw(panel, {ranker: lines[ranker, mode] for ranker in rankers if (ranker, mode) in lines}, rankers)
                panel.set(title=f"{title}: {mode}" if title else f"{mode} mode", xlabel=across, ylabel=upwards)
                panel.set_yscale(scale)
        shown = {line.get_label(): line for panel in panels.flat for line in panel.get_lines()}
        figure.legend([shown[ranker] for ranker in rankers], rankers, loc="outside right upper", fontsize="small")
        for form in FORMATS:
            content = io.BytesIO()
            dated = {"Date": None} if form == "svg" else {"Software": None}
            figure.savefig(content, format=form, dpi=_DOTS_PER_INCH, metadata=dated)
            # The layout takes as long as the drawing, and serves all formats.
            figure.set_layout_engine("none")
            files.write_bytes(files.join(folder, f"{name}.{form}"), content.getvalue())
            written.append(f"{name}.{form}")
    return written


def _draw(panel: Any, lines: Mapping[str, tuple[Float64s, Float64s]], rankers: Sequence[str]) -> None:
    """Draws the lines of a panel; a ranker has the same colour in all panels."""
    for ranker, (x, y) in lines.items():
        place = rankers.index(ranker)
        panel.plot(x, y, label=ranker, color=f"C{place % 10}", linestyle="-" if place < 10 else "--")
    panel.grid(alpha=0.3)
