"""`import semrank`: the same rounds as the commands, as functions, tables and a PTransform."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import semrank
from semrank.pipelines.cli import main
from semrank.pipelines.runtime import DEFAULT_RUNNER
from semrank.transforms.columnar.parquet import write_parquet
from tests.support.sample import ingest_sample
from tests.support.snapshots import read_rows


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    ingest_sample(folder)
    seeds = folder / "web" / "seeds.txt"
    command = ["rank", "--snapshot", str(folder / "snapshot"), "--seeds", str(seeds), "--output", str(folder / "round")]
    assert main([*command, "--max-urls", "10", "--no-semrank-terms", "--quiet"]) == 0
    return folder


def seed_urls(sample: Path) -> list[str]:
    lines = (sample / "web" / "seeds.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_a_round_is_the_command_s(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = semrank.rank(
        sample / "snapshot", tmp_path / "round", seeds=seed_urls(sample), max_urls=10, semrank_terms=False
    )
    assert capsys.readouterr().out == ""
    assert done.frontier.to_pylist() == read_rows(sample / "round" / "frontier")
    assert done.frontier["rank"].to_pylist() == list(range(1, done.frontier.num_rows + 1))
    assert done.selected.num_rows == 10
    assert done.manifest["parameters"]["max_urls"] == 10
    assert semrank.read_round(tmp_path / "round").keywords.equals(done.keywords)


def test_a_round_goes_on_from_another(sample: Path, tmp_path: Path) -> None:
    first = semrank.read_round(sample / "round")
    second = semrank.rank(sample / "snapshot", tmp_path / "next", previous=first, semrank_terms=False)
    assert set(first.selected["url"].to_pylist()) <= set(second.harvest["url"].to_pylist())
    assert second.harvest.num_rows == first.harvest.num_rows + first.selected.num_rows


def test_rounds(sample: Path, tmp_path: Path) -> None:
    done = semrank.rounds(
        sample / "snapshot", tmp_path, seeds=sample / "web/seeds.txt", rounds=2, max_urls=10, semrank_terms=False
    )
    assert [Path(round_.path).name for round_ in done] == ["round-0000", "round-0001"]
    options: dict[str, Any] = {"max_urls": 10, "semrank_terms": False, "recrawl": True}
    options["seeds"] = sample / "web/seeds.txt"
    assert done[0].frontier.equals(semrank.rank(sample / "snapshot", tmp_path / "same", **options).frontier)


def test_a_round_is_an_arrow_stream(sample: Path) -> None:
    done = semrank.read_round(sample / "round")
    assert pa.table(done).equals(done.frontier)


def test_an_explanation_is_the_command_s(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = semrank.read_round(sample / "round")
    url = done.frontier["url"][0].as_py()
    assert main(["explain", "--round", done.path, url, "--json"]) == 0
    assert done.explain(url) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "seeds, previous: expected exactly one of them"),
        ({"seeds": ["https://a.example/"], "previous": "round"}, "seeds, previous: expected exactly one of them"),
        ({"seeds": ["https://a.example/"], "max_urls": 0}, "max-urls"),
        ({"seeds": ["https://a.example/"], "no_such_option": 3}, "^--no-such-option=3: unknown option"),
        ({"seeds": ["https://a.example/"], "max_url": 3}, r"^--max-url=3: unknown option.*did you mean --max-urls\?"),
        ({"seeds": ["https://a.example/"], "max_urls": "many"}, "^--max-urls: found 'many'"),
        ({"seeds": ["not a URL"]}, "found no URL in 1 line, the first is"),
        ({"seeds": []}, "found no URL, expected at least one"),
    ],
)
def test_what_is_unusable_is_an_input_error(
    sample: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(semrank.InputError, match=message):
        semrank.rank(sample / "snapshot", tmp_path / "round", **options)
    assert not (tmp_path / "round" / "manifest.json").exists()


def test_a_folder_without_a_finished_round(tmp_path: Path) -> None:
    with pytest.raises(semrank.InputError):
        semrank.read_round(tmp_path)


class _WriteUrls(beam.DoFn):
    """What a user's own pipeline does with the frontier."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def process(self, table: pa.Table) -> None:
        best = table.select(["rank", "url"])
        write_parquet(f"{self._folder}/{best['rank'][0].as_py():08d}.parquet", best)


def test_a_round_in_one_s_own_pipeline(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "round"
    with beam.Pipeline(options=PipelineOptions([f"--runner={DEFAULT_RUNNER}"])) as pipeline:
        frontier = pipeline | semrank.RankUrls(
            sample / "snapshot", output, seeds=seed_urls(sample), max_urls=10, semrank_terms=False
        )
        frontier | beam.ParDo(_WriteUrls(str(tmp_path / "urls")))
    with pytest.raises(semrank.InputError):
        semrank.read_round(output)
    semrank.finish_round(str(output))
    done = semrank.read_round(output)
    assert done.frontier.equals(semrank.read_round(sample / "round").frontier)
    assert read_rows(tmp_path / "urls") == done.frontier.select(["rank", "url"]).to_pylist()


def test_names_of_the_user_are_left_alone(tmp_path: Path) -> None:
    """A user's own packages of these names neither break the library nor are they replaced by it."""
    for name in ("pipelines", "transforms", "schemas"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWNER = 'user of {name}'\n", encoding="utf-8")
    program = (
        "import semrank, pipelines, transforms, schemas; semrank.rank; from semrank.pipelines.cli import main;"
        "print(pipelines.OWNER, transforms.OWNER, schemas.OWNER); raise SystemExit(main(['rank', '--help']))"
    )
    root = Path(semrank.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])},
    )
    assert done.stdout.startswith("user of pipelines user of transforms user of schemas\nusage: semrank rank")


def test_help_needs_no_beam() -> None:
    program = "import sys, semrank; dir(semrank); semrank.__version__; print('apache_beam' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_round_imports_little_and_leaves_imports_as_they_were() -> None:
    program = (
        "import sys; from semrank.pipelines import cli; cli._imported('rank');"
        "print({'bson', 'pymongo', 'requests', 'scipy.optimize', 'matplotlib', 'rdflib'} & set(sys.modules));"
        "import bson, apache_beam.io.gcp.bigquery; print(bson.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\nbson\n"
