"""Makes records of crawl archives, good and bad, for the tests of this folder."""

from __future__ import annotations

import gzip
import io
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
