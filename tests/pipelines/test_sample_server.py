"""The sample web served to crawlers: by a proxy, on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import requests
import urllib3

from semrank.pipelines.cli import main
from semrank.pipelines.sample_server import HOST, SampleServer
from semrank.transforms.samples.sample_web import sample_pages
from tests.support.interrupts import interruptible

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[SampleServer]:
    with SampleServer(0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def browser(server: SampleServer) -> Iterator[requests.Session]:
    """Asks the server as its proxy, and believes its certificate."""
    with requests.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        session.trust_env = False
        session.verify = False
        session.proxies = {"http": server.url, "https": server.url}
        yield session


def get(browser: requests.Session, url: str, method: str = "GET") -> requests.Response:
    return browser.request(method, url, allow_redirects=False, timeout=30)


def test_every_url_answers_as_it_should(browser: requests.Session) -> None:
    for page in sample_pages():
        found = get(browser, page.url)
        assert (found.status_code, found.content) == (page.status, page.body), page.url
        for name, value in page.headers:
            assert found.headers[name] == value


def test_head_has_the_headers_and_no_body(browser: requests.Session) -> None:
    page = next(page for page in sample_pages() if page.url == "https://birds.example/")
    found = get(browser, page.url, "HEAD")
    assert found.status_code == 200
    assert found.headers["Content-Length"] == str(len(page.body))
    assert found.content == b""


def test_idle_parameters_make_no_other_page(browser: requests.Session) -> None:
    with_session = get(browser, "https://forum.example/thread?id=3&PHPSESSID=00ff00ff00ff00ff")
    assert with_session.content == get(browser, "https://forum.example/thread?id=3").content


def test_what_is_not_there(browser: requests.Session) -> None:
    for url in ("https://birds.example/none", "http://birds.example/glossary.html", "http://other.example/"):
        assert get(browser, url).status_code == 404
    for url in ("https://other.example/", "https://birds.example:8443/"):
        with pytest.raises(requests.exceptions.ProxyError, match="502"):
            get(browser, url)


def test_a_request_without_a_proxy_names_its_host(server: SampleServer) -> None:
    with requests.Session() as session:
        session.trust_env = False
        found = session.get(server.url, headers={"Host": "birds.example"}, allow_redirects=False, timeout=30)
    assert (found.status_code, found.headers["Location"]) == (301, "https://birds.example/")


def test_the_command_serves_until_interrupted() -> None:
    process = subprocess.Popen(
        interruptible("-m", "semrank.pipelines.cli", "sample", "--serve", "0"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    url, _, told = line.strip().partition(": ")
    assert url.startswith(f"http://{HOST}:")
    assert told == f"HTTP proxy for {len(sample_pages())} URLs on 10 hosts"
    with requests.Session() as session:
        session.trust_env = False
        found = session.get("http://birds.example/", proxies={"http": url}, allow_redirects=False, timeout=30)
    assert found.status_code == 301
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def test_ports_that_can_not_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["sample", "--serve", str(port)]) == 2
        assert f"--serve {port}: can't listen on this port: {os.strerror(98)}" in capsys.readouterr().err
    assert main(["sample", "--serve", "65536"]) == 2
    assert "--serve: found 65536, expected a whole number from 0 to 65535" in capsys.readouterr().err


def test_what_does_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "--serve", "0", "--overwrite"]) == 2
    assert "--overwrite: found --serve, expected --output" in capsys.readouterr().err
    for arguments in ([], ["--serve", "0", "--output", "web"]):
        with pytest.raises(SystemExit, match="2"):
            main(["sample", *arguments])


def test_without_cryptography_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "semrank.pipelines.sample_server")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert main(["sample", "--serve", "0"]) == 2
    assert "--serve: cryptography is missing, which the extra `crawlers` installs" in capsys.readouterr().err
