"""Keeps the order of rank while the rules for robots are fetched."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware


class OrderedRobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt, one request of a host after the other.

    Requests that come in while Scrapy takes up those that waited for the rules would overtake them.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Starts without any host."""
        super().__init__(crawler)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def process_request(self, request: Request, *others: Any) -> None:
        """Waits for the requests that came before, then for the rules.

        Raises:
            IgnoreRequest: the rules forbid the URL.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return
        async with self._turns[urlsplit(request.url).netloc]:
            await super().process_request(request, *others)
