"""One Arrow schema a table, and `conform`, which holds a table to its schema."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import InputError

TIMESTAMP = pa.timestamp("us", tz="UTC")
GONE_STATUSES = (404, 410)
"""HTTP statuses of pages that are no more."""


class SchemaMismatchError(InputError):
    """A table can't be held to its schema: a column is missing or has a type that does not convert."""


@dataclass(frozen=True)
class TableSchema:
    """Name, Arrow schema and required columns of one table.

    Attributes:
        name: name of the table, used in folders and messages.
        schema: columns in their order; non-nullable fields are required and may hold no null.
    """

    name: str
    schema: pa.Schema

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that must be present and without null."""
        return tuple(field.name for field in self.schema if not field.nullable)

    def empty(self) -> pa.Table:
        """A table of this schema without rows."""
        return self.schema.empty_table()


def _table(name: str, *fields: tuple[str, pa.DataType, bool]) -> TableSchema:
    return TableSchema(name, pa.schema([pa.field(field, dtype, nullable) for field, dtype, nullable in fields]))


PAGES = _table(
    "pages",
    ("url", pa.string(), False),
    ("fetched_at", TIMESTAMP, True),
    ("status", pa.int16(), True),
    ("title", pa.string(), True),
    ("text", pa.string(), True),
    ("keywords", pa.list_(pa.string()), True),
    ("language", pa.string(), True),
    ("content_digest", pa.string(), True),
)

LINKS = _table(
    "links",
    ("source_url", pa.string(), False),
    ("target_url", pa.string(), False),
    ("anchor_text", pa.string(), True),
    ("nofollow", pa.bool_(), True),
)

CLICKS = _table(
    "clicks",
    ("user_id", pa.string(), False),
    ("user_group", pa.string(), True),
    ("session_id", pa.string(), True),
    ("query", pa.string(), False),
    ("keywords", pa.list_(pa.string()), True),
    ("clicked_at", TIMESTAMP, False),
    ("position", pa.int32(), True),
    ("url", pa.string(), False),
)

TOPICS = _table(
    "topics",
    ("topic", pa.string(), False),
    ("url", pa.string(), False),
    ("is_seed", pa.bool_(), True),
)

REJECTS = _table(
    "rejects",
    ("stage", pa.string(), False),
    ("reason", pa.string(), False),
    ("record", pa.string(), False),
)

ALIASES = _table(
    "aliases",
    ("url", pa.string(), False),
    ("target_url", pa.string(), False),
    ("found_at", TIMESTAMP, True),
    ("kind", pa.string(), False),
)

HISTORY = _table(
    "history",
    ("url", pa.string(), False),
    ("fetched_at", TIMESTAMP, True),
    ("content_digest", pa.string(), True),
)

MATCH = pa.struct(
    [
        pa.field("base", pa.string(), nullable=False),
        pa.field("current", pa.string(), nullable=False),
        pa.field("ics", pa.float64(), nullable=False),
    ]
)

REASONS = pa.list_(
    pa.struct(
        [
            pa.field("term", pa.string(), nullable=False),
            pa.field("value", pa.float64(), nullable=False),
            pa.field("weight", pa.float64()),
            pa.field("detail", pa.string()),
        ]
    )
)
"""Terms of a score, the most important first."""

FRONTIER = _table(
    "frontier",
    ("rank", pa.int64(), False),
    ("url", pa.string(), False),
    ("host", pa.string(), False),
    ("score", pa.float64(), False),
    ("selected", pa.bool_(), False),
    ("extension", pa.float64(), False),
    ("intension", pa.float64(), False),
    ("base_concept", pa.int64(), True),
    ("current_concept", pa.int64(), True),
    ("base_links", pa.int64(), False),
    ("base_clicks", pa.int64(), False),
    ("fetched", pa.bool_(), False),
    ("last_fetched_at", TIMESTAMP, True),
    ("status", pa.int16(), True),
    ("change_probability", pa.float64(), True),
    ("held_back", pa.string(), True),
    ("matches", pa.list_(MATCH), False),
    ("reasons", REASONS, False),
)

RANKED_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        *(field for field in FRONTIER.schema if field.name not in {"rank", "selected", "held_back"}),
    ]
)
"""A scored URL before it has a rank."""

CLASSES = _table(
    "classes",
    ("name", pa.string(), False),
    ("label", pa.string(), False),
    ("weight", pa.float64(), False),
    ("sigma", pa.float64(), False),
    ("pages", pa.int64(), False),
    ("topic_pages", pa.int64(), False),
)

HARVEST = _table(
    "harvest",
    ("url", pa.string(), False),
    ("seed", pa.bool_(), False),
    ("queued", pa.bool_(), False),
)

KEYWORDS = _table(
    "keywords",
    ("keyword", pa.string(), False),
    ("clicks", pa.int64(), False),
    ("probability", pa.float64(), False),
    ("layer", pa.int32(), False),
    ("in_base", pa.bool_(), False),
    ("in_current", pa.bool_(), False),
)

RELATIONS = _table(
    "relations",
    ("source", pa.string(), False),
    ("target", pa.string(), False),
    ("relation", pa.string(), False),
    ("support", pa.int64(), False),
)

CONCEPTS = _table(
    "concepts",
    ("concept", pa.int64(), False),
    ("support", pa.int64(), False),
    ("extent", pa.list_(pa.string()), False),
    ("intent", pa.list_(pa.string()), False),
)


def conform(table: pa.Table, expected: TableSchema, *, check_nulls: bool = True) -> pa.Table:
    """Cast, order and complete a table's columns so that its schema equals `expected.schema`.

    Columns that `expected` does not name are left out; nullable columns that are absent become null.

    Args:
        table: any Arrow table.
        expected: the schema to hold it to.
        check_nulls: whether a null in a required column is an error; readers that turn such rows into
            rejects pass False.

    Returns:
        A table whose schema equals `expected.schema` (with required columns nullable if `check_nulls` is False).

    Raises:
        SchemaMismatchError: a required column is missing, a type does not convert, or a required column has a null.
    """
    columns: list[pa.ChunkedArray] = []
    fields: list[pa.Field] = []
    for field in expected.schema:
        position = table.schema.get_field_index(field.name)
        if position < 0:
            if not field.nullable:
                raise SchemaMismatchError(
                    f"table {expected.name}: column '{field.name}' is missing; "
                    f"found columns {table.schema.names}, expected at least {list(expected.required)}"
                )
            column = pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        else:
            column = _cast(table.column(position), field, expected.name)
        if check_nulls and not field.nullable and column.null_count:
            raise SchemaMismatchError(
                f"table {expected.name}: column '{field.name}' has {column.null_count} null values, expected none"
            )
        columns.append(column)
        fields.append(field if check_nulls else field.with_nullable(True))
    return pa.table(columns, schema=pa.schema(fields))


def _cast(column: pa.ChunkedArray, field: pa.Field, table_name: str) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        if pa.types.is_timestamp(field.type):
            return _to_timestamp(column)
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as cause:
        raise SchemaMismatchError(
            f"table {table_name}: column '{field.name}' has type {column.type}, "
            f"which does not convert to the expected {field.type}: {str(cause).splitlines()[0]}"
        ) from cause


def _to_timestamp(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps without a zone are taken as UTC, as the tables' documentation says."""
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        return pc.assume_timezone(column.cast(pa.timestamp("us"), safe=False), "UTC")
    if pa.types.is_timestamp(column.type):
        return column.cast(TIMESTAMP, safe=False)
    if pa.types.is_date(column.type):
        return pc.assume_timezone(column.cast(pa.timestamp("us")), "UTC")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(TIMESTAMP)
    raise pa.ArrowInvalid(f"{column.type} is no point in time")
