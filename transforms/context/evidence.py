"""The evidence of links, pages and clicks about the URLs of one partition."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Evidence:
    """A partition's rows about its URLs; tables are None where it has none. Rows about other URLs are left out.

    Attributes:
        queue: the queue's URLs with their addresses (`links.DISCOVERED_SCHEMA`).
        harvested: harvested URLs (`describe.HARVESTED_SCHEMA`).
        discovered: URLs to rank with their addresses (`links.DISCOVERED_SCHEMA`), may repeat.
        known: URLs that links mention (`links.ID_SCHEMA`), may repeat.
        edges: links and clicks between a URL and the queue (`links.EDGE_SCHEMA`).
        fetched: fetched pages (`pages.FETCHED_SCHEMA`).
        terms: words of titles and texts (`pages.TERM_SCHEMA`), as are the words of the other places.
        given: words that are given for pages in place of a text.
        lead: first words of texts.
        anchors: words of anchors that point to the URL, from any known page.
        anchor: the same, from harvested pages.
        around: words around those anchors.
        addresses: words of addresses.
        clicked: words of queries that led to clicks.
        linkers: harvested pages that link to the URL (`describe.NEIGHBOUR_SCHEMA`), may repeat.
        near: harvested URLs clicked next to the URL (`describe.NEIGHBOUR_SCHEMA`).
    """

    queue: pa.Table | None = None
    harvested: pa.Table | None = None
    discovered: pa.Table | None = None
    known: pa.Table | None = None
    edges: pa.Table | None = None
    fetched: pa.Table | None = None
    terms: pa.Table | None = None
    given: pa.Table | None = None
    lead: pa.Table | None = None
    anchors: pa.Table | None = None
    anchor: pa.Table | None = None
    around: pa.Table | None = None
    addresses: pa.Table | None = None
    clicked: pa.Table | None = None
    linkers: pa.Table | None = None
    near: pa.Table | None = None
