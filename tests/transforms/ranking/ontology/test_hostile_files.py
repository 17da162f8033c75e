"""Files of ontologies that would read other files, fetch addresses, or take all memory or time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.ontology_files import read_ontology
from semrank.transforms.ranking.ontology_formats import parse_ontology

pytest.importorskip("rdflib")

OWL_CLASS = "http://www.w3.org/2002/07/owl#Class"


class Listener:
    """A server of contexts on this machine that remembers what it was asked for."""

    def __init__(self) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                body = b'{"@context": {}}'
                self.send_response(200)
                self.send_header("Content-Type", "application/ld+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self.asked = asked
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/context"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


CONTEXTS = [
    '"@context": "ADDRESS"',
    '"@context": ["ADDRESS"]',
    '"@context": [{}, "ADDRESS"]',
    '"\\u0040context": "ADDRESS"',
    '"@context": {"p": {"@id": "urn:p", "@context": "ADDRESS"}}',
    '"@context": {"p": {"@id": "urn:p", "@context": [null, "ADDRESS"]}}',
    '"@context": {"@version": 1.1, "@import": "ADDRESS"}',
    '"@context": {"@version": 1.1, "\\u0040import": "ADDRESS"}',
    '"urn:p": {"@context": ["ADDRESS"], "@id": "urn:b"}',
]


@pytest.mark.parametrize("context", CONTEXTS)
def test_no_context_is_fetched(context: str, listener: Listener) -> None:
    content = f'{{{context}, "@id": "urn:x:Bird", "@type": "{OWL_CLASS}"}}'.replace("ADDRESS", listener.address)
    with pytest.raises(InputError, match="takes its context from elsewhere"):
        parse_ontology(content.encode(), "json-ld", "birds.jsonld")
    assert listener.asked == []


def test_no_file_is_read_for_a_context(tmp_path: Path) -> None:
    secret = tmp_path / "context.json"
    secret.write_text(json.dumps({"@context": {"Class": OWL_CLASS}}))
    content = json.dumps({"@context": [secret.as_uri()], "@id": "urn:x:Bird", "@type": "Class"})
    with pytest.raises(InputError, match="takes its context from elsewhere"):
        parse_ontology(content.encode(), "json-ld", "birds.jsonld")


def test_json_with_a_context_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "birds.jsonld"
    context = {"Class": OWL_CLASS, "kind": {"@id": "http://www.w3.org/2000/01/rdf-schema#subClassOf", "@type": "@id"}}
    classes = [{"@id": "urn:x:Hawk", "@type": "Class", "kind": "urn:x:Bird"}, {"@id": "urn:x:Bird", "@type": "Class"}]
    path.write_text(json.dumps({"@context": [context], "@graph": classes}))
    assert read_ontology(str(path)).classes["Hawk"].parents == {"Bird"}


RDF = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ DECLARED ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="urn:x">
  <owl:Class rdf:ID="Bird"><rdfs:label>LABEL</rdfs:label></owl:Class>
</rdf:RDF>"""


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('<!ENTITY a "ha"> <!ENTITY b "&a;&a;">', "entities made of entities"),
        ('<!ENTITY a ">ha"> <!ENTITY b ">&a;&a;">', "entities made of entities"),
        ("<!ENTITY a 'ha'>\n<!ENTITY\n\tb\n'>&a;&a;'>", "entities made of entities"),
        ('<!ENTITY b SYSTEM "ADDRESS">', "external entities"),
        ('<!ENTITY b PUBLIC "x" "ADDRESS">', "external entities"),
        ('<!ENTITY % b "ha">', "external entities"),
        ('<!ENTITY % b SYSTEM "ADDRESS"> %b;', "external entities"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_no_entity_grows_or_is_fetched(declared: str, message: str, encoding: str, listener: Listener) -> None:
    content = RDF.replace("DECLARED", declared).replace("LABEL", "bird").replace("ADDRESS", listener.address)
    with pytest.raises(InputError, match=message):
        parse_ontology(content.encode(encoding), "xml", "birds.owl")
    assert listener.asked == []


def test_an_entity_of_one_level_that_is_used_too_often() -> None:
    content = RDF.replace("DECLARED", f'<!ENTITY a "{"A" * 100_000}">').replace("LABEL", "&a;" * 5_000)
    with pytest.raises(InputError, match="is no xml"):
        parse_ontology(content.encode(), "xml", "birds.owl")


@pytest.mark.parametrize("piece", [b"<!ENTITY ", b"<!DOCTYPE ", b"<!ENTITY a '", b"<!-- ", b"<?a "])
def test_refused_in_a_time_that_grows_with_the_size(piece: bytes) -> None:
    started = time.process_time()
    with pytest.raises(InputError, match="is no xml"):
        parse_ontology(piece * 200_000, "xml", "birds.owl")
    assert time.process_time() - started < 5


def test_what_looks_like_a_declaration_is_none() -> None:
    content = RDF.replace("DECLARED", "<!-- <!ENTITY a SYSTEM 'x'> -->").replace("LABEL", "bird")
    assert parse_ontology(content.encode(), "xml", "birds.owl").classes["Bird"].label == "bird"


@pytest.mark.parametrize(
    ("kind", "content"), [("turtle", b"<urn:a> <urn:b> " + b"[" * 200_000), ("json-ld", b"[" * 200_000)]
)
def test_deep_nesting(kind: str, content: bytes) -> None:
    with pytest.raises(InputError, match="RecursionError"):
        parse_ontology(content, kind, "birds")
