"""The bare loop finds the pages and links of the benchmark's crawl, as do we, and a run gives the agreed form."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import warc_ingest

PAGES = 5
LINKS_A_PAGE = 40 + 25 + 60 + 40
"""Menu, paragraphs, further links, and the menu again in the footer."""


def find_nothing(_: Path) -> tuple[int, int]:
    return 0, 0


def test_both_sides_find_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.gz"
    warc_ingest.write_crawl(path, PAGES)
    assert warc_ingest.read_in_a_loop(path) == (PAGES, PAGES * LINKS_A_PAGE)
    assert warc_ingest.read_with_ours(path) == (PAGES, PAGES * LINKS_A_PAGE)


@pytest.mark.usefixtures("forked_runs")
def test_a_run_compares_with_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_ingest, "QUICK_PAGES", PAGES)
    (result,) = warc_ingest.run(quick=True)
    assert result["peer"] == "FastWARC + Resiliparse"
    assert result["note"].startswith(f"{PAGES} pages, {PAGES * LINKS_A_PAGE:,} links")
    assert result["ours_s"] is not None
    assert result["peer_s"] is not None
    assert result["met"] == (result["ours_s"] / result["peer_s"] <= warc_ingest.AIM)


@pytest.mark.usefixtures("forked_runs")
def test_a_difference_does_not_go_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_ingest, "QUICK_PAGES", PAGES)
    monkeypatch.setattr(warc_ingest, "read_in_a_loop", find_nothing)
    with pytest.raises(RuntimeError, match=f"found \\({PAGES}, {PAGES * LINKS_A_PAGE}\\)"):
        warc_ingest.run(quick=True)
