"""From page views to click sequences: which query each page view goes back to.

All views of a user have to be together; beyond that, rows may come in any order and users in any partition. A session
is a run of one user's views at most 30 minutes apart (P13 3.3 has the same bound for click sequences; it goes back to
Catledge and Pitkow, WWW 1995). Within it

- a view that names words itself (from a search engine, or a page of the site's own search) begins with them;
- a view whose referrer is a page of the session goes back to the latest view of that page up to then, and has its
  words;
- where the log records no referrers, a view goes back to the view before it;
- any other view has no words and is ignored ("no-query").

Views of the site's own search are where words come from, not clicks. Many views of home pages by one user within a
minute are no reading: they are ignored ("home-page-flood").

Logs count in seconds. Views of one user in the same second are put in the order of their referrers (a page before
those that it led to), then by URL; their clicks are then one microsecond apart, so that the order survives any later
sorting.
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
    is_new_row,
    places_in_groups,
)
from semrank.transforms.logs.visits import VISITS
from semrank.transforms.streams.dates import SESSION_GAP_SECONDS

HOME_PAGE_HITS, HOME_PAGE_SECONDS = 10, 60
"""So many views of home pages by one user within so many seconds are a flood: people don't load one every six
seconds."""

MAX_STEPS_A_TICK = 16
"""Length to which chains of referrers within one tick of the clock are followed when its views are put in order."""


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
        ignored: views left aside, by reason.
    """

    clicks: pa.Table
    visits: int
    used: int
    ignored: Mapping[str, int]


def click_sequences(visits: pa.Table) -> Sequences:
    """Click sequences of users whose page views are all in the table.

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
    """Small numbers in place of values, -1 for null."""
    encoded = column_array(column).dictionary_encode()
    return np.asarray(encoded.indices.fill_null(_NONE).to_numpy(zero_copy_only=False), dtype=np.int64)


def _micros(visits: pa.Table) -> Int64s:
    return np.asarray(column_array(visits["visited_at"]).cast(pa.int64()).to_numpy(), dtype=np.int64)


def _home_page_floods(visits: pa.Table) -> Bools:
    """Which views (sorted by user and time) are home pages in a window with too many of them."""
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
    """An order of sorted views in which, within a tick of a user's clock, pages stand before those they led to."""
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
    for _ in range(MAX_STEPS_A_TICK):  # circles grow to the limit and then stand by URL
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
    """The view that each view goes back to, int64[n]: the first of its chain, itself if it begins one."""
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
    """The latest earlier view in the session of the page that each view was referred by, -1 where there is none."""
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
