#!/usr/bin/env python3
"""What the project is made of: pinned versions, known weaknesses, licences and a bill of materials.

    python .ci/supply_chain.py constraints           # writes constraints.txt from what is installed here
    python .ci/supply_chain.py locks                 # writes deploy/locks/*.txt: what images install, with hashes
    python .ci/supply_chain.py audit                 # known weaknesses of the pinned versions (needs the network)
    python .ci/supply_chain.py licences              # prints the table of docs/safety.md
    python .ci/supply_chain.py sbom sbom.json        # writes a bill of materials, CycloneDX 1.6

All but `constraints` need the extra `audit`; `locks` needs the network as well. Without a network the audit is skipped,
which it says, with status 0. A weakness that does no harm here is let pass by an entry in
.ci/accepted_weaknesses.toml, with the reason.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS = ("fast", "test")
"""What is pinned besides what always is needed."""

ACCEPTED = ROOT / ".ci" / "accepted_weaknesses.toml"
"""Weaknesses that are let pass."""

LOCK_FOLDER = ROOT / "deploy" / "locks"
LOCKS = {"fast": ("fast",), "fast-gcp": ("fast", "gcp"), "fast-aws": ("fast", "aws")}
"""Lock file -> the extras that an image with it has."""

AUDIT_SECONDS = 300
"""After which the list counts as out of reach; with it a look-up takes some 20 s."""

HEAD = """\
# Versions that the tests ran with: pip install -c constraints.txt .[fast,test]
# Written by `python .ci/supply_chain.py constraints`; complete, with what these packages need in turn.
"""


def closure(extras: Sequence[str]) -> dict[str, str]:
    """Versions of all distributions that the project needs, by name.

    Raises:
        importlib.metadata.PackageNotFoundError: one of them is not installed.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    declared = _declared()
    own = [*declared["install_requires"], *(text for extra in extras for text in declared["extras_require"][extra])]
    open_requirements = list(map(Requirement, own))
    while open_requirements:
        requirement = open_requirements.pop()
        name = canonicalize_name(requirement.name)
        fresh = [extra for extra in ("", *sorted(requirement.extras)) if (name, extra) not in seen]
        if fresh:
            seen.update((name, extra) for extra in fresh)
            found[name] = importlib.metadata.version(requirement.name)
            open_requirements += _requirements(requirement.name, fresh)
    return dict(sorted(found.items()))


def _declared() -> dict[str, Any]:
    """What the project's setup declares."""
    declared: dict[str, Any] = {}
    with mock.patch("setuptools.setup", lambda **arguments: declared.update(arguments)):
        runpy.run_path(str(ROOT / "setup.py"))
    return declared


def _requirements(distribution: str, extras: Sequence[str]) -> Iterator[Requirement]:
    """What a distribution needs here with any of some extras; the empty one stands for none."""
    for text in importlib.metadata.requires(distribution) or []:
        requirement = Requirement(text)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            yield requirement


def pinned() -> dict[str, str]:
    """Versions by name, as `constraints.txt` has them."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if line and not line.startswith("#"))
    return {name: version for name, _, version in pairs}


def write_constraints() -> int:
    """Writes `constraints.txt`."""
    lines = [f"{name}=={version}\n" for name, version in closure(EXTRAS).items()]
    CONSTRAINTS.write_text(HEAD + "".join(lines), encoding="utf-8")
    print(f"{CONSTRAINTS.name}: {len(lines)} distributions")
    return 0


def write_locks() -> int:
    """Writes the files that images are installed from, what builds the package among it: versions with their hashes."""
    needed = "\n".join(build_requirements())
    for name, extras in LOCKS.items():
        chosen = [word for extra in extras for word in ("--extra", extra)]
        output = LOCK_FOLDER / f"{name}.txt"
        command = ["uv", "pip", "compile", "-q", "--generate-hashes", "--no-header", "--no-annotate", *chosen]
        command += ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
        command += ["-c", str(CONSTRAINTS), "setup.py", "-", "-o", str(output)]
        subprocess.run(command, input=needed, text=True, check=True, cwd=ROOT)
        print(f"{output.relative_to(ROOT)}: {len(locked(name))} distributions")
    return 0


def build_requirements() -> list[str]:
    """What builds the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements: list[str] = settings["build-system"]["requires"]
    return requirements


