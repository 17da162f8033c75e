"""Inputs of other people's reports, beside the checkout: what comes out of each is what its standard says."""

from __future__ import annotations

from pathlib import Path

import pytest

from semrank.transforms.sources.logs.options import LogOptions
from tests.transforms.sources.logs.helpers import Outcome, read_all

SITE = "https://www.example.org"


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> Path:
    folder = shared_data / "cases"
    if not folder.is_dir():
        pytest.skip("the cases are not beside the checkout (expected in ../shared/data/cases)")
    return folder


def log(name: str, path: Path) -> Outcome:
    options = LogOptions(user_salt="a test's own key", site=SITE)
    return read_all(name, path.read_bytes(), options, source=path.name)


def test_lists_of_clients(cases: Path) -> None:
    outcome = log("combined", cases / "log-forwarded-lists" / "access.log")
    assert sorted(visit["url"] for visit in outcome.visits) == sorted(
        [f"{SITE}/guide", *(f"{SITE}/guide{number}" for number in range(2, 8))]
    )
    (single,) = (visit["user_id"] for visit in outcome.visits if visit["url"].endswith("guide4"))
    users = {visit["url"]: visit["user_id"] for visit in outcome.visits}
    assert {url for url, user in users.items() if user != single} == {f"{SITE}/guide5"}


@pytest.mark.parametrize(("name", "file"), [("nginx-json", "a.json"), ("combined", "c.log"), ("w3c", "u.log")])
def test_rejects_name_nobody(cases: Path, name: str, file: str) -> None:
    outcome = log(name, cases / "rejects-mask" / file)
    assert (len(outcome.rejects), outcome.used) == (3, 0)
    text = str(outcome.rejects)
    assert not any(secret in text for secret in ("jane", "203.0.113.9", "dialup", "CORP"))


def test_names_of_json_fields(cases: Path) -> None:
    outcome = log("nginx-json", cases / "log-nginx-json-names" / "access.json")
    paths = ("/a?id=7", "/b?id=7", "/c/spring-tour/?id=7", "/d?id=7", "/e", "/f", "/g")
    assert [visit["url"] for visit in outcome.visits] == [f"{SITE}{path}" for path in paths]
