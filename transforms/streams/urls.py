r"""Canonical URLs: one spelling a page, or the reason why a string is no page's address.

Parsing and serialising follow the WHATWG URL standard (scheme and host in lower case, IDNA, `\\` for `/`, default
ports, dot segments, percent-encoding of what may not stand bare). On top of that: only http and https; no user
information, no fragment, no trailing dot of the host; no session ids and no tracking parameters; no empty query; at
most `MAX_URL_CHARS` characters. Canonicalising a canonical URL changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote_plus

import can_ada
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import bools, filter_lists
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules, without_noise
from semrank.transforms.streams.texts import well_formed

MAX_URL_CHARS = 4_096
"""Characters a canonical URL may have; longer ones come from generators, and browsers and servers refuse them."""

MAX_RAW_CHARS = 16 * MAX_URL_CHARS
"""Characters a raw string may have before it is parsed at all: room for what canonicalising takes away."""

PLAIN_PATH = r"/(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*/?)?"
"""Expression of paths that are canonical as they are, behind any canonical root, up to `MAX_PLAIN_CHARS`."""

MAX_PLAIN_CHARS = 2_000
"""Characters of a path that is plain: far below the limit of canonical URLs, whatever the host."""

_is_plain = re.compile(PLAIN_PATH).fullmatch
_ASP_NET_SEGMENT = re.compile(r"/\((?:[ASF]\([0-9A-Za-z_-]+\))+\)(?=/|$)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_STRIPPED = "".join(map(chr, range(0x21)))  # the standard's "C0 control or space", taken off both ends
_WEB = ("http://", "https://")


class CanonicalUrl(NamedTuple):
    """A canonical URL, or the reason why there is none; exactly one of the two is None."""

    url: str | None
    reason: str | None


@dataclass(frozen=True)
class CanonicalUrls:
    """Canonical URLs of an array.

    Attributes:
        urls: string array as long as the input, null where a value is no usable URL.
        reasons: string array as long as the input, null where `urls` is not.
    """

    urls: pa.Array
    reasons: pa.Array


def parse_base(url: str) -> can_ada.URL | None:
    """The parsed form of a base URL, to resolve many references against; None if it is no absolute URL."""
    try:
        return can_ada.parse(url)
    except (ValueError, TypeError):
        return None


def canonical_url(raw: str, base: str | can_ada.URL | None = None, rules: ParameterRules = NO_RULES) -> CanonicalUrl:
    """Canonical form of one URL.

    Args:
        raw: a URL as found, or a reference relative to `base`.
        base: absolute URL that references are resolved against, parsed once by `parse_base` if there are many.
        rules: what a user knows of the parameters of the crawl's sites.

    Returns:
        The canonical URL, or one of the reasons url-missing, url-invalid, url-too-long, scheme-missing,
        scheme-unsupported, host-missing, host-invalid.
    """
    if len(raw) > MAX_RAW_CHARS:
        return CanonicalUrl(None, "url-too-long")
    if isinstance(base, str):
        base = parse_base(base)
    try:
        url = can_ada.parse(raw) if base is None else base + raw
    except ValueError:
        return CanonicalUrl(None, _why_unparsable(raw))
    except TypeError:  # half a surrogate pair, which the parser's UTF-8 can't hold
        return canonical_url(well_formed(raw), base, rules)
    href = url.href
    if not href.startswith(_WEB):
        return CanonicalUrl(None, "scheme-unsupported")
    if not url.has_valid_domain() and not url.hostname.startswith("["):
        return CanonicalUrl(None, "host-invalid")
    if "@" in href or "#" in href:
        url.username = url.password = url.hash = ""
        href = url.href
    # Each of these is in or before something that `_strip` takes away; the test costs a fifth of trying to.
    if "?" in href or ";" in href or "/(" in href or "./" in href or ".:" in href:
        stripped = _strip(href, url.hostname, rules)
        if stripped != href:
            # What is left may hold a dot segment that a session id had hidden. It is shorter, so this ends.
            return canonical_url(stripped, rules=rules)
    if len(href) > MAX_URL_CHARS:
        return CanonicalUrl(None, "url-too-long")
    return CanonicalUrl(href, None)


def root_of(base: can_ada.URL) -> str | None:
    """Canonical scheme and host of a base URL, for `plainly_resolved`; None if it has none."""
    home = canonical_url("/", base).url
    return None if home is None else home[:-1]


def plainly_resolved(raw: str, root: str | None) -> str | None:
    """The result of `canonical_url` for a path behind a root, five times as fast; None if it has to be called."""
    return root + raw if root is not None and len(raw) < MAX_PLAIN_CHARS and _is_plain(raw) else None


def _why_unparsable(raw: str) -> str:
    text = raw.strip(_STRIPPED)
    if not text:
        return "url-missing"
    scheme = _SCHEME.match(text)
    if scheme is None:
        return "scheme-missing"
    if scheme[1].lower() not in ("http", "https"):
        return "scheme-unsupported"
    rest = text[scheme.end() :].lstrip("/\\")
    return "host-missing" if not rest or rest[0] in "?#:@" else "url-invalid"


def _strip(href: str, host: str, rules: ParameterRules) -> str:
    """`href` without session ids, tracking parameters, empty parameters, empty query and the host's last dot."""
    if "/(" in href:
        head, mark, query = href.partition("?")
        href = _ASP_NET_SEGMENT.sub("", head) + mark + query
    if "?" in href or ";" in href:
        href = without_noise(href, rules)
    if host.endswith("."):
        href = href.replace(host, host[:-1], 1)
    return href


