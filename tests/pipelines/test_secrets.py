"""Secrets: where they come from, and that no result shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from semrank.pipelines import ingest
from semrank.pipelines.cli import command_parser
from semrank.pipelines.config import RoundConfig
from semrank.pipelines.options import read_options
from semrank.schemas.errors import InputError


def salt(*options: str) -> str | None:
    arguments = command_parser("ingest", ingest).parse_args(["--output", "x", *options])
    return ingest._reading(read_options(ingest.IngestOptions, arguments)).logs.user_salt


def test_where_the_key_of_users_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMRANK_USER_SALT", raising=False)
    assert salt() is None
    monkeypatch.setenv("SEMRANK_USER_SALT", "of the environment")
    assert salt() == "of the environment"
    path = tmp_path / "salt"
    for content in (b"of a file", b"of a file\n", b"of a file\r\n"):
        path.write_bytes(content)
        assert salt("--user-salt-file", str(path)) == "of a file"
    assert salt("--user-salt", "of the line") == "of the line"
    with pytest.raises(SystemExit):
        salt("--user-salt", "of the line", "--user-salt-file", str(path))


@pytest.mark.parametrize(("path", "found"), [("/dev/zero", "found 67 bytes"), ("/nowhere", "can't be read")])
def test_files_that_hold_no_key(path: str, found: str) -> None:
    with pytest.raises(InputError, match=found):
        salt("--user-salt-file", path)


def test_manifests_show_no_password_of_a_database() -> None:
    for url in ("postgresql://me:hunter2@db.example/shop?token=hunter2", "mysql://host/shop?password=hunter2"):
        config = RoundConfig(ranker="ontology", ontology=url)
        assert config.ontology == url
        assert "hunter2" not in str(config.as_dict())
    assert RoundConfig(ranker="ontology", ontology="shop.ttl").as_dict()["ontology"] == "shop.ttl"
