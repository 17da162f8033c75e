r"""Apache Nutch's CrawlDb as `readdb CRAWLDB -dump DIR -format csv` or `-format json` writes it.

| status | becomes |
|---|---|
| db_fetched, db_notmodified | page row without text |
| db_redir_temp, db_redir_perm | alias, if the entry's protocol status contains the target |
| db_gone | page row with status 404; ignored if the protocol status is another failure, such as `robots_denied` |
| db_unfetched, db_duplicate, db_orphan, others | ignored, by reason |

The CrawlDb keeps the time at which a page is due again, so a page was fetched one retry interval before that. Nutch
writes times as Java's `Date.toString` does, with the abbreviation of its machine's zone. Some of these mean several
zones (CST is -06:00 in Chicago and +08:00 in Shanghai): unless the zone is given, times with such an abbreviation, or
an unknown one, are left empty and counted (`zone-ambiguous`), so that they outdate nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, NamedTuple
from zoneinfo import ZoneInfo

from semrank.transforms.crawls.pages import (
    DEFAULT_LIMITS,
    CrawlLimits,
    Fetch,
    is_robots_txt,
    known_time,
    page,
    redirect,
    settle_status,
)
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.json_lines import parse_object, read_lines, whole_number
from semrank.transforms.streams.quotes import quote_page_line
from semrank.transforms.streams.texts import text_or_escapes
from semrank.transforms.streams.urls import canonical_url

STAGE = "nutch"

HEADER = b"Url,Status code,Status name,"
"""How the first line of a CSV dump begins."""

_FETCHED = frozenset({"db_fetched", "db_notmodified"})
_REDIRECTS = {"db_redir_temp": 302, "db_redir_perm": 301}
_GONE_STATUS = 404

# URLs and metadata stand in quotes that nothing escapes, so their ends are found by the fixed fields between them.
_CSV = re.compile(
    r'"(?P<url>.*)",-?[0-9]+,"(?P<status>[A-Za-z_ ]*)",(?P<due>[^,"]*),[^,"]*,[0-9-]+,'
    r'(?P<interval>[0-9.Ee+-]+),[^,]*,[^,]*,"(?P<signature>[^"]*)","(?P<metadata>.*)"\s*',
    re.DOTALL,
)
_JAVA_DATE = re.compile(
    r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) (?P<day>[0-9]{1,2}) (?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2}) (?P<zone>\S+) "
    r"(?P<year>[0-9]{4})"
)
_FAILURE = re.compile(
    r"(?:^|_pst_:)\s*(failed|proto_not_found|retry|exception|access_denied|robots_denied|redir_exceeded|notfetching|"
    r"wouldblock|blocked)\("
)
"""Protocol statuses of pages that may well exist: Nutch gives them up for the interval, or after several errors."""
_PROTOCOL_TARGET = re.compile(r"moved\([0-9]+\), lastModified=-?[0-9]+: (\S+?)(?:\|\|\||$)")
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(0?[0-9]|1[0-4])(?::?([0-5][0-9]))?")

_ZONES = {
    **{"UTC": 0, "GMT": 0, "UT": 0, "Z": 0, "WET": 0, "WEST": 60, "CET": 60, "CEST": 120, "EET": 120, "EEST": 180},
    **{"EST": -300, "EDT": -240, "MST": -420, "MDT": -360, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600},
    **{"NST": -210, "NDT": -150, "BRT": -180, "BRST": -120, "ART": -180, "COT": -300, "PET": -300, "UYT": -180},
    **{"JST": 540, "KST": 540, "HKT": 480, "SGT": 480, "MYT": 480, "WIB": 420, "WITA": 480, "WIT": 540, "ICT": 420},
    **{"AEST": 600, "AEDT": 660, "ACST": 570, "ACDT": 630, "AWST": 480, "NZST": 720, "NZDT": 780, "PKT": 300},
    **{"IDT": 180, "NPT": 345, "EAT": 180, "CAT": 120, "SAST": 120, "WAT": 60, "WAST": 120, "TRT": 180, "UZT": 300},
}
"""Minutes east of Greenwich of abbreviations that Java and the tz database use of one zone, which never moved.

