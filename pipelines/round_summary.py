"""What a finished round prints for people."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.pipelines.answers import counted
from semrank.pipelines.config import RoundConfig
from semrank.pipelines.selection import SELECTION_COLUMNS, Selection
from semrank.pipelines.topic import topic_lines
from semrank.schemas.tables import FRONTIER, SCALE
from semrank.transforms.ranking.reasons import main_reason
from semrank.transforms.ranking.registry import SEMRANK

_SHOWN = FRONTIER.columns(
    *("rank", "url", "extension", "intension", "reasons"),
    *SELECTION_COLUMNS,
)


_SEMRANK_TABLES = {"keywords": "keyword", "relations": "relation", "base_concepts": "base concept"}
"""Tables that only SemRank fills, and what a row of each is."""


def round_scale(output: str) -> dict[str, float]:
    """The numbers that the round's scores are relative to; none where there are no such."""
    if not folders.table_files(output, SCALE.name):
        return {}
    return {row["name"]: row["value"] for row in folders.read_table(output, SCALE).to_pylist()}


def round_summary(
    output: str, config: RoundConfig, manifest: dict[str, Any], scale: dict[str, float], *, seconds: float, top: int
) -> str:
    """The best of the selected URLs, or of all if none is selected; what was selected, and what was held back.

    Args:
        output: the round's folder.
        config: its configuration.
        manifest: its manifest.
        scale: its numbers of `SCALE`.
        seconds: how long the pipeline ran.
        top: how many URLs are shown.
    """
    selection, rows = Selection(), manifest["rows"]
    best, selected_best = list[dict[str, Any]](), list[dict[str, Any]]()
    for table in folders.read_parts(output, _SHOWN):
        selection.add(table)
        best += table.slice(0, top - len(best)).to_pylist()
        chosen = table.filter(pc.is_null(table["held_back"]))
        selected_best += chosen.slice(0, top - len(selected_best)).to_pylist()
    shown = selected_best or best
    lines = [*_top_lines(shown, config), ""] if shown else []
    selected = f"{selection.selected:,} selected{_kinds(selection)}"
    lines.append(f"{output}: {counted(rows['frontier'], 'URL')} ranked, {selected}, in {seconds:.1f} s")
    topic = manifest["inputs"].get("topic")
    lines += topic_lines(topic) if topic else []
    lines.append(_threshold_line(manifest["threshold"], config, scale))
    if not selection.selected and selection.held["threshold"] and config.threshold is None:
        lines.append("no score is above the threshold: --max-urls N selects the best N whatever their scores")
    if config.mix is not None:
        lines.append("order: by score; fetched pages by score x probability that they changed (--mix)")
    counts = [counted(rows[table], name) for table, name in _SEMRANK_TABLES.items() if rows[table]]
    if counts:
        lines.append(f"SemRank: {', '.join(counts)}")
    if selection.held:
        held = sorted(selection.held.items())
        lines.append("held back: " + ", ".join(f"{count:,} {reason}" for reason, count in held))
    if manifest["rejected"]:
        lines.append("rejects: " + ", ".join(f"{count:,} {reason}" for reason, count in manifest["rejected"].items()))
    return "\n".join(lines)


def _kinds(selection: Selection) -> str:
    """New and known pages among the selected ones, and when the known ones were fetched."""
    counts = {"new": selection.selected - selection.known, "known": selection.known}
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    if selection.times:
        first, last = (f"{time:%Y-%m-%d}" for time in (min(selection.times), max(selection.times)))
        parts.append(f"last fetched {first}" + ("" if first == last else f" to {last}"))
    if selection.undated:
        few = "" if selection.undated == selection.known else f"{selection.undated:,} "
        parts.append(f"{few}fetched at an unknown time")
    return f": {', '.join(parts)}" if parts else ""


def _threshold_line(threshold: float | None, config: RoundConfig, scale: dict[str, float]) -> str:
    if threshold is None:
        return "threshold: none, the limits are filled with the best URLs"
    if config.threshold is not None:
        return f"threshold: {threshold:g}, given by --threshold"
    if "threshold" in scale:
        if scale["precision"] < config.precision:
            return (
                f"threshold: {threshold:g}, no score reaches --precision {config.precision:g}: of the harvested pages "
                f"above one at most {scale['precision']:.0%} are at least half as like the topic as the seeds"
            )
        return (
            f"threshold: {threshold:g}, calibrated: {scale['precision']:.0%} of the harvested pages above it are at "
            f"least half as like the topic as the seeds (--precision {config.precision:g})"
        )
    line = f"threshold: {threshold:g}, default of {config.ranker}"
    if config.calibrates:
        return f"{line}: --precision needs a fetched seed and other fetched pages in the harvest"
    return line


def _top_lines(top: list[dict[str, Any]], config: RoundConfig) -> list[str]:
    concepts = config.ranker == SEMRANK and config.compares_rounds
    held = max(len(row["held_back"] or "") for row in top)
    width = max(held, len("held back")) if held else 0
    lines = [f"{'rank':>6}  {'score':>6}{'    ext    int' if concepts else ''}{_column('held back', width)}  url"]
    for row in top:
        values = f"  {row['extension']:.3f}  {row['intension']:.3f}" if concepts else ""
        lines.append(f"{row['rank']:>6}  {row['score']:.4f}{values}{_column(row['held_back'], width)}  {row['url']}")
        if row["reasons"]:
            lines.append(" " * 16 + main_reason(row["reasons"]))
    return lines


def _column(text: str | None, width: int) -> str:
    """A text in a column of a width, none of 0."""
    return f"  {text or '':<{width}}" if width else ""
