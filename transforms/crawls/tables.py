"""The users' own tables `pages`, `links` and `clicks`, in Parquet or JSON Lines.

A file with unsuitable columns is an error; an unusable row is a reject. URLs become canonical. Times may be Arrow
timestamps, or texts in the usual notations (`streams.times.written_times`), in JSON also seconds since 1970. Whole
numbers such as `3.0` are integers; a position below 1 counts as missing, as does a blank text in a column of times,
numbers, truth values or lists, or of names that group rows (digests, sessions, groups of users).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, LINKS, PAGES, TableSchema, conform
from semrank.transforms.columnar.arrays import bools, column_array, filter_lists, list_parts, places_in_groups
from semrank.transforms.crawls import page_rows
from semrank.transforms.crawls.links import MAX_ANCHOR_CHARS
from semrank.transforms.crawls.pages import DEFAULT_LIMITS, CrawlLimits
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.json_lines import parse_object, read_lines, whole_number
from semrank.transforms.streams.lines import is_compressed
from semrank.transforms.streams.parquet import MAGIC, read_batches, read_schema
from semrank.transforms.streams.quotes import quote_click, quote_click_line, quote_head, quote_page_line
from semrank.transforms.streams.texts import well_formed
from semrank.transforms.streams.times import MAX_YEAR, MIN_YEAR, written_times
from semrank.transforms.streams.urls import canonicalize

TABLES: dict[str, TableSchema] = {table.name: table for table in (PAGES, LINKS, CLICKS)}
"""The tables that users may provide."""

PARQUET, JSON_LINES = "parquet", "json-lines"

JSON_BLOCK_BYTES = 1 << 20
"""Bytes of JSON Lines that are parsed at once."""

_URL_COLUMNS = {
    "pages": {"url": ""},
    "links": {"source_url": "source-", "target_url": "target-"},
    "clicks": {"url": ""},
}

_GROUPING = frozenset({"content_digest", "session_id", "user_group"})
"""Columns by whose equal values rows belong together; rows without a value don't."""

MAX_KEYWORDS = 10_000
"""Maximum keywords of a row: long texts have some thousand different words."""

MAX_KEYWORD_CHARS = 1_000
"""Maximum characters of a keyword, as of a title."""


def table_format(head: bytes, source: str) -> str:
    """The format of a file, from its first bytes (some hundred suffice).

    Raises:
        InputError: it is neither.
    """
    if head.startswith(MAGIC):
        return PARQUET
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or text.startswith(b"{") or is_compressed(head):
        return JSON_LINES
    raise InputError(f"{source}: begins with {quote_head(head)}, expected a Parquet file or JSON Lines")


def check_parquet(stream: BinaryIO, *, table: str, source: str) -> None:
    """Checks the columns of a Parquet file.

    Raises:
        InputError: the file is unreadable, a required column is missing, or a column's type does not convert.
    """
    check_columns(read_schema(stream, source), TABLES[table], source)


def check_columns(schema: pa.Schema, expected: TableSchema, source: str) -> None:
    """Checks the columns of a file.

    Raises:
        InputError: a required column is missing, or a column's type does not convert.
    """
    for field in expected.schema:
        position = schema.get_field_index(field.name)
        if position < 0 and not field.nullable:
            raise InputError(
                f"{source}: table {expected.name}: column '{field.name}' is missing; found columns {schema.names}, "
                f"expected at least {list(expected.required)}"
            )
        if position >= 0 and not _converts(schema.field(position).type, field.type):
            raise InputError(
                f"{source}: table {expected.name}: column '{field.name}' has type {schema.field(position).type}, "
                f"expected {field.type}"
            )


def _converts(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values of one type convert to another without ambiguity."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_null(found) or found == expected:
        return True
    if pa.types.is_list(expected):
        listed = pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)
        return listed and _converts(found.value_type, expected.value_type)
    textual = pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
    if pa.types.is_string(expected):
        return bool(textual)
    numeric = pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    if pa.types.is_timestamp(expected):
        return bool(textual or numeric or pa.types.is_timestamp(found) or pa.types.is_date(found))
    return bool(pa.types.is_integer(expected) and numeric)


