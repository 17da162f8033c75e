"""Parquet files as inputs: opened with an error for the user, read in bounded pieces, split by row groups."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.transforms.columnar.arrays import (
    Bools,
    Int64s,
    bools,
    column_array,
    int64s,
    list_column,
    list_parts,
    pointers,
)
from semrank.transforms.columnar.damage import BATCH_MEMORY, UNREADABLE, open_parquet, unreadable
from semrank.transforms.streams.batch import DEFAULT_MAX_RECORD_BYTES, MAX_REJECT_CHARS

MAGIC = b"PAR1"
"""First (and last) bytes of a Parquet file."""

READ_ROWS = 1 << 14
"""Maximum rows that are processed at once: some 2 MiB of links."""

FEW_ROWS = 16
"""Rows that are processed at once if more take too much memory."""

READ_BYTES = 16 << 20
"""Maximum bytes of texts that are processed at once, but for a single row: a few KiB of a file may expand to more."""

MAX_ROW_BYTES = DEFAULT_MAX_RECORD_BYTES
"""Maximum bytes of a row's texts, as for records of other formats."""

MAX_LIST_BYTES = DEFAULT_MAX_RECORD_BYTES
"""Maximum bytes of the texts in a row's lists."""

MOST_TEXTS = 1 << 24
"""Maximum texts of lists that are processed at once: each takes some 40 bytes, however short it is."""

_SKEW = 4  # factor by which Arrow may reserve too much for texts


class Rows(NamedTuple):
    """Rows of a file.

    Attributes:
        table: the rows; bytes of texts that are not UTF-8 are U+FFFD, and long texts of too large rows null.
        reasons: string[n], COLUMN-undecodable or record-too-large, else null.
    """

    table: pa.Table
    reasons: pa.Array


def read_schema(stream: BinaryIO, source: str) -> pa.Schema:
    """The columns of a file as from `read_batches`; of columns with the same name the first.

    Raises:
        InputError: the stream holds no Parquet file that can be read.
    """
    schema = open_parquet(stream, source).schema_arrow
    fields = [schema.field(position) for position in _first_of_each(schema)]
    return pa.schema([field.with_type(_as_text(field.type)) for field in fields])


def _as_text(dtype: pa.DataType) -> pa.DataType:
    """The type that values of a type are read as: bytes as texts, lists of bytes as lists of texts."""
    if _is_list(dtype) and _is_binary(dtype.value_type):
        return pa.list_(pa.string())
    return pa.string() if _is_binary(dtype) else dtype


def _first_of_each(schema: pa.Schema) -> list[int]:
    """Positions of the columns of a schema, of columns with the same name the first."""
    names = schema.names
    return [position for position, name in enumerate(names) if names.index(name) == position]


