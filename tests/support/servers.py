"""Servers that mean harm."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from semrank.transforms.streams.download import Policy


@contextmanager
def dripping_server(begin: bytes, drop: bytes) -> Iterator[str]:
    """A server that sends a few bytes now and then, for ever."""
    over = threading.Event()

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(4096)
                self.request.sendall(begin)
                while not over.wait(0.05):
                    self.request.sendall(drop)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/slow.gz"
        finally:
            over.set()
            server.shutdown()
            thread.join()


CONTENT = bytes(range(256)) * 8192  # 2 MiB

HASTY = Policy(attempts=3, first_wait=0.001, longest_wait=0.01, connect_timeout=2, read_timeout=2)


@dataclass
class Site:
    """What the server does, and what it was asked.

    Attributes:
        content: the file.
        etag: its entity tag, None for a server that has none.
        modified: its Last-Modified, likewise.
        cuts: numbers of body bytes after which each coming answer breaks; an empty list breaks none.
        statuses: statuses that the coming requests are refused with.
        retry_after: when they may be repeated.
        redirects: where paths lead.
        more_headers: further headers of whole and partial answers.
        before: called at the beginning of each request, with its number from 0.
        ranges: whether the server can continue a file.
        honours_if_range: whether it looks at the version before it does.
        declare_length: whether it says how long an answer is.
        range_offset: bytes by which it misses the place to continue at.
        requests: headers of the requests, in order.
        url: address of the file.
    """

    content: bytes = CONTENT
    etag: str | None = '"one"'
    modified: str | None = None
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    retry_after: str = "0"
    redirects: dict[str, str] = field(default_factory=dict)
    more_headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[int], None] | None = None
    ranges: bool = True
    honours_if_range: bool = True
    declare_length: bool = True
    range_offset: int = 0
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site = self.site
        if site.before is not None:
            site.before(len(site.requests))
        site.requests.append({name.lower(): value for name, value in self.headers.items()})
        if self.path in site.redirects:
            self.send_response(302)
            self.send_header("Location", site.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if site.statuses:
            self.send_response(site.statuses.pop(0))
            self.send_header("Content-Length", "0")
            self.send_header("Retry-After", site.retry_after)
            self.end_headers()
            return
        asked = self.headers
        current = [value for value in (site.etag, site.modified) if value is not None]
        if asked["If-None-Match"] in current or asked["If-Modified-Since"] in current:
            self.send_response(304)
            self.end_headers()
            return
        begin = 0
        if site.ranges and asked["Range"] is not None and (asked["If-Range"] in current or not site.honours_if_range):
            begin = int(asked["Range"].removeprefix("bytes=").removesuffix("-"))
            if begin >= len(site.content):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            begin += site.range_offset
        body = site.content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(site.content) - 1}/{len(site.content)}")
        if site.declare_length:
            self.send_header("Content-Length", str(len(body)))
        if site.etag is not None:
            self.send_header("ETag", site.etag)
        if site.modified is not None:
            self.send_header("Last-Modified", site.modified)
        for name, value in site.more_headers.items():
            self.send_header(name, value)
        self.end_headers()
        cut = site.cuts.pop(0) if site.cuts else len(body)
        try:
            self.wfile.write(body[:cut])
        except OSError:  # the client had seen enough
            self.close_connection = True
        if cut < len(body):
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[Site]:
    """A server of a file on loopback."""
    state = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("SiteHandler", (Handler,), {"site": state}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/data/set.tar.gz"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
