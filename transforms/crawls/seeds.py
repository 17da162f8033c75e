"""Parses lines of seeds files: a URL each, perhaps with fields of crawlers and the product's own exports.

| line | meaning |
|---|---|
| `URL` | the URL |
| `URL<TAB>key=value<TAB>...` (Nutch, StormCrawler), `URL key=value` (Heritrix) | the URL |
| `URL N` (a precedence of Heritrix), `F+ URL L URL` (a schedule) | the URL |
| `{"url": ...}` (Scrapy), `{"known": {"info": {"url": ...}}}` (URL Frontier) | that URL |
| `# ...`, and `# ...` behind a blank | a comment |
| anything else | a reject: layout-unknown, json-invalid, url-missing, or the reason why it is not a URL |

A line with a fraction or a second URL after a comma, as in tables (`URL,0.5`), has an unknown layout: as the end of
the URL it would silently give another one.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from semrank.transforms.streams.json_lines import JSON_INVALID, parse_json

_LINE_END = re.compile(r"\r\n?|\n")  # other Unicode separators are part of the line
_BLANK = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*")
_MEMBER = re.compile(r"[^\s=]+=[^\t]*")
_WORD_MEMBER = re.compile(r"[^\s=]+=\S*")
_PRECEDENCE = re.compile(r"[0-9]{1,9}")
_SCHEDULED = re.compile(r"F[+-]?[ \t]+(\S+)(?:[ \t]+.*)?")
_WITH_FIELDS = re.compile(r".*[,;](?:-?[0-9]*\.[0-9]+(?:[Ee][+-]?[0-9]+)?|https?://.*)")


class Seed(NamedTuple):
    """The content of a line.

    Attributes:
        url: the URL as written, or None.
        reason: why there is no URL, or None.
        line: the line without a comment.
    """

    url: str | None
    reason: str | None
    line: str


def read_seeds(text: str) -> list[Seed]:
    """The seeds of a file, without blank lines and comments."""
    lines = (_COMMENT.sub("", line, count=1).strip() for line in _LINE_END.split(text.removeprefix("\ufeff")))
    return [_seed(line) for line in lines if line]


def _seed(line: str) -> Seed:
    if line.startswith("{"):
        url, reason = _json_url(line)
        return Seed(url, reason, line)
    scheduled = _SCHEDULED.fullmatch(line)
    if scheduled is not None:
        return Seed(scheduled[1], None, line)
    url, *rest = _BLANK.split(line, maxsplit=1)
    if not _is_metadata(line[len(url)], rest[0]) if rest else _WITH_FIELDS.fullmatch(url):
        return Seed(None, "layout-unknown", line)
    return Seed(url, None, line)


def _is_metadata(separator: str, text: str) -> bool:
    """Whether the rest of a line after a URL is `key=value` fields, or a number."""
    if separator == "\t" or "\t" in text:
        return all(_MEMBER.fullmatch(field.strip()) for field in text.split("\t") if field.strip())
    words = text.split()
    return all(map(_WORD_MEMBER.fullmatch, words)) or (len(words) == 1 and _PRECEDENCE.fullmatch(text) is not None)


def _json_url(line: str) -> tuple[str | None, str | None]:
    try:
        entry = parse_json(line.encode())
    except ValueError:
        return None, JSON_INVALID
    places = [("url",), *((kind, "info", "url") for kind in ("known", "discovered")), ("info", "url")]
    urls = (_member(entry, path) for path in places)
    url = next((url for url in urls if isinstance(url, str) and url), None)
    return url, None if url else "url-missing"


def _member(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
