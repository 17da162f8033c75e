"""Every command that the documentation or a help shows is run, and prints what is told.

Blocks of a page run one after the other in a folder of its own, by a real shell. What can't be run here is named below
with its reason, and an entry that nothing matches any more fails.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import COMMANDS, command_parser
from semrank.pipelines.runtime import beam_options
from semrank.schemas.errors import InputError
from tests.support.blocks import PAGES, ROOT, Block, all_blocks, page_name, run_script
from tests.support.command_server import served

BLOCKS = all_blocks()

SECTIONS_APART = {"docs/crawlers.md"}
"""Pages whose sections have folders of their own: one crawler's round trip has nothing to do with another's."""

SECONDS = 600
"""After what time a block counts as hung; all together take two minutes where two cores have nothing else to do."""

ELSEWHERE = {
    "readme:main": "tests/test_readme.py runs it in this interpreter",
    "readme:test": "it is what runs these tests",
    "tutorial:loop": "tests/crawlers/test_docs.py runs it: it needs Scrapy",
    **{
        f"extending:{part}": "tests/docs/test_extending.py runs it, with what the page adds to the program"
        for part in ("start", "generated", "ranker", "log", "export")
    },
}
"""Blocks by their marker that are not run here, and why."""

NOT_RUN = {
    r"^(?:python3? -m )?pip install": "installs from a package registry",
    r"^scrapy crawl": "needs Scrapy; tests/crawlers runs the project",
    r"redis-cli": "needs a Redis server",
    r"^bin/nutch": "needs Nutch; tests/crawlers runs its Injector",
    r"^java ": "needs jars of a crawler",
    r"^curl ": "needs a server",
    r"--base-url https://": "reads Common Crawl's server",
    r"--source (?:https:|downloads)": "needs the published archives",
    r"--source unpacked": "needs packages of manuals",
    r"sample --serve": "serves until it is interrupted; tests/pipelines/test_sample_server.py runs it",
    r"gs://": "needs a bucket; tests/cloud has one",
    r"^docker ": "needs Docker",
    r"^gcloud ": "needs a Google Cloud project",
    r"deploy/flink/cluster": "needs Java and Maven; tests/cluster starts it",
    r"-m pytest|^SEMRANK_REPETITIONS": "runs tests",
    r"^python -m benchmarks": "measures for minutes; tests/benchmarks runs small sizes",
    r"^python -m tests\.": "looks for faults for minutes; tests/fuzz and tests/faults run small sizes",
    r"supply_chain\.py": "asks a package registry",
    r"--ontology sqlite:": "needs a database; tests/pipelines has one",
    r"https://example\.org/": "stands for a page of the reader's",
}
"""Patterns of statements that are not run here, and why."""

PREPARED = {
    "README.md": ["crawl", "clicks.parquet", "seeds.txt"],
    "docs/crawlers.md": [
        *("warc", "warcs", "dump", "jobs", "pages.jsonl", "links.jsonl", "clicks.parquet", "seeds.txt"),
        *("round-0000", "snapshot-cc"),
    ],
    "docs/evaluation.md": [],
    "docs/scaling.md": ["snapshot", "seeds.txt"],
    "docs/ontology.md": ["snapshot", "seeds.txt", "shop.ttl"],
    "docs/tutorial.md": ["crawl", "logs", "salt.txt", "seeds.txt", "deploy"],
    "examples/scrapy_project/README.md": ["../round-0000", "crawl-0001.warc.gz", "clicks.parquet"],
    "help ingest": ["crawl", "clicks.parquet", "pages.parquet", "links.jsonl", "logs", "salt.txt"],
    "help rank": ["snapshot", "seeds.txt"],
    "help rounds": ["snapshot", "seeds.txt"],
    "help explain": ["penguins"],
    "help report": ["round-0000", "rounds", "evaluation"],
    "help ls": ["rounds"],
    "help export": ["round-0000"],
    "help ontology": ["shop.ttl", "round-0003"],
}
"""What a page's commands find in their folder."""


TWICE = {"help evaluate": "docs/evaluation.md"}
"""Helps that show a command which a page runs from the same files, and takes long: it is run once."""


@dataclass(frozen=True)
class Ran:
    """What became of a block: exit status, what it printed and complained of, the statements that were left out."""

    status: int
    printed: str
    complaints: str
    left_out: list[str]


def link_tree(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, copy_function=os.link, dirs_exist_ok=True)
    else:
        os.link(source, target)


def as_lines(table: pa.Table, columns: list[str]) -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in table.select(columns).to_pylist())


