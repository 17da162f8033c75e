"""Beam steps over Arrow tables.

Every room composes its pipeline from these: read tables, map a function over tables, exchange rows by hash and map a
function over each partition, gather a small table for broadcast, write tables. The functions themselves are plain
Arrow and NumPy code. Each step counts rows and time under its stage's name, and the size of the largest record and
group that it sends through a shuffle.
"""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, partialmethod
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.metrics.metric import Metrics
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.pvalue import AsIter, PBegin, PCollection
from apache_beam.transforms.core import get_function_args_defaults
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.decorators import IOTypeHints
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from apache_beam.utils.windowed_value import WindowedValue

from semrank.schemas.errors import shown_path
from semrank.transforms.columnar import coder, files
from semrank.transforms.columnar.arrays import (
    MAIN,
    bounded_slices,
    distinct_rows,
    int64s,
    split_by_partition,
    split_by_value,
)
from semrank.transforms.columnar.idfilter import filter_segment
from semrank.transforms.columnar.parquet import open_stored, part_name, write_parquet
from semrank.transforms.columnar.worker_memory import OTHER, Held, Meter

coder.register()

NAMESPACE = "semrank"
ROWS_IN, ROWS_OUT, MILLISECONDS = "rows_in", "rows_out", "milliseconds"
RECORD_BYTES, GROUP_BYTES, HELD_BYTES = "record_bytes", "group_bytes", "held_bytes"

PARTITION, PREPARED = "partition", "prepared"
"""Names of the arguments that stage functions may have besides their inputs."""

Collection = PCollection[Any]

WRITTEN_SCHEMA = pa.schema([pa.field("path", pa.string()), pa.field("rows", pa.int64()), pa.field("bytes", pa.int64())])
"""What the writing steps return: one row per file."""

CUT_BYTES = 64 << 20
"""Size of the buffer of rows that are split by partition together."""

log = logging.getLogger(NAMESPACE)


Combine = Callable[[pa.Table], pa.Table]
"""Adds up rows of one table, so that fewer rows are exchanged."""


def _taken(function: Callable[..., Any], names: Iterable[str]) -> frozenset[str]:
    """Which of the named arguments a function takes; with `**kwargs` all except the number of the partition."""
    parameters = inspect.signature(function).parameters.values()
    own = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters)
    return frozenset(name for name in names if name in own or (anything and name != PARTITION))


class _TableDoFn(beam.DoFn):
    """A DoFn without state or timers; a subclass has `_results(element, sides)`."""

    gives: Any = pa.Table
    """Type of the elements of the main output."""

    _tags: Sequence[str] = ()

    def _results(self, element: Any, sides: Sequence[Iterable[pa.Table]]) -> Iterable[Any]:
        raise NotImplementedError

    def _process(self, element: Any, *sides: Iterable[pa.Table]) -> Iterable[Any]:
        """The results of an element."""
        return self._results(element, sides)

    process = partialmethod(_process)
    """The results of an element; no plain method, since Beam would parse the source of one for each step."""

    def __dir__(self) -> list[str]:
        """The method in whose arguments Beam may look for state and timers, four times a step; others have none."""
        return ["process"]

    def _inspect_process(self) -> tuple[list[str], list[Any]]:
        """Names and defaults of the arguments; Beam would inspect them ten times a step."""
        kind: Any = type(self)
        return _process_arguments(kind)

    def _inspect_process_batch(self) -> tuple[list[str], list[Any]]:
        return ["batch"], []

    def _inspect_setup(self) -> tuple[list[str], list[Any]]:
        return [], []

    _inspect_start_bundle = _inspect_finish_bundle = _inspect_teardown = _inspect_setup

    def default_type_hints(self) -> IOTypeHints:
        """The types of the outputs; Beam would read the annotation of the side inputs as that of one tuple."""
        return _given(self.gives, tuple(tag for tag in self._tags if tag != MAIN))


@functools.cache
def _process_arguments(kind: type[Any]) -> tuple[list[str], list[Any]]:
    """Names and defaults of the arguments of `process` of a kind of functions, without `self`."""
    names, defaults = get_function_args_defaults(kind.process)
    return names[1:], defaults


