"""The Wikispeedia set: meaning of paths, texts without give-aways, topics, and reading archives safely."""

from __future__ import annotations

import io
import itertools
import tarfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, LINKS, PAGES, TOPICS
from semrank.transforms.samples import wikispeedia
from semrank.transforms.samples.topics import topic_seeds
from semrank.transforms.samples.wikispeedia import (
    SourceFile,
    archive_files,
    article_text,
    article_title,
    article_url,
    click_times,
    graph_files,
    read_articles,
    read_categories,
    read_links,
    read_paths,
    read_texts,
    text_files,
    topic_names,
    visited_articles,
)
from semrank.transforms.streams.batch import SourceBatch
from semrank.transforms.streams.urls import canonical_url

HEAD = "# Some words about the file.\n# FORMAT: whatever\n\n"
ARTICLES = frozenset({"Bird", "Zebra", "AT%26T", "%C3%85land", "Bede", "Mount_St._Helens"})
WIKI = "https://en.wikipedia.org/wiki/"


def stream(*lines: str) -> io.BytesIO:
    return io.BytesIO((HEAD + "".join(f"{line}\n" for line in lines)).encode())


def rows(batches: Iterable[SourceBatch], table: str) -> list[dict[str, object]]:
    return [row for batch in batches if table in batch.tables for row in batch.tables[table].to_pylist()]


def rejects(batches: Iterable[SourceBatch]) -> list[tuple[object, object]]:
    return [(row["reason"], row["record"]) for row in rows(batches, "rejects")]


# --- paths -----------------------------------------------------------------------------------------------------------

names = st.sampled_from(["Bird", "Zebra", "Bede", "AT%26T"])


class Browser:
    """A browser with a back button, as an oracle: pages are opened and closed, and the shown page is written down."""

    def __init__(self, first: str) -> None:
        self.open_pages: tuple[str, ...] = (first,)
        self.log = [first]

    def follow(self, name: str) -> None:
        self.open_pages = (*self.open_pages, name)
        self.log.append(name)

    def back(self) -> None:
        self.open_pages = self.open_pages[:-1]
        self.log.append(self.open_pages[-1])


@given(first=names, steps=st.lists(st.one_of(names, st.just("<")), max_size=30))
def test_visits_are_what_a_browser_with_a_back_button_shows(first: str, steps: list[str]) -> None:
    browser = Browser(first)
    path = [first]
    for step in steps:
        if step != "<":
            browser.follow(step)
        elif len(browser.open_pages) > 1:
            browser.back()
        else:
            continue
        path.append(step)
    assert visited_articles(";".join(path)) == browser.log


@given(first=names, steps=st.lists(st.one_of(names, st.just("<")), max_size=30))
def test_only_a_step_back_beyond_the_first_article_is_refused(first: str, steps: list[str]) -> None:
    depth = 1
    possible = True
    for step in steps:
        depth += -1 if step == "<" else 1
        possible &= depth > 0
    found = visited_articles(";".join([first, *steps]))
    assert (found is not None) == possible
    if found is not None:
        assert len(found) == 1 + len(steps)


@given(steps=st.lists(names, min_size=1, max_size=20))
def test_going_all_the_way_back_shows_the_way_in_reverse(steps: list[str]) -> None:
    path = ";".join([*steps, *["<"] * (len(steps) - 1)])
    assert visited_articles(path) == [*steps, *reversed(steps[:-1])]


@pytest.mark.parametrize("path", ["", "<", "Bird;", ";Bird", "Bird;;Zebra", "Bird;<", "Bird;Zebra;<;<"])
def test_paths_that_mean_nothing(path: str) -> None:
    assert visited_articles(path) is None


def test_a_step_back_is_a_click_on_the_article_before() -> None:
    assert visited_articles("Bird;Zebra;<;Bede") == ["Bird", "Zebra", "Bird", "Bede"]


