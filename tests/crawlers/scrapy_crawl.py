"""Runs the Scrapy project of the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "scrapy_project"


def crawl(frontier: Path, warc: Path, proxy: str) -> str:
    """Fetches a frontier through a proxy and writes a WARC file; gives Scrapy's log.

    With no delay Scrapy does not keep the order within a host.
    """
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"http_proxy": proxy, "https_proxy": proxy, "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = ["-a", f"frontier={frontier}", "-s", f"WARC_FILE={warc}", "-s", "DOWNLOAD_DELAY=0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "frontier", *arguments],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr
