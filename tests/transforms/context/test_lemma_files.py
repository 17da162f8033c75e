"""Files of lemmas against simplemma's own dictionaries, and caches that can't be used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from simplemma.strategies.dictionaries import DefaultDictionaryFactory

from semrank.transforms.context import lemma_files
from semrank.transforms.context.lemma_files import MappedDictionary, cached_dictionary, write_dictionary
from semrank.transforms.context.words import _Dictionaries

WORDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "semrank"


@given(st.dictionaries(WORDS, WORDS), WORDS)
@settings(max_examples=60, deadline=None)
def test_a_file_holds_its_dictionary(
    tmp_path_factory: pytest.TempPathFactory, words: dict[str, str], other: str
) -> None:
    path = tmp_path_factory.mktemp("lemmas") / "file"
    write_dictionary(path, words)
    found = MappedDictionary(path)
    assert dict(found) == words
    assert found.get(other) == words.get(other)


def test_words_of_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xxhash, "xxh3_64_intdigest", len)
    write_dictionary(tmp_path / "file", {"mice": "mouse", "feet": "foot", "a": "an"})
    found = MappedDictionary(tmp_path / "file")
    assert [found.get(word) for word in ("feet", "mice", "a", "word", "")] == ["foot", "mouse", "an", None, None]


@pytest.mark.parametrize("language", ["en", "ast"])
def test_lemmas_are_simplemmas(language: str) -> None:
    found, expected = cached_dictionary(language), DefaultDictionaryFactory().get_dictionary(language)
    assert found is not None
    assert len(found) == len(expected)
    assert all(found.get(word) == lemma for word, lemma in expected.items())
    assert found.get("no such word") is None


def test_the_file_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cached_dictionary("ast") is not None
    (path,) = cache.iterdir()
    monkeypatch.setattr(lemma_files, "write_dictionary", None)
    assert cached_dictionary("ast") is not None
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="not a whole file of lemmas"):
        MappedDictionary(path)
    monkeypatch.undo()


def test_a_damaged_file_is_made_again(cache: Path) -> None:
    for damaged in (b"", b"something else, and longer than a header", lemma_files.MAGIC + b"\xff" * 8):
        cache.mkdir(exist_ok=True)
        for path in cache.iterdir():
            path.write_bytes(damaged)
        found = cached_dictionary("ast")
        assert found is not None
        assert found.get("gatos") == DefaultDictionaryFactory().get_dictionary("ast").get("gatos")


def test_several_may_make_it_at_once(cache: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        sizes = list(threads.map(lambda _: len(cached_dictionary("ast") or ()), range(4)))
    assert len(set(sizes)) == 1 < sizes[0]
    assert len(list(cache.iterdir())) == 1, "no drafts are left"


def test_without_a_cache_dictionaries_are_unpacked(cache: Path) -> None:
    cache.write_text("a file where the folder would be")
    assert cached_dictionary("ast") is None
    dictionary = _Dictionaries().get_dictionary("ast")
    assert len(dictionary) == len(DefaultDictionaryFactory().get_dictionary("ast"))
