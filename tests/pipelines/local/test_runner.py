"""The local runner against Beam's own: random pipelines, functions of every kind, metrics, errors."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.metrics.metric import Metrics, MetricsFilter
from apache_beam.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton, PCollection, TaggedOutput
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.transforms.window import FixedWindows, GlobalWindows
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.pipelines.local import runner
from semrank.pipelines.local.runner import LocalRunner
from semrank.pipelines.runtime import BuildOptions
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.beam import MapTables, ReadParquet
from semrank.transforms.crawls.beam import READING_COST, SourceRange

COLLECTED: dict[str, list[Any]] = defaultdict(list)
"""Elements by collection's name; both runners call the collecting function in this process."""

Collections = dict[str, PCollection[Any]]
Build = Callable[[beam.Pipeline], Collections]


def collect(_: int, names: list[str], *found: Iterable[Any]) -> None:
    for name, elements_of_name in zip(names, found, strict=True):
        COLLECTED[name].extend(elements_of_name)


def elements(chosen: Any, build: Build, workers: int = 1) -> dict[str, list[Any]]:
    """The sorted elements of each collection that a build gives."""
    COLLECTED.clear()
    with beam.Pipeline(runner=chosen, options=BuildOptions([f"--workers={workers}"])) as pipeline:
        made = build(pipeline)
        # A stage of one element is not shared among processes.
        once = pipeline | "once" >> beam.Create([0])
        once | "collect" >> beam.Map(collect, list(made), *map(AsIter, made.values()))
    return {name: sorted(found) for name, found in COLLECTED.items() if found}


def check_equal(build: Build) -> dict[str, list[Any]]:
    found = elements(LocalRunner(), build)
    assert found == elements(FnApiRunner(), build)
    return found


# --- random pipelines ------------------------------------------------------------------------------------------------


def twice_if_odd(number: int) -> list[int]:
    return [number, number + 1] if number % 2 else [number]


def split(number: int) -> Iterator[Any]:
    yield TaggedOutput("odd", number) if number % 2 else number


def with_side(number: int, side: Iterable[int]) -> int:
    values = list(side)
    return number + 7 * len(values) + sum(values)


def with_total(number: int, total: int) -> int:
    return number * 3 + total


def key_of(number: int) -> tuple[int, int]:
    return number % 3, number


def of_group(key: int, numbers: Iterable[int]) -> int:
    values = sorted(numbers)
    return key + sum(place * value for place, value in enumerate(values, 1)) % 1009


def step(pipeline: beam.Pipeline, number: int, kind: str, one: Any, other: Any) -> list[Any]:
    """The collections that a random step makes of two others."""
    label = f"{number} {kind}"
    if kind == "create":
        return [pipeline | label >> beam.Create([number, number + 1, number * 2])]
    if kind == "flat map":
        return [one | label >> beam.FlatMap(twice_if_odd)]
    if kind == "split":
        parts = one | label >> beam.FlatMap(split).with_outputs("odd", main="even")
        return [parts.even, parts.odd]
    if kind == "flatten":
        return [(one, other, one) | label >> beam.Flatten()]
    if kind == "reshuffle":
        return [one | label >> beam.Reshuffle()]
    if kind == "group":
        keyed = one | f"{label}: key" >> beam.Map(key_of)
        return [keyed | label >> beam.GroupByKey() | f"{label}: sum" >> beam.MapTuple(of_group)]
    if kind == "combine":
        keyed = (one, other) | f"{label}: both" >> beam.Flatten() | f"{label}: key" >> beam.Map(key_of)
        return [keyed | label >> beam.CombinePerKey(sum) | f"{label}: values" >> beam.Values()]
    if kind == "side":
        return [one | label >> beam.Map(with_side, AsIter(other))]
    total = other | f"{label}: total" >> beam.CombineGlobally(sum)
    return [one | label >> beam.Map(with_total, AsSingleton(total)), total]


