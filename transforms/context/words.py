"""Words of texts in any language: segmentation, lemmas and stop words, on Arrow arrays.

A text is lower-cased and cut at ASCII separators; everything slower happens once for each distinct run of a batch. Runs
are split by RE2 where neither letters, marks, numbers nor apostrophes stand, and folded (NFKC, soft hyphens and joiners
removed, one sort of apostrophe); those of a script that is written without spaces are segmented by ICU's dictionaries.
Each word is replaced by its lemma where simplemma knows the language. Numbers, single letters, very long tokens and
stop words are no words. The words of a text depend on that text, its language and the fallback language alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import stopwordsiso
from icu4py.breakers import WordBreaker
from resiliparse.parse.lang import detect_fast
from simplemma.strategies import DefaultStrategy
from simplemma.strategies.dictionaries import DefaultDictionaryFactory, DictionaryFactory, StreamDictionaryFactory
from simplemma.strategies.dictionaries.dictionary_factory import DATA_FOLDER, SUPPORTED_LANGUAGES

from semrank.transforms.columnar.arrays import (
    Int32s,
    Int64s,
    column_array,
    entry_rows,
    int64s,
    list_column,
    pointers,
    ragged,
)
from semrank.transforms.context.lemma_files import cached_dictionary
from semrank.transforms.context.nouns import is_noun
from semrank.transforms.streams.languages import language_code

DEFAULT_LANGUAGE = "en"
"""Language of texts whose language is neither given nor found out."""

MAX_WORD_CHARACTERS = 48
"""Longest token, in code points, that counts as a word; longer ones are codes, hashes and damaged markup."""

BATCH_BYTES = 8 << 20
"""UTF-8 bytes of text handled at a time: the arrays made from them take some ten times as much memory."""

MIN_DETECTED_CHARACTERS = 200
"""Shortest text, in code points, whose language is detected; shorter texts are guessed no better than by chance."""

MAX_DETECTED_CHARACTERS = 1 << 16
"""Code points of a text that the detection of its language looks at."""

CACHED_TOKENS = 1 << 18
"""Runs, and segments of runs, whose words a process remembers, some 300 bytes each."""

EXPANDED_DICTIONARY_BYTES = 256 << 10
"""Compressed size up to which a lemma dictionary without a file in the cache is expanded in memory. A larger one is
read packed, which takes six times as long a look-up; all 54 expanded take 3.8 GB, packed 0.5 GB."""

TOPICAL_WORDS: Mapping[str, frozenset[str]] = {
    "en": frozenset(
        [
            "bill",
            "computer",
            "fire",
            "information",
            "internet",
            "invention",
            "microsoft",
            "mill",
            "netscape",
            "novel",
            "research",
            "ring",
            "room",
            "shell",
            "system",
            "web",
            "world",
        ]
    )
}
"""Nouns that a stop-word list has because they were frequent in the texts it was made from; they are topics."""

TOKEN_CHARACTERS = r"\p{L}\p{M}\p{N}'\x{2019}\x{AD}\x{200C}\x{200D}\x{2060}"
_SEPARATORS = rf"[^{TOKEN_CHARACTERS}]+"
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# Soft hyphen, joiners, Arabic elongation and vowel signs, Hebrew points: the same word is written with and without.
_INVISIBLE = (
    r"[\x{AD}\x{200C}\x{200D}\x{2060}\x{640}\x{64B}-\x{65F}\x{670}"
    r"\x{591}-\x{5BD}\x{5BF}\x{5C1}\x{5C2}\x{5C4}\x{5C5}\x{5C7}]"
)
_APOSTROPHES = r"[\x{2019}\x{2BC}]"
# NFKC takes the vowel sign AM apart, which the dictionaries of ICU write as one character.
_VOWEL_AM = (("\u0e4d\u0e32", "\u0e33"), ("\u0ecd\u0eb2", "\u0eb3"))

_APOSTROPHE_IS_LETTER = frozenset(["be", "br", "he", "uk", "uz"])
_APOSTROPHE_ENDS_STEM = frozenset(["az", "tr"])
_DOTLESS_I = frozenset(["az", "tr"])
_STANDS_ALONE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]")
# No letter of a token is one of these, so a lemma that has one would never meet a token ("1990s": "nineteen-nineties").
_JOINTS = frozenset(" -./\u00b7")

# Bytes of a run: ASCII letters, digits and the apostrophe, and every byte of a character outside ASCII.
_IN_RUN = np.array([byte >= 0x80 or chr(byte).isalnum() or chr(byte) == "'" for byte in range(256)], dtype=np.bool_)

_LEMMA_LANGUAGES = {"bs": "hbs", "hr": "hbs", "no": "nb", "sh": "hbs", "sr": "hbs"}
_STOP_WORD_LANGUAGES = {"bs": "hr", "nb": "no", "nn": "no", "sh": "hr"}
_SCRIPT_LANGUAGES = (
    (re.compile("[\u3040-\u30ff\u31f0-\u31ff]"), ("ja",)),
    (re.compile("[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), ("zh", "ja", "ko")),
    (re.compile("[\u0e00-\u0e7f]"), ("th",)),
    (re.compile("[\u0e80-\u0eff]"), ("lo",)),
    (re.compile("[\u1780-\u17ff]"), ("km",)),
    (re.compile("[\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f]"), ("my",)),
)


@dataclass(frozen=True)
class LemmaCounts:
    """How often each lemma occurs in each text; rows are sorted by document, then lemma.

    Attributes:
        document: position of the text, int64[n], ascending.
        lemma: position in `lemmas`, int32[n], ascending within a document.
        count: number of occurrences, int32[n], positive.
        lemmas: the distinct lemmas, string[v], ascending by code points.
    """

    document: Int64s
    lemma: Int32s
    count: Int32s
    lemmas: pa.StringArray


def lemma_counts(
    texts: pa.Array | pa.ChunkedArray,
    languages: pa.Array | pa.ChunkedArray | None = None,
    *,
    fallback: str = DEFAULT_LANGUAGE,
    nouns: bool = False,
    batch_bytes: int = BATCH_BYTES,
) -> LemmaCounts:
    """Counts the lemmas of texts.

    Args:
        texts: string or large_string array of length n; a null is a text without words.
        languages: a language tag for each text, string[n]; where it is null or names no language, and where the whole
            argument is None, the language is detected (see `text_languages`).
        fallback: language of texts that are too short for detection or in no known language.
        nouns: whether only nouns count, in languages with a model (`nouns.MODELS`).
        batch_bytes: UTF-8 bytes handled at a time; changes memory and time, never the result.

    Raises:
        ValueError: `languages` has another length than `texts`.
    """
    texts = column_array(texts).cast(pa.large_string())
    codes = text_languages(texts, languages, fallback=fallback)
    parts = [
        _count(members, words)
        for language, rows in _rows_by_language(codes)
        for members, words in _batches(texts, rows, _Wording(language, nouns), batch_bytes)
    ]
    return _merge(parts)


def lemmas_of(
    strings: pa.Array | pa.ChunkedArray,
    languages: pa.Array | pa.ChunkedArray | None = None,
    *,
    fallback: str = DEFAULT_LANGUAGE,
    nouns: bool = False,
    batch_bytes: int = BATCH_BYTES,
) -> pa.ListArray:
    """The lemmas of short strings (queries, anchor texts, words of an address), in their order, with repetitions.

    Args:
        strings: string or large_string array of length n; a null has no lemmas.
        languages: a language tag for each string, string[n], or None.
        fallback: language where none is given; nothing is detected, as short strings are too ambiguous.
        nouns: whether only nouns count, in languages with a model (`nouns.MODELS`).
        batch_bytes: UTF-8 bytes handled at a time; changes memory and time, never the result.

    Returns:
        list<string>[n] without nulls.

    Raises:
        ValueError: `languages` has another length than `strings`.
    """
    strings = column_array(strings).cast(pa.large_string())
    codes = _given_languages(len(strings), languages).fill_null(_fallback_code(fallback))
    order: list[Int64s] = []
    lists: list[pa.ListArray] = []
    for language, rows in _rows_by_language(codes):
        for members, words in _batches(strings, rows, _Wording(language, nouns), batch_bytes):
            order.append(members)
            lists.append(list_column(words.vocabulary.take(pa.array(words.word)), words.indptr))
    if len(lists) == 1:
        return lists[0]
    joined = pa.concat_arrays(lists or [pa.array([], type=pa.list_(pa.string()))])
    back = np.argsort(np.concatenate(order), kind="stable") if order else np.zeros(0, dtype=np.int64)
    return joined.take(pa.array(back))


def text_languages(
    texts: pa.Array | pa.ChunkedArray,
    languages: pa.Array | pa.ChunkedArray | None = None,
    *,
    fallback: str = DEFAULT_LANGUAGE,
) -> pa.StringArray:
    """The language of each text: the one given, else the one detected, else `fallback`.

    Args:
        texts: string or large_string array of length n.
        languages: a language tag for each text, string[n], or None.
        fallback: language of texts shorter than `MIN_DETECTED_CHARACTERS` and of those that resemble no known language.

    Returns:
        Language codes as `language_code` makes them, string[n] without nulls.

    Raises:
        ValueError: `languages` has another length than `texts`.
    """
    texts = column_array(texts).cast(pa.large_string())
    codes = _given_languages(len(texts), languages)
    long_enough = pc.greater_equal(pc.utf8_length(texts), MIN_DETECTED_CHARACTERS).fill_null(False)
    unknown = pc.and_(pc.is_null(codes), long_enough)
    heads = pc.utf8_slice_codeunits(texts.filter(unknown), 0, MAX_DETECTED_CHARACTERS)
    # One string at a time, since the longest texts of a table together may be large.
    detected = [language_code(detect_fast(head.as_py())[0]) for head in heads]
    codes = pc.replace_with_mask(codes, unknown, pa.array(detected, type=pa.string()))
    return codes.fill_null(_fallback_code(fallback))


class _Wording(NamedTuple):
    """How a text is read: its language, and whether only nouns count."""

    language: str
    nouns: bool


@dataclass(frozen=True)
class _Words:
    """Words of texts as CSR: `vocabulary[word[indptr[i]:indptr[i + 1]]]` are those of text i."""

    indptr: Int64s
    word: Int64s
    vocabulary: pa.StringArray


class _Dictionaries(DictionaryFactory):
    """Lemma dictionaries, each loaded once: from the user's cache, or else small ones expanded, large ones packed."""

    def __init__(self) -> None:
        self._loaded: dict[str, Mapping[str, str]] = {}

    def get_dictionary(self, lang: str) -> Mapping[str, str]:
        """The dictionary of a supported language; see the protocol."""
        loaded = self._loaded.get(lang)
        if loaded is None:
            loaded = self._loaded[lang] = cached_dictionary(lang) or _unpacked(lang)
        return loaded


