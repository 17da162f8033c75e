"""Lines of text that hold one JSON object each, from streams that may be compressed, cut or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from semrank.transforms.streams.batch import DEFAULT_MAX_RECORD_BYTES, MAX_REJECT_CHARS
from semrank.transforms.streams.lines import RECORD_TOO_LARGE, blocks
from semrank.transforms.streams.texts import well_formed

BLOCK_BYTES = 1 << 20
"""Bytes of lines that are split at once."""

_EXACT_FLOATS = 2.0**53  # beyond, a float64 is no exact integer
_STATUS_DIGITS = 3


JSON_INVALID = "json-invalid"
"""Why what should be JSON is rejected, in every format."""

NO_OBJECT = "not-an-object"
"""Why JSON of another kind is."""


BRACKETS = frozenset({b"[", b"]"})
"""Lines before and behind the objects of an array that has one a line."""


class Line(NamedTuple):
    """A line without its end, or the beginning of one that can't be used.

    Attributes:
        data: the bytes.
        problem: record-too-large or record-truncated; None if there is none.
    """

    data: bytes
    problem: str | None


def read_lines(stream: BinaryIO, max_line_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> Iterator[Line]:
    """The lines of a stream, except empty ones; gzip, bzip2 and Zstandard are recognized by the first bytes.

    The last line of a compressed stream that breaks off is yielded as record-truncated.
    """
    for block in blocks(stream, block_bytes=BLOCK_BYTES, max_line_bytes=max_line_bytes):
        for line in block.data.split(b"\n"):
            if len(line) > max_line_bytes:
                yield Line(line[:MAX_REJECT_CHARS], RECORD_TOO_LARGE)
            elif line.strip():
                yield Line(line, None)
        for reason, piece in block.damaged:
            yield Line(piece[:MAX_REJECT_CHARS], reason)


def parse_json(text: bytes | str) -> Any:
    """A value of JSON, also with what Python's and other writers add to the standard: NaN, halves of surrogate pairs.

    The halves in bytes become U+FFFD. Text keeps them: they may stand for bytes ("surrogateescape").

    Raises:
        ValueError: it is none, or nested too deeply.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            if isinstance(text, str):
                return json.loads(text)
            value = json.loads(text.decode("utf-8"))
            written = json.dumps(value, ensure_ascii=False)
            whole = well_formed(written)
            return value if whole == written else json.loads(whole)
        except RecursionError as cause:
            raise ValueError("found values nested too deeply") from cause


def parse_object(line: bytes | str) -> dict[str, Any] | str:
    """The JSON object of a line, or the reason (json-invalid, not-an-object) why it holds none."""
    try:
        value = parse_json(line)
    except ValueError:
        return JSON_INVALID
    return value if isinstance(value, dict) else NO_OBJECT


def parse_objects(line: bytes) -> list[dict[str, Any]] | str:
    """The JSON object of a line, or those of an array of nothing else; or the reason why there is none."""
    try:
        value = parse_json(line)
    except ValueError:
        return JSON_INVALID
    objects = value if isinstance(value, list) else [value]
    return objects if objects and all(isinstance(item, dict) for item in objects) else NO_OBJECT


def without_comma(line: bytes) -> bytes:
    """A line without white space around it, and without the comma that parts the objects of an array."""
    return line.strip().removesuffix(b",")


def whole_number(value: Any) -> int | None:
    """A number of JSON as an integer, `200.0` as well as `200`; None where it is none, or not exact as a float."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT_FLOATS else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def status_code(value: Any) -> int | None:
    """An HTTP status, a number or its digits; None where it is none."""
    if isinstance(value, str) and value.isascii() and value.strip().isdigit():
        value = int(value) if len(value.strip()) == _STATUS_DIGITS else None
    number = whole_number(value)
    return number if number is not None and len(str(number)) == _STATUS_DIGITS and number > 0 else None
