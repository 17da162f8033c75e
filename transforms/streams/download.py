"""Downloads a file with retries and resumption, only from servers that the user named.

A broken transfer is resumed (RFC 9110, section 14: Range with If-Range) if the server identifies the version of the
file by a strong entity tag or a modification date; otherwise it is restarted, so that two versions are never mixed. A
finished file is requested again with the same validator and kept if the server reports no change. If the server sends a
digest of the file (RFC 9530, or its predecessors Digest and Content-MD5), the content is checked against it.

Redirects to other hosts are followed only if these are allowed, and never to addresses of private networks, so that no
server can use this machine to reach its neighbours. The query of a URL may be a secret: messages and files have a
digest in its place. Passwords belong into the user's `.netrc`, which is honoured; a URL with a password is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import requests
import urllib3

from semrank.schemas.errors import InputError, shown_path

CHUNK_BYTES = 1 << 18
"""Bytes that are read at a time: few enough for progress on slow lines, enough for low overhead on fast ones."""

MAX_REDIRECTS = 5
"""Maximum number of consecutive redirects; more of them are a loop."""

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_MOST_DIGITS = 18
"""Maximum digits of a number of bytes."""

_MOST_HEADER = 4_096
"""Maximum characters of a header that are read."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_DIGEST = re.compile(r"(?i)(sha-512|sha-256)=:?([A-Za-z0-9+/]+=*):?")
_NAMED_DIGEST = re.compile(r"(?i)\bsha-(?:512|256)\s*=")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")

Report = Callable[[str, int, int | None], None]
"""Called during a download: (file name, bytes so far, total bytes if known)."""

log = logging.getLogger("semrank")


class DownloadError(RuntimeError):
    """A file could not be fetched because the network or the server failed."""


@dataclass(frozen=True)
class Policy:
    """Limits of a download.

    Attributes:
        attempts: consecutive attempts without any byte before the download fails.
        first_wait: seconds before the second attempt; each further wait is twice as long.
        longest_wait: maximum seconds of a wait, including a server's Retry-After.
        connect_timeout: maximum seconds to connect.
        read_timeout: seconds without a byte after which a transfer counts as broken.
        longest: maximum seconds of the whole download, however slowly the server sends.
        max_bytes: maximum size of a file.
        redirect_hosts: hosts that redirects may lead to besides the URL's own.
    """

    attempts: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    longest: float = 6 * 3600.0
    max_bytes: int = 4 << 30
    redirect_hosts: frozenset[str] = frozenset()


