"""Descriptions against the definitions evaluated token by token, and the distributed ones against those in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semrank.pipelines.runtime import DEFAULT_RUNNER, EMBEDDED_RUNNER, BuildOptions
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.columnar.ids import digest_table, text_digests, text_ids
from semrank.transforms.context import describe
from semrank.transforms.context.beam import HARVEST_SCHEMA, HARVESTED_SCHEMA, DescribeUrls, Harvest, Partitions, Request
from semrank.transforms.context.descriptions import BLOCKS, DESCRIPTION_SCHEMA, Descriptions
from semrank.transforms.context.objects import ObjectSettings
from semrank.transforms.context.pages import SOURCE_SCHEMA
from semrank.transforms.context.tokens import tokens_of
from semrank.transforms.context.words import lemmas_of
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.replay.web import Web
from semrank.transforms.weblog.beam import ReadClickFacts
from tests.support.snapshots import table_of
from tests.support.strategies import START, choices

LANGUAGE = "xx"
"""Has neither stop words nor lemmas, so that a text's words are plain to see; numbers are tokens but no words."""

TOKENS = ["crawl", "spider", "lattice", "concept", "7"]
HOST = "https://example.org"
"""Its name is no word of an address."""

COUNTED = (*BLOCKS, "near")


@dataclass(frozen=True)
class Snapshot:
    pages: list[dict[str, Any]]
    links: list[dict[str, Any]]
    clicks: list[dict[str, Any]]
    seeds: list[str]
    harvested: list[str]

    def tables(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        return table_of(self.pages, PAGES), table_of(self.links, LINKS), table_of(self.clicks, CLICKS)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    urls = [f"{HOST}/{word}/{number}" for number, word in enumerate(draw(st.permutations(TOKENS * 2)))][:8]
    urls.append(f"{HOST}/")
    text = st.none() | choices(TOKENS, 0, 30).map(" ".join)
    given_words = st.none() | st.none() | choices([None, "Web page", *TOKENS], 0, 4)
    flags = draw(choices([False, True], len(urls), len(urls)))
    fetched = [url for url, flag in zip(urls, flags, strict=True) if flag]
    pages = [
        {"url": url, "title": draw(text), "text": draw(text), "keywords": draw(given_words), "language": LANGUAGE}
        for url in fetched
    ]
    anchor = st.none() | choices(TOKENS, 0, 3).map(" ".join)
    links = [
        {"source_url": source, "target_url": target, "anchor_text": draw(anchor), "nofollow": nofollow}
        for (source, target), nofollow in zip(
            draw(choices([(source, target) for source in urls for target in urls], 1, 15)),
            draw(choices([None, False, False, True], 15, 15)),
            strict=False,
        )
    ]
    asked = [(user, query) for user in "ab" for query in TOKENS]
    clicked = zip(draw(choices(asked, 8, 8)), draw(choices(urls, 0, 8)), strict=False)
    clicks = [
        {"user_id": user, "query": query, "clicked_at": START, "position": number, "url": url}
        for number, ((user, query), url) in enumerate(clicked)
    ]
    harvested = draw(st.lists(st.sampled_from([*urls, f"{HOST}/unknown"]), min_size=1, max_size=4, unique=True))
    return Snapshot(pages, links, clicks, harvested[: draw(st.integers(1, len(harvested)))], harvested)


def id_of(url: str) -> int:
    return int(text_ids(pa.array([url]))[0])


def words(text: str | None) -> list[str]:
    return [token for token in (text or "").split() if token != "7"]


def around(page: list[str], anchor: list[str]) -> list[str]:
    for start in range(len(page) - len(anchor) + 1):
        if anchor and page[start : start + len(anchor)] == anchor:
            end = start + len(anchor)
            return words(" ".join(page[max(start - 12, 0) : start] + page[end : end + 12]))
    return []


def expected_rows(web: Snapshot) -> list[dict[str, Any]]:
    """All known URLs by definition, words and neighbours as counters."""
    pages = {page["url"]: page for page in web.pages}
    of_harvest = [link for link in web.links if link["source_url"] in web.harvested]
    current = {link["target_url"] for link in of_harvest} - set(web.harvested)
    followed = {
        (link["source_url"], link["target_url"], link["anchor_text"])
        for link in of_harvest
        if not link["nofollow"] and link["source_url"] != link["target_url"]
    }
    place = {url: number for number, url in enumerate(sorted(web.harvested, key=id_of))}
    in_order = sorted(web.clicks, key=lambda click: (click["user_id"], click["query"], click["position"]))
    edges = Counter(
        (one["url"], other["url"])
        for one, other in pairwise(in_order)
        if (one["user_id"], one["query"]) == (other["user_id"], other["query"]) and one["url"] != other["url"]
    )
    rows: list[dict[str, Any]] = []
    for url in sorted({*web.harvested, *current}, key=id_of):
        page: dict[str, Any] = pages.get(url, {})
        told: list[str] = []
        text, lead, near = Counter[str](), Counter[str](), Counter[int]()
        if page.get("keywords") is not None:
            text = Counter(word for word in set(page["keywords"]) if word is not None)
        else:
            text = Counter(words(f"{page.get('title') or ''} {page.get('text') or ''}"))
            lead = Counter(words(" ".join((page.get("text") or "").split()[:150])))
        named = url in pages or any(url in (link["source_url"], link["target_url"]) for link in web.links)
        address = url.removeprefix(HOST).split("/") if named else []
        anchors = Counter(word for word in address if word in TOKENS and word != "7")
        for source, target, anchor in followed:
            if target == url and anchor is not None:
                anchors.update(words(anchor))
                of = pages.get(source, {})
                if of.get("keywords") is None:
                    told += around(f"{of.get('title') or ''} {of.get('text') or ''}".split(), anchor.split())
        for (source, target), count in edges.items():
            if source == url and target in place:
                near[place[target]] += count
            if target == url and source in place:
                near[place[source]] += count
        rows.append(
            {
                "url_id": id_of(url),
                "seed": url in web.seeds,
                "harvested": url in place,
                "current": url not in place,
                "fetched": bool(page),
                "described": any(page.get(name) is not None for name in ("title", "text", "keywords")),
                "place": place.get(url, -1),
                "text": text,
                "lead": lead,
                "anchor": anchors,
                "around": Counter(told),
                "query": Counter(word for click in web.clicks if click["url"] == url for word in words(click["query"])),
                "near": near,
                "linkers": Counter({place[source]: 1 for source, target, _ in followed if target == url}),
            }
        )
    places = Counter(word for row in rows for name in BLOCKS for word in row[name])
    for row in rows:
        for name in BLOCKS:
            row[name] = Counter({word: count for word, count in row[name].items() if places[word] >= 2})
    return rows


def shown(descriptions: Descriptions, vocabulary: list[str]) -> list[dict[str, Any]]:
    """Descriptions as `expected_rows` has them."""
    rows = []
    entries = {name: getattr(descriptions, name).toarray().tolist() for name in (*COUNTED, "linkers")}
    for number in range(len(descriptions)):
        row: dict[str, Any] = {"url_id": int(descriptions.url[number])}
        for name in ("seed", "harvested", "current", "fetched", "described"):
            row[name] = bool(getattr(descriptions, name)[number])
        row["place"] = int(descriptions.place[number])
        for name, counts in entries.items():
            row[name] = Counter(
                {vocabulary[key] if name in BLOCKS else key: count for key, count in enumerate(counts[number]) if count}
            )
        rows.append(row)
    return rows


def documents(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        word for row in rows for word in (row["text"] if row["described"] else row["anchor"] | row["around"])
    )


def facts_of_snapshot(snapshot: Snapshot) -> Facts:
    web = Web.of_tables(*snapshot.tables(), language=LANGUAGE)
    seeds, harvested = (text_ids(pa.array(urls)) for urls in (snapshot.seeds, snapshot.harvested))
    return web.facts(seeds=seeds, harvested=harvested, current=web.targets(harvested), content_known=True)


@settings(max_examples=150, deadline=None)
@given(snapshots())
def test_facts_are_the_definitions(snapshot: Snapshot) -> None:
    facts, rows = facts_of_snapshot(snapshot), expected_rows(snapshot)
    assert shown(facts.descriptions, facts.words.to_pylist()) == rows
    counts = documents(rows)
    assert facts.document_counts.tolist() == [counts[word] for word in facts.words.to_pylist()]


def distributed(
    snapshot: Snapshot, folder: Path, partitions: int, files: int, runner: str
) -> tuple[pa.Table, pa.Table]:
    """Descriptions and vocabulary, as a pipeline makes them."""
    paths: dict[str, list[str]] = {}
    for name, table in zip(("pages", "links", "clicks"), snapshot.tables(), strict=True):
        order = np.random.default_rng(files).permutation(table.num_rows)
        for number in range(files):
            path = folder / f"{name}-{number}.parquet"
            pq.write_table(table.take(pa.array(order[number::files])), path)
            paths.setdefault(name, []).append(str(path))
    urls = pa.array(sorted(snapshot.harvested), pa.string())
    ids = text_ids(urls)
    flags = [np.isin(ids, text_ids(pa.array(snapshot.seeds))), np.ones(len(ids), dtype=np.bool_)]
    harvest = pa.table([ids, urls, *flags], schema=HARVEST_SCHEMA)
    sizes = Partitions(partitions, partitions, partitions, 1 << 16, len(snapshot.harvested))
    with TestPipeline(runner=runner, options=BuildOptions([])) as pipeline:
        clicks = pipeline | ReadClickFacts(paths["clicks"], partitions=partitions, words_of=_words_of)
        made = pipeline | DescribeUrls(
            paths["pages"],
            paths["links"],
            harvest=Harvest(
                *(
                    pipeline | f"create harvest {number}" >> beam.Create([table]).with_output_types(pa.Table)
                    for number, table in enumerate(
                        (harvest, harvest.select(HARVESTED_SCHEMA.names), digest_table(text_digests(urls)))
                    )
                )
            ),
            clicks=clicks,
            request=Request(descriptions=True),
            partitions=sizes,
            settings=ObjectSettings(1, 1, 1, LANGUAGE, count_every_click=False),
        )
        for name, rows in (("descriptions", made.descriptions), ("vocabulary", made.described_words)):
            {"rows": rows} | WriteOne(f"write {name}", str(folder / name), _whole)
    return pq.read_table(folder / "descriptions"), pq.read_table(folder / "vocabulary")


def _words_of(texts: pa.Array) -> pa.ListArray:
    return lemmas_of(texts, fallback=LANGUAGE)


def _whole(rows: pa.Table | None) -> pa.Table:
    return describe.VOCABULARY_SCHEMA.empty_table() if rows is None else rows


@pytest.mark.parametrize(
    ("partitions", "files", "runner", "examples"),
    # What Beam's own runner may change, that tables are pickled between stages, is the same for all snapshots.
    [(1, 1, DEFAULT_RUNNER, 4), (2, 3, EMBEDDED_RUNNER, 2), (7, 2, DEFAULT_RUNNER, 4)],
)
def test_distributed_descriptions_are_those_in_memory(partitions: int, files: int, runner: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(snapshot=snapshots())
    def run(snapshot: Snapshot) -> None:
        facts = facts_of_snapshot(snapshot)
        with TemporaryDirectory() as folder:
            descriptions, vocabulary = distributed(snapshot, Path(folder), partitions, files, runner)
        assert vocabulary["word"].to_pylist() == facts.words.to_pylist()
        assert vocabulary["documents"].to_pylist() == facts.document_counts.tolist()
        assert descriptions.schema == DESCRIPTION_SCHEMA
        count = facts.descriptions.harvested_count
        found = Descriptions.of_table(descriptions, words=vocabulary.num_rows, harvested=count)
        assert shown(found, facts.words.to_pylist()) == shown(facts.descriptions, facts.words.to_pylist())

    run()


def test_what_is_not_fetched_yet_tells_nothing_of_itself() -> None:
    pages = [{"url": f"{HOST}/{name}", "text": f"crawl spider {name} concept", "language": LANGUAGE} for name in "ab"]
    links = [
        {"source_url": f"{HOST}/a", "target_url": f"{HOST}/b", "anchor_text": "spider"},
        {"source_url": f"{HOST}/b", "target_url": f"{HOST}/a", "anchor_text": "crawl"},
    ]
    web = Web.of_tables(*Snapshot(pages, links, [], [], []).tables(), language=LANGUAGE)
    seed = text_ids(pa.array([f"{HOST}/a"]))
    known, unknown = (
        web.facts(seeds=seed, harvested=seed, current=web.targets(seed), content_known=known) for known in (True, False)
    )
    row = int(known.current[0])
    assert known.descriptions.described.all()
    assert known.links.sum() == 2
    assert unknown.descriptions.described.tolist() == [row != 0, row == 0]
    assert not unknown.descriptions.fetched[row]
    assert unknown.descriptions.text[[row]].nnz == 0
    assert unknown.links.sum() == 1
    assert [unknown.words[word].as_py() for word in unknown.descriptions.anchor[[row]].indices] == ["spider"]


def test_stop_words_are_tokens_but_no_words() -> None:
    tokens = tokens_of(
        pa.array(["The Beatles' songs, of 1967", None, "l'eau des l’eau"]), pa.array(["en", "en", "fr"]), "en"
    )
    names = [
        [tokens.words[token].as_py() if token < len(tokens.words) else None for token in tokens.token[start:end]]
        for start, end in zip(tokens.indptr, tokens.indptr[1:], strict=False)
    ]
    assert names == [[None, "beatles", "song", None, None], [], ["eau", None, "eau"]]


def test_an_anchor_is_found_by_its_lemmas_where_it_first_stands() -> None:
    text = "Cats are kept; a cat sleeps often. " + "Every owner knows. " * 20 + "A cat sleeps."
    sources = pa.table([[5], [text], ["en"]], schema=SOURCE_SCHEMA)
    anchored = pa.table([[5, 5, 6], [1, 2, 3], ["cats sleep", "dog", "cat"]], schema=describe.ANCHORED_SCHEMA)
    found = describe.anchor_words(sources, anchored, "en")
    said = [(row, found.words[word].as_py()) for row, word in zip(found.around_row, found.around_word, strict=True)]
    assert [word for row, word in said if row == 0 and word == "cat"] == ["cat"]
    assert {row for row, _ in said} == {0}
    assert Counter(word for _, word in said)["owner"] == 4
    anchors = [(row, found.words[word].as_py()) for row, word in zip(found.anchor_row, found.anchor_word, strict=True)]
    assert anchors == [(0, "cat"), (0, "sleep"), (1, "dog"), (2, "cat")]


def test_only_the_head_of_a_text_is_its_lead() -> None:
    text = " ".join(["crawl", "7"] * 74 + ["spider", "lattice", "concept"])
    pages = [{"url": f"{HOST}/{name}", "text": text, "title": "concept", "language": LANGUAGE} for name in "ab"]
    web = Web.of_tables(*Snapshot(pages, [], [], [], []).tables(), language=LANGUAGE)
    seeds = text_ids(pa.array([page["url"] for page in pages]))
    facts = web.facts(seeds=seeds, harvested=seeds, current=seeds, content_known=True)
    lead = dict(zip(facts.words.to_pylist(), facts.descriptions.lead.toarray()[0].tolist(), strict=True))
    assert lead == {"concept": 0, "crawl": 74, "lattice": 1, "spider": 1}
    assert len(facts.current) == 0
