"""Several crawls of a small site become one snapshot, and a round with --mix tells which pages to fetch again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from semrank.pipelines import folders
from semrank.pipelines.cli import main
from semrank.schemas.tables import FRONTIER

NAMES = ("fast", "still", "gone", "new", "newer")
WORDS = "bird kestrel hawk nest feather wing"


def url(name: str) -> str:
    return f"https://a.example/{name}"


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four crawls, a week apart: one page differs each time, one never does, one is gone in the last."""
    folder = tmp_path_factory.mktemp("refresh")
    for crawl in range(4):
        known = ["fast", "still", "gone"] if crawl else ["", "fast", "still", "gone"]
        pages = [
            {
                "url": url(name),
                "fetched_at": f"2026-01-{1 + 7 * crawl:02d}T06:00:00Z",
                "status": 404 if (name, crawl) == ("gone", 3) else 200,
                "title": "birds",
                "text": WORDS,
                "content_digest": f"{name}-{crawl}" if name == "fast" else name,
            }
            for name in known
        ]
        lines(folder / f"crawl-{crawl}.jsonl", pages)
    links = [{"source_url": url(""), "target_url": url(name), "anchor_text": f"bird {name}"} for name in NAMES]
    lines(folder / "links.jsonl", links)
    click = {"user_id": "u", "query": "bird", "clicked_at": "2026-01-01T00:00:00Z", "url": url("fast")}
    lines(folder / "clicks.jsonl", [click])
    (folder / "seeds.txt").write_text(url(""), encoding="utf-8")
    tables = ["--pages", f"{folder}/crawl-*.jsonl", "--links", f"{folder}/links.jsonl"]
    clicks = ["--clicks", f"{folder}/clicks.jsonl"]
    assert main(["ingest", *tables, *clicks, "--output", f"{folder}/snapshot", "--quiet"]) == 0
    return folder


def ranked(place: Path, name: str, *options: str) -> dict[str, dict[str, Any]]:
    folder = place / name
    start = ["rank", "--snapshot", f"{place}/snapshot", "--seeds", f"{place}/seeds.txt", "--ranker", "breadth-first"]
    assert main([*start, *options, "--output", str(folder), "--quiet"]) == 0
    return {row["url"].rsplit("/", 1)[1]: row for row in folders.read_table(str(folder), FRONTIER).to_pylist()}


def test_what_changes_is_fetched_again_first_and_what_is_gone_never(place: Path) -> None:
    rows = ranked(place, "refresh", "--mix", "0:1", "--as-of", "2026-01-29T06:00:00Z")
    assert (rows["gone"]["held_back"], rows["gone"]["status"]) == ("gone", 404)
    # Three weeks, three changes: a rate of ln 7 a week (n = X = 3), and a week has passed since the last capture.
    assert rows["fast"]["change_probability"] == pytest.approx(1 - 1 / 7)
    assert rows["still"]["change_probability"] == 0
    assert math.copysign(1, rows["still"]["change_probability"]) == 1
    assert rows["new"]["change_probability"] is None
    assert rows["fast"]["rank"] < rows["still"]["rank"]


def test_a_ratio_without_a_limit_is_warned_of_and_the_order_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["rank", "--snapshot", f"{place}/snapshot", "--seeds", f"{place}/seeds.txt", "--ranker", "breadth-first"]
    assert main([*start, "--mix", "80:20", "--recrawl", "--output", f"{place}/unlimited"]) == 0
    shown = capsys.readouterr()
    assert "--mix 80:20: the ratio has no effect without --max-urls or --budget\n" in shown.err
    assert "--recrawl: has no effect with --mix, which selects known pages too\n" in shown.err
    assert "order: by score; fetched pages by score x probability that they changed" in shown.out
    row = next(row for row in folders.read_table(f"{place}/unlimited", FRONTIER).to_pylist() if row["fetched"])
    assert main(["explain", "--round", f"{place}/unlimited", row["url"]]) == 0
    assert f"score x probability, here {row['score'] * row['change_probability']:.6f}" in capsys.readouterr().out


def test_known_pages_without_a_time_are_never_called_new(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(place / "undated.jsonl", [{"url": url(name), "title": "birds", "text": WORDS} for name in ("", "fast")])
    tables = ["--pages", f"{place}/undated.jsonl", "--links", f"{place}/links.jsonl"]
    assert main(["ingest", *tables, "--output", f"{place}/undated", "--quiet"]) == 0
    start = ["rank", "--snapshot", f"{place}/undated", "--seeds", f"{place}/seeds.txt", "--max-urls", "9"]
    assert main([*start, "--output", f"{place}/crawl/round-0000"]) == 0
    assert "5 selected: 4 new, 1 known, fetched at an unknown time" in capsys.readouterr().out
    assert main(["ls", f"{place}/crawl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["new"], found["known"]) == (4, 1)


@pytest.mark.parametrize("limit", ["--budget", "--max-urls"])
def test_a_mix_is_counted_exactly(limit: str, place: Path) -> None:
    now = ["--as-of", "2026-01-29T06:00:00Z"]
    for number, mix, new, known in (("2", "1:1", 1, 1), ("3", "2:1", 2, 1), ("4", "1:3", 2, 2), ("2", "1:0", 2, 0)):
        rows = ranked(place, f"mix{limit}-{number}-{mix[0]}-{mix[2]}", limit, number, "--mix", mix, *now)
        selected = [row for row in rows.values() if row["selected"]]
        assert sum(not row["fetched"] for row in selected) == new
        # Of four, three parts would be for known pages, but only two can be had: what they leave is for new ones.
        assert sum(row["fetched"] for row in selected) == known
        assert all(row["held_back"] in (None, "gone", limit[2:]) for row in rows.values())
