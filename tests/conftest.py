"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

# Examples take longer where several tests run at once; the limit of pytest-timeout holds for each test.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

OWN_COMMAND = tuple(Path(__file__).resolve().parent / name for name in ("cloud", "cluster", "crawlers"))
"""Folders whose tests need services and minutes; they run when the command names them."""

LONGEST = tuple(
    Path(__file__).resolve().parent / f"{name}.py"
    for name in (
        *("faults/test_hostile", "faults/test_damaged_folders", "transforms/similarity/test_concept_similarity"),
        *("pipelines/test_memory", "docs/test_commands", "pipelines/test_determinism", "faults/test_crash_safety"),
        *("pipelines/local/test_local_runs", "transforms/logs/test_formats", "transforms/ranking/test_focused"),
        *("transforms/lattice/test_closed_sets", "transforms/context/test_describe"),
        *("faults/test_numbers", "benchmarks/test_ranking", "transforms/ranking/test_topic_lattice"),
        *("fuzz/test_growth", "pipelines/test_report", "transforms/ranking/test_graph_rankers"),
    )
)
"""Files whose tests take longest, 10 to 60 s each; they run first, so that no worker waits for one at the end."""

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Lets pytest-xdist, where it is used, take files in the order of collection, not by their number of tests.

    Compiled modules are kept, whatever the environment says: without them each command that a test starts compiles
    all of the program again, which doubles the suite's time. Messages are not translated: argparse would look for
    the files of translations a dozen times a command.
    """
    config.option.loadscopereorder = False
    if importlib.util.find_spec("IPython") is None:
        # Beam looks for it at each step of a pipeline, on all of the search path.
        sys.modules["IPython"] = None  # type: ignore[assignment]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["LANGUAGE"] = "C"
    sys.dont_write_bytecode = False


def pytest_collection(session: pytest.Session) -> None:
    """Lets the second of pytest-xdist's workers import the last files first: each compiles what the other one reads.

    In a new checkout nothing is compiled yet, and all workers would compile the same file at the same time.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") != "gw1" or session.config.args_source.name == "ARGS":
        return
    root = Path(__file__).resolve().parent
    files = [path for path in sorted(root.rglob("test_*.py")) if not set(path.parents) & set(OWN_COMMAND)]
    for path in reversed(files[len(files) // 2 :]):
        # What a file lacks is told when its tests are collected.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests that take longest first."""
    place = {path: number for number, path in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out the folders that have a command of their own, unless the command names them."""
    if collection_path not in OWN_COMMAND:
        return None
    named = [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path == collection_path or collection_path in path.parents for path in named) else True


def pytest_collection_finish() -> None:
    """What was imported stays: no search for garbage goes through it again. Others are made a tenth as often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(7_000, 10, 10)


def pytest_unconfigure() -> None:
    """The interpreter searches for no garbage when it ends."""
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with published real data; it is not part of the project, so tests that need it skip without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("real data is not beside the checkout (expected in ../shared/data)")
    return SHARED_DATA
