"""Dates of WARC and ARC files: ISO 8601, ISO 28500 and the digits of the Internet Archive."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.times import written_time, written_times

DATES = [
    ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00"),
    ("2024-05-01T10:00:00.123456789Z", "2024-05-01T10:00:00.123456"),
    ("2024-05-01T10:00:00,5Z", "2024-05-01T10:00:00.5"),
    ("2024-05-01T10:00:00+02:00", "2024-05-01T08:00:00"),
    ("2024-05-01 10:00:00", "2024-05-01T10:00:00"),
    ("2024-05-01t10:00:00z", "2024-05-01T10:00:00"),
    ("2024-05-01T10:00Z", "2024-05-01T10:00:00"),
    ("20240501T100000Z", "2024-05-01T10:00:00"),
    ("2024-05-01", "2024-05-01T00:00:00"),
    ("2024-05-01T24:00:00Z", "2024-05-02T00:00:00"),
    ("2024-05-01T24:00:00+02:00", "2024-05-01T22:00:00"),
    ("2024-12-31T23:59:60Z", "2025-01-01T00:00:00"),
    ("2024-12-31T23:59:60.5Z", "2025-01-01T00:00:00.5"),
    ("2024-05-01T10:00:00+02:00[Europe/Berlin]", "2024-05-01T08:00:00"),
    ("2024-05-01T10:00:00.25Z[Etc/UTC][u-ca=hebrew]", "2024-05-01T10:00:00.25"),
    ("2024-05-01T10:00:00[Europe/Berlin]", None),
    ("2024-05-01T10:00:00Z[", None),
    ("Wed, 01 May 2024 10:00:00 GMT", None),
    ("0000-00-00T00:00:00Z", None),
    ("2024-02-30T00:00:00Z", None),
    ("2024-05-01T24:30:00Z", None),
    ("2024-05-01T25:00:00Z", None),
    ("2024-05-01T10:61:00Z", None),
    ("", None),
    ("yesterday", None),
]
DIGITS = [
    ("2024", "2024-01-01T00:00:00"),
    ("2024-05", "2024-05-01T00:00:00"),
    ("202405", "2024-05-01T00:00:00"),
    ("20240501", "2024-05-01T00:00:00"),
    ("202405011", "2024-05-01T00:00:00"),
    ("2024050110", "2024-05-01T10:00:00"),
    ("2024050110000", "2024-05-01T10:00:00"),
    ("20240501100000", "2024-05-01T10:00:00"),
    ("20240501240000", "2024-05-02T00:00:00"),
    ("20240501100000123", "2024-05-01T10:00:00.123"),
    ("20240501100000123456789", "2024-05-01T10:00:00.123456"),
    ("00000000000000", None),
    ("20241301000000", None),
    ("2024050110000012345678901", None),
]


def expected(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "moment"), DATES + DIGITS)
def test_dates_of_archives(text: str, moment: str | None) -> None:
    found = microseconds(text)
    known = expected(moment)
    assert found == (None if known is None else round(known.timestamp() * 1_000_000))


@pytest.mark.parametrize(("text", "moment"), DATES)
def test_dates_of_logs_are_the_same(text: str, moment: str | None) -> None:
    assert written_times(pa.array([text.encode()])).to_pylist() == [expected(moment)]
    assert written_time(text.encode()) == microseconds(text)


@pytest.mark.parametrize(
    "text", ["1.7145576E9", "1.7145576e+09", "1.7145576e+12", "1.7145576E+15", "1.7145576e+18", "17145576e+11"]
)
def test_numbers_with_an_exponent(text: str) -> None:
    """Python's `repr` from 10^16 on, JavaScript's `Number` from 10^21 on, and spreadsheets write floats so."""
    assert written_time(text.encode()) == 1_714_557_600_000_000
    assert written_times(pa.array([text.encode()]))[0].as_py() == datetime(2024, 5, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["1.7e99", "1e5", "e9", "1.e9", "1e-9", "1e999999999", "1.5e3e5"])
def test_numbers_that_are_no_times(text: str) -> None:
    assert written_time(text.encode()) is None