def locked(name: str) -> dict[str, str]:
    """Versions by name of a lock file."""
    found = re.findall(
        r"^([\w.-]+)==([^ ;\\]+)", (LOCK_FOLDER / f"{name}.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    return {canonicalize_name(distribution): version for distribution, version in found}


def accepted(path: Path) -> dict[tuple[str, str], str]:
    """Reasons of weaknesses that are let pass, by distribution and id.

    Raises:
        ValueError: an entry lacks something.
    """
    reasons = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("accepted", []):
        if set(entry) != {"id", "distribution", "reason"} or not all(str(value).strip() for value in entry.values()):
            raise ValueError(f"{path.name}: found the entry {entry}, expected id, distribution and reason")
        reasons[canonicalize_name(entry["distribution"]), entry["id"]] = entry["reason"]
    return reasons


def audit() -> int:
    """Looks the pinned versions up; gives 1 where one has a known weakness that is not accepted."""
    reasons = accepted(ACCEPTED)
    if importlib.util.find_spec("pip_audit") is None:
        print("audit skipped: pip-audit is not installed, expected the extra audit")
        return 0
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip"]
    command += ["--progress-spinner", "off", "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=AUDIT_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"audit skipped: the list of weaknesses does not answer within {AUDIT_SECONDS} s")
        return 0
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.splitlines() or ["no reason given"])[-1]
        print(f"audit skipped: the list of weaknesses can't be had: {reason}")
        return 0
    looked_up = [dependency for dependency in dependencies if "vulns" in dependency]
    if not looked_up:
        print(f"audit skipped: none of {len(dependencies)} distributions is in the list that can be reached from here")
        return 0
    found = {
        (canonicalize_name(dependency["name"]), weakness["id"]): (dependency["version"], weakness["fix_versions"])
        for dependency in looked_up
        for weakness in dependency["vulns"]
    }
    for (name, weakness), (version, fixed) in sorted(found.items()):
        told = f"accepted: {reasons[name, weakness]}" if (name, weakness) in reasons else "NOT ACCEPTED"
        print(f"{name} {version}: {weakness}, mended in {', '.join(fixed) or 'no version yet'}; {told}")
    for name, weakness in sorted(reasons.keys() - found.keys()):
        print(f"{name}: {weakness} is accepted but no longer found, its entry can go")
    refused = found.keys() - reasons.keys()
    print(
        f"{len(looked_up)} of {len(dependencies)} distributions looked up, {len(found)} weaknesses found, "
        f"{len(refused)} of them not accepted"
    )
    return int(bool(refused))


def licences() -> int:
    """Prints a table of the pinned distributions with their licences."""
    command = [sys.executable, "-m", "piplicenses", "--from=mixed", "--format=json", "--packages", *pinned()]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print("| distribution | version | licence |\n|---|---|---|")
    for row in sorted(rows, key=lambda row: canonicalize_name(row["Name"])):
        licence = " ".join(row["License"].split("\n")[0].split())
        print(f"| {row['Name']} | {row['Version']} | {licence[:60]} |")
    return 0


def sbom(output: str) -> int:
    """Writes the bill of materials of the pinned distributions."""
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(CONSTRAINTS), "--spec-version", "1.6"]
    return subprocess.run([*command, "--output-reproducible", "--output-file", output], check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; gives its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["constraints", "locks", "audit", "licences", "sbom"])
    parser.add_argument("output", nargs="?", default="sbom.json", help="of sbom (default sbom.json)")
    parsed = parser.parse_args(arguments)
    if parsed.command == "sbom":
        return sbom(parsed.output)
    commands = {"constraints": write_constraints, "locks": write_locks, "audit": audit, "licences": licences}
    return commands[parsed.command]()


if __name__ == "__main__":
    raise SystemExit(main())
