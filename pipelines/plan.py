"""Shows a pipeline without running it: its stages, what they read, exchange and broadcast, as text or for Mermaid.

A stage is what the local runner does in one pass over its input; other runners fuse steps in much the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam

from semrank.pipelines.local.plan import Collection, Plan, Stage, make_plan, step_name
from semrank.pipelines.local.runner import LocalRunner
from semrank.pipelines.options import BEAM_GROUP, option
from semrank.pipelines.runtime import BuildOptions

FORMS = ("text", "mermaid")


@dataclass(frozen=True)
class PlanOptions:
    """Whether the pipeline is only shown."""

    plan: str | None = option(
        None,
        "print the stages of the pipeline and what they read, exchange and broadcast, and run nothing; text if no form "
        "is given",
        BEAM_GROUP,
        metavar="FORM",
        choices=FORMS,
        implied=FORMS[0],
    )


def shown_plan(build: Callable[[beam.Pipeline], object], form: str) -> str:
    """The plan of a pipeline.

    Args:
        build: puts the pipeline together.
        form: one of `FORMS`.
    """
    pipeline = beam.Pipeline(runner=LocalRunner(), options=BuildOptions([]))
    build(pipeline)
    plan = make_plan(pipeline)
    return "\n".join(_text(plan) if form == "text" else _mermaid(plan))


def _names(labels: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(step_name(label) for label in labels))


def _steps(stage: Stage) -> list[str]:
    """What a stage does; cutting rows for an exchange is left out, unless it does nothing else."""
    labels = [operation.label for operation in stage.operations]
    return _names(label for label in labels if "/key " not in label) or _names(labels) or ["pass on"]


def _read(plan: Plan, stage: Stage) -> Iterator[tuple[str, Collection]]:
    """How a stage gets each kept collection that it reads, and the collection."""
    for source in dict.fromkeys(stage.sources):
        yield ("exchange" if source in plan.grouped else "read"), source
    for side in dict.fromkeys(stage.side_collections()):
        for part in plan.parts[side]:
            yield "broadcast", part


def _text(plan: Plan) -> Iterator[str]:
    number = {stage: place for place, stage in enumerate(plan.stages, 1)}
    exchanges = len(plan.grouped)
    yield f"{len(plan.stages)} stages, {exchanges} exchanges"
    for stage in plan.stages:
        yield f"{number[stage]:>3}. {', '.join(_steps(stage))}"
        found: dict[str, list[str]] = {}
        for kind, collection in _read(plan, stage):
            makers = sorted(number[maker] for maker in plan.producers[collection])
            found.setdefault(kind, []).append(", ".join(map(str, makers)) or "options")
        for kind, places in found.items():
            yield f"     {kind}: {'; '.join(dict.fromkeys(places))}"


def _mermaid(plan: Plan) -> Iterator[str]:
    number = {stage: place for place, stage in enumerate(plan.stages, 1)}
    yield "flowchart TD"
    for stage in plan.stages:
        lines = "<br/>".join(_steps(stage)).replace('"', "'")
        yield f'  s{number[stage]}["{lines}"]'
    arrows = {"read": "-->", "exchange": "==>|exchange|", "broadcast": "-.->"}
    edges: dict[str, None] = {}
    for stage in plan.stages:
        for kind, collection in _read(plan, stage):
            for maker in sorted(number[each] for each in plan.producers[collection]):
                edges[f"  s{maker} {arrows[kind]} s{number[stage]}"] = None
    yield from edges
