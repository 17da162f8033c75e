"""Marks addresses that seem to be generated without end.

Nothing is dropped: a mark is a row of `rejects` with the stage `trap`, one for each family of addresses, and the rows
of the addresses are kept. A family is a set of addresses that a generator may produce:

| reason | family | marked when |
|---|---|---|
| trap-repeating-path | addresses that repeat a run of path segments `REPETITIONS` times in a row | there is one |
| trap-deep-path | addresses of a host with more than `MAX_SEGMENTS` path segments | there is one |
| trap-endless-numbers | addresses equal but for their numbers, with a word of calendars | there are `MIN_FAMILY` |
| trap-facets | addresses of a path with three parameters or more | `MIN_FAMILY`, `MIN_SHAPES` sets of parameters |

Large families are counted on a sample of one address in `SAMPLE`, chosen by the hash of the address, so the estimate
does not depend on the distribution over workers. The default filters of Heritrix and Nutch stop repeated segments, too.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import REJECTS
from semrank.transforms.columnar.arrays import column_array, distinct_rows, mix_bits
from semrank.transforms.columnar.ids import text_ids

STAGE = "trap"

REPEATING, DEEP, ENDLESS, FACETS = "trap-repeating-path", "trap-deep-path", "trap-endless-numbers", "trap-facets"

MAX_SEGMENTS = 32
"""Largest number of path segments of pages that are organised by hand."""

REPETITIONS = 3
"""Repetitions of a run of segments that make a trap; two occur in regular paths (`/news/news/`)."""

MAX_RUN = 4
"""Segments of the longest run that is searched for."""

MIN_FAMILY = 1_000
"""Addresses of a family that make a trap: as many as a calendar of three years has days."""

MIN_SHAPES = 8
"""Sets of parameters that indicate freely combined filters: as many as three independent filters give."""

SAMPLE = 8
"""One of so many addresses is counted in families that must be large."""

CANDIDATES_SCHEMA = pa.schema(
    [
        pa.field("family_id", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("family", pa.string()),
        pa.field("url_id", pa.int64()),
        pa.field("shape_id", pa.int64()),
    ]
)
"""Addresses that may be of a trap: the family's id and text, the address's id, and that of its parameters' names."""

_CALENDAR = r"(?i)(?:calend|year|month|week|date|[/?&](?:cal|day|jahr|monat|annee|mois)[=/.])"
_HOST = re.compile(r"https?://[^/]+")


def trap_candidates(links: pa.Table) -> pa.Table:
    """Candidates among the targets of links, a table of `CANDIDATES_SCHEMA`.

    Args:
        links: table with a column `target_url` of canonical URLs.
    """
    urls = column_array(links["target_url"]).unique().drop_null()
    ids = text_ids(urls)
    sampled = pa.array(mix_bits(ids.view(np.uint64)) % np.uint64(SAMPLE) == 0)
    return pa.concat_tables(
        [_paths(urls), _endless(urls.filter(sampled)), _facets(urls.filter(sampled))]
    ).combine_chunks()


def _candidates(reason: str, family: pa.Array, urls: pa.Array, shapes: pa.Array | None = None) -> pa.Table:
    named = pc.binary_join_element_wise(reason, family, " ")
    shape = np.zeros(len(urls), dtype=np.int64) if shapes is None else text_ids(shapes)
    columns = [pa.array(text_ids(named)), pa.array([reason] * len(urls), pa.string()), family]
    return pa.table([*columns, pa.array(text_ids(urls)), pa.array(shape)], schema=CANDIDATES_SCHEMA)


def _endless(urls: pa.Array) -> pa.Table:
    chosen = urls.filter(pc.match_substring_regex(urls, _CALENDAR))
    chosen = chosen.filter(pc.match_substring_regex(chosen, r"^https?://[^/]+/.*[0-9]"))
    host = pc.struct_field(pc.extract_regex(chosen, r"^(?P<host>https?://[^/]+)"), "host")
    rest = pc.replace_substring_regex(pc.replace_substring_regex(chosen, r"^https?://[^/]+", ""), "[0-9]+", "{n}")
    return _candidates(ENDLESS, pc.binary_join_element_wise(host, rest, ""), chosen)


def _facets(urls: pa.Array) -> pa.Table:
    chosen = urls.filter(pc.match_substring_regex(urls, r"\?[^&]+&[^&]+&"))
    path = pc.replace_substring_regex(chosen, r"\?.*$", "?*")
    names = pc.replace_substring_regex(pc.replace_substring_regex(chosen, r"^[^?]*\?", ""), "=[^&]*", "")
    return _candidates(FACETS, path, chosen, names)


def _paths(urls: pa.Array) -> pa.Table:
    # Three equal segments need five slashes with those of the scheme.
    long = urls.filter(pc.greater_equal(pc.count_substring(urls, "/"), 2 + REPETITIONS))
    found: dict[str, list[tuple[str, str]]] = {REPEATING: [], DEEP: []}
    for url in long.to_pylist():
        path = url.partition("?")[0]
        host = _HOST.match(path)
        if host is None:
            continue
        segments = path[host.end() + 1 :].split("/")
        run = repeated_run(segments)
        if run is not None:
            found[REPEATING].append((f"{host[0]}/**/{'/'.join(run)}/**", url))
        elif len(segments) > MAX_SEGMENTS:
            found[DEEP].append((f"{host[0]}/**", url))
    tables = []
    for reason, pairs in found.items():
        families, members = zip(*pairs, strict=True) if pairs else ((), ())
        tables.append(_candidates(reason, pa.array(families, pa.string()), pa.array(members, pa.string())))
    return pa.concat_tables(tables)


def repeated_run(segments: list[str]) -> list[str] | None:
    """The shortest, then first, run of at most `MAX_RUN` segments that occurs `REPETITIONS` times in a row.

    Empty segments don't count as a run of their own.
    """
    for size in range(1, MAX_RUN + 1):
        equal = 0  # how many segments in a row equal the one `size` before them
        for place in range(size, len(segments)):
            equal = equal + 1 if segments[place] == segments[place - size] else 0
            if equal == size * (REPETITIONS - 1):
                run = segments[place - size + 1 : place + 1]
                if any(run):
                    return run
    return None


def trap_marks(candidates: pa.Table) -> pa.Table:
    """Marks of families whose candidates are all in the table, sorted rows of `rejects`.

    Args:
        candidates: table of `CANDIDATES_SCHEMA`, in any order, with repetitions.
    """
    counted = (
        distinct_rows(candidates)
        .group_by(["reason", "family"])
        .aggregate([("url_id", "count_distinct"), ("shape_id", "count_distinct")])
    )
    sampled = pc.is_in(counted["reason"], pa.array([ENDLESS, FACETS]))
    size = pc.multiply(counted["url_id_count_distinct"], pc.if_else(sampled, SAMPLE, 1))
    few = pc.and_(sampled, pc.less(size, MIN_FAMILY))
    uniform = pc.and_(pc.equal(counted["reason"], FACETS), pc.less(counted["shape_id_count_distinct"], MIN_SHAPES))
    marked = counted.append_column("size", size).filter(pc.invert(pc.or_(few, uniform)))
    marked = marked.sort_by([("reason", "ascending"), ("family", "ascending")])
    about = pc.if_else(pc.is_in(marked["reason"], pa.array([ENDLESS, FACETS])), " (about ", " (")
    records = pc.binary_join_element_wise(marked["family"], about, marked["size"].cast(pa.string()), " addresses)", "")
    stages = pa.array([STAGE] * marked.num_rows, pa.string())
    return pa.table([stages, marked["reason"], records], schema=REJECTS.schema)
