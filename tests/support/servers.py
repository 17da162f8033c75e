"""Servers that mean harm."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
