"""Report pages of rounds: what they hold, that they need nothing else, and that they work in a browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main
from semrank.schemas.tables import CURVE, SUMMARY, SWEEP
from tests.support.browser import browse, data_of, in_browser, with_script
from tests.support.sample import ingest_sample


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of the sample web; the second goes on from the first."""
    folder = tmp_path_factory.mktemp("report")
    web, snapshot = f"{folder}/web", str(ingest_sample(folder))
    common = ["rank", "--snapshot", snapshot, "--profile", "paper-2013", "--max-urls", "10", "--recrawl", "--quiet"]
    assert main([*common, "--seeds", f"{web}/seeds.txt", "--output", str(folder / "first")]) == 0
    assert main([*common, "--previous", str(folder / "first"), "--output", str(folder / "second")]) == 0
    return folder


def page_of(place: Path, name: str) -> str:
    page = place / f"{name}.html"
    if not page.exists():
        assert main(["report", "--round", str(place / name), "--output", str(page), "--quiet"]) == 0
    return page.read_text(encoding="utf-8")


def test_a_page_tells_what_the_manifest_tells(place: Path) -> None:
    manifest = json.loads((place / "second" / "manifest.json").read_text())
    data = data_of(page_of(place, "second"))["round"]
    assert sum(data["bins"][0]) == manifest["rows"]["frontier"]
    assert sum(row["urls"] for row in data["hosts"]) == manifest["rows"]["frontier"]
    assert sum(row["selected"] for row in data["top"]) == 10
    assert {stage["stage"] for stage in data["stages"]} == set(manifest["stages"])
    assert data["changes"]["came"]["rows"]
    chosen = {row["url"] for row in data["changes"]["chosen"]["rows"]}
    assert chosen == {row["url"] for row in data_of(page_of(place, "first"))["round"]["top"] if row["selected"]}
    assert data_of(page_of(place, "first"))["round"]["changes"] is None
    assert data["keywords"]["nodes"]
    words = data["keywords"]["nodes"]
    relations = {(row["source"], row["target"]) for row in rows_of(place, "relations") if row["relation"] == "PART_OF"}
    for upper, lower, _ in data["keywords"]["edges"]:
        assert words[upper]["layer"] < words[lower]["layer"]
        assert words[upper]["y"] < words[lower]["y"]
        assert (words[upper]["name"], words[lower]["name"]) in relations
    # The lines join the words and close no circle.
    assert len(data["keywords"]["edges"]) < len(words)


def rows_of(place: Path, table: str) -> list[dict[str, Any]]:
    return [row for path in (place / "second" / table).glob("*") for row in pq.read_table(path).to_pylist()]


def test_the_drawing_of_concepts_is_their_order(place: Path) -> None:
    drawing = data_of(page_of(place, "second"))["round"]["lattice"]
    concepts = sorted(rows_of(place, "base_concepts"), key=lambda row: (-row["support"], row["concept"]))
    intents = [frozenset(row["intent"]) for row in concepts[: len(drawing["nodes"])]]
    assert [node["support"] for node in drawing["nodes"]] == [row["support"] for row in concepts[: len(intents)]]
    covers = {
        (a, b)
        for a, upper in enumerate(intents)
        for b, lower in enumerate(intents)
        if upper < lower and not any(upper < between < lower for between in intents)
    }
    assert {(upper, lower) for upper, lower, _ in drawing["edges"]} == covers
    above: dict[int, set[str]] = {place: set() for place in range(len(intents))}
    for upper, lower in covers:
        above[lower] |= intents[upper]
    for number, node in enumerate(drawing["nodes"]):
        written = set(node["label"].split(", ")) - {""}
        assert written == (intents[number] - above[number] if intents[number] else {"all"})


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


