"""The ontology ranker against EC's formulas by hand and by definition, its files, and databases that it learns from."""

from __future__ import annotations

import math
import random
import sqlite3
from pathlib import Path
from typing import Any, Literal

import apache_beam as beam
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from semrank.pipelines.runtime import beam_options
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLASSES
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.ranking import ontology
from semrank.transforms.ranking.ontology import OntologySettings, class_rows, rank, with_learned
from semrank.transforms.ranking.ontology_beam import RankByOntology
from semrank.transforms.ranking.ontology_database import learn_from_database
from semrank.transforms.ranking.ontology_files import read_ontology
from semrank.transforms.ranking.ontology_formats import format_ontology, parse_ontology
from semrank.transforms.ranking.ontology_model import Ontology, OntologyClass
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import WORDS, Crawl, Page, crawls, random_crawl

pytest.importorskip("rdflib")
pytest.importorskip("sqlalchemy")


def known(name: str, *words: str, parents: tuple[str, ...] = (), wholes: tuple[str, ...] = ()) -> OntologyClass:
    return OntologyClass(name, words[0], frozenset(words), parents=frozenset(parents), wholes=frozenset(wholes))


BIRDS = Ontology(
    {
        one.name: one
        for one in (
            known("Bird", "bird"),
            known("Raptor", "hawk", "eagle", parents=("Bird",)),
            known("Wing", "wing", wholes=("Bird",)),
            known("Nest", "nest", wholes=("Raptor",)),
            known("Web", "spider"),
        )
    },
    "Bird",
)
WEIGHT = {"Bird": 1.0, "Raptor": 0.5, "Wing": 0.5, "Nest": 0.25, "Web": 0.0}
CLASS_OF = {"bird": "Bird", "hawk": "Raptor", "eagle": "Raptor", "wing": "Wing", "nest": "Nest", "spider": "Web"}


class Oracle:
    """EC's formulas page by page."""

    def __init__(self, crawl: Crawl, way: str) -> None:
        self.crawl, self.way = crawl, way
        topic = crawl.topic()
        idf = {word: math.log((len(crawl.pages) + 1) / (crawl.documents(word) + 0.5)) for word in crawl.words}
        self.topic = {word: topic[word] * idf[word] for word in topic if topic[word] * idf[word]}
        if not self.topic:
            self.topic = {word: idf[word] for word in crawl.words if word in CLASS_OF}

    def content(self, words: Any, weight: dict[str, float]) -> float:
        largest = max(weight.values())
        total = sum(words.values())
        if not total or not largest:
            return 0.0
        score = sum(count * weight[CLASS_OF[word]] for word, count in words.items() if word in CLASS_OF)
        return float(min(1.0, score / largest / total))

    def relevance(self, words: Any) -> float:
        length = math.hypot(*words.values()) * math.hypot(*self.topic.values()) if words else 0.0
        product = float(sum(count * self.topic.get(word, 0.0) for word, count in words.items()))
        return min(1.0, max(0.0, product / length)) if length else 0.0

    def scores(self) -> list[float]:
        crawl = self.crawl
        pages = [url for url in crawl.harvested if crawl.pages[url].described]
        content = {url: self.content(crawl.pages[url].words, WEIGHT) for url in pages}
        mean = sum(content.values()) / len(pages) if pages else 0.0
        hits = {url for url in pages if content[url] >= mean - 1e-9 and content[url] > 1e-9}
        weight = {}
        for name, own in WEIGHT.items():
            having = [url for url in pages if any(CLASS_OF.get(word) == name for word in crawl.pages[url].words)]
            sigma = 1.0
            if having and hits:
                sigma = len(hits & set(having)) * len(pages) / (len(having) * len(hits))
                if self.way == "as-printed":
                    sigma = 1 / sigma if sigma else 1.0
            weight[name] = own * sigma
        found = []
        for url in crawl.current:
            page = crawl.pages[url]
            parents = []
            for parent in crawl.linkers(url):
                prs = self.relevance(crawl.pages[parent].words) if parent in pages else 0.0
                if prs > 0.1:
                    children = [child for child in pages if parent in crawl.linkers(child)]
                    parents.append(prs * (len(hits & set(children)) + 0.5) / (len(children) + 0.5))
            link = self.relevance(page.anchor) + (sum(parents) / len(parents) if parents else 0.0)
            found.append(0.5 * self.content(page.words, weight) + 0.25 * link)
        return found


