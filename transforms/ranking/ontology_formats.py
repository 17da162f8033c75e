"""Ontologies in OWL, RDFS and SKOS: read and written with rdflib (extra `ontology`).

| in the file | here |
|---|---|
| owl:Class, rdfs:Class, skos:Concept | a class, named by the last part of its address |
| rdfs:subClassOf, skos:broader, and skos:narrower the other way | a kind of |
| semrank:isPartOf, dcterms:isPartOf, and their hasPart the other way | a part of |
| an owl:ObjectProperty with rdfs:domain and rdfs:range | a named property; its ends are related |
| rdfs:subPropertyOf between such properties | a sub-relation |
| skos:related | related |
| rdfs:label, skos:prefLabel, skos:altLabel, skos:hiddenLabel | label and words |
| semrank:topic | the class that is the topic; else the one that most relations lead to |
| semrank:sigma | the learned factor of a class's weight |

Nothing outside the file is read: documents that name external entities, types or contexts are refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote, unquote
from xml.parsers import expat

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.ontology_model import LARGEST_SIGMA, ObjectProperty, Ontology, OntologyClass, spaced

NAMESPACE = "urn:semrank:ontology#"
PROPERTY_NAMESPACE = "urn:semrank:property#"
SHIPPED = {"e-commerce": "e_commerce.ttl"}
"""Ontologies of our own, by name."""

_PROLOG_BYTES = 1 << 16
"""Bytes of an XML document that are read at a time until its first element begins."""

FORMATS = {
    ".ttl": "turtle",
    ".n3": "n3",
    ".nt": "nt",
    ".owl": "xml",
    ".rdf": "xml",
    ".xml": "xml",
    ".jsonld": "json-ld",
}


@cache
def shipped_ontology(name: str, topic: str | None = None) -> Ontology:
    """One of `SHIPPED`."""
    content = resources.files("semrank.transforms.ranking").joinpath("data", SHIPPED[name]).read_bytes()
    return parse_ontology(content, "turtle", name, topic)


def _rdflib() -> Any:
    try:
        import rdflib
    except ImportError as cause:
        raise InputError(
            "--ontology: rdflib is not installed, expected the extra: pip install semrank[ontology]"
        ) from cause
    return rdflib


def parse_ontology(content: bytes, kind: str, source: str, topic: str | None = None) -> Ontology:
    """An ontology from a file's content.

    Args:
        content: the file.
        kind: its format, as rdflib calls it.
        source: name for messages.
        topic: name of the topic's class, or None for that of the file.
    """
    rdflib = _rdflib()
    graph = rdflib.Graph()
    try:
        if kind == "xml":
            _check_prolog(content, source)
        elif kind == "json-ld":
            content = _checked_json(content, source)
        graph.parse(data=content, format=kind)
    except InputError:
        raise
    except Exception as cause:  # rdflib's parsers raise whatever their libraries do
        reason = " ".join(str(cause).split())[:160]
        raise InputError(f"--ontology {source}: is no {kind}: {type(cause).__name__}: {reason}") from cause
    return _ontology_of(graph, rdflib, source, topic)


def _check_prolog(content: bytes, source: str) -> None:
    """Refuses XML whose entities could read files, fetch addresses or grow without end.

    The only ones that ontologies need are the abbreviations that some tools write for namespaces: internal, and without
    references to others. The parser itself reports the declarations, since a search of the text can be deceived.
    """
    begun = False

    def begin(name: str, attributes: dict[str, str]) -> None:  # noqa: ARG001
        nonlocal begun
        begun = True

    def doctype(name: str, system: str | None, public: str | None, inside: bool) -> None:  # noqa: ARG001
        if system is not None or public is not None:
            raise InputError(f"--ontology {source}: declares external entities, expected none")

    def entity(
        name: str,  # noqa: ARG001
        of_document_type: bool,
        value: str | None,
        base: str | None,  # noqa: ARG001
        system: str | None,  # noqa: ARG001
        public: str | None,  # noqa: ARG001
        notation: str | None,  # noqa: ARG001
    ) -> None:
        if of_document_type or value is None:
            raise InputError(f"--ontology {source}: declares external entities, expected none")
        if "&" in value:
            raise InputError(f"--ontology {source}: declares entities made of entities, expected none")

    # rdflib reads every document as UTF-8, whatever encoding it declares, and the check must see what rdflib reads.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = entity
    for start in range(0, len(content), _PROLOG_BYTES):
        parser.Parse(content[start : start + _PROLOG_BYTES])
        if begun:
            return


def _checked_json(content: bytes, source: str) -> bytes:
    """A JSON-LD document without external contexts, serialised again so that rdflib reads what was checked."""
    document = json.loads(content)
    waiting = [document]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            contexts = found.get("@context")
            named = contexts if isinstance(contexts, list) else [contexts]
            if "@import" in found or any(isinstance(context, str) for context in named):
                raise InputError(f"--ontology {source}: takes its context from elsewhere, expected one inside the file")
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
    return json.dumps(document).encode()


def _ontology_of(graph: Any, rdflib: Any, source: str, topic: str | None) -> Ontology:
    owl, rdf, rdfs, skos, terms = rdflib.OWL, rdflib.RDF, rdflib.RDFS, rdflib.SKOS, rdflib.DCTERMS
    own = rdflib.Namespace(NAMESPACE)
    nodes = {node for kind in (owl.Class, rdfs.Class, skos.Concept) for node in graph.subjects(rdf.type, kind)}
    nodes = {node for node in nodes if isinstance(node, rdflib.URIRef) and node not in (owl.Thing, owl.Nothing)}
    names = {node: _name(str(node)) for node in nodes}
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    if twice:
        raise InputError(
            f"--ontology {source}: found several classes named '{sorted(twice)[0]}', expected different names"
        )
    nodes_by_name = {name: node for node, name in names.items()}
    links: dict[str, dict[Any, set[str]]] = {kind: defaultdict(set) for kind in ("parents", "wholes", "related")}

    def link(kind: str, subject: Any, value: Any) -> None:
        if subject in names and value in names and subject != value:
            links[kind][subject].add(names[value])

    for kind, predicate in (
        ("parents", rdfs.subClassOf),
        ("parents", skos.broader),
        ("wholes", own.isPartOf),
        ("wholes", terms.isPartOf),
        ("related", skos.related),
    ):
        for subject, value in graph.subject_objects(predicate):
            link(kind, subject, value)
    for kind, predicate in (("parents", skos.narrower), ("wholes", own.hasPart), ("wholes", terms.hasPart)):
        for value, subject in graph.subject_objects(predicate):
            link(kind, subject, value)
    properties = _properties_of(graph, rdflib, names, source)
    for known_property in properties.values():
        for domain, target in known_property.ends:
            links["related"][nodes_by_name[domain]].add(target)
    classes = {}
    for node, name in names.items():
        label, words = _entries(graph, rdflib, node, name)
        sigma = graph.value(node, own.sigma)
        classes[name] = OntologyClass(
            name,
            label,
            words,
            parents=frozenset(links["parents"][node]),
            wholes=frozenset(links["wholes"][node]),
            related=frozenset(links["related"][node]),
            sigma=1.0 if sigma is None else _sigma(sigma, name, source),
        )
    if topic is None:
        topics = sorted(names[node] for node in graph.subjects(own.topic, rdflib.Literal(True)) if node in names)
        topic = topics[0] if topics else _centre(classes)
    return Ontology(classes, topic, source=f"--ontology {source}", properties=properties)


def _properties_of(graph: Any, rdflib: Any, names: dict[Any, str], source: str) -> dict[str, ObjectProperty]:
    """The object properties between known classes, with the hierarchy among them."""
    rdfs = rdflib.RDFS
    ends = {
        node: frozenset(
            (names[domain], names[target])
            for domain in graph.objects(node, rdfs.domain)
            for target in graph.objects(node, rdfs.range)
            if domain in names and target in names and domain != target
        )
        for node in graph.subjects(rdflib.RDF.type, rdflib.OWL.ObjectProperty)
        if isinstance(node, rdflib.URIRef)
    }
    known = {node: _name(str(node)) for node, pairs in ends.items() if pairs}
    twice = [name for name, count in Counter(known.values()).items() if count > 1]
    if twice:
        raise InputError(
            f"--ontology {source}: found several properties named '{sorted(twice)[0]}', expected different names"
        )
    properties = {}
    for node, name in sorted(known.items(), key=lambda item: item[1]):
        label, words = _entries(graph, rdflib, node, name)
        parents = frozenset(known[parent] for parent in graph.objects(node, rdfs.subPropertyOf) if parent in known)
        properties[name] = ObjectProperty(name, label, ends[node], parents - {name}, words - {label})
    return properties


def _entries(graph: Any, rdflib: Any, node: Any, name: str) -> tuple[str, frozenset[str]]:
    """The label of a class or property, and all words and names that are given for it (EC Def. 2)."""
    rdfs, skos = rdflib.RDFS, rdflib.SKOS
    labels, others = (
        {str(value) for predicate in predicates for value in graph.objects(node, predicate)}
        for predicates in ((skos.prefLabel, rdfs.label), (skos.altLabel, skos.hiddenLabel))
    )
    return min(labels, default=spaced(name)), frozenset(labels | others)


def _sigma(value: Any, name: str, source: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= LARGEST_SIGMA:
        shown = " ".join(str(value).split())[:40]
        raise InputError(
            f"--ontology {source}: '{name}' has sigma '{shown}', expected a number from 0 to {LARGEST_SIGMA:g}"
        )
    return number


def _centre(classes: dict[str, OntologyClass]) -> str:
    """The class that most relations lead to; of several, the first by name."""
    count = Counter(other for known in classes.values() for other in known.parents | known.wholes | known.related)
    return min(classes, key=lambda name: (-count[name], name), default="")


def _name(address: str) -> str:
    return unquote(re.split(r"[#/:]", address.rstrip("#/"))[-1])


def _node(name: str, rdflib: Any) -> Any:
    """The address of a class; a table's name may have spaces and other characters that addresses can't."""
    return rdflib.URIRef(NAMESPACE + quote(name, safe=""))


def _property_node(name: str, rdflib: Any) -> Any:
    """The address of a property; it differs from the address of a class of the same name."""
    return rdflib.URIRef(f"{PROPERTY_NAMESPACE}{quote(name, safe='')}")


def _led_to(ontology: Ontology, name: str) -> frozenset[str]:
    """The classes that named properties lead to from a class."""
    pairs = (pair for known in ontology.properties.values() for pair in known.ends)
    return frozenset(target for domain, target in pairs if domain == name)


def format_ontology(ontology: Ontology) -> bytes:
    """An ontology as Turtle, always in the same order."""
    rdflib = _rdflib()
    own = rdflib.Namespace(NAMESPACE)
    graph = rdflib.Graph()
    for prefix, space in (("semrank", own), ("owl", rdflib.OWL), ("skos", rdflib.SKOS)):
        graph.bind(prefix, space)
    for name in ontology.names:
        known = ontology.classes[name]
        node = _node(name, rdflib)
        graph.add((node, rdflib.RDF.type, rdflib.OWL.Class))
        graph.add((node, rdflib.RDFS.label, rdflib.Literal(known.label)))
        for word in known.words - {known.label}:
            graph.add((node, rdflib.SKOS.altLabel, rdflib.Literal(word)))
        for predicate, others in (
            (rdflib.RDFS.subClassOf, known.parents),
            (own.isPartOf, known.wholes),
            (rdflib.SKOS.related, known.related - _led_to(ontology, name)),
        ):
            for other in others:
                graph.add((node, predicate, _node(other, rdflib)))
        if known.sigma != 1.0:
            # rdflib shortens numbers of type double to seven digits.
            exact = format(Decimal(repr(known.sigma)), "f")
            graph.add((node, own.sigma, rdflib.Literal(exact, datatype=rdflib.XSD.decimal, normalize=False)))
        if name == ontology.topic:
            graph.add((node, own.topic, rdflib.Literal(True)))
    for known_property in ontology.properties.values():
        node = _property_node(known_property.name, rdflib)
        graph.add((node, rdflib.RDF.type, rdflib.OWL.ObjectProperty))
        graph.add((node, rdflib.RDFS.label, rdflib.Literal(known_property.label)))
        for word in known_property.words:
            graph.add((node, rdflib.SKOS.altLabel, rdflib.Literal(word)))
        for domain, target in known_property.ends:
            graph.add((node, rdflib.RDFS.domain, _node(domain, rdflib)))
            graph.add((node, rdflib.RDFS.range, _node(target, rdflib)))
        for parent in known_property.parents:
            graph.add((node, rdflib.RDFS.subPropertyOf, _property_node(parent, rdflib)))
    return bytes(graph.serialize(format="turtle", encoding="utf-8"))
