"""The parts of records that reject rows quote: an allow-list, so that no input column can put a name into a table.

| record | quoted |
|---|---|
| request of an access log | time, method, path, status, and the length of the line |
| click of a log or table | time and page, and the length of the line |
| page, link or fetch of a crawl or table | its URLs |
| line of a file of seeds | the line |

Query strings, session ids after `;`, network addresses and mail addresses are removed from the pages of requests and
clicks, and credentials from all URLs. The rest of a line, which may name the client, its account or its cookies, is
never quoted.
"""

from __future__ import annotations

import re

from semrank.transforms.streams.texts import quotable

_LOOKED_AT_BYTES = 4_000
_HEAD_BYTES = 16
_PATH_CHARS = 1_000

_TIME = re.compile(
    rb"(?<![0-9A-Za-z])(?:[0-9]{1,2}/[A-Z][a-z]{2}/[0-9]{4}(?::[0-9]{2}){3}(?: [+-][0-9]{4})?"
    rb"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T\t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?"
    rb"(?:Z|[+-][0-9]{2}:[0-9]{2})?)"
    rb"(?![0-9A-Za-z])"
)
_SECONDS = re.compile(rb"1[0-9]{9}(?:(?:[0-9]{3}){1,3}|\.[0-9]{1,9})?")
_METHODS = (
    rb"GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PROPFIND|PROPPATCH|MKCOL|COPY|MOVE|LOCK|UNLOCK|REPORT"
)
_METHOD = re.compile(_METHODS)
_REQUEST = re.compile(rb"(?<![^\s\"])(" + _METHODS + rb")\s+(/[^\s\"]*|[a-z]+://[^\s\"]*)")
_ANSWERED = re.compile(rb"\" ([1-5][0-9]{2})(?![^\s])")
_STATUS = re.compile(rb"[1-5][0-9]{2}")
_PAGE = re.compile(rb"(?<![^\s\",])(?:https?://|www\.)[^\s\",]+", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]++://[^/?#]*+")
_CREDENTIALS = re.compile(
    r"((?:^|(?<=\s))(?:(?:https?|ftp|wss?|mailto):[/\\\s]*|[/\\]{2,})?|:[/\\]{2})[^/\\?#\s]*@", re.IGNORECASE
)
"""What stands before the host of a URL, also behind `https:` alone, backslashes, or no scheme, as browsers read it."""

_BEHIND_PATH = re.compile(r"[?#;].*|%3[BbFf].*", re.DOTALL)
_ADDRESS = re.compile(
    r"(?<![0-9.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9])"
    r"|(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:%[0-9A-Za-z]+)?(?![0-9A-Za-z:])"
)
_CLOCK = re.compile(r"[0-9]{1,4}(?::[0-9]{2}){2,3}:?")
_MAIL = re.compile(r"[^\s/@=&]+(?:@|%40)[^\s/@&]+")


def quote_request(
    time: bytes | None, method: bytes | None, target: bytes | None, status: bytes | None, size: int
) -> str:
    """A request for a reject row; invalid values are left out.

    Args:
        time: as logged.
        method: HTTP method.
        target: the requested URL or path; only its path is quoted.
        status: HTTP status.
        size: bytes of the line.
    """
    parts = [_time(time), _matching(_METHOD, method), _path(target), _matching(_STATUS, status)]
    return " ".join([*filter(None, parts), _size(size)])


def quote_line(line: bytes) -> str:
    """A line of an access log for a reject row, in whatever layout it is."""
    head = line[:_LOOKED_AT_BYTES]
    request, answered = _REQUEST.search(head), _ANSWERED.search(head)
    method, target = request.groups() if request else (None, None)
    return quote_request(head, method, target, answered[1] if answered else None, len(line))


def quote_click(time: bytes | None, url: bytes | None, size: int | None) -> str:
    """A row of a click log or table for a reject row: its time, and host and path of the page."""
    page = _PAGE.search(b"" if url is None else url[:_LOOKED_AT_BYTES])
    parts = [_time(time), _cleaned(quote_page(quotable(page[0]))) if page else None]
    return " ".join([*filter(None, parts), *([] if size is None else [_size(size)])])


def quote_click_line(line: bytes) -> str:
    """A line of a click log for a reject row, in whatever layout it is."""
    return quote_click(line[:_LOOKED_AT_BYTES], line, len(line))


def quote_head(head: bytes) -> str:
    """The first bytes of a file for a message, in quotation marks; bytes outside ASCII are escaped."""
    return repr(head[:_HEAD_BYTES]).removeprefix("b")


def quote_page(url: str) -> str:
    """The URL of a page, link or fetch for a reject row."""
    return _CREDENTIALS.sub(r"\1", url)


def quote_page_line(line: bytes) -> str:
    """A line about a page or fetch for a reject row, in whatever layout it is: the first URL in it."""
    page = _PAGE.search(line[:_LOOKED_AT_BYTES])
    return quote_page(quotable(page[0])) if page else ""


def _size(size: int) -> str:
    return f"({size} bytes)"


def _time(value: bytes | None) -> str | None:
    if value is None:
        return None
    found = _SECONDS.fullmatch(value) or _TIME.search(value)
    return found[0].decode("ascii") if found else None


def _matching(pattern: re.Pattern[bytes], value: bytes | None) -> str | None:
    return value.decode("ascii") if value is not None and pattern.fullmatch(value) else None


def _path(target: bytes | None) -> str | None:
    if target is None:
        return None
    text = _AUTHORITY.sub("", quotable(target), count=1)
    return _cleaned(text) if text.startswith("/") else None


def _cleaned(text: str) -> str:
    path = _BEHIND_PATH.sub("", text)[:_PATH_CHARS]
    return without_addresses(_MAIL.sub("<account>", path))


def without_addresses(record: str) -> str:
    """A record to quote in a reject row: its network addresses are masked."""

    def mask(match: re.Match[str]) -> str:
        return match[0] if _CLOCK.fullmatch(match[0]) else "<address>"

    return _ADDRESS.sub(mask, record)
