"""Words and sentences of the sample web: six topics, each with sections, entries, sentence patterns and guides.

They were written for the sample and are stored in `data/vocabulary.toml`. A topic's sentences draw on its own words, so
that a page's most telling words are those of its topic, and on a few everyday words that all topics share.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One thing that pages are about.

    Attributes:
        phrase: the name as it stands in a sentence, with its article where it takes one ("the kestrel", "Saturn").
        also: another name for it, which people search for.
        fact: what sets it apart, as the rest of a sentence that begins with the name.
    """

    phrase: str
    also: str
    fact: str

    @property
    def name(self) -> str:
        """The name without its article."""
        return self.phrase.removeprefix("the ")

    @property
    def slug(self) -> str:
        """The name as it stands in URLs."""
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True)
class Topic:
    """What one topic's pages are made of.

    Attributes:
        name: the topic's name in `topics.parquet`; its own site is the host `<name>.example`.
        site: title of its own site.
        group: name of the group of users who are interested in it.
        words: word lists that the patterns draw from, by slot name.
        patterns: sentences; `{it}` is the entry's phrase, other slots are names of word lists.
        searches: words that people add to a name when they search.
        sections: entries by section name.
        guides: (title, section) of longer articles.
    """

    name: str
    site: str
    group: str
    words: Mapping[str, tuple[str, ...]]
    patterns: tuple[str, ...]
    searches: tuple[str, ...]
    sections: Mapping[str, tuple[Entry, ...]]
    guides: tuple[tuple[str, str], ...]

    @property
    def host(self) -> str:
        """Host of the topic's own site."""
        return f"{self.name}.example"

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Topic:
        """A topic as it is stored: entries are lines `phrase | other name | fact`, guides `title | section`."""
        sections = {name: tuple(Entry(*_fields(line)) for line in lines) for name, lines in stored["sections"].items()}
        return cls(
            stored["name"],
            stored["site"],
            stored["group"],
            words={slot: tuple(words) for slot, words in stored["words"].items()},
            patterns=tuple(stored["patterns"]),
            searches=tuple(stored["searches"]),
            sections=sections,
            guides=_pairs(stored["guides"]),
        )


def _fields(line: str) -> list[str]:
    return line.split(" | ")


def _pairs(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((first, second) for first, second in map(_fields, lines))


_STORED = tomllib.loads((resources.files(__package__) / "data" / "vocabulary.toml").read_text(encoding="utf-8"))

TOPICS: tuple[Topic, ...] = tuple(map(Topic.of, _STORED["topics"]))
"""The topics in the order of their names."""

BIRDS = next(topic for topic in TOPICS if topic.name == "birds")

EVERYDAY: tuple[str, ...] = tuple(_STORED["everyday"])
"""Sentences of no topic, sprinkled over all pages."""

GOODS: tuple[tuple[str, str], ...] = _pairs(_STORED["goods"])
"""(slug, name) of what the shop sells; its pages belong to no topic."""

GERMAN_PARAGRAPHS: tuple[str, ...] = tuple(_STORED["german_paragraphs"])
"""The one page in another language: the kestrel in German."""
