"""What is kept of collections between stages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any


class Elements:
    """The elements of a collection, in the order in which they came."""

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._elements = deque(elements)

    def add(self, element: Any) -> None:
        """Adds an element."""
        self._elements.append(element)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def drain(self) -> Iterator[Any]:
        """The elements; each one is forgotten here before the next."""
        while self._elements:
            yield self._elements.popleft()


class Groups:
    """The elements of a collection of pairs, grouped by key."""

    def __init__(self) -> None:
        self._groups: dict[Any, list[Any]] = {}

    def add(self, element: tuple[Any, Any]) -> None:
        """Adds a pair of key and value."""
        key, value = element
        self._groups.setdefault(key, []).append(value)

    def __iter__(self) -> Iterator[tuple[Any, list[Any]]]:
        return iter(self._groups.items())

    def drain(self) -> Iterator[tuple[Any, list[Any]]]:
        """Pairs of key and values; each one is forgotten here before the next."""
        for key in list(self._groups):
            yield key, self._groups.pop(key)
