"""Texts as sequences of tokens with their places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Int64s, bools, entry_rows, int64s, list_parts, pointers, ragged
from semrank.transforms.context.words import TOKEN_CHARACTERS, lemmas_of

_BETWEEN_TOKENS = rf"[^{TOKEN_CHARACTERS}]+"


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts as sequences of tokens: words, and between them what is no word, as are stop words and numbers.

    Attributes:
        indptr: where each text's tokens begin and end, int64[n + 1].
        token: number of each token, int64[indptr[-1]]; equal in all texts where the tokens are.
        words: the distinct words, string[w]; a token whose number is below w is that word, any other is no word.
    """

    indptr: Int64s
    token: Int64s
    words: pa.Array


def tokens_of(texts: pa.Array, languages: pa.Array, language: str, *, nouns: bool = False) -> Tokens:
    """The tokens of texts in their order.

    Longest runs of letters, marks, digits and apostrophes are tokens; where a run has several words (scripts without
    spaces, words that an apostrophe joins) each word is one.

    Args:
        texts: string[n] or large_string[n]; a null has no tokens.
        languages: language of each text, string[n]; null for the fallback.
        language: the fallback.
        nouns: whether only nouns are words; see `words.lemma_counts`.
    """
    indptr, runs = list_parts(pc.split_pattern_regex(texts.cast(pa.large_string()), _BETWEEN_TOKENS))
    filled = bools(pc.not_equal(runs, ""))
    owner = entry_rows(indptr)[filled]
    run_codes = runs.filter(pa.array(filled)).dictionary_encode()
    language_codes = languages.fill_null(language).dictionary_encode()
    spread = max(len(language_codes.dictionary), 1)
    codes = int64s(run_codes.indices) * spread + int64s(language_codes.indices)[owner]
    kinds, kind = np.unique(codes, return_inverse=True)
    run = run_codes.dictionary.take(pa.array(kinds // spread))
    # Stop words are recognised by their lower-case spelling, words by their lemma.
    given = language_codes.dictionary.take(pa.array(kinds % spread))
    lemma_indptr, lemmas = list_parts(lemmas_of(run, given, fallback=language, nouns=nouns))
    lemma_codes = lemmas.cast(pa.string()).dictionary_encode()
    words = lemma_codes.dictionary
    wordless = np.diff(lemma_indptr) == 0
    other_codes = pc.utf8_lower(run.filter(pa.array(wordless))).dictionary_encode()

    lengths = np.maximum(np.diff(lemma_indptr), 1)
    first = pointers(lengths)[:-1]
    numbers = np.zeros(int(lengths.sum()), dtype=np.int64)
    is_word = np.repeat(~wordless, lengths)
    numbers[is_word] = int64s(lemma_codes.indices)
    numbers[~is_word] = len(words) + int64s(other_codes.indices)
    _, place = ragged(first[kind], lengths[kind])
    per_text = np.bincount(owner, weights=lengths[kind], minlength=len(texts)).astype(np.int64)
    return Tokens(pointers(per_text), numbers[place], words)