@functools.cache
def _given(main: Any, tags: Sequence[str]) -> IOTypeHints:
    """Type hints of outputs; made once, as Beam formats a trace of the calls for each.

    Outputs without a type hint of their own would be pickled, each slice with its whole parent table.
    """
    return IOTypeHints.empty().with_output_types(convert_to_beam_type(main), **dict.fromkeys(tags, pa.Table))


class _StageMetrics:
    """The metrics of a stage; pickled as its name alone, as Beam pickles each function several times."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.rows_in = Metrics.counter(NAMESPACE, f"{stage}/{ROWS_IN}")
        self.rows_out = Metrics.counter(NAMESPACE, f"{stage}/{ROWS_OUT}")
        self.milliseconds = Metrics.counter(NAMESPACE, f"{stage}/{MILLISECONDS}")
        self.held_bytes = Metrics.distribution(NAMESPACE, f"{stage}/{HELD_BYTES}")
        self.record_bytes = Metrics.distribution(NAMESPACE, f"{stage}/{RECORD_BYTES}")
        self.group_bytes = Metrics.distribution(NAMESPACE, f"{stage}/{GROUP_BYTES}")

    @staticmethod
    @functools.cache
    def of(stage: str) -> _StageMetrics:
        """The metrics of a stage of this name, the same for all copies of a function."""
        return _StageMetrics(stage)

    def __reduce__(self) -> tuple[Any, ...]:
        return _StageMetrics.of, (self._stage,)


class _Sides:
    """The broadcast collections of a stage by parameter name, refused if a worker can't hold them.

    Attributes:
        meter: adds up the bytes of the tables that were read.
        rows: number of rows that were read.
        streams: the tables of each; iterating one raises `InputError` at the first table that does not fit. The
            remaining tables are only measured then, so that the message has the bytes of all.
    """

    def __init__(self, meter: Meter, names: Sequence[str], sides: Sequence[Iterable[pa.Table]]) -> None:
        self.meter, self.rows = meter, 0
        self._left = {name: iter(side) for name, side in zip(names, sides, strict=True)}
        self.streams = {name: self._stream(name) for name in names}

    def tables(self) -> dict[str, pa.Table | None]:
        """Each collection as one table, None for an empty one."""
        return {name: one_table(stream) for name, stream in self.streams.items()}

    def _stream(self, name: str) -> Iterator[pa.Table]:
        for table in self._left[name]:
            if not self.meter.fits(name, table.nbytes):
                del table
                for each, left in self._left.items():
                    for rest in left:
                        self.meter.fits(each, rest.nbytes)
                self.meter.check()
            self.rows += table.num_rows
            yield table


def one_table(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Tables one after another in one chunk, or None if there are none."""
    held = list(tables)
    return pa.concat_tables(held).combine_chunks() if held else None


