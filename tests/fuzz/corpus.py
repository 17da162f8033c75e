"""The inputs that fuzzing starts from: small files in `corpus/TARGET/`, good ones and those that once did harm.

`python -m tests.fuzz.corpus` writes the good ones anew.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import rdflib
import zstandard

from semrank.transforms.ranking.ontology_formats import format_ontology, shipped_ontology
from tests.support.crawls import (
    HERITRIX,
    HTML,
    NUTCH_HEADER,
    WAT_HTML,
    arc,
    envelope,
    http,
    members,
    nutch_json,
    nutch_line,
    warc,
)
from tests.support.log_samples import SAMPLES, sample

CORPUS = Path(__file__).with_name("corpus")

RICH_HTML = """<!doctype html><html lang="de"><head><meta charset=utf-8><title>Ein Titel &amp; mehr</title>
<base href="/sub/"><meta name=robots content="nofollow"><link rel=canonical href="/page">
<meta http-equiv=refresh content="5; url='/new'"></head><body><nav><a href="?a=1&utm_source=x">menu</a></nav>
<main><p>Worte über Spinnen, <a href="http://www.example.com/a" rel="nofollow">ein Verweis</a> und
<a href="//b.example"><img src=x alt="Bild"></a> <a href="mailto:x">post</a> <a href="#top">top</a></p>
<map><area href="http://[::1" alt=x></map><table><tr><td>Zelle</table><script>var a = "</a>";</script></main>"""

PAGE_ROWS: list[dict[str, object]] = [
    {"url": "http://example.com/1", "fetched_at": "2024-03-01T12:00:00Z", "status": 200, "title": "T", "text": "words"},
    {"url": "http://example.com/2", "keywords": ["a", "b"], "language": "en", "content_digest": "sha1:A"},
    {"url": "no url", "fetched_at": 1e20, "status": 99999},
]
LINK_ROWS: list[dict[str, object]] = [
    {"source_url": "http://a.example/", "target_url": "http://b.example/", "anchor_text": "b", "nofollow": True},
    {"source_url": "x", "target_url": "http://b.example/"},
]
TOPIC_ROWS: list[dict[str, object]] = [
    {"topic": "birds", "url": "http://a.example/", "is_seed": True},
    {"topic": "birds", "url": "no url"},
    {"topic": 1, "url": "http://a.example/"},
]
CLICK_ROWS: list[dict[str, object]] = [
    {"user_id": "u", "query": "moon", "clicked_at": "2024-03-01 12:00:00", "url": "http://a.example/", "position": 1},
    {"user_id": "", "query": "", "keywords": ["sun"], "clicked_at": 1709290000, "url": "http://a.example/"},
]
PDF = (
    b"%PDF-1.4\n1 0 obj\n<< /Title (A \\(nested\\) title \\101) >>\nendobj\ntrailer << /Info 1 0 R >>\n"
    b"<dc:title><rdf:Alt><rdf:li xml:lang='x'>Other &amp; title</rdf:li></rdf:Alt></dc:title>"
)
WIKISPEEDIA = (
    "# head\n\nMoon\n%C3%89ire\nMoon\tsubject.Science.Space\nMoon\t%C3%89ire\n"
    "6a3701d319fc3754\t1297740409\t166\tMoon;<;%C3%89ire\tNULL\n"
    "6a3701d319fc3754\t1297740409\t1800\tMoon;%C3%89ire\tMoon\ttimeout\n"
)
MANIFEST = {
    "kind": "round",
    "parameters": {"weight": 0.4, "ranker": "semrank"},
    "inputs": {"snapshot": {"path": "snapshot", "kind": "snapshot", "sha256": "0"}, "queue": {"path": "s", "urls": 1}},
    "rows": {"frontier": 1},
    "stages": {"read": {"rows_in": 1, "rows_out": 1, "seconds": 0.1}},
}
OPTIONS = {
    "rank": "--snapshot\ns\n--seeds\nf\n--output\no\n--weight\n0.4\n--top-probability\nmax\n"
    "--mix\n80:20\n--as-of\n2026-01-31",
    "numbers": "--snapshot=s\n--previous=r\n--output=o\n--alpha=0.5\n--max-urls=9\n--threshold=nan\n--smoothing=1e400",
    "ingest": "--warc\n*.gz\n--log\ncombined=x\n--user-salt\n12345678\n--log-site\nhttps://a.example\n--output\no",
    "columns": "--log\ntable=x\n--log-columns\nuser=0,query=1,time=2,url=3\n--site-search=q\n--output=o\n--max-links=7",
    "rounds": "rounds\n--rounds=2\n--snapshot=s\n--seeds=f\n--output=o\n--ranker=pagerank\n--level=host\n--budget=9",
    "export": "export\n--round=r\n--format=nutch\n--fetch-interval=60\n--output=o.txt\n--max-urls=3\n--overwrite",
    "evaluate": "evaluate\n--snapshot=s\n--topics=t\n--rankers=pagerank,hits\n--output=o\n--no-holdout-clicks",
    "beam": "--snapshot=s\n--seeds=f\n--output=o\n--runner\nFnApiRunner\n--direct_num_workers=2\n--experiments=a",
}
OPTION_FILE = """# options
snapshot = "s"  # of all commands
seeds = 'f'
'max-urls' = 1_000
overwrite = true
weight = 0.4
as-of = 2026-01-31
warc = ["a.warc", \"\"\"
b.warc\"\"\", '''c''']
rank.threshold = 0x1f
[export]
max_urls = 3
[beam]
direct_num_workers = 2
experiments = [{a = "b"}]
"""

TURTLE = """@prefix : <urn:semrank:ontology#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
PREFIX skos: <http://www.w3.org/2004/02/skos/core#> @base <urn:x> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Bird a owl:Class ; :topic true ; :sigma 1.5 ; rdfs:label "bird"@en, '''long
label''' ; skos:altLabel "\\u0062ird" .
:Hawk a owl:Class ; rdfs:subClassOf :Bird, [ a owl:Restriction ; owl:onProperty :eats ] ; :isPartOf :Sky ; :sigma 2e0 .
:Sky a skos:Concept ; skos:related :Hawk ; skos:narrower :Bird ; skos:hiddenLabel "h"^^<urn:t> ; :list ( 1 -2.5 "x" ) .
:eats a owl:ObjectProperty ; rdfs:domain :Hawk ; rdfs:range :Bird .
"""
RDF_XML = """<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY own "urn:semrank:ontology#">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
 xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:own="urn:semrank:ontology#" xml:base="urn:x" xml:lang="en">
<owl:Class rdf:ID="Bird"><rdfs:label>bird</rdfs:label><own:topic
 rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</own:topic></owl:Class>
<owl:Class rdf:about="&own;Hawk"><rdfs:subClassOf rdf:resource="#Bird"/><rdfs:subClassOf><owl:Class
 rdf:nodeID="a"/></rdfs:subClassOf></owl:Class><owl:ObjectProperty rdf:ID="eats"><rdfs:domain rdf:resource="&own;Hawk"/>
<rdfs:range rdf:resource="#Bird"/></owl:ObjectProperty><rdf:Seq>
<rdf:li rdf:parseType="Collection"/></rdf:Seq></rdf:RDF>"""
JSON_LD: dict[str, object] = {
    "@context": {
        "Class": "http://www.w3.org/2002/07/owl#Class",
        "kind": {"@id": "http://www.w3.org/2000/01/rdf-schema#subClassOf", "@type": "@id", "@container": "@set"},
        "label": {"@id": "http://www.w3.org/2000/01/rdf-schema#label", "@language": "en"},
        "@vocab": "urn:x:",
    },
    "@graph": [
        {"@id": "urn:x:Hawk", "@type": "Class", "kind": ["urn:x:Bird"], "label": "hawk"},
        {"@id": "urn:x:Bird", "@type": "Class", "label": {"@value": "bird"}, "part": {"@list": [1, True, None]}},
    ],
}
TABLES = """CREATE TABLE product (id INTEGER PRIMARY KEY, price REAL, shopName TEXT);
CREATE TABLE book (id INTEGER PRIMARY KEY REFERENCES product(id), author TEXT);
CREATE TABLE line (
  sale INTEGER REFERENCES sale(id), number INTEGER, item REFERENCES product(id), PRIMARY KEY (sale, number)
);
CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer TEXT);
INSERT INTO product VALUES (1, 2.5, 'a'), (2, 9, 'b');
INSERT INTO book VALUES (1, 'c');
INSERT INTO sale VALUES (1, 'd');
INSERT INTO line VALUES (1, 1, 2);"""


def ontologies() -> dict[str, dict[str, bytes]]:
    """The shipped ontology as written, and small ones that use more of each format."""
    whole = format_ontology(shipped_ontology("e-commerce"))
    small = TURTLE.encode()
    nt = bytes(rdflib.Graph().parse(data=small, format="turtle").serialize(format="nt", encoding="utf-8"))
    plain = small.replace(
        b"PREFIX skos: <http://www.w3.org/2004/02/skos/core#>",
        b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .",
    )
    plain = plain.replace(b"'''", b'"""')
    n3 = plain + b"@keywords a. { <urn:a> = <urn:b> } => { <urn:a> is <urn:c> of <urn:d> . } .\n"
    return {
        "ontology-turtle": {"shipped": whole, "small": small},
        "ontology-n3": {"small": plain, "formulas": n3},
        # Blank nodes have other names each time.
        "ontology-nt": {"small": b"".join(sorted(line for line in nt.splitlines(keepends=True) if b"_:" not in line))},
        "ontology-xml": {"entities": RDF_XML.encode()},
        "ontology-json-ld": {"context": json.dumps(JSON_LD).encode()},
        "ontology-sqlite": {"shop": database()},
    }


def database() -> bytes:
    """A database in a file of SQLite."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("PRAGMA page_size = 512;" + TABLES)
        return connection.serialize()


def lines(rows: Sequence[Mapping[str, object]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet(table: pa.Table, compression: str = "none") -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=compression, row_group_size=2, store_schema=compression != "none")
    return sink.getvalue()


def seeds() -> Mapping[str, Mapping[str, bytes]]:
    """The good inputs by target and name."""
    archive = [
        warc(http()),
        warc(http(status="301 Moved", Location="/other"), "http://example.com/old"),
        warc(http(gzip.compress(HTML, mtime=0), Content_Encoding="gzip"), version="1.1"),
        warc(b"", kind="revisit", WARC_Payload_Digest="sha1:AAAA"),
        warc(HTML, kind="resource", content_type="text/html", WARC_Truncated="length"),
        warc(http(PDF, content_type="application/pdf"), "http://example.com/document"),
    ]
    index = pa.table(
        {
            "url": ["http://example.com/1", "http://example.com/2", "x"],
            "fetch_time": pa.array([1_700_000_000_000] * 3, pa.timestamp("ms")),
            "fetch_status": pa.array([200, 301, 404], pa.int16()),
            "fetch_redirect": [None, "/1", None],
            "content_mime_type": ["text/html"] * 3,
        }
    )
    pages = pa.table({"url": ["http://example.com/1", "x"], "text": ["a", None], "keywords": [["a"], None]})
    links = pa.table({"source_url": ["http://a.example/"] * 3, "target_url": ["http://b.example/", "x", ""]})
    logs = {f"log-{name}": {"sample": sample(name, 2)} for name in SAMPLES}
    logs["log-combined"] = {**logs["log-combined"], "gzip": gzip.compress(sample("combined"), mtime=0)}
    logs["log-aol"] = {**logs["log-aol"], "bzip2": bz2.compress(sample("aol"))}
    logs["log-orcas"] = {**logs["log-orcas"], "zstd": zstandard.compress(sample("orcas"))}
    logs["log-table"] = {
        **logs["log-table"],
        "header": b'uid,words,when,page,rank\nann,"moon, x",2024-01-01,https://a.example/,2\n',
    }
    return {
        **logs,
        **ontologies(),
        "warc": {
            "plain": b"".join(archive),
            "gzip": members(archive[:3]),
            "zstd": b"".join(map(zstandard.compress, archive[:3])),
            "arc": arc(b"filedesc", "filedesc://x.arc", "text/plain") + arc(http()),
        },
        "wat": {"plain": envelope(html=WAT_HTML), "gzip": members([envelope(html=WAT_HTML)])},
        "wet": {"plain": warc(b"title\nwords", kind="conversion", WARC_Identified_Content_Language="eng")},
        "cc-index": {"plain": parquet(index), "snappy": parquet(index, "snappy")},
        "nutch": {"mixed": "\n".join([NUTCH_HEADER, nutch_line("http://example.com/"), nutch_json(), "odd"]).encode()},
        "heritrix": {"log": "\n".join(HERITRIX).encode()},
        "scrapy": {
            "items": lines(
                [
                    {"url": "http://example.com/", "links": ["/x", {"href": "/y", "text": "t"}], "html": RICH_HTML},
                    {"page_url": "http://example.com/", "date": "2024-01-01", "redirect_urls": ["http://a.example/"]},
                ]
            )
        },
        "pages": {"lines": lines(PAGE_ROWS), "parquet": parquet(pages), "snappy": parquet(pages, "snappy")},
        "links": {
            "lines": lines(LINK_ROWS),
            "parquet": parquet(links),
            "gzip": gzip.compress(lines(LINK_ROWS), mtime=0),
        },
        "clicks": {"lines": lines(CLICK_ROWS)},
        "url": {
            "plain": b"http://www.example.com/a/../b?utm_source=x&sid=9f86d081884c#top",
            "odd": "HTTPS://üser:pw@BÜCHER.example.:443/%7Ea;jsessionid=1/(S(abc))/x?&&b=%zz".encode(),
            "relative": b"//b.example\\c?d",
            "address": b"http://[2001:db8::1]:8080/",
            "number": b"http://0x7f.1/",
        },
        "html": {"rich": RICH_HTML.encode(), "plain": HTML, "utf-16": b"\xff\xfe" + RICH_HTML.encode("utf-16-le")},
        "http": {
            "gzip": http(gzip.compress(HTML, mtime=0), Content_Encoding="gzip"),
            "zstd": http(zstandard.compress(HTML), Content_Encoding="zstd"),
            "chunks": http(b"5\r\nhello\r\n3;x=y\r\nyou\r\n0\r\n\r\n", Transfer_Encoding="chunked"),
            "deflate": http(b"\x4b\x4c\x02\x00", Content_Encoding="deflate"),
            "brotli": http(b"\x0b\x02\x80hello\x03", Content_Encoding="br"),
        },
        "document": {
            "pdf": PDF,
            "feed": b"<?xml version='1.0'?><rss><channel><title><![CDATA[A feed]]></title></channel></rss>",
        },
        "wikispeedia": {"rows": WIKISPEEDIA.encode()},
        "seeds": {"file": b"# seeds\nhttp://example.com/ # comment\nhttp://example.com/#part\nno url\n"},
        "topics": {"lines": lines(TOPIC_ROWS), "parquet": parquet(pa.Table.from_pylist(TOPIC_ROWS[:2]))},
        "path-list": {"plain": b"crawl-data/1.warc.gz\n\n/2.warc.gz\n", "gzip": gzip.compress(b"a/1\na/2\n", mtime=0)},
        "manifest": {"round": json.dumps(MANIFEST).encode(), "snapshot": b'{"kind": "snapshot", "sources": []}'},
        "options": {name: text.encode() for name, text in OPTIONS.items()},
        "option-file": {"whole": OPTION_FILE.encode()},
    }


def corpus(target: str) -> list[bytes]:
    """All inputs of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def write() -> None:
    """Writes the good inputs."""
    for target, named in seeds().items():
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        for name, content in named.items():
            (CORPUS / target / name).write_bytes(content)


if __name__ == "__main__":
    write()
