"""Every format read back as its target reads it, over URLs that no line would survive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.frontier.exports import nutch
from semrank.transforms.frontier.exports.rows import Selection
from semrank.transforms.frontier.exports.targets import TARGETS, target
from semrank.transforms.streams.urls import canonical_url
from tests.support.frontiers import frontier, host, pieces, scores, urls
from tests.transforms.frontier.exports import readers

rows = st.lists(st.tuples(urls, scores, st.booleans()), max_size=8, unique_by=lambda row: row[0])
cuts = st.lists(st.integers(0, 12), max_size=3)

FILES = {name: (name, f"{name}.txt") for name in TARGETS if name != "heritrix"} | {
    ending: ("heritrix", f"frontier.{ending}") for ending in ("seeds", "schedule", "force", "precedence")
}


def export(
    name: str, tables: Sequence[pa.Table], most: int | None = None, interval: int = nutch.FETCH_INTERVAL
) -> tuple[str, list[tuple[str, str]], Selection]:
    """The file's content, the rejects as (reason, URL), and the selection."""
    form = target(*FILES[name], total=sum(table.num_rows for table in tables), fetch_interval=interval)
    selection = Selection(form.faults, most)
    taken, rejected = zip(*map(selection.take, tables), strict=True)
    lines = [line for part in form.lines(iter(taken)) for line in part.to_pylist()]
    found = [(row["reason"], row["record"]) for part in rejected for row in part.to_pylist()]
    assert all(row["stage"] == "export" for part in rejected for row in part.to_pylist())
    return "".join(f"{line}\n" for line in lines), found, selection


def made(values: list[tuple[str, float, bool]]) -> pa.Table:
    texts, marks, selected = zip(*values, strict=True) if values else ((), (), ())
    return frontier(list(texts), list(marks), selected=list(selected))


def kept(values: list[tuple[str, float, bool]], rejected: list[tuple[str, str]]) -> list[tuple[int, str, float]]:
    """Rank, URL and score of what has to be in the file: selected and not rejected, in the order of rank."""
    left_out = {url for _, url in rejected}
    assert len(left_out) == len(rejected)
    assert left_out <= {url for url, _, selected in values if selected}
    return [
        (rank, url, score)
        for rank, (url, score, selected) in enumerate(values, start=1)
        if selected and url not in left_out
    ]


def nutch_scores(tables: Sequence[pa.Table]) -> list[np.float32]:
    found = [row.score for row in readers.nutch(export("nutch", tables)[0])]
    return [score for score in found if score is not None]