class _BrokenTransferError(Exception):
    """An attempt failed, but another one may succeed."""

    def __init__(self, reason: str, *, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class _Version:
    """The version of a file on disk, stored beside it as `<name>.json`.

    Attributes:
        url: the file's URL as `shown_url` shows it.
        etag: its entity tag.
        modified: its modification date as sent by the server.
        digest: its digest as sent by the server, algorithm and value in Base64.
    """

    url: str
    etag: str | None
    modified: str | None
    digest: tuple[str, str] | None = None

    @property
    def validator(self) -> str | None:
        """The value for If-Range: a strong entity tag, else the modification date."""
        if self.etag is not None and not self.etag.startswith("W/"):
            return self.etag
        return self.modified


def shown_url(url: str) -> str:
    """A URL for messages, manifests and notes: without user and fragment, with a digest in place of the query.

    Paths, which are not http(s) URLs, are returned as `shown_path` shows them.
    """
    if not url.startswith(("http://", "https://")):
        return shown_path(url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0].rpartition("@")[2]
    query = f"query-{hashlib.sha256(parts.query.encode('utf-8', 'replace')).hexdigest()[:8]}" if parts.query else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


def file_name(url: str) -> str:
    """The file name of a URL on disk: the last segment of its path.

    Raises:
        InputError: the URL is not http(s), has no host or a password, or its last segment is not a plain file name.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{shown_url(url)}: can't be downloaded; expected an http or https URL")
    if "@" in parts.netloc:
        raise InputError(f"{shown_url(url)}: found a user in the URL, expected it in the file .netrc")
    name = parts.path.rsplit("/", 1)[-1]
    if _FILE_NAME.fullmatch(name) is None:
        raise InputError(f"{shown_url(url)}: found '{name}' at the end of its path, expected a file name")
    return name


def download(url: str, folder: Path, *, policy: Policy | None = None, report: Report | None = None) -> Path:
    """Fetches a file, unless the copy in the folder is up to date.

    Args:
        url: http or https URL; redirects are followed on its own host, and to hosts that the policy allows.
        folder: the folder of `<name>`, with `<name>.json`, and `<name>.part` during the download.
        policy: the limits.
        report: called after each chunk.

    Returns:
        Path of the whole file.

    Raises:
        InputError: the URL can't be used, the server refuses it, redirects to another host, or the file is too large.
        DownloadError: all attempts failed.
    """
    policy = policy or Policy()
    target = folder / file_name(url)
    folder.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    failures = 0
    end = time.monotonic() + policy.longest
    with _limited_session(policy.longest, urlsplit(url).hostname) as session:
        while True:
            before = _size(part)
            try:
                return _fetch(session, url, target, part, policy, end, report)
            except _BrokenTransferError as broken:
                failures = 1 if _size(part) > before else failures + 1
                if failures >= policy.attempts:
                    tries = f"gave up after {failures} tries in a row"
                    raise DownloadError(f"{shown_url(url)}: {tries}: {broken}") from None
                if time.monotonic() >= end:
                    raise DownloadError(f"{shown_url(url)}: not done after {policy.longest:g} s: {broken}") from None
                wait = policy.first_wait * 2 ** (failures - 1) if broken.wait is None else broken.wait
                log.info("%s: %s; trying again", target.name, broken)
                time.sleep(max(0.0, min(wait, policy.longest_wait, end - time.monotonic())))


@contextmanager
def _limited_session(seconds: float, own_host: str | None) -> Iterator[requests.Session]:
    """A session whose connections are all shut down after some seconds, which ends any blocked read.

    Connections to hosts other than `own_host` are made to public addresses only.
    """
    watched: list[socket.socket] = []
    over = threading.Event()

    def watch(connection: socket.socket) -> socket.socket:
        # TLS takes over the connection's handle; a second handle shuts down the same connection.
        watched.append(connection.dup())
        if over.is_set():
            shut_down()
        return connection

    def shut_down() -> None:
        over.set()
        for handle in watched:
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, shut_down)
    timer.daemon = True
    timer.start()
    try:
        with requests.Session() as session:
            for scheme in _DEFAULT_PORTS:
                session.mount(f"{scheme}://", _WatchedAdapter(watch, own_host))
            yield session
    finally:
        timer.cancel()
        for handle in watched:
            handle.close()


class _WatchedAdapter(requests.adapters.HTTPAdapter):
    """Chooses the address of each connection, and passes it to a function before anything is sent.

    A name server may answer differently each time, so the checked address itself is connected to.
    """

    def __init__(self, watch: Callable[[socket.socket], socket.socket], own_host: str | None) -> None:
        self._watch, self._own_host = watch, own_host
        super().__init__()

    def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*arguments, **options)
        plain, watch, own_host = pool.ConnectionCls, self._watch, self._own_host
        if plain.__name__ == "Watched":
            return pool

        class Watched(plain):  # type: ignore[misc, valid-type]
            _dns_host: str

            def _new_conn(self) -> socket.socket:
                name = self._dns_host
                if self.proxy is None and name != own_host:
                    self._dns_host = _public_address(name.strip("[]"))
                try:
                    return watch(super()._new_conn())
                finally:
                    self._dns_host = name  # the name in certificates

        pool.ConnectionCls = Watched
        return pool


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _fetch(
    session: requests.Session, url: str, target: Path, part: Path, policy: Policy, end: float, report: Report | None
) -> Path:
    """One attempt."""
    note = target.with_name(f"{target.name}.json")
    version = _known_version(note, url)
    have = _size(part) if version is not None and version.validator is not None else 0
    headers = {"Accept-Encoding": "identity"}
    if have and version is not None and version.validator is not None:
        headers |= {"Range": f"bytes={have}-", "If-Range": version.validator}
    elif target.is_file() and version is not None:
        headers |= _unless_unchanged(version)
    with _get(session, url, headers, policy) as response:
        status = response.status_code
        if status == HTTPStatus.NOT_MODIFIED and "Range" not in headers and len(headers) > 1:
            return target
        if status == HTTPStatus.PARTIAL_CONTENT and "Range" in headers:
            total = _resumed_total(response, have, version, part)
            digest = version.digest if version is not None else None
            mode = "ab"
        elif status == HTTPStatus.OK:
            total = _whole_total(response)
            target.unlink(missing_ok=True)
            part.unlink(missing_ok=True)
            digest = _digest(url, response)
            fresh = _Version(
                shown_url(url), response.headers.get("ETag"), response.headers.get("Last-Modified"), digest
            )
            note.write_text(json.dumps(asdict(fresh)), encoding="utf-8")
            have, mode = 0, "wb"
        else:
            raise _refusal(url, response, part)
        _check_size(url, total, policy)
        have = _save(response, url, part, mode, have, total, policy, end, report)
    if total is not None and have != total:
        if have > total:
            part.unlink(missing_ok=True)
        raise _BrokenTransferError(f"the connection ended after {have} of {total} bytes")
    _check_digest(part, digest)
    part.replace(target)
    return target


def _digest(url: str, response: requests.Response) -> tuple[str, str] | None:
    """Algorithm and value of the digest in a response with the whole file; None if it has none.

    Raises:
        InputError: the digest is not Base64.
    """
    for header in ("Repr-Digest", "Content-Digest", "Digest"):
        text = response.headers.get(header, "")[:_MOST_HEADER]
        found = _DIGEST.search(text)
        if found is not None:
            return found[1].lower().replace("-", ""), _base64(url, header, found[2])
        if _NAMED_DIGEST.search(text):
            _base64(url, header, "-")
    md5 = response.headers.get("Content-MD5")
    return None if md5 is None else ("md5", _base64(url, "Content-MD5", md5.strip()[:_MOST_HEADER]))


def _base64(url: str, header: str, value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except ValueError as cause:
        raise InputError(f"{shown_url(url)}: found a {header} that is no Base64, expected the file's digest") from cause
    return value


def _check_digest(part: Path, digest: tuple[str, str] | None) -> None:
    """Deletes the part if its digest differs from the server's."""
    if digest is None:
        return
    try:
        expected = base64.b64decode(digest[1], validate=True)
    except binascii.Error:
        part.unlink()
        raise _BrokenTransferError("the note beside the file holds a digest that is no Base64") from None
    with part.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.new(digest[0], usedforsecurity=False)).digest()
    if found != expected:
        part.unlink()
        raise _BrokenTransferError(f"found {digest[0]} {found.hex()}, expected {expected.hex()} as the server says")


