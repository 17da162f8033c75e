"""A server on loopback that answers every path with a page and remembers what was asked for."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType

HOST = "127.0.0.1"

_SITE_FILES = ("/robots.txt", "/favicon.ico")
"""What crawlers ask every host for."""


class PagesServer(ThreadingHTTPServer):
    """Pages without links; in use as a context.

    Attributes:
        asked: paths with queries in the order of the requests, without what crawlers ask every host for.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.asked: list[str] = []
        self.lock = Lock()

    def __enter__(self) -> PagesServer:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        super().__exit__(kind, error, trace)

    def url(self, path: str) -> str:
        return f"http://{HOST}:{self.server_address[1]}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: PagesServer

    def do_GET(self) -> None:
        if self.path in _SITE_FILES:
            self.send_error(404)
            return
        with self.server.lock:
            self.server.asked.append(self.path)
        body = f"<title>{len(self.path)}</title>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Says nothing."""
