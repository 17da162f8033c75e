"""Writes every answer as a WARC response record (ISO 28500)."""

from __future__ import annotations

import datetime as dt
from http import HTTPStatus
from io import BytesIO
from pathlib import Path

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

_LEFT_OUT = {b"transfer-encoding", b"content-length", b"connection"}
"""Fields of the transfer, not of the answer as it is stored."""


class WarcMiddleware:
    """A downloader middleware that writes what the downloader got to the file that the setting `WARC_FILE` names.

    The file is written as `WARC_FILE.open` and renamed when the crawl ends, so whoever reads it finds it complete.
    """

    def __init__(self, path: Path) -> None:
        """Opens the draft.

        Raises:
            ValueError: the file exists.
        """
        if path.exists():
            raise ValueError(f"WARC_FILE {path}: already exists, expected a new file")
        self.path = path
        self.draft = path.with_name(f"{path.name}.open")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.stream = self.draft.open("wb")
        self.writer = WARCWriter(self.stream, gzip=path.suffix == ".gz")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> WarcMiddleware:
        """The middleware of a crawl; called by Scrapy.

        Raises:
            ValueError: the setting is missing, and no answer would be kept.
        """
        name = crawler.settings.get("WARC_FILE")
        if not name:
            raise ValueError("WARC_FILE: not set, expected the name of a new file (-s WARC_FILE=...)")
        middleware = cls(Path(name))
        crawler.signals.connect(middleware.close, signals.spider_closed)
        return middleware

    def process_response(self, request: Request, response: Response) -> Response:
        """Writes an answer and passes it on."""
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, values in response.headers.items()
            if name.lower() not in _LEFT_OUT
            for value in values
        ]
        headers.append(("Content-Length", str(len(response.body))))
        record = self.writer.create_warc_record(
            request.url,
            "response",
            payload=BytesIO(response.body),
            http_headers=StatusAndHeaders(f"{response.status} {_phrase(response.status)}", headers, "HTTP/1.1"),
            warc_headers_dict={"WARC-Date": f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"},
        )
        self.writer.write_record(record)
        return response

    def close(self) -> None:
        """Gives the file its name."""
        self.stream.close()
        self.draft.rename(self.path)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