def _known_version(note: Path, url: str) -> _Version | None:
    """The note beside a file, if it is readable and about this URL."""
    try:
        version = _Version(**json.loads(note.read_text(encoding="utf-8")))
        if version.digest is not None:
            algorithm, value = version.digest
            version = replace(version, digest=(str(algorithm), str(value)))
    except (OSError, ValueError, TypeError):
        return None
    texts = (version.url, version.etag or "", version.modified or "")
    return version if version.url == shown_url(url) and all(isinstance(text, str) for text in texts) else None


def _unless_unchanged(version: _Version) -> dict[str, str]:
    if version.etag is not None:
        return {"If-None-Match": version.etag}
    return {} if version.modified is None else {"If-Modified-Since": version.modified}


def _get(session: requests.Session, url: str, headers: dict[str, str], policy: Policy) -> requests.Response:
    """The response to a request, after redirects within the host and to allowed hosts."""
    current = url
    first = urlsplit(url).hostname
    for _ in range(MAX_REDIRECTS + 1):
        try:
            response = session.get(
                current,
                headers=headers,
                stream=True,
                allow_redirects=False,
                # Without one, `.netrc` is used, whose default entry applies to every host.
                auth=None if urlsplit(current).hostname == first else _no_password,
                timeout=(policy.connect_timeout, policy.read_timeout),
            )
        except (requests.ConnectionError, requests.Timeout) as cause:
            raise _BrokenTransferError(f"no answer: {_without_query(cause, current)}") from None
        except (requests.RequestException, ValueError) as cause:
            raise InputError(f"{shown_url(url)}: can't be requested: {_without_query(cause, current)}") from None
        if response.status_code not in _REDIRECTS or "Location" not in response.headers:
            return response
        response.close()
        current = _followed(url, current, response.headers["Location"], policy)
    raise InputError(f"{shown_url(url)}: found more than {MAX_REDIRECTS} redirects in a row")


