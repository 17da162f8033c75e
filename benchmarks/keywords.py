"""Words of English articles with their counts, against a plain loop: regular expression, cached simplemma, Counter.

The articles are generated: words of simplemma's own English dictionary and stop words, drawn by a power law, with
possessives, capitals, numbers and punctuation. Both sides begin with the same strings and have to count the same.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import simplemma
import stopwordsiso
from simplemma.strategies.dictionaries import DefaultDictionaryFactory

from benchmarks.harness import Result, interleaved
from semrank.transforms.context.words import TOPICAL_WORDS, lemma_counts

ARTICLES = 500
QUICK_ARTICLES = 40
WORDS_PER_ARTICLE = 3_300
"""As in an encyclopedia's article."""

EXPONENT = 1.2
"""Of the power law by which words are drawn; makes about as many distinct words as 500 articles of an encyclopedia."""

REPEATS = 3
AIM = 1.0

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_STOP_WORDS = frozenset(stopwordsiso.stopwords("en")) - TOPICAL_WORDS["en"]


def articles(count: int) -> list[str]:
    """Generated articles, the same each time."""
    random = np.random.default_rng(4598)
    known = (word for word in DefaultDictionaryFactory().get_dictionary("en") if word.isascii() and word.isalpha())
    content = np.array(sorted({word.lower() for word in known} - _STOP_WORDS))
    random.shuffle(content)
    function = sorted(word for word in _STOP_WORDS if word.isascii() and word.isalpha())
    words = np.concatenate([random.permuted(np.array(function))[:150], content])
    chances = 1 / np.arange(1, len(words) + 1) ** EXPONENT
    drawn = random.choice(words, size=(count, WORDS_PER_ARTICLE), p=chances / chances.sum())
    endings = random.choice(
        np.array(["", "'s", ",", ". The", " 1987"]), size=drawn.shape, p=[0.82, 0.02, 0.08, 0.06, 0.02]
    )
    return [" ".join(row) for row in np.strings.add(drawn, endings).tolist()]


def write_articles(path: Path, count: int) -> None:
    """Writes articles as a Parquet file with a column `text`."""
    pq.write_table(pa.table({"text": articles(count)}), path)


def count_in_batches(path: Path) -> int:
    """Ours: counts the lemmas of the articles; gives the number of (article, lemma)."""
    texts = pq.read_table(path)["text"]
    return len(lemma_counts(texts, pa.array(["en"] * len(texts))).count)


def count_in_a_loop(path: Path) -> int:
    """The peer: counts the lemmas of the articles one by one; gives the number of (article, lemma)."""
    return sum(map(len, plain_counts(pq.read_table(path)["text"].to_pylist())))


@cache
def _plain_lemma(token: str) -> str | None:
    if len(token) == 1 or token.isnumeric() or token in _STOP_WORDS:
        return None
    lemma = simplemma.lemmatize(token.removesuffix("'s"), "en").lower()
    if "-" in lemma or "." in lemma:
        return token
    return None if lemma in _STOP_WORDS or len(lemma) == 1 else lemma


def plain_counts(texts: list[str]) -> list[Counter[str]]:
    """Counts of the lemmas of each text, as one would write it first."""
    counts = []
    for text in texts:
        lemmas = (_plain_lemma(token) for token in _TOKEN.findall(text.lower()))
        counts.append(Counter(lemma for lemma in lemmas if lemma is not None))
    return counts


def differences(texts: list[str]) -> int:
    """Number of (article, lemma) whose counts are not the same on both sides."""
    ours: list[Counter[str]] = [Counter() for _ in texts]
    found = lemma_counts(pa.array(texts), pa.array(["en"] * len(texts)))
    lemmas = found.lemmas.take(pa.array(found.lemma)).to_pylist()
    for document, lemma, count in zip(found.document.tolist(), lemmas, found.count.tolist(), strict=True):
        ours[document][lemma] = count
    return sum(len(set(a.items()) ^ set(b.items())) for a, b in zip(ours, plain_counts(texts), strict=True))


def run(*, quick: bool = False) -> list[Result]:
    """Runs the comparison.

    Raises:
        RuntimeError: the two sides count differently.
    """
    count = QUICK_ARTICLES if quick else ARTICLES
    different = differences(articles(QUICK_ARTICLES))
    if different:
        raise RuntimeError(f"{different} counts of lemmas differ between ours and the loop, expected none")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "articles.parquet"
        write_articles(path, count)
        ours, peer = interleaved(
            [partial(count_in_batches, path), partial(count_in_a_loop, path)], 1 if quick else REPEATS
        )
    note = f"{count} articles of {WORDS_PER_ARTICLE:,} words, {ours.value:,} counts, dictionary loaded within"
    return [ours.against(peer, "keywords", "simplemma in a loop", AIM, note, {"counts": ours.value})]