@given(rows, cuts)
def test_nutch(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    content, rejected, _ = export("nutch", pieces(made(values), at), interval=86_400)
    expected = kept(values, rejected)
    found = readers.nutch(content)
    assert [(int(row.metadata["semrank_rank"]), row.url) for row in found] == [row[:2] for row in expected]
    assert [float(row.metadata["semrank_score"]) for row in found] == [row[2] for row in expected]
    assert all(row.interval == 86_400 for row in found)
    assert all(row.score is not None and np.isfinite(row.score) and row.score >= 0 and row.score != 1 for row in found)


@given(rows, cuts)
def test_stormcrawler(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    content, rejected, _ = export("stormcrawler", pieces(made(values), at))
    found = readers.stormcrawler(content)
    expected = kept(values, rejected)
    assert found == [
        (url, {"semrank_rank": f"{rank:012d}", "semrank_score": found[place][1]["semrank_score"]})
        for place, (rank, url, _) in enumerate(expected)
    ]
    assert [float(metadata["semrank_score"]) for _, metadata in found] == [score for _, _, score in expected]
    ranks = [metadata["semrank_rank"] for _, metadata in found]
    assert sorted(ranks) == ranks


@given(rows, cuts)
def test_urlfrontier(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    content, rejected, _ = export("urlfrontier", pieces(made(values), at))
    found = readers.urlfrontier(content)
    expected = kept(values, rejected)
    assert [(item.known.refetchable_from_date, item.known.info.url) for item in found] == [row[:2] for row in expected]
    assert all(item.known.refetchable_from_date > 0 for item in found)
    assert [item.known.info.key for item in found] == [host(url) for _, url, _ in expected]
    metadata = [{name: list(value.values) for name, value in item.known.info.metadata.items()} for item in found]
    assert [item["semrank_rank"] for item in metadata] == [[str(rank)] for rank, _, _ in expected]
    assert [float(item["semrank_score"][0]) for item in metadata] == [score for _, _, score in expected]


@given(rows, cuts)
def test_heritrix(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    tables = pieces(made(values), at)
    content, rejected, _ = export("seeds", tables)
    expected = [url for _, url, _ in kept(values, rejected)]
    assert readers.heritrix_seeds(content) == expected
    for ending in ("schedule", "force"):
        content, also_rejected, _ = export(ending, tables)
        assert readers.heritrix_schedule(content) == [(url, "L", url, "") for url in expected]
        assert also_rejected == rejected
    content, also_rejected, _ = export("precedence", tables)
    found = readers.heritrix_precedence(content)
    assert [url for url, _ in found] == expected
    assert also_rejected == rejected


@given(rows, cuts)
def test_scrapy(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    content, rejected, _ = export("scrapy", pieces(made(values), at))
    expected = kept(values, rejected)
    assert readers.scrapy_requests(content) == [
        (url, -rank, {"semrank_rank": rank, "semrank_score": score, "semrank_fetched": False})
        for rank, url, score in expected
    ]


@given(rows, cuts)
def test_urls(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    content, rejected, _ = export("urls", pieces(made(values), at))
    expected = [url for _, url, _ in kept(values, rejected)]
    assert content.splitlines() == expected, "whatever a program takes for the end of a line"
    assert content.split() == expected


@given(rows)
def test_what_is_canonical_is_never_rejected(values: list[tuple[str, float, bool]]) -> None:
    good = [canonical_url(url).url for url, _, _ in values]
    table = frontier(sorted({url for url in good if url is not None and len(url) <= 2083}))
    for name in FILES:
        _, rejected, selection = export(name, [table])
        assert rejected == []
        assert selection.taken == table.num_rows


@pytest.mark.parametrize("name", FILES)
def test_reasons(name: str) -> None:
    faulty = {
        "https://a.example/a\tb": "url-with-space",
        "https://a.example/a\u2028b": "url-with-space",
        "https://a.example/a\x00b": "url-with-control",
        "ftp://a.example/": "url-not-http",
        "#https://a.example/": "url-not-http",
        "https://": "url-not-http",
        "": "url-not-http",
    }
    content, rejected, selection = export(name, [frontier([*faulty, "https://a.example/"])])
    assert {url: reason for reason, url in rejected} == faulty
    assert content.count("\n") == 1
    assert selection.rejected == {"url-with-space": 2, "url-with-control": 1, "url-not-http": 4}
    _, rejected, _ = export(name, [frontier(["https://a.example/"] * 2, [float("nan"), float("-inf")])])
    assert [reason for reason, _ in rejected] == ["score-not-finite"] * 2


def test_only_heritrix_minds_long_urls() -> None:
    fits, long = "https://a.example/" + "é" * 2065, "https://a.example/" + "a" * 2066
    assert len(fits) == 2083
    for name, (crawler, _) in FILES.items():
        _, rejected, _ = export(name, [frontier([fits, long])])
        assert rejected == ([("url-too-long", long)] if crawler == "heritrix" else [])


@given(rows, cuts, st.integers(1, 8))
def test_the_most_urls_are_the_best_that_can_be_written(
    values: list[tuple[str, float, bool]], at: list[int], most: int
) -> None:
    tables = pieces(made(values), at)
    everything, all_rejected, _ = export("urls", tables)
    content, rejected, selection = export("urls", tables, most)
    assert content == "".join(everything.splitlines(keepends=True)[:most])
    assert rejected == all_rejected[: len(rejected)]
    assert selection.taken == content.count("\n") == min(most, everything.count("\n"))
    assert selection.full == (selection.taken == most)


@given(values=rows, at=cuts)
def test_cuts_between_tables_change_nothing(values: list[tuple[str, float, bool]], at: list[int]) -> None:
    table = made(values)
    for name in FILES:
        assert export(name, pieces(table, at))[:2] == export(name, [table])[:2], name


@given(st.lists(st.floats(0, 2), min_size=1, max_size=40), cuts)
def test_nutch_scores_fall_from_rank_to_rank(values: list[float], at: list[int]) -> None:
    """Whatever the scores are: Nutch's Generator knows no other order."""
    ordered = sorted(values, reverse=True)
    table = frontier([f"https://a.example/{place}" for place in range(len(values))], ordered)
    found = nutch_scores(pieces(table, at))
    assert all(first > second or first == second == 0 for first, second in pairwise(found))
    for score, value in zip(found, ordered, strict=True):
        assert float(score) <= float(np.float32(value))
        # Each row gives way by a step at most for each row before it, and one for 1.0.
        steps = int(np.float32(value).view(np.int32)) - int(score.view(np.int32))
        assert steps <= len(values) + 1


def test_nutch_scores_of_ties_at_one() -> None:
    table = frontier(["https://a.example/"] * 3, [1.0, 1.0, 1.0])
    found = nutch_scores([table])
    assert len(found) == 3
    below = np.float32(1.0)
    for score in found:
        below = np.nextafter(below, np.float32(0))
        assert score == below


def test_nutch_scores_above_one_step_over_it() -> None:
    above = float(np.nextafter(np.float32(1), np.float32(2)))
    found = nutch_scores([frontier(["https://a.example/"] * 3, [above] * 3)])
    assert found[0] == np.float32(above)
    assert found[1] == np.nextafter(np.float32(1), np.float32(0))


def test_nutch_follows_what_the_frontier_is_ordered_by() -> None:
    """Where pages are fetched again, that is the score times the probability of a change."""
    table = frontier(["https://a.example/1", "https://a.example/2"], [0.5, 0.9], chance=[None, 0.25])
    found = readers.nutch(export("nutch", [table])[0])
    assert [row.score for row in found] == [np.float32(0.5), np.float32(0.225)]
    assert [row.metadata["semrank_score"] for row in found] == ["0.5", "0.9"]


@pytest.mark.parametrize("count", [1, 5, 127, 128, 1000])
def test_heritrix_precedences(count: int) -> None:
    table = frontier([f"https://a.example/{place}" for place in range(count)])
    found = [value for _, value in readers.heritrix_precedence(export("precedence", pieces(table, [3, 50]))[0])]
    assert found == sorted(found)
    assert found[0] == 1
    if count <= 127:
        assert found == list(range(1, count + 1))
    else:
        sizes = np.bincount(found)[1:]
        assert len(sizes) == 127
        assert sizes.max() - sizes.min() <= 1


def test_an_order_that_is_not_the_ranks_is_refused() -> None:
    table = frontier(["https://a.example/1", "https://a.example/2"])
    with pytest.raises(InputError, match="found rank 1 after 2, expected ranks"):
        export("urls", [table.take(pa.array([1, 0]))])
    with pytest.raises(InputError, match="found rank 2 after 2"):
        export("urls", [table, table.slice(1)])
    with pytest.raises(InputError, match="found rank 0 after 0"):
        export("urls", [frontier(["https://a.example/"], first_rank=0)])


def test_names_that_fit_no_target() -> None:
    with pytest.raises(InputError, match=r"found frontier\.txt\.gz, expected a name for Heritrix that ends in one of"):
        target("heritrix", "frontier.txt.gz", total=1)
    with pytest.raises(InputError, match=r"found httrack, expected one of nutch, "):
        target("httrack", "frontier.txt", total=1)
