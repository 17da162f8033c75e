"""Inputs of other people's reports, beside the checkout: what comes out of each is what its standard says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from semrank.pipelines.cli import main
from semrank.pipelines.queue import queue_from_seeds
from semrank.schemas.errors import InputError
from semrank.transforms.crawls import nutch, scrapy, snapshot, tables, warc
from semrank.transforms.crawls.beam import _tables
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.streams.batch import SourceBatch
from tests.support.crawls import together
from tests.support.logs import Outcome, read_all
from tests.support.snapshots import read_rows

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


def snapshot_of(*sources: Iterable[SourceBatch]) -> dict[str, list[dict[str, Any]]]:
    """Pages, links, aliases and history of batches, as a snapshot has them."""
    rows: dict[str, list[pa.Table]] = {}
    for batches in sources:
        for batch in batches:
            for name, table in _tables(batch):
                rows.setdefault(name, []).append(table)
    parts = [
        pa.concat_tables(rows[name]) if name in rows else None for name in ("pages", "aliases", "history", "captured")
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    for name, table in snapshot.page_partition(*parts):
        found.setdefault(name, []).extend(table.to_pylist())
    return found


@pytest.mark.parametrize(
    ("file", "zone"),
    [
        ("part-00000.csv", None),
        ("part-00000.csv", "Asia/Shanghai"),
        ("part-ist.csv", None),
        ("part-ist.csv", "Asia/Kolkata"),
        ("part-jst.csv", None),
    ],
)
def test_dump_in_an_ambiguous_zone(cases: Path, file: str, zone: str | None) -> None:
    folder, limits = cases / "nutch-cst", CrawlLimits(nutch_zone=zone)
    with (folder / "seg.warc").open("rb") as archive, (folder / file).open("rb") as dump:
        found = snapshot_of(warc.read(archive, source="w"), nutch.read(dump, source="n", limits=limits))
    (page,) = found["pages"]
    assert (page["title"], page["fetched_at"].isoformat()) == ("Weather stations", "2024-05-01T10:00:00+00:00")
    assert "mountain weather stations" in page["text"]
    assert [row["target_url"] for row in found["links"]] == [f"{SITE}/next"]


def test_revisits(cases: Path, tmp_path: Path) -> None:
    output = tmp_path / "snapshot"
    assert main(["ingest", "--warc", str(cases / "revisits" / "rev.warc"), "--output", str(output), "--quiet"]) == 0
    rows = {name: read_rows(output / name) for name in ("pages", "links", "aliases", "history")}
    pages = {row["url"].removeprefix(SITE): (row["status"], row["title"]) for row in rows["pages"]}
    assert pages == {"/a": (200, "A"), "/b": (200, "A"), "/gone": (404, None), "/x404": (404, None)}
    texts = {row["url"].removeprefix(SITE): row["text"] for row in rows["pages"] if row["text"] is not None}
    assert set(texts) == {"/a", "/b"}
    assert texts["/b"] == texts["/a"]
    assert [row["source_url"] for row in rows["links"]] == [f"{SITE}/a"]
    aliases = {row["url"]: row["target_url"] for row in rows["aliases"]}
    assert aliases == {f"{SITE}/old1": f"{SITE}/a", f"{SITE}/old2": f"{SITE}/next"}
    days = [row["fetched_at"].day for row in rows["history"] if row["url"] == f"{SITE}/a"]
    assert days == [3, 4]
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["sources"][0]["ignored"], manifest["borrowed"]) == ({"status-5xx": 1}, {"pages": 1})


ROOT, ROUTES = f"{SITE}/", f"{SITE}/routes"


@pytest.mark.parametrize(
    ("name", "urls", "reasons"),
    [
        ("bom-crlf", [ROOT, ROOT, f"{SITE}/unknown"], []),
        ("nutch-meta", [ROOT], []),
        ("nutch-meta-two", [ROOT, ROUTES], []),
        ("stormcrawler-line", [ROOT], []),
        ("heritrix-meta", [ROOT, ROUTES], ["scheme-missing"]),
        ("cr-only", [ROOT, ROUTES], []),
        ("bare-host", [ROOT], ["scheme-missing"]),
        ("unknown-only", ["https://other.example.net/"], []),
    ],
)
def test_seeds(cases: Path, name: str, urls: list[str], reasons: list[str]) -> None:
    queue = queue_from_seeds(str(cases / "seeds" / f"{name}.txt"))
    assert sorted(queue.urls["url"].to_pylist()) == sorted(set(urls))
    assert queue.rejects["reason"].to_pylist() == reasons


@pytest.mark.parametrize("name", ["csv-line", "quoted", "angle", "utf16"])
def test_seeds_that_are_none(cases: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"layout-unknown|scheme-missing|is UTF-16"):
        queue_from_seeds(str(cases / "seeds" / f"{name}.txt"))


def test_variants_of_arc(cases: Path) -> None:
    with (cases / "arc-variants" / "x.arc").open("rb") as archive:
        found = together(warc.read(archive, source="x.arc"))
    pages = {row["url"].removeprefix("http://www.example.org/"): row["title"] for row in found["pages"]}
    names = ("plain", "space%20in%20url?q=a%20b", "mime-space", "mime-two", "long-date", "after")
    assert pages == {**dict.fromkeys(names, "Arc page"), "no-type": "Headless"}
    assert (found["records"], found["used"], found["ignored"]) == (8, 7, {"warcinfo": 1})


def test_dates_of_warc(cases: Path) -> None:
    with (cases / "warc-dates" / "d.warc").open("rb") as archive:
        found = together(warc.read(archive, source="d.warc"))
    assert (found["used"], found["counters"]) == (16, {"date-missing-or-invalid": 3})
    undated = [row["url"].rpartition("/")[2] for row in found["pages"] if row["fetched_at"] is None]
    assert undated == ["d7", "d10", "d11"]


def found_in(cases: Path, name: str) -> dict[str, Any]:
    """What the archive of a case gives."""
    (archive,) = (cases / name).glob("*.warc")
    with archive.open("rb") as opened:
        return together(warc.read(opened, source=name))


def test_robots_directives(cases: Path) -> None:
    found = found_in(cases, "robots-directives")
    silent = {row["url"].removeprefix(f"{SITE}/") for row in found["pages"] if not row["title"] and not row["text"]}
    followed = {row["source_url"].removeprefix(f"{SITE}/") for row in found["links"] if not row["nofollow"]}
    assert silent == {"two-headers", "plain-none"}
    assert followed == {"preview-none", "preview-large", "hdr-preview-none", "other-bot", "unavailable"}


def test_words_of_anchors_and_titles(cases: Path) -> None:
    found = found_in(cases, "anchor-and-title")
    anchors = {row["target_url"].removeprefix(f"{SITE}/"): row["anchor_text"] for row in found["links"]}
    assert {name: anchors[name] for name in ("1", "2", "3", "4", "5", "7", "9", "10", "12")} == {
        **{"1": "Alpine huts Open in June", "2": "First line second line", "3": "Breaking News", "4": "Styled"},
        **{"5": "Pic", "7": "Scripted", "9": "One Two", "10": "Boldness", "12": "x"},
    }
    titles = {row["url"].removeprefix(f"{SITE}/"): row["title"] for row in found["pages"]}
    assert (titles["svg-title"] or None, titles["svg-then-title"]) == (None, "Real title")
    assert (titles["xhtml-self"], titles["empty-title"] or None) == ("XHTML page", None)
    sniffed = {"ct-space", "ct-quotes", "ct-comma", "ct-two", "ct-unknown", "ct-semis", "ct-colon"}
    assert {titles[name] for name in sniffed} == {"Space", "Quotes", "Comma", "Two", "Unknown", "Semis", "Colon"}
    assert {f"c{number}" for number in range(1, 8)} <= set(anchors)


def test_charset_traps(cases: Path) -> None:
    titles = {row["url"].rpartition("/")[2]: row["title"] for row in found_in(cases, "charset-traps")["pages"]}
    assert titles == {
        **dict.fromkeys(("comment-meta", "description-charset", "data-charset", "script-charset"), "Zürich Möbel"),
        **{"header-wins": "Привет мир", "fold": "Привет мир", "header-none": "中文网页镕"},
        **{"euc-nec": "日本の第", "euc-nec-title": "①日本", "iso2022": "日本", "iso2022-nec": "①日本"},
        **{"utf16-header": "Zürich", "utf16be-bom": "Zürich", "quote-utf": "Zürich", "x-user": "Zurich"},
    }


def test_bases_refreshes_and_frames(cases: Path) -> None:
    found = found_in(cases, "base-and-links")
    links: dict[str, list[str]] = {}
    for row in found["links"]:
        page = row["source_url"].removeprefix(f"{SITE}/a/")
        links.setdefault(page, []).append(row["target_url"].removeprefix(SITE))
    assert {name: links.get(name) for name in ("base-js", "base-data", "base-blank", "base-two", "base-frag")} == {
        **{"base-js": ["/a/next", "/root"], "base-data": ["/a/next"], "base-blank": None},
        **{"base-two": ["/b/next"], "base-frag": ["/other/"]},
    }
    assert links["frames"] == ["/a/menu.html", "/a/main.html"]
    assert {"/iframe", "/area"} < set(links["links"])
    aliases = {row["url"].removeprefix(f"{SITE}/a/"): row["target_url"].removeprefix(SITE) for row in found["aliases"]}
    assert aliases == {
        **{"refresh": "/it's-here?a=b", "refresh2": "/quoted", "refresh3": "/bare"},
        **{"loc-fold": "/folded", "loc-two": "/first"},
    }
    assert found["counters"]["links-from-frames"] == 3


def test_encodings(cases: Path) -> None:
    found = found_in(cases, "encodings")
    assert (len(found["pages"]), found["rejects"], found["ignored"]) == (found["records"], [], {})
    texts = {row["url"].removeprefix(f"{SITE}/"): row["text"] for row in found["pages"]}
    plain = {
        "br-done-text": "Plain words of a text file about huts.",
        "chunk-text": "2024\nA year in huts, as plain text",
    }
    for name, text in texts.items():
        assert text.startswith(plain.get(name, "Readings of the mountain weather stations are kept by volunteers."))
    assert all(row["title"] for row in found["pages"] if not row["url"].endswith("-text"))


def test_lists_of_scrapy(cases: Path) -> None:
    with (cases / "scrapy-lists" / "items.jsonl").open("rb") as items:
        found = together(scrapy.read(items, source="s"))
    assert [(row["url"], row["status"], row["title"], row["text"]) for row in found["pages"]] == [
        (f"{SITE}/l1", 200, "One", "Some text of the page."),
        (f"{SITE}/l2", 200, "Two", "Part one\npart two"),
    ]
    targets = [(row["target_url"], row["anchor_text"]) for row in found["links"]]
    assert targets == [(f"{SITE}/a", None), (f"{SITE}/b", "B text"), (f"{SITE}/c", "C")]


def test_tables_of_clicks(cases: Path) -> None:
    folder = cases / "click-tables"
    columns = {"user": "uid", "query": "words", "time": "when", "url": "page"}
    options = LogOptions(user_salt="a test's own key", columns=columns)
    csv, tsv = (read_all("table", (folder / name).read_bytes(), options, source=name) for name in ("t.csv", "t.tsv"))
    times = {row["url"].rpartition("/")[2]: row["clicked_at"].strftime("%H:%MZ") for row in csv.clicks}
    assert times == {"a": "01:30Z", "b": "02:30Z", "c": "01:30Z", "d": "01:30Z", "e": "00:30Z", "f": "02:30Z"}
    assert (csv.rejected, csv.ignored, len(tsv.clicks)) == ({"time-invalid": 2}, {"header": 1}, 1)
    aol = read_all("aol", (folder / "aol.txt").read_bytes(), LogOptions())
    assert (len(aol.clicks), aol.ignored, aol.rejected) == (1, {"header": 1, "no-click": 2}, {})
    orcas = read_all("orcas", (folder / "orcas.tsv").read_bytes(), LogOptions())
    assert [row["user_id"] for row in orcas.clicks] == ["orcas-10-D1", "orcas-11-D2"]
    with (folder / "c.jsonl").open("rb") as lines:
        found = together(tables.read_json_lines(lines, table="clicks", source="c"))
    assert [(row["url"][-1], row["position"]) for row in found["clicks"]] == [("a", None), ("c", None), ("e", 3)]
    assert found["rejected"] == {"user-id-invalid": 1, "position-invalid": 1}


REFUSED = ("boolq", "structq", "time64")


def test_types_of_parquet(cases: Path) -> None:
    counts: dict[str, Any] = {}
    for path in sorted((cases / "parquet-types").glob("*.parquet")):
        with path.open("rb") as stream:
            try:
                found = together(tables.read_parquet(stream, table="clicks", source=path.name))
            except InputError as refused:
                counts[path.stem] = str(refused).split(" has type ")[0]
            else:
                counts[path.stem] = (len(found["clicks"]), dict(found["rejected"]))
    assert {name: counts.pop(name) for name in REFUSED} == {
        "boolq": "boolq.parquet: table clicks: column 'query'",
        "structq": "structq.parquet: table clicks: column 'query'",
        "time64": "time64.parquet: table clicks: column 'clicked_at'",
    }
    assert counts.pop("dict") == (1, {"query-missing": 1})
    assert counts.pop("uint") == (1, {"position-invalid": 1})
    assert counts.pop("emptyfile") == (0, {})
    assert counts == dict.fromkeys(counts, (2, {}))


def test_url_parameters(cases: Path) -> None:
    pages = {row["title"]: row["url"].removeprefix(SITE) for row in found_in(cases, "url-parameters")["pages"]}
    assert len(set(pages.values())) == len(pages) == 7
    assert not any("pk_campaign" in url for url in pages.values())