def read_parquet(
    stream: BinaryIO,
    *,
    table: str,
    source: str,
    groups: Sequence[int] | None = None,
    limits: CrawlLimits = DEFAULT_LIMITS,
) -> Iterator[SourceBatch]:
    """Batches of a Parquet file.

    Args:
        stream: seekable binary stream.
        table: `pages`, `links` or `clicks`.
        source: name of the file, for messages.
        groups: row groups to read, all if None.
        limits: the rules for parameters of URLs.

    Raises:
        InputError: the file is unreadable, a required column is missing, or a column's type does not convert.
    """
    expected = TABLES[table]
    check_parquet(stream, table=table, source=source)
    builder = BatchBuilder(table, limits.rules)
    names = expected.schema.names
    for rows in read_batches(stream, source, columns=names, groups=groups, reject=builder.reject):
        prepared, invalid = in_convertible_types(rows.table, expected.schema)
        conformed = conform(prepared, expected, check_nulls=False)
        _settle(builder, expected, conformed, pc.coalesce(rows.reasons, invalid), _quoter(rows.table, expected))
        yield from builder.drain()
    yield from builder.drain(last=True)


def read_json_lines(
    stream: BinaryIO, *, table: str, source: str, limits: CrawlLimits = DEFAULT_LIMITS
) -> Iterator[SourceBatch]:
    """Batches of a file of JSON Lines; never raises because of its content.

    Args:
        stream: whole lines, perhaps compressed.
        table: `pages`, `links` or `clicks`.
        source: name of the file, for reject rows.
        limits: the rules for parameters of URLs.
    """
    expected = TABLES[table]
    builder = BatchBuilder(table, limits.rules)
    block: list[bytes] = []
    size = 0
    for line in read_lines(stream):
        if line.problem is not None:
            builder.reject(line.problem, f"{source} {_quote_line(line.data, expected)}")
            continue
        block.append(line.data)
        size += len(line.data)
        if size >= JSON_BLOCK_BYTES:
            _settle_lines(builder, expected, block)
            yield from builder.drain()
            block, size = [], 0
    if block:
        _settle_lines(builder, expected, block)
    yield from builder.drain(last=True)


def _settle_lines(builder: BatchBuilder, expected: TableSchema, lines: list[bytes]) -> None:
    rows = _parse_together(lines, expected)
    if rows is None:
        rows = _parse_one_by_one(builder, lines, expected)
    prepared, invalid = in_convertible_types(rows, expected.schema)
    _settle(builder, expected, conform(prepared, expected, check_nulls=False), invalid, _quoter(rows, expected))


