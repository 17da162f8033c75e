"""A Beam runner for batch pipelines on one machine, made for elements that are tables.

Elements pass from step to step by reference, without coders, and a collection is freed after its last reader.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from apache_beam.metrics.cells import DistributionResult
from apache_beam.metrics.execution import MetricKey, MetricResult, MetricUpdates
from apache_beam.metrics.metric import MetricResults, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import Pipeline
from apache_beam.pvalue import PCollection
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState
from apache_beam.transforms.core import Create
from apache_beam.transforms.ptransform import PTransform
from apache_beam.transforms.util import Reshuffle, ReshufflePerKey

from semrank.pipelines.local.execution import Outlet, StageRun
from semrank.pipelines.local.options import LocalSettings, local_settings
from semrank.pipelines.local.plan import Collection, Plan, Stage, make_plan
from semrank.pipelines.local.progress import Progress
from semrank.pipelines.local.store import Budget, Elements, Groups, TableFile, nbytes, whole
from semrank.pipelines.local.workers import Box, Tickets, Work, found_in, run_workers
from semrank.transforms.columnar.beam import ROWS_IN

SHARED_BYTES = 4 << 20
"""Least bytes of tables for which a stage is shared among processes, which takes some 60 ms of processor time."""


class LocalRunner(PipelineRunner):
    """Runs a pipeline in this process."""

    def apply(self, transform: PTransform[Any, Any], input: Any, options: PipelineOptions) -> Any:  # noqa: A002
        """Expands a transform, unless the runner carries it out itself."""
        if isinstance(transform, Create):
            return PCollection(input.pipeline)
        if isinstance(transform, Reshuffle | ReshufflePerKey):
            return PCollection.from_(input)
        return super().apply(transform, input, options)

    def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> LocalResult:
        """Runs a pipeline to its end.

        Raises:
            InputError: the pipeline has a transform that this runner does not know.
            Exception: what a step raised, with the step's name as a note.
        """
        run = _Run(make_plan(pipeline), local_settings(options))
        run.run_all()
        return LocalResult(run.metrics)


class LocalResult(PipelineResult):
    """The result of a pipeline that has run."""

    def __init__(self, updates: Iterable[MetricUpdates]) -> None:
        super().__init__(PipelineState.DONE)  # type: ignore[no-untyped-call]
        self._metrics = _Metrics(updates)

    def wait_until_finish(self, duration: int | None = None) -> str:  # noqa: ARG002
        """Returns the state DONE."""
        return str(self.state)

    def cancel(self) -> str:
        """Returns the state DONE: nothing runs any more."""
        return str(self.state)

    def metrics(self) -> MetricResults:
        """The metrics of the steps."""
        return self._metrics


class _Metrics(MetricResults):
    def __init__(self, updates: Iterable[MetricUpdates]) -> None:
        self._totals: dict[str, dict[MetricKey, Any]] = {self.COUNTERS: {}, self.DISTRIBUTIONS: {}, self.GAUGES: {}}
        for update in updates:
            for key, count in update.counters.items():
                counters = self._totals[self.COUNTERS]
                counters[key] = counters.get(key, 0) + count
            for kind, found in ((self.DISTRIBUTIONS, update.distributions), (self.GAUGES, update.gauges)):
                for key, data in found.items():
                    totals = self._totals[kind]
                    totals[key] = totals[key].combine(data) if key in totals else data

    def query(self, filter: MetricsFilter | None = None) -> dict[str, list[MetricResult]]:  # noqa: A002
        """Metrics by kind that match the filter."""
        results: dict[str, list[MetricResult]] = {self.STRINGSETS: [], self.BOUNDED_TRIES: [], self.HISTOGRAMS: []}
        for kind, totals in self._totals.items():
            values = {key: _result(kind, total) for key, total in totals.items() if self.matches(filter, key)}
            results[kind] = [MetricResult(key, value, value) for key, value in values.items()]
        return results


def _result(kind: str, total: Any) -> Any:
    if kind == MetricResults.COUNTERS:
        return total
    return DistributionResult(total) if kind == MetricResults.DISTRIBUTIONS else total.get_result()


class _Run:
    """The state of a run between stages."""

    def __init__(self, plan: Plan, settings: LocalSettings) -> None:
        self._plan, self._settings = plan, settings
        self._budget = Budget(settings.exchange_bytes, settings.folder)
        self._kept: dict[Collection, Elements | Groups] = {}
        self._left = dict(plan.readers)
        self._progress = Progress(len(plan.stages))
        self._rows = 0
        self.metrics: list[MetricUpdates] = []

    def run_all(self) -> None:
        for collection, elements in self._plan.constants.items():
            self._kept[collection] = Elements(self._budget, elements)
        for collection in self._plan.grouped:
            self._kept[collection] = Groups(self._budget)
        for stage in self._plan.stages:
            self._run_stage(stage)

    def _run_stage(self, stage: Stage) -> None:
        self._progress.start(stage.name, self._rows)
        run = StageRun(stage, self._broadcast, self._outlets(stage))
        items = _Items()
        for source in stage.sources:
            kept = self._kept[source]
            items.add(kept, drained=self._release(source))
        with run.set_up():
            if self._settings.workers > 1 and items.worth_sharing(reads=run.reads):
                measured = [*self._share(run, items), *run.metrics()]
            else:
                run.bundle(self._followed(items))
                measured = run.metrics()
        self.metrics += measured
        self._rows += sum(
            count
            for update in measured
            for key, count in update.counters.items()
            if key.metric.name.endswith(f"/{ROWS_IN}")
        )
        for side in stage.side_collections():
            for part in self._plan.parts[side]:
                self._release(part)

    def _followed(self, items: _Items) -> Iterator[Any]:
        """The elements, while progress is reported."""
        for number, element in enumerate(items):
            self._progress.tick(number / items.count)
            yield element

    def _share(self, run: StageRun, items: _Items) -> Iterator[MetricUpdates]:
        """Runs a stage in several processes and collects their results."""
        run.hold()
        listed = list(items.kept())
        folder = self._settings.folder
        tickets = Tickets(len(listed), folder)
        files = [TableFile(folder) for _ in range(min(self._settings.workers, len(listed)))]

        def work(file: TableFile) -> Work:
            boxes = [Box(file) for _ in run.outlets]
            for outlet, box in zip(run.outlets, boxes, strict=True):
                outlet.take = box.add
            run.forget_metrics()
            run.bundle(whole(*listed[ticket]) for ticket in tickets)
            return Work({number: box.elements for number, box in enumerate(boxes)}, run.metrics())

        def waiting() -> None:
            self._progress.tick(tickets.taken() / len(listed))

        for file, done in zip(files, run_workers(files, work, waiting), strict=True):
            for number, elements in done.elements.items():
                for element in elements:
                    run.outlets[number].take(found_in(element, file))
            yield from done.metrics

    def _broadcast(self, collection: Collection) -> list[Any]:
        found = []
        for part in self._plan.parts[collection]:
            kept = self._kept[part]
            found += [whole(item, isinstance(kept, Groups)) for item in kept.items()]
        return found

    def _release(self, collection: Collection) -> bool:
        """Removes a reader; returns whether it was the last one."""
        self._left[collection] -= 1
        if self._left[collection]:
            return False
        del self._kept[collection]
        return True

    def _outlets(self, stage: Stage) -> dict[Collection | None, list[Outlet]]:
        outlets: dict[Collection | None, list[Outlet]] = {}
        for operation in stage.operations:
            for output in operation.outputs.values():
                if self._left.get(output):
                    kept = self._kept[output] = Elements(self._budget)
                    outlets.setdefault(output, []).append(Outlet(kept.add))
        for source, groups in stage.groups.items():
            taken = [Outlet(self._kept[group].add) for group in groups if self._left.get(group)]
            outlets.setdefault(source, []).extend(taken)
        return outlets


class _Items:
    """The elements that a stage takes, from all of its sources."""

    def __init__(self) -> None:
        self._sources: list[tuple[Elements | Groups, bool]] = []
        self.count = 0

    def add(self, kept: Elements | Groups, *, drained: bool) -> None:
        self._sources.append((kept, drained))
        self.count += len(kept)

    def kept(self) -> Iterator[tuple[Any, bool]]:
        """Stored elements, and whether they are groups."""
        for source, drained in self._sources:
            grouped = isinstance(source, Groups)
            for item in source.drain() if drained else source.items():
                yield item, grouped

    def __iter__(self) -> Iterator[Any]:
        return (whole(item, grouped) for item, grouped in self.kept())

    def worth_sharing(self, *, reads: bool) -> bool:
        """Whether there are several elements, large enough to pay for a process."""
        if self.count < 2:
            return False
        size = 0
        for item in itertools.chain.from_iterable(source.items() for source, _ in self._sources):
            size += SHARED_BYTES if (found := nbytes(item)) is None and reads else found or 0
            if size >= SHARED_BYTES:
                return True
        return False