def canonicalize(urls: pa.Array | pa.ChunkedArray, rules: ParameterRules = NO_RULES) -> CanonicalUrls:
    """Canonical forms of an array of absolute URLs; each distinct string is parsed once.

    Args:
        urls: string, large_string or dictionary array; nulls give the reason url-missing.
        rules: see `canonical_url`.
    """
    if isinstance(urls, pa.ChunkedArray):
        urls = urls.combine_chunks()
    if not pa.types.is_dictionary(urls.type):
        urls = urls.cast(pa.string()).dictionary_encode()
    results = [canonical_url(raw or "", rules=rules) for raw in urls.dictionary.to_pylist()]
    indices = urls.indices
    canonical = pa.array([result.url for result in results], pa.string()).take(indices)
    reasons = pa.array([result.reason for result in results], pa.string()).take(indices)
    if urls.null_count:
        reasons = pc.if_else(pc.is_null(indices), "url-missing", reasons)
    return CanonicalUrls(canonical, reasons)


def host_of(urls: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Hosts of canonical URLs, without port; null where the URL is null or not canonical."""
    if isinstance(urls, pa.ChunkedArray):
        urls = urls.combine_chunks()
    return pc.struct_field(pc.extract_regex(urls, r"^https?://(?P<host>\[[^\]]*\]|[^/:?#]+)"), "host")


def url_words(urls: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Words that canonical URLs spell out: of the path and of the values in the query, in their order.

    Percent-encoded UTF-8 is decoded; words are runs of letters and marks, their case kept, their repetitions too. The
    extension of the path's last segment names a technique, not a subject, and is left out. Scripts without spaces
    give one word a run.

    Returns:
        list<string> array as long as the input; null where the URL is null.
    """
    if isinstance(urls, pa.ChunkedArray):
        urls = urls.combine_chunks()
    parts = pc.extract_regex(
        urls, r"^https?://[^/?#]*(?P<path>[^?#]*?)(?:\.[A-Za-z][A-Za-z0-9]{1,4})?(?:\?(?P<query>[^#]*))?$"
    )
    values = pc.replace_substring_regex(pc.struct_field(parts, "query"), r"(^|&)(?:[^=&]*=)?", " ")
    text = pc.binary_join_element_wise(pc.struct_field(parts, "path"), values, " ")
    encoded = pc.match_substring_regex(text, "[%+]")
    if pc.any(encoded).as_py():
        decoded = pa.array([unquote_plus(value) for value in text.filter(encoded).to_pylist()], pa.string())
        text = pc.replace_with_mask(text, pc.fill_null(encoded, False), decoded)
    words = pc.split_pattern_regex(text, r"[^\pL\pM]+")
    return _without_empty(words)


def _without_empty(words: pa.ListArray) -> pa.ListArray:
    """The lists without their empty strings."""
    return filter_lists(words, bools(pc.not_equal(words.flatten(), "")))
