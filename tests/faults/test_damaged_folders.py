"""Rounds, snapshots and evaluations that are damaged or of other versions: one line that says so, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semrank.pipelines import evaluation_plots, rank
from semrank.pipelines.cli import main
from semrank.pipelines.config import round_config
from tests.support.plots import without_plots

FEW = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["\ud800", "../..", "semrank", "focused", "</script>"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["a", "path", "seconds"]), st.integers(), max_size=2),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot, a round of it that has every table, one that is handed over, an evaluation, and a topic's pages."""
    place = tmp_path_factory.mktemp("whole")
    web, snapshot = f"{place}/web", f"{place}/snapshot"
    assert main(["sample", "--output", web, "--quiet"]) == 0
    # What is damaged is read hundreds of times: half of the pages, and those that were fetched again.
    archives = ["--warc", f"{web}/warc/*0304-00000*", "--warc", f"{web}/warc/*0318*", "--clicks", f"{web}/clicks/*"]
    assert main(["ingest", *archives, "--output", snapshot, "--quiet"]) == 0
    start = ["--snapshot", snapshot, "--seeds", f"{web}/seeds.txt", "--quiet"]
    options = ["--ranker", "ontology", "--semrank-terms", "--write-lattices", "--max-urls", "9"]
    assert main(["rank", *start, *options, "--output", f"{place}/round"]) == 0
    compared = ["--topics", f"{web}/topics.parquet", "--rankers", "cosine,breadth-first", "--seed-sets", "1"]
    size = ["--budget", "6", "--batch", "3"]
    with without_plots():
        evaluated = ["--snapshot", snapshot, *compared, *size, "--output", f"{place}/evaluation"]
        assert main(["evaluate", *evaluated, "--quiet"]) == 0
    shutil.copytree(place / "round", place / "pending")
    manifest = json.loads((place / "pending" / "manifest.json").read_text())
    (place / "pending" / "manifest.json").unlink()
    told = {"parameters": manifest["parameters"], "inputs": manifest["inputs"], "started": 1.7e9}
    (place / "pending" / "pending.json").write_text(json.dumps(told))
    # An ontology and the crawls of a topic are read and replayed by the same code as larger ones and as more topics.
    (place / "birds.ttl").write_text(BIRDS)
    labels = pq.read_table(f"{web}/topics.parquet")
    topic = labels.filter(pc.equal(labels["topic"], labels["topic"][0]))
    pq.write_table(topic, place / "topic.parquet")
    shutil.copytree(snapshot, place / "few")
    for table, column in {"pages": "url", "links": "source_url", "clicks": "url"}.items():
        for path in (place / "few" / table).glob("*.parquet"):
            rows = pq.read_table(path)
            pq.write_table(rows.filter(pc.is_in(rows[column], topic["url"])), path)
    return place


BIRDS = """\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <urn:birds#> .
:bird a rdfs:Class ; rdfs:label "bird" .
:raptor a rdfs:Class ; rdfs:label "raptor" ; rdfs:subClassOf :bird .
"""

URL = "https://birds.example/raptors/kestrel.html"

COMMANDS: dict[str, tuple[str, str, list[str]]] = {
    "report": ("round", "manifest.json", ["report", "--round", "{it}", "--output", "{new}.html"]),
    "explain": ("round", "manifest.json", ["explain", "--round", "{it}", URL]),
    "explain-json": ("round", "manifest.json", ["explain", "--round", "{it}", URL, "--json"]),
    "export": ("round", "manifest.json", ["export", "--round", "{it}", "--format", "nutch", "--output", "{new}"]),
    "previous": (
        "round",
        "manifest.json",
        ["rank", "--snapshot", "{snapshot}", "--previous", "{it}", "--output", "{new}"],
    ),
    "ontology": (
        "round",
        "manifest.json",
        ["ontology", "--ontology", "{ontology}", "--round", "{it}", "--output", "{new}.ttl"],
    ),
    "rounds": (
        "round",
        "manifest.json",
        ["rounds", "--snapshot", "{snapshot}", "--seeds", "{seeds}", "--rounds", "2", "--output", "{above}"],
    ),
    "finish": ("pending", "pending.json", ["finish", "--round", "{it}"]),
    "finished": ("round", "manifest.json", ["finish", "--round", "{it}"]),
    "rank": ("snapshot", "manifest.json", ["rank", "--snapshot", "{it}", "--seeds", "{seeds}", "--output", "{new}"]),
    "evaluate": (
        "few",
        "manifest.json",
        [
            *(
                "evaluate",
                "--snapshot",
                "{it}",
                "--topics",
                "{topics}",
                "--rankers",
                "breadth-first",
                "--mode",
                "frontier",
            ),
            *("--budget", "2", "--seed-sets", "1", "--output", "{new}"),
        ],
    ),
    "report-evaluation": ("evaluation", "manifest.json", ["report", "--evaluation", "{it}", "--output", "{new}.html"]),
}
"""Command -> the folder that is damaged, its file, and the arguments."""


@pytest.fixture
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds end where their job would begin: what was read by then is the command's own business."""
    monkeypatch.setattr(rank, "run_pipeline", lambda *_, **__: None)
    monkeypatch.setattr(evaluation_plots, "available", lambda: False)


