"""The spider: fetches the URLs of a file, best first, and follows no link."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.http import Response


class FrontierSpider(scrapy.Spider):
    """Fetches what `semrank export` chose: a file of the format `scrapy` or `urls`, also compressed.

    A list of seeds does too: a line that starts with a number sign is a comment.

    Args:
        frontier: path of the file.
    """

    name = "frontier"

    def __init__(self, frontier: str, **arguments: Any) -> None:
        """Notes where the frontier is; it is read while the crawl runs."""
        super().__init__(**arguments)
        self.frontier = Path(frontier)

    async def start(self) -> AsyncIterator[Any]:
        """The requests, in the order of rank; Scrapy takes them as it has room."""
        opened = gzip.open if self.frontier.suffix == ".gz" else open
        with opened(self.frontier, "rt", encoding="utf-8", newline="\n") as lines:
            for rank, line in enumerate(lines, start=1):
                if not line.startswith("#"):
                    yield _request(line.rstrip("\n"), rank)

    def parse(self, response: Response) -> None:
        """Nothing is left to do: the middleware has written the answer."""


def _request(line: str, rank: int) -> scrapy.Request:
    message: dict[str, Any] = json.loads(line) if line.startswith("{") else {"url": line}
    return scrapy.Request(message["url"], meta=message.get("meta", {}), priority=message.get("priority", -rank))
