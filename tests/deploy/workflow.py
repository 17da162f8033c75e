"""Runs a workflow of Google Cloud Workflows as far as ours go: the steps they use, on connectors that a test stands in.

Expressions are Python's syntax as far as they are used; maps are read with dots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import yaml

Connector = Callable[..., Any]


class RaisedError(Exception):
    """A step raised; `value` is what it raised."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class _ReturnError(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Workflow:
    """A workflow with its connectors by name; each takes the arguments of a call by name."""

    def __init__(self, text: str, connectors: Mapping[str, Connector], now: float) -> None:
        self._parts: dict[str, Any] = yaml.safe_load(text)
        self._connectors = connectors
        self._functions = {
            "sys": SimpleNamespace(now=lambda: now),
            "time": SimpleNamespace(format=lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat()),
            "text": SimpleNamespace(
                substring=lambda text, begin, end: text[begin:end], url_encode=lambda text: quote(text, safe="")
            ),
            "string": str,
            "null": None,
        }

    def run(self, part: str = "main", **arguments: Any) -> Any:
        """What the part returns."""
        unknown = set(self._parts[part]) - {"params", "steps"}
        assert not unknown, unknown
        assert set(arguments) == set(self._parts[part].get("params", []))
        try:
            self._steps(self._parts[part]["steps"], dict(arguments))
        except _ReturnError as returned:
            return returned.value
        return None

    def _steps(self, steps: list[dict[str, Any]], variables: dict[str, Any]) -> str | None:
        """Runs steps; gives the name to which they jump if it is not one of theirs."""
        names = [name for step in steps for name in step]
        assert len(names) == len(set(names))
        position = 0
        while position < len(steps):
            (step,) = steps[position].values()
            target = self._step(step, variables)
            if target is None:
                position += 1
            elif target in names:
                position = names.index(target)
            else:
                return target
        return None

    def _step(self, step: dict[str, Any], variables: dict[str, Any]) -> str | None:
        known = {"assign", "call", "args", "result", "switch", "for", "try", "except", "return", "raise", "next"}
        assert set(step) <= known, set(step) - known
        for assignment in step.get("assign", []):
            ((name, value),) = assignment.items()
            variables[name] = self._value(value, variables)
        if "call" in step:
            self._call(step, variables)
        for case in step.get("switch", []):
            if self._value(case["condition"], variables):
                return self._leave(case, variables)
        if "for" in step:
            self._loop(step["for"], variables)
        if "try" in step:
            try:
                self._step(step["try"], variables)
            except RaisedError as raised:
                self._steps(step["except"]["steps"], {**variables, step["except"]["as"]: raised.value})
        return self._leave(step, variables)

    def _leave(self, step: dict[str, Any], variables: dict[str, Any]) -> str | None:
        if "return" in step:
            raise _ReturnError(self._value(step["return"], variables))
        if "raise" in step:
            raise RaisedError(self._value(step["raise"], variables))
        target: str | None = step.get("next")
        return target

    def _call(self, step: dict[str, Any], variables: dict[str, Any]) -> None:
        arguments = self._value(step.get("args", {}), variables)
        name = step["call"]
        result = self.run(name, **arguments) if name in self._parts else self._connectors[name](**arguments)
        if "result" in step:
            variables[step["result"]] = result

    def _loop(self, loop: dict[str, Any], variables: dict[str, Any]) -> None:
        first, last = self._value(loop["range"], variables)
        for value in range(first, last + 1):
            # What a loop makes ends with it; what was there before keeps the value that the loop gave it.
            inner = {**variables, loop["value"]: value}
            target = self._steps(loop["steps"], inner)
            variables.update({name: inner[name] for name in variables})
            assert target in (None, "continue"), target

    def _value(self, value: Any, variables: dict[str, Any]) -> Any:
        if isinstance(value, dict):
            return {name: self._value(inner, variables) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner, variables) for inner in value]
        if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
            return eval(value[2:-1], {"__builtins__": {}, **self._functions, **variables})
        return value
