"""Rules of the house: imports go one way, Beam is imported by few modules, functions are short, stages get kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.conftest import LONGEST
from tests.support.sources import BEAM_MODULES, ROOMS, ROOT, paths

CHECKOUT = ("schemas", "transforms", "pipelines", "benchmarks", "deploy", "docs", "examples", "tests")
"""Folders with Python code."""


REACH_BEAM = {
    "transforms/columnar/parquet.py": "writes through Beam's file systems",
    "transforms/ranking/ontology_files.py": "reads and writes wherever files lie, through Beam's file systems",
    "transforms/crawls/formats.py": "opens inputs wherever they lie, through Beam's file systems",
}
"""Modules that import Beam by way of another module, and why they do."""


MOST_LINES, MOST_PARAMETERS = 60, 9
"""Of a function, with its docstring; `self` and `cls` do not count."""

COMPILED = "transforms/lattice/closed_sets_numba.py"
"""Numba counts a reference each time an array is read from a tuple, so its functions take arrays one by one."""


class Function(NamedTuple):
    """A function of a module."""

    name: str
    lines: int
    parameters: int


class Module(NamedTuple):
    """What the rules need to know of a module; its tree is much larger.

    Attributes:
        full_imports: names of what it imports.
        functions: its functions, methods and inner ones too.
    """

    full_imports: frozenset[str]
    functions: tuple[Function, ...]

    def imports(self) -> set[str]:
        """Names of what it imports, those of this project without the leading `semrank.`."""
        return {name.removeprefix("semrank.") for name in self.full_imports}


@cache
def module_of(path: str) -> Module:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return Module(
        frozenset(full_imports(tree)),
        tuple(
            Function(each.name, (each.end_lineno or 0) - each.lineno + 1, len(parameters(each)))
            for each in functions(tree)
        ),
    )


def full_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports hide where they lead"
            assert node.level == 0, "relative imports hide where they lead"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = paths()


@pytest.mark.parametrize("path", paths(*CHECKOUT))
def test_packages_are_imported_by_their_full_name(path: str) -> None:
    """Under two names a module would be loaded twice, with two classes of each exception."""
    names = {name.split(".")[0] for name in module_of(path).full_imports}
    assert not names & {"schemas", "transforms", "pipelines"}


@pytest.mark.parametrize("path", paths("tests"))
def test_tests_import_no_other_tests(path: str) -> None:
    """Helpers that several share are in `tests/support`."""
    assert not [name for name in module_of(path).imports() if name.startswith("tests.") and ".test_" in name]


@pytest.mark.parametrize("path", MODULES)
def test_imports_go_one_way(path: str) -> None:
    package, *rest = path.split("/")
    allowed = {"schemas": {"schemas"}, "transforms": {"schemas", "transforms"}}.get(package)
    names = module_of(path).imports()
    own = {name.split(".")[0] for name in names} & {"schemas", "transforms", "pipelines", "tests", "benchmarks"}
    assert own <= (allowed or {"schemas", "transforms", "pipelines"})
    if package == "transforms" and len(rest) > 1:
        room = rest[0]
        for name in names:
            parts = name.split(".")
            if parts[0] == "transforms" and len(parts) > 1 and parts[1] in ROOMS:
                assert ROOMS.index(parts[1]) <= ROOMS.index(room), f"{path} imports {name}"


@pytest.mark.parametrize("path", MODULES)
def test_beam_is_imported_by_steps_alone(path: str) -> None:
    uses_beam = any(name.split(".")[0] == "apache_beam" for name in module_of(path).imports())
    assert not uses_beam or path.startswith("pipelines/") or path in BEAM_MODULES


def test_no_kernel_reaches_beam() -> None:
    """Nor by way of another module, but for the exceptions; an exception that is none any more has to go."""
    imported = {path: module_of(path).imports() for path in MODULES if not path.startswith("pipelines/")}
    names = {path: path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in imported}
    reaching = {path for path, found in imported.items() if any(name.split(".")[0] == "apache_beam" for name in found)}
    before: set[str] = set()
    while reaching != before:
        before = set(reaching)
        reached = {names[path] for path in before}
        reaching |= {path for path, found in imported.items() if found & reached}
    assert reaching - BEAM_MODULES == set(REACH_BEAM)


def test_every_room_is_known() -> None:
    found = {path.name for path in (ROOT / "transforms").iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert found == set(ROOMS)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[str]:
    own = function.args
    return [each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs) if each.arg not in ("self", "cls")]


@pytest.mark.parametrize("path", MODULES)
def test_functions_are_short(path: str) -> None:
    for function in module_of(path).functions:
        assert path == COMPILED or function.lines <= MOST_LINES, function.name
        assert path == COMPILED or function.parameters <= MOST_PARAMETERS, function.name


def only_renames(function: ast.FunctionDef) -> bool:
    """Whether a function does nothing but call another one with its own parameters in their order, defaults or not."""
    own = function.args
    body = [each for each in function.body if not isinstance(each, ast.Expr) or isinstance(each.value, ast.YieldFrom)]
    if len(body) != 1 or own.vararg or own.kwarg:
        return False
    value = getattr(body[0], "value", None)
    call = value.value if isinstance(value, ast.YieldFrom) else value
    if not isinstance(call, ast.Call):
        return False
    given = [each.id for each in call.args if isinstance(each, ast.Name)]
    given += [
        each.arg or "" for each in call.keywords if isinstance(each.value, ast.Name) and each.value.id == each.arg
    ]
    return given == parameters(function) and len(given) == len(call.args) + len(call.keywords)


@pytest.mark.parametrize("path", sorted(BEAM_MODULES))
def test_no_stage_function_only_renames_a_kernel(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    private = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("_")}
    assert not [each.name for each in functions(tree) if each.name in private and only_renames(each)]


def test_files_that_are_tested_first_are_there() -> None:
    assert [path for path in LONGEST if not path.is_file()] == []