def _parse_together(lines: list[bytes], expected: TableSchema) -> pa.Table | None:
    """The rows by Arrow's parser, which is fast and strict; None if a line is invalid."""
    content = b"\n".join(lines)
    schema = pa.schema([(field.name, _json_type(field.type)) for field in expected.schema])
    try:
        content.decode("utf-8")
        table = pyarrow.json.read_json(
            io.BytesIO(content),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return table if table.num_rows == len(lines) else None


def _json_type(dtype: pa.DataType) -> pa.DataType:
    """Times are read as texts, which have many notations, and integers as int64; both are checked afterwards."""
    if pa.types.is_timestamp(dtype):
        return pa.string()
    return pa.int64() if pa.types.is_integer(dtype) else dtype


def _parse_one_by_one(builder: BatchBuilder, lines: list[bytes], expected: TableSchema) -> pa.Table:
    """The rows of the lines that are objects with values of the right kinds."""
    columns: list[list[Any]] = [[] for _ in expected.schema]
    for line in lines:
        parsed = parse_object(line)
        if isinstance(parsed, str):
            builder.reject(parsed, _quote_line(line, expected))
            continue
        values: list[Any] = []
        for field in expected.schema:
            value, fits = _json_value(parsed.get(field.name), field.type)
            if not fits:
                builder.reject(f"{_kebab(field.name)}-invalid", _quote_line(line, expected))
                break
            values.append(value)
        else:
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    arrays = [pa.array(values, _json_type(field.type)) for values, field in zip(columns, expected.schema, strict=True)]
    return pa.table(arrays, names=expected.schema.names)


def _json_value(value: Any, dtype: pa.DataType) -> tuple[Any, bool]:
    """A JSON value converted to a column's type, and whether it converts."""
    if value is None:
        return None, True
    if pa.types.is_string(dtype):
        return (well_formed(value), True) if isinstance(value, str) else (None, False)
    if isinstance(value, str) and not value.strip():
        return None, True
    if pa.types.is_boolean(dtype):
        return value, isinstance(value, bool)
    if pa.types.is_list(dtype):
        fits = isinstance(value, list) and all(isinstance(word, str) for word in value)
        return ([well_formed(word) for word in value], True) if fits else (None, False)
    if isinstance(value, bool):
        return None, False
    if pa.types.is_timestamp(dtype):
        return (well_formed(str(value)), True) if isinstance(value, str | int | float) else (None, False)
    number = whole_number(value)
    fits = number is not None and -(2**63) <= number < 2**63
    return number if fits else None, fits or value != value  # data frames write null as NaN


def in_convertible_types(rows: pa.Table, schema: pa.Schema) -> tuple[pa.Table, pa.Array]:
    """The rows with columns that convert as a whole, and the reasons why single rows don't.

    Returns:
        (the rows, string[n] with the reason of rows that have a value that does not convert, else null).
    """
    invalid = pa.nulls(rows.num_rows, pa.string())
    for field in schema:
        position = rows.schema.get_field_index(field.name)
        if position < 0:
            continue
        before = column_array(rows.column(position))
        after = _convertible(before, field.type)
        if after is before:
            continue
        lost = pc.and_(pc.is_valid(before), pc.is_null(after))
        if pa.types.is_floating(before.type):  # data frames write null as NaN
            lost = pc.and_(lost, pc.invert(pc.is_nan(before)))
        elif pa.types.is_timestamp(field.type):  # exports of databases write it as a blank text
            lost = pc.and_(lost, pc.invert(_is_blank(before)))
        invalid = pc.if_else(pc.and_(lost, pc.is_null(invalid)), f"{_kebab(field.name)}-invalid", invalid)
        rows = rows.set_column(position, field.name, after)
    return rows, invalid


def _convertible(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """The column with null in place of values that `dtype` can't represent, or the column itself if there are none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(dtype):
        is_time = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type) or pa.types.is_null(column.type)
        return _datable(column) if is_time else written_times(_written(column))
    if pa.types.is_integer(dtype) and column.type != dtype:
        if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
            column = column.cast(pa.float64())
        if pa.types.is_floating(column.type):
            # Above 2^53 a float64 is not an exact integer; no column needs such values.
            whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))
            column = pc.if_else(whole, column, None).cast(pa.int64())
        if pa.types.is_integer(column.type):
            limit = 1 << (dtype.bit_width - 1)
            if pa.types.is_uint64(column.type):  # Arrow does not compare these with negative numbers
                fits = pc.less(column, pa.scalar(limit, pa.uint64()))
            else:
                fits = pc.and_(pc.greater_equal(column, -limit), pc.less_equal(column, limit - 1))
            return pc.if_else(fits, column, None)
    return column


def _is_blank(column: pa.Array) -> pa.BooleanArray:
    """Which values are texts without a character other than white space."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return pa.repeat(False, len(column))
    return pc.equal(pc.fill_null(pc.utf8_trim_whitespace(column), "-"), "")


def _datable(column: pa.Array) -> pa.Array:
    """Times with null in place of those that no crawl or log has, or the column itself if there are none."""
    if pa.types.is_null(column.type):
        return column
    first, last = (pa.scalar(day).cast(column.type) for day in (date(MIN_YEAR, 1, 1), date(MAX_YEAR, 12, 31)))
    ticks = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    dated = pc.and_(pc.greater_equal(ticks, first.value), pc.less_equal(ticks, last.value))
    return column if pc.all(dated).as_py() is not False else pc.if_else(dated, column, None)


def _written(column: pa.Array) -> pa.BinaryArray:
    """Times as texts; numbers of seconds as decimals."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type):
        values = [None if value is None or value != value else repr(value) for value in column.to_pylist()]
        return pa.array(values, pa.string()).cast(pa.binary())
    return column.cast(pa.string()).cast(pa.binary())


def _settle(
    builder: BatchBuilder, expected: TableSchema, rows: pa.Table, reasons: pa.Array, quote_row: Callable[[int], str]
) -> None:
    """Uses the usable rows, rejects the others.

    Args:
        builder: collects both.
        expected: the table.
        rows: conformed except for nulls in required columns.
        reasons: string[n], why a row is unusable, else null.
        quote_row: text of row i for the reject row.
    """
    for field in expected.schema:
        column = column_array(rows[field.name])
        if field.name == "position":
            rows, column = _ranked(builder, rows, column)
        if field.name in _GROUPING:
            column = pc.if_else(_is_blank(column), None, column)
            rows = rows.set_column(rows.schema.get_field_index(field.name), field.name, column)
        if field.name in _URL_COLUMNS[expected.name]:
            urls = canonicalize(column, builder.rules)
            prefix = _URL_COLUMNS[expected.name][field.name]
            reasons = pc.coalesce(reasons, pc.binary_join_element_wise(prefix, urls.reasons, ""))
            rows = rows.set_column(rows.schema.get_field_index(field.name), field.name, urls.urls)
        elif pa.types.is_list(field.type):
            rows = rows.set_column(rows.schema.get_field_index(field.name), field.name, _bounded_words(builder, column))
        elif not field.nullable:
            missing = pc.is_null(column)
            if pa.types.is_string(field.type):
                missing = pc.or_(missing, pc.equal(pc.fill_null(pc.utf8_trim_whitespace(column), ""), ""))
            if field.name == "query":  # keywords, where given, stand in the place of the query's words
                words = pc.fill_null(pc.list_value_length(column_array(rows["keywords"])), 0)
                missing = pc.and_(missing, pc.equal(words, 0))
                rows = rows.set_column(rows.schema.get_field_index("query"), "query", pc.fill_null(column, ""))
            reasons = pc.coalesce(reasons, pc.if_else(missing, f"{_kebab(field.name)}-missing", None))
    rows, ignored = _by_the_rules(builder, expected, rows)
    for reason in pc.value_counts(ignored.filter(pc.is_null(reasons)).drop_null()).to_pylist():
        builder.ignore(reason["values"], reason["counts"])
    good = pc.and_(pc.is_null(reasons), pc.is_null(ignored))
    builder.add(expected.name, rows.filter(good))
    builder.use(int(pc.sum(good).as_py() or 0))
    bad = np.flatnonzero(bools(reasons.is_valid()))
    for row, reason in zip(bad.tolist(), reasons.take(pa.array(bad)).to_pylist(), strict=True):
        builder.reject(reason, quote_row(row))


def _by_the_rules(builder: BatchBuilder, expected: TableSchema, rows: pa.Table) -> tuple[pa.Table, pa.StringArray]:
    """Rows as the readers of crawls would give them, and why some of them are ignored, string[n]."""
    if expected is PAGES:
        rows = page_rows.tidied(builder, rows)
        return rows, page_rows.reasons_to_ignore(rows)
    if expected is LINKS:
        anchors = page_rows.cut(builder, "anchor_text", rows["anchor_text"], MAX_ANCHOR_CHARS)
        rows = rows.set_column(rows.schema.get_field_index("anchor_text"), "anchor_text", anchors)
    return rows, pa.nulls(rows.num_rows, pa.string())


def _ranked(builder: BatchBuilder, rows: pa.Table, column: pa.Int32Array) -> tuple[pa.Table, pa.Int32Array]:
    """The rows with null in place of positions below 1, with which some tables mark missing ones."""
    unknown = pc.fill_null(pc.less(column, 1), False)
    builder.count("position-below-one", int(pc.sum(unknown).as_py() or 0))
    column = pc.if_else(unknown, None, column)
    return rows.set_column(rows.schema.get_field_index("position"), "position", column), column


def _bounded_words(builder: BatchBuilder, words: pa.ListArray) -> pa.ListArray:
    """The lists without nulls, surplus words and words that are too long; the latter two are counted."""
    indptr, values = list_parts(words)
    place = places_in_groups(indptr[:-1], len(values))
    kept = bools(pc.fill_null(pc.less_equal(pc.utf8_length(values), MAX_KEYWORD_CHARS), False)) & (place < MAX_KEYWORDS)
    if kept.all():
        return words
    builder.count("keywords-cut", int(np.count_nonzero(bools(values.is_valid()) & ~kept)))
    return filter_lists(words, kept)


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _quoter(rows: pa.Table, expected: TableSchema) -> Callable[[int], str]:
    """The quote of a row in a reject row: its URLs, and the time of a click."""

    def quoted(row: int) -> str:
        urls = [str(_value(rows[name][row]) or "") for name in _URL_COLUMNS[expected.name] if name in rows.column_names]
        if expected is not CLICKS:
            return " -> ".join(urls)
        clicked_at = _value(rows["clicked_at"][row]) if "clicked_at" in rows.column_names else None
        return quote_click(str(clicked_at).encode(), "".join(urls).encode("utf-8", "replace"), None)

    return quoted


def _quote_line(line: bytes, expected: TableSchema) -> str:
    """The quote of a line that could not be parsed."""
    return quote_click_line(line) if expected is CLICKS else quote_page_line(line)


def _value(scalar: pa.Scalar) -> Any:
    """A value as a Python object; times beyond the range or precision of datetime as ticks of their unit."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return scalar.value