@given(
    end=st.integers(1_000_000, 2_000_000_000),
    duration=st.integers(0, 1_000_000),
    clicks=st.integers(1, 400),
    timeout=st.booleans(),
)
def test_click_times_rise_from_the_start_to_the_last_click(
    end: int, duration: int, clicks: int, *, timeout: bool
) -> None:
    times = click_times(end, duration, clicks, timeout=timeout)
    assert len(times) == clicks
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(times))
    assert times[0] == (end - duration) * 1_000_000
    active = max(0, duration - 1800) if timeout else duration
    if clicks > 1:
        assert times[-1] == times[0] + max(active * 1_000_000, clicks - 1)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert max(gaps) - min(gaps) <= 1


def test_unfinished_games_become_clicks() -> None:
    batches = list(
        read_paths(
            stream(
                "2426091a53125110\t1297054935\t60\tBird;Zebra;<;%C3%85land\tMount_St._Helens\trestart",
                "26141fd878806294\t1297055651\t1805\tBede;AT%26T\tC++\ttimeout",
            ),
            finished=False,
        )
    )
    clicks = rows(batches, "clicks")
    assert all(batch.tables["clicks"].schema.equals(CLICKS.schema) for batch in batches)
    assert [click["url"] for click in clicks[:4]] == [
        f"{WIKI}{name}" for name in ("Bird", "Zebra", "Bird", "%C3%85land")
    ]
    assert {click["query"] for click in clicks[:4]} == {"Mount St. Helens"}
    assert {click["user_id"] for click in clicks[:4]} == {"2426091a53125110"}
    assert {click["query"] for click in clicks[4:]} == {"C++"}
    assert clicks[0]["session_id"] != clicks[4]["session_id"]
    seconds = [click["clicked_at"].timestamp() for click in clicks]  # type: ignore[attr-defined]
    assert seconds == [1297054875, 1297054895, 1297054915, 1297054935, 1297053846, 1297053851]
    assert all(click["position"] is None and click["user_group"] is None for click in clicks)


def test_a_finished_games_target_is_where_it_ended() -> None:
    batches = list(
        read_paths(
            stream(
                "6a3701d319fc3754\t1297740409\t166\tBird;Zebra;<;AT%26T\tNULL",
                "6a3701d319fc3754\t1297740500\t0\tBede\t3",
            ),
            finished=True,
        )
    )
    clicks = rows(batches, "clicks")
    assert [click["query"] for click in clicks] == ["AT&T"] * 4 + ["Bede"]
    assert clicks[-1]["url"] == f"{WIKI}Bede"
    assert [(batch.records, batch.used) for batch in batches] == [(2, 2)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("u\t1297054935\t60\tBird;Zebra\tBede", "columns-unexpected"),
        ("\t1297054935\t60\tBird;Zebra\tBede\trestart", "user-missing"),
        ("u\tyesterday\t60\tBird;Zebra\tBede\trestart", "timestamp-invalid"),
        ("u\t99999999999\t60\tBird;Zebra\tBede\trestart", "timestamp-invalid"),
        ("u\t1297054935\t-1\tBird;Zebra\tBede\trestart", "duration-invalid"),
        ("u\t1297054935\t1297054936\tBird;Zebra\tBede\trestart", "duration-invalid"),
        ("u\t1297054935\t60\tBird;<;<\tBede\trestart", "path-invalid"),
        ("u\t1297054935\t60\t\tBede\trestart", "path-invalid"),
        ("u\t1297054935\t60\tBird\t_\trestart", "query-missing"),
    ],
)
def test_unusable_paths_are_rejected_with_their_line(line: str, reason: str) -> None:
    batches = list(read_paths(stream(line), finished=False))
    assert rejects(batches) == [(reason, line)]
    assert [dict(batch.rejected) for batch in batches] == [{reason: 1}]