class _StageDoFn(_TableDoFn):
    """A stage: counts rows and its own time, prepares broadcast tables once a bundle, logs its start and end.

    Attributes:
        worker_memory: bytes of memory of a worker, or None for all of its machine's.
    """

    worker_memory: int | None = None
    _held: dict[str, Any] | None = None

    def __init__(
        self,
        stage: str,
        function: Callable[..., Any],
        sides: Sequence[str] = (),
        prepare: Callable[..., Any] | None = None,
        tags: Sequence[str] = (),
        holds: Held = OTHER,
        streams: bool = False,
    ) -> None:
        self._stage, self._function, self._prepare, self.holds = stage, function, prepare, holds
        self._streams = streams
        self._side_names, self._tags = tuple(sides), tuple(tags)
        self._metrics = _StageMetrics.of(stage)

    def hold_broadcast(self, sides: Sequence[Iterable[pa.Table]]) -> None:
        """Prepares the broadcast tables for all bundles of this function; otherwise each bundle prepares them."""
        self.start_bundle()
        self._held = self._begin(sides)
        self._metrics.milliseconds.inc(round(self._seconds * 1000))

    def start_bundle(self) -> None:
        self._broadcast = self._held
        self._seconds = 0.0
        self._rows = 0

    def finish_bundle(self) -> None:
        self._metrics.milliseconds.inc(round(self._seconds * 1000))
        if self._broadcast is not None:
            log.debug("%s: %s rows in %.1f s", self._stage, f"{self._rows:,}", self._seconds)

    def _begin(self, sides: Sequence[Iterable[pa.Table]]) -> dict[str, Any]:
        """The broadcast tables by parameter name, prepared once a bundle."""
        if self._broadcast is None:
            log.debug("%s: started", self._stage)
            begin = time.perf_counter()
            held = _Sides(Meter(self._stage, self.holds, self.worker_memory), self._side_names, sides)
            tables = held.streams if self._streams else held.tables()
            self._broadcast = tables if self._prepare is None else {PREPARED: self._prepare(**tables)}
            self._side_rows = held.rows
            if self._side_names:
                self._metrics.held_bytes.update(held.meter.needed)
            self._seconds += time.perf_counter() - begin
        return self._broadcast

    def _count_in(self, rows: int) -> None:
        self._metrics.rows_in.inc(rows)
        self._rows += rows

    def _emit(self, *arguments: Any, **named: Any) -> Iterator[tuple[str, pa.Table]]:
        """(tag, table) of each output; measures the time of this stage only, not that of later stages."""
        begin = time.perf_counter()
        result = self._function(*arguments, **named)
        outputs = iter([result] if isinstance(result, pa.Table) else result)
        self._seconds += time.perf_counter() - begin
        while True:
            begin = time.perf_counter()
            try:
                output = next(outputs)
            except StopIteration:
                return
            finally:
                self._seconds += time.perf_counter() - begin
            tag, table = output if self._tags else (MAIN, output)
            self._metrics.rows_out.inc(table.num_rows)
            yield tag, table


def _tagged(outputs: Iterable[tuple[str, pa.Table]]) -> Iterator[Any]:
    for tag, table in outputs:
        if table.num_rows:
            yield table if tag == MAIN else beam.pvalue.TaggedOutput(tag, table)


class _MapDoFn(_StageDoFn):
    def _results(self, element: Any, sides: Sequence[Iterable[pa.Table]]) -> Iterator[Any]:
        broadcast = self._begin(sides)
        self._count_in(element.num_rows if isinstance(element, pa.Table) else 1)
        if self._prepare is None:
            yield from _tagged(self._emit(element, **broadcast))
        else:
            yield from _tagged(self._emit(element, broadcast[PREPARED]))


class _AddDoFn(_MapDoFn):
    """Adds up the results of a bundle's tables."""

    def __init__(self, *arguments: Any, combine: Combine) -> None:
        super().__init__(*arguments)
        self._combine = combine

    def start_bundle(self) -> None:
        super().start_bundle()
        self._sums: list[pa.Table] = []
        self._added_bytes = self._waiting_bytes = 0

    def _results(self, element: Any, sides: Sequence[Iterable[pa.Table]]) -> Iterator[Any]:
        for table in super()._results(element, sides):
            self._sums.append(table)
            self._waiting_bytes += table.nbytes
        if self._waiting_bytes > max(CUT_BYTES, 2 * self._added_bytes):
            self._add()
        yield from ()

    def finish_bundle(self) -> Iterator[WindowedValue]:  # type: ignore[override]
        super().finish_bundle()
        if self._sums:
            self._add()
            for piece in bounded_slices(self._sums[0]):
                yield GlobalWindows.windowed_value(piece)

    def _add(self) -> None:
        self._sums = [self._combine(pa.concat_tables(self._sums).combine_chunks())]
        self._added_bytes = self._waiting_bytes = self._sums[0].nbytes