def groups_in_range(stream: BinaryIO, source: str, start: int, end: int | None) -> list[int]:
    """The row groups that begin in bytes [start, end) of the file, by the share of the data before them.

    Consecutive ranges give every row group once. The exact start of a group is in the metadata of its columns, which is
    not read: Arrow aborts the process if it is damaged.
    """
    metadata = open_parquet(stream, source).metadata
    size = stream.seek(0, io.SEEK_END)
    weights = [max(0, metadata.row_group(group).total_byte_size) for group in range(metadata.num_row_groups)]
    total = max(1, sum(weights))
    begins = [min(before * size // total, size - 1) for before in itertools.accumulate(weights, initial=0)]
    return [group for group, at in enumerate(begins[:-1]) if at >= start and (end is None or at < end)]


def read_batches(
    stream: BinaryIO,
    source: str,
    *,
    columns: Sequence[str],
    groups: Sequence[int] | None = None,
    reject: Callable[[str, str], None],
) -> Iterator[Rows]:
    """The rows of some row groups (all if None), at most `READ_ROWS` at once, with the columns that exist.

    Bytes without a logical type, as some writers store texts, are read as texts; of columns with the same name the
    first is read. Lists of texts are read as dictionaries, as they are usually stored, and decoded in pieces of at most
    `READ_BYTES`: a dictionary with one text of a megabyte, compressed to a few hundred bytes, may expand to that text
    any number of times in every row.

    The unreadable rest of a row group is one record for `reject`, which takes a reason (row-group-too-large,
    row-group-damaged) and the position.

    Raises:
        InputError: the file can't be read.
    """
    plain = open_parquet(stream, source)
    schema, metadata = plain.schema_arrow, plain.metadata
    present = [name for name in columns if name in schema.names]
    kinds = {name: schema.field(schema.names.index(name)).type for name in present}
    lists = {name for name in present if _is_text_list(kinds[name])}
    paths = [plain.schema.column(leaf).path for leaf in range(len(plain.schema))]
    encoded = open_parquet(stream, source, encoded=[path for path in paths if path.partition(".")[0] in lists])
    for group in range(metadata.num_row_groups) if groups is None else groups:
        batches, done = _batches(encoded, plain, group, present), 0
        while True:
            try:
                batch = next(batches, None)
            except UNREADABLE as cause:
                if isinstance(cause, OSError) and cause.errno is not None:  # of the system, not of the file's content
                    raise unreadable(source, cause) from cause
                reason = "row-group-too-large" if isinstance(cause, MemoryError) else "row-group-damaged"
                reject(reason, f"{source} row group {group}, from row {done}")
                break
            if batch is None:
                break
            done += batch.num_rows
            yield from _bounded(pa.Table.from_batches([batch]).select(_first_of_each(batch.schema)))
            del batch


def _batches(
    encoded: pq.ParquetFile, plain: pq.ParquetFile, group: int, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, fewer at once if they take too much memory.

    The sizes in a file's metadata may be wrong. A dictionary may expand to far more than its size, and without one in
    the file, Arrow makes one that grows with each batch: if one way takes too much, the other may not.
    """
    size = plain.metadata.row_group(group)
    mean = size.total_byte_size // max(1, size.num_rows)
    rows, done = max(1, min(READ_ROWS, READ_BYTES // max(1, mean))), 0
    ways = [(encoded, rows), (encoded, FEW_ROWS), (plain, FEW_ROWS), (plain, 1)]
    # A group of one row is read in two ways only.
    ways = list(dict.fromkeys((file, min(at_once, max(1, size.num_rows))) for file, at_once in ways))
    for number, (file, at_once) in enumerate(ways, 1):
        begin = 0
        try:
            for batch in file.iter_batches(batch_size=at_once, row_groups=[group], columns=columns, use_threads=False):
                for column in batch.columns:
                    _check_dictionary(column, READ_BYTES if file is encoded else BATCH_MEMORY)
                begin += batch.num_rows
                if begin > done:
                    yield batch.slice(max(0, batch.num_rows - (begin - done)))
                    done = begin
                del batch, column  # before the next one is there
        except MemoryError:
            if number == len(ways):
                raise
        else:
            return


def _check_dictionary(column: pa.Array, most: int) -> None:
    """Refuses too large columns, and indices outside of dictionaries, which Arrow does not check.

    Raises:
        MemoryError: a dictionary has more bytes than `most`, or lists have more texts than `MOST_TEXTS`.
        ArrowInvalid: an index is not inside of its dictionary.
    """
    if _is_list(column.type):
        column = column.flatten()
        if len(column) > MOST_TEXTS:
            raise MemoryError
    if pa.types.is_dictionary(column.type):
        if column.dictionary.nbytes > most:
            raise MemoryError
        bounds = pc.min_max(column.indices).as_py()
        if bounds["max"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(column.dictionary):
            raise pa.ArrowInvalid(f"found index {bounds['max']} in a dictionary of {len(column.dictionary)} texts")


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or _is_binary(dtype))


def _is_binary(dtype: pa.DataType) -> bool:
    fixed = pa.types.is_fixed_size_binary(dtype)
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or fixed)


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))


def _is_text_list(dtype: pa.DataType) -> bool:
    if not _is_list(dtype):
        return False
    words = dtype.value_type.value_type if pa.types.is_dictionary(dtype.value_type) else dtype.value_type
    return _is_text(words)


def _text_lengths(column: pa.Array) -> Int64s | None:
    """Decoded bytes of each row's texts, int64[n]; None for a column without texts."""
    if _is_list(column.type):
        indptr, values = list_parts(column)
        words = _text_lengths(values)
        if words is None:
            return None
        total = pointers(words)
        return total[indptr[1:]] - total[indptr[:-1]]
    texts = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not _is_text(texts.type):
        return None
    lengths = pc.binary_length(texts)
    if texts is not column:
        lengths = lengths.take(column.indices)
    return int64s(pc.fill_null(lengths, 0))


def _bounded(table: pa.Table) -> Iterator[Rows]:
    """The rows in pieces of at most `READ_BYTES` of decoded texts, or of one row."""
    texts, lists = np.zeros((2, table.num_rows), dtype=np.int64)
    lengths: dict[int, Int64s] = {}
    for position, column in enumerate(map(column_array, table.columns)):
        own = _text_lengths(column)
        if own is not None:
            lengths[position] = own
            (lists if _is_list(column.type) else texts)[:] += own
    sizes = texts + lists
    large_texts, large_lists = texts > MAX_ROW_BYTES, lists > MAX_LIST_BYTES
    large = large_texts | large_lists
    for position, own in lengths.items() if large.any() else ():
        column = column_array(table.column(position))
        gone = large_lists if _is_list(column.type) else large_texts & (own > MAX_REJECT_CHARS)
        table = table.set_column(position, table.column_names[position], _without_rows(column, gone))
        sizes[gone] -= own[gone]
    reasons = pc.if_else(pa.array(large), "record-too-large", pa.scalar(None, pa.string()))
    begin = 0
    ends = np.cumsum(sizes)
    while begin < table.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + READ_BYTES, side="right")))
        piece = _decoded(table.slice(begin, end - begin))
        yield Rows(piece.table, pc.coalesce(reasons.slice(begin, end - begin), piece.reasons))
        begin = end