def test_a_line_that_is_not_utf_8_is_rejected() -> None:
    batches = list(read_links(io.BytesIO(b"Bird\tZebra\nBird\t\xff\n"), ARTICLES))
    assert [reason for reason, _ in rejects(batches)] == ["not-utf-8"]
    assert len(rows(batches, "links")) == 1


# --- articles, texts, links ------------------------------------------------------------------------------------------

TEXT = """   #copyright

Zebra

2007 Schools Wikipedia Selection. Related subjects: Insects, Reptiles and
Fish; Mammals

   Zebras have stripes.

Related subjects

   A heading of the article's own.
   Retrieved from "
   http://en.wikipedia.org/wiki/Zebra"
   This reference article is mainly selected from the English Wikipedia
   with only minor checks and changes (see www.wikipedia.org for details
   of authors and sources) and is available under the GNU Free
   Documentation License. See also our Disclaimer.
"""


def test_texts_do_not_give_the_topics_away() -> None:
    expected = "Zebra\n\n\n   Zebras have stripes.\n\nRelated subjects\n\n   A heading of the article's own."
    assert article_text(TEXT) == expected


def test_a_text_without_the_common_lines_stays_as_it_is() -> None:
    assert article_text("Zebra\n\n   #copyright is a word here.\n") == "Zebra\n\n   #copyright is a word here."


def test_pages() -> None:
    files = [
        SourceFile("%C3%85land.txt", "a/%C3%85land.txt", TEXT.replace("Zebra", "Åland").encode()),
        SourceFile("Bird.txt", "a/Bird.txt", b"\xff\xfe"),
        SourceFile("Unlisted.txt", "a/Unlisted.txt", b"text"),
    ]
    batches = list(read_texts(iter(files), ARTICLES))
    (page,) = rows(batches, "pages")
    assert batches[0].tables["pages"].schema.equals(PAGES.schema)
    assert page["url"] == f"{WIKI}%C3%85land"
    assert page["title"] == "Åland"
    assert (page["status"], page["language"], page["fetched_at"]) == (None, "en", None)
    assert str(page["content_digest"]).startswith("sha1:")
    assert rejects(batches) == [("not-utf-8", "a/Bird.txt"), ("article-unknown", "a/Unlisted.txt")]


def test_links() -> None:
    batches = list(read_links(stream("Bird\tAT%26T", "Bird\tNowhere", "Nowhere\tBird", "Bird"), ARTICLES))
    (link,) = rows(batches, "links")
    assert batches[0].tables["links"].schema.equals(LINKS.schema)
    assert link == {
        "source_url": f"{WIKI}Bird",
        "target_url": f"{WIKI}AT%26T",
        "anchor_text": "AT&T",
        "nofollow": False,
    }
    assert [reason for reason, _ in rejects(batches)] == ["article-unknown", "article-unknown", "columns-unexpected"]


def test_articles_are_listed_once() -> None:
    listed, (balance,) = read_articles(stream("Bird", "Zebra", "Bird", "two\tcolumns"))
    assert listed == {"Bird", "Zebra"}
    assert (balance.records, balance.used) == (4, 2)
    assert balance.ignored == {"duplicate": 1}
    assert balance.rejected == {"columns-unexpected": 1}


@pytest.mark.parametrize(
    ("article", "title"),
    [
        ("%C3%85land", "Åland"),
        ("AT%26T", "AT&T"),
        ("Mount_St._Helens", "Mount St. Helens"),
        ("C++", "C++"),
        ("_Usa", "Usa"),
    ],
)
def test_titles(article: str, title: str) -> None:
    assert article_title(article) == title


@pytest.mark.parametrize("article", sorted(ARTICLES))
def test_urls_are_canonical(article: str) -> None:
    url = article_url(article)
    assert url == f"{WIKI}{article}"
    assert canonical_url(url).url == url


# --- topics ----------------------------------------------------------------------------------------------------------


def test_a_categorys_topics_are_its_prefixes() -> None:
    assert topic_names("subject.Science.Biology.Birds") == [
        "subject.Science",
        "subject.Science.Biology",
        "subject.Science.Biology.Birds",
    ]