@settings(max_examples=150, deadline=None)
@given(crawls())
def test_scores_are_those_of_the_formulas(crawl: Crawl) -> None:
    facts = crawl.facts()
    ways: tuple[Literal["lift", "as-printed"], ...] = ("lift", "as-printed")
    for way in ways:
        note(way)
        table = rank(facts, BIRDS, OntologySettings(sigma=way))
        assert table.schema == SCORED_SCHEMA
        assert table["url_id"].to_pylist() == crawl.current
        assert table["score"].to_pylist() == pytest.approx(Oracle(crawl, way).scores(), abs=1e-7)


def test_equations_by_hand() -> None:
    crawl = Crawl(
        pages={
            1: Page(seed=True, harvested=True, described=True, text={"bird": 2, "crawl": 2}),
            2: Page(harvested=True, described=True, text={"spider": 4}),
            3: Page(described=True, text={"hawk": 1, "lattice": 3}),
        },
        links=[(1, 3), (1, 2)],
    )
    # S_pc of the harvest: 2/4 and 0, so the first page hits. sigma(Bird) = 1 x 2 / (1 x 1) = 2, sigma(Web) = 0; no
    # harvested page has a raptor: sigma = 1. W = 2, 0.5, ...: S_pc(3) = 1 x 0.5 / 2 / 4. PRS(1): tf and tf idf have one
    # direction, since both words stand on one page: 1. lambda(1) = (0 + 0.5) / (1 + 0.5), its only child does not hit.
    row = rank(crawl.facts(), BIRDS).to_pylist()[0]
    assert row["score"] == pytest.approx(0.5 * 0.0625 + 0.25 * (0 + 1 / 3), abs=1e-8)
    product = OntologySettings(content_weight=2.0, link_weight=3.0, combine="logarithms")
    (row,) = rank(crawl.facts(), BIRDS, product).to_pylist()
    assert row["score"] == pytest.approx(0.0625**2 * (1 / 6) ** 3, abs=1e-9)
    assert {term["weight"] for term in row["reasons"] if term["term"] in ("content", "anchors", "parents")} == {None}
    # theta = 1: lambda(1) = 1 / 2. n = 1/4: W(Raptor) = 1/4, and the largest stays 2.
    (row,) = rank(crawl.facts(), BIRDS, OntologySettings(theta=1.0, discount=0.25, content_weight=1.0)).to_pylist()
    assert row["score"] == pytest.approx((0.03125 + 0.25 * 0.5) / 1.5, abs=1e-8)
    assert {term["weight"] for term in row["reasons"]} == {1 / 1.5, 0.25 / 1.5}
    table = class_rows(BIRDS, ontology.learning_sums(*_lesson(crawl)), OntologySettings())
    learned = {entry["name"]: entry["sigma"] for entry in table.to_pylist()}
    assert learned == {"Bird": 2.0, "Raptor": 1.0, "Wing": 1.0, "Nest": 1.0, "Web": 0.0}
    assert with_learned(BIRDS, table).weights()[0] == 2.0


def _lesson(crawl: Crawl) -> tuple[Any, Any, float]:
    facts = crawl.facts()
    lexicon, _ = ontology.learned_in_memory(facts, BIRDS, OntologySettings())
    return facts.descriptions, lexicon, ontology.mean_content(ontology.mean_sums(facts.descriptions, lexicon))


