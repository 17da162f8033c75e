"""Rows of a user's table of pages by the rules of all crawl formats.

A robots.txt file is no page, and neither is a redirect or an error; a missing page (404, 410) has no content. Otherwise
the newest row of a page might be an error that takes its content away.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import GONE_STATUSES
from semrank.transforms.columnar.arrays import column_array
from semrank.transforms.crawls.html import MAX_TEXT_CHARS, MAX_TITLE_CHARS
from semrank.transforms.crawls.pages import left_aside
from semrank.transforms.streams.batch import BatchBuilder
from semrank.transforms.streams.languages import language_code

_ROBOTS_TXT = r"^https?://[^/]+/robots\.txt(?:\?|$)"
_FIRST_STATUS, _LAST_STATUS = 100, 999
_SUCCESSES = range(200, 300)


def reasons_to_ignore(rows: pa.Table) -> pa.StringArray:
    """Why rows are no pages', string[n]; null where they are.

    Args:
        rows: columns `url` (canonical, or null) and `status` of `PAGES`.
    """
    encoded = column_array(rows["status"]).dictionary_encode()
    reasons = pa.array([_reason(status) for status in encoded.dictionary.to_pylist()], pa.string())
    is_robots_txt = pc.fill_null(pc.match_substring_regex(rows["url"], _ROBOTS_TXT), False)
    return column_array(pc.if_else(is_robots_txt, "robots-txt", reasons.take(encoded.indices)))


def _reason(status: int) -> str | None:
    return None if status in _SUCCESSES or status in GONE_STATUSES else left_aside(status)


def tidied(builder: BatchBuilder, rows: pa.Table) -> pa.Table:
    """Rows of `PAGES` without unreadable statuses and languages, and with titles and texts up to their limits.

    Args:
        builder: counts what is taken away.
        rows: columns of `PAGES`.
    """
    status = column_array(rows["status"])
    known = pc.and_(pc.greater_equal(status, _FIRST_STATUS), pc.less_equal(status, _LAST_STATUS))
    builder.count("status-invalid", _true(pc.invert(known)))
    rows = _with(rows, "status", pc.if_else(known, status, None))
    language = column_array(rows["language"]).dictionary_encode()
    codes = pa.array([language_code(tag) for tag in language.dictionary.to_pylist()], pa.string())
    given = pc.not_equal(pc.fill_null(column_array(rows["language"]), ""), "")
    codes = codes.take(language.indices)
    builder.count("language-invalid", _true(pc.and_(given, pc.is_null(codes))))
    rows = _with(rows, "language", codes)
    gone = pc.fill_null(pc.is_in(rows["status"], pa.array(GONE_STATUSES, pa.int16())), False)
    for name, limit in (("title", MAX_TITLE_CHARS), ("text", MAX_TEXT_CHARS)):
        rows = _with(rows, name, pc.if_else(gone, None, cut(builder, name, rows[name], limit)))
    return rows


def cut(builder: BatchBuilder, name: str, texts: pa.ChunkedArray, limit: int) -> pa.StringArray:
    """Texts cut at a number of characters; counts those that are longer as `NAME-cut`."""
    column = column_array(texts)
    longer = _true(pc.greater(pc.utf8_length(column), limit))
    builder.count(f"{name.replace('_', '-')}-cut", longer)
    return pc.utf8_slice_codeunits(column, 0, limit) if longer else column


def _true(values: pa.BooleanArray) -> int:
    return int(pc.sum(values).as_py() or 0)


def _with(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)
