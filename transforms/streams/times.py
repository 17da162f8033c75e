"""Points in time as logs write them, to microseconds since 1970 in UTC; null where a text is none."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import TIMESTAMP
from semrank.transforms.columnar.arrays import Bools, Int64s
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.spans import value_spans, window

MICROSECONDS = 1_000_000
MIN_YEAR, MAX_YEAR = 1970, 2261
"""Years a log may have: before there were no logs, after them 64-bit nanoseconds end."""

_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_MONTH_CODES = np.array([int.from_bytes(month, "big") for month in _MONTHS], dtype=np.int64)
_MONTH_ORDER = np.argsort(_MONTH_CODES)

_SCALES = {9: 1, 10: 1, 13: 1_000, 16: MICROSECONDS, 19: 1_000_000_000}
"""How many of its units make a second, by the number of digits of a time since 1970."""

_APACHE = b"00/Aaa/0000:00:00:00 +0000"
_FRACTIONAL = r"^(?P<second>.{20})[.,](?P<fraction>[0-9]{1,9})(?P<zone> .{5})$"
_DENSE = b"00000000000000"
_SPACED = b"0000-00-00 00:00:00"

_SPELT_UTC = re.compile(r"(?<=[0-9]) UTC\Z")
_SLASHED = re.compile(r"\A([0-9]{4})/([0-9]{2})/([0-9]{2})(?= |\Z)")

_EXPONENT = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20}[eE]\+?|[eE]\+)[0-9]{1,2}")

_DATE_IN_NAME = re.compile(
    r"(?<![0-9])((?:19[7-9]|20[0-9]|21[0-9])[0-9])(?:-([0-9]{2})(?:-([0-9]{2}))?|([0-9]{2})([0-9]{2}))(?![0-9])"
)

Bytes = npt.NDArray[np.uint8]

MAX_MOMENT = round(datetime.datetime(MAX_YEAR, 12, 31, tzinfo=datetime.UTC).timestamp()) * MICROSECONDS


def timestamps(micros: Int64s, valid: Bools) -> pa.TimestampArray:
    """Microseconds since 1970 as timestamps in UTC, null where not valid."""
    return pa.array(np.where(valid, micros, 0), pa.int64(), mask=~valid).cast(TIMESTAMP)


def apache_times(values: pa.BinaryArray) -> pa.TimestampArray:
    """Times as the Common Log Format writes them: `10/Feb/2012:16:42:07 -0500`; lines of a second share their text.

    The second may have a fraction, as Apache's `%{msec_frac}t` and `%{usec_frac}t` write it.
    """
    encoded = values.dictionary_encode()
    known = encoded.dictionary
    parts = pc.extract_regex(known, _FRACTIONAL)
    if parts.null_count == len(known):
        return _apache_times(known).take(encoded.indices)
    second, fraction, zone = (pc.struct_field(parts, name) for name in ("second", "fraction", "zone"))
    whole = _apache_times(pc.coalesce(pc.binary_join_element_wise(second, zone, b""), known))
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(fraction.cast(pa.string()), 6, "0"), 0, 6)
    micros = pc.add(whole.cast(pa.int64()), digits.cast(pa.int64()).fill_null(0))
    return micros.cast(TIMESTAMP).take(encoded.indices)


def _apache_times(values: pa.BinaryArray) -> pa.TimestampArray:
    text, fits = _fixed(values, _APACHE)
    code = (text[:, 3].astype(np.int64) << 16) | (text[:, 4].astype(np.int64) << 8) | text[:, 5]
    found = np.minimum(np.searchsorted(_MONTH_CODES, code, sorter=_MONTH_ORDER), len(_MONTHS) - 1)
    month = _MONTH_ORDER[found]
    fits &= _MONTH_CODES[month] == code
    seconds, valid = _seconds(text, (7, 11), month + 1, 0, 12)
    sign = np.where(text[:, 21] == ord("-"), -1, 1)
    zone_hour, zone_minute = _number(text, 22, 24), _number(text, 24, 26)
    fits &= valid & np.isin(text[:, 21], (ord("+"), ord("-"))) & (zone_hour <= 14) & (zone_minute < 60)
    return timestamps((seconds - sign * (zone_hour * 3600 + zone_minute * 60)) * MICROSECONDS, fits)


def dense_times(values: pa.BinaryArray) -> pa.TimestampArray:
    """Times as 14 digits, `20111230000005`."""
    text, fits = _fixed(values, _DENSE)
    seconds, valid = _seconds(text, (0, 4), _number(text, 4, 6), 6, 8)
    return timestamps(seconds * MICROSECONDS, fits & valid)


def spaced_times(values: pa.BinaryArray) -> pa.TimestampArray:
    """Times as `2006-03-01 07:17:12` (or with `T`), in UTC."""
    text, fits = _fixed(values, _SPACED, loose=10)
    fits &= np.isin(text[:, 10], (ord(" "), ord("T"), ord("\t")))
    seconds, valid = _seconds(text, (0, 4), _number(text, 5, 7), 8, 11)
    return timestamps(seconds * MICROSECONDS, fits & valid)


def written_times(values: pa.BinaryArray) -> pa.TimestampArray:
    """Times in any of the usual notations, each value on its own.

    ISO 8601 (with a zone, perhaps ` UTC`, a fraction of a second, `T` or a space; without a zone it is UTC), the Common
    Log Format's, Caddy's (`2024/03/12 10:00:00.123`), 14 digits, seconds since 1970 with or without a fraction, or (13,
    16, 19 digits) parts of seconds; also with an exponent, as floats and spreadsheets have it (`1.7E+18`).
    """
    encoded = values.dictionary_encode()
    known = encoded.dictionary
    result = spaced_times(known)
    for parse in (apache_times, dense_times, _iso_times):
        if not result.null_count:
            break
        result = pc.coalesce(result, parse(known))
    return result.take(encoded.indices)


def written_time(value: bytes) -> int | None:
    """One time as `written_times` reads it, in microseconds since 1970, or None if it is none.

    Arrow's functions take half a millisecond for one value, so only what may be a time of fixed width, or the Common
    Log Format's, is left to them.
    """
    fixed = value.isdigit() if len(value) == len(_DENSE) else value[4:5] == b"-" and len(value) == len(_SPACED)
    if fixed or (value[2:3] == b"/" and len(value) >= len(_APACHE)):
        micros: int | None = written_times(pa.array([value], pa.binary())).cast(pa.int64())[0].as_py()
        return micros
    return _one_time(value)


def _iso_times(values: pa.BinaryArray) -> pa.TimestampArray:
    return pa.array([None if value is None else _one_time(value) for value in values.to_pylist()], TIMESTAMP)


def _one_time(value: bytes) -> int | None:
    text = value.decode("latin-1").strip()
    if _EXPONENT.fullmatch(text):
        text = format(Decimal(text), "f")
    try:
        number = float(text) if text[:1].isdigit() and text.replace(".", "", 1).isdecimal() else None
        if number is not None:
            scale = _SCALES.get(len(text.partition(".")[0]))
            return None if scale is None else _scaled(text, scale)
    except (ValueError, OverflowError):
        return None
    moment = microseconds(_SPELT_UTC.sub("Z", _SLASHED.sub(r"\1-\2-\3", text)))
    return moment if moment is not None and 0 <= moment <= MAX_MOMENT else None


def _scaled(text: str, scale: int) -> int:
    """A decimal number in microseconds, given how many of its units make a second."""
    if "." not in text:
        return int(text) * MICROSECONDS // scale
    return round(float(text) * MICROSECONDS / scale)


def _fixed(values: pa.BinaryArray, form: bytes, *, loose: int | None = None) -> tuple[Bytes, Bools]:
    """Values of a fixed width as uint8[n, width], and which of them have digits and signs where `form` has them.

    In `form`, 0 is a digit, A and a are letters, other bytes are themselves; byte number `loose` may be anything.
    """
    data, starts, ends = value_spans(values)
    width = len(form)
    fits = (ends - starts) == width
    content = np.frombuffer(data, dtype=np.uint8)
    if not fits.any():
        return np.full((len(values), width), ord("0"), dtype=np.uint8), fits
    text = window(content, np.where(fits, starts, starts[fits][0]), width)
    for place, expected in enumerate(form):
        byte = text[:, place]
        if place == loose:
            continue
        if expected == ord("0"):
            fits &= (byte >= ord("0")) & (byte <= ord("9"))
        elif expected not in b"Aa+":
            fits &= byte == expected
    return text, fits


def _number(text: Bytes, start: int, stop: int) -> Int64s:
    total = np.zeros(len(text), dtype=np.int64)
    for place in range(start, stop):
        total = total * 10 + (text[:, place].astype(np.int64) - ord("0"))
    return total


def _seconds(text: Bytes, year: tuple[int, int], month: Int64s, day: int, hour: int) -> tuple[Int64s, Bools]:
    """Seconds since 1970 and whether the date exists.

    Day at byte `day`; hour, minute and second from byte `hour` on with one byte (or, where the form has 14 digits,
    none) between them.
    """
    step = 2 if text.shape[1] == len(_DENSE) else 3
    years = _number(text, *year)
    days = _number(text, day, day + 2)
    clock = [_number(text, hour + part * step, hour + part * step + 2) for part in range(3)]
    valid = (years >= MIN_YEAR) & (years <= MAX_YEAR) & (month >= 1) & (month <= 12)
    months = (np.where(valid, years, MIN_YEAR) - 1970) * 12 + np.where(valid, month, 1) - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    valid &= (days >= 1) & (days <= following - first)
    valid &= (clock[0] < 24) & (clock[1] < 60) & (clock[2] <= 60)  # 60: a leap second
    return (first + days - 1) * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2], valid


def date_in_name(source: str) -> str:
    """The first date in a file's name, `20060801` or `2006-08-01` or (the first of the month) `2006-08`, as ISO 8601.

    1970-01-01 where the name holds none.
    """
    name = source.replace("\\", "/").rpartition("/")[2]
    for match in _DATE_IN_NAME.finditer(name):
        year, month, day = int(match[1]), int(match[2] or match[4]), int(match[3] or match[5] or 1)
        try:
            return datetime.date(year, month, day).isoformat()
        except ValueError:
            continue
    return datetime.date(MIN_YEAR, 1, 1).isoformat()
