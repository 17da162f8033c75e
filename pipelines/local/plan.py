"""Turns an applied Beam pipeline into stages: chains of ParDos between materialised collections.

A collection is materialised if it is exchanged (GroupByKey), spread (Reshuffle), broadcast, or merged from several
(Flatten); other elements pass from one ParDo to the next within a stage. A stage reads each of its sources once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from apache_beam.pipeline import AppliedPTransform, Pipeline
from apache_beam.pvalue import AsSideInput, PValue
from apache_beam.transforms.core import Create, Flatten, GroupByKey, Impulse, ParDo
from apache_beam.transforms.util import Reshuffle, ReshufflePerKey

from semrank.schemas.errors import InputError

Collection = PValue
"""A PCollection; Beam's graph has them by this name."""

_LEAVES = (Create, GroupByKey, Reshuffle, ReshufflePerKey)
"""Composites that the runner executes itself."""


_INNER = {"map", "merge", "gather", "read", "write", "once", "files", "exchange", "spread"}
"""Last parts of the labels of transforms inside a named step."""


@dataclass(eq=False)
class Operation:
    """A ParDo of a stage.

    Attributes:
        label: its full name in the pipeline.
        transform: the ParDo.
        outputs: collections by tag; the main one has the tag None.
        sides: its side inputs, and how it views them.
    """

    label: str
    transform: ParDo
    outputs: dict[str | int | None, Collection]
    sides: Sequence[AsSideInput]


@dataclass(eq=False)
class Stage:
    """Operations that run together.

    Attributes:
        sources: materialised collections whose elements it takes.
        operations: its ParDos, each after those that feed it.
        readers: the operations that consume a collection, by collection; None stands for the sources.
        groups: the groupings that a collection feeds, by collection; None stands for the sources.
        stages_before: all stages that must run before it.
    """

    sources: tuple[Collection, ...]
    operations: list[Operation] = field(default_factory=list)
    readers: dict[Collection | None, list[Operation]] = field(default_factory=dict)
    groups: dict[Collection | None, list[Collection]] = field(default_factory=dict)
    stages_before: set[Stage] = field(default_factory=set)

    @property
    def name(self) -> str:
        """The step that its last operation belongs to."""
        return step_name(self.operations[-1].label) if self.operations else "exchange"

    def side_collections(self) -> Iterator[Collection]:
        """The side inputs of its operations."""
        return (side.pvalue for operation in self.operations for side in operation.sides)


@dataclass
class Plan:
    """How a pipeline is run.

    Attributes:
        stages: in the order in which they run.
        constants: elements of collections that no stage produces.
        grouped: the materialised collections that hold groups.
        parts: the materialised collections that make up each collection that is read or broadcast.
        producers: the stages that produce each collection.
        readers: number of times that a materialised collection is read.
    """

    stages: list[Stage] = field(default_factory=list)
    constants: dict[Collection, Sequence[Any]] = field(default_factory=dict)
    grouped: set[Collection] = field(default_factory=set)
    parts: dict[Collection, tuple[Collection, ...]] = field(default_factory=dict)
    producers: dict[Collection, set[Stage]] = field(default_factory=dict)
    readers: dict[Collection, int] = field(default_factory=dict)


def step_name(label: str) -> str:
    """The step to which a label of the pipeline belongs."""
    parts = [part for part in label.split("/") if not part.startswith("ParDo(")]
    while len(parts) > 1 and (parts[-1] in _INNER or parts[-1].startswith("key ")):
        parts.pop()
    return "/".join(parts)


def make_plan(pipeline: Pipeline) -> Plan:
    """Plans a pipeline.

    Raises:
        InputError: the pipeline has a transform that the local runner does not know.
    """
    return _Planner().plan(pipeline)


def primitives(applied: AppliedPTransform) -> Iterator[AppliedPTransform]:
    """The transforms that the runner executes, in the order in which they were applied."""
    if isinstance(applied.transform, _LEAVES):
        yield applied
    elif applied.parts:
        for part in applied.parts:
            yield from primitives(part)
    elif applied.transform is not None and not _passes_on(applied):
        yield applied


def _passes_on(applied: AppliedPTransform) -> bool:
    """Whether a transform returns its inputs, or nothing."""
    return set(applied.outputs.values()) <= set(applied.inputs)


