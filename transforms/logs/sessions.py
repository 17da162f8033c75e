"""Turns page views into click sequences: finds the query that each page view originates from.

All views of a user must be in the same partition; rows may be in any order. A session is a run of one user's views at
most 30 minutes apart (the bound of P13 3.3 for click sequences, from Catledge and Pitkow, WWW 1995). Within a session

- a view with a query of its own (from a search engine, or a page of the site's own search) has that query;
- a view whose referrer is a page of the session has the query of the latest earlier view of that page;
- if the log has no referrers, a view has the query of the view before it;
- any other view has no query and is ignored ("no-query").

Views of the site's own search give queries and are not clicks themselves. Many views of home pages by one user within
a minute are not reading and are ignored ("home-page-flood").

Logs have a resolution of one second. Views of one user in the same second are ordered by their referrers (a page before
the pages that it led to), then by URL; their clicks are then one microsecond apart, so that later sorting keeps the
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import CLICKS, TIMESTAMP, conform
from semrank.transforms.columnar.arrays import (
    Bools,
    Int64s,
    bools,
    column_array,
    group_lengths,
    group_starts,
    int64s,
    is_new_row,
    places_in_groups,
)
from semrank.transforms.logs.visits import VISITS
from semrank.transforms.streams.dates import SESSION_GAP_SECONDS

HOME_PAGE_HITS, HOME_PAGE_SECONDS = 10, 60
"""Number of views of home pages by one user within a number of seconds that is a flood: people don't load one every
six seconds."""

MAX_STEPS_A_TICK = 16
"""Maximum length of chains of referrers within one tick of the clock that are followed to order its views."""


_MICROSECONDS = 1_000_000
_HOME_PAGE = r"^https?://[^/]+/$"
_NONE = -1


@dataclass(frozen=True)
class Sequences:
    """Clicks made from page views, and the balance: visits == used + sum(ignored).

    Attributes:
        clicks: table of `CLICKS`, sorted by user and time. `session_id` names the session; the clicks of one sequence
            are those with the same user, session and query.
        visits: number of page views.
        used: views that became clicks, and views of the site's own search.
        ignored: ignored views, by reason.
    """

    clicks: pa.Table
    visits: int
    used: int
    ignored: Mapping[str, int]


def click_sequences(visits: pa.Table) -> Sequences:
    """Click sequences of users with all of their page views.

    Args:
        visits: table of `VISITS`, in any order; repeated rows are repeated views.
    """
    visits = conform(visits, VISITS)
    count = visits.num_rows
    if not count:
        return Sequences(CLICKS.empty(), 0, 0, {})
    visits = visits.sort_by([(name, "ascending") for name in VISITS.schema.names]).combine_chunks()
    flood = _home_page_floods(visits)
    ignored = {"home-page-flood": int(flood.sum())} if flood.any() else {}
    visits = visits.filter(pa.array(~flood)).combine_chunks()
    if not visits.num_rows:
        return Sequences(CLICKS.empty(), count, 0, ignored)
    visits = visits.take(pa.array(_ordered(visits))).combine_chunks()
    session = _sessions(visits)
    root = _roots(visits, session)
    queries = column_array(visits["query"]).take(pa.array(root))
    search = bools(visits["is_search"])
    wordless = bools(queries.is_null())
    if wordless.any():
        ignored["no-query"] = int((wordless & ~search).sum())
    chosen = np.flatnonzero(~wordless & ~search)
    clicks = _clicks(visits, session, queries, chosen)
    searches = int(search.sum())
    return Sequences(clicks, count, len(chosen) + searches, {reason: n for reason, n in ignored.items() if n})


def _codes(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """Codes of values, -1 for null."""
    encoded = column_array(column).dictionary_encode()
    return int64s(encoded.indices.fill_null(_NONE))


def _micros(visits: pa.Table) -> Int64s:
    return int64s(visits["visited_at"].cast(pa.int64()))


def _home_page_floods(visits: pa.Table) -> Bools:
    """Whether views (sorted by user and time) are home pages in a window with too many of them."""
    home = np.flatnonzero(bools(pc.match_substring_regex(column_array(visits["url"]), _HOME_PAGE)))
    flood = np.zeros(visits.num_rows, dtype=np.bool_)
    if len(home) < HOME_PAGE_HITS:
        return flood
    user, at = _codes(visits["user_id"])[home], _micros(visits)[home]
    first, last = np.arange(len(home) - HOME_PAGE_HITS + 1), np.arange(HOME_PAGE_HITS - 1, len(home))
    dense = (user[first] == user[last]) & (at[last] - at[first] < HOME_PAGE_SECONDS * _MICROSECONDS)
    opened = np.zeros(len(home) + 1, dtype=np.int64)
    np.add.at(opened, first[dense], 1)
    np.add.at(opened, last[dense] + 1, -1)
    flood[home[np.cumsum(opened[:-1]) > 0]] = True
    return flood


def _pages(visits: pa.Table) -> tuple[Int64s, Int64s]:
    """Numbers of each view's page and referrer, equal for equal addresses but for the scheme; -1 for no referrer."""
    urls, referrers = column_array(visits["url"]), column_array(visits["referrer_url"])
    both = pc.replace_substring_regex(pa.concat_arrays([urls, referrers]), "^https?:", "")
    codes = _codes(pc.if_else(pc.equal(both, ""), None, both))
    return codes[: len(urls)], codes[len(urls) :]


