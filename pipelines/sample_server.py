"""The sample web behind an HTTP proxy on loopback, so that a crawler can fetch it under the URLs that it has.

The sample's hosts are below `.example` and have no address. A crawler that is configured to use the proxy asks it for
`http://` URLs by their whole URL (RFC 9112, section 3.2.2) and opens tunnels for `https://` ones (RFC 9110, section
9.3.6). At the end of a tunnel the proxy itself answers as the host, with a certificate of its own making, so a crawler
must not insist on verifying it. Nothing is ever fetched from anywhere.
"""

from __future__ import annotations

import datetime as dt
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from semrank.transforms.samples.sample_web import SamplePage, sample_pages
from semrank.transforms.streams.urls import canonical_url

HOST = "127.0.0.1"
"""Where the server listens, and nowhere else."""

_CERTIFICATE_DAYS = 30
_NO_PAGE = b"<!DOCTYPE html>\n<html><head><title>Not found</title></head><body><p>No such page.</p></body></html>\n"


class SampleServer(ThreadingHTTPServer):
    """Serves the sample web; `serve_forever` until `shutdown`.

    Attributes:
        pages: what is answered, by URL.
        tls: how tunnels are answered.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        """Listens on a port of loopback; 0 takes a free one.

        Raises:
            OSError: the port is taken or not allowed.
        """
        self.pages: Mapping[str, SamplePage] = {page.url: page for page in sample_pages()}
        self.tls = _tls_context(self.hosts())
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """The proxy's URL."""
        return f"http://{HOST}:{self.server_address[1]}"

    def hosts(self) -> list[str]:
        """The hosts of the sample, in order."""
        return sorted({urlsplit(url).netloc for url in self.pages})

    def handle_error(self, request: object, client_address: object) -> None:
        """Leaves a client that went away alone: crawlers drop connections whenever they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Without it, each body waits 40 ms for the client to acknowledge the headers."""
    server: SampleServer
    _tunnel: str | None = None
    """What stands before the path of a request within a tunnel."""

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        if port != "443" or host not in self.server.hosts():
            self.send_error(502, "no such host in the sample web")
            return
        self.send_response_only(200, "Connection established")
        self.end_headers()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = self.connection.makefile("wb", 0)
        self._tunnel = f"https://{host}"
        self.close_connection = False

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        page = self.server.pages.get(self._url())
        if page is None:
            page = SamplePage("", 404, (("Content-Type", "text/html; charset=utf-8"),), _NO_PAGE)
        self.send_response_only(page.status)
        self.send_header("Date", self.date_time_string())
        for name, value in page.headers:
            if name.lower() not in {"content-length", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(page.body)

    def _url(self) -> str:
        """The URL that is asked for: whole, within a tunnel, or by the Host field of a request without a proxy."""
        if self._tunnel is not None:
            url = self._tunnel + self.path
        elif "://" in self.path:
            url = self.path
        else:
            url = f"http://{self.headers.get('Host', '')}{self.path}"
        # A session's id or a campaign's name in a link makes no other page, and a crawler may leave it there.
        return canonical_url(url).url or url

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Logs nothing: a crawler keeps its own log."""


def _tls_context(hosts: Sequence[str]) -> ssl.SSLContext:
    """A server's side of TLS as any of the hosts, with a fresh key and a certificate signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "semrank sample")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_CERTIFICATE_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.pem"
        path.touch(mode=0o600)
        path.write_bytes(private + certificate.public_bytes(pem))
        context.load_cert_chain(path)
    return context
