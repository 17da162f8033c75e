"""Each step over tables against the same function on the whole table: outputs, metrics, bundles, what is held."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.transforms.core import get_function_args_defaults, get_function_arguments
from apache_beam.transforms.userstate import CombiningValueStateSpec, get_dofn_specs

from semrank.pipelines.local.runner import LocalRunner
from semrank.pipelines.runtime import BuildOptions
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import beam as columnar_beam
from semrank.transforms.columnar.arrays import MAIN, int64s, sum_by_key
from semrank.transforms.columnar.beam import (
    GROUP_BYTES,
    HELD_BYTES,
    NAMESPACE,
    RECORD_BYTES,
    ROWS_IN,
    ROWS_OUT,
    Collection,
    FilterIds,
    GatherTables,
    MapTables,
    MergePartitions,
    ReadParquet,
    WriteOne,
    WritePartitions,
    limit_memory,
)
from semrank.transforms.columnar.idfilter import IdFilter, filter_positions
from semrank.transforms.columnar.parquet import part_name

NUMBERS = pa.table({"id": pa.array(range(-40, 60), type=pa.int64()), "value": pa.array(range(100), type=pa.int64())})
PIECES = [NUMBERS.slice(0, 30), NUMBERS.slice(30, 0), NUMBERS.slice(30, 1), NUMBERS.slice(31, 69)]

BITS = 1 << 20
"""Of a filter so large that it takes no other id of this file for one of its own."""

RUNNERS = [LocalRunner, FnApiRunner]


def write(tables: pa.Table | None, *, path: str) -> pa.Table:
    """Writes what a collection has, so that the test finds it in whatever process it was."""
    rows = [] if tables is None else tables.to_pylist()
    Path(path).write_text(json.dumps(rows), encoding="utf-8")
    return pa.table({"rows": [len(rows)]})


class Ran:
    """A run pipeline.

    Attributes:
        rows: rows of each collection by name, sorted.
        metrics: values of counters and sums of distributions by name.
    """

    def __init__(
        self,
        runner: type[Any],
        folder: Path,
        build: Callable[[beam.Pipeline, Collection], dict[str, Collection]],
        memory: int | None = None,
    ) -> None:
        pipeline = beam.Pipeline(runner=runner(), options=BuildOptions([]))
        tables = pipeline | "tables" >> beam.Create(PIECES).with_output_types(pa.Table)
        paths = {}
        for name, collection in build(pipeline, tables).items():
            paths[name] = folder / f"{name}.json"
            keep = GatherTables(f"keep {name}", partial(write, path=str(paths[name])))
            {"tables": collection} | f"keep {name}" >> keep
        limit_memory(pipeline, memory)
        result: Any = pipeline.run()
        result.wait_until_finish()
        self.rows = {name: sorted(map(_values, json.loads(path.read_text()))) for name, path in paths.items()}
        found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
        self.metrics = Counter[str]()
        for metric in found["counters"]:
            self.metrics[metric.key.metric.name] += metric.committed
        for metric in found["distributions"]:
            self.metrics[metric.key.metric.name] += metric.committed.sum


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(map(_values, table.to_pylist()))


# --- functions of steps ----------------------------------------------------------------------------------------------


def even(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(pc.bit_wise_and(table["value"], 1), 0))


def parted(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    yield MAIN, table
    yield "small", table.filter(pc.less(table["value"], 10))


def less_than(table: pa.Table, limit: pa.Table | None, nothing: pa.Table | None) -> pa.Table:
    assert limit is not None
    assert nothing is None
    return table.filter(pc.less(table["value"], limit["value"][0]))


PREPARED: list[int] = []


def prepare(limit: pa.Table) -> int:
    PREPARED.append(limit.num_rows)
    return int(limit["value"][0].as_py())


def under(table: pa.Table, prepared: int) -> pa.Table:
    return table.filter(pc.less(table["value"], prepared))


def hashed(table: pa.Table) -> pa.Table:
    return filter_positions(int64s(table["id"]), BITS)


def sums(partition: int, left: pa.Table | None, right: pa.Table | None) -> pa.Table:
    tables = [table for table in (left, right) if table is not None]
    assert tables, "a partition without rows is not called"
    assert all(table.schema.metadata is None for table in tables)
    count = [0 if table is None else table.num_rows for table in (left, right)]
    value = sum(pc.sum(table["value"]).as_py() for table in tables)
    return pa.table({"partition": [partition], "left": count[:1], "right": count[1:], "value": [value]})


def raise_error(table: pa.Table) -> pa.Table:
    raise InputError(f"{table.num_rows} rows are no use")


def whole(partition: int, rows: pa.Table) -> pa.Table:
    del partition
    return rows.sort_by("id")


def one_file(rows: pa.Table | None) -> pa.Table:
    return NUMBERS.slice(0, 0) if rows is None else rows.sort_by("id")


# --- maps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runner", RUNNERS)
def test_maps_apply_to_every_table(runner: type[Any], tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        parts = tables | "parts" >> MapTables("part", parted, tags=[MAIN, "small"])
        return {"even": tables | "even" >> MapTables("even", even), "all": parts[MAIN], "small": parts["small"]}

    ran = Ran(runner, tmp_path, build)
    assert ran.rows == {"even": rows_of(even(NUMBERS)), "all": rows_of(NUMBERS), "small": rows_of(NUMBERS.slice(0, 10))}
    assert (ran.metrics[f"even/{ROWS_IN}"], ran.metrics[f"even/{ROWS_OUT}"]) == (100, 50)
    assert (ran.metrics[f"part/{ROWS_IN}"], ran.metrics[f"part/{ROWS_OUT}"]) == (100, 110)


@pytest.mark.parametrize("runner", RUNNERS)
def test_sides_are_whole_tables_or_none(runner: type[Any], tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        limit = tables | "limit" >> MapTables("limit", partial(_from, start=70))
        nothing = tables | "nothing" >> MapTables("nothing", partial(_from, start=1000))
        sides = {"limit": limit, "nothing": nothing}
        return {"less": tables | "less" >> MapTables("less", less_than, sides=sides)}

    ran = Ran(runner, tmp_path, build)
    assert ran.rows == {"less": rows_of(NUMBERS.slice(0, 70))}
    assert ran.metrics[f"less/{HELD_BYTES}"] > 0


def _from(table: pa.Table, start: int) -> pa.Table:
    return table.filter(pc.greater_equal(table["value"], start))


def test_what_is_broadcast_is_prepared_once(tmp_path: Path) -> None:
    PREPARED.clear()

    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        limit = tables | "limit" >> MapTables("limit", partial(_from, start=70))
        return {"under": tables | "under" >> MapTables("under", under, sides={"limit": limit}, prepare=prepare)}

    assert Ran(LocalRunner, tmp_path, build).rows == {"under": rows_of(NUMBERS.slice(0, 70))}
    assert PREPARED == [30]


def test_a_held_broadcast_serves_all_bundles() -> None:
    step = MapTables("under", under, sides={"limit": None}, prepare=prepare)  # type: ignore[dict-item]
    fn = step._fn
    PREPARED.clear()
    fn.hold_broadcast([[NUMBERS.slice(70)]])
    for table in PIECES[:1] * 2:
        fn.start_bundle()
        assert [made.num_rows for made in fn.process(table, [])] == [30]
        fn.finish_bundle()
    assert PREPARED == [30]


@pytest.mark.parametrize("runner", RUNNERS)
def test_what_does_not_fit_is_refused(runner: type[Any], tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        sides = {"limit": tables, "nothing": tables}
        return {"less": tables | "less" >> MapTables("less", less_than, sides=sides)}

    with pytest.raises(Exception, match=r"--worker-memory: found .*'less'|less.*--worker-memory"):
        Ran(runner, tmp_path, build, memory=1 << 20)


@pytest.mark.parametrize("runner", RUNNERS)
def test_errors_pass_through(runner: type[Any], tmp_path: Path) -> None:
    with pytest.raises(Exception, match="rows are no use"):
        Ran(runner, tmp_path, lambda _, tables: {"none": tables | "raise" >> MapTables("raise", raise_error)})


# --- exchanges -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_partitions_get_each_row_once(partitions: int, runner: type[Any], tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        left = tables | "even" >> MapTables("even", even)
        merge = MergePartitions("sum", sums, partitions=partitions, key="id")
        return {"sums": {"left": left, "right": tables} | "sum" >> merge}

    ran = Ran(runner, tmp_path, build)
    found = ran.rows["sums"]
    assert [row[0] for row in found] == list(range(partitions))
    assert tuple(map(sum, zip(*(row[1:] for row in found), strict=True))) == (50, 100, 2450 + 4950)
    assert ran.metrics[f"sum/{ROWS_IN}"] == 150
    assert ran.metrics[f"sum/{GROUP_BYTES}"] == ran.metrics[f"sum/{RECORD_BYTES}"] > 0


COUNT = CombiningValueStateSpec("count", combine_fn=sum)


STATE = beam.DoFn.StateParam(COUNT)


class _Counting(columnar_beam._TableDoFn):
    def process(self, element: Any, count: Any = STATE) -> Iterator[Any]:
        yield element, count


def test_beam_finds_state_in_the_listed_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Beam finds in it is what it finds in all methods."""

    def found() -> dict[str, Any]:
        return {type(step).__name__: get_dofn_specs(step) for step in _steps()}

    listed = found()
    monkeypatch.delattr(columnar_beam._TableDoFn, "__dir__")
    assert found() == listed
    assert listed["_Counting"] == ({COUNT}, set())
    assert listed["_ReadDoFn"] == (set(), set())


