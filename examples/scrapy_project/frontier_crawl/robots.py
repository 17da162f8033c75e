"""Keeps the order of rank while the rules for robots are fetched."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached


class OrderedRobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt, one request of a host after the other.

    Requests that come in while Scrapy takes up those that waited for the rules would overtake them.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Starts without any host."""
        super().__init__(crawler)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Waits for the requests that came before, then for the rules; gives these, or None where a host has none."""
        async with self._turns[urlparse_cached(request).netloc]:
            return await super().robot_parser(request)