class _KeyDoFn(_TableDoFn):
    """Splits tables by partition and bounds the size of the records of the shuffle.

    The tables of a bundle are split together: split over hundreds of partitions, a single table gives pieces of a few
    rows, whose fixed cost is larger than that of the rows.
    """

    gives = tuple[int, pa.Table]

    def __init__(self, stage: str, column: str, partitions: int | None, name: str, combine: Combine | None) -> None:
        self._column, self._partitions, self._name, self._combine = column, partitions, name, combine
        self._metrics = _StageMetrics.of(stage)

    def start_bundle(self) -> None:
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0

    def _results(self, table: pa.Table, _: Any) -> Iterator[tuple[int, pa.Table]]:
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= CUT_BYTES:
            yield from self._cut()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for piece in self._cut():
            yield GlobalWindows.windowed_value(piece)

    def _cut(self) -> Iterator[tuple[int, pa.Table]]:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting, self._waiting_bytes = [], 0
        if self._combine is not None:
            table = self._combine(table)
        table = table.replace_schema_metadata({"input": self._name})
        keys = int64s(table[self._column])
        parts = (
            split_by_value(table, keys)
            if self._partitions is None
            else split_by_partition(table, keys, self._partitions)
        )
        for partition, rows in parts:
            for piece in bounded_slices(rows):
                self._metrics.record_bytes.update(piece.nbytes)
                yield partition, piece


class _MergeDoFn(_StageDoFn):
    def __init__(self, stage: str, function: Callable[..., Any], inputs: Sequence[str], **options: Any) -> None:
        super().__init__(stage, function, **options)
        self._inputs = tuple(inputs)
        sides = self._side_names if self._prepare is None else (PREPARED,)
        self._names = _taken(function, (PARTITION, *self._inputs, *sides))

    def _results(self, element: tuple[int, Iterable[pa.Table]], sides: Sequence[Iterable[pa.Table]]) -> Iterator[Any]:
        broadcast = self._begin(sides)
        partition, tables = element
        inputs: dict[str, list[pa.Table]] = {name: [] for name in self._inputs}
        size = 0
        for table in tables:
            size += table.nbytes
            self._count_in(table.num_rows)
            inputs[table.schema.metadata[b"input"].decode()].append(table.replace_schema_metadata(None))
        self._metrics.group_bytes.update(size)
        arguments: dict[str, Any] = {
            name: pa.concat_tables(parts).combine_chunks() if parts else None for name, parts in inputs.items()
        }
        arguments |= {**broadcast, PARTITION: partition}
        yield from _tagged(self._emit(**{name: arguments[name] for name in self._names}))


class _GatherDoFn(_StageDoFn):
    def _results(self, _: int, sides: Sequence[Iterable[pa.Table]]) -> Iterator[Any]:
        broadcast = self._begin(sides)
        self._count_in(self._side_rows)
        for tag, table in self._emit(**broadcast):
            for piece in bounded_slices(table):
                yield piece if tag == MAIN else beam.pvalue.TaggedOutput(tag, piece)


def _apply(elements: Collection, label: str, fn: beam.DoFn, sides: Iterable[Collection], tags: Sequence[str]) -> Any:
    step = beam.ParDo(fn, *[AsIter(side) for side in sides])
    if not tags:
        return elements | label >> step
    return elements | label >> step.with_outputs(*[tag for tag in tags if tag != MAIN], main=MAIN)


def limit_memory(pipeline: beam.Pipeline, worker_memory: int | None) -> None:
    """Sets a worker's memory for every stage of a pipeline.

    Args:
        pipeline: a complete pipeline that does not run yet.
        worker_memory: bytes, or None for all memory of each worker's machine.
    """
    pipeline.visit(_MemoryLimit(worker_memory))


class _MemoryLimit(PipelineVisitor):
    def __init__(self, worker_memory: int | None) -> None:
        self._worker_memory = worker_memory

    def visit_transform(self, transform_node: AppliedPTransform) -> None:
        fn = getattr(transform_node.transform, "fn", None)
        if isinstance(fn, _StageDoFn):
            fn.worker_memory = self._worker_memory