def test_topics_and_seeds() -> None:
    many = [f"Article_{number}" for number in range(40)]
    lines = [f"{name}\tsubject.Science.{'Biology' if number % 4 else 'Physics'}" for number, name in enumerate(many)]
    found = read_categories(stream(*lines, "Article_1\tsubject.Science.Physics"), frozenset(many))
    assert found.topics.schema.equals(TOPICS.schema)
    table = found.topics.to_pylist()
    assert table == sorted(table, key=lambda row: (row["topic"], row["url"]))
    sizes = Counter(row["topic"] for row in table)
    assert sizes == {"subject.Science": 40, "subject.Science.Biology": 30, "subject.Science.Physics": 11}
    seeds = topic_seeds(found.topics)
    assert {topic: len(urls) for topic, urls in seeds.items()} == {
        "subject.Science": 8,
        "subject.Science.Biology": 8,
        "subject.Science.Physics": 5,
    }
    shuffled = read_categories(stream("Article_1\tsubject.Science.Physics", *reversed(lines)), frozenset(many))
    assert shuffled.topics.equals(found.topics)


def test_a_topic_of_one_page_has_no_seeds() -> None:
    found = read_categories(stream("Bird\tsubject.Science"), ARTICLES)
    assert found.topics.to_pylist() == [{"topic": "subject.Science", "url": f"{WIKI}Bird", "is_seed": False}]
    assert topic_seeds(found.topics) == {}


@pytest.mark.parametrize(
    "category", ["subject", "Science", "subject..Birds", "subject.../../etc/passwd", "subject.A/B"]
)
def test_names_that_are_no_categories_are_rejected(category: str) -> None:
    found = read_categories(stream(f"Bird\t{category}"), ARTICLES)
    assert found.topics.num_rows == 0
    assert rejects(found.batches) == [("category-invalid", f"Bird\t{category}")]


# --- archives --------------------------------------------------------------------------------------------------------


