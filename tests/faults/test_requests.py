"""Outgoing requests: only to servers that the user named, patient within bounds, and silent about secrets."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main
from semrank.schemas.errors import InputError
from semrank.transforms.streams import download as module
from semrank.transforms.streams.download import DownloadError, Policy, download, file_name, shown_url
from tests.support.servers import CONTENT, HASTY, Site, dripping_server, served
from tests.support.sources import modules

SECRET = "hunter2hunter2"
PATH = "/data/set.tar.gz"


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as known:
        yield known


def allowing(*hosts: str) -> Policy:
    return Policy(attempts=2, first_wait=0.001, longest_wait=0.01, redirect_hosts=frozenset(hosts))


def elsewhere(site: Site) -> str:
    """The same server under another name."""
    return site.url.replace("127.0.0.1", "localhost")


def test_no_redirect_to_another_host(site: Site, tmp_path: Path) -> None:
    site.redirects[PATH] = elsewhere(site).replace(PATH, "/other.tar.gz")
    with pytest.raises(InputError, match=r"redirects to http://localhost.*--redirect-host"):
        download(site.url, tmp_path, policy=HASTY)
    with pytest.raises(InputError, match="--redirect-host"):
        download(site.url, tmp_path, policy=allowing("other.example"))
    assert len(site.requests) == 2


def test_an_allowed_host_must_be_public(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.redirects[PATH] = elsewhere(site).replace(PATH, "/other.tar.gz")
    with pytest.raises(InputError, match=r"redirects to localhost, which is (127\.0\.0\.1|::1), expected a public"):
        download(site.url, tmp_path, policy=allowing("localhost"))
    assert len(site.requests) == 1
    monkeypatch.setattr(module, "_private_address", lambda _: None)
    assert download(site.url, tmp_path, policy=allowing("localhost")).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/data/set.tar.gz",
        "http://user:pw@localhost/x.tar.gz",
        "http://[::1/x.tar.gz",
        "http://169.254.169.254/latest/meta-data",
        "//10.0.0.1/x.tar.gz",
    ],
)
def test_redirects_that_are_never_followed(location: str, site: Site, tmp_path: Path) -> None:
    site.redirects[PATH] = location
    policy = allowing("localhost", "169.254.169.254", "10.0.0.1", "127.0.0.1", "")
    with pytest.raises(InputError, match=r"redirects to|can't be requested"):
        download(site.url, tmp_path, policy=policy)
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("192.168.1.1", True),
        ("169.254.169.254", True),
        ("100.64.0.1", True),
        ("0.0.0.0", True),
        ("224.0.0.1", True),
        ("::1", True),
        ("fe80::1", True),
        ("fd00::1", True),
        ("::ffff:127.0.0.1", True),
        ("64:ff9b::7f00:1", True),
        ("0x7f.1", True),
        ("2002:7f00:1::", True),
        ("9.9.9.9", False),
        ("2620:fe::fe", False),
    ],
)
def test_private_addresses(host: str, private: bool) -> None:
    assert (module._private_address(host) is not None) == private


def test_a_name_with_a_private_address_beside_a_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 0)) for address in ("9.9.9.9", "10.0.0.7")]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert module._private_address("mixed.example") == "10.0.0.7"


@pytest.mark.parametrize("answers", [["9.9.9.9", "127.0.0.1"], ["9.9.9.9", "::1"], ["9.9.9.9", "::ffff:127.0.0.1"]])
def test_a_name_that_gets_a_private_address_after_it_was_checked(
    answers: list[str], site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own answers: a public address when the redirect is checked, a private one when it is followed."""
    port = site.url.split(":")[2].split("/")[0]
    site.redirects[PATH] = f"http://rebound.example:{port}/other.tar.gz"
    resolve = socket.getaddrinfo
    asked: list[str] = []

    def rebound(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if host != "rebound.example":
            return resolve(host, port, *arguments, **options)
        asked.append(host)
        return resolve(answers[min(len(asked), len(answers)) - 1], port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    with pytest.raises(InputError, match=r"address of rebound\.example, expected a public one"):
        download(site.url, tmp_path, policy=allowing("rebound.example"))
    assert [request["host"] for request in site.requests] == [f"127.0.0.1:{port}"]
    assert len(asked) == len(answers)


def test_waits_grow_and_are_bounded(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    site.before = lambda _: site.cuts.insert(0, 0)
    policy = Policy(attempts=6, first_wait=1, longest_wait=5, connect_timeout=2, read_timeout=2)
    with pytest.raises(DownloadError, match="gave up after 6 tries"):
        download(site.url, tmp_path, policy=policy)
    assert waits == [1, 2, 4, 5, 5]


@contextmanager
def slow_server(interval: float) -> Iterator[str]:
    """A server that sends a byte at a time."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        listener.settimeout(0.05)
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                try:
                    connection.recv(4096)
                    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nETag: "x"\r\n\r\n')
                    while not over.wait(interval):
                        connection.sendall(b"x" * module.CHUNK_BYTES if interval < 0.1 else b"")
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/slow.gz"
    finally:
        over.set()
        thread.join()
        listener.close()


DRIPS = {
    "head": (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    "body without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"A: b\r\n"),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: /x.gz\r\nX: ", b"y"),
}


@pytest.mark.parametrize("part", DRIPS)
def test_no_server_holds_a_download_longer_than_it_may_take(part: str, tmp_path: Path) -> None:
    policy = Policy(attempts=3, first_wait=0.01, connect_timeout=5, read_timeout=5, longest=1.0)
    begin = time.monotonic()
    with dripping_server(*DRIPS[part]) as url, pytest.raises(DownloadError, match="not done after 1 s"):
        download(url, tmp_path, policy=policy)
    assert time.monotonic() - begin < 4
    assert not (tmp_path / "slow.gz").exists()


@pytest.mark.parametrize("digits", [19, 5_000])
def test_lengths_of_thousands_of_digits(digits: int, tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * digits + b"\r\n\r\n"
    with dripping_server(head, b"x") as url, pytest.raises(InputError, match="expected at most"):
        download(url, tmp_path, policy=HASTY)
    head = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: " + b"9" * digits + b"\r\n\r\n"
    with dripping_server(head, b"") as url, pytest.raises(DownloadError, match="status 503"):
        download(url, tmp_path, policy=HASTY)


def test_passwords_of_netrc_stay_on_the_host(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine localhost login u password {SECRET}\ndefault login d password {SECRET}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setattr(module, "_private_address", lambda _: None)
    site.redirects["/set.tar.gz"] = elsewhere(site)
    download(site.url.replace(PATH, "/set.tar.gz"), tmp_path, policy=allowing("localhost"))
    assert ["authorization" in request for request in site.requests] == [True, False]


def test_a_silent_server_times_out(tmp_path: Path) -> None:
    policy = Policy(attempts=2, first_wait=0.01, connect_timeout=1, read_timeout=0.2)
    begin = time.monotonic()
    with slow_server(5.0) as url, pytest.raises(DownloadError, match="gave up after 2 tries"):
        download(url, tmp_path, policy=policy)
    assert time.monotonic() - begin < 8


def test_a_server_that_breaks_off_for_ever_ends(site: Site, tmp_path: Path) -> None:
    """Each try brings a byte, so that the tries are never used up."""

    def cut(_: int) -> None:
        site.cuts.insert(0, 1)
        time.sleep(0.02)

    site.before = cut
    policy = Policy(attempts=3, first_wait=0.001, longest_wait=0.001, longest=0.5)
    with pytest.raises(DownloadError, match=r"not done after 0\.5 s"):
        download(site.url, tmp_path, policy=policy)


def digest_header(content: bytes, name: str) -> dict[str, str]:
    sha = base64.b64encode(hashlib.sha256(content).digest()).decode()
    md5 = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
    return {
        "Repr-Digest": {"Repr-Digest": f"sha-256=:{sha}:"},
        "Digest": {"Digest": f"SHA-256={sha}"},
        "Content-MD5": {"Content-MD5": md5},
    }[name]


@pytest.mark.parametrize("name", ["Repr-Digest", "Digest", "Content-MD5"])
def test_a_resumed_file_is_held_to_the_servers_digest(name: str, site: Site, tmp_path: Path) -> None:
    site.more_headers = digest_header(CONTENT, name)
    site.cuts = [700_000]
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [None, "bytes=700000-"]


@pytest.mark.parametrize("name", ["Repr-Digest", "Digest", "Content-MD5"])
def test_a_part_that_was_damaged_on_disk_starts_anew(name: str, site: Site, tmp_path: Path) -> None:
    site.more_headers = digest_header(CONTENT, name)
    site.cuts = [700_000]

    def damage(number: int) -> None:
        if number == 1:
            with (tmp_path / "set.tar.gz.part").open("r+b") as part:
                part.write(b"damage")

    site.before = damage
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT
    assert [request.get("range") for request in site.requests] == [None, "bytes=700000-", None]


def test_a_file_that_never_fits_its_digest_is_no_file(site: Site, tmp_path: Path) -> None:
    site.more_headers = digest_header(b"something else", "Repr-Digest")
    with pytest.raises(DownloadError, match=r"found sha256 .* as the server says"):
        download(site.url, tmp_path, policy=HASTY)
    assert not (tmp_path / "set.tar.gz").exists()


@pytest.mark.parametrize("value", ["sha-256=:not base64:", "sha-512=!!", "unixsum=1, SHA-256=", "sha-256=:AAA:"])
@pytest.mark.parametrize("name", ["Repr-Digest", "Content-Digest", "Digest"])
def test_a_digest_that_is_no_base64_is_refused(name: str, value: str, site: Site, tmp_path: Path) -> None:
    site.more_headers = {name: value}
    with pytest.raises(InputError, match="that is no Base64"):
        download(site.url, tmp_path, policy=HASTY)
    site.more_headers = {"Content-MD5": "!!"}
    with pytest.raises(InputError, match="that is no Base64"):
        download(site.url, tmp_path, policy=HASTY)
    assert not (tmp_path / "set.tar.gz").exists()


@pytest.mark.parametrize("value", ["md5=x", "", "unixsum=30637"])
def test_a_digest_of_another_algorithm_is_none(value: str, site: Site, tmp_path: Path) -> None:
    site.more_headers = {"Repr-Digest": value}
    assert download(site.url, tmp_path, policy=HASTY).read_bytes() == CONTENT


def everything(folder: Path) -> str:
    """All that stands in a folder's files, names of files among them."""
    texts = []
    for path in sorted(folder.rglob("*")):
        texts.append(path.name)
        if path.suffix == ".parquet":
            texts.append(repr(pq.read_table(path).to_pylist()))
        elif path.is_file():
            texts.append(path.read_text(errors="replace"))
    return "\n".join(texts)


@pytest.mark.parametrize("verbosity", ["--quiet", "--verbose"])
def test_tokens_stay_out_of_manifests_and_messages(
    verbosity: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"source_url": "http://a.example/", "target_url": "http://b.example/"}, {"source_url": "bad"}]
    site.content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    site.redirects = {}
    url = f"{site.url.removesuffix('set.tar.gz')}links.jsonl?token={SECRET}"
    output = tmp_path / "snapshot"
    status = main(["ingest", "--links", url, "--user-salt", SECRET, "--output", str(output), verbosity])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert SECRET not in captured.out + captured.err + everything(output)
    (source,) = json.loads((output / "manifest.json").read_text())["sources"]
    assert source["path"] == shown_url(url)
    assert source["records"] == 2
    site.statuses = [403] * 9
    assert main(["ingest", "--links", url, "--output", str(tmp_path / "other"), verbosity]) == 2
    captured = capsys.readouterr()
    assert "found status 403" in captured.err
    assert SECRET not in captured.out + captured.err + everything(tmp_path / "other")


def test_tokens_stay_out_of_errors_and_notes(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="semrank"):
        download(f"{site.url}?key={SECRET}", tmp_path, policy=HASTY)
        site.cuts = [5] * 9
        site.etag = '"two"'
        with pytest.raises(DownloadError) as broken:
            download(f"{site.url}?key={SECRET}2", tmp_path / "b", policy=Policy(attempts=1))
        with pytest.raises(DownloadError) as absent:
            download(f"http://127.0.0.1:9/x.gz?key={SECRET}", tmp_path / "c", policy=Policy(attempts=1))
        with pytest.raises(InputError) as user:
            download(f"http://ann:{SECRET}@127.0.0.1/x.gz", tmp_path / "d")
    told = "".join(str(raised.value) for raised in (broken, absent, user))
    assert SECRET not in told + caplog.text + "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert "expected it in the file .netrc" in str(user.value)


def test_shown_urls() -> None:
    assert shown_url("crawl/a?b.gz") == "crawl/a?b.gz"
    assert shown_url("https://a.example/x.gz") == "https://a.example/x.gz"
    one, two = (shown_url(f"https://a.example/x.gz?key={key}#part") for key in ("1", "2"))
    assert one != two
    assert one.startswith("https://a.example/x.gz?query-")
    assert shown_url("https://ann:pw@a.example:8/x") == "https://a.example:8/x"
    assert "pw" not in shown_url("http://ann:pw@[broken/x?pw")
    for odd in ("http://[::1/x.gz", "http://a.example:99999/x.gz", "http:///x.gz", "ftp://a.example/x.gz"):
        with pytest.raises(InputError, match="can't be downloaded"):
            file_name(odd)


NETWORK = {"requests", "urllib3", "urllib.request", "http.client", "socket", "ftplib", "httplib2", "aiohttp", "smtplib"}
ASKING = {
    "transforms/streams/download.py": "inputs that the user named",
    "pipelines/cluster.py": "the cluster that the user named",
}
"""Modules that may ask others, and for what."""


def network_imports(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name in NETWORK or name.split(".")[0] in NETWORK}


def test_nothing_else_makes_requests() -> None:
    found = {path for path, tree in modules().items() if network_imports(tree)}
    assert found == set(ASKING)
    for text in (
        "import requests.adapters",
        "from urllib import request",
        "import http.client",
        "from socket import *",
    ):
        assert network_imports(ast.parse(text)), text
    assert not network_imports(ast.parse("from urllib.parse import quote\nfrom http import HTTPStatus"))