class MapTables(beam.PTransform[Any, Any]):
    """Applies `function(table, **sides)` to every table.

    Args:
        stage: the stage's name in messages, metrics and the manifest.
        function: returns a table, an iterable of tables, or with `tags` of (tag, table); tables without rows are
            dropped. It must be importable, as all functions of steps.
        sides: broadcast collections by parameter name; the function gets each as one table, or None if it is empty.
        prepare: `prepare(**sides)` is called once a bundle, and the function as `function(table, prepared)`.
        tags: names of the outputs including `main`, if there are several.
        combine: adds up the results of a bundle's tables, if there is one output.
        holds: memory that the stage's sides take on a worker.
        streams: whether `prepare` gets each side as an iterator of its tables, which it exhausts, to use less memory.
    """

    def __init__(
        self,
        stage: str,
        function: Callable[..., Any],
        *,
        sides: Mapping[str, Collection] | None = None,
        prepare: Callable[..., Any] | None = None,
        tags: Sequence[str] = (),
        combine: Combine | None = None,
        holds: Held = OTHER,
        streams: bool = False,
    ) -> None:
        super().__init__(stage)
        self._sides, self._tags = dict(sides or {}), tuple(tags)
        arguments: tuple[Any, ...] = (stage, function, tuple(self._sides), prepare, self._tags, holds, streams)
        self._fn = _MapDoFn(*arguments) if combine is None else _AddDoFn(*arguments, combine=combine)

    def expand(self, elements: Collection) -> Any:
        """Applies the step."""
        return _apply(elements, "map", self._fn, self._sides.values(), self._tags)


class MergePartitions(beam.PTransform[Any, Any]):
    """Exchanges rows of one or several collections by an id column and applies a function to each partition.

    The input is a dict of PCollections by parameter name.

    Args:
        stage: the stage's name in messages, metrics and the manifest.
        function: is called with the keyword arguments that its signature names: `partition`, the partition's number;
            an input, the partition's rows as one table in unspecified order, or None if there are none; a side, or
            `prepared`. The result is as for `MapTables`.
        partitions: number of partitions by hash of the key, or None if the key column holds partition numbers.
        key: name of the int64 key column, of all inputs or by input.
        combine: functions by input that add up rows before the exchange.
        sides: broadcast collections by parameter name, as for `MapTables`.
        prepare: as for `MapTables`.
        tags: names of the outputs including `main`, if there are several.
        holds: memory that the stage's sides take on a worker.
    """

    def __init__(
        self,
        stage: str,
        function: Callable[..., Any],
        *,
        partitions: int | None,
        key: str | Mapping[str, str],
        combine: Mapping[str, Combine] | None = None,
        sides: Mapping[str, Collection] | None = None,
        prepare: Callable[..., Any] | None = None,
        tags: Sequence[str] = (),
        holds: Held = OTHER,
    ) -> None:
        super().__init__(stage)
        self._stage, self._partitions, self._key, self._combine = stage, partitions, key, dict(combine or {})
        self._function, self._sides = function, dict(sides or {})
        self._options: dict[str, Any] = {"prepare": prepare, "tags": tuple(tags), "holds": holds}

    def expand(self, inputs: Mapping[str, Collection]) -> Any:
        """Applies the step."""
        keyed = [tables | f"key {name}" >> beam.ParDo(self._keying(name)) for name, tables in inputs.items()]
        grouped = keyed | "flatten" >> beam.Flatten() | "exchange" >> beam.GroupByKey()
        fn = _MergeDoFn(self._stage, self._function, tuple(inputs), sides=tuple(self._sides), **self._options)
        return _apply(grouped, "merge", fn, self._sides.values(), self._options["tags"])

    def _keying(self, name: str) -> _KeyDoFn:
        column = self._key if isinstance(self._key, str) else self._key[name]
        return _KeyDoFn(self._stage, column, self._partitions, name, self._combine.get(name))


