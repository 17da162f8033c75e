"""What a stage holds is added up as it comes in, refused with one line, and bounded by the machine or its group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest

from semrank.schemas.errors import InputError
from semrank.transforms.columnar import beam as columnar_beam
from semrank.transforms.columnar import worker_memory
from semrank.transforms.columnar.beam import GatherTables, MapTables, limit_memory
from semrank.transforms.columnar.worker_memory import OWN_BYTES, Held, Meter, check_held, machine_bytes
from semrank.transforms.ranking.memory import HIERARCHY
from semrank.transforms.weblog.memory import VOCABULARY
from tests.support.stages import HELD

MIB = 1 << 20

RELATIONS = Held("relations", 4.0, "a larger --min-relation-support")


def test_a_formula_adds_what_inputs_take() -> None:
    held = Held("x", 2.0, "less", {"large": 10.0}, {"large": 100.0}, 1_000)
    assert held.bytes_of({}) == OWN_BYTES
    assert held.held_bytes({"small": 100, "large": 7}) == 270
    assert held.bytes_of({"small": 100, "large": 7}) == OWN_BYTES + 270 + 700
    assert held.bytes_of({"small": 100, "large": 70}) == OWN_BYTES + 200 + 700 + 1_000


def test_a_state_is_listed_once() -> None:
    assert len({held.state for held in HELD}) == len(HELD)


def test_a_meter_says_when_it_is_too_much_and_how_much_it_is() -> None:
    limit = OWN_BYTES + 9 * MIB
    meter = Meter("write keywords", RELATIONS, limit)
    assert meter.fits("isa", MIB)
    meter.check()
    assert meter.fits("isa", MIB)
    assert not meter.fits("part_of", MIB)
    assert not meter.fits("part_of", 0)
    with pytest.raises(InputError) as refused:
        meter.check()
    assert str(refused.value) == (
        "--worker-memory: found 149 MiB, expected 152 MiB, which 'write keywords' takes on a worker (relations; its "
        "tables: isa 2 MiB, part_of 1 MiB); lower it by a larger --min-relation-support, or give workers more"
    )


def test_without_a_limit_the_machine_is_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_memory, "machine_bytes", lambda: OWN_BYTES + 5 * MIB)
    check_held("number words", VOCABULARY, {"words": MIB}, None)
    with pytest.raises(InputError, match="found 145 MiB, expected 147 MiB"):
        check_held("number words", VOCABULARY, {"words": 2 * MIB}, None)
    check_held("number words", VOCABULARY, {"words": 2 * MIB}, OWN_BYTES + 7 * MIB)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 40, "5 TiB"), (3 << 60, "3072 PiB")],
)
def test_sizes_are_shown_in_units(size: int, shown: str) -> None:
    assert worker_memory.shown_bytes(size) == shown


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_a_group_of_control_groups_counts_with_all_above_it(tmp_path: Path) -> None:
    everything = machine_bytes(tmp_path / "nothing")
    write(tmp_path / "proc/self/cgroup", "0::/pod/worker\n")
    groups = tmp_path / "sys/fs/cgroup"
    write(groups / "pod/worker/memory.max", "max\n")
    assert machine_bytes(tmp_path) == everything
    machine_bytes.cache_clear()
    write(groups / "pod/memory.max", "7000000\n")
    assert machine_bytes(tmp_path) == 7_000_000
    machine_bytes.cache_clear()
    write(groups / "pod/worker/memory.max", "5000000\n")
    assert machine_bytes(tmp_path) == 5_000_000
    # In a container the path may be that of the host, of which only the top is to be seen.
    machine_bytes.cache_clear()
    write(tmp_path / "proc/self/cgroup", "0::/elsewhere/x\n")
    write(groups / "memory.max", "6000000\n")
    assert machine_bytes(tmp_path) == 6_000_000


def test_the_first_version_of_control_groups_counts_too(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "12:cpu,cpuacct:/a\n4:memory:/a\n")
    write(tmp_path / "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4000000\n")
    write(tmp_path / "sys/fs/cgroup/cpu,cpuacct/a/memory.limit_in_bytes", "1\n")
    assert machine_bytes(tmp_path) == 4_000_000


PARTS = 50
PART_ROWS = 20_000


def parts() -> Iterator[pa.Table]:
    for number in range(PARTS):
        yield pa.table({"n": pa.array([number] * PART_ROWS, pa.int64())})


def count(**tables: pa.Table | None) -> pa.Table:
    return pa.table({"rows": [sum(table.num_rows for table in tables.values() if table is not None)]})


def count_beside(table: pa.Table, **tables: pa.Table | None) -> pa.Table:
    return count(main=table, **tables)


class Alive:
    """Counts parts that are alive while a stage takes them in."""

    def __init__(self) -> None:
        self.most = 0

    def tables(self) -> Iterator[pa.Table]:
        before = pa.total_allocated_bytes()
        for table in parts():
            self.most = max(self.most, (pa.total_allocated_bytes() - before) // table.nbytes)
            yield table


def test_what_does_not_fit_is_refused_before_it_is_there() -> None:
    """And is counted to its end, so that the message tells all of it."""
    limit = OWN_BYTES + 5 * MIB
    stage = columnar_beam._GatherDoFn("write keywords", count, ("isa",), holds=RELATIONS)
    stage.start_bundle()
    stage.worker_memory = limit
    alive = Alive()
    with pytest.raises(InputError, match=r"expected 170\.5 MiB.*isa 7\.629 MiB"):
        list(stage.process(0, alive.tables()))
    fitting = 5 * MIB // round(4.0 * 8 * PART_ROWS)
    assert 1 < alive.most <= fitting + 2 < PARTS // 4


def count_streams(**streams: Iterator[pa.Table]) -> pa.Table:
    return pa.table({"rows": [sum(table.num_rows for table in tables) for tables in streams.values()]})


def test_a_stage_that_streams_holds_one_table_at_a_time_and_is_refused_alike() -> None:
    def gathered(limit: int, alive: Alive) -> list[pa.Table]:
        names = ("isa", "part_of")
        stage = columnar_beam._GatherDoFn(
            "add", columnar_beam._as_it_is, names, count_streams, holds=RELATIONS, streams=True
        )
        stage.start_bundle()
        stage.worker_memory = limit
        return list(stage.process(0, alive.tables(), parts()))

    alive = Alive()
    (table,) = gathered(OWN_BYTES + 100 * MIB, alive)
    assert table["rows"].to_pylist() == [PARTS * PART_ROWS] * 2
    assert alive.most <= 2
    with pytest.raises(InputError, match=r"expected 201 MiB.*isa 7\.629 MiB, part_of 7\.629 MiB"):
        gathered(OWN_BYTES + 8 * MIB, Alive())


@pytest.mark.parametrize("limit", [None, OWN_BYTES + 30 * MIB])
def test_every_step_of_a_pipeline_keeps_to_the_limit(limit: int | None) -> None:
    pipeline = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    tables = pipeline | beam.Create(list(parts())).with_output_types(pa.Table)
    one: Any = pipeline | "one" >> beam.Create([pa.table({"n": [1]})]).with_output_types(pa.Table)
    {"n": tables} | GatherTables("gather them", count)
    one | MapTables("map beside them", count_beside, sides={"n": tables})
    limit_memory(pipeline, limit)
    if limit is None:
        pipeline.run().wait_until_finish()
        return
    with pytest.raises(InputError, match=r"'(gather|map beside) them' takes on a worker") as refused:
        pipeline.run().wait_until_finish()
    assert "anything else" in str(refused.value)


SCALING = Path(__file__).resolve().parents[3] / "docs" / "scaling.md"


def documented(held: Held) -> str:
    """The row that the documentation should have."""
    factors = ", ".join([f"{held.factor:g}", *(f"{name} {factor:g}" for name, factor in held.factors.items())])
    most = worker_memory.shown_bytes(held.most_working)
    working = ", ".join(f"{factor:g} x {name}, at most {most}" for name, factor in held.working.items()) or "-"
    return f"| {held.state} | {factors} | {working} |"


def test_the_documentation_has_every_formula() -> None:
    lines = SCALING.read_text(encoding="utf-8").splitlines()
    head = lines.index("| state | factor | working memory |")
    told = lines[head + 2 : lines.index("", head)]
    assert told == [documented(held) for held in HELD]


def test_the_documentations_example_is_right() -> None:
    text = " ".join(SCALING.read_text(encoding="utf-8").split())
    tables = {"vocabulary": 727_188, "part_of": 9_207 * 8}
    assert all(f"{size / 1e6:.2f} MB" in text for size in tables.values())
    assert f"140 MiB + 4 * 0.73 MB + 10 * 0.07 MB = {HIERARCHY.bytes_of(tables) / 1e6:.0f} MB" in text
