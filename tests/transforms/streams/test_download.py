"""Downloads from a server on this machine that breaks connections, changes files and redirects."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from semrank.schemas.errors import InputError
from semrank.transforms.streams.download import CHUNK_BYTES, DownloadError, Policy, download, file_name
from tests.support.servers import CONTENT, HASTY, Site, served


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as known:
        yield known


def test_a_file_arrives_whole(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    path = download(site.url, tmp_path / "new" / "folder", policy=HASTY, report=lambda *now: seen.append(now))
    assert path == tmp_path / "new" / "folder" / "set.tar.gz"
    assert path.read_bytes() == CONTENT
    assert len(seen) >= len(CONTENT) // CHUNK_BYTES
    assert seen[-1] == ("set.tar.gz", len(CONTENT), len(CONTENT))
    assert not list(path.parent.glob("*.part"))


def test_a_broken_transfer_continues_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.cuts = [700_000, 300_000]
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [None, "bytes=700000-", "bytes=1000000-"]
    assert [request.get("if-range") for request in site.requests] == [None, '"one"', '"one"']


def test_a_later_run_continues_too(site: Site, tmp_path: Path) -> None:
    site.cuts = [500_000, 0, 0]
    with pytest.raises(DownloadError, match="gave up after 3 tries in a row"):
        download(site.url, tmp_path, policy=HASTY)
    assert (tmp_path / "set.tar.gz.part").stat().st_size == 500_000
    assert not (tmp_path / "set.tar.gz").exists()
    site.requests.clear()
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == ["bytes=500000-"]


def test_tries_that_bring_bytes_are_not_counted(site: Site, tmp_path: Path) -> None:
    site.cuts = [100_000] * 12
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert len(site.requests) == 13


def test_a_file_that_changed_meanwhile_starts_anew(site: Site, tmp_path: Path) -> None:
    changed = bytes(len(CONTENT))

    def change(number: int) -> None:
        if number == 1:
            site.content, site.etag = changed, '"two"'

    site.cuts = [700_000]
    site.before = change
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == changed
    assert [request.get("range") for request in site.requests] == [None, "bytes=700000-"]


def test_a_server_that_ignores_if_range_cannot_glue_two_versions(site: Site, tmp_path: Path) -> None:
    """It answers 206 with the new version's tail; the tag gives it away."""
    changed = bytes(len(CONTENT))

    def change(number: int) -> None:
        if number == 1:
            site.content, site.etag = changed, '"two"'

    site.honours_if_range = False
    site.cuts = [700_000]
    site.before = change
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == changed


def test_without_a_version_nothing_is_continued(site: Site, tmp_path: Path) -> None:
    site.etag = None
    site.cuts = [700_000]
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [None, None]


def test_a_weak_tag_gives_way_to_the_date(site: Site, tmp_path: Path) -> None:
    site.etag, site.modified = 'W/"one"', "Wed, 02 Jan 2008 00:00:00 GMT"
    site.cuts = [700_000]
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert site.requests[1]["if-range"] == "Wed, 02 Jan 2008 00:00:00 GMT"


