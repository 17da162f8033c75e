"""Heritrix takes exported frontiers: by its action directory, and as precedences."""

from __future__ import annotations

import random
import re
import shutil
import socket
import subprocess
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import urllib3
from requests.auth import HTTPDigestAuth

from semrank.pipelines.cli import main
from tests.crawlers.pages_server import HOST, PagesServer
from tests.support.frontiers import frontier, write_round

HEAP = "-Xmx512m"
START_SECONDS = 90
CRAWL_SECONDS = 120
LOGIN = "tester:tester"

_SETTINGS = """
metadata.operatorContactUrl=http://127.0.0.1/
metadata.jobName=test
metadata.description=test
crawlController.maxToeThreads=3
crawlController.pauseAtStart=false
crawlController.runWhileEmpty=true
actionDirectory.initialDelaySeconds=1
actionDirectory.delaySeconds=1
disposition.delayFactor=0
disposition.minDelayMs=0
"""

_PRELOADED = """
<bean id="uriPrecedencePolicy" class="org.archive.crawler.frontier.precedence.PreloadedUriPrecedencePolicy">
 <property name="basePrecedence" value="0"/>
</bean>
"""


class Heritrix:
    """A running engine with its jobs."""

    def __init__(self, folder: Path, class_path: str) -> None:
        self.jobs = folder / "jobs"
        self.jobs.mkdir()
        self.class_path = class_path
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = probe.getsockname()[1]
        command = ["java", HEAP, "-cp", class_path, "org.archive.crawler.Heritrix"]
        self.log = folder / "heritrix.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "-a", LOGIN, "-b", HOST, "-p", str(self.port), "-j", str(self.jobs)],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait(self, seconds: float, done: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < end, self.log.read_text()[-3000:]
            time.sleep(0.2)

    def answers(self) -> bool:
        try:
            return self.ask("GET", "engine").ok
        except requests.ConnectionError:
            return False

    def ask(self, method: str, path: str, **data: str) -> requests.Response:
        user, password = LOGIN.split(":")
        with requests.Session() as session:
            # No proxy of the environment stands between here and loopback.
            session.trust_env = False
            with warnings.catch_warnings():
                # The engine's certificate is of its own making.
                warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
                return session.request(
                    method,
                    f"https://{HOST}:{self.port}/{path}",
                    data=data,
                    auth=HTTPDigestAuth(user, password),
                    # The engine may close a connection that the answer to its challenge would come on.
                    headers={"Accept": "application/xml", "Connection": "close"},
                    verify=False,
                    timeout=30,
                )

    def job(self, name: str, settings: str = "") -> Path:
        """Folder of a new job: Heritrix's own profile, with the settings of these tests and further beans."""
        folder = self.jobs / name
        folder.mkdir()
        jar = next(Path(self.class_path).parent.glob("heritrix-engine-*.jar"))
        with zipfile.ZipFile(jar) as archive:
            beans = archive.read("org/archive/crawler/restlet/profile-crawler-beans.cxml").decode()
        beans = re.sub(r"metadata\.operatorContactUrl=.*?(?=##)", lambda _: _SETTINGS, beans, flags=re.DOTALL)
        beans = beans.replace("http://example.example/example", "")
        (folder / "crawler-beans.cxml").write_text(beans.replace("</beans>", f"{settings}</beans>"))
        (folder / "action").mkdir()
        assert self.ask("POST", "engine", action="rescan").ok
        return folder

    def run(self, name: str, *actions: str) -> None:
        for action in actions:
            assert self.ask("POST", f"engine/job/{name}", action=action).ok

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


@pytest.fixture(scope="module")
def heritrix(class_path: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heritrix]:
    engine = Heritrix(tmp_path_factory.mktemp("heritrix"), class_path("heritrix"))
    try:
        engine.wait(START_SECONDS, engine.answers)
        yield engine
    finally:
        engine.stop()


@pytest.fixture
def pages() -> Iterator[PagesServer]:
    with PagesServer() as server:
        yield server


PATHS = [
    f"/{place:02d}?q={random.Random(place).choice(['a,b', '%27', '(x)', 'é'.encode().hex()])}" for place in range(30)
]
"""In the order of rank."""


def export(folder: Path, pages: PagesServer, output: Path, paths: list[str]) -> None:
    """Exports a frontier and moves it to where Heritrix finds it, complete."""
    ranked = write_round(folder / f"round-{output.name}", frontier([pages.url(path) for path in paths]))
    written = folder / "exported" / output.name
    assert main(["export", "--round", ranked, "--format", "heritrix", "--output", str(written), "--quiet"]) == 0
    written.replace(output)


@pytest.mark.parametrize("ending", ["seeds", "schedule", "schedule.gz"])
def test_action_directory(ending: str, heritrix: Heritrix, pages: PagesServer, tmp_path: Path) -> None:
    """Every URL is fetched once, in the order of rank."""
    name = f"actions-{ending.replace('.', '-')}"
    folder = heritrix.job(name)
    export(tmp_path, pages, folder / "action" / f"frontier.{ending}", PATHS)
    heritrix.run(name, "build", "launch")
    heritrix.wait(CRAWL_SECONDS, lambda: len(pages.asked) >= len(PATHS))
    heritrix.run(name, "terminate")
    assert pages.asked == PATHS


def test_force_fetches_again(heritrix: Heritrix, pages: PagesServer, tmp_path: Path) -> None:
    folder = heritrix.job("force")
    export(tmp_path, pages, folder / "action" / "1.schedule", PATHS[:5])
    export(tmp_path, pages, folder / "action" / "2.schedule", PATHS[:10])
    heritrix.run("force", "build", "launch")
    heritrix.wait(CRAWL_SECONDS, lambda: len(pages.asked) >= 10)
    assert pages.asked == PATHS[:10], "what was fetched already is not fetched again"
    export(tmp_path, pages, folder / "action" / "3.force", PATHS[:3])
    heritrix.wait(CRAWL_SECONDS, lambda: len(pages.asked) >= 13)
    heritrix.run("force", "terminate")
    assert pages.asked[10:] == PATHS[:3]


def test_precedences(heritrix: Heritrix, pages: PagesServer, tmp_path: Path) -> None:
    """Loaded precedences decide, though the URLs come in the opposite order."""
    folder = heritrix.job("precedences", _PRELOADED)
    exported = tmp_path / "frontier.precedence"
    export(tmp_path, pages, exported, PATHS)
    loader = ["org.archive.crawler.frontier.precedence.PrecedenceLoader", str(exported), str(folder / "state")]
    done = subprocess.run(
        ["java", HEAP, "-cp", heritrix.class_path, *loader], capture_output=True, text=True, timeout=120, check=False
    )
    assert f"{len(PATHS)} entries loaded" in done.stdout, done.stdout + done.stderr
    export(tmp_path, pages, tmp_path / "frontier.schedule", PATHS[::-1])
    # All are scheduled before the first is fetched.
    heritrix.run("precedences", "build", "launch", "pause")
    shutil.copy(tmp_path / "frontier.schedule", folder / "action" / "frontier.schedule")
    heritrix.wait(CRAWL_SECONDS, lambda: not (folder / "action" / "frontier.schedule").exists())
    heritrix.run("precedences", "unpause")
    heritrix.wait(CRAWL_SECONDS, lambda: len(pages.asked) >= len(PATHS))
    heritrix.run("precedences", "terminate")
    assert pages.asked == PATHS
