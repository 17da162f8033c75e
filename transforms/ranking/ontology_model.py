"""Ontologies as the ranker needs them: classes, their relations, and the words that stand for them (EC, Defs. 1-4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import list_parts
from semrank.transforms.context.words import lemmas_of

DISCOUNT = 0.5
"""n of EC Eq. 1: what a class is worth for each relation between it and the topic."""

LARGEST_SIGMA = 1e12
"""Largest learned factor: the factors of successive rounds multiply, and weights must stay finite."""

WORD_SCHEMA = pa.schema([pa.field("word", pa.string()), pa.field("class", pa.int64())])
"""A lemma that stands for the class with this number."""


@dataclass(frozen=True)
class OntologyClass:
    """A class.

    Attributes:
        name: its identifier, unique in the ontology.
        label: what people call it.
        words: words and names that stand for it (EC Def. 2).
        parents: names of the classes that it is a kind of.
        wholes: names of the classes that it is a part of.
        related: names of the classes that its object properties lead to.
        sigma: learned factor of its weight (EC Eq. 4), 1 where nothing is learned.
    """

    name: str
    label: str
    words: frozenset[str]
    parents: frozenset[str] = frozenset()
    wholes: frozenset[str] = frozenset()
    related: frozenset[str] = frozenset()
    sigma: float = 1.0


@dataclass(frozen=True)
class ObjectProperty:
    """A named relation between classes (R of EC Def. 1).

    Attributes:
        name: its identifier, unique among the properties of the ontology.
        label: what people call it (EC Def. 2).
        ends: (class, class) that it leads from and to; each is `related` to the other, too.
        parents: names of the properties that it is a sub-relation of (H_r of EC Def. 1).
        words: other words and names that stand for it (L_r of EC Def. 2); scores count those of classes alone (Eq. 2).
    """

    name: str
    label: str
    ends: frozenset[tuple[str, str]]
    parents: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ontology:
    """Classes by name, the one that is the topic, and the named relations between classes.

    Raises:
        InputError: there is no class, the topic is none of them, or a relation leads to a class or property that is
            not there.
    """

    classes: Mapping[str, OntologyClass]
    topic: str
    source: str = field(default="ontology", compare=False)
    properties: Mapping[str, ObjectProperty] = field(default_factory=dict)
    _word_tables: dict[str, pa.Table] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.classes:
            raise InputError(f"{self.source}: has no class, expected at least one")
        if self.topic not in self.classes:
            known = ", ".join(sorted(self.classes)[:8])
            raise InputError(
                f"{self.source}: found the topic '{self.topic}', expected one of its classes ({known}, ...)"
            )
        for known_class in self.classes.values():
            for other in (*known_class.parents, *known_class.wholes, *known_class.related):
                if other not in self.classes:
                    raise InputError(
                        f"{self.source}: '{known_class.name}' is related to '{other}', which is not one of its classes"
                    )

        for relation in self.properties.values():
            ends = {end for pair in relation.ends for end in pair}
            missing = [(end, "classes") for end in sorted(ends - self.classes.keys())]
            missing += [(parent, "properties") for parent in sorted(relation.parents - self.properties.keys())]
            for other, known in missing:
                raise InputError(
                    f"{self.source}: '{relation.name}' is related to '{other}', which is not one of its {known}"
                )

    @property
    def names(self) -> list[str]:
        """The classes' names in ascending order; a class's number is its place."""
        return sorted(self.classes)

    def distances(self) -> np.ndarray:
        """d(C, T): relations on the shortest way between each class and the topic, either way; inf without one."""
        names = self.names
        near: dict[str, set[str]] = {name: set() for name in names}
        for known in self.classes.values():
            for other in known.parents | known.wholes | known.related:
                near[known.name].add(other)
                near[other].add(known.name)
        distance = {self.topic: 0}
        front = [self.topic]
        while front:
            following = sorted({other for name in front for other in near[name]} - distance.keys())
            distance |= dict.fromkeys(following, distance[front[0]] + 1)
            front = following
        return np.array([distance.get(name, np.inf) for name in names], dtype=np.float64)

    def weights(self, discount: float = DISCOUNT) -> np.ndarray:
        """W of each class (EC Eq. 1 and 4): sigma n^d, 0 for classes without a way to the topic; float64[k]."""
        sigma = np.array([self.classes[name].sigma for name in self.names])
        distances = self.distances()
        return np.where(np.isfinite(distances), sigma * discount**distances, 0.0)

    def word_table(self, language: str) -> pa.Table:
        """The lemmas that stand for classes, a sorted table of `WORD_SCHEMA`; each lemma of a longer name is one."""
        if language not in self._word_tables:
            self._word_tables[language] = self._find_words(language)
        return self._word_tables[language]

    def _find_words(self, language: str) -> pa.Table:
        rows: set[tuple[str, int]] = set()
        for number, name in enumerate(self.names):
            known = self.classes[name]
            texts = pa.array(sorted({known.label, *known.words}), pa.string())
            lemmas = list_parts(lemmas_of(texts, fallback=language))[1]
            rows |= {(lemma, number) for lemma in lemmas.to_pylist()}
        ordered = sorted(rows)
        return pa.table([[word for word, _ in ordered], [number for _, number in ordered]], schema=WORD_SCHEMA)


def spaced(name: str) -> str:
    """A name in words: `PaymentMethod`, `payment_method` -> `payment method`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name).lower()