def test_beam_gets_the_arguments_that_inspection_finds() -> None:
    for step in _steps():
        for name in ("process", "process_batch", "setup", "start_bundle", "finish_bundle", "teardown"):
            assert get_function_arguments(step, name) == get_function_args_defaults(getattr(step, name)), step


def _steps() -> list[Any]:
    """A function of each kind, not set up."""
    return [object.__new__(kind) for kind in _descendants(columnar_beam._TableDoFn)]


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for child in kind.__subclasses__():
        yield child
        yield from _descendants(child)


def test_keys_that_are_partitions_stay_so(tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        return {"sums": {"left": tables, "right": tables} | MergePartitions("sum", sums, partitions=None, key="id")}

    assert Ran(LocalRunner, tmp_path, build).rows["sums"] == [(id_, 1, 1, 2 * (id_ + 40)) for id_ in range(-40, 60)]


@pytest.mark.parametrize("runner", RUNNERS)
def test_gathering_is_called_once_even_for_nothing(runner: type[Any], tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        nothing = tables | "nothing" >> MapTables("nothing", partial(_from, start=1000))
        return {"nothing": nothing, "all": tables}

    ran = Ran(runner, tmp_path, build)
    assert ran.rows == {"nothing": [], "all": rows_of(NUMBERS)}
    assert ran.metrics[f"keep all/{ROWS_IN}"] == 100


def known(table: pa.Table, segments: pa.Table | None) -> pa.Table:
    return table.filter(pa.array(IdFilter.from_segments(segments, BITS).may_contain(int64s(table["id"]))))


def test_filters_know_their_ids(tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        few = tables | "few" >> MapTables("few", partial(_from, start=90))
        segments = {"positions": few | MapTables("hash", hashed)} | FilterIds("filter")
        return {"known": tables | "known" >> MapTables("known", known, sides={"segments": segments})}

    assert Ran(LocalRunner, tmp_path, build).rows["known"] == rows_of(NUMBERS.slice(90))


@pytest.mark.parametrize("runner", RUNNERS)
def test_inputs_have_keys_of_their_own(runner: type[Any], tmp_path: Path) -> None:
    """Rows with the same number in both columns meet."""

    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        renamed = tables | "rename" >> MapTables("rename", _renamed)
        keys = {"left": "id", "right": "other"}
        merge = MergePartitions("meet", met, partitions=7, key=keys)
        return {"met": {"left": tables, "right": renamed} | "meet" >> merge}

    assert sorted(Ran(runner, tmp_path, build).rows["met"]) == sorted((number,) for number in range(-40, 60))


def met(left: pa.Table, right: pa.Table) -> pa.Table:
    both = set(left["id"].to_pylist()) & set(right["other"].to_pylist())
    return pa.table({"id": pa.array(sorted(both), pa.int64())})


def _renamed(table: pa.Table) -> pa.Table:
    return table.select(["id"]).rename_columns(["other"])


@pytest.mark.parametrize("runner", RUNNERS)
def test_rows_are_added_up_on_their_way(runner: type[Any], tmp_path: Path) -> None:
    """Where they are broadcast, and where they are exchanged."""
    added = partial(sum_by_key, counts="value")

    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        tens = tables | "tens" >> MapTables("tens", _tens, combine=added)
        merge = MergePartitions("add", added_rows, partitions=3, key="id", combine={"rows": added})
        return {"tens": tens, "sums": {"rows": tens} | "add" >> merge}

    expected = [(number, sum(range(10 * number, 10 * number + 10))) for number in range(10)]
    found = Ran(runner, tmp_path, build).rows
    assert sorted(found["sums"]) == expected
    assert len(found["tens"]) < 13, "the four tables have 13 tens in parts"


def _tens(table: pa.Table) -> pa.Table:
    tens = pc.divide(table["value"], 10).cast(pa.int64())
    return pa.table({"id": tens, "value": table["value"]})


def added_rows(rows: pa.Table) -> pa.Table:
    return sum_by_key(rows, "value")


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runner", RUNNERS)
def test_files_are_read_by_columns(runner: type[Any], tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(NUMBERS.slice(number * 50, 50), tmp_path / f"{number}.parquet", row_group_size=20)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]

    def build(pipeline: beam.Pipeline, _: Collection) -> dict[str, Collection]:
        return {"values": pipeline | "read" >> ReadParquet("read", paths, ["value"])}

    ran = Ran(runner, tmp_path, build)
    assert ran.rows["values"] == rows_of(NUMBERS.select(["value"]))
    assert ran.metrics[f"read/{ROWS_IN}"] == 100


@pytest.mark.parametrize("runner", RUNNERS)
def test_partitions_are_written_by_their_rows_alone(runner: type[Any], tmp_path: Path) -> None:
    def build(_: beam.Pipeline, tables: Collection) -> dict[str, Collection]:
        parts = WritePartitions("write", str(tmp_path / "parts"), whole, partitions=3, key="id")
        one = WriteOne("write one", str(tmp_path / "one"), one_file)
        return {"parts": {"rows": tables} | "parts" >> parts, "one": {"rows": tables} | "one" >> one}

    ran = Ran(runner, tmp_path, build)
    assert pq.read_table(tmp_path / "one" / part_name(0)).equals(NUMBERS)
    written = [pq.read_table(path) for path, _, _ in ran.rows["parts"]]
    assert [table.num_rows for table in written] == [rows for _, rows, _ in ran.rows["parts"]]
    assert all((np.diff(table["id"].to_numpy()) > 0).all() for table in written)
    assert rows_of(pa.concat_tables(written)) == rows_of(NUMBERS)
