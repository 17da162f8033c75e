"""Words of click logs."""

from __future__ import annotations

import pyarrow as pa

from semrank.transforms.columnar.ids import text_ids

WORDS = ["a", "b", "c", "ä"]


def split_words(texts: pa.Array) -> pa.ListArray:
    """The letters of a text that are words, repeated as they stand."""
    return pa.array(
        [[letter for letter in text if letter in WORDS] for text in texts.to_pylist()], pa.list_(pa.string())
    )


def number(text: str) -> int:
    return int(text_ids(pa.array([text]))[0])
