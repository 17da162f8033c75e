"""What the project is made of is pinned, listed with its licences, and looked up among known weaknesses."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytest.importorskip("setuptools", reason="setuptools, which reads what setup.py declares, is not installed")

ROOT = Path(__file__).resolve().parents[1]
TABLE_ROW = re.compile(r"^\| ([\w.-]+) \| (\S+) \| (.+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def chain() -> ModuleType:
    spec = importlib.util.spec_from_file_location("supply_chain", ROOT / ".ci" / "supply_chain.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def licence_table() -> dict[str, tuple[str, str]]:
    """Versions and licences in the docs, by canonical name."""
    text = (
        (ROOT / "docs" / "safety.md").read_text(encoding="utf-8").partition("| distribution | version | licence |")[2]
    )
    return {canonicalize_name(name): (version, licence) for name, version, licence in TABLE_ROW.findall(text)}


def test_all_that_is_needed_is_pinned(chain: ModuleType) -> None:
    """A dependency that is added without `supply_chain.py constraints` fails here, and so does one that is gone."""
    pinned = chain.pinned()
    declared = chain._declared()
    extras = [text for name in chain.EXTRAS for text in declared["extras_require"][name]]
    for requirement in map(Requirement, [*declared["install_requires"], *extras]):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement
    needed = chain.closure(chain.EXTRAS)
    if all(pinned.get(name, version) == version for name, version in needed.items()):
        # Other versions, and other versions of Python, may need more or less in turn.
        assert set(needed) - set(pinned) == set()
        assert sys.version_info[:2] != (3, 11) or set(pinned) - set(needed) == set()


@pytest.mark.parametrize("name", ["fast", "fast-gcp", "fast-aws"])
def test_images_are_installed_from_what_is_pinned(chain: ModuleType, name: str) -> None:
    """After a change of constraints.txt or setup.py `supply_chain.py locks` has to write the locks anew."""
    locked, pinned, declared = chain.locked(name), chain.pinned(), chain._declared()
    extras = [text for extra in chain.LOCKS[name] for text in declared["extras_require"][extra]]
    for requirement in map(Requirement, [*declared["install_requires"], *extras, *chain.build_requirements()]):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement
    assert {key: version for key, version in locked.items() if pinned.get(key, version) != version} == {}
    text = (chain.LOCK_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^[\w.-]+==.*\\\n    --hash=sha256:", text, re.MULTILINE)) == len(locked)


@pytest.mark.parametrize("path", sorted((ROOT / "deploy").rglob("Dockerfile*")), ids=lambda path: path.name)
def test_images_download_nothing_without_a_hash(path: Path) -> None:
    """Without `--no-build-isolation` pip downloads what builds a package, whatever version there is."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    assert not re.search(r"\b(apt-get|curl|wget|ADD|uv|conda|npm)\b", text)
    if path.name == "Dockerfile.jobserver":
        fetch, check = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
        assert fetch.startswith("mvn ")
        assert check.endswith("sha256sum * | cmp - ../jars.sha256")
        return
    downloads, own = re.findall(r"\bpip3? install ([^&|;\n]*)", text)
    assert "--no-build-isolation --require-hashes -r " in downloads
    assert {"--no-deps", "--no-build-isolation", "."} <= set(own.split())


def test_all_that_is_pinned_has_its_licence_in_the_docs(chain: ModuleType) -> None:
    assert {name: version for name, (version, _) in licence_table().items()} == chain.pinned()


