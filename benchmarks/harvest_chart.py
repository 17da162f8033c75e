"""Draws what rankers harvest, from finished evaluations: the chart of the README.

    python -m benchmarks.harvest_chart --evaluation Wikispeedia=DIR --evaluation manuals=DIR --output harvest.svg

A bar is the mean harvest rate of a ranker over topics, its line the 95 % bootstrap interval, the dashed line what the
ranker reaches that knows the labels. Evaluations of one name, each of other rankers, share a panel.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from semrank.pipelines import folders
from semrank.schemas.tables import SUMMARY

RANKERS = ("focused", "semrank", "cosine", "breadth-first", "pagerank")
"""Rankers of the chart, those that a crawler would otherwise use beside our own."""

OWN = ("focused", "semrank")
BEST = "omniscient"
COLOUR, OTHER, REACHABLE = "#0b6bcb", "#9aa6b2", "#1a7f4b"


def rates(folder: str, mode: str) -> dict[str, dict[str, Any]]:
    """Ranker -> the summary's row of its harvest rate in a mode."""
    rows = folders.read_table(folder, SUMMARY).to_pylist()
    return {row["ranker"]: row for row in rows if row["mode"] == mode and row["measure"] == "harvest"}


def draw(evaluations: dict[str, dict[str, dict[str, Any]]], output: Path) -> None:
    """Writes the chart as SVG, the same bytes for the same figures."""
    with matplotlib.rc_context({"svg.hashsalt": "semrank"}):
        figure = Figure(figsize=(4.2 * len(evaluations), 2.6), layout="constrained")
        panels = figure.subplots(1, len(evaluations), squeeze=False)[0]
        for axes, (name, found) in zip(panels, evaluations.items(), strict=True):
            _draw_panel(axes, name, found)
        output.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(output, format="svg", metadata={"Date": None})


def _draw_panel(axes: Any, name: str, found: dict[str, dict[str, Any]]) -> None:
    rows = [found[ranker] for ranker in reversed(RANKERS) if ranker in found]
    names, means = [row["ranker"] for row in rows], [row["mean"] for row in rows]
    errors = [
        [0.0 if row["low"] is None else row["mean"] - row["low"] for row in rows],
        [0.0 if row["high"] is None else row["high"] - row["mean"] for row in rows],
    ]
    colours = [COLOUR if name in OWN else OTHER for name in names]
    axes.barh(names, means, xerr=errors, color=colours, error_kw={"ecolor": "#5c6670", "lw": 1})
    for place, mean in enumerate(means):
        axes.text(0.005, place, f"{mean:.2f}", va="center", color="white", fontsize=8)
    if BEST in found:
        best = found[BEST]["mean"]
        axes.axvline(best, ls="--", lw=1, color=REACHABLE)
        axes.text(best, len(rows) - 0.45, "knows the labels", ha="right", fontsize=7, color=REACHABLE)
    axes.set_title(f"{name}, {rows[0]['topics']} topics", fontsize=9)
    axes.set_xlabel(f"relevant part of the first {rows[0]['pages']} pages fetched", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--evaluation", action="append", required=True, metavar="NAME=DIR", help="a finished evaluation"
    )
    parser.add_argument("--mode", default="frontier", help="mode of the evaluation (default frontier)")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="the chart, .svg")
    parsed = parser.parse_args(arguments)
    evaluations: dict[str, dict[str, dict[str, Any]]] = {}
    for name, _, folder in (text.partition("=") for text in parsed.evaluation):
        evaluations.setdefault(name, {}).update(rates(folder, parsed.mode))
    draw(evaluations, parsed.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