def crawl_log(pages: pa.Table) -> str:
    """A log of Heritrix about the pages, a little more exact in time than the archive is."""
    return "".join(
        f"{at:%Y-%m-%dT%H:%M:%S.999Z}   200        100 {url} L https://birds.example/ text/html #001 "
        f"{at:%Y%m%d%H%M%S}250+9 - - -\n"
        for url, at in zip(pages["url"].to_pylist(), pages["fetched_at"].to_pylist(), strict=True)
        if at is not None
    )


def crawldb(pages: pa.Table) -> str:
    """A dump of Nutch's CrawlDb with the pages as fetched ones."""
    return "".join(
        json.dumps(
            {
                "url": url,
                "statusName": "db_fetched",
                "fetchTime": round(at.timestamp() * 1000) + 2_592_000_250,
                "retryIntervalSeconds": 2_592_000,
                "signature": "0a1b",
            }
        )
        + "\n"
        for url, at in zip(pages["url"].to_pylist(), pages["fetched_at"].to_pylist(), strict=True)
        if at is not None
    )


ACCESS_LOG = """\
192.0.2.1 - - [01/Mar/2024:12:00:00 +0000] "GET /search?q=kestrel HTTP/1.1" 200 100 "-" "Mozilla/5.0 (X11; Linux)"
192.0.2.1 - - [01/Mar/2024:12:00:09 +0000] "GET /kestrel HTTP/1.1" 200 100 "https://www.example.com/search?q=kestrel" \
"Mozilla/5.0 (X11; Linux)"
"""

SHOP = """\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <urn:shop#> .
:bird a rdfs:Class ; rdfs:label "bird" .
:raptor a rdfs:Class ; rdfs:label "raptor" ; rdfs:subClassOf :bird .
"""


def prepare(name: str, target: Path, chain: Path) -> None:
    """Puts one of the things that pages start from into its place."""
    pages = pq.read_table(chain / "snapshot/pages", columns=["url", "fetched_at", "title", "text"])
    links = pq.read_table(chain / "snapshot/links")
    texts: dict[str, Callable[[], dict[str, str]]] = {
        "dump": lambda: {"part-r-00000": crawldb(pages)},
        "logs": lambda: {"access.log": ACCESS_LOG, "access.log.1": ACCESS_LOG.replace("01/Mar", "02/Mar")},
        "pages.jsonl": lambda: {"": as_lines(pages, ["url", "title", "text"])},
        "links.jsonl": lambda: {"": as_lines(links, ["source_url", "target_url"])},
        "shop.ttl": lambda: {"": SHOP},
        "salt.txt": lambda: {"": "a text of the reader's own"},
    }
    kept = {
        "crawl": "web/warc",
        "warc": "web/warc",
        "crawl-0001.warc.gz": "web/warc/sample-20240304-00000.warc.gz",
        "clicks.parquet": "web/clicks/clicks-00000.parquet",
        "seeds.txt": "web/seeds.txt",
        "snapshot-cc": "snapshot",
        "../round-0000": "round-0000",
    }
    if name in texts:
        for part, text in texts[name]().items():
            path = target / name / part if part else target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    elif name == "warcs":
        for number, archive in enumerate(sorted((chain / "web/warc").iterdir())):
            link_tree(archive, target / f"warcs/part-r-{number:05d}.seg-00000.warc.gz")
    elif name == "jobs":
        launched = target / "jobs/myjob/20240304060000"
        link_tree(chain / "web/warc", launched / "warcs")
        (launched / "logs").mkdir()
        (launched / "logs/crawl.log").write_text(crawl_log(pages), encoding="utf-8")
        (target / "jobs/myjob/action").mkdir()
        (target / "jobs/myjob/latest").symlink_to("20240304060000")
    elif name == "pages.parquet":
        pq.write_table(pages, target / name)
    elif name == "deploy":
        (target / name).symlink_to(ROOT / "deploy")
    elif name == "round-0003":
        taught = ["rank", "--snapshot", str(chain / "snapshot"), "--seeds", str(chain / "web/seeds.txt")]
        write_commands(target, [*taught, "--ranker", "ontology", "--ontology", "shop.ttl", "--output", name])
    elif name == "rounds":
        link_tree(chain / "round-0000", target / "rounds/round-0000")
    elif name == "penguins":
        bird, penguin = (f"https://en.wikipedia.org/wiki/{title}" for title in ("Bird", "Penguin"))
        (target / "seeds.txt").write_text(bird + "\n", encoding="utf-8")
        (target / "pages.jsonl").write_text(json.dumps({"url": bird, "title": "Bird"}) + "\n", encoding="utf-8")
        link = {"source_url": bird, "target_url": penguin, "anchor_text": "penguins"}
        (target / "links.jsonl").write_text(json.dumps(link) + "\n", encoding="utf-8")
        write_commands(
            target,
            ["ingest", "--pages", "pages.jsonl", "--links", "links.jsonl", "--output", "snapshot"],
            ["rank", "--snapshot", "snapshot", "--seeds", "seeds.txt", "--output", "round-0000"],
        )
    else:
        link_tree(chain / kept.get(name, name), target / name)


