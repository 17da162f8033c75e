"""Checked access to the entries of a finished folder's manifest.

A manifest may be damaged or from another version; both are reported like any other unusable input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.streams.parameters import ParameterRules

_LARGEST = 1 << 63
"""Upper bound of numbers in tables."""

_QUOTED = 60
"""Characters of an entry that an error quotes."""


@dataclass(frozen=True)
class Manifest:
    """The entries of a manifest; a nested one is addressed by the names of its path.

    Attributes:
        path: the file, for messages.
        entries: its content.
    """

    path: str
    entries: dict[str, Any]

    @classmethod
    def of(cls, folder: str, kind: str) -> Manifest:
        """The manifest of a finished folder.

        Raises:
            InputError: the folder is missing, unfinished, or of another kind.
        """
        return cls(files.join(folder, files.MANIFEST), files.read_manifest(folder, kind))

    def whole(self, *names: str) -> int:
        """A whole number of at least 0; raises InputError for anything else."""
        found = self._find(names)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < _LARGEST:
            self._refuse(names, found, "a whole number of at least 0")
        return found

    def number(self, *names: str) -> float:
        """A number; raises InputError for anything else."""
        found = self._find(names)
        if not isinstance(found, int | float) or isinstance(found, bool) or not -_LARGEST < found < _LARGEST:
            self._refuse(names, found, "a number")
        return found

    def text(self, *names: str) -> str:
        """A text; raises InputError for anything else."""
        found = self._find(names)
        if not isinstance(found, str):
            self._refuse(names, found, "a string")
        return found

    def members(self, *names: str) -> dict[str, Any]:
        """An object; raises InputError for anything else."""
        found = self._find(names)
        if not isinstance(found, dict):
            self._refuse(names, found, "an object")
        return found

    def _find(self, names: tuple[str, ...]) -> Any:
        found: Any = self.entries
        for depth, name in enumerate(names, start=1):
            if not isinstance(found, dict):
                self._refuse(names[: depth - 1], found, "an object")
            if name not in found:
                raise InputError(
                    f"{self.path}: has no '{'.'.join(names[:depth])}'; it is damaged, or another version of semrank "
                    "wrote it"
                )
            found = found[name]
        return found

    def _refuse(self, names: tuple[str, ...], found: Any, expected: str) -> NoReturn:
        raise InputError(f"{self.path}: {'.'.join(names)} is {repr(found)[:_QUOTED]}, expected {expected}")


def parameter_rules(snapshot: str) -> ParameterRules:
    """The rules for query parameters of a snapshot's URLs, for URLs of seeds and topics.

    Errors in the snapshot are reported by its readers.
    """
    try:
        rules = files.read_manifest(snapshot, "snapshot").get("url_parameters")
    except InputError:
        rules = None
    lists = [rules.get(name) if isinstance(rules, dict) else None for name in ("keep", "drop")]
    return ParameterRules.of(*(map(str, names) if isinstance(names, list) else () for names in lists))
