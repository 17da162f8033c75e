"""Ontologies learned from a relational database (EC, rules 1 to 3), by reflection with SQLAlchemy (extra `ontology`).

Rule 1, classes: two tables describe the same class if the primary key of one refers to the other's and both hold the
same values. A table that only joins others describes no class: all columns of its key are foreign keys, and none of
them is the whole key. Two empty tables have no values to compare; rule 3 applies to them.
Rule 2, properties: a foreign key outside the primary key makes an object property from its table's class to the one
that it refers to. Where a key of several columns holds a foreign key, the class is a part of the one referred to. A
table that joins two others is a property between their classes.
Rule 3, hierarchy: where a table's primary key refers to another's, and holds some of its values and no others, the
class is a kind of the other; where both tables are properties, the one is a sub-property of the other.

Only declared keys count: the values of any two tables that are numbered from 1 include one another. The words of a
class come from the names of its tables and of those columns that are not keys.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.ontology_model import ObjectProperty, Ontology, OntologyClass, spaced


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
    shown = shown_address(url)
    try:
        # SQLAlchemy raises a plain ValueError for a port that is not a number.
        address = sqlalchemy.engine.make_url(url)
    except (sqlalchemy.exc.SQLAlchemyError, ValueError) as cause:
        raise InputError(
            f"--ontology {shown}: is not the address of a database, expected one such as sqlite:///shop.db"
        ) from cause
    if address.get_backend_name() == "sqlite" and not _has_file(address.database):
        raise InputError(f"--ontology {shown}: no such file, expected a database")
    try:
        engine = sqlalchemy.create_engine(address)
        try:
            with engine.connect() as connection:
                inspector = sqlalchemy.inspect(connection)
                tables = {name: _reflected(inspector, name) for name in sorted(inspector.get_table_names())}
                tables = {name: table for name, table in tables.items() if table.key}
                return _learned(tables, _Values(sqlalchemy, connection), topic, shown)
        finally:
            engine.dispose()
    except InputError:
        raise
    except Exception as cause:  # with a damaged database, drivers raise whatever their libraries do
        reason = " ".join(str(cause).split()).replace(url, shown)[:160]
        raise InputError(f"--ontology {shown}: can't be read: {type(cause).__name__}: {reason}") from cause


def shown_address(url: str) -> str:
    """A database's address without what may be a password: the user, however it is written, and options."""
    return re.sub(r"//.*@", "//***@", url, flags=re.DOTALL).partition("?")[0]


def _has_file(database: str | None) -> bool:
    """Whether a SQLite database exists; opening one that doesn't would create an empty file."""
    if not database or database == ":memory:" or database.startswith("file:"):
        return True
    return Path(database).is_file()


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

    def filled(self, table: str) -> bool:
        """Whether a table has rows."""
        sql = self._sqlalchemy
        one = sql.select(sql.literal(1)).select_from(sql.table(table)).limit(1)
        return self._connection.execute(one).first() is not None

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
    properties = _joining_properties(tables, class_of, values)
    for table in tables.values():
        if table.name not in class_of:
            continue
        own = class_of[table.name]
        keys = {*table.key, *(column for columns, _, _ in table.foreign for column in columns)}
        words[own] |= {spaced(table.name), *(spaced(column) for column in table.columns if column not in keys)}
        for columns, referred, theirs in table.foreign:
            other = class_of.get(referred, own)
            if other == own:
                continue
            if not set(columns) <= set(table.key):
                name = f"{table.name}.{'+'.join(columns)}"
                properties[name] = ObjectProperty(name, spaced(" ".join(columns)), frozenset({(own, other)}))
            elif set(columns) != set(table.key):
                wholes[own].add(other)
            elif values.within(table.name, columns, referred, theirs):
                parents[own].add(other)
    if not words:
        raise InputError(f"--ontology {shown}: found no table with a primary key that describes a class, expected some")
    for known in properties.values():
        for domain, target in known.ends:
            related[domain].add(target)
    classes = {
        name: OntologyClass(
            name,
            spaced(name),
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
    return Ontology(classes, topic, source=f"--ontology {shown}", properties=properties)


def _joining_properties(
    tables: dict[str, _Table], class_of: dict[str, str], values: _Values
) -> dict[str, ObjectProperty]:
    """The properties that tables with a key of two foreign keys are, and their hierarchy (rules 2 and 3)."""
    ends: dict[str, tuple[str, str]] = {}
    parents: dict[str, set[str]] = defaultdict(set)
    for table in (table for table in tables.values() if table.name not in class_of):
        # From the class of the key's first column to that of the next one, in whatever order keys are reflected.
        parts = [
            (table.key.index(columns[0]), other) for columns, other, _ in table.foreign if set(columns) < set(table.key)
        ]
        referred = [other for _, other in sorted(parts)]
        known = [class_of[other] for other in referred if other in class_of]
        if len(referred) == 2 and len(set(known)) == 2:
            ends[table.name] = (known[0], known[1])
    for table in (table for table in tables.values() if table.name not in class_of):
        for columns, other, theirs in table.foreign:
            whole = other in ends and set(columns) == set(table.key)
            if whole and other != table.name and values.within(table.name, columns, other, theirs):
                ends.setdefault(table.name, ends[other])
                parents[table.name].add(other)
    return {
        name: ObjectProperty(name, spaced(name), frozenset({pair}), frozenset(parents[name]))
        for name, pair in ends.items()
    }


def _classes(tables: dict[str, _Table], values: _Values) -> dict[str, str]:
    """Table -> the class that it describes (rule 1)."""
    joining = _joining(tables)
    described = {name: table for name, table in tables.items() if name not in joining}
    group = {name: {name} for name in described}
    referring: set[str] = set()
    for table in described.values():
        for columns, referred, theirs in table.foreign:
            whole = described.get(referred)
            if whole is None or set(columns) != set(table.key) or set(theirs) != set(whole.key):
                continue
            if (
                values.filled(table.name)
                and values.within(table.name, columns, referred, theirs)
                and values.within(referred, theirs, table.name, columns)
            ):
                together = group[table.name] | group[referred]
                group |= dict.fromkeys(together, together)
                referring.add(table.name)
    # The class has the name of the table that the others refer to; the first of those that refer to each other.
    return {name: min(members, key=lambda member: (member in referring, member)) for name, members in group.items()}


def _joining(tables: dict[str, _Table]) -> set[str]:
    """Names of the tables that only join others, and of those whose whole key is the key of such a table."""
    found = {name for name, table in tables.items() if _joins(table)}
    while more := {
        name
        for name, table in tables.items()
        if name not in found
        and len(table.key) > 1
        and any(set(columns) == set(table.key) and other in found for columns, other, _ in table.foreign)
    }:
        found |= more
    return found


def _joins(table: _Table) -> bool:
    """Whether a table only joins others: its key has several columns, all of foreign keys, but not of just one."""
    keys = [set(columns) for columns, _, _ in table.foreign]
    return (
        len(table.key) > 1 and set(table.key) <= set().union(*keys) and not any(set(table.key) <= key for key in keys)
    )