class _Counter(BaseHTTPRequestHandler):
    """A proxy that has one page, and remembers what it was asked for."""

    page = b""
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200 if self.path == "http://report.test/" else 502)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if self.path == "http://report.test/":
            self.wfile.write(self.page)

    def do_CONNECT(self) -> None:
        self.asked.append(f"https://{self.path}")
        self.send_response(502)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_a_browser_asks_for_nothing_but_the_page(place: Path, tmp_path: Path) -> None:
    script = """
      document.querySelectorAll('tr.row').forEach((row) => row.click());
      document.querySelectorAll('.node').forEach((node) => node.dispatchEvent(new Event('focus')));
      document.body.dataset.resources = performance.getEntriesByType('resource').length;
    """
    page = page_of(place, "second")
    _Counter.page = with_script(page, script).encode()
    _Counter.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Counter) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        shown = browse("http://report.test/", tmp_path, f"--proxy-server=http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert 'data-resources="0"' in shown
    hosts = {row["host"] for row in data_of(page)["round"]["hosts"]}
    asked = [urlsplit(url) for url in _Counter.asked]
    assert {url.path for url in asked if url.hostname == "report.test"} <= {"/", "/favicon.ico"}
    # The browser has questions of its own; none is for what the page names.
    assert not hosts & {url.hostname for url in asked}


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
      for (const key of ['ArrowDown', 'Enter', 'ArrowRight']) {{
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key, bubbles: true}}));
        if (key === 'ArrowDown') document.querySelector('#lattice .node').focus();
      }}
      document.getElementById('theme').click();
    """
    shown = in_browser(page_of(place, "second"), script, tmp_path)
    top = shown[shown.index('id="top"') : shown.index('id="scores"')]
    assert top.count('class="row"') == sum(wanted["url"][8:] in row["url"] for row in data["top"])
    assert "links from or to the queue" in top
    lattice = shown[shown.index('id="lattice"') : shown.index('id="rejects"')]
    assert 'class="node on"' in lattice
    # One stop for the tabulator, which the arrow keys have moved on.
    nodes = re.findall(r'<g class="node[^>]*tabindex="(-?[01])"', lattice)
    assert nodes.count("0") == 1
    assert nodes[0] == "-1"
    assert "data-theme=" in shown[:300]


def test_addresses_can_not_leave_the_data(place: Path, tmp_path: Path) -> None:
    page = page_of(place, "first").replace(
        "https://birds.example/waterbirds/", "https://x/\\u003c/script>\\u003cb id=evil>"
    )
    assert 'id="evil"' not in in_browser(page, "", tmp_path)
    assert "</script><b" not in page


def test_the_policy_allows_the_page_s_own_script_and_style_alone(place: Path, tmp_path: Path) -> None:
    page = page_of(place, "first")
    assert "unsafe-inline" not in page
    foreign = page.replace("</body>", "<script>document.body.id = 'evil'</script></body>").replace(
        "<body>", '<body onload="document.title = 1"><p style="color: red" id="styled">x</p>'
    )
    file = tmp_path / "page.html"
    file.write_text(foreign, encoding="utf-8")
    shown = browse(file.as_uri(), tmp_path)
    assert 'id="evil"' not in shown
    assert "<title>1</title>" not in shown
    assert 'class="row"' in shown


def test_only_addresses_of_the_web_become_links(place: Path, tmp_path: Path) -> None:
    addresses = ["javascript:alert(1)", "data:text/html,x", "JavaScript://a.example/%0aalert(1)"]
    data = data_of(page_of(place, "second"))
    for rows in (data["round"]["top"], data["round"]["changes"]["came"]["rows"]):
        for row, address in zip(rows[: len(addresses)], addresses, strict=True):
            row["url"] = address
    page = re.sub(
        r'(<script id="data" type="application/json">).*?(</script>)',
        lambda found: found[1] + json.dumps(data).replace("<", "\\u003c") + found[2],
        page_of(place, "second"),
        flags=re.DOTALL,
    )
    shown = in_browser(page, "document.querySelectorAll('tr.row').forEach((row) => row.click());", tmp_path)
    body = shown[: shown.index('<script id="data"')]
    for address in addresses:
        assert body.count(address) >= 2
    assert not re.search('href="(?:javascript|data):', body, re.IGNORECASE)


def test_titles_and_main_reasons_stand_in_the_rows(place: Path) -> None:
    data = data_of(page_of(place, "second"))["round"]
    titles = {row["url"]: row["title"] for row in pq.read_table(place / "snapshot" / "pages").to_pylist()}
    assert {row["url"]: row["title"] for row in data["top"]} == {
        row["url"]: titles.get(row["url"]) for row in data["top"]
    }
    assert any(row["title"] for row in data["top"])
    assert all(row["why"] is None for row in data["top"] if not row["reasons"])
    changed = {row["name"] for row in data["parameters"] if row["changed"]}
    assert {"max_urls", "profile"} <= changed
    assert "language" not in changed


def test_a_printed_page_hides_nothing(place: Path, tmp_path: Path) -> None:
    script = "window.dispatchEvent(new Event('beforeprint'));"
    shown = in_browser(page_of(place, "second"), script, tmp_path)
    assert shown.count("<details") == shown.count("<details open")


def evaluation(folder: Path, crawls: dict[str, list[list[int]]]) -> Path:
    """An evaluation of crawls, each told by the relevant pages after every page, of ten that there are."""
    rows = [
        (ranker, "frontier", "t", number, page, found, found / page, found / page, found / 10, 0.0, page / 8)
        for ranker, curves in crawls.items()
        for number, curve in enumerate(curves)
        for page, found in enumerate(curve, start=1)
    ]
    columns = [
        pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), CURVE.schema, strict=True)
    ]
    tables = {"curve": pa.table(columns, CURVE.schema), "summary": SUMMARY.empty(), "sweep": SWEEP.empty()}
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(table, folder / name / "part-00000.parquet")
    (folder / "manifest.json").write_text(json.dumps({"kind": "evaluation", "versions": {"semrank": "0"}}))
    return folder


def test_curves_of_crawls_that_ended_go_on(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "evaluation", {"b": [[1, 1, 2, 3], [1]], "a": [[0, 0, 0, 1]]})
    page = tmp_path / "page.html"
    assert main(["report", "--evaluation", str(folder), "--output", str(page), "--quiet"]) == 0
    facts = data_of(page.read_text())["evaluation"]
    assert "ran out of candidates keeps its last values" in facts["curves_note"]
    harvest, precision, _, seconds = facts["modes"][0]["charts"]
    assert [line["name"] for line in harvest["lines"]] == ["b", "a"]
    # The second crawl of b has one relevant page and ends: it has one of two, of three and of four pages.
    expected = [(1 + 1) / 2, (1 / 2 + 1 / 2) / 2, (2 / 3 + 1 / 3) / 2, (3 / 4 + 1 / 4) / 2]
    assert harvest["lines"][0]["points"] == [[page, pytest.approx(rate)] for page, rate in enumerate(expected, start=1)]
    recall = [(1 + 1) / 20, (1 + 1) / 20, (2 + 1) / 20, (3 + 1) / 20]
    assert [point[0] for point in precision["lines"][0]["points"]] == pytest.approx(recall)
    assert [point[0] for point in seconds["lines"][0]["points"]] == [page / 16 + 1 / 16 for page in (1, 2, 3, 4)]


def test_means_are_pivoted_by_ranker(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "evaluation", {"a": [[0, 1], [1, 1]], "b": [[1, 2], [1, 2]]})
    names = SUMMARY.schema.names
    rows = [
        dict(zip(names, ("a", "frontier", "harvest", 2, 2, 0.5, 0.4, 0.6, None, None, None), strict=True)),
        dict(zip(names, ("a", "frontier", "seconds", 2, 2, 0.1, 0.1, 0.1, None, None, None), strict=True)),
        dict(zip(names, ("b", "frontier", "harvest", 2, 2, 1.0, 1.0, 1.0, 0.5, 0.4, 0.6), strict=True)),
        dict(zip(names, ("b", "frontier", "seconds", 2, 2, 0.2, 0.2, 0.2, 0.1, 0.0, 0.2), strict=True)),
    ]
    pq.write_table(pa.Table.from_pylist(rows, SUMMARY.schema), folder / "summary" / "part-00000.parquet")
    page = tmp_path / "page.html"
    assert main(["report", "--evaluation", str(folder), "--output", str(page), "--quiet"]) == 0
    facts = data_of(page.read_text())["evaluation"]
    pivot = facts["pivots"]["frontier"]
    assert pivot["measures"] == ["harvest@2", "seconds"]
    assert [(row["ranker"], row["harvest@2"]["mean"], row["seconds"]["mean"]) for row in pivot["rows"]] == [
        ("a", 0.5, 0.1),
        ("b", 1.0, 0.2),
    ]
    # Two crawls with harvests 0 and 1 after a page: standard error sqrt(1/2) / sqrt 2 = 1/2.
    band = facts["modes"][0]["charts"][0]["lines"][0]["band"]
    assert band[0] == pytest.approx([1, 0.5 - 0.98, 0.5 + 0.98])
    shown = browse(page.as_uri(), tmp_path)
    assert "1.000 [1.000, 1.000] \u25b2" in shown
    assert shown.count("<polygon") >= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--round", "{place}/nothing", "--output", "{place}/x.html"], "no such folder, expected a round"),
        (["--round", "{place}/first", "--output", "{place}/x.txt"], "expected a name that ends in .html"),
        (["--round", "{place}/first", "--output", "{place}/first.html"], "already exists"),
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