@pytest.mark.skipif(not has("piplicenses"), reason="pip-licenses is not installed (extra: audit)")
def test_the_licences_are_those_that_are_installed(chain: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert chain.licences() == 0
    listed = licence_table()
    rows = TABLE_ROW.findall(capsys.readouterr().out)
    installed = {canonicalize_name(name): (version, licence) for name, version, licence in rows if version != "version"}
    same = {name: found for name, found in installed.items() if found[0] == listed[name][0]}
    assert same
    assert same == {name: listed[name] for name in same}


@pytest.mark.skipif(not has("cyclonedx_py"), reason="cyclonedx-bom is not installed (extra: audit)")
def test_the_bill_of_materials_names_what_is_pinned(chain: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "sbom.json"
    assert chain.main(["sbom", str(path)]) == 0
    bill = json.loads(path.read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    found = {canonicalize_name(part["name"]): part["version"] for part in bill["components"]}
    assert found == chain.pinned()


WEAK = {"name": "Weak_Thing", "version": "1.0", "vulns": [{"id": "GHSA-1", "fix_versions": ["1.1"]}]}
GOOD = {"name": "good", "version": "2.0", "vulns": []}
UNKNOWN = {"name": "unknown", "skip_reason": "not found"}


@pytest.fixture
def auditor(chain: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the auditor say something."""

    def says(*dependencies: dict[str, Any], output: str | None = None, error: str = "") -> None:
        text = json.dumps({"dependencies": dependencies}) if output is None else output

        def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            return subprocess.CompletedProcess(command, 1, text, error)

        monkeypatch.setattr(chain.subprocess, "run", run)

    monkeypatch.setattr(chain.importlib.util, "find_spec", lambda _: object())
    return says


def accept(chain: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = folder / "accepted.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(chain, "ACCEPTED", path)


def test_a_known_weakness_fails_with_its_id(
    chain: ModuleType, auditor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    auditor(WEAK, GOOD, UNKNOWN)
    assert chain.main(["audit"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "weak-thing 1.0: GHSA-1, mended in 1.1; NOT ACCEPTED",
        "2 of 3 distributions looked up, 1 weaknesses found, 1 of them not accepted",
    ]
    auditor(GOOD)
    assert chain.main(["audit"]) == 0


def test_an_accepted_weakness_passes_and_tells_why(
    chain: ModuleType,
    auditor: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entry = '[[accepted]]\nid = "GHSA-1"\ndistribution = "{}"\nreason = "never called"\n'
    accept(chain, tmp_path, monkeypatch, entry.format("weak.thing"))
    auditor(WEAK)
    assert chain.main(["audit"]) == 0
    assert "GHSA-1, mended in 1.1; accepted: never called" in capsys.readouterr().out
    auditor(GOOD)
    assert chain.main(["audit"]) == 0
    assert "weak-thing: GHSA-1 is accepted but no longer found" in capsys.readouterr().out
    accept(chain, tmp_path, monkeypatch, entry.format("another"))
    auditor(WEAK)
    assert chain.main(["audit"]) == 1


@pytest.mark.parametrize("reason", ["", 'reason = " "'])
def test_an_entry_without_a_reason_is_none(chain: ModuleType, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text(f'[[accepted]]\nid = "GHSA-1"\ndistribution = "weak"\n{reason}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="expected id, distribution and reason"):
        chain.accepted(path)


def test_what_is_accepted_here_can_be_read(chain: ModuleType) -> None:
    assert {name for name, _ in chain.accepted(chain.ACCEPTED)} <= set(chain.pinned())


def test_without_a_network_the_audit_says_so_and_passes(
    chain: ModuleType, auditor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    auditor(output="", error="Traceback\nConnectionError: no route to host\n")
    assert chain.main(["audit"]) == 0
    assert capsys.readouterr().out == (
        "audit skipped: the list of weaknesses can't be had: ConnectionError: no route to host\n"
    )
    auditor(UNKNOWN)
    assert chain.main(["audit"]) == 0
    assert "audit skipped: none of 1 distributions" in capsys.readouterr().out

    def silent(command: list[str], **options: Any) -> None:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(chain.subprocess, "run", silent)
    assert chain.main(["audit"]) == 0
    assert "does not answer within" in capsys.readouterr().out
    monkeypatch.setattr(chain.importlib.util, "find_spec", lambda _: None)
    assert chain.main(["audit"]) == 0
    assert "pip-audit is not installed" in capsys.readouterr().out