def test_distances_are_shortest_ways() -> None:
    web = nx.Graph([("Bird", "Raptor"), ("Bird", "Wing"), ("Raptor", "Nest")])
    expected = nx.single_source_shortest_path_length(web, "Bird")
    found = dict(zip(BIRDS.names, BIRDS.distances().tolist(), strict=True))
    assert found == {**expected, "Web": math.inf}
    assert dict(zip(BIRDS.names, BIRDS.weights().tolist(), strict=True)) == WEIGHT


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_many_parts_give_what_one_does(parts: int, tmp_path: Path) -> None:
    crawl = random_crawl(parts + 7)
    words = {f"{word}{copy}": name for word, name in CLASS_OF.items() for copy in range(6)}
    classes = {
        name: OntologyClass(
            name, name, frozenset(w for w, own in words.items() if own == name), old.parents, old.wholes
        )
        for name, old in BIRDS.classes.items()
    }
    many = Ontology(classes, "Bird")
    with beam.Pipeline(options=beam_options([])) as pipeline:
        inputs = {
            name: pipeline | name >> beam.Create(tables).with_output_types(pa.Table)
            for name, tables in crawl.tables(parts, random.Random(parts)).items()
            if name in ("descriptions", "vocabulary", "harvested")
        }
        folder = str(tmp_path / "classes")
        ranker = RankByOntology(
            many, OntologySettings(), language="en", query=list(crawl.query), partitions=parts, folder=folder
        )
        {"rows": inputs | ranker} | WriteOne("write scores", str(tmp_path / "scores"), _whole)
    found = pq.read_table(tmp_path / "scores").sort_by("url_id").to_pylist()
    assert found == rank(crawl.facts(), many).to_pylist()
    assert any(row["reasons"][0]["value"] > 0 for row in found)
    assert pq.read_table(tmp_path / "classes").schema.names == CLASSES.schema.names


def _whole(rows: pa.Table | None) -> pa.Table:
    return SCORED_SCHEMA.empty_table() if rows is None else rows


def test_the_shipped_ontology_and_its_round_trip() -> None:
    shipped = read_ontology("e-commerce")
    assert shipped.topic == "Transaction"
    assert {"Buyer", "Seller", "Product", "Payment", "Delivery", "Contract"} <= set(shipped.classes)
    assert np.isfinite(shipped.distances()).all()
    words = set(shipped.word_table("en")["word"].to_pylist())
    assert {"customer", "vendor", "invoice", "courier", "warranty"} <= words
    learned = with_learned(shipped, pa.table({"name": ["Buyer"], "sigma": [1.5]}))
    again = parse_ontology(format_ontology(learned), "turtle", "again")
    assert again == learned
    assert format_ontology(again) == format_ontology(learned)


OWL = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!ENTITY owl "http://www.w3.org/2002/07/owl#" > ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#" xml:base="https://birds.example/onto">
  <owl:Class rdf:ID="Bird"><rdfs:label>bird</rdfs:label></owl:Class>
  <owl:Class rdf:ID="BirdOfPrey"><rdfs:subClassOf rdf:resource="#Bird"/></owl:Class>
  <owl:Class rdf:ID="Nest"/>
  <owl:ObjectProperty rdf:ID="builds">
    <rdfs:domain rdf:resource="#Bird"/><rdfs:range rdf:resource="#Nest"/>
  </owl:ObjectProperty>
