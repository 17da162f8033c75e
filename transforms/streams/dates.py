"""Points in time as crawls and logs write them: ISO 8601 in any precision, and digits alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SESSION_GAP_SECONDS = 30 * 60
"""Time without a request after which a user's next one begins a new session, as web analytics has it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIGITS = re.compile(r"([0-9]{4})([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{2})?([0-9]{0,9})")
_PARTIAL_DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2})?")
_END_OF_DAY = re.compile(r"(?<=[T ])24(?=:?00(?::?00(?:\.0+)?)?(?:Z|[+-]|$))")
_ANNOTATED = re.compile(r"(.*(?:Z|[+-][0-9]{2}:?[0-9]{2}))(?:\[[^\[\]]*\])+")
_LEAP_SECOND = re.compile(r"(?<=[T ])([0-9]{2}:?[0-9]{2}:?)60(?=\.|Z|[+-]|$)")


def microseconds(text: str | None) -> int | None:
    """A point in time as microseconds since 1970 in UTC; None where there is none that can be read.

    Takes ISO 8601 as WARC dates have it: year and month alone, fractions (cut to microseconds), offsets (UTC where
    there is none), the leap second (which is the next second) and hour 24 (which is the next day). What RFC 9557 puts
    behind an offset in brackets (`+02:00[Europe/Berlin]`, as Java writes it) is passed over. Takes also the digits of
    ARC dates, year to second and perhaps a fraction, which may break off behind any of them; a single digit
    behind the last whole one is not counted.
    """
    if not text:
        return None
    text = text.strip().upper()
    later = timedelta(0)
    digits = _DIGITS.fullmatch(text)
    if digits is not None:
        year, month, day, hour, minute, second, fraction = digits.groups()
        clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}.{(second and fraction) or '0'}"
        text = f"{year}-{month or '01'}-{day or '01'}T{clock}Z"
    elif text.isdigit():
        return None
    elif _PARTIAL_DATE.fullmatch(text):
        text = f"{text}-01-01"[:10]
    elif (annotated := _ANNOTATED.fullmatch(text)) is not None:
        text = annotated[1]
    if _END_OF_DAY.search(text):
        text, later = _END_OF_DAY.sub("00", text), timedelta(days=1)
    elif _LEAP_SECOND.search(text):
        text, later = _LEAP_SECOND.sub(r"\g<1>59", text), timedelta(seconds=1)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment + later - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None