def write_commands(target: Path, *commands: list[str]) -> None:
    """Leaves what is to be run before the page's own commands."""
    lines = "".join(shlex.join(["semrank", *command]) + "\n" for command in commands)
    (target / "prepare.sh").write_text("set -e\n" + lines, encoding="utf-8")


def left_out(statement: str) -> str | None:
    """Why a statement is not run, or None."""
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, statement.strip())), None)


def run_block(block: Block, folder: Path, environment: dict[str, str]) -> Ran:
    if block.marker in ELSEWHERE:
        return Ran(0, "", "", [block.script])
    omitted = [statement for statement in block.statements if left_out(statement)]
    script = "\n".join(statement for statement in block.statements if statement not in omitted)
    done = run_script(script, folder, environment, SECONDS)
    return Ran(done.returncode, done.stdout, done.stderr, omitted)


def place_of(block: Block) -> tuple[str, str]:
    """Blocks of one place follow one another."""
    return TWICE.get(block.page, block.page), block.section if block.page in SECTIONS_APART else ""


def calls_of(block: Block) -> list[list[str]]:
    """The words of each statement."""
    return [shlex.split(statement.replace("\\\n", "")) for statement in block.statements]


def run_before(block: Block, found: dict[Block, Ran]) -> Ran:
    """What became of a block of `TWICE` where it was run."""
    (other,) = (other for other in list(found) if other.page == TWICE[block.page])
    assert all(call in calls_of(other) for call in calls_of(block)), f"{other.page} does not run {block.script}"
    return found[other]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with `semrank` and `python`, to be put into the path."""
    folder = tmp_path_factory.mktemp("programs")
    with served(folder, ROOT):
        yield folder


@pytest.fixture(scope="session")
def ran(
    request: pytest.FixtureRequest, programs: Path, chain: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[Block, Ran]:
    """Every block, run, two pages at a time; only those of the pages that were asked for, if some were."""
    found: dict[Block, Ran] = {}
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    named = [item.callspec.params["block"] for item in items if item.originalname == "test_commands_run"]
    asked: list[Block] = [block for block in named if isinstance(block, Block)] or BLOCKS

    def run_page(place: tuple[str, str]) -> None:
        name, _ = place
        folder = tmp_path_factory.mktemp("page") / "folder"
        home = folder.parent / "home"
        for path in (folder, home):
            path.mkdir()
        # A search path with nothing of the user's, so that a program that is not there is noticed.
        environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "SECRET": "a secret text",
        }
        for prepared in PREPARED.get(name, []):
            prepare(prepared, folder, chain)
        if (folder / "prepare.sh").exists():
            subprocess.run(["/bin/sh", "prepare.sh"], cwd=folder, env=environment, check=True, capture_output=True)
        for block in (block for block in BLOCKS if place_of(block) == place):
            again = block.page in TWICE
            found[block] = run_before(block, found) if again else run_block(block, folder, environment)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run_page, dict.fromkeys(map(place_of, asked))))
    return found


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.page}:{block.line}" for block in BLOCKS])
def test_commands_run(block: Block, ran: dict[Block, Ran]) -> None:
    result = ran[block]
    assert result.status == 0, result.complaints
    assert "Traceback" not in result.complaints
    if block.output is not None and block.marker not in ELSEWHERE:
        check_output(block.output, result.printed)


def check_output(told: str, printed: str) -> None:
    """The lines that are told are printed, in this order; `...` stands for any lines, and times may differ."""
    lines = [without_time(line) for line in printed.splitlines()]
    place, anywhere = 0, False
    for line in map(without_time, told.splitlines()):
        if line == "...":
            anywhere = True
            continue
        rest = lines[place:]
        assert line in (rest if anywhere else rest[:1]), f"{line!r} is told, found {rest[:1]} in\n{printed}"
        place += rest.index(line) + 1
        anywhere = False


def without_time(line: str) -> str:
    return re.sub(r"\b\d+\.\d s\b", "_ s", line.rstrip())


@pytest.mark.parametrize("pattern", NOT_RUN)
def test_what_is_not_run_is_there(pattern: str) -> None:
    assert any(re.search(pattern, statement.strip()) for block in BLOCKS for statement in block.statements)


def test_markers_are_there() -> None:
    assert set(ELSEWHERE) <= {block.marker for block in BLOCKS}


def test_most_is_run(ran: dict[Block, Ran]) -> None:
    """Every command of semrank's stands in a statement that was run."""
    done = [
        statement
        for block, result in ran.items()
        for statement in block.statements
        if block.marker not in ELSEWHERE and statement not in result.left_out
    ]
    for command in set(COMMANDS) - {"dataset", "finish"}:
        assert any(re.search(rf"semrank {command}\b", statement) for statement in done), command


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_no_commands_stand_in_indented_blocks(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.findall(r"\n\n(?:    |\t)(?:semrank|python|pip|bin/|deploy/|docker|gcloud)\b.*", text)


# --- options ---------------------------------------------------------------------------------------------------------

FOREIGN = {
    "--artifacts-dir": "Beam's job server",
    "--build-arg": "docker",
    "--check": "python -m benchmarks, ruff",
    "--contexts": "python -m benchmarks",
    "--direct_num_workers": "Beam's local runner",
    "--dist": "pytest",
    "--earlier": "python -m benchmarks",
    "--every": "python -m benchmarks.ranking, benchmarks.calibration",
    "--flink": "python -m benchmarks.scale",
    "--folder": "python -m benchmarks.scale",
    "--globoff": "curl",
    "--half": "python -m benchmarks.ranking, benchmarks.calibration",
    "--heap": "deploy/flink/cluster up",
    "--image": "gcloud",
    "--manuals": "python -m benchmarks.ranking",
    "--no-compile": "pip",
    "--remote-name-all": "curl",
    "--managed": "deploy/flink/cluster up",
    "--metadata-file": "gcloud",
    "--only": "python -m benchmarks.ranking",
    "--parameters": "gcloud",
    "--plan": "python -m benchmarks.scale",
    "--quick": "python -m benchmarks",
    "--s3_": "how Beam's options for S3 begin",
    "--sdk-language": "gcloud",
    "--seconds": "python -m tests.fuzz.campaign",
    "--inputs": "python -m tests.fuzz.campaign",
    "--slots": "deploy/flink/cluster",
    "--store": "python -m benchmarks",
    "--task-managers": "deploy/flink/cluster",
    "--template-file-gcs-location": "gcloud",
}
"""Options that texts name and that belong to another program, with that program."""


def options(command: str) -> dict[str, argparse.Action]:
    return command_parser(command, importlib.import_module(f"semrank.pipelines.{command}"))._option_string_actions


@cache
def beam_knows(option: str) -> bool:
    """Whether it is Beam's; with or without a value."""
    for given in ([option], [option, "1"], [f"{option}=1"]):
        try:
            beam_options(given)
        except InputError:
            continue
        return True
    return False


def calls(script: str) -> Iterator[tuple[str, list[str]]]:
    """(command, options) of every call of semrank."""
    joined = re.sub(r"\\\n\s*", " ", script)
    for found in re.finditer(r"\bsemrank (\w+)((?:[^\n|;&#]|\$\([^)]*\))*)", joined):
        yield found[1], re.findall(r"(?<![\w-])--[\w-]+", found[2])


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.page}:{block.line}" for block in BLOCKS])
def test_options_in_commands_exist(block: Block) -> None:
    for command, given in calls(block.script):
        assert command in COMMANDS
        known = options(command)
        assert [name for name in given if name not in known and not beam_knows(name)] == []


@cache
def semrank_knows(option: str) -> bool:
    return option in ("--version",) or any(option in options(command) for command in COMMANDS)


def options_in(path: Path) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_options_in_texts_exist(path: Path) -> None:
    found = options_in(path) - set(FOREIGN)
    assert sorted(name for name in found if not semrank_knows(name) and not beam_knows(name)) == []


def test_foreign_options_are_there() -> None:
    assert set(FOREIGN) <= set().union(*map(options_in, PAGES))


def test_links_lead_somewhere() -> None:
    """To files, and to headings in them."""
    for path in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            found = (path.parent / name).resolve() if name else path
            assert found.exists(), f"{page_name(path)}: {target}"
            if anchor:
                assert anchor in anchors(found), f"{page_name(path)}: {target}"


def test_every_page_is_in_the_list() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md")


def anchors(path: Path) -> set[str]:
    """The headings of a page as they are linked to."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
