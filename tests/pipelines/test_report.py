"""Report pages of rounds: what they hold, that they need nothing else, and that they work in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of the sample web; the second goes on from the first."""
    folder = tmp_path_factory.mktemp("report")
    web, snapshot = str(folder / "web"), str(folder / "snapshot")
    assert main(["sample", "--output", web, "--quiet"]) == 0
    logs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    assert main(["ingest", *logs, "--output", snapshot, "--quiet"]) == 0
    common = ["rank", "--snapshot", snapshot, "--profile", "paper-2013", "--max-urls", "10", "--quiet"]
    assert main([*common, "--seeds", f"{web}/seeds.txt", "--output", str(folder / "first")]) == 0
    assert main([*common, "--previous", str(folder / "first"), "--output", str(folder / "second")]) == 0
    return folder


def page_of(place: Path, name: str) -> str:
    page = place / f"{name}.html"
    if not page.exists():
        assert main(["report", "--round", str(place / name), "--output", str(page), "--quiet"]) == 0
    return page.read_text(encoding="utf-8")


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_a_page_tells_what_the_manifest_tells(place: Path) -> None:
    manifest = json.loads((place / "second" / "manifest.json").read_text())
    data = data_of(page_of(place, "second"))["round"]
    assert sum(data["bins"][0]) == manifest["rows"]["frontier"]
    assert sum(row["urls"] for row in data["hosts"]) == manifest["rows"]["frontier"]
    assert sum(row["selected"] for row in data["top"]) == 10
    assert {stage["stage"] for stage in data["stages"]} == set(manifest["stages"])
    assert data["changes"]["came"]
    assert data_of(page_of(place, "first"))["round"]["changes"] is None
    assert data["keywords"]["nodes"]
    for upper, lower in data["keywords"]["edges"]:
        assert data["keywords"]["nodes"][upper]["level"] < data["keywords"]["nodes"][lower]["level"]
    for upper, lower in data["lattice"]["edges"]:
        nodes = data["lattice"]["nodes"]
        assert set(nodes[upper]["intent"]) < set(nodes[lower]["intent"])


class _Outside(HTMLParser):
    """Collects what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.fetched += [str(named[name]) for name in ("src", "srcset", "data") if name in named]
        if tag == "link":
            self.fetched.append(str(named.get("href")))


def test_a_page_needs_nothing_else(place: Path) -> None:
    page = page_of(place, "second")
    outside = _Outside()
    outside.feed(page)
    assert outside.fetched == []
    assert "@import" not in page
    assert "default-src 'none'" in page


def in_browser(page: str, script: str, folder: Path) -> str:
    """The page's content after a script ran in it."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command = [CHROMIUM, "--headless", "--no-sandbox", *quiet, f"--user-data-dir={folder / 'user'}", "--dump-dom"]
    shown = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return shown.stdout


def test_the_page_filters_opens_rows_and_sorts_in_a_browser(place: Path, tmp_path: Path) -> None:
    data = data_of(page_of(place, "second"))["round"]
    wanted = data["top"][3]
    script = f"""
      const search = document.querySelector('#top input');
      search.value = {json.dumps(wanted["url"][8:])};
      search.dispatchEvent(new Event('input'));
      const enter = new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}});
      document.querySelector('#top tr.row').dispatchEvent(enter);
      document.querySelector('#lattice .node').dispatchEvent(new Event('focus'));
      document.getElementById('theme').click();
    """
    shown = in_browser(page_of(place, "second"), script, tmp_path)
    top = shown[shown.index('id="top"') : shown.index('id="scores"')]
    assert top.count('class="row"') == sum(wanted["url"][8:] in row["url"] for row in data["top"])
    assert "links with the queue" in top
    lattice = shown[shown.index('id="lattice"') : shown.index('id="rejects"')]
    assert 'class="node on"' in lattice
    assert "data-theme=" in shown[:300]


def test_addresses_can_not_leave_the_data(place: Path, tmp_path: Path) -> None:
    page = page_of(place, "first").replace(
        "https://birds.example/waterbirds/", "https://x/\\u003c/script>\\u003cb id=evil>"
    )
    assert 'id="evil"' not in in_browser(page, "", tmp_path)
    assert "</script><b" not in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--round", "{place}/nothing", "--output", "{place}/x.html"], "no such folder, expected a round"),
        (["--round", "{place}/first", "--output", "{place}/x.txt"], "expected a name that ends in .html"),
        (["--round", "{place}/first", "--output", "{place}/first.html"], "is there already"),
        (["--evaluation", "{place}/first", "--output", "{place}/x.html"], "expected"),
    ],
)
def test_what_can_not_be_reported(
    options: list[str], message: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page_of(place, "first")
    assert main(["report", *(option.format(place=place) for option in options)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
