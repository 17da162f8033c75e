"""The stages of a pipeline, and all states that stages hold whole on a worker."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

from semrank.transforms.columnar.beam import _StageDoFn
from semrank.transforms.columnar.worker_memory import OTHER, Held
from semrank.transforms.context.memory import DESCRIBED, HARVEST
from semrank.transforms.crawls.memory import MOVES
from semrank.transforms.lattice.memory import CONTEXT
from semrank.transforms.ranking.memory import (
    BASE_LATTICE,
    GRAPH,
    HIERARCHY,
    LATTICE,
    MODEL,
    NAMED_LATTICE,
    PATHS,
    SUMS,
    TOPIC_LATTICE,
)
from semrank.transforms.weblog.memory import VOCABULARY

HELD = (
    HARVEST,
    VOCABULARY,
    PATHS,
    HIERARCHY,
    CONTEXT,
    BASE_LATTICE,
    LATTICE,
    NAMED_LATTICE,
    DESCRIBED,
    TOPIC_LATTICE,
    MODEL,
    SUMS,
    GRAPH,
    MOVES,
    OTHER,
)
"""All states that a stage holds."""


def stages_of(pipeline: beam.Pipeline) -> dict[str, tuple[Held, tuple[str, ...]]]:
    """What each stage of a pipeline holds, and the names of the inputs that it holds whole."""
    found: dict[str, tuple[Held, tuple[str, ...]]] = {}

    class Stages(PipelineVisitor):
        def visit_transform(self, transform_node: AppliedPTransform) -> None:
            fn = getattr(transform_node.transform, "fn", None)
            if isinstance(fn, _StageDoFn):
                found[fn._stage] = fn.holds, fn._side_names

    pipeline.visit(Stages())
    return found
