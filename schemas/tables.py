"""One Arrow schema a table, and `conform`, which holds a table to its schema."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.errors import InputError

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
        row: what a row stands for, for the reference.
        meanings: what each column holds and in which unit, in the order of the columns; empty for a table that no
            user sees.
    """

    name: str
    schema: pa.Schema
    row: str = ""
    meanings: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that must be present and without null."""
        return tuple(field.name for field in self.schema if not field.nullable)

    def empty(self) -> pa.Table:
        """A table of this schema without rows."""
        return self.schema.empty_table()

    def columns(self, *names: str) -> TableSchema:
        """The same table with these columns only, in the order given."""
        return TableSchema(self.name, pa.schema([self.schema.field(name) for name in names]))


def _table(name: str, row: str, *columns: tuple[str, pa.DataType, bool, str]) -> TableSchema:
    return TableSchema(
        name,
        pa.schema([pa.field(column, dtype, nullable) for column, dtype, nullable, _ in columns]),
        row,
        tuple(meaning for *_, meaning in columns),
    )


PAGES = _table(
    "pages",
    "a known page; in a snapshot one row for each URL that a crawl fetched or found gone",
    ("url", pa.string(), False, "address; canonical in a snapshot"),
    ("fetched_at", TIMESTAMP, True, "when it was fetched; null: unknown, treated as older than all others"),
    ("status", pa.int16(), True, "HTTP status of the fetch; null: unknown"),
    ("title", pa.string(), True, "title, at most 1,000 characters"),
    (
        "text",
        pa.string(),
        True,
        "main text, at most 1,048,576 characters; null: content unknown, or not to be indexed",
    ),
    (
        "keywords",
        pa.list_(pa.string()),
        True,
        "keywords of the page, used as they are, in place of title and text",
    ),
    ("language", pa.string(), True, "ISO 639-1 code of the text's language; null: detected where words are needed"),
    (
        "content_digest",
        pa.string(),
        True,
        "digest of the content as the crawler wrote it (`sha1:...`); equal ones mean unchanged",
    ),
)

LINKS = _table(
    "links",
    "a link on a page",
    ("source_url", pa.string(), False, "page that has the link"),
    ("target_url", pa.string(), False, "where it leads"),
    ("anchor_text", pa.string(), True, "its text, at most 500 characters, or the alternative text of its image"),
    ("nofollow", pa.bool_(), True, "whether the page asks not to follow it; null counts as false"),
)

CLICKS = _table(
    "clicks",
    "a click on a search result, or a page view that a search led to",
    ("user_id", pa.string(), False, "who clicked; a keyed hash where the log had an address or account"),
    ("user_group", pa.string(), True, "group of users with like interests, for `--user-groups given`"),
    ("session_id", pa.string(), True, "visit; null: the log has none, and pauses of 30 minutes divide the clicks"),
    ("query", pa.string(), False, "the words searched for"),
    ("keywords", pa.list_(pa.string()), True, "words of the query, used as they are, in place of `query`"),
    ("clicked_at", TIMESTAMP, False, "when"),
    ("position", pa.int32(), True, "place in the list of results, 1 first"),
    ("url", pa.string(), False, "page that was clicked"),
)

TOPICS = _table(
    "topics",
    "a page that belongs to a topic, for `semrank evaluate`",
    ("topic", pa.string(), False, "name of the topic"),
    ("url", pa.string(), False, "page that is relevant to it"),
    ("is_seed", pa.bool_(), True, "whether a crawl may start there (`--marked-seeds`); null counts as false"),
)

REJECTS = _table(
    "rejects",
    "a record that was not used, or an address that was marked",
    ("stage", pa.string(), False, "reader or stage that rejected it"),
    ("reason", pa.string(), False, "why, in words joined by hyphens"),
    ("record", pa.string(), False, "file and beginning of the record, at most 2,000 characters; users are masked"),
)

ALIASES = _table(
    "aliases",
    "an address that moved",
    ("url", pa.string(), False, "old address"),
    ("target_url", pa.string(), False, "where it leads, perhaps another old address"),
    ("found_at", TIMESTAMP, True, "when the redirect was seen"),
    ("kind", pa.string(), False, "`redirect`, `meta-refresh`, or `canonical`, which moves nothing"),
)

HISTORY = _table(
    "history",
    "an earlier capture of a page",
    ("url", pa.string(), False, "address"),
    ("fetched_at", TIMESTAMP, True, "when it was fetched"),
    ("content_digest", pa.string(), True, "digest of its content then"),
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
    "a URL that the round ranked; files are in the order of rank",
    ("rank", pa.int64(), False, "place in the frontier: 1 is to be crawled first, no two are equal"),
    ("url", pa.string(), False, "canonical address"),
    ("host", pa.string(), False, "its host"),
    (
        "score",
        pa.float64(),
        False,
        "score by the ranker; from 0 to 1, except for `link-context`, `relevancy-context` and `hmm`",
    ),
    (
        "selected",
        pa.bool_(),
        False,
        "whether the round selected it: exports and the queue of the next round hold these",
    ),
    ("extension", pa.float64(), False, "similarity of the two concepts' URLs by links and clicks, 0 to 1"),
    ("intension", pa.float64(), False, "similarity of the two concepts' keywords, 0 to 1"),
    ("base_concept", pa.int64(), True, "base concept that decided SemRank; null: no term of SemRank is above 0"),
    ("current_concept", pa.int64(), True, "concept of this URL that decided it"),
    ("base_links", pa.int64(), False, "links between this URL and the queue, both ways"),
    (
        "base_clicks",
        pa.int64(),
        False,
        "clicks from this URL to the queue or back, each pair of pages once unless `--c-edges clicks` is given",
    ),
    ("fetched", pa.bool_(), False, "whether the snapshot has the page"),
    ("last_fetched_at", TIMESTAMP, True, "when it was fetched last"),
    ("status", pa.int16(), True, "HTTP status of that fetch"),
    (
        "change_probability",
        pa.float64(),
        True,
        "probability that it has changed since then, 0 to 1; null without `--mix`, or if never fetched",
    ),
    ("held_back", pa.string(), True, "why it is not selected ([budgets](budgets.md)); null: it is"),
    ("matches", pa.list_(MATCH), False, "pairs of a keyword of the queue and one of this URL, with their similarity"),
    ("reasons", REASONS, False, "terms of the score, the most important first: value, weight, words behind it"),
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
    "a class of the ontology",
    ("name", pa.string(), False, "its name"),
    ("label", pa.string(), False, "words that stand for it on pages"),
    ("weight", pa.float64(), False, "W: weight of a word of the class for the topic, 0 or more"),
    ("sigma", pa.float64(), False, "factor learned from the harvest; 1: nothing was learned"),
    ("pages", pa.int64(), False, "harvested pages with a word of it"),
    ("topic_pages", pa.int64(), False, "of these, pages about the topic"),
)

CALIBRATED_SCHEMA = pa.schema([pa.field(name, pa.float64()) for name in ("threshold", "precision")])
"""One row: the threshold that a round has found, or null, and the precision that it reached, or null."""

SCALE = _table(
    "scale",
    "a number of the round that the scores of the ranker `focused` are relative to",
    (
        "name",
        pa.string(),
        False,
        "`mean` and `spread` of the totals of all URLs; `shift`, added where no content is known; `threshold`, if it "
        "was calibrated on the harvest, 1 if no score reaches `--precision`; `precision`, the share of harvested pages "
        "above it that are like the topic, or the largest above any score",
    ),
    ("value", pa.float64(), False, "the number"),
)

TOPIC = _table(
    "topic",
    "what the seeds are about: a word of the topic, or a figure",
    ("kind", pa.string(), False, "`word` or `figure`"),
    (
        "name",
        pa.string(),
        False,
        "the word, the strongest first; `seeds` that were compared, their `cohesion`, `random_cohesion` of random "
        "pages, `relevance` of the batch before",
    ),
    ("value", pa.float64(), False, "the word's weight, or the figure"),
)

HARVEST = _table(
    "harvest",
    "a URL that the crawl chose so far",
    ("url", pa.string(), False, "canonical address"),
    ("seed", pa.bool_(), False, "whether it is a seed of the first round"),
    (
        "queued",
        pa.bool_(),
        False,
        "whether it is in this round's queue: the seeds, later what the round before selected",
    ),
)

KEYWORDS = _table(
    "keywords",
    "a word of the round",
    ("keyword", pa.string(), False, "lemma"),
    ("clicks", pa.int64(), False, "f: clicks after queries with this word"),
    ("probability", pa.float64(), False, "p: its share of the clicks of all keywords, 0 to 1"),
    ("layer", pa.int32(), False, "edges of the longest path from Top; 0 is Top itself"),
    ("in_base", pa.bool_(), False, "whether a URL of the queue has it"),
    ("in_current", pa.bool_(), False, "whether a URL to rank has it"),
)

RELATIONS = _table(
    "relations",
    "a relation of two keywords, learned from clicks",
    ("source", pa.string(), False, "keyword; for Part-Of the upper one"),
    ("target", pa.string(), False, "keyword; for Part-Of the lower one"),
    ("relation", pa.string(), False, "`ISA` (symmetric, each pair once) or `PART_OF`"),
    ("support", pa.int64(), False, "pages (ISA) or links (Part-Of) behind it"),
)

CONCEPTS = _table(
    "concepts",
    "a formal concept",
    ("concept", pa.int64(), False, "number made of its words, the same in every run"),
    ("support", pa.int64(), False, "number of its URLs"),
    ("extent", pa.list_(pa.string()), False, "its URLs"),
    ("intent", pa.list_(pa.string()), False, "its keywords"),
)

CURVE = _table(
    "curve",
    "a crawl of an evaluation after a number of pages",
    ("ranker", pa.string(), True, "the ranker"),
    ("mode", pa.string(), True, "`frontier`, `content` or `expand`"),
    ("topic", pa.string(), True, "the topic of the crawl"),
    ("seed_set", pa.int32(), True, "number of the set of seeds, 0 first"),
    ("pages", pa.int64(), True, "pages crawled, without the seeds"),
    ("relevant", pa.int64(), True, "of these, pages of the topic"),
    ("harvest", pa.float64(), True, "relevant / pages"),
    ("precision", pa.float64(), True, "the same, as relevance is yes or no"),
    ("recall", pa.float64(), True, "relevant / pages of the topic, without the seeds"),
    ("f_measure", pa.float64(), True, "2 precision recall / (precision + recall)"),
    ("seconds", pa.float64(), True, "time spent ranking up to there"),
)

SUMMARY = _table(
    "summary",
    "the mean of a measure over topics",
    ("ranker", pa.string(), True, "the ranker"),
    ("mode", pa.string(), True, "`frontier`, `content` or `expand`"),
    ("measure", pa.string(), True, "`harvest`, `recall`, `f_measure`, `harvest_area` or `seconds`"),
    ("pages", pa.int64(), True, "pages after which it is taken"),
    ("topics", pa.int64(), True, "topics in the mean"),
    ("mean", pa.float64(), True, "the mean; a topic's sets of seeds are averaged first"),
    ("low", pa.float64(), True, "lower end of its 95 % interval; null: one topic only"),
    ("high", pa.float64(), True, "upper end"),
    (
        "difference",
        pa.float64(),
        True,
        "mean less that of the first ranker, paired by topic; null for the first itself",
    ),
    ("difference_low", pa.float64(), True, "lower end of its 95 % interval"),
    ("difference_high", pa.float64(), True, "upper end"),
)

SWEEP = _table(
    "sweep",
    "what a threshold selects of all URLs that a crawl ranked, by their last scores",
    ("ranker", pa.string(), True, "the ranker"),
    ("mode", pa.string(), True, "`frontier`, `content` or `expand`"),
    ("topic", pa.string(), True, "the topic of the crawl"),
    ("seed_set", pa.int32(), True, "number of the set of seeds, 0 first"),
    ("threshold", pa.float64(), True, "threshold, 0 to 1"),
    ("selected", pa.int64(), True, "URLs with a score above it"),
    ("relevant", pa.int64(), True, "of these, pages of the topic"),
    ("precision", pa.float64(), True, "relevant / selected; null: nothing is selected"),
    ("recall", pa.float64(), True, "relevant / pages of the topic"),
    ("f_measure", pa.float64(), True, "2 precision recall / (precision + recall)"),
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
    if pa.types.is_null(column.type):
        return column.cast(TIMESTAMP)
    if pa.types.is_date(column.type):
        return pc.assume_timezone(column.cast(pa.timestamp("us")), "UTC")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(TIMESTAMP)
    raise pa.ArrowInvalid(f"{column.type} is not a time")
