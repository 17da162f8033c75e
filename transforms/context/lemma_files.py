"""Lemma dictionaries as files that processes read by memory map, without unpacking them.

A file is made once from simplemma's dictionary of a language, in the user's cache folder:

    magic, number of entries n | n hashes of keys, ascending | n + 1 positions in what follows | entries

Numbers are 64 bits, little-endian; an entry is its key, a zero byte, and its lemma, both UTF-8.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import simplemma
import xxhash
from simplemma.strategies.dictionaries import DefaultDictionaryFactory
from simplemma.strategies.dictionaries.dictionary_factory import DecodedStrMapping

MAGIC = b"lemmas 1"

_HEADER = 16


class MappedDictionary(DecodedStrMapping):
    """The dictionary in a file.

    Raises:
        ValueError: the file is not a whole one of this format.
        OSError: the file can't be read.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as stream:
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._count = int.from_bytes(self._bytes[8:_HEADER], "little") if self._bytes[:8] == MAGIC else -1
        self._begin = _HEADER + 8 * (2 * self._count + 1)
        if self._count < 0 or len(self._bytes) < self._begin:
            raise ValueError(f"{path}: not a whole file of lemmas")
        numbers = memoryview(self._bytes)[_HEADER : self._begin].cast("Q")
        self._hashes, self._starts = numbers[: self._count], numbers[self._count :]
        if self._begin + self._starts[self._count] != len(self._bytes):
            raise ValueError(f"{path}: not a whole file of lemmas")

    def _lookup(self, key: str) -> str | None:
        sought = key.encode()
        code = xxhash.xxh3_64_intdigest(sought)
        position = bisect_left(self._hashes, code)
        while position < self._count and self._hashes[position] == code:
            found, lemma = self._entry(position)
            if found == sought:
                return lemma.decode()
            position += 1
        return None

    def _entry(self, position: int) -> tuple[bytes, bytes]:
        entry = self._bytes[self._begin + self._starts[position] : self._begin + self._starts[position + 1]]
        key, _, lemma = entry.partition(b"\0")
        return key, lemma

    def __iter__(self) -> Iterator[str]:
        return (self._entry(position)[0].decode() for position in range(self._count))

    def __len__(self) -> int:
        return self._count


def cached_dictionary(language: str) -> MappedDictionary | None:
    """The dictionary of a supported language; it is written where it is not there yet.

    Returns:
        The dictionary, or None where the user's cache folder can't be used.
    """
    path = cache_folder() / f"lemmas-{simplemma.__version__}-{language}"
    with suppress(OSError, ValueError):
        return MappedDictionary(path)
    with suppress(OSError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_dictionary(path, DefaultDictionaryFactory().get_dictionary(language))
        return MappedDictionary(path)
    return None


def cache_folder() -> Path:
    """The folder for what can be made again, as the XDG base directory specification has it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "semrank"


def write_dictionary(path: Path, dictionary: Mapping[str, str]) -> None:
    """Writes a dictionary's file, which appears whole or not at all, also where several processes write it.

    Args:
        path: the file.
        dictionary: lemmas by word.

    Raises:
        OSError: the file can't be written.
    """
    words = list(dictionary)
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, map(str.encode, words)), dtype="<u8", count=len(words))
    order = np.argsort(hashes, kind="stable")
    columns = [pa.array(texts, pa.large_string()) for texts in (words, map(dictionary.get, words))]
    entries = pc.binary_join_element_wise(*columns, pa.scalar("\0", pa.large_string())).take(pa.array(order))
    _, starts, content = entries.buffers()
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(MAGIC + len(words).to_bytes(8, "little"))
            stream.writelines((hashes[order].tobytes(), starts, content))
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink()
        raise