def copied(source: Path, target: Path) -> Path:
    """A copy of a folder whose files are links: none is written to, only replaced.

    Of an earlier copy only what was replaced is made anew: a thousand times all of it takes longer than the commands.
    """
    target.mkdir(exist_ok=True)
    expected = {entry.name: entry for entry in os.scandir(source)}
    for found in list(os.scandir(target)):
        entry = expected.get(found.name)
        if entry is not None and entry.is_dir() and found.is_dir():
            continue
        if entry is None or entry.inode() != found.inode():
            shutil.rmtree(found.path) if found.is_dir() else Path(found.path).unlink()
    for name, entry in expected.items():
        if entry.is_dir():
            copied(Path(entry.path), target / name)
        elif not (target / name).exists():
            os.link(entry.path, target / name)
    return target


def replace(path: Path, content: bytes) -> None:
    """Puts another file in the place of one."""
    path.unlink()
    path.write_bytes(content)


def run(whole: Path, damaged: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Runs a command over a damaged folder; a failure is told in one line, and leaves nothing that looks finished."""
    new = damaged.parent / "new"
    for path in damaged.parent.glob("new*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    names = {
        **{"it": damaged, "new": new, "above": damaged.parent, "snapshot": whole / "snapshot"},
        **{"seeds": whole / "web" / "seeds.txt", "topics": whole / "topic.parquet", "ontology": whole / "birds.ttl"},
    }
    capsys.readouterr()
    status = main([argument.format(**names) for argument in command] + ["--quiet"])
    error = capsys.readouterr().err
    assert status in (0, 2), error
    assert error.count("\n") == (status == 2), error
    if status == 2:
        assert not list(damaged.parent.glob("new.*"))
        assert not (new / "manifest.json").exists()
    return status


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all entries of a JSON value."""
    if way:
        yield way
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, (*way, name))
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from places(member, (*way, number))


def mutated(manifest: dict[str, Any], data: st.DataObject) -> bytes:
    """Takes up to three entries from a manifest or makes them strange; returns its text, or a part of it."""
    for _ in range(data.draw(st.integers(0, 3))):
        ways = list(places(manifest))
        if not ways:
            break
        # Entries near the root are as likely as the many measures of stages.
        depth = data.draw(st.sampled_from(sorted({len(way) for way in ways})))
        *above, last = data.draw(st.sampled_from([way for way in ways if len(way) == depth]))
        holder: Any = manifest
        for name in above:
            holder = holder[name]
        if data.draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = data.draw(STRANGE)
    content = json.dumps(manifest).encode()
    return content[: data.draw(st.integers(0, len(content)))] if data.draw(st.integers(0, 7)) == 0 else content


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize("name", COMMANDS)
@FEW
@given(data=st.data())
def test_manifests_that_somebody_changed(
    name: str, whole: Path, tmp_path: Path, data: st.DataObject, capsys: pytest.CaptureFixture[str]
) -> None:
    source, file, command = COMMANDS[name]
    damaged = copied(whole / source, tmp_path / "round-0000")
    replace(damaged / file, mutated(json.loads((whole / source / file).read_text()), data))
    run(whole, damaged, command, capsys)


def broken_files(folder: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """What may have happened to the tables of a folder: a name, and a function that does it to a copy."""
    for table in sorted(path.name for path in folder.iterdir() if path.is_dir() and list(path.glob("*.parquet"))):
        file = next((folder / table).glob("*.parquet")).relative_to(folder)
        yield f"{table}: gone", lambda folder, table=table: shutil.rmtree(folder / table)  # type: ignore[misc]
        yield f"{table}: empty", _cut(file, 0.0)
        yield f"{table}: cut", _cut(file, 0.9)
        rows = pq.read_table(folder / file)
        for place, name in enumerate(rows.column_names):
            yield f"{table}: without {name}", _written(file, rows.drop_columns([name]))
            other = pa.list_(pa.int8()) if place % 2 else pa.string()
            nulls = rows.set_column(place, pa.field(name, other), pa.nulls(len(rows), other))
            yield f"{table}: {name} as {other}", _written(file, nulls)


def _cut(file: Path, share: float) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        content = (folder / file).read_bytes()
        replace(folder / file, content[: int(share * len(content))])

    return cut


def _written(file: Path, table: pa.Table) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / file).unlink()
        pq.write_table(table, folder / file)

    return write


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("explain-json", "finished")])
def test_tables_that_are_damaged(name: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, _, command = COMMANDS[name]
    refused = 0
    for what, damage in broken_files(whole / source):
        damaged = copied(whole / source, tmp_path / "round-0000")
        damage(damaged)
        try:
            refused += run(whole, damaged, command, capsys) == 2
        except AssertionError as cause:
            raise AssertionError(f"{what}: {cause}") from cause
    assert refused


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_whole_is_read(name: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Or none of the other tests would tell anything."""
    source, _, command = COMMANDS[name]
    damaged = copied(whole / source, tmp_path / "round-0000")
    if name == "rounds":
        told = json.loads((damaged / "manifest.json").read_text())
        told["parameters"] = {**round_config(Namespace(profile=None)).as_dict(), "recrawl": True}
        replace(damaged / "manifest.json", json.dumps(told).encode())
    assert run(whole, damaged, command, capsys) == 0
