"""The reference is what the program says of itself, and the results have what it tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import semrank.schemas.tables
from docs.reference import FOLDERS, MANIFESTS, PAGE, TABLES, reference
from semrank.pipelines import evaluate, ingest, rank
from semrank.schemas.tables import TableSchema
from semrank.transforms.crawls.beam import BALANCE_FOLDER

OPTIONAL = {"current_concepts", "classes", rank.PENDING}


def test_the_page_is_what_the_program_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "`python -m docs.reference` writes the page anew"


def test_every_table_is_told_with_all_its_columns() -> None:
    assert set(TABLES) == {found for found in vars(semrank.schemas.tables).values() if isinstance(found, TableSchema)}
    for table in TABLES:
        assert table.row
        assert all(table.meanings)
        assert len(table.meanings) == len(table.schema)


@pytest.mark.parametrize(
    ("kind", "parts"), [("snapshot", ingest.PARTS), ("round", rank.PARTS), ("evaluation", evaluate.PARTS)]
)
def test_folders_have_the_parts_that_commands_write(kind: str, parts: tuple[str, ...]) -> None:
    assert set(FOLDERS[kind]) == set(parts) - {BALANCE_FOLDER}


RESULTS = [("snapshot", "snapshot"), ("round", "round-0001"), ("evaluation", "evaluation")]


@pytest.mark.parametrize(("kind", "folder"), RESULTS)
def test_parts_have_the_columns_that_are_told(kind: str, folder: str, chain: Path) -> None:
    for name, part in FOLDERS[kind].items():
        if isinstance(part, TableSchema) and name not in OPTIONAL:
            assert pq.read_table(chain / folder / name).schema.equals(part.schema), name


def keys_of(manifest: dict[str, Any]) -> set[str]:
    """The keys as the reference writes them."""
    found = set()
    for key, value in manifest.items():
        if key in ("sources", "topics"):
            found |= {f"{key}.{inner}" for row in value for inner in row}
        elif key == "inputs":
            found |= {f"{key}.{inner}" for inner in value}
        elif key == "stages":
            found |= {f"{key}.STAGE.{inner}" for stage in value.values() for inner in stage}
        else:
            found.add(key)
    return found


@pytest.mark.parametrize(("kind", "folder"), RESULTS)
def test_manifests_have_the_keys_that_are_told(kind: str, folder: str, chain: Path) -> None:
    manifest = json.loads((chain / folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == kind
    assert keys_of(manifest) == set(MANIFESTS[kind])
