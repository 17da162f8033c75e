"""The Wikipedia clickstream: prev, curr, type, n: how often readers went from one page to another within a month.

Only sums were published, so a bounded number of clicks is generated from each row. A row with a previous article stands
for k readers who each open `prev` and a second later `curr`; a row from a search engine (`other-search`) for k readers
who open `curr`. k is the number of digits of n, so a row that is ten times as frequent has one reader more, and a row
has at most 2 * `MAX_DIGITS` clicks. The words are the title of `curr`. Other rows have neither words nor a previous
page and are ignored ("no-source-page").

The wiki and the month come from the file's name, as in `clickstream-dewiki-2024-01.tsv.gz`; `--log-site` names another
site, and without either it is the English Wikipedia and January 1970. `NaN` and `null` are titles like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import quote_from_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import TIMESTAMP
from semrank.transforms.columnar.arrays import column_array, ragged
from semrank.transforms.logs.clicks import fields_of, tidy
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.records import read_blocks
from semrank.transforms.logs.rejections import Balance, Rejections, truths
from semrank.transforms.logs.users import subject_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.parameters import ParameterRules
from semrank.transforms.streams.quotes import quote_click_line
from semrank.transforms.streams.spans import TAB, Fields, Lines
from semrank.transforms.streams.texts import Memo, decode, quotable
from semrank.transforms.streams.times import MICROSECONDS, date_in_name, spaced_times
from semrank.transforms.streams.urls import canonicalize

FORMAT = "wikipedia-clickstream"

MAX_DIGITS = 18
"""Digits of a count that fits 64 bits."""

_PREVIOUS, _CURRENT, _TYPE, _COUNT = range(4)
_HEADER = (b"prev\tcurr\ttype\tn", b"prev_title\tcurr_title\ttype\tn")
_SEARCHES = pa.array([b"other-search", b"other-google", b"other-bing", b"other-yahoo"], pa.binary())
_ELSEWHERE = r"^other-[a-z]+$"
_WIKI = re.compile(r"(?:^|[^a-z])([a-z][a-z_]*)wiki(?![a-z])")
_DEFAULT_LANGUAGE = "en"
_SAFE = "/:@!$&'()*+,;=~-._"


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:
    """Clicks with the same sums; see `formats.Read`. With a key, the ids made here are hashed."""
    reader = _Reader(options.site or _site(source), date_in_name(source), options)
    return read_blocks(stream, FORMAT, reader.read_lines, quote_click_line)


def _site(source: str) -> str:
    name = source.replace("\\", "/").rpartition("/")[2]
    found = _WIKI.search(name)
    language = found[1].replace("_", "-") if found else _DEFAULT_LANGUAGE
    return f"https://{language}.wikipedia.org"


class _Reader:
    def __init__(self, site: str, date: str, options: LogOptions) -> None:
        self._salt = options.salt
        begin = spaced_times(pa.array([f"{date} 00:00:00".encode()], pa.binary()))
        self._begin = begin.cast(pa.int64())[0].as_py()
        self._pages = Memo(lambda titles: _pages(titles, site, options.rules))

    def read_lines(self, lines: Lines, balance: Balance) -> None:
        headers = np.array([lines.text(line) in _HEADER for line in range(len(lines))], dtype=np.bool_)
        balance.ignore("header", int(headers.sum()))
        fields = fields_of(lines.take(~headers), TAB, _COUNT + 1, balance, quote_click_line)
        if fields is not None:
            self._add(fields, balance)

    def _add(self, fields: Fields, balance: Balance) -> None:
        previous, current, count = fields.column(_PREVIOUS), fields.column(_CURRENT), fields.column(_COUNT)
        rejections = Rejections(len(fields))
        numbered = pc.match_substring_regex(count, rf"^0*[1-9][0-9]{{0,{MAX_DIGITS - 1}}}$")
        rejections.reject("count-invalid", ~truths(numbered))
        searched = truths(pc.is_in(previous, _SEARCHES))
        rejections.ignore("no-source-page", truths(pc.match_substring_regex(previous, _ELSEWHERE)) & ~searched)
        to = self._pages.rows(current)
        rejections.reject_each(column_array(to["reason"]))
        start = self._pages.rows(previous)
        rejections.reject_each(pc.if_else(pa.array(searched), None, column_array(start["reason"])))
        rows = np.flatnonzero(rejections.alive)
        digits = pc.binary_length(pc.ascii_ltrim(decode(count), "0")).to_numpy(zero_copy_only=False)
        row, copy = ragged(np.zeros(len(rows), dtype=np.int64), digits[rows].astype(np.int64))
        chosen = pa.array(rows[row])
        names = [decode(previous).take(chosen), decode(current).take(chosen), pa.array(copy).cast(pa.string())]
        readers = subject_ids(FORMAT, pc.binary_join_element_wise(*names, ">"), self._salt)
        words = column_array(to["words"]).take(chosen)
        walked = pa.array(~searched[rows][row])
        first = self._clicks(readers, words, column_array(start["url"]).take(chosen), 0)
        balance.add_clicks(first.filter(walked))
        balance.add_clicks(self._clicks(readers, words, column_array(to["url"]).take(chosen), 1))
        balance.settle(rejections, lambda record: quotable(fields.lines.text(record)))

    def _clicks(self, readers: pa.StringArray, words: pa.StringArray, urls: pa.StringArray, second: int) -> pa.Table:
        at = pa.repeat(pa.scalar(self._begin + second * MICROSECONDS, TIMESTAMP), len(urls))
        return pa.table({"user_id": readers, "query": words, "clicked_at": at, "url": urls})


def _pages(titles: pa.BinaryArray, site: str, rules: ParameterRules) -> pa.Table:
    """URL of each article, or the reason why it has none, and the words of its title."""
    urls = [f"{site}/wiki/{quote_from_bytes(title, safe=_SAFE)}" for title in titles.to_pylist()]
    found = canonicalize(pa.array(urls, pa.string()), rules)
    words = tidy(pc.replace_substring(decode(titles), "_", " "))
    blank = pc.equal(words, "")
    return pa.table(
        {
            "url": pc.if_else(blank, None, found.urls),
            "reason": pc.if_else(blank, "title-missing", found.reasons),
            "words": words,
        }
    )
