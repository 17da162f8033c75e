"""The corpus does no harm, and a short run of fuzzing finds nothing; `tests/fuzz/campaign.py` is the long one."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.corpus import CORPUS, corpus, seeds
from tests.fuzz.mutation import MAX_INPUT_BYTES, HangError, ended_when_hanging, inputs, mutated, try_input
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 0.2
"""Of the short run, for each target."""

SEED = 20_260_101
GUIDED_RUNS = 3_000


def test_every_target_has_a_small_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS) == set(seeds())
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 500_000
    assert all(len(data) <= MAX_INPUT_BYTES for name in TARGETS for data in corpus(name))


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_corpus_does_no_harm(name: str) -> None:
    """Each file in a process of its own would be slow; what once ended the process has been mended."""
    for data in corpus(name):
        TARGETS[name](data)


def test_good_inputs_are_read() -> None:
    """A corpus of nothing but damage would test little."""
    for name, named in seeds().items():
        for label, content in named.items():
            assert (CORPUS / name / label).read_bytes() == content, f"{name}/{label} is not as it is written"


def test_changed_inputs_do_no_harm(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.fuzz.mutation", "--seconds", str(SECONDS), "--seed", str(SEED)]
    done = subprocess.run(
        [*program, "--findings", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, [outcome["failures"] for outcome in outcomes] or done.stderr
    assert [outcome["target"] for outcome in outcomes] == list(TARGETS)
    assert all(outcome["inputs"] > 1 for outcome in outcomes)
    assert max(outcome["peak_mib"] for outcome in outcomes) < 1_000
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed (extra: fuzz)")
def test_guided_fuzzing_finds_nothing(tmp_path: Path) -> None:
    limits = [
        f"-runs={GUIDED_RUNS}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        f"-seed={SEED}",
        f"-artifact_prefix={tmp_path}/",
    ]
    program = [sys.executable, "-m", "tests.fuzz.guided", "warc", str(tmp_path), str(CORPUS / "warc"), *limits]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.search(r"Done (\d+) runs", done.stderr)
    assert found is not None
    assert int(found[1]) >= GUIDED_RUNS
    assert "cov:" in done.stderr


def test_what_is_wrong_is_found() -> None:
    def fragile(data: bytes) -> None:
        if data.startswith(b"no"):
            raise KeyError(data)
        while data.startswith(b"for ever"):
            pass

    assert try_input(fragile, b"yes") is None
    assert "KeyError" in (try_input(fragile, b"no") or "")
    with pytest.raises(HangError), ended_when_hanging(0.05):
        fragile(b"for ever")


def test_inputs_repeat_and_are_bounded() -> None:
    first = [data for _, data in zip(range(50), inputs("url", 1), strict=False)]
    assert first == [data for _, data in zip(range(50), inputs("url", 1), strict=False)]
    assert len(set(first)) > 40
    long = mutated(b"x" * (2 * MAX_INPUT_BYTES), [b"y"], random.Random(1))
    assert len(long) <= MAX_INPUT_BYTES