class _Planner:
    def __init__(self) -> None:
        self._plan = Plan()
        self._open: set[Collection] = set()

    def plan(self, pipeline: Pipeline) -> Plan:
        for applied in primitives(pipeline._root_transform()):
            self._add(applied)
        plan = self._plan
        plan.stages = _ordered(plan.stages)
        for stage in plan.stages:
            for side in stage.side_collections():
                self._count(plan.parts[side])
            self._count(stage.sources)
        return plan

    def _count(self, collections: Sequence[Collection]) -> None:
        for collection in collections:
            self._plan.readers[collection] = self._plan.readers.get(collection, 0) + 1

    def _add(self, applied: AppliedPTransform) -> None:
        transform = applied.transform
        if isinstance(transform, ParDo):
            self._add_operation(applied, transform)
            return
        (output,) = applied.outputs.values()
        if isinstance(transform, Create | Impulse):
            self._plan.constants[output] = [b""] if isinstance(transform, Impulse) else transform.values
            self._add_kept(output, set())
        elif isinstance(transform, Flatten):
            self._plan.parts[output] = tuple(part for each in applied.inputs for part in self._plan.parts[each])
        elif isinstance(transform, Reshuffle | ReshufflePerKey):
            self._plan.parts[output] = self._plan.parts[applied.inputs[0]]
        elif isinstance(transform, GroupByKey):
            self._add_groups(applied, output)
        else:
            raise _unknown(applied)

    def _add_kept(self, collection: Collection, producers: set[Stage]) -> None:
        self._plan.producers[collection] = producers
        self._plan.parts[collection] = (collection,)

    def _add_groups(self, applied: AppliedPTransform, output: Collection) -> None:
        (collection,) = applied.inputs
        if not collection.windowing.is_default():
            raise _unknown(applied, "groups by windows")
        producers: set[Stage] = set()
        for part in self._plan.parts[collection]:
            # A collection that no operation produces gets a stage that only forwards it.
            stage, source = (self._stage_of(part), part) if part in self._open else (self._new_stage((part,)), None)
            stage.groups.setdefault(source, []).append(output)
            producers.add(stage)
        self._plan.grouped.add(output)
        self._add_kept(output, producers)

    def _stage_of(self, collection: Collection) -> Stage:
        (stage,) = self._plan.producers[collection]
        return stage

    def _add_operation(self, applied: AppliedPTransform, transform: ParDo) -> None:
        signature = transform._signature
        if signature.is_splittable_dofn() or signature.is_stateful_dofn():
            raise _unknown(applied, "splittable or stateful function")
        operation = Operation(applied.full_label, transform, dict(applied.outputs), list(applied.side_inputs))
        (collection,) = applied.inputs
        before = {
            stage
            for side in operation.sides
            for part in self._plan.parts[side.pvalue]
            for stage in self._plan.producers[part]
        }
        stage, source = self._place(collection, before)
        self._require(stage, before)
        stage.operations.append(operation)
        stage.readers.setdefault(source, []).append(operation)
        for output in operation.outputs.values():
            self._add_kept(output, {stage})
            self._open.add(output)

    def _place(self, collection: Collection, before: set[Stage]) -> tuple[Stage, Collection | None]:
        """The stage that an operation on a collection joins, and the collection in it that it reads."""
        blocked = before | {stage for stage in self._plan.stages if any(stage in each.stages_before for each in before)}
        if collection in self._open and self._stage_of(collection) not in blocked:
            return self._stage_of(collection), collection
        sources = self._plan.parts[collection]
        for stage in self._plan.stages:
            if stage.sources == sources and stage not in blocked:
                return stage, None
        return self._new_stage(sources), None

    def _new_stage(self, sources: tuple[Collection, ...]) -> Stage:
        stage = Stage(sources)
        self._plan.stages.append(stage)
        self._require(stage, {earlier for source in sources for earlier in self._plan.producers[source]})
        return stage

    def _require(self, stage: Stage, before: set[Stage]) -> None:
        """Orders a stage behind others; `stages_before` stays transitively closed."""
        closed = before.union(*(earlier.stages_before for earlier in before))
        for later in self._plan.stages:
            if later is stage or stage in later.stages_before:
                later.stages_before |= closed


def _unknown(applied: AppliedPTransform, what: str = "") -> InputError:
    name = type(applied.transform).__name__
    reason = f" ({what})" if what else ""
    return InputError(
        f"'{applied.full_label}': the local runner does not support the transform {name}{reason}; "
        "--runner DirectRunner runs it"
    )


def _ordered(stages: Sequence[Stage]) -> list[Stage]:
    ordered: list[Stage] = []
    done: set[Stage] = set()
    waiting = list(stages)
    while waiting:
        ready = next(stage for stage in waiting if stage.stages_before <= done)
        waiting.remove(ready)
        done.add(ready)
        ordered.append(ready)
    return ordered