class GatherTables(beam.PTransform[Any, Any]):
    """Brings all rows of one or several small collections to one worker and applies a function to them.

    It suits tables that are bounded by a vocabulary or a queue and are broadcast afterwards. `function(**inputs)` is
    called once, even if all inputs are empty; each input is one table in unspecified order, or None. The step's input
    is a dict of PCollections by parameter name.

    Args:
        stage: the stage's name in messages, metrics and the manifest.
        function: the result is as for `MapTables`.
        tags: names of the outputs including `main`, if there are several.
        holds: memory that the stage's inputs take on a worker.
        streams: whether the function gets each input as an iterator of its tables, which it exhausts.
    """

    def __init__(
        self,
        stage: str,
        function: Callable[..., Any],
        *,
        tags: Sequence[str] = (),
        holds: Held = OTHER,
        streams: bool = False,
    ) -> None:
        super().__init__(stage)
        self._stage, self._tags, self._holds, self._streams = stage, tuple(tags), holds, streams
        self._function: Callable[..., Any] = _as_it_is if streams else function
        self._prepare = function if streams else None

    def expand(self, inputs: Mapping[str, Collection]) -> Any:
        """Applies the step."""
        pipeline = next(iter(inputs.values())).pipeline
        once = pipeline | "once" >> beam.Create([0])
        sides = tuple(inputs)
        fn = _GatherDoFn(
            self._stage, self._function, sides, self._prepare, self._tags, self._holds, streams=self._streams
        )
        return _apply(once, "gather", fn, inputs.values(), self._tags)


def _as_it_is(prepared: Any) -> Any:
    return prepared


