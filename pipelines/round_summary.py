"""What a finished round prints for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.pipelines.config import RoundConfig
from semrank.pipelines.topic import topic_lines
from semrank.schemas.tables import FRONTIER, SCALE
from semrank.transforms.frontier.budgets import is_known
from semrank.transforms.ranking.reasons import main_reason

_SHOWN = FRONTIER.columns(
    *("rank", "url", "score", "extension", "intension", "held_back", "reasons"),
    *("fetched", "last_fetched_at", "status"),
)


def round_threshold(output: str, config: RoundConfig) -> float | None:
    """The threshold that counted: the calibrated one if there is one, else that of the options or the ranker."""
    for row in folders.read_table(output, SCALE).to_pylist():
        if row["name"] == "threshold":
            return float(row["value"])
    return config.least_score


@dataclass
class _Seen:
    """What the frontier's files hold, counted file by file."""

    held: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    times: list[datetime] = field(default_factory=list)
    top: list[dict[str, Any]] = field(default_factory=list)

    def add(self, table: pa.Table, top: int) -> None:
        counts = pc.value_counts(table["held_back"].combine_chunks())
        self.held.update({entry["values"].as_py() or "": entry["counts"].as_py() for entry in counts})
        if len(self.top) < top:
            self.top += table.slice(0, top - len(self.top)).to_pylist()
        selected = table.filter(pc.is_null(table["held_back"]))
        known = is_known(selected)
        self.kinds["known"] += pc.sum(known).as_py() or 0
        self.kinds["new"] += pc.sum(pc.invert(selected["fetched"])).as_py() or 0
        self.kinds["undated"] += pc.sum(pc.and_not(selected["fetched"], known)).as_py() or 0
        span = pc.min_max(selected["last_fetched_at"]).as_py()
        self.times += [moment for moment in span.values() if moment is not None]


def round_summary(output: str, config: RoundConfig, manifest: dict[str, Any], *, seconds: float, top: int) -> str:
    """The best URLs, what was selected, and what was held back.

    Args:
        output: the round's folder.
        config: its configuration.
        manifest: its manifest.
        seconds: how long the pipeline ran.
        top: how many URLs are shown.
    """
    seen, rows = _Seen(), manifest["rows"]
    for table in folders.read_parts(output, _SHOWN):
        seen.add(table, top)
    selected = seen.held.pop("", 0)
    lines = [*_top_lines(seen.top, config), ""] if seen.top else []
    lines.append(f"{output}: {rows['frontier']:,} URLs ranked, {selected:,} selected{_kinds(seen)}, in {seconds:.1f} s")
    lines += topic_lines(manifest["inputs"]["topic"]) if "topic" in manifest["inputs"] else []
    lines.append(_threshold_line(manifest["threshold"], config))
    lines.append(
        f"{rows['keywords']:,} keywords, {rows['relations']:,} relations, {rows['base_concepts']:,} base concepts"
    )
    if seen.held:
        lines.append("held back: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(seen.held.items())))
    if manifest["rejected"]:
        lines.append("rejects: " + ", ".join(f"{count:,} {reason}" for reason, count in manifest["rejected"].items()))
    return "\n".join(lines)


def _kinds(seen: _Seen) -> str:
    """New and known pages among the selected ones, and when the known ones were fetched."""
    names = {"new": "new", "known": "known", "undated": "in the snapshot without a time of fetch"}
    parts = [f"{seen.kinds[kind]:,} {name}" for kind, name in names.items() if seen.kinds[kind]]
    if seen.times:
        first, last = (f"{moment:%Y-%m-%d}" for moment in (min(seen.times), max(seen.times)))
        parts[-1] += f", last fetched {first}" + ("" if first == last else f" to {last}")
    return f": {', '.join(parts)}" if parts else ""


def _threshold_line(threshold: float | None, config: RoundConfig) -> str:
    if threshold is None:
        return "threshold: none, as many URLs are selected as the limits allow"
    if config.threshold is not None:
        return f"threshold: {threshold:g}, as --threshold says"
    if threshold != config.least_score:
        return (
            f"threshold: {threshold:g}, calibrated: at least {config.precision:g} of the harvested pages above it are "
            "relevant"
        )
    return f"threshold: {threshold:g}, the default of {config.ranker}"


def _top_lines(top: list[dict[str, Any]], config: RoundConfig) -> list[str]:
    concepts = config.ranker == "semrank" and config.compares_rounds
    lines = [f"{'rank':>6}  {'score':>6}  {'  ext    int  ' if concepts else ''}sel  url"]
    for row in top:
        values = f"{row['extension']:.3f}  {row['intension']:.3f}  " if concepts else ""
        mark = " * " if row["held_back"] is None else "   "
        lines.append(f"{row['rank']:>6}  {row['score']:.4f}  {values}{mark}  {row['url']}")
        if row["reasons"]:
            lines.append(" " * 21 + main_reason(row["reasons"]))
    return lines
