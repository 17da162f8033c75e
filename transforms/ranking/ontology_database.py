"""Ontologies learned from a relational database (EC, rules 1 to 3), by reflection with SQLAlchemy (extra `ontology`).

Rule 1, classes: tables whose primary keys hold the same values describe one class; a table that only joins others,
all columns of its key being foreign keys, describes none.
Rule 2, properties: a foreign key outside the primary key makes an object property from its table's class to the one
that it refers to. Where a key of several columns holds a foreign key, the class is a part of the one referred to.
Rule 3, hierarchy: where a table's primary key refers to another's, and holds some of its values only, the class is a
kind of the other.

Words of a class are those of its tables' names and of their columns that are no keys.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from schemas.errors import InputError
from transforms.ranking.ontology_model import Ontology, OntologyClass


class _Table(NamedTuple):
    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    foreign: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]


def learn_from_database(url: str, topic: str | None = None) -> Ontology:
    """The ontology that a database's tables describe.

    Args:
        url: the database, as SQLAlchemy names it (`sqlite:///shop.db`).
        topic: name of the topic's class; the one that most relations lead to if None.

    Raises:
        InputError: SQLAlchemy or the database's driver is not installed, the database can't be read or has no tables.
    """
    try:
        import sqlalchemy
    except ImportError as cause:
        raise InputError(
            "--ontology: SQLAlchemy is not installed, expected the extra: pip install semrank[ontology]"
        ) from cause
    shown = re.sub(r"//[^@/]*@", "//***@", url)
    if url.startswith("sqlite:///") and not _exists(url.removeprefix("sqlite:///")):
        raise InputError(f"--ontology {shown}: no such file, expected a database")
    try:
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            inspector = sqlalchemy.inspect(connection)
            tables = {name: _reflected(inspector, name) for name in sorted(inspector.get_table_names())}
            tables = {name: table for name, table in tables.items() if table.key}
            return _learned(tables, _Values(sqlalchemy, connection), topic, shown)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as cause:
        reason = " ".join(str(cause).split())[:160].replace(url, shown)
        raise InputError(f"--ontology {shown}: can't be read: {type(cause).__name__}: {reason}") from cause


def _exists(path: str) -> bool:
    return Path(path).exists()


def _reflected(inspector: Any, name: str) -> _Table:
    key = tuple(inspector.get_pk_constraint(name)["constrained_columns"])
    columns = tuple(column["name"] for column in inspector.get_columns(name))
    foreign = tuple(
        (tuple(found["constrained_columns"]), found["referred_table"], tuple(found["referred_columns"]))
        for found in inspector.get_foreign_keys(name)
    )
    return _Table(name, key, columns, foreign)


class _Values:
    """Which columns hold values of others."""

    def __init__(self, sqlalchemy: Any, connection: Any) -> None:
        self._sqlalchemy, self._connection = sqlalchemy, connection

    def within(self, table: str, columns: tuple[str, ...], other: str, others: tuple[str, ...]) -> bool:
        """Whether all values of some columns are among those of another table's."""
        if len(columns) != len(others):
            return False
        sql = self._sqlalchemy
        left, right = (
            sql.table(name, *(sql.column(column) for column in chosen))
            for name, chosen in ((table, columns), (other, others))
        )
        right = right.alias("other")
        same = sql.and_(*(left.c[a] == right.c[b] for a, b in zip(columns, others, strict=True)))
        filled = sql.and_(*(left.c[a].is_not(None) for a in columns))
        missing = sql.select(sql.literal(1)).select_from(left).where(filled, ~sql.exists().where(same)).limit(1)
        return self._connection.execute(missing).first() is None


def _learned(tables: dict[str, _Table], values: _Values, topic: str | None, shown: str) -> Ontology:
    class_of = _classes(tables, values)
    words: dict[str, set[str]] = defaultdict(set)
    parents: dict[str, set[str]] = defaultdict(set)
    wholes: dict[str, set[str]] = defaultdict(set)
    related: dict[str, set[str]] = defaultdict(set)
    for table in tables.values():
        if table.name not in class_of:
            continue
        own = class_of[table.name]
        keys = {*table.key, *(column for columns, _, _ in table.foreign for column in columns)}
        words[own] |= {_spaced(table.name), *(_spaced(column) for column in table.columns if column not in keys)}
        for columns, other in _references(table, class_of):
            if other == own:
                continue
            if not set(columns) <= set(table.key):
                related[own].add(other)
            elif len(table.key) > 1:
                wholes[own].add(other)
            else:
                parents[own].add(other)
    if not words:
        raise InputError(f"--ontology {shown}: found no table with a primary key that describes a class, expected some")
    classes = {
        name: OntologyClass(
            name,
            _spaced(name),
            frozenset(words[name]),
            parents=frozenset(parents[name]),
            wholes=frozenset(wholes[name]),
            related=frozenset(related[name]),
        )
        for name in words
    }
    if topic is None:
        count = Counter(other for links in (parents, wholes, related) for others in links.values() for other in others)
        topic = min(classes, key=lambda name: (-count[name], name))
    return Ontology(classes, topic, source=f"--ontology {shown}")


def _references(table: _Table, class_of: dict[str, str]) -> Iterator[tuple[tuple[str, ...], str]]:
    for columns, referred, _ in table.foreign:
        if referred in class_of:
            yield columns, class_of[referred]


def _classes(tables: dict[str, _Table], values: _Values) -> dict[str, str]:
    """Table -> the class that it describes (rule 1)."""
    described = [table for table in tables.values() if not _joins(table)]
    class_of: dict[str, str] = {}
    for table in described:
        for columns, referred, theirs in table.foreign:
            whole = tables.get(referred)
            if whole is None or set(columns) != set(table.key) or set(theirs) != set(whole.key):
                continue
            if values.within(referred, theirs, table.name, columns):
                class_of[table.name] = referred
    for table in described:
        name, seen = table.name, {table.name}
        while name in class_of and class_of[name] not in seen:
            name = class_of[name]
            seen.add(name)
        class_of[table.name] = name
    return class_of


def _joins(table: _Table) -> bool:
    """Whether a table only joins others: its key has several columns, all of them foreign keys."""
    foreign = {column for columns, _, _ in table.foreign for column in columns}
    return len(table.key) > 1 and set(table.key) <= foreign


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name).lower()
