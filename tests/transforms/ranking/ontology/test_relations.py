"""Classes, their names, relations and factors: what is read, what is written, and what they weigh."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.ontology import OntologySettings, rank, with_learned
from semrank.transforms.ranking.ontology_formats import format_ontology, parse_ontology
from semrank.transforms.ranking.ontology_model import LARGEST_SIGMA, ObjectProperty, Ontology, OntologyClass
from tests.support.small_crawls import Crawl, Page

pytest.importorskip("rdflib")

PREFIXES = """
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dcterms: <http://purl.org/dc/terms/> . @prefix semrank: <urn:semrank:ontology#> . @prefix : <urn:x:> .
"""


def turtle(text: str) -> Ontology:
    return parse_ontology((PREFIXES + text).encode(), "turtle", "birds.ttl")


@pytest.mark.parametrize("relation", [":hawk skos:broader :bird", ":bird skos:narrower :hawk"])
def test_kinds_are_read_both_ways(relation: str) -> None:
    found = turtle(f":bird a skos:Concept . :hawk a skos:Concept . {relation} .")
    assert found.classes["hawk"].parents == {"bird"}
    assert found.classes["bird"].parents == frozenset()
    assert found.topic == "bird"


@pytest.mark.parametrize("space", ["semrank", "dcterms"])
@pytest.mark.parametrize("relation", [":wing SPACE:isPartOf :bird", ":bird SPACE:hasPart :wing"])
def test_parts_are_read_both_ways(space: str, relation: str) -> None:
    found = turtle(f":bird a owl:Class . :wing a owl:Class . {relation.replace('SPACE', space)} .")
    assert found.classes["wing"].wholes == {"bird"}
    assert found.classes["bird"].wholes == frozenset()


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)


@st.composite
def ontologies(draw: st.DrawFn) -> Ontology:
    names = draw(st.lists(TEXTS, min_size=1, max_size=5, unique=True))

    def others(name: str) -> frozenset[str]:
        return frozenset(draw(st.sets(st.sampled_from(names), max_size=3))) - {name}

    classes = {}
    for name in names:
        label = draw(TEXTS)
        words = frozenset({label, *draw(st.sets(TEXTS, max_size=3))})
        sigma = draw(st.floats(0, LARGEST_SIGMA))
        classes[name] = OntologyClass(name, label, words, others(name), others(name), others(name), sigma)
    properties: dict[str, ObjectProperty] = {}
    for name in draw(st.sets(st.sampled_from(["owns", "buys", "has a"]))) if len(names) > 1 else ():
        domain, target = draw(st.permutations(names))[:2]
        parents = draw(st.sets(st.sampled_from(sorted(properties)))) if properties else set()
        words = frozenset(draw(st.sets(TEXTS, max_size=2))) - {f"{name} it"}
        properties[name] = ObjectProperty(name, f"{name} it", frozenset({(domain, target)}), frozenset(parents), words)
        related = classes[domain].related | {target}
        classes[domain] = replace(classes[domain], related=related)
    return Ontology(classes, draw(st.sampled_from(names)), properties=properties)


def test_a_property_needs_its_ends_and_parents() -> None:
    classes = {name: OntologyClass(name, name, frozenset()) for name in ("Cat", "Dog")}
    for known, message in (
        (ObjectProperty("eats", "eats", frozenset({("Dog", "Cow")})), "'Cow', which is not one of its classes"),
        (
            ObjectProperty("eats", "eats", frozenset({("Dog", "Cat")}), frozenset({"sees"})),
            "'sees', which is not one of its prop",
        ),
    ):
        with pytest.raises(InputError, match=message):
            Ontology(classes, "Cat", properties={"eats": known})


def test_properties_of_a_file() -> None:
    content = b"""
        @prefix : <urn:x#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        :Dog a owl:Class . :Cat a owl:Class . :Bone a owl:Class .
        :sees a owl:ObjectProperty ; rdfs:domain :Dog ; rdfs:range :Cat .
        :chases a owl:ObjectProperty ; rdfs:label "runs after" ; rdfs:domain :Dog ; rdfs:range :Cat ;
            rdfs:subPropertyOf :sees, :unknown .
        :vague a owl:ObjectProperty ; rdfs:domain :Dog .
    """
    found = parse_ontology(content, "turtle", "pets")
    ends = frozenset({("Dog", "Cat")})
    assert found.properties == {
        "chases": ObjectProperty("chases", "runs after", ends, frozenset({"sees"})),
        "sees": ObjectProperty("sees", "sees", ends),
    }
    assert found.classes["Dog"].related == {"Cat"}


@settings(max_examples=60, deadline=None)
@given(ontologies())
def test_what_is_written_is_read_again(ontology: Ontology) -> None:
    content = format_ontology(ontology)
    again = parse_ontology(content, "turtle", "again")
    assert again == ontology
    assert format_ontology(again) == content


def birds(sigma: float = 1.0) -> Ontology:
    words = {"Bird": ("bird", ()), "Raptor": ("hawk", ("Bird",)), "Web": ("spider", ())}
    classes = {
        name: OntologyClass(name, word, frozenset([word]), parents=frozenset(parents), sigma=sigma)
        for name, (word, parents) in words.items()
    }
    return Ontology(classes, "Bird")


@pytest.mark.parametrize("discount", [0.25, 0.5, 1.0])
def test_classes_without_a_way_to_the_topic_weigh_nothing(discount: float) -> None:
    assert birds().weights(discount).tolist() == [1.0, discount, 0.0]


@pytest.mark.parametrize("sigma", [0.0, 5e-324, 1.0, LARGEST_SIGMA])
@pytest.mark.parametrize("way", ["lift", "as-printed"])
def test_scores_are_numbers_from_0_to_1_whatever_was_learned(sigma: float, way: str) -> None:
    crawl = Crawl(
        pages={
            1: Page(seed=True, harvested=True, described=True, text={"bird": 2, "hawk": 2}),
            2: Page(harvested=True, described=True, text={"spider": 4}),
            3: Page(described=True, text={"bird": 1, "hawk": 1, "spider": 3}),
            4: Page(),
        },
        links=[(1, 3), (1, 2), (2, 4)],
    )
    settings = OntologySettings(sigma="lift" if way == "lift" else "as-printed")
    scores = rank(crawl.facts(), birds(sigma), settings)["score"].to_pylist()
    assert all(math.isfinite(score) and 0 <= score <= 1 for score in scores)


def test_factors_stay_finite_over_rounds() -> None:
    learned = pa.table({"name": ["Bird"], "sigma": [1e200]})
    twice = with_learned(with_learned(birds(), learned), learned)
    assert twice.classes["Bird"].sigma == LARGEST_SIGMA
    assert parse_ontology(format_ontology(twice), "turtle", "again").classes["Bird"].sigma == LARGEST_SIGMA


@pytest.mark.parametrize("sigma", ["1e308", "-1", "NaN", "many", "9" * 1000, "1e13"])
def test_factors_that_are_none(sigma: str) -> None:
    with pytest.raises(InputError, match=r"'bird' has sigma '.{1,40}', expected a number from 0 to 1e\+12"):
        turtle(f':bird a owl:Class ; semrank:sigma "{sigma}" .')