class ReadParquet(beam.PTransform[Any, Any]):
    """Reads columns of Parquet files as bounded tables, row groups in parallel.

    Args:
        stage: the stage's name.
        paths: files to read.
        columns: columns to read; others are not decoded.
    """

    def __init__(self, stage: str, paths: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(stage)
        self._paths, self._fn = list(paths), _ReadDoFn(stage, columns)
        self._list = _ListDoFn()  # type: ignore[no-untyped-call]

    def expand(self, begin: PBegin | beam.Pipeline) -> Collection:
        """Applies the step."""
        return (  # type: ignore[no-any-return]
            begin
            | "files" >> beam.Create(self._paths).with_output_types(str)
            | "row groups" >> beam.ParDo(self._list)
            | "spread" >> beam.Reshuffle()
            | "read" >> beam.ParDo(self._fn)
        )


class RowGroup(NamedTuple):
    """A row group of a file: path, number, and bytes without compression. Other runners hand it on as a plain tuple."""

    path: str
    number: int
    nbytes: int


class _ListDoFn(_TableDoFn):
    """Lists the row groups of a file."""

    gives = tuple[str, int, int]

    def _results(self, path: str, _: Any) -> Iterator[RowGroup]:
        with open_stored(path) as file:
            for number in range(file.num_row_groups):
                yield RowGroup(path, number, file.metadata.row_group(number).total_byte_size)


def _read_row_group(element: tuple[str, int, int], columns: Sequence[str]) -> Iterator[pa.Table]:
    path, group, _ = element
    with open_stored(path) as file:
        table = file.read_row_group(group, columns=list(columns), use_threads=False)
        table.validate(full=True)  # Arrow does not check by itself that texts are UTF-8 and offsets are in range
    return bounded_slices(table)


URL_COLUMNS = ("url", "source_url", "target_url")
"""Columns of stored tables that hold URLs."""


def without_urls(table: pa.Table, urls: pa.Array) -> pa.Table:
    """The rows of a table whose URL columns hold none of some URLs."""
    if len(urls):
        for name in set(URL_COLUMNS) & set(table.column_names):
            table = table.filter(pc.invert(pc.is_in(table[name], value_set=urls)))
    return table


def leave_out(pipeline: beam.Pipeline, urls: pa.Array) -> None:
    """Makes every `ReadParquet` of a pipeline skip the rows that hold one of some URLs."""
    pipeline.visit(_LeftOut(urls))


class _LeftOut(PipelineVisitor):
    def __init__(self, urls: pa.Array) -> None:
        self._urls = urls

    def visit_transform(self, transform_node: AppliedPTransform) -> None:
        fn = getattr(transform_node.transform, "fn", None)
        if isinstance(fn, _ReadDoFn):
            fn.left_out = self._urls


class _ReadDoFn(_StageDoFn):
    left_out = pa.array([], pa.string())

    def __init__(self, stage: str, columns: Sequence[str]) -> None:
        super().__init__(stage, _read_row_group)
        self._columns = list(columns)

    def _results(self, element: tuple[str, int, int], sides: Sequence[Iterable[pa.Table]]) -> Iterator[pa.Table]:
        self._begin(sides)
        for _, table in self._emit(element, columns=self._columns):
            self._count_in(table.num_rows)
            yield without_urls(table, self.left_out)


class WritePartitions(beam.PTransform[Any, Any]):
    """Exchanges rows by an id column and writes each partition as one Parquet file.

    A file's name and content depend on the partition alone, and files are written atomically, so a retried bundle
    writes the same file again. The input is a dict of PCollections by parameter name.

    Args:
        stage: the stage's name.
        folder: folder of the files.
        finish: `finish(partition, **inputs, **sides)` returns the file's rows as a table, sorted.
        partitions: number of partitions by hash of the key, or None if the key column holds partition numbers.
        key: name of the int64 column of every input.
        sides: broadcast collections by parameter name.
        holds: as for `MergePartitions`.

    Returns tables of `WRITTEN_SCHEMA`.
    """

    def __init__(
        self,
        stage: str,
        folder: str,
        finish: Callable[..., pa.Table],
        *,
        partitions: int | None,
        key: str,
        sides: Mapping[str, Collection] | None = None,
        holds: Held = OTHER,
    ) -> None:
        super().__init__(stage)
        self._merge = MergePartitions(
            stage,
            partial(_written_part, folder=folder, finish=finish),
            partitions=partitions,
            key=key,
            sides=sides,
            holds=holds,
        )

    def expand(self, inputs: Mapping[str, Collection]) -> Collection:
        """Applies the step."""
        return inputs | "write" >> self._merge  # type: ignore[no-any-return]


def _written_part(
    partition: int, *, folder: str, finish: Callable[..., pa.Table], **inputs: pa.Table | None
) -> pa.Table:
    number = {PARTITION: partition} if _taken(finish, (PARTITION,)) else {}
    return write_part(folder, partition, finish(**number, **inputs))


def write_part(folder: str, partition: int, table: pa.Table) -> pa.Table:
    """Writes a partition's rows, if there are any, and returns a table of `WRITTEN_SCHEMA`."""
    if not table.num_rows:
        return WRITTEN_SCHEMA.empty_table()
    path = files.join(folder, part_name(partition))
    size = write_parquet(path, table)
    return pa.table([[shown_path(path)], [table.num_rows], [size]], schema=WRITTEN_SCHEMA)


class WriteOne(beam.PTransform[Any, Any]):
    """Gathers small collections and writes them as one Parquet file.

    Args:
        stage: the stage's name.
        folder: folder of the file.
        finish: `finish(**inputs)` returns the file's rows as a sorted table.
        holds, streams: as for `GatherTables`.

    Returns a table of `WRITTEN_SCHEMA`.
    """

    def __init__(
        self, stage: str, folder: str, finish: Callable[..., pa.Table], *, holds: Held = OTHER, streams: bool = False
    ) -> None:
        super().__init__(stage)
        self._gather = GatherTables(
            stage, partial(_written_table, folder=folder, finish=finish), holds=holds, streams=streams
        )

    def expand(self, inputs: Mapping[str, Collection]) -> Collection:
        """Applies the step."""
        return inputs | "write" >> self._gather  # type: ignore[no-any-return]


def _written_table(*, folder: str, finish: Callable[..., pa.Table], **inputs: Any) -> pa.Table:
    table, path = finish(**inputs), files.join(folder, part_name(0))
    return pa.table([[shown_path(path)], [table.num_rows], [write_parquet(path, table)]], schema=WRITTEN_SCHEMA)


class FilterIds(beam.PTransform[Any, Any]):
    """Builds an `IdFilter` from positions of ids (`idfilter.filter_positions`); returns its segments, to be broadcast.

    The input is a dict with `positions`.

    Args:
        stage: the stage's name.
    """

    def __init__(self, stage: str) -> None:
        super().__init__(f"make {stage}")
        self._stage = stage

    def expand(self, inputs: Mapping[str, Collection]) -> Collection:
        """Applies the step."""
        return inputs | MergePartitions(  # type: ignore[no-any-return]
            self._stage,
            filter_segment,
            partitions=None,
            key="segment",
            combine={"positions": distinct_rows},
        )