CST, IST and others stand for several zones; MSK was +03:00 and +04:00 by turns.
"""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECOND = 1_000_000
_FIRST_MILLISECONDS = 10**11  # smaller numbers are seconds: as milliseconds, they would be of 1973 and before


class _Entry(NamedTuple):
    url: str
    status: str
    due: str | int | None
    interval: float | None
    signature: str | None
    protocol_status: str


def read(stream: BinaryIO, *, source: str, limits: CrawlLimits = DEFAULT_LIMITS) -> Iterator[SourceBatch]:
    """Batches of a dump; see `formats.Read`.

    Each line is recognised as CSV or JSON by itself, so that parts of a dump can be read on their own.
    """
    machine = None if limits.nutch_zone is None else ZoneInfo(limits.nutch_zone)
    builder = BatchBuilder(STAGE, limits.rules)
    for line in read_lines(stream):
        if line.problem is not None:
            builder.reject(line.problem, f"{source} {quote_page_line(line.data)}")
        elif line.data.startswith(HEADER):
            builder.ignore("header")
        else:
            entry = _json_entry(line.data) if line.data.lstrip().startswith(b"{") else _csv_entry(line.data)
            if isinstance(entry, str):
                builder.reject(entry, f"{source} {quote_page_line(line.data)}")
            else:
                _settle(builder, entry, machine, f"{source} {entry.url}")
        yield from builder.drain()
    yield from builder.drain(last=True)


def _csv_entry(line: bytes) -> _Entry | str:
    # Nutch writes the low byte of each character; in practice URLs are ASCII.
    found = _CSV.fullmatch(text_or_escapes(line))
    if found is None:
        return "layout-unknown"
    signature = found["signature"]
    return _Entry(
        found["url"],
        found["status"],
        found["due"],
        _number(found["interval"]),
        None if signature in ("", "null") else signature,
        found["metadata"],
    )


def _json_entry(line: bytes) -> _Entry | str:
    parsed = parse_object(line)
    if isinstance(parsed, str):
        return parsed
    metadata = parsed.get("metadata")
    status_of = metadata.get("_pst_") if isinstance(metadata, dict) else metadata
    due = parsed.get("fetchTime")
    signature = parsed.get("signature")
    return _Entry(
        str(parsed.get("url") or ""),
        str(parsed.get("statusName") or ""),
        due if isinstance(due, str) else whole_number(due),
        _number(parsed.get("retryIntervalSeconds")),
        signature if isinstance(signature, str) and signature not in ("", "null") else None,
        str(status_of or ""),
    )


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < 1e10 else None  # a retry interval of more than 300 years is none


def _settle(builder: BatchBuilder, entry: _Entry, zone: ZoneInfo | None, described: str) -> None:
    url, reason = canonical_url(entry.url, rules=builder.rules)
    if url is None:
        builder.reject(reason or "url-invalid", described)
        return
    if is_robots_txt(builder, url):
        return
    status = entry.status.strip().lower()
    if status in _FETCHED:
        digest = None if entry.signature is None else f"nutch:{entry.signature}"
        fetch = Fetch(url, _fetched_at(builder, entry, zone), 200, digest, described)
        page(builder, fetch, title=None, text=None, language=None)
    elif status in _REDIRECTS:
        target = _PROTOCOL_TARGET.search(entry.protocol_status)
        if target is None:
            builder.ignore("redirect-without-target")
        else:
            fetched_at = _fetched_at(builder, entry, zone)
            redirect(builder, Fetch(url, fetched_at, _REDIRECTS[status], None, described), target[1])
    elif status == "db_gone" and (failure := _FAILURE.search(entry.protocol_status)) is not None:
        builder.ignore(failure[1].replace("_", "-"))
    elif status == "db_gone":
        settle_status(builder, Fetch(url, _fetched_at(builder, entry, zone), _GONE_STATUS, None, described), None)
    elif status.startswith("db_"):
        builder.ignore(status.removeprefix("db_").replace("_", "-"))
    else:
        builder.reject("status-unknown", described)


def _fetched_at(builder: BatchBuilder, entry: _Entry, zone: ZoneInfo | None) -> int | None:
    due = entry.due
    if isinstance(due, int):
        moment: int | None = due * (_SECOND if due < _FIRST_MILLISECONDS else 1_000) if 0 < due < 1 << 52 else None
    else:
        moment = _written_time(builder, due, zone) if due else None
    if moment is None or entry.interval is None:
        return known_time(builder, None)
    # Segments exported as WARC have seconds: with a finer time, this row without text would be the newer capture.
    return known_time(builder, (moment - round(entry.interval) * _SECOND) // _SECOND * _SECOND)


def _written_time(builder: BatchBuilder, text: str, zone: ZoneInfo | None) -> int | None:
    """Microseconds since 1970 of what Java's `Date.toString` writes, or of ISO 8601."""
    found = _JAVA_DATE.fullmatch(text.strip())
    if found is None:
        return microseconds(text)
    if found["month"] not in _MONTHS:
        return None
    month = _MONTHS.index(found["month"]) + 1
    try:
        local = datetime.fromisoformat(f"{found['year']}-{month:02}-{int(found['day']):02}T{found['clock']}")
    except ValueError:
        return None
    offset = _offset(found["zone"])
    if offset is not None:
        moment = local - offset
    elif zone is not None:
        moment = _in_zone(local, zone, found["zone"])
    else:
        builder.count("zone-ambiguous")
        return None
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def _offset(zone: str) -> timedelta | None:
    """Time east of Greenwich of an abbreviation, `GMT+08:00` or `UTC+8`; None where it is not certain."""
    numeric = _OFFSET.fullmatch(zone)
    if numeric is not None:
        return timedelta(minutes=(int(numeric[2]) * 60 + int(numeric[3] or 0)) * (-1 if numeric[1] == "-" else 1))
    return timedelta(minutes=_ZONES[zone]) if zone in _ZONES else None


def _in_zone(local: datetime, zone: ZoneInfo, abbreviation: str) -> datetime:
    """A local time in UTC; in the hour that the end of summer time repeats, the abbreviation decides."""
    second = local.replace(tzinfo=zone, fold=1)
    chosen = second if second.tzname() == abbreviation else local.replace(tzinfo=zone)
    return chosen.astimezone(UTC).replace(tzinfo=None)
