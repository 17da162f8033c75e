"""`semrank rounds` goes on after its last finished round; `semrank explain` tells a URL's terms."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest

from semrank.pipelines.cli import main
from tests.support.p13_web import P13_CLICKS, P13_LINKS, P13_PAGES, START, link, url
from tests.support.snapshots import read_rows, write_snapshot

LINKS = [*P13_LINKS, link(5, 9), link(8, 10), link(9, 11)]
PAGES = [*P13_PAGES, *({"url": url(number), "keywords": ["spider", "technology"]} for number in (9, 10, 11))]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rounds")
    write_snapshot(folder / "snapshot", PAGES, LINKS, P13_CLICKS)
    (folder / "seeds.txt").write_text("\n".join(map(url, (1, 2, 3))), encoding="utf-8")
    assert run_rounds(folder, 3, folder / "rounds") == 0
    return folder


def run_rounds(folder: Path, count: int, output: Path, *options: str) -> int:
    return main(
        [
            "rounds",
            *("--snapshot", str(folder / "snapshot"), "--seeds", str(folder / "seeds.txt")),
            *("--rounds", str(count), "--output", str(output), "--profile", "paper-2013", "--quiet", *options),
        ]
    )


def frontiers(output: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(output.glob("round-*/frontier/*.parquet"))]


def test_queue_of_a_round_is_what_the_last_one_selected(finished: Path) -> None:
    rounds = sorted((finished / "rounds").iterdir())
    assert [path.name for path in rounds] == ["round-0000", "round-0001", "round-0002"]
    for earlier, later in itertools.pairwise(rounds):
        selected = {row["url"] for row in read_rows(earlier / "frontier") if row["selected"]}
        ranked = {row["url"] for row in read_rows(later / "frontier")}
        assert selected
        assert not selected & ranked
    assert {row["url"] for row in read_rows(rounds[1] / "frontier")} >= {url(9), url(10)}


def test_rounds_choose_pages_that_were_fetched_before_their_crawl_began(tmp_path: Path) -> None:
    """One round leaves known pages alone; rounds replay a crawl, for which they are new until it chooses them."""
    fetched = [{**page, "status": 200, "fetched_at": START} for page in PAGES]
    write_snapshot(tmp_path / "snapshot", fetched, LINKS, P13_CLICKS)
    (tmp_path / "seeds.txt").write_text("\n".join(map(url, (1, 2, 3))), encoding="utf-8")
    assert run_rounds(tmp_path, 2, tmp_path / "rounds", "--max-urls", "3") == 0
    for number, expected in enumerate((3, 2)):
        rows = read_rows(tmp_path / "rounds" / f"round-{number:04d}" / "frontier")
        assert sum(row["selected"] for row in rows) == min(3, len(rows)) == expected
    one = ["rank", "--snapshot", str(tmp_path / "snapshot"), "--seeds", str(tmp_path / "seeds.txt"), "--quiet"]
    assert main([*one, "--output", str(tmp_path / "round"), "--profile", "paper-2013", "--max-urls", "3"]) == 0
    assert {row["held_back"] for row in read_rows(tmp_path / "round" / "frontier")} == {"known"}


def test_harvested_urls_are_not_ranked_again(tmp_path: Path) -> None:
    """Seeds and what any earlier round selected are left out, also where the queue links back to them."""
    write_snapshot(tmp_path / "snapshot", PAGES, [*LINKS, link(9, 1), link(10, 4), link(5, 2)], P13_CLICKS)
    (tmp_path / "seeds.txt").write_text("\n".join(map(url, (1, 2, 3))), encoding="utf-8")
    assert run_rounds(tmp_path, 3, tmp_path / "rounds", "--threshold", "0", "--max-urls", "3") == 0
    harvested = {url(1), url(2), url(3)}
    for folder in sorted((tmp_path / "rounds").iterdir()):
        rows = read_rows(folder / "frontier")
        assert rows
        assert not harvested & {row["url"] for row in rows}
        harvested |= {row["url"] for row in rows if row["selected"]}
    assert len(harvested) > 8


def test_ended_run_goes_on_with_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "rounds", tmp_path / "rounds")
    # As a killed run leaves them: round 1 without its manifest, round 2 not begun.
    (tmp_path / "rounds" / "round-0001" / "manifest.json").unlink()
    shutil.rmtree(tmp_path / "rounds" / "round-0002")
    before = (tmp_path / "rounds" / "round-0000" / "manifest.json").read_bytes()
    assert run_rounds(finished, 3, tmp_path / "rounds") == 0
    assert frontiers(tmp_path / "rounds") == frontiers(finished / "rounds")
    assert (tmp_path / "rounds" / "round-0000" / "manifest.json").read_bytes() == before


def test_other_options_do_not_go_on_from_finished_rounds(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished / "rounds", tmp_path / "rounds")
    assert run_rounds(finished, 3, tmp_path / "rounds", "--weight", "0.9") == 2
    assert "was made with weight 0.4, expected 0.9" in capsys.readouterr().err


def test_other_inputs_do_not_go_on_from_finished_rounds(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other seeds at the same path, a round of an earlier crawl behind a replaced one, and another snapshot."""
    for name in ("snapshot", "rounds"):
        shutil.copytree(finished / name, tmp_path / name)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{url(1)}\n{url(2)}\n", encoding="utf-8")
    snapshot = f"--snapshot={finished / 'snapshot'}"
    assert run_rounds(tmp_path, 3, tmp_path / "rounds", snapshot) == 2
    assert f"round-0000 was made from other URLs than those of {seeds}" in capsys.readouterr().err
    assert run_rounds(tmp_path, 1, tmp_path / "rounds", snapshot, "--overwrite") == 0
    assert run_rounds(tmp_path, 2, tmp_path / "rounds", snapshot) == 2
    assert "round-0001 was made from other URLs than those of " in capsys.readouterr().err
    assert run_rounds(tmp_path, 2, tmp_path / "new") == 0
    manifest = tmp_path / "snapshot" / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert run_rounds(tmp_path, 2, tmp_path / "new") == 2
    assert "was replaced; --overwrite replaces it" in capsys.readouterr().err


def test_nothing_selected_ends_the_rounds(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_rounds(finished, 3, tmp_path / "rounds", "--threshold", "1") == 0
    assert [path.name for path in (tmp_path / "rounds").iterdir()] == ["round-0000"]
    assert "round 1: not run" in capsys.readouterr().err


def test_number_of_rounds_is_checked(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_rounds(finished, 0, tmp_path / "rounds") == 2
    assert "--rounds: found 0" in capsys.readouterr().err


def test_explain_tells_the_terms(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = finished / "rounds" / "round-0000"
    row = read_rows(folder / "frontier")[0]
    assert main(["explain", "--round", str(folder), row["url"]]) == 0
    text = capsys.readouterr().out
    assert f"rank 1 of 5, score {row['score']:.6f}, selected" in text
    assert "score = 0.4 x extension + 0.6 x intension" in text
    assert main(["explain", "--round", str(folder), row["url"], "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["frontier"]["score"] == row["score"]
    assert facts["base_concept"]["concept"] == row["base_concept"]
    weighted = 0.4 * row["extension"] + 0.6 * row["intension"]
    assert row["score"] == pytest.approx(weighted, abs=1e-12)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("https://elsewhere.example/", "is not in the frontier"), ("http://[x", "is not a URL")],
)
def test_explain_names_what_is_wrong(
    finished: Path, capsys: pytest.CaptureFixture[str], address: str, expected: str
) -> None:
    assert main(["explain", "--round", str(finished / "rounds" / "round-0000"), address]) == 2
    assert expected in capsys.readouterr().err
