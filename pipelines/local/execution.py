"""Executes one stage of a plan: passes elements from operation to operation, and to the materialised collections."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

from apache_beam.internal import pickler
from apache_beam.metrics.execution import MetricsContainer, MetricUpdates
from apache_beam.pvalue import AsIter, AsSideInput
from apache_beam.runners.common import DoFnRunner, Receiver
from apache_beam.runners.worker import statesampler
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from semrank.pipelines.local.plan import Collection, Operation, Stage


class Outlet:
    """Where elements of a collection leave a stage.

    Attributes:
        take: takes an element.
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self.take = take


@runtime_checkable
class Holding(Protocol):
    """A function that can prepare its side inputs once for all of its bundles."""

    def hold_broadcast(self, sides: Sequence[Iterable[Any]]) -> None:
        """Prepares the side inputs."""


class Tracker:
    """Stands in for Beam's state sampler: metrics go to the container of the operation that runs."""

    def __init__(self) -> None:
        self.metrics_container: MetricsContainer | None = None

    def current_state(self) -> Tracker:
        """The holder of the container of metrics."""
        return self

    def update_metric(self, name: Any, value: Any) -> None:
        """Updates a metric of the operation that runs."""
        if self.metrics_container is not None:
            self.metrics_container.get_metric_cell(name).update(value)


class _Side:
    """An operation's view of a side input."""

    def __init__(self, side: AsSideInput, elements: Iterable[Any]) -> None:
        plain = isinstance(side, AsIter)
        self.value = elements if plain else side._from_runtime_iterable(elements, side._view_options())

    def __getitem__(self, _: Any) -> Any:
        return self.value

    def is_globally_windowed(self) -> bool:
        return True


class _Output(Receiver):
    def __init__(self, readers: Iterable[_Running], outlets: Iterable[Outlet]) -> None:
        self._readers, self._outlets = tuple(readers), tuple(outlets)

    def receive(self, windowed_value: WindowedValue) -> None:
        for outlet in self._outlets:
            outlet.take(windowed_value.value)
        for reader in self._readers:
            reader.process(windowed_value)


class _Outputs(dict[Any, _Output]):
    """Outputs by tag; a missing one has no reader."""

    def __missing__(self, tag: Any) -> _Output:
        self[tag] = _Output((), ())
        return self[tag]


class _Running:
    """An operation of a running stage."""

    def __init__(self, operation: Operation, sides: list[_Side], outputs: _Outputs, tracker: Tracker) -> None:
        transform = operation.transform
        output: Any = next(iter(operation.outputs.values()))
        self._label, self._tracker = operation.label, tracker
        self.metrics = MetricsContainer(operation.label)
        self._fn, self._arguments = _own_copy(transform.fn), [side.value for side in sides]
        self._runner = DoFnRunner(
            self._fn,
            list(transform.args),
            dict(transform.kwargs),
            cast("list[Any]", sides),
            output.windowing,
            outputs,
        )
        self.process = self._guarded(self._runner.process)
        self.setup, self.start = self._guarded(self._runner.setup), self._guarded(self._runner.start)
        self.finish, self.teardown = self._guarded(self._runner.finish), self._guarded(self._runner.teardown)
        self.hold = self._guarded(self._hold)

    def _hold(self) -> None:
        """Prepares the side inputs before the processes that share them are forked, if the function supports it."""
        if isinstance(self._fn, Holding):
            self._fn.hold_broadcast(self._arguments)

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., None]:
        """The method with its metrics in the operation's container, and the step's name noted on an error."""
        tracker, container, note = self._tracker, self.metrics, f"[while running '{self._label}']"

        def call(*arguments: Any) -> None:
            before, tracker.metrics_container = tracker.metrics_container, container
            try:
                method(*arguments)
            except Exception as error:
                if not getattr(error, "__notes__", None):
                    error.add_note(note)
                raise
            finally:
                tracker.metrics_container = before

        return call


def _own_copy(fn: Any) -> Any:
    """A copy of a function whose state only this run changes, as on a Beam worker."""
    try:
        return pickle.loads(pickle.dumps(fn, pickle.HIGHEST_PROTOCOL))
    except Exception:
        # Beam's own pickler, ten times as slow, also copies functions without an importable name.
        # Its default compression, bz2, takes several times as long as pickling.
        return pickler.loads(pickler.dumps(fn, use_zlib=True), use_zlib=True)


class StageRun:
    """One run of a stage's operations.

    Args:
        stage: the stage.
        sides: returns the elements of a side input.
        outlets: where the elements of a collection leave the stage, None for those of the sources.
    """

    def __init__(
        self,
        stage: Stage,
        sides: Callable[[Collection], Iterable[Any]],
        outlets: Mapping[Collection | None, list[Outlet]],
    ) -> None:
        self._tracker = Tracker()
        running: dict[Operation, _Running] = {}

        def output(collection: Collection | None) -> _Output:
            readers = [running[operation] for operation in stage.readers.get(collection, ())]
            return _Output(readers, outlets.get(collection, ()))

        for operation in reversed(stage.operations):
            outputs = _Outputs({tag: output(collection) for tag, collection in operation.outputs.items()})
            if None not in outputs and "None" in outputs:
                outputs[None] = outputs["None"]
            views = [_Side(side, sides(side.pvalue)) for side in operation.sides]
            running[operation] = _Running(operation, views, outputs, self._tracker)
        self._running = [running[operation] for operation in stage.operations]
        self._source = output(None)
        self.outlets = [outlet for each in outlets.values() for outlet in each]

    @property
    def reads(self) -> bool:
        """Whether elements stand for more data than they hold, such as names of files."""
        return any(isinstance(operation._fn, Holding) for operation in self._running)

    @contextmanager
    def set_up(self) -> Iterator[None]:
        """Sets up the operations, and tears them down at the end."""
        with self._tracked():
            try:
                for operation in self._running:
                    operation.setup()
                yield
            finally:
                for operation in self._running:
                    operation.teardown()

    def bundle(self, elements: Iterable[Any]) -> None:
        """Processes elements as one bundle."""
        for operation in self._running:
            operation.start()
        for element in elements:
            self._source.receive(GlobalWindows.windowed_value(element))
        for operation in self._running:
            operation.finish()

    def hold(self) -> None:
        """Prepares the side inputs for all bundles."""
        for operation in self._running:
            operation.hold()

    def forget_metrics(self) -> None:
        """Resets all metrics."""
        for operation in self._running:
            operation.metrics.reset()

    def metrics(self) -> list[MetricUpdates]:
        """The metrics of its operations."""
        return [operation.metrics.get_cumulative() for operation in self._running]

    @contextmanager
    def _tracked(self) -> Iterator[None]:
        before = statesampler.get_current_tracker()
        statesampler.set_current_tracker(self._tracker)
        try:
            yield
        finally:
            statesampler.set_current_tracker(before)
