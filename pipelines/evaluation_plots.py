"""Plots of an evaluation, as P13 draws its Figs. 5 to 9: PNG and SVG files, one panel a mode."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import Float64s, int64s

MISSING = "no plots: they need Matplotlib, which the extra `report` installs"

FORMATS = ("png", "svg")

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
    written: list[str] = []
    for name, across, upwards, x, y in (
        ("harvest", "pages crawled", "harvest rate", "pages", "harvest"),
        ("precision-recall", "recall", "precision", "recall", "harvest"),
        ("f-measure", "pages crawled", "F-measure", "pages", "f_measure"),
        ("time-recall", "recall", "seconds of ranking", "recall", "seconds"),
    ):
        lines = {key: (found[x], found[y]) for key, found in means.items()}
        # What rankers cost differs by orders of magnitude.
        written += _write(folder, name, lines, across, upwards, scale="log" if y == "seconds" else "linear")
    thresholds = mean_sweeps(sweep)
    if thresholds:
        written += _write(folder, "threshold", thresholds, "threshold gamma", "F-measure of what is selected")
    return written


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
    folder: str,
    name: str,
    lines: dict[tuple[str, str], tuple[Float64s, Float64s]],
    across: str,
    upwards: str,
    *,
    scale: str = "linear",
) -> list[str]:
    matplotlib: Any = importlib.import_module("matplotlib")
    figure_class: Callable[..., Any] = importlib.import_module("matplotlib.figure").Figure
    modes = list(dict.fromkeys(mode for _, mode in lines))
    rankers = list(dict.fromkeys(ranker for ranker, _ in lines))
    written: list[str] = []
    with matplotlib.rc_context({"svg.hashsalt": _SALT}):
        figure = figure_class(figsize=(_LEGEND_WIDTH + _WIDTH * len(modes), _HEIGHT), layout="constrained")
        panels = figure.subplots(1, len(modes), squeeze=False, sharey=True)[0]
        for panel, mode in zip(panels, modes, strict=True):
            for place, ranker in enumerate(rankers):
                if (ranker, mode) in lines:
                    x, y = lines[ranker, mode]
                    panel.plot(x, y, label=ranker, color=f"C{place % 10}", linestyle="-" if place < 10 else "--")
            panel.set_title(f"{mode} mode")
            panel.set_xlabel(across)
            panel.set_ylabel(upwards)
            panel.set_yscale(scale)
            panel.grid(alpha=0.3)
        shown = {line.get_label(): line for panel in panels for line in panel.get_lines()}
        figure.legend([shown[name] for name in rankers], rankers, loc="outside right upper", fontsize="small")
        for form in FORMATS:
            content = io.BytesIO()
            dated = {"Date": None} if form == "svg" else {"Software": None}
            figure.savefig(content, format=form, dpi=_DOTS_PER_INCH, metadata=dated)
            files.write_bytes(files.join(folder, f"{name}.{form}"), content.getvalue())
            written.append(f"{name}.{form}")
    return written