def _unpacked(language: str) -> Mapping[str, str]:
    small = (DATA_FOLDER / f"{language}.plzma").stat().st_size <= EXPANDED_DICTIONARY_BYTES
    return (DefaultDictionaryFactory() if small else StreamDictionaryFactory()).get_dictionary(language)


def _fallback_code(fallback: str) -> str:
    return language_code(fallback) or "und"


def _given_languages(length: int, languages: pa.Array | pa.ChunkedArray | None) -> pa.StringArray:
    """Codes of the given tags, null where there is none."""
    if languages is None:
        return pa.nulls(length, pa.string())
    if len(languages) != length:
        raise ValueError(f"found {len(languages)} languages for {length} texts, expected one for each")
    encoded = column_array(languages).cast(pa.string()).dictionary_encode()
    codes = pa.array([language_code(tag) for tag in encoded.dictionary.to_pylist()], type=pa.string())
    return codes.take(encoded.indices)


def _rows_by_language(codes: pa.StringArray) -> Iterator[tuple[str, Int64s]]:
    """(language, positions of its texts), languages ascending."""
    encoded = codes.dictionary_encode()
    numbers = encoded.indices.to_numpy()
    for language, number in sorted(
        (language, number) for number, language in enumerate(encoded.dictionary.to_pylist())
    ):
        yield language, np.flatnonzero(numbers == number).astype(np.int64)