def _ordered(visits: pa.Table) -> Int64s:
    """An order of sorted views in which, within a tick of a user's clock, pages precede those that they led to."""
    user, at = _codes(visits["user_id"]), _micros(visits)
    tick = np.cumsum(is_new_row(user, at)) - 1
    page, referrer = _pages(visits)
    count = len(tick)
    pages = np.concatenate([page, referrer])
    key = np.concatenate([tick, tick]) * (pages.max() + 2) + pages + 1
    codes = np.unique(key, return_inverse=True)[1]
    holder = np.full(2 * count, _NONE, dtype=np.int64)
    holder[codes[:count][::-1]] = np.arange(count)[::-1]  # the first view of the page in the tick
    parent = np.where(referrer >= 0, holder[codes[count:]], _NONE)
    parent[(parent >= 0) & (page == referrer)] = _NONE
    depth = np.zeros(count, dtype=np.int64)
    for _ in range(MAX_STEPS_A_TICK):  # cycles reach the limit and are then ordered by URL
        deeper = np.where(parent >= 0, depth[parent] + 1, 0)
        if np.array_equal(deeper, depth):
            break
        depth = deeper
    return np.lexsort((np.arange(count), depth, tick))


def _sessions(visits: pa.Table) -> Int64s:
    """Number of each view's session; views are sorted by user and time."""
    user, at = _codes(visits["user_id"]), _micros(visits)
    begins = is_new_row(user)
    begins[1:] |= at[1:] - at[:-1] > SESSION_GAP_SECONDS * _MICROSECONDS
    return np.cumsum(begins) - 1


def _roots(visits: pa.Table, session: Int64s) -> Int64s:
    """The view that each view originates from, int64[n]: the first of its chain, or itself."""
    count = len(session)
    page, referrer = _pages(visits)
    own = np.arange(count)
    parent = np.where(referrer >= 0, _latest_view(session, page, referrer), own)
    unrecorded = bools(column_array(visits["referrer_url"]).is_null())
    before = np.maximum(own - 1, 0)
    follows = unrecorded & (own > 0) & (session[before] == session)
    parent = np.where(unrecorded, np.where(follows, before, own), parent)
    parent = np.where(bools(column_array(visits["query"]).is_valid()) | (parent < 0), own, parent)
    while True:  # each round doubles the steps taken, so there are log2(longest chain) rounds
        further = parent[parent]
        if np.array_equal(further, parent):
            return parent
        parent = further


def _latest_view(session: Int64s, page: Int64s, referrer: Int64s) -> Int64s:
    """The latest earlier view in the session of each view's referrer, -1 if there is none."""
    count = len(session)
    own = np.arange(count)
    # Views as referrers (kind 1) and as referred (kind 0), by session, page and time; a view never refers to itself,
    # since at its own time it is looked up before it counts.
    sessions, pages = np.concatenate([session, session]), np.concatenate([page, referrer])
    places, kinds = np.concatenate([own, own]), np.repeat([1, 0], count)
    order = np.lexsort((kinds, places, pages, sessions))
    views = np.where(kinds[order] == 1, np.arange(2 * count), _NONE)
    latest = np.maximum.accumulate(views)
    starts = group_starts(sessions[order] * (np.int64(pages.max()) + 2) + pages[order] + 1)
    start = np.repeat(starts, group_lengths(starts, 2 * count))
    found = np.where(latest >= start, places[order][np.maximum(latest, 0)], _NONE)
    result = np.full(count, _NONE, dtype=np.int64)
    lookups = kinds[order] == 0
    result[places[order][lookups]] = found[lookups]
    return result


def _clicks(visits: pa.Table, session: Int64s, queries: pa.StringArray, chosen: Int64s) -> pa.Table:
    at = _micros(visits)
    user = _codes(visits["user_id"])
    within = places_in_groups(group_starts(user, at), len(at))
    begins = group_starts(session)
    rows = pa.array(chosen)
    users = column_array(visits["user_id"]).take(rows)
    begun = pa.array(at[begins][session[chosen]] // _MICROSECONDS)
    clicks = pa.table(
        {
            "user_id": users,
            "session_id": pc.binary_join_element_wise(users, begun.cast(pa.string()), "-"),
            "query": queries.take(rows),
            "clicked_at": pa.array((at + within)[chosen]).cast(TIMESTAMP),
            "position": column_array(visits["position"]).take(rows),
            "url": column_array(visits["url"]).take(rows),
        }
    )
    return conform(clicks, CLICKS)