def _no_password(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _without_query(cause: BaseException, url: str) -> str:
    """An error's message without the query of its URL, which may be a secret."""
    query = urlsplit(url).query
    return str(cause).replace(query, "...") if query else str(cause)


def _followed(url: str, current: str, location: str, policy: Policy) -> str:
    """The target of a redirect, if it may be followed."""
    try:
        following = urljoin(current, location)
        here, there = urlsplit(current), urlsplit(following)
        same = _same_server(here, there)
    except ValueError as cause:
        raise InputError(f"{shown_url(url)}: redirects to what is no URL, expected one") from cause
    if same:
        return following
    host = there.hostname or ""
    downgraded = here.scheme == "https" and there.scheme != "https"
    if host not in policy.redirect_hosts or there.scheme not in _DEFAULT_PORTS or "@" in there.netloc or downgraded:
        raise InputError(
            f"{shown_url(url)}: redirects to {shown_url(following)}, expected a redirect within {here.netloc}; "
            "name that URL if it is the one you mean, or allow its host with --redirect-host"
        )
    private = _private_address(host)
    if private is not None:
        raise InputError(f"{shown_url(url)}: redirects to {host}, which is {private}, expected a public address")
    return following


def _private_address(host: str) -> str | None:
    """An address of the host that is not public (of this machine or a private network); None if there is none."""
    return next((address for address in _addresses(host) if not _is_public(ipaddress.ip_address(address))), None)


def _public_address(host: str) -> str:
    """The preferred address of a host; raises InputError if it is not public."""
    address = _addresses(host)[0]
    if _private_address(address) is not None:
        raise InputError(f"found {address} as the address of {host}, expected a public one")
    return address


def _addresses(host: str) -> list[str]:
    """The addresses of a host, the preferred one first."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as cause:
        raise _BrokenTransferError(f"{host} has no address: {cause}") from cause
    return [str(entry[4][0]).partition("%")[0] for entry in found]


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address, or the IPv4 address that an IPv6 address embeds, is public."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast


def _same_server(here: SplitResult, there: SplitResult) -> bool:
    """Whether two URLs name the same server; http and https on their default ports are the same."""
    if here.hostname != there.hostname:
        return False
    ports = [parts.port or _DEFAULT_PORTS.get(parts.scheme) for parts in (here, there)]
    upgraded = (here.scheme, there.scheme) == ("http", "https") and ports == [80, 443]
    return upgraded or (here.scheme == there.scheme and ports[0] == ports[1])


def _resumed_total(response: requests.Response, have: int, version: _Version | None, part: Path) -> int | None:
    """Size of the whole file from a partial response, which must continue exactly at the end of the part on disk."""
    found = response.headers.get("Content-Range", "")
    matched = _CONTENT_RANGE.fullmatch(found)
    etag = response.headers.get("ETag")
    changed = version is not None and None not in (etag, version.etag) and etag != version.etag
    if matched is None or int(matched[1]) != have or changed:
        part.unlink(missing_ok=True)
        raise _BrokenTransferError(f"found the range '{found}', expected bytes {have} and on of the same version")
    return None if matched[3] == "*" else int(matched[3])


def _whole_total(response: requests.Response) -> int | None:
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and len(length) > _MOST_DIGITS:
        return int("9" * _MOST_DIGITS)
    return int(length) if _WHOLE_NUMBER.fullmatch(length) else None


def _refusal(url: str, response: requests.Response, part: Path) -> Exception:
    """The error for a response without the file."""
    status = response.status_code
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        part.unlink(missing_ok=True)
        return _BrokenTransferError("the server can't continue the file, so it starts anew")
    if status in _TRANSIENT:
        wait = None
        with suppress(urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
            wait = urllib3.Retry().parse_retry_after(response.headers.get("Retry-After", "")[:_MOST_HEADER])
        return _BrokenTransferError(f"found status {status}", wait=wait)
    return InputError(f"{shown_url(url)}: found status {status} {response.reason}, expected 200")


def _check_size(url: str, size: int | None, policy: Policy) -> None:
    if size is not None and size > policy.max_bytes:
        raise InputError(f"{shown_url(url)}: found {size} bytes, expected at most {policy.max_bytes}")


def _save(
    response: requests.Response,
    url: str,
    part: Path,
    mode: str,
    have: int,
    total: int | None,
    policy: Policy,
    end: float,
    report: Report | None,
) -> int:
    """Appends the received bytes to the part on disk; returns its size."""
    name = part.name.removesuffix(".part")
    with part.open(mode) as sink:
        while True:
            try:
                # The raw bytes: a server that labels an archive's own compression as the transfer's
                # would otherwise make it arrive unpacked.
                chunk = response.raw.read(CHUNK_BYTES, decode_content=False)
            except (urllib3.exceptions.HTTPError, OSError) as cause:
                sink.flush()
                raise _BrokenTransferError(f"the connection broke after {have} bytes: {cause}") from cause
            if time.monotonic() > end:
                raise _BrokenTransferError(f"the server was too slow: {have} bytes so far")
            if not chunk:
                return have
            sink.write(chunk)
            have += len(chunk)
            _check_size(url, have, policy)
            if report is not None:
                report(name, have, total)