def _without_rows(column: pa.Array, rows: Bools) -> pa.Array:
    """A column of texts, or lists of them, that is null in some rows."""
    return column.take(pa.array(np.arange(len(column)), mask=rows))


def _decoded(table: pa.Table) -> Rows:
    """The rows with valid UTF-8, which Arrow does not check."""
    reasons = pa.nulls(table.num_rows, pa.string())
    for position, name in enumerate(table.column_names):
        column = _plain(column_array(table.column(position)))
        text = _as_text(column.type)
        if text != column.type:
            column = column.cast(pa.list_(pa.binary()) if _is_list(text) else pa.binary()).view(text)
        table = table.set_column(position, name, column)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            column, damaged = _mended(column)
            table = table.set_column(position, name, column)
            reason = f"{name.replace('_', '-')}-undecodable"
            reasons = pc.coalesce(reasons, pc.if_else(pa.array(damaged), reason, pa.scalar(None, pa.string())))
    return Rows(table, reasons)


def _plain(column: pa.Array) -> pa.Array:
    """A column of texts, or lists of them, without its dictionary; another column as it is."""
    if pa.types.is_dictionary(column.type):
        return _plain_texts(column)
    if not (_is_list(column.type) and pa.types.is_dictionary(column.type.value_type)):
        return column
    indptr, values = list_parts(column)
    return list_column(_plain_texts(values), indptr, column.is_null())


def _plain_texts(column: pa.DictionaryArray) -> pa.Array:
    """Texts without their dictionary.

    Arrow reserves the mean length of the dictionary's texts for each row. If few rows have the long ones this may be a
    thousand times too much, so the texts are concatenated here.
    """
    texts = column.dictionary.cast(pa.large_binary())
    lengths = int64s(pc.fill_null(pc.binary_length(texts).take(column.indices), 0))
    size = int(lengths.sum())
    if len(column) * texts.nbytes <= _SKEW * max(1, len(texts)) * (size + READ_BYTES):
        return column.dictionary_decode()
    used, places = np.unique(column.indices.drop_null().to_numpy(), return_inverse=True)
    values = texts.take(pa.array(used)).to_pylist()
    content = b"".join([values[place] or b"" for place in places.tolist()])
    offsets = pointers(lengths).astype(np.int32)
    nulls = bools(pc.is_null(column, nan_is_null=False))
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little").tobytes())
    return pa.StringArray.from_buffers(len(column), pa.py_buffer(offsets.tobytes()), pa.py_buffer(content), valid)


def _mended(column: pa.Array) -> tuple[pa.Array, Bools]:
    """A column of texts or lists of texts with U+FFFD for invalid UTF-8, and whether each row had any, bool[n]."""
    if _is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
        indptr, values = list_parts(column)
        words, damaged = _mended(values)
        before = pointers(damaged)[indptr]
        return list_column(words, indptr, column.is_null()), before[1:] > before[:-1]
    values = column.cast(pa.binary()).to_pylist()
    texts = [None if value is None else value.decode("utf-8", "replace") for value in values]
    changed = [text is not None and text.encode() != value for text, value in zip(texts, values, strict=True)]
    return pa.array(texts, pa.string()), np.array(changed, dtype=np.bool_)
