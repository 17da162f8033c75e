"""EC's rules 1 to 3 against their wording, on databases of every small shape."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.ontology_database import learn_from_database
from semrank.transforms.ranking.ontology_formats import format_ontology, parse_ontology
from semrank.transforms.ranking.ontology_model import Ontology

pytest.importorskip("rdflib")
pytest.importorskip("sqlalchemy")


def learned(sql: str) -> Ontology:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        connection = sqlite3.connect(path)
        connection.executescript(sql)
        connection.close()
        return learn_from_database(f"sqlite:///{path}")


NAMES = "abcd"


@st.composite
def keyed_tables(draw: st.DrawFn) -> dict[str, tuple[str | None, set[int]]]:
    """Tables with a key of one column: name -> (the table that the key refers to, the key's values)."""
    return {
        name: (draw(st.none() | st.sampled_from(NAMES)), draw(st.sets(st.integers(1, 3), max_size=3))) for name in NAMES
    }


@settings(max_examples=60, deadline=None)
@given(keyed_tables())
def test_rules_1_and_3(tables: dict[str, tuple[str | None, set[int]]]) -> None:
    sql = ""
    for name, (referred, values) in tables.items():
        reference = f" references {referred}(id)" if referred else ""
        sql += f"create table {name} (id integer primary key{reference}, {name}_word text);"
        sql += "".join(f"insert into {name} values ({value}, '');" for value in values)
    found = learned(sql)

    # Rule 1: one entity is what equal keys that refer to each other reach.
    same = {name: {name} for name in NAMES}
    for _ in NAMES:
        for name, (referred, values) in tables.items():
            if referred and values and values == tables[referred][1]:
                for one in (name, referred):
                    same[one] |= same[name] | same[referred]
        for name in NAMES:
            same[name] = set().union(*(same[other] for other in same[name]))
    entities = {frozenset(members) for members in same.values()}
    by_words = {
        frozenset(name for name in NAMES if f"{name} word" in known.words): known for known in found.classes.values()
    }
    assert set(by_words) == entities
    # Rule 3: what holds some of the values of the other only is a kind of it.
    for members, known in by_words.items():
        expected = {
            by_words[frozenset(same[referred])].name
            for name in members
            if (referred := tables[name][0]) and referred not in members and tables[name][1] <= tables[referred][1]
        }
        assert known.parents == expected
        assert known.name in members
        assert not known.wholes
        assert not known.related


@pytest.mark.parametrize(
    ("notes", "classes", "parents"),
    [
        ([(1, 1), (1, 2)], {"line"}, {}),
        ([(1, 1)], {"line", "line_note"}, {"line_note": {"line"}}),
        ([], {"line", "line_note"}, {"line_note": {"line"}}),
        ([(1, 1), (9, 9)], {"line", "line_note"}, {}),
    ],
)
def test_keys_of_two_columns(notes: list[tuple[int, int]], classes: set[str], parents: dict[str, set[str]]) -> None:
    found = learned(
        """
        create table line (sale int, number int, amount int, primary key (sale, number));
        create table line_note (sale int, number int, remark text, primary key (sale, number),
          foreign key (sale, number) references line (sale, number));
        insert into line values (1, 1, 5), (1, 2, 6);
        """
        + "".join(f"insert into line_note values ({sale}, {number}, '');" for sale, number in notes)
    )
    assert set(found.classes) == classes
    assert {name: known.parents for name, known in found.classes.items() if known.parents} == parents
    assert all(not known.wholes for known in found.classes.values())
    assert "remark" in found.classes["line_note" if "line_note" in classes else "line"].words


def test_names_of_tables_that_are_no_addresses() -> None:
    found = learned(
        """
        create table "order details" (id integer primary key, "unit ""price"" paid" real);
        create table "a/b#c:d" (id integer primary key, line integer references "order details" (id));
        create table "select" (id integer primary key, line integer references "order details" (id));
        """
    )
    assert set(found.classes) == {"order details", "a/b#c:d", "select"}
    again = parse_ontology(format_ontology(found), "turtle", "again")
    assert again.topic == found.topic == "order details"
    assert {name: known.related for name, known in again.classes.items()} == {
        "order details": frozenset(),
        "a/b#c:d": {"order details"},
        "select": {"order details"},
    }


@pytest.mark.parametrize(
    "url",
    [
        "nosuch://user:secret@host/db",
        "nosuch://user:se@secret@host/db",
        "nosuch://user:se/secret@host/db",
        "nosuch://host/db?password=secret",
        "nosuch://user:secret@host:port/db",
        f"nosuch://user:{'x' * 150}secret@host/db",
    ],
)
def test_messages_tell_no_passwords(url: str) -> None:
    with pytest.raises(InputError) as found:
        learn_from_database(url)
    assert "secret" not in str(found.value)
    assert "xxx" not in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_a_database_that_is_not_there_is_not_made(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        learn_from_database(f"{scheme}:///{tmp_path}/none.db?timeout=5")
    assert list(tmp_path.iterdir()) == []


def test_options_of_an_address(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript("create table product (id integer primary key, title text);")
    connection.close()
    assert set(learn_from_database(f"sqlite:///{tmp_path}/shop.db?timeout=5").classes) == {"product"}


def test_properties_and_their_hierarchy() -> None:
    """Rules 2 and 3 for relations: a foreign key and a table that joins are properties, one of them a sub-property."""
    found = learned(
        """
        create table buyer (id integer primary key);
        create table product (id integer primary key, maker_id integer references maker(id));
        create table maker (id integer primary key);
        create table wish (buyer_id integer references buyer(id), product_id integer references product(id),
                           primary key (buyer_id, product_id));
        create table purchase (buyer_id integer, product_id integer, primary key (buyer_id, product_id),
                               foreign key (buyer_id, product_id) references wish(buyer_id, product_id));
        create table theft (buyer_id integer, product_id integer, primary key (buyer_id, product_id),
                            foreign key (buyer_id, product_id) references wish(buyer_id, product_id));
        insert into buyer values (1), (2); insert into product values (1, null), (2, null);
        insert into wish values (1, 1), (2, 2); insert into purchase values (2, 2); insert into theft values (1, 2);
        """
    )
    assert set(found.classes) == {"buyer", "product", "maker"}
    assert {
        name: ({frozenset(pair) for pair in known.ends}, known.parents) for name, known in found.properties.items()
    } == {
        "product.maker_id": ({frozenset({"product", "maker"})}, frozenset()),
        "wish": ({frozenset({"buyer", "product"})}, frozenset()),
        "purchase": ({frozenset({"buyer", "product"})}, frozenset({"wish"})),
    }
    assert found.properties["product.maker_id"].ends == {("product", "maker")}
    assert found.properties["product.maker_id"].label == "maker id"
    assert parse_ontology(format_ontology(found), "turtle", "again") == found
