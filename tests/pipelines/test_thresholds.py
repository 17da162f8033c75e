"""Which threshold a round uses, and what its summary says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main

SITE = "https://x.example/"
BIRDS = {"kestrel": "kestrel raptor bird wing feather prey", "owl": "owl bird wing feather nest prey night"}
CALIBRATED = "calibrated: 25% of the harvested pages above it are at least half as like the topic as the seeds"
TRAINS = {f"train{number}": f"train engine wagon signal boiler steam number{number}" for number in range(3)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that was led astray: a seed about birds links to three pages about trains, all with the same words."""
    folder = tmp_path_factory.mktemp("astray")
    pages = [{"url": SITE + name, "title": name, "text": text} for name, text in (BIRDS | TRAINS).items()]
    astray = [("kestrel", name, "kestrel raptor bird") for name in TRAINS]
    ends = [*astray, ("train0", "owl", "boiler"), ("train1", "swift", "kestrel")]
    links = [{"source_url": SITE + a, "target_url": SITE + b, "anchor_text": text} for a, b, text in ends]
    for name, rows in (("pages", pages), ("links", links)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "seeds.txt").write_text(f"{SITE}kestrel\n", encoding="utf-8")
    tables = ["--pages", f"{folder}/pages.jsonl", "--links", f"{folder}/links.jsonl"]
    assert main(["ingest", *tables, "--output", f"{folder}/snapshot"]) == 0
    start = ["--snapshot", f"{folder}/snapshot", "--seeds", f"{folder}/seeds.txt"]
    assert main(["rank", *start, "--max-urls", "3", "--output", f"{folder}/first"]) == 0
    return folder


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--precision", "0.25"], f"threshold: 0.5, {CALIBRATED} (--precision 0.25)"),
        (
            ["--precision", "0.3"],
            "threshold: 1, no score reaches --precision 0.3: of the harvested pages above one at most 25%",
        ),
        (["--threshold", "0.2"], "threshold: 0.2, given by --threshold"),
        (["--max-urls", "2"], "threshold: none, the limits are filled with the best URLs"),
        (["--ranker", "cosine"], "threshold: 0, default of cosine"),
        (["--seeds"], "threshold: 0.5, default of focused: --precision needs a fetched seed"),
    ],
)
def test_the_summary_says_which_threshold_was_used(
    options: list[str], line: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All four harvested pages have equal scores, and one of them, the seed, is like the seeds."""
    start = ["--seeds", f"{place}/seeds.txt"] if options == ["--seeds"] else ["--previous", f"{place}/first", *options]
    output = tmp_path / "round"
    assert main(["rank", "--snapshot", f"{place}/snapshot", *start, "--output", str(output)]) == 0
    found = [text for text in capsys.readouterr().out.splitlines() if text.startswith("threshold")]
    assert found[0].startswith(line)
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    named = line.split()[1].strip(",:")
    assert manifest["threshold"] == (None if named == "none" else float(named))


@pytest.mark.parametrize(
    ("options", "held_back"),
    [(["--max-urls", "1"], False), (["--threshold", "0", "--top", "1"], False), (["--threshold", "0.999"], True)],
)
def test_the_summary_lists_what_is_selected_or_why_nothing_is(
    options: list[str], held_back: bool, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "round"
    start = ["--snapshot", f"{place}/snapshot", "--previous", f"{place}/first"]
    assert main(["rank", *start, *options, "--output", str(output)]) == 0
    rows = pq.read_table(output / "frontier").to_pylist()
    shown = rows if held_back else [row for row in rows if row["held_back"] is None]
    top = int(options[-1]) if "--top" in options else len(shown)
    assert shown
    expected = [
        [str(row["rank"]), f"{row['score']:.4f}", *([row["held_back"]] if held_back else []), row["url"]]
        for row in shown[:top]
    ]
    found = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [words for words in found if words[-1:] and words[-1].startswith(SITE)] == expected
    assert (["rank", "score", "held", "back", "url"] in found) == held_back