def test_a_server_without_ranges_sends_it_all_again(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    site.cuts = [700_000]
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT


def test_a_range_that_does_not_continue_is_not_glued(site: Site, tmp_path: Path) -> None:
    site.cuts = [700_000]
    site.range_offset = 1

    def mend(number: int) -> None:
        if number == 2:
            site.range_offset = 0

    site.before = mend
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [None, "bytes=700000-", None]


def test_a_part_longer_than_the_file_starts_anew(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz.part").write_bytes(CONTENT + b"more")
    note = {"url": site.url, "etag": '"one"', "modified": None}
    (tmp_path / "set.tar.gz.json").write_text(json.dumps(note))
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [f"bytes={len(CONTENT) + 4}-", None]


@pytest.mark.parametrize(
    "note", ["", "{", "[]", '{"url": "http://elsewhere.example/set.tar.gz", "etag": "x", "modified": null}']
)
def test_a_part_of_unknown_origin_is_not_continued(site: Site, tmp_path: Path, note: str) -> None:
    (tmp_path / "set.tar.gz.part").write_bytes(b"something else")
    (tmp_path / "set.tar.gz.json").write_text(note)
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert "range" not in site.requests[0]


def test_an_unchanged_file_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    download(site.url, tmp_path, policy=HASTY)
    site.cuts = [0] * 9
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("if-none-match") for request in site.requests] == [None, '"one"']


def test_a_changed_file_is_fetched_again(site: Site, tmp_path: Path) -> None:
    download(site.url, tmp_path, policy=HASTY)
    site.content, site.etag = b"new", '"two"'
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == b"new"


def test_a_file_of_unknown_length(site: Site, tmp_path: Path) -> None:
    site.declare_length = False
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT


def test_an_archive_stays_packed_even_if_its_packing_is_declared_as_the_transfers(site: Site, tmp_path: Path) -> None:
    site.content = gzip.compress(CONTENT, mtime=0)
    site.more_headers = {"Content-Encoding": "gzip"}
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == site.content
    assert site.requests[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_trouble_is_waited_out(site: Site, tmp_path: Path, status: int) -> None:
    site.statuses = [status, status]
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert len(site.requests) == 3


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [("7", 7, 7), (formatdate(time.time() + 3600, usegmt=True), 50, 60), ("soon", 1, 1), ("9" * 400, 60, 60)],
    ids=["seconds", "date", "no time", "too many digits"],
)
def test_servers_say_how_long_to_wait(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_after: str, least: int, most: int
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    site.statuses, site.retry_after = [503], retry_after
    assert download(site.url, tmp_path, policy=Policy(first_wait=1, longest_wait=60)).read_bytes() == CONTENT
    assert len(waits) == 1
    assert least <= waits[0] <= most


def test_lasting_trouble_ends_the_download(site: Site, tmp_path: Path) -> None:
    site.statuses = [503] * 9
    with pytest.raises(DownloadError, match="gave up after 3 tries in a row: found status 503"):
        download(site.url, tmp_path, policy=HASTY)
    assert len(site.requests) == 3


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(site: Site, tmp_path: Path, status: int) -> None:
    site.statuses = [status]
    with pytest.raises(InputError, match=rf"found status {status} .*, expected 200"):
        download(site.url, tmp_path, policy=HASTY)
    assert len(site.requests) == 1


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no answer"):
        download("http://127.0.0.1:9/set.tar.gz", tmp_path, policy=HASTY)


def test_redirects_within_the_server_are_followed(site: Site, tmp_path: Path) -> None:
    site.redirects = {"/data/set.tar.gz": "/mirror/file", "/mirror/file": "../other/place"}
    path = download(site.url, tmp_path, policy=HASTY)
    assert path.name == "set.tar.gz"
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost/set.tar.gz",
        "http://127.0.0.1:9/set.tar.gz",
        "https://127.0.0.1/set.tar.gz",
        "//other.example/set.tar.gz",
        "file:///etc/passwd",
    ],
)
def test_redirects_to_other_servers_are_refused(site: Site, tmp_path: Path, target: str) -> None:
    site.redirects = {"/data/set.tar.gz": target}
    with pytest.raises(InputError, match="expected a redirect within"):
        download(site.url, tmp_path, policy=HASTY)
    assert len(site.requests) == 1
    assert list(tmp_path.iterdir()) == []


def test_endless_redirects_are_refused(site: Site, tmp_path: Path) -> None:
    site.redirects = {"/data/set.tar.gz": "/data/set.tar.gz"}
    with pytest.raises(InputError, match="found more than 5 redirects"):
        download(site.url, tmp_path, policy=HASTY)


@pytest.mark.parametrize("declare", [True, False])
def test_files_that_are_too_large_are_refused(site: Site, tmp_path: Path, *, declare: bool) -> None:
    site.declare_length = declare
    policy = Policy(attempts=1, max_bytes=len(CONTENT) - 1)
    with pytest.raises(InputError, match=f"expected at most {len(CONTENT) - 1}"):
        download(site.url, tmp_path, policy=policy)
    assert not (tmp_path / "set.tar.gz").exists()


def test_file_name() -> None:
    assert file_name("https://data.example/a/set-1.tar.gz?version=2") == "set-1.tar.gz"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://data.example/a",
        "data.example/a",
        "https:///a",
        "https://data.example/",
        "https://data.example/%2e%2e",
        "https://data.example/.a",
    ],
)
def test_urls_that_give_no_file_name(url: str) -> None:
    with pytest.raises(InputError, match="expected"):
        file_name(url)