def _batches(
    texts: pa.LargeStringArray, rows: Int64s, wording: _Wording, batch_bytes: int
) -> Iterator[tuple[Int64s, _Words]]:
    """Words of the texts at `rows`, all of one language: (rows of a batch, their words)."""
    sizes = int64s(pc.binary_length(texts).fill_null(0))[rows]
    batch = (np.cumsum(sizes) - sizes) // batch_bytes
    starts = np.flatnonzero(np.diff(batch, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        members = rows[start:end]
        yield members, _words(texts.take(pa.array(members)), wording)


def _words(texts: pa.LargeStringArray, wording: _Wording) -> _Words:
    if wording.language in _DOTLESS_I:
        texts = pc.replace_substring(pc.replace_substring(texts, "I", "ı"), "İ", "i")
    text_indptr, runs = _runs(pc.utf8_lower(texts.fill_null("")))
    tokens = runs.dictionary_encode()
    indptr, words = _words_of_tokens(tokens.dictionary, wording)
    encoded = words.dictionary_encode()

    token = int64s(tokens.indices)
    lengths = np.diff(indptr)[token]
    _, place = ragged(indptr[token], lengths)
    return _Words(
        indptr=pointers(lengths)[text_indptr],
        word=int64s(encoded.indices)[place],
        vocabulary=encoded.dictionary,
    )


def _runs(texts: pa.LargeStringArray) -> tuple[Int64s, pa.LargeStringArray]:
    """Longest runs without ASCII separators as CSR pointers int64[n + 1] and values.

    Looking bytes up in a table takes a third of the time of a regular expression, and separators outside ASCII, which
    every byte of is taken for a letter here, are left to the distinct runs.
    """
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin, end = int(offsets[0]), int(offsets[-1])
    if begin == end:
        return np.zeros(len(texts) + 1, dtype=np.int64), pa.array([], type=pa.large_string())
    inside = _IN_RUN[np.frombuffer(data_buffer, dtype=np.uint8)[begin:end]]
    bounds = np.empty(len(inside) + 1, dtype=np.bool_)
    bounds[1:-1] = inside[1:] != inside[:-1]
    bounds[offsets - begin] = True
    places = np.flatnonzero(bounds).astype(np.int64)
    is_run = inside[places[:-1]]
    pieces = pa.LargeStringArray.from_buffers(len(places) - 1, pa.py_buffer(places + begin), data_buffer)
    runs_before = pointers(is_run.astype(np.int64))
    return runs_before[np.searchsorted(places, offsets - begin)], pieces.filter(pa.array(is_run))


def _words_of_tokens(tokens: pa.LargeStringArray, wording: _Wording) -> tuple[Int64s, pa.StringArray]:
    """Words of distinct runs as CSR pointers int64[n + 1] and values."""
    texts = tokens.to_pylist()
    known = _known_tokens.of(wording)
    new = [text for text in texts if text not in known]
    read = dict(zip(new, _read_tokens(pa.array(new, type=pa.large_string()), wording), strict=True))
    known.update((text, words) for text, words in read.items() if len(text) <= MAX_WORD_CHARACTERS)
    found = [read[text] if text in read else known[text] for text in texts]
    lengths = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
    return pointers(lengths), pa.array(chain.from_iterable(found), type=pa.string())


class _KnownTokens:
    """Words of runs that a process has read, by wording: most runs of a batch also occur in earlier ones."""

    def __init__(self) -> None:
        self._known: dict[_Wording, dict[str, tuple[str, ...]]] = {}

    def of(self, wording: _Wording) -> dict[str, tuple[str, ...]]:
        """The words by run. A caller's dictionary stays whole, as other threads may replace it, but never shrink it."""
        if sum(map(len, self._known.values())) > CACHED_TOKENS:
            self._known = {}
        return self._known.setdefault(wording, {})


_known_tokens = _KnownTokens()


def _read_tokens(tokens: pa.LargeStringArray, wording: _Wording) -> Iterator[tuple[str, ...]]:
    """Words of each run."""
    # Separators go first, since folding would make letters of some (a trade mark's sign), and once more afterwards,
    # since folding brings others to light (a fraction's bar).
    parted = pc.replace_substring_regex(tokens, _SEPARATORS, " ")
    lists = pc.split_pattern_regex(_fold(parted), _SEPARATORS)
    flat = lists.flatten()
    unspaced = pc.match_substring_regex(flat, _UNSPACED)
    segments = _segment(flat.filter(unspaced), wording.language)
    pieces = zip(flat.to_pylist(), unspaced.to_pylist(), strict=True)
    for count in np.diff(int64s(lists.offsets)).tolist():
        words: list[str] = []
        for piece, is_run in islice(pieces, count):
            if is_run:
                for segment in next(segments):
                    language = _script_language(segment, wording.language)
                    words.extend(_segment_words(segment, language, wording.nouns))
            else:
                words.extend(_token_words(piece, *wording))
        yield tuple(words)


def _fold(strings: pa.Array) -> pa.Array:
    """One spelling for strings that readers take for the same."""
    # Arrow's own normalisation to NFKC leaves letters and marks apart (seen in 25.0), so Python's does it.
    other = pc.invert(pc.string_is_ascii(strings))
    composed = [unicodedata.normalize("NFKC", text) for text in strings.filter(other).to_pylist()]
    folded = pc.utf8_lower(pc.replace_with_mask(strings, other, pa.array(composed, type=strings.type)))
    folded = pc.replace_substring_regex(folded, _INVISIBLE, "")
    folded = pc.replace_substring_regex(folded, _APOSTROPHES, "'")
    for parted, whole in _VOWEL_AM:
        folded = pc.replace_substring(folded, parted, whole)
    return folded


def _segment(runs: pa.Array, language: str) -> Iterator[list[str]]:
    """ICU's words of each run of text without spaces; all runs go through one breaker, which is dear to make."""
    if not len(runs):
        return
    segments: list[str] = []
    # A line end is a boundary to every dictionary, and no token has one.
    for segment in WordBreaker("\n".join(runs.to_pylist()), language):
        if segment == "\n":
            yield segments
            segments = []
        else:
            segments.append(segment)
    yield segments


def _script_language(segment: str, language: str) -> str:
    """The language whose stop words and lemmas suit a segment's script: the text's own where it uses that script."""
    for script, candidates in _SCRIPT_LANGUAGES:
        if script.search(segment) is not None:
            return language if language in candidates else candidates[0]
    return language


@lru_cache(maxsize=CACHED_TOKENS)
def _segment_words(segment: str, language: str, nouns: bool) -> tuple[str, ...]:
    """`_token_words` of a segment of a run, which is a word that occurs in many runs."""
    return _token_words(segment, language, nouns)


def _token_words(token: str, language: str, nouns: bool) -> tuple[str, ...]:
    """Words of a folded token; more than one only where an apostrophe joins them."""
    token = token.strip("'")
    while token and unicodedata.category(token[0])[0] == "M":
        token = token[1:]
    if token in _stop_words(language):
        return ()
    parts = [token]
    if "'" in token and language not in _APOSTROPHE_IS_LETTER:
        # simplemma has clitics ("user's", "l'eau") and words that are written with an apostrophe ("aujourd'hui").
        lemma = _lemma(token, language)
        if lemma is not None:
            return (lemma,) if _is_word(lemma, language) and (not nouns or is_noun(lemma, language)) else ()
        parts = token.split("'", maxsplit=1)[:1] if language in _APOSTROPHE_ENDS_STEM else token.split("'")
    return tuple(word for part in parts if (word := _word(part, language)) and (not nouns or is_noun(part, language)))


def _word(token: str, language: str) -> str | None:
    """The lemma of a token without apostrophes, the token itself where none is known, None where it is no word."""
    if token.endswith("σ"):
        token = token[:-1] + "ς"
    if not _is_word(token, language):
        return None
    lemma = _lemma(token, language)
    if lemma is None:
        return token
    return lemma if _is_word(lemma, language) else None


def _is_word(token: str, language: str) -> bool:
    if not 0 < len(token) <= MAX_WORD_CHARACTERS or token in _stop_words(language):
        return False
    if len(token) == 1:
        return _STANDS_ALONE.match(token) is not None
    return not all(unicodedata.category(character)[0] == "N" for character in token)


def _lemma(token: str, language: str) -> str | None:
    code = _LEMMA_LANGUAGES.get(language, language)
    if code not in SUPPORTED_LANGUAGES or len(token) > MAX_WORD_CHARACTERS or unicodedata.category(token[0])[0] == "N":
        return None
    lemma = _lemma_strategy().get_lemma(token, code)
    if lemma is None:
        return None
    if language in _DOTLESS_I:
        lemma = lemma.replace("I", "ı").replace("İ", "i")
    lemma = unicodedata.normalize("NFKC", lemma.lower())
    return lemma if lemma and _JOINTS.isdisjoint(lemma) else None


@cache
def _lemma_strategy() -> DefaultStrategy:
    return DefaultStrategy(dictionary_factory=_Dictionaries())


@cache
def _stop_words(language: str) -> frozenset[str]:
    listed = stopwordsiso.stopwords(_STOP_WORD_LANGUAGES.get(language, language))
    folded = _fold(pa.array(sorted(listed), type=pa.string())).to_pylist()
    return frozenset(folded) - TOPICAL_WORDS.get(language, frozenset())


def _count(rows: Int64s, words: _Words) -> LemmaCounts:
    """Counts of one batch; `rows` are the positions of its texts, ascending."""
    order = pc.array_sort_indices(words.vocabulary)
    rank = np.empty(len(order), dtype=np.int64)
    rank[int64s(order)] = np.arange(len(order))
    owner = entry_rows(words.indptr)
    keys, count = np.unique(owner * max(len(order), 1) + rank[words.word], return_counts=True)
    owner, lemma = np.divmod(keys, max(len(order), 1))
    return LemmaCounts(rows[owner], lemma.astype(np.int32), count.astype(np.int32), words.vocabulary.take(order))


def _merge(parts: list[LemmaCounts]) -> LemmaCounts:
    """Counts of all batches over one sorted vocabulary; no document is in two batches."""
    if len(parts) == 1:
        return parts[0]
    together = pa.concat_arrays([pa.array([], type=pa.string()), *(part.lemmas for part in parts)]).dictionary_encode()
    order = pc.array_sort_indices(together.dictionary)
    rank = np.empty(len(order), dtype=np.int32)
    rank[int64s(order)] = np.arange(len(order), dtype=np.int32)
    numbers = rank[together.indices.to_numpy()]
    starts = pointers(np.array([len(part.lemmas) for part in parts], dtype=np.int64))
    empty = np.zeros(0, dtype=np.int32)
    document = np.concatenate([empty.astype(np.int64), *(part.document for part in parts)])
    lemma = np.concatenate([empty, *(numbers[start + part.lemma] for start, part in zip(starts, parts, strict=False))])
    count = np.concatenate([empty, *(part.count for part in parts)])
    if (np.diff(document) < 0).any():
        by_document = np.argsort(document, kind="stable")
        document, lemma, count = document[by_document], lemma[by_document], count[by_document]
    return LemmaCounts(document, lemma, count, together.dictionary.take(order))
