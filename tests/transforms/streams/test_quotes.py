"""Reject rows of crawls and tables quote URLs and times alone, whatever else a record holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.transforms.crawls import cc_index, heritrix, nutch, scrapy, tables, warc
from tests.support.crawls import http, together
from tests.support.crawls import warc as record

SECRETS = ("jane", "s3cret", "sessionid", "203.0.113.9")
URL = "http://jane:s3cret@h..example/page"
SHOWN = "http://h..example/page"
NUTCH = f'"{URL}",1,"db_fetched",Wed May 01 10:00:00 UTC 2024,x,0,1.0,0,1.0,"null","Cookie: sessionid=1|||by: jane"'
CLICK = {"user_id": "jane", "query": "s3cret", "clicked_at": "2024-05-01T10:00:00Z", "session_id": "sessionid"}
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
PAGE = "https://jane:s3cret@h.example/page?sessionid=1"


def parquet(row: dict[str, Any]) -> BytesIO:
    sink = BytesIO()
    pq.write_table(pa.Table.from_pylist([row]), sink)
    return BytesIO(sink.getvalue())


def json_lines(row: dict[str, Any]) -> BytesIO:
    return BytesIO(json.dumps(row).encode())


@pytest.mark.parametrize(
    ("batches", "quoted"),
    [
        (nutch.read(BytesIO(NUTCH.encode()), source="f"), f"f {SHOWN}"),
        (nutch.read(BytesIO(f"cookie=jane {PAGE.split('?')[0]} x".encode()), source="f"), "f https://h.example/page"),
        (
            heritrix.read(BytesIO(f"2024-05-01T10:00:00Z 200 9 {URL} - - - jane s3cret".encode()), source="f"),
            f"f {SHOWN}",
        ),
        (heritrix.read(BytesIO(b"jane s3cret"), source="f"), "f"),
        (scrapy.read(json_lines({"text": "jane", "url": URL, "cookie": "s3cret"}), source="f"), f"f {SHOWN}"),
        (scrapy.read(json_lines({"cookie": "s3cret", "url": [URL, "jane"]}), source="f"), "f"),
        (scrapy.read(BytesIO(b'{"user": "jane"'), source="f"), "f"),
        (
            warc.read(BytesIO(record(b"jane s3cret", "http://jane:s3cret@h.example/")), source="f"),
            "f offset 0 response",
        ),
        (warc.read(BytesIO(b"Cookie: jane s3cret\r\n" + record(http(b"x"), "http://h/")), source="f"), "f offset 0"),
        (tables.read_json_lines(json_lines({**CLICK, "url": URL}), table="clicks", source="f"), CLICK["clicked_at"]),
        (tables.read_json_lines(json_lines({**CLICK, "url": 1}), table="clicks", source="f"), CLICK["clicked_at"]),
        (tables.read_parquet(parquet({**CLICK, "url": URL}), table="clicks", source="f"), CLICK["clicked_at"]),
        (
            tables.read_parquet(parquet({**CLICK, "url": PAGE, "position": 0.5}), table="clicks", source="f"),
            f"{CLICK['clicked_at']} https://h.example/page",
        ),
        (tables.read_json_lines(BytesIO(b'{"user_id": "jane", "q'), table="clicks", source="f"), "("),
        (tables.read_parquet(parquet({"url": URL, "text": "jane"}), table="pages", source="f"), SHOWN),
        (
            tables.read_parquet(parquet({"source_url": "http://h/", "target_url": URL}), table="links", source="f"),
            f"http://h/ -> {SHOWN}",
        ),
        (cc_index.read(parquet({"url": URL, "fetch_time": NOON, "fetch_status": 200}), source="f"), SHOWN),
    ],
)
def test_rejects_quote_urls_and_times_alone(batches: Any, quoted: str) -> None:
    rejects = [row["record"] for row in together(batches)["rejects"]]
    assert len(rejects) == 1
    assert rejects[0].startswith(quoted)
    assert not any(secret in rejects[0] for secret in SECRETS)


@pytest.mark.parametrize(
    "url",
    [
        *("https:jane:s3cret@[x", "https:/jane:s3cret@[x", "HTTPS:\\\\jane:s3cret@[x", "https:///jane:s3cret@[x"),
        *(
            "//jane:s3cret@h/",
            "\\\\jane:s3cret@h/",
            "jane:s3cret@h/",
            "mailto:jane@h",
            "view-source:https://jane:s3cret@h/",
        ),
        "https://jane:s3cret@jane@[x",
    ],
)
def test_credentials_in_all_notations_of_urls(url: str) -> None:
    """WHATWG, "URL parsing": special schemes need no slashes, a backslash is one, userinfo ends at the last `@`."""
    links = tables.read_json_lines(
        json_lines({"source_url": "http://h/", "target_url": url}), table="links", source="f"
    )
    for batches in (scrapy.read(json_lines({"url": url}), source="f"), links):
        (reject,) = together(batches)["rejects"]
        assert not any(secret in reject["record"] for secret in SECRETS)


@pytest.mark.parametrize("path", ["/@jane", "/?q=jane@h", "/;m=jane@h", "/#jane@h"])
def test_what_is_no_credential_is_quoted(path: str) -> None:
    (reject,) = together(scrapy.read(json_lines({"url": f"https://[h{path}"}), source="f"))["rejects"]
    assert reject["record"] == f"f https://[h{path}"