</rdf:RDF>"""


def test_owl_with_properties() -> None:
    found = parse_ontology(OWL.encode(), "xml", "birds.owl")
    assert found.topic == "Bird"
    assert found.classes["BirdOfPrey"].label == "bird of prey"
    assert found.classes["BirdOfPrey"].parents == {"Bird"}
    assert found.classes["Bird"].related == {"Nest"}


LAUGHS = OWL.replace(
    "<!ENTITY owl", '<!ENTITY a "ha"> <!ENTITY b "&a;&a;&a;&a;"> <!ENTITY c "&b;&b;&b;&b;"> <!ENTITY owl'
)
OUTSIDE = OWL.replace("<!ENTITY owl", '<!ENTITY x SYSTEM "file:///etc/passwd"> <!ENTITY owl')


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (LAUGHS, "xml", "declares entities made of entities"),
        (OUTSIDE, "xml", "declares external entities"),
        (OWL.replace("rdf:RDF [", 'rdf:RDF SYSTEM "http://x.example/d.dtd" ['), "xml", "declares external entities"),
        ("<rdf:RDF", "xml", "is no xml"),
        ("this is no turtle", "turtle", "is no turtle"),
        ("", "turtle", "has no class"),
        ('{"@context": "http://x.example/context", "@id": "a"}', "json-ld", "takes its context from elsewhere"),
    ],
)
def test_files_that_are_refused(content: str, kind: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_ontology(content.encode(), kind, "file")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), st.sampled_from(["turtle", "xml", "nt"]))
def test_any_file_is_an_ontology_or_refused(content: bytes, kind: str) -> None:
    with pytest.raises(InputError):
        parse_ontology(content, kind, "file")


@pytest.mark.parametrize(
    ("name", "message"),
    [("x.docx", "found the ending '.docx'"), ("/nowhere/x.ttl", "can't be read"), ("shop", "ending ''")],
)
def test_names_that_lead_nowhere(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_ontology(name)


SHOP = """
create table product (id integer primary key, title text, price real);
create table product_detail (id integer primary key references product(id), colour text);
create table book (id integer primary key references product(id), author text);
create table customer (id integer primary key, name text);
create table purchase (id integer primary key, customer_id integer references customer(id), bought_at text);
create table purchase_line (
  purchase_id integer references purchase(id), line integer, product_id integer references product(id),
  amount integer, primary key (purchase_id, line));
create table likes (
  customer_id integer references customer(id), product_id integer references product(id),
  primary key (customer_id, product_id));
insert into product values (1, 'Emma', 5), (2, 'Lamp', 9);
insert into product_detail values (1, 'red'), (2, 'blue');
insert into book values (1, 'Austen');
"""


def test_rules_1_to_3_on_a_database(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP)
    found = learn_from_database(f"sqlite:///{path}")
    assert set(found.classes) == {"product", "book", "customer", "purchase", "purchase_line"}
    assert {"colour", "price", "title", "product detail"} <= found.classes["product"].words
    assert found.classes["book"].parents == {"product"}
    assert found.classes["purchase"].related == {"customer"}
    assert found.classes["purchase_line"].wholes == {"purchase"}
    assert found.classes["purchase_line"].related == {"product"}
    assert found.topic == "product"
    assert learn_from_database(f"sqlite:///{path}", "purchase").distances().tolist() == [3.0, 1.0, 2.0, 0.0, 1.0]


def test_databases_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        learn_from_database(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(InputError, match="can't be read") as found:
        learn_from_database("nosuch://user:secret@host/db")
    assert "secret" not in str(found.value)
    (tmp_path / "empty.db").touch()
    with pytest.raises(InputError, match="found no table"):
        learn_from_database(f"sqlite:///{tmp_path}/empty.db")
    (tmp_path / "junk.db").write_bytes(b"junk" * 1000)
    with pytest.raises(InputError, match="can't be read"):
        learn_from_database(f"sqlite:///{tmp_path}/junk.db")


def test_relations_to_nothing_and_unknown_topics() -> None:
    with pytest.raises(InputError, match="related to 'Egg', which is not one of its classes"):
        Ontology({"Bird": known("Bird", "bird", wholes=("Egg",))}, "Bird")
    with pytest.raises(InputError, match="found the topic 'Egg'"):
        Ontology({"Bird": known("Bird", "bird")}, "Egg")
    assert set(CLASS_OF) <= set(WORDS)
