"""Real crawlers take exported frontiers, on loopback only.

Not in the default suite, since they need Scrapy, Java and Maven; `python -m pytest tests/crawlers` runs
them, and so does `.ci/run`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from semrank.pipelines.sample_server import SampleServer

MAVEN_SECONDS = 300


@pytest.fixture(scope="session")
def sample_web() -> Iterator[SampleServer]:
    """The sample web as a proxy on loopback."""
    with SampleServer(0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="session")
def class_path(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Gives the class path of a crawler: the artifacts that its POM beside this file names, fetched once by Maven."""
    cache = request.config.cache
    assert cache is not None

    def fetched(crawler: str) -> str:
        if shutil.which("mvn") is None or shutil.which("java") is None:
            pytest.skip("Maven and Java are needed")
        pom = Path(__file__).with_name(f"{crawler}.pom.xml")
        jars = cache.mkdir(f"{crawler}-jars")
        done = jars / pom.name
        if not done.exists() or done.read_bytes() != pom.read_bytes():
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
            try:
                subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], check=True, timeout=MAVEN_SECONDS)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                pytest.skip(f"Maven can't fetch what {crawler} needs: {error}")
            done.write_bytes(pom.read_bytes())
        return f"{jars}/*"

    return fetched
