"""Records of crawls in their formats, good and bad."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from semrank.transforms.streams.batch import SourceBatch

HTML = b"<html lang=en><title>T</title><body><p>Some words of a page.</p><a href='/next'>on</a></body></html>"


def http(
    body: bytes = HTML, status: str = "200 OK", content_type: str | None = "text/html; charset=utf-8", **headers: str
) -> bytes:
    lines = [f"HTTP/1.1 {status}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def warc(
    block: bytes,
    url: str | None = "http://example.com/page",
    *,
    kind: str = "response",
    date: str | None = "2024-03-01T12:00:00Z",
    content_type: str = "application/http; msgtype=response",
    version: str = "1.0",
    length: int | None = None,
    **headers: str,
) -> bytes:
    named = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": date,
        "Content-Type": content_type,
        **{name.replace("_", "-"): value for name, value in headers.items()},
        "Content-Length": str(len(block) if length is None else length),
    }
    lines = [f"WARC/{version}", *(f"{name}: {value}" for name, value in named.items() if value is not None)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def arc(block: bytes, url: str = "http://example.com/page", content_type: str = "text/html") -> bytes:
    return f"{url} 192.0.2.1 20240301120000 {content_type} {len(block)}\n".encode() + block + b"\n"


def members(records: Iterable[bytes]) -> bytes:
    """The records compressed one by one."""
    return b"".join(gzip.compress(record, mtime=0) for record in records)


def stream(content: bytes) -> io.BytesIO:
    return io.BytesIO(content)


def together(batches: Iterable[SourceBatch]) -> dict[str, Any]:
    """The sums of batches, and the rows of their tables."""
    total: dict[str, Any] = {
        "records": 0,
        "used": 0,
        "rejected": Counter(),
        "ignored": Counter(),
        "counters": Counter(),
    }
    rows: dict[str, list[dict[str, Any]]] = {}
    for batch in batches:
        total["records"] += batch.records
        total["used"] += batch.used
        for kind in ("rejected", "ignored", "counters"):
            total[kind].update(getattr(batch, kind))
        for name, table in batch.tables.items():
            rows.setdefault(name, []).extend(table.to_pylist())
    assert total["records"] == total["used"] + sum(total["rejected"].values()) + sum(total["ignored"].values())
    return {
        **total,
        **{name: rows.get(name, []) for name in ("pages", "links", "clicks", "aliases", "history", "rejects")},
    }


URL = "http://example.com/page"

NUTCH_HEADER = (
    "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,Retry interval seconds,"
    "Retry interval days,Score,Signature,Metadata"
)


def nutch_line(
    url: str = URL,
    status: str = "db_fetched",
    due: str = "Sun Mar 31 14:00:00 CEST 2024",
    signature: str = "0a1b",
    metadata: str = "_pst_:success(1), lastModified=0|||Content-Type:text/html|||",
) -> str:
    return f'"{url}",2,"{status}",{due},Thu Jan 01 01:00:00 CET 1970,0,2592000.0,30.0,1.5,"{signature}","{metadata}"'


def nutch_json(**changes: Any) -> str:
    return json.dumps(
        {
            "url": URL,
            "statusCode": 2,
            "statusName": "db_fetched",
            "fetchTime": "Sun Mar 31 12:00:00 UTC 2024",
            "retryIntervalSeconds": 2592000,
            "signature": "0a1b",
            "metadata": {"_pst_": "success(1), lastModified=0"},
            **changes,
        }
    )


HERITRIX = [
    "2024-03-01T12:00:01.000Z   200       1299 http://example.com/robots.txt LP http://example.com/ text/plain #014"
    " 20240301120000000+225 sha1:A - -",
    "2024-03-01T12:00:01.000Z   200      15829 http://example.com/page L http://example.com/ text/html #025"
    " 20240301120000500+922 sha1:B - -",
    "2024-03-01T12:00:02.000Z   302        210 http://example.com/old LL http://example.com/page text/html #1"
    " 20240301120001000+9 sha1:C - -",
    "2024-03-01T12:00:03.000Z   200        210 http://example.com/new LLR http://example.com/old text/html #1"
    ' 20240301120002000+9 sha1:D - duplicate:digest,200 {"contentSize":210}',
    "2024-03-01T12:00:04.000Z   200        210 http://example.com/i.png LE http://example.com/page image/png #1"
    " 20240301120003000+9 sha1:E - -",
    "2024-03-01T12:00:05.000Z    -2          - http://down.example/ LL http://example.com/page unknown #1 - - - -",
    "2024-03-01T12:00:05.000Z   404         10 http://example.com/gone - - text/html #1 20240301120004000+9 sha1:F - -",
    "2024-03-01T12:00:05.000Z     1         50 dns:example.com P http://example.com/ text/dns #1"
    " 20240301120004000+9 sha1:G - -",
    "2024-03-01T12:00:06.000Z   500         10 http://example.com/oops - - text/html #1 20240301120004000+9 - - -",
    "no log line",
    "2024-03-01T12:00:07.000Z   200 10 http://a..b/ L http://example.com/ text/html #1 20240301120004000+9 - - -",
]


def envelope(
    kind: str = "response",
    url: str | None = URL,
    status: Any = "200",
    headers: dict[str, Any] | None = None,
    html: dict[str, Any] | None = None,
) -> bytes:
    about = {"WARC-Type": kind, "WARC-Date": "2024-03-01T12:00:00Z", "WARC-Payload-Digest": "sha1:A"}
    if url is not None:
        about["WARC-Target-URI"] = url
    http: dict[str, Any] = {
        "Response-Message": {"Status": status},
        "Headers": {"Content-Type": "text/html"} if headers is None else headers,
    }
    if html is not None:
        http["HTML-Metadata"] = html
    content = {
        "Container": {},
        "Envelope": {"WARC-Header-Metadata": about, "Payload-Metadata": {"HTTP-Response-Metadata": http}},
    }
    return warc(json.dumps(content).encode(), url, kind="metadata", content_type="application/json")


WAT_HTML = {
    "Head": {
        "Title": " A\ntitle ",
        "Base": "/base/",
        "Metas": [{"name": "robots", "content": "nofollow"}, {"http-equiv": "Refresh", "content": "0;url=/r"}, "odd"],
        "Link": [{"path": "LINK@/href", "url": "/c", "rel": "canonical"}],
    },
    "Links": [
        {"path": "A@/href", "url": "one", "text": " First  link "},
        {"path": "AREA@/href", "url": "/two", "alt": "an area"},
        {"path": "IMG@/src", "url": "/picture.png"},
        {"path": "A@/href", "url": "#top"},
        {"path": "A@/href", "url": "mailto:a@example.com"},
        {"path": "A@/href", "url": "http://["},
        {"path": "A@/href"},
        "odd",
    ],
}
