"""Decodes bytes of unknown encoding."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

MEMO_ENTRIES = 1 << 17
"""Distinct values whose result a reader keeps: some tens of MiB, and logs name their common pages again and again."""


class Memo:
    """Rows that a function makes of byte strings, kept until there are `MEMO_ENTRIES`, then forgotten all at once.

    Args:
        function: makes a row of each of some distinct values, a table of their number.
    """

    def __init__(self, function: Callable[[pa.BinaryArray], pa.Table]) -> None:
        self._function = function
        self._rows: pa.Table | None = None
        self._places: dict[bytes, int] = {}

    def rows(self, values: pa.BinaryArray) -> pa.Table:
        """The row of each value, table of length n; each distinct value is worked on once."""
        encoded = values.dictionary_encode()
        distinct = encoded.dictionary
        keys = distinct.to_pylist()
        places = list(map(self._places.get, keys))
        if self._rows is None or None in places:
            if len(self._places) + len(keys) > MEMO_ENTRIES:
                self._places, self._rows = {}, None
            new = [place for place, key in enumerate(keys) if key not in self._places]
            known = len(self._places)
            self._places.update((keys[place], known + number) for number, place in enumerate(new))
            rows = self._function(distinct.take(pa.array(new, pa.int64())))
            self._rows = rows if self._rows is None else pa.concat_tables([self._rows, rows]).combine_chunks()
            places = list(map(self._places.__getitem__, keys))
        return self._rows.take(pa.array(places, pa.int64()).take(encoded.indices))


def utf8_or(fallback: str) -> Callable[[bytes], str]:
    """A decoder: UTF-8 where the bytes are that, else `fallback`; what fits neither becomes U+FFFD."""

    def decode(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode(fallback, "replace")

    return decode


western = utf8_or("windows-1252")


def chinese(value: bytes) -> str:
    """GB 18030 (which holds GBK and GB 2312) or UTF-8.

    Short GBK words can be UTF-8 by chance, but then of two-byte characters only (Latin, Greek, Cyrillic, Arabic), and
    UTF-8 Chinese is GBK by chance about every other time. So it is UTF-8 if it is valid and has a character of
    three bytes or more.
    """
    if value.isascii():
        return value.decode("ascii")
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.decode("gb18030", "replace")
    return text if max(text) > "\u07ff" else value.decode("gb18030", "replace")


def decode(values: pa.BinaryArray, decoder: Callable[[bytes], str] = western) -> pa.StringArray:
    """A string array of byte strings; each distinct value that is not plain ASCII is decoded once."""
    plain = pc.match_substring_regex(values, r"^[\x00-\x7f]*$")
    if not len(values) or pc.all(plain).as_py():
        return values.cast(pa.string())
    encoded = values.dictionary_encode()
    texts = [None if value is None else decoder(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def escaped(value: bytes) -> str:
    """An address as logged, with each byte outside ASCII percent-encoded as it stands: what the browser had sent."""
    if value.isascii():
        return value.decode("ascii")
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in value)


def text_or_escapes(value: bytes) -> str:
    """UTF-8, or where it is none, ASCII with each other byte percent-encoded, so that an address stays the same."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return escaped(value)


def quotable(value: bytes) -> str:
    """Bytes as text for a reject row; what is no UTF-8 is shown as an escape."""
    return value.decode("utf-8", "backslashreplace")


def well_formed(text: str) -> str:
    """The text with every half of a surrogate pair replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
