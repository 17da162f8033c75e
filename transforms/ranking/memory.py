"""What the stages of the rankers hold whole on a worker."""

from __future__ import annotations

from semrank.transforms.columnar.worker_memory import OTHER_FACTOR, Held
from semrank.transforms.context.memory import DESCRIBED
from semrank.transforms.lattice.memory import LOWER_LATTICE
from semrank.transforms.weblog.memory import LOWER_RELATIONS, VOCABULARY

PATHS = Held("paths of Part-Of", 10.0, LOWER_RELATIONS)

HIERARCHY = Held("keyword hierarchy", 4.0, VOCABULARY.lower, {"part_of": 10.0})

BASE_LATTICE = Held("base lattice", 4.0, LOWER_LATTICE, {"lattice": 17.0})

LATTICE = Held(
    "base lattice and relations",
    4.0,
    f"{LOWER_LATTICE}; relations by a larger --min-relation-support",
    {**BASE_LATTICE.factors, "isa": 7.0, "part_of": 10.0},
    # Similarities of words, ancestors in the hierarchy, and the arrays of a block of pairs: 300 MB were seen at 0.4 and
    # at 2 MB of lattice. The first two are kept up to 256 MiB each.
    {"lattice": 1024.0},
    768 << 20,
)

NAMED_LATTICE = Held("base concepts with URLs and words", 4.0, LOWER_LATTICE, {"lattice": 30.0})

GRAPH = Held("graph", 9.0, "--level host, or --host-quality equal")

# At most 100 seeds and 40 nearest pages: the concepts of their words take several times what the words do.
TOPIC_LATTICE = Held("topic's lattice", OTHER_FACTOR, DESCRIBED.lower, {"seeds": 55.0, "near": 55.0})

# Vectors, and a runner may hand on a collection as one sequence of bytes.
MODEL = Held("model of the default ranker", 2.4, DESCRIBED.lower)

# Up to 17 vectors of sums by word and by harvested page, and up to 10 that follow from them.
SUMS = Held("sums of the default ranker", 4.0, DESCRIBED.lower, {"first": 15.0, "sums": 1.5})