def pack(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def test_archive_members_are_read(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.tar.gz", (member("a", tarfile.DIRTYPE), b""), (member("a/b.txt"), b"text"))
    assert list(archive_files(path)) == [SourceFile("b.txt", f"{path}/a/b.txt", b"text")]


@pytest.mark.parametrize(
    "hostile",
    [
        member("../outside.txt"),
        member("a/../../outside.txt"),
        member("/etc/cron.d/job"),
        member("a\\..\\..\\outside.txt"),
        member("a/link.txt", tarfile.SYMTYPE, "/etc/passwd"),
        member("a/hard.txt", tarfile.LNKTYPE, "b.txt"),
        member("a/device", tarfile.CHRTYPE),
        member("a/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda info: info.name,
)
def test_hostile_archives_are_refused(tmp_path: Path, hostile: tarfile.TarInfo) -> None:
    path = pack(tmp_path / "x.tar.gz", (member("a/b.txt"), b"text"), (hostile, b""))
    with pytest.raises(InputError, match=r"expected (paths within|files and folders)"):
        list(archive_files(path))
    assert {file.name for file in tmp_path.rglob("*")} == {"x.tar.gz"}


def test_members_that_unpack_too_large_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path / "x.tar.gz", (member("a.txt"), bytes(5000)))
    monkeypatch.setattr(wikispeedia, "MAX_MEMBER_BYTES", 4999)
    with pytest.raises(InputError, match="has 5000 bytes, expected at most 4999"):
        list(archive_files(path))


def test_an_archive_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.tar.gz", *((member(f"{n}.txt"), f"text {n}".encode() * n) for n in range(8)))
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"is damaged, or not a tar\.gz archive"):
            list(archive_files(path))


def test_an_archive_with_a_changed_byte_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.tar.gz", (member("a.txt"), bytes(range(256)) * 40))
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged, or not a tar\.gz archive"):
        list(archive_files(path))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_text("<html>Not found</html>")
    with pytest.raises(InputError, match=r"is damaged, or not a tar\.gz archive"):
        list(archive_files(path))


FILES = dict.fromkeys(("articles.tsv", "categories.tsv", "links.tsv", "paths_unfinished.tsv"), HEAD)


@pytest.mark.parametrize("layout", ["archive", "folder", "flat"])
@pytest.mark.parametrize("finished", [False, True])
def test_every_layout_of_the_source(tmp_path: Path, layout: str, *, finished: bool) -> None:
    files = {**FILES, "paths_finished.tsv": HEAD} if finished else FILES
    if layout == "archive":
        pack(
            tmp_path / wikispeedia.GRAPH_ARCHIVE,
            *((member(f"{wikispeedia.GRAPH}/{name}"), text.encode()) for name, text in files.items()),
        )
        pack(tmp_path / wikispeedia.TEXTS_ARCHIVE, (member("plaintext_articles/Bird.txt"), b"text"))
    else:
        folder = tmp_path / wikispeedia.GRAPH if layout == "folder" else tmp_path
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        (tmp_path / "plaintext_articles").mkdir()
        (tmp_path / "plaintext_articles" / "Bird.txt").write_bytes(b"text")
    found = graph_files(tmp_path)
    assert set(found) == set(files)
    assert all(file.content == HEAD.encode() for file in found.values())
    assert [(file.name, file.content) for file in text_files(tmp_path)] == [("Bird.txt", b"text")]


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found neither wikispeedia_paths-and-graph\.tar\.gz nor"):
        graph_files(tmp_path)
    with pytest.raises(InputError, match=r"found neither wikispeedia_articles_plaintext\.tar\.gz nor"):
        list(text_files(tmp_path))
    (tmp_path / "articles.tsv").write_text(HEAD)
    with pytest.raises(InputError, match=r"found no categories\.tsv, links\.tsv, paths_unfinished\.tsv"):
        graph_files(tmp_path)


# --- the published set -----------------------------------------------------------------------------------------------


def test_unpacked_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a link to a device that never ends is not."""
    monkeypatch.setattr(wikispeedia, "MAX_MEMBER_BYTES", 1 << 10)
    folder = tmp_path / wikispeedia.TEXTS
    folder.mkdir()
    (folder / "Bird.txt").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"Bird\.txt: is larger than 1,024 bytes"):
        list(text_files(tmp_path))


def test_the_published_set(shared_data: Path) -> None:
    source = shared_data / "wikispeedia"
    graph = graph_files(source)
    listed, _ = read_articles(graph["articles.tsv"].open())
    assert len(listed) == 4_598
    assert len({article_url(article) for article in listed}) == 4_598
    assert all(article_url(article) == f"{WIKI}{article}" for article in listed)
    links = list(read_links(graph["links.tsv"].open(), listed))
    assert sum(batch.tables["links"].num_rows for batch in links) == 119_879
    paths = list(read_paths(graph["paths_unfinished.tsv"].open(), finished=False))
    assert (sum(batch.records for batch in paths), sum(batch.used for batch in paths)) == (24_875, 24_875)
    topics = read_categories(graph["categories.tsv"].open(), listed)
    assert sum(batch.used for batch in topics.batches) == 5_203
    assert len(set(topics.topics["topic"].to_pylist())) == 145


def test_the_published_texts(shared_data: Path) -> None:
    listed, _ = read_articles(graph_files(shared_data / "wikispeedia")["articles.tsv"].open())
    count = 0
    for batch in read_texts(text_files(shared_data / "wikispeedia"), listed):
        assert not batch.rejected
        for text in batch.tables["pages"]["text"].to_pylist():
            count += 1
            assert "Schools Wikipedia Selection" not in text
            assert "GNU Free" not in text[-400:] or "Disclaimer" not in text[-400:]
            assert not text.startswith("#copyright")
            assert len(text) > 100
    assert count == 4_598