def grouped(numbers: Iterable[int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for number in numbers:
        groups.setdefault(number % 3, []).append(number)
    return groups


def expected(number: int, kind: str, one: list[int], other: list[int]) -> list[list[int]]:
    """What `step` makes, by definition."""
    results: dict[str, Callable[[], list[list[int]]]] = {
        "create": lambda: [[number, number + 1, number * 2]],
        "flat map": lambda: [[made for each in one for made in twice_if_odd(each)]],
        "split": lambda: [[each for each in one if each % 2 == 0], [each for each in one if each % 2]],
        "flatten": lambda: [[*one, *other, *one]],
        "reshuffle": lambda: [one],
        "group": lambda: [[of_group(key, values) for key, values in grouped(one).items()]],
        "combine": lambda: [[sum(values) for values in grouped([*one, *other]).values()]],
        "side": lambda: [[with_side(each, other) for each in one]],
        "total": lambda: [[with_total(each, sum(other)) for each in one], [sum(other)]],
    }
    return results[kind]()


KINDS = ("create", "flat map", "split", "flatten", "reshuffle", "group", "combine", "side", "total")

STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=9)


def check_random(workers: int, steps: list[tuple[str, int, int]]) -> None:
    """A pipeline of random steps gives what the same steps give on lists."""
    lists = [[3, 1, 4, 1, 5]]

    def build(pipeline: beam.Pipeline) -> Collections:
        made = [pipeline | "numbers" >> beam.Create(lists[0])]
        for number, (kind, one, other) in enumerate(steps):
            lists.extend(expected(number, kind, lists[one % len(made)], lists[other % len(made)]))
            made += step(pipeline, number, kind, made[one % len(made)], made[other % len(made)])
        return {f"collection {number}": collection for number, collection in enumerate(made)}

    found = elements(LocalRunner(), build, workers)
    assert found == {f"collection {number}": sorted(numbers) for number, numbers in enumerate(lists) if numbers}


@given(STEPS)
@settings(max_examples=50, deadline=None)
def test_random_pipelines_in_one_process(steps: list[tuple[str, int, int]]) -> None:
    check_random(1, steps)


@given(STEPS)
@settings(max_examples=10, deadline=None)
def test_random_pipelines_in_two_processes(steps: list[tuple[str, int, int]]) -> None:
    with mock.patch.object(runner, "SHARED_BYTES", 0):
        check_random(2, steps)


def test_every_kind_of_step_gives_what_beams_runner_gives() -> None:
    def build(pipeline: beam.Pipeline) -> Collections:
        made = [pipeline | "numbers" >> beam.Create([3, 1, 4, 1, 5])]
        for number, kind in enumerate(KINDS):
            made += step(pipeline, number, kind, made[number % 2], made[-1])
        return {f"collection {number}": collection for number, collection in enumerate(made)}

    check_equal(build)


# --- functions and views ---------------------------------------------------------------------------------------------


class Lifecycle(beam.DoFn):
    """Emits from everywhere, and counts."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.total = Metrics.counter("test", "total")
        self.sizes = Metrics.distribution("test", "sizes")

    def setup(self) -> None:
        self.ready = True

    def start_bundle(self) -> None:
        self.sum = 0

    def process(self, element: int, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        assert self.ready
        self.seen.append(element)
        self.sum += element
        self.total.inc(element)
        self.sizes.update(element)
        yield element
        if element % 2:
            yield TaggedOutput("odd", element)
        yield TaggedOutput("nobody reads", timestamp)

    def finish_bundle(self) -> Iterator[Any]:
        yield TaggedOutput("sums", GlobalWindows.windowed_value(self.sum))

    def teardown(self) -> None:
        self.ready = False


class Returns(beam.DoFn):
    """Gives nothing, or a list."""

    def process(self, element: int) -> list[int] | None:
        return [element] * element if element else None


def test_functions_emit_from_everywhere() -> None:
    function, returns = Lifecycle(), Returns()  # type: ignore[no-untyped-call]

    def build(pipeline: beam.Pipeline) -> Collections:
        numbers = pipeline | beam.Create([0, 1, 2, 3])
        parts = numbers | beam.ParDo(function).with_outputs("odd", "sums", main="all")
        sums = parts.sums | "sum of bundles" >> beam.CombineGlobally(sum)
        return {"all": parts["all"], "odd": parts.odd, "sums": sums, "lists": numbers | beam.ParDo(returns)}

    assert check_equal(build) == {"all": [0, 1, 2, 3], "odd": [1, 3], "sums": [6], "lists": [1, 2, 2, 3, 3, 3]}
    assert function.seen == [], "a run works with a copy of the pipeline's function"


def views(number: int, values: list[int], names: dict[int, str], lists: Any, default: str) -> tuple[Any, ...]:
    return number, sorted(values), names[number], sorted(lists[number]), default


def test_side_inputs_come_in_every_view() -> None:
    def build(pipeline: beam.Pipeline) -> Collections:
        numbers = pipeline | "numbers" >> beam.Create([1, 2])
        names = pipeline | "names" >> beam.Create([(1, "one"), (2, "two")])
        lists = pipeline | "lists" >> beam.Create([(1, 5), (1, 4), (2, 3)])
        empty = pipeline | "empty" >> beam.Create([])
        seen = numbers | beam.Map(
            views, AsList(numbers), names=AsDict(names), lists=AsMultiMap(lists), default=AsSingleton(empty, "none")
        )
        return {"seen": seen}

    assert check_equal(build)["seen"] == [(1, [1, 2], "one", [4, 5], "none"), (2, [1, 2], "two", [3], "none")]


def test_metrics_are_kept_by_step() -> None:
    pipeline = beam.Pipeline(runner=LocalRunner())
    numbers = pipeline | beam.Create([1, 2, 3])
    for name in ("first", "second"):
        numbers | name >> beam.ParDo(Lifecycle())
    result: Any = pipeline.run()
    assert result.wait_until_finish() == "DONE"
    found = result.metrics().query(MetricsFilter().with_name("total").with_step("second"))
    ((counter,), distributions) = found["counters"], found["distributions"]
    assert (counter.key.step, counter.committed, distributions) == ("second", 6, [])
    (first, _) = result.metrics().query(MetricsFilter().with_name("sizes"))["distributions"]
    assert (first.committed.min, first.committed.max, first.committed.sum, first.committed.count) == (1, 3, 6, 3)


def process_of(_: Any) -> pa.Table:
    return pa.table({"process": [os.getpid()]})


def processes(table: pa.Table) -> list[int]:
    found: list[int] = table["process"].to_pylist()
    return found


def read_files(least: int, folder: Path, begin: Callable[[list[str]], Any]) -> list[int]:
    """The processes that read two files, where stages of so many bytes are shared."""
    paths = [str(folder / f"{number}.parquet") for number in range(2)]
    for path in paths:
        pq.write_table(pa.table({"number": list(range(100))}), path)

    def build(pipeline: beam.Pipeline) -> Collections:
        return {"read": pipeline | begin(paths) | MapTables("look", process_of) | beam.FlatMap(processes)}

    with mock.patch.object(runner, "SHARED_BYTES", least):
        return elements(LocalRunner(), build, workers=2)["read"]


@pytest.mark.parametrize(("least", "shared"), [(runner.SHARED_BYTES, False), (1_000, True)])
def test_tables_are_read_by_several_processes_if_they_are_large(least: int, shared: bool, tmp_path: Path) -> None:
    found = read_files(least, tmp_path, lambda paths: ReadParquet("read", paths, ["number"]))
    assert len(found) == 2
    assert (os.getpid() in found) is not shared


@pytest.mark.parametrize(
    ("part", "shared"),
    [((0, -1, 40), False), ((0, -1, 60), True), ((10, 50, 0), False), ((10, 70, 0), True), ((0, -1, 0), True)],
)
def test_sources_are_read_by_several_processes_if_they_are_large_or_of_unknown_size(
    part: tuple[int, int, int], shared: bool, tmp_path: Path
) -> None:
    least = 100 * READING_COST
    found = read_files(least, tmp_path, lambda paths: beam.Create([SourceRange(path, "warc", *part) for path in paths]))
    assert len(found) == 2
    assert (os.getpid() in found) is not shared


# --- errors ----------------------------------------------------------------------------------------------------------


def fail(number: int) -> int:
    raise ValueError(f"{number} is not good")


def test_an_error_names_its_step() -> None:
    pipeline = beam.Pipeline(runner=LocalRunner())
    pipeline | beam.Create([7]) | "outer" >> beam.Map(abs) | "inner" >> beam.Map(fail)
    with pytest.raises(ValueError, match="7 is not good") as raised:
        pipeline.run()
    assert raised.value.__notes__ == ["[while running 'inner']"]


class Splittable(beam.RestrictionProvider):
    def initial_restriction(self, element: int) -> int:
        return element


RESTRICTION = beam.DoFn.RestrictionParam(Splittable())


class Reader(beam.DoFn):
    def process(self, _: int, tracker: Any = RESTRICTION) -> Iterator[int]:
        yield tracker


def test_unknown_transforms_are_named() -> None:
    reader = Reader()  # type: ignore[no-untyped-call]
    pipeline = beam.Pipeline(runner=LocalRunner())
    pipeline | beam.Create([7]) | "read it" >> beam.ParDo(reader)
    with pytest.raises(
        InputError, match=r"'read it': the local runner does not support the transform ParDo .*DirectRunner"
    ):
        pipeline.run()
    pipeline = beam.Pipeline(runner=LocalRunner())
    windows = pipeline | beam.Create([(7, 1)]) | beam.WindowInto(FixedWindows(1))
    windows | "by window" >> beam.GroupByKey()
    with pytest.raises(InputError, match=r"'by window': .* GroupByKey \(groups by windows\)"):
        pipeline.run()
