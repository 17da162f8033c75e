"""A Beam runner for batch pipelines on one machine, made for elements that are tables.

Elements go from step to step by reference, without coders, and a collection is freed after its last reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apache_beam.metrics.cells import DistributionResult
from apache_beam.metrics.execution import MetricKey, MetricResult, MetricsContainer
from apache_beam.metrics.metric import MetricResults, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import Pipeline
from apache_beam.pvalue import PCollection
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState
from apache_beam.transforms.core import Create
from apache_beam.transforms.ptransform import PTransform
from apache_beam.transforms.util import Reshuffle, ReshufflePerKey

from semrank.pipelines.local.execution import Sink, StageRun
from semrank.pipelines.local.plan import Collection, Plan, Stage, make_plan
from semrank.pipelines.local.store import Elements, Groups


class LocalRunner(PipelineRunner):
    """Runs a pipeline in this process."""

    def apply(self, transform: PTransform[Any, Any], input: Any, options: PipelineOptions) -> Any:  # noqa: A002
        """Expands a transform, unless the runner carries it out itself."""
        if isinstance(transform, Create):
            return PCollection(input.pipeline)
        if isinstance(transform, Reshuffle | ReshufflePerKey):
            return PCollection.from_(input)
        return super().apply(transform, input, options)

    def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> LocalResult:  # noqa: ARG002
        """Runs a pipeline to its end.

        Raises:
            InputError: the pipeline has a transform that this runner does not know.
            Exception: what a step raised, with the step's name as a note.
        """
        run = _Run(make_plan(pipeline))
        run.run_all()
        return LocalResult(run.metrics)


class LocalResult(PipelineResult):
    """The result of a pipeline that has run."""

    def __init__(self, containers: Iterable[MetricsContainer]) -> None:
        super().__init__(PipelineState.DONE)  # type: ignore[no-untyped-call]
        self._metrics = _Metrics(containers)

    def wait_until_finish(self, duration: int | None = None) -> str:  # noqa: ARG002
        """Returns the state DONE."""
        return str(self.state)

    def cancel(self) -> str:
        """Returns the state DONE: nothing runs any more."""
        return str(self.state)

    def metrics(self) -> MetricResults:
        """What the steps measured."""
        return self._metrics


class _Metrics(MetricResults):
    def __init__(self, containers: Iterable[MetricsContainer]) -> None:
        self._totals: dict[str, dict[MetricKey, Any]] = {self.COUNTERS: {}, self.DISTRIBUTIONS: {}, self.GAUGES: {}}
        for container in containers:
            updates = container.get_cumulative()
            for key, count in updates.counters.items():
                counters = self._totals[self.COUNTERS]
                counters[key] = counters.get(key, 0) + count
            for kind, found in ((self.DISTRIBUTIONS, updates.distributions), (self.GAUGES, updates.gauges)):
                for key, data in found.items():
                    totals = self._totals[kind]
                    totals[key] = totals[key].combine(data) if key in totals else data

    def query(self, filter: MetricsFilter | None = None) -> dict[str, list[MetricResult]]:  # noqa: A002
        """Metrics by kind, those that the filter lets pass."""
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
    """What a run keeps between stages."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._kept: dict[Collection, Elements | Groups] = {}
        self._left = dict(plan.readers)
        self.metrics: list[MetricsContainer] = []

    def run_all(self) -> None:
        for collection, elements in self._plan.constants.items():
            self._kept[collection] = Elements(elements)
        for collection in self._plan.grouped:
            self._kept[collection] = Groups()
        for stage in self._plan.stages:
            self._run_stage(stage)

    def _run_stage(self, stage: Stage) -> None:
        run = StageRun(stage, self._broadcast, self._sinks(stage))
        run.run(self._elements(stage))
        self.metrics += run.metrics()
        for side in stage.side_collections():
            for part in self._plan.parts[side]:
                self._release(part)

    def _elements(self, stage: Stage) -> Iterator[Any]:
        for source in stage.sources:
            kept = self._kept[source]
            yield from kept.drain() if self._release(source) else kept

    def _broadcast(self, collection: Collection) -> list[Any]:
        return [element for part in self._plan.parts[collection] for element in self._kept[part]]

    def _release(self, collection: Collection) -> bool:
        """Counts a reader down; whether it was the last one."""
        self._left[collection] -= 1
        if self._left[collection]:
            return False
        del self._kept[collection]
        return True

    def _sinks(self, stage: Stage) -> dict[Collection | None, list[Sink]]:
        sinks: dict[Collection | None, list[Sink]] = {}
        for operation in stage.operations:
            for output in operation.outputs.values():
                if self._left.get(output):
                    kept = self._kept[output] = Elements()
                    sinks.setdefault(output, []).append(kept.add)
        for source, groups in stage.groups.items():
            sinks.setdefault(source, []).extend(self._kept[group].add for group in groups if self._left.get(group))
        return sinks
