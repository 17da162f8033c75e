"""Which clicks would give a topic away: those of people who were looking for a page of it.

A click sequence (clicks of one user in one session after one query, without a pause of more than half an hour) looks
for its target: the pages whose title is the query, or, where no page has that title, the page on which the sequence
ended. A session looks for the targets of all its sequences. For a topic all clicks of the sessions that look for one of
its pages are held out; where a log names no sessions, a sequence is one.

So a ranker can't profit from the words that led to the very pages that count, while clicks on the way to
other things, which may touch the topic's pages too, stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    Bools,
    Int64s,
    bools,
    column_array,
    int64s,
    is_new_row,
    members,
    ragged,
    row_keys,
)
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.streams.dates import SESSION_GAP_SECONDS

_NO_WORDS = r"[^\p{L}\p{M}\p{N}]+"


@dataclass(frozen=True, eq=False)
class ClickTargets:
    """What each session of a click log was looking for.

    Attributes:
        session: number of the session of each click, int64[clicks].
        seeker: a session that looks for a page, int64[m].
        target: id of the URL of that page, int64[m].
    """

    session: Int64s
    seeker: Int64s
    target: Int64s

    @classmethod
    def of(cls, clicks: pa.Table, pages: pa.Table) -> ClickTargets:
        """From a conformed clicks table and the columns `url` and `title` of the pages table."""
        user = text_ids(clicks["user_id"])
        named = bools(pc.is_valid(clicks["session_id"]))
        session = np.where(named, text_ids(pc.fill_null(column_array(clicks["session_id"]), "")), 0)
        query = text_ids(clicks["query"])
        time = int64s(clicks["clicked_at"].cast(pa.int64()))
        place = int64s(pc.fill_null(clicks["position"].cast(pa.int64()), -1))
        url = text_ids(clicks["url"])

        visit = row_keys(user, named.astype(np.int64), session, query)
        order = np.argsort(row_keys(visit, time, place, url), kind="stable")
        begins = is_new_row(visit[order])
        begins[1:] |= np.diff(time[order]) > SESSION_GAP_SECONDS * 1_000_000
        sequence = np.empty(len(order), dtype=np.int64)
        sequence[order] = np.cumsum(begins) - 1
        ends = order[np.append(begins[1:], True)] if len(order) else order

        # A named session holds sequences after several queries; without a name a sequence stands alone.
        number = np.unique(
            row_keys(named.astype(np.int64), np.where(named, user, 0), np.where(named, session, sequence)),
            return_inverse=True,
        )[1].astype(np.int64)
        titles = _TitledPages.of(pages)
        owner, page = titles.pages(column_array(clicks["query"]).take(pa.array(ends)))
        untitled = np.ones(len(ends), dtype=np.bool_)
        untitled[owner] = False
        seeker = np.concatenate([number[ends][owner], number[ends][untitled]])
        target = np.concatenate([page, url[ends][untitled]])
        return cls(number, seeker, target)

    def held_out(self, topic: Int64s) -> Bools:
        """Whether each click belongs to a session that looks for a page of the topic, bool[clicks].

        Args:
            topic: ids of the URLs of its pages, ascending.
        """
        held = np.zeros(int(self.session.max(initial=-1)) + 1, dtype=np.bool_)
        held[self.seeker[members(topic, self.target)]] = True
        return held[self.session]


@dataclass(frozen=True, eq=False)
class _TitledPages:
    """Pages by title: ids of the titles' plain spellings, ascending, and of the URLs, int64[n] both."""

    title: Int64s
    url: Int64s

    @classmethod
    def of(cls, pages: pa.Table) -> _TitledPages:
        plain = plain_text(pc.fill_null(column_array(pages["title"]), ""))
        kept = pc.not_equal(plain, "")
        title, url = text_ids(plain.filter(kept)), text_ids(column_array(pages["url"]).filter(kept))
        order = np.lexsort((url, title))
        return cls(title[order], url[order])

    def pages(self, queries: pa.Array) -> tuple[Int64s, Int64s]:
        """(number of the query, URL id) of each page whose title a query is."""
        wanted = text_ids(plain_text(queries))
        begin = np.searchsorted(self.title, wanted, side="left")
        owner, place = ragged(begin, np.searchsorted(self.title, wanted, side="right") - begin)
        return owner, self.url[place]


def plain_text(texts: pa.Array) -> pa.Array:
    """Texts in lower case with one blank between words and nothing else, so that spellings of a title agree."""
    folded = pc.utf8_lower(pc.utf8_normalize(texts.cast(pa.string()), form="NFKC"))
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(folded, _NO_WORDS, " "))
