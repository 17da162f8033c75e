"""A small web of our own making: pages, captures in WARC files, a click log, topics and seeds.

The web has six topics on ten hosts below `.example`, a domain that is reserved (RFC 2606) and can never be
registered. It is made to hold what a crawl holds: relative links, a base URL, links marked nofollow, robots rules,
redirects, a page that moved by meta refresh, a missing page, a file that is no HTML, a page in another language and
charset, tracking parameters, pages captured twice. More than half of its URLs are known by links only.

Everything follows from `VERSION`: the same version gives the same bytes, wherever and whenever it is made (with the
same compressor and Parquet library).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import posixpath
import random
import string
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType

from semrank.schemas.tables import CLICKS, TOPICS, conform
from semrank.transforms.samples import sample_vocabulary as vocabulary
from semrank.transforms.samples.sample_vocabulary import Entry, Topic

VERSION = 1
"""Raised whenever a byte of the sample changes."""

CAPTURED_SHARE = 0.45
"""Share of all URLs that the WARC files hold; the rest is known from links and clicks only."""

SEED_TOPIC = "birds"
"""The topic whose seeds stand in `seeds.txt`."""

LIBRARY = "library.example"
NEWS = "news.example"
FORUM = "forum.example"
SHOP = "shop.example"

_LIBRARY_ENTRIES = 10  # entries a topic that the library has an article on
_NEWS_ARTICLES = 6  # articles a topic
_FORUM_THREADS = 4  # threads a topic
_RECENT_THREADS = 10  # threads that the forum's front page lists
_RECORDS_PER_FILE = 90  # captures a WARC file, so that the first crawl fills more than one

_FIRST_CRAWL = dt.datetime(2024, 3, 4, 6, 0, tzinfo=dt.UTC)
_SECOND_CRAWL = dt.datetime(2024, 3, 18, 6, 0, tzinfo=dt.UTC)
_CAPTURE_SECONDS = 7  # time between two captures of a crawl
_CLICKS_BEGIN = dt.datetime(2024, 2, 5, tzinfo=dt.UTC)
_CLICK_DAYS = 28

_USERS_PER_GROUP = 8
_USERS_WITHOUT_GROUP = 6
_SESSIONS_PER_USER = 16
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, f"sample-{VERSION}.example")
_USER_AGENT = "sample-crawler/1.0 (+https://library.example/about)"

_HTML_TYPE = "text/html; charset=utf-8"
_LATIN_TYPE = "text/html; charset=iso-8859-1"


class SamplePage(NamedTuple):
    """One URL of the sample and what a server answers there.

    Attributes:
        url: absolute URL, in canonical form.
        status: HTTP status code.
        headers: response headers in their order, without Date.
        body: the response's body.
    """

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True)
class _Link:
    target: str
    anchor: str
    place: str  # nav, main, aside or footer
    nofollow: bool = False


@dataclass
class _Page:
    """A page before it is written as HTML.

    Attributes:
        url: absolute URL.
        title: heading and title.
        topic: the topic that the page is relevant to, None for pages of no topic.
        about: the entry the page is about, if it is about one.
        paragraphs: HTML of the text's paragraphs, links within included.
        links: all links, those within the paragraphs too (place "text").
        robots: content of the robots meta element, empty for none.
        language: value of the lang attribute.
    """

    url: str
    title: str
    topic: Topic | None
    about: Entry | None = None
    paragraphs: list[str] = field(default_factory=list)
    links: list[_Link] = field(default_factory=list)
    robots: str = ""
    language: str = "en"

    def link(self, target: _Page | str, anchor: str, place: str, *, nofollow: bool = False) -> None:
        url = target if isinstance(target, str) else target.url
        self.links.append(_Link(url, anchor, place, nofollow))


@dataclass(frozen=True)
class _Web:
    """The whole sample.

    Attributes:
        pages: pages with text, by URL.
        answers: what the server answers, by URL, in the order of URLs; pages and everything else.
        first: the same at the time of the first crawl.
        captured: URLs of the first crawl in the order of their captures.
    """

    pages: Mapping[str, _Page]
    answers: Mapping[str, SamplePage]
    first: Mapping[str, SamplePage]
    captured: tuple[str, ...]


def sample_pages() -> list[SamplePage]:
    """Every URL of the sample with its newest answer, those that are in no WARC file too, in the order of URLs."""
    return list(_web().answers.values())


def sample_topics() -> pa.Table:
    """The pages relevant to each topic, schema TOPICS in the order of topic and URL; each topic has four seeds."""
    web = _web()
    rows: list[tuple[str, str, bool]] = []
    for topic in vocabulary.TOPICS:
        seeds = set(_seeds(topic))
        rows += [(topic.name, page.url, page.url in seeds) for page in web.pages.values() if page.topic is topic]
    rows.sort()
    names, urls, marks = zip(*rows, strict=True)
    return conform(pa.table({"topic": names, "url": urls, "is_seed": marks}), TOPICS)


def sample_seeds() -> str:
    """The text of `seeds.txt`: the seeds of `SEED_TOPIC`, one URL a line, with comments."""
    topic = next(topic for topic in vocabulary.TOPICS if topic.name == SEED_TOPIC)
    lines = [
        f"# Where a crawl for pages about {SEED_TOPIC} starts.",
        "# One URL a line; a number sign starts a comment.",
    ]
    lines += _seeds(topic)
    return "\n".join(lines) + "\n"


def sample_files() -> Iterator[tuple[str, bytes]]:
    """The sample's files in the order of writing: (path relative to the output folder, content)."""
    web = _web()
    captures = [
        _Capture(web.first[url], _FIRST_CRAWL + dt.timedelta(seconds=_CAPTURE_SECONDS * number))
        for number, url in enumerate(web.captured)
    ]
    for number, start in enumerate(range(0, len(captures), _RECORDS_PER_FILE)):
        name = f"sample-{_FIRST_CRAWL:%Y%m%d}-{number:05d}.warc.gz"
        yield f"warc/{name}", _warc_file(name, captures[start : start + _RECORDS_PER_FILE])
    seen = {capture.page.url: capture for capture in captures}
    again = [
        _Capture(
            web.answers[url],
            _SECOND_CRAWL + dt.timedelta(seconds=_CAPTURE_SECONDS * number),
            unchanged_since=seen[url] if web.answers[url].body == web.first[url].body else None,
        )
        for number, url in enumerate(_recaptured())
    ]
    name = f"sample-{_SECOND_CRAWL:%Y%m%d}-00000.warc.gz"
    yield f"warc/{name}", _warc_file(name, again)
    yield "clicks/clicks-00000.parquet", _parquet(sample_clicks())
    yield "topics.parquet", _parquet(sample_topics())
    yield "seeds.txt", sample_seeds().encode()


# --- the pages -------------------------------------------------------------------------------------------------------


@cache
def _web() -> _Web:
    pages = _plan()
    _write_texts(pages)
    _connect(pages)
    answers = {page.url: page for page in _answers(pages, second_edition=True)}
    first = {page.url: page for page in _answers(pages, second_edition=False)}
    return _Web(pages, answers, first, _captures(pages, first))


def _plan() -> dict[str, _Page]:
    """All pages with text, without their text and links."""
    pages: list[_Page] = []
    for topic in vocabulary.TOPICS:
        site = f"https://{topic.host}"
        pages.append(_Page(f"{site}/", topic.site, topic))
        for section, entries in topic.sections.items():
            pages.append(_Page(f"{site}/{section}/", _heading(section.replace("-", " ")), topic))
            pages += [
                _Page(f"{site}/{section}/{entry.slug}.html", _heading(entry.name), topic, entry) for entry in entries
            ]
        pages += [_Page(_guide_url(topic, title), title, topic) for title, _ in topic.guides]
        pages.append(_Page(f"{site}/glossary.html", f"Words of {topic.name}", topic))
        pages.append(_Page(f"{site}/about.html", f"About {topic.site}", None))
        pages.append(_Page(f"{site}/privacy.html", "Privacy", None))
        pages.append(_Page(f"https://{LIBRARY}/{topic.name}/", f"Articles on {topic.name}", topic))
        for entry in _chosen(topic, LIBRARY, _LIBRARY_ENTRIES):
            pages.append(_Page(_library_url(topic, entry), f"{_heading(entry.name)} in the library", topic, entry))
        for number, entry in enumerate(_chosen(topic, NEWS, _NEWS_ARTICLES)):
            pages.append(
                _Page(_news_url(entry, number), f"{_heading(entry.name)}: a report from our readers", topic, entry)
            )
    for number, (topic, entry) in enumerate(_threads()):
        search = topic.searches[number % len(topic.searches)]
        pages.append(
            _Page(f"https://{FORUM}/thread?id={number + 1}", f"Question: {entry.name}, {search}", topic, entry)
        )
    pages += [
        _Page(f"https://{LIBRARY}/", "The Open Shelf", None),
        _Page(f"https://{NEWS}/", "The Evening Post Bag", None),
        _Page(f"https://{NEWS}/2024/02/", "Letters of February 2024", None),
        _Page(f"https://{NEWS}/2024/03/", "Letters of March 2024", None),
        _Page(f"https://{FORUM}/", "The Kitchen Table", None),
        _Page(f"https://{FORUM}/members", "Members", None, robots="noindex, nofollow"),
        _Page(f"https://{SHOP}/", "Useful Things", None),
        *(_Page(f"https://{SHOP}/goods/{slug}", name, None) for slug, name in vocabulary.GOODS),
        _Page("https://birds.example/de/turmfalke.html", "Der Turmfalke", vocabulary.BIRDS, language="de"),
    ]
    return {page.url: page for page in sorted(pages, key=lambda page: page.url)}


def _heading(text: str) -> str:
    return text[0].upper() + text[1:]


def _guide_url(topic: Topic, title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter in string.ascii_lowercase + " ")
    return f"https://{topic.host}/guides/{kept.replace(' ', '-')}.html"


def _entry_url(topic: Topic, entry: Entry) -> str:
    section = next(name for name, entries in topic.sections.items() if entry in entries)
    return f"https://{topic.host}/{section}/{entry.slug}.html"


def _library_url(topic: Topic, entry: Entry) -> str:
    return f"https://{LIBRARY}/{topic.name}/{entry.slug}"


def _news_url(entry: Entry, number: int) -> str:
    day = dt.date(2024, 2, 12) + dt.timedelta(days=5 * number)
    return f"https://{NEWS}/{day:%Y/%m/%d}/{entry.slug}.html"


def _all_entries(topic: Topic) -> list[Entry]:
    return [entry for entries in topic.sections.values() for entry in entries]


def _chosen(topic: Topic, purpose: str, count: int) -> list[Entry]:
    """Some of a topic's entries, the same for the same purpose."""
    return _random(topic.name, purpose).sample(_all_entries(topic), count)


def _threads() -> list[tuple[Topic, Entry]]:
    """Topic and entry of each forum thread, in the order of their numbers."""
    chosen = [(topic, entry) for topic in vocabulary.TOPICS for entry in _chosen(topic, FORUM, _FORUM_THREADS)]
    _random(FORUM, "order").shuffle(chosen)
    return chosen


def _seeds(topic: Topic) -> list[str]:
    sections = sorted(topic.sections)[:2]
    site = f"https://{topic.host}"
    return [f"{site}/", *(f"{site}/{section}/" for section in sections), f"https://{LIBRARY}/{topic.name}/"]


def _recaptured() -> tuple[str, ...]:
    """What the second crawl fetched: three pages that changed and one that did not."""
    return (
        f"https://{NEWS}/",
        "https://birds.example/",
        "https://birds.example/raptors/",
        "https://astronomy.example/",
    )


_UNCHANGED = "https://astronomy.example/"


def _random(*purpose: str) -> random.Random:
    """A generator of its own for each purpose, so that adding a page does not change the others."""
    return random.Random("|".join((str(VERSION), *purpose)))


# --- their text ------------------------------------------------------------------------------------------------------


def _sentence(rng: random.Random, topic: Topic, pattern: str, phrase: str) -> str:
    """A pattern with its slots filled: `{it}` by the phrase, `{word}` and `{word2}` by two different words."""
    values = {"it": phrase}
    for _, slot, _, _ in string.Formatter().parse(pattern):
        if slot is not None and slot not in values:
            values[slot] = rng.choice([w for w in topic.words[slot.rstrip("2")] if w not in values.values()])
    return _heading(pattern.format(**values))


def _paragraph(rng: random.Random, topic: Topic, phrase: str, sentences: int) -> str:
    patterns = rng.sample(topic.patterns, sentences)
    text = [escape(_sentence(rng, topic, pattern, phrase)) for pattern in patterns]
    if rng.random() < 0.4:
        text.insert(rng.randrange(1, len(text) + 1), rng.choice(vocabulary.EVERYDAY))
    return " ".join(text)


def _write_texts(pages: Mapping[str, _Page]) -> None:
    for page in pages.values():
        rng = _random("text", page.url)
        if page.language == "de":
            page.paragraphs = [escape(paragraph) for paragraph in vocabulary.GERMAN_PARAGRAPHS]
        elif page.topic is None:
            page.paragraphs = [" ".join(rng.sample(vocabulary.EVERYDAY, 4)) for _ in range(2)]
        elif page.about is not None:
            page.paragraphs = _entry_text(rng, page, page.topic, page.about)
        else:
            entries = rng.sample(_all_entries(page.topic), 4)
            page.paragraphs = [_paragraph(rng, page.topic, entry.phrase, 3) for entry in entries]
            if page.url.endswith("/glossary.html"):
                page.paragraphs += [_glossary_line(slot, words) for slot, words in sorted(page.topic.words.items())]


def _glossary_line(slot: str, words: Sequence[str]) -> str:
    return f"<b>{escape(slot)}</b>: " + ", ".join(escape(word) for word in sorted(words)) + "."


def _entry_text(rng: random.Random, page: _Page, topic: Topic, entry: Entry) -> list[str]:
    """Three paragraphs about an entry, the last of which links to two entries that resemble it."""
    opening = f"{_heading(entry.phrase)}, also known as {entry.also}, {entry.fact}."
    paragraphs = [
        f"{escape(opening)} {_paragraph(rng, topic, entry.phrase, 3)}",
        _paragraph(rng, topic, entry.phrase, 4),
    ]
    others = rng.sample([other for other in _all_entries(topic) if other is not entry], 2)
    comparisons = []
    article = "the " if others[1].phrase.startswith("the ") else ""
    for other, anchor in zip(others, (others[0].phrase, article + others[1].also), strict=True):
        url = _entry_url(topic, other)
        page.link(url, anchor, "text")
        hint = escape(f"{other.phrase} {other.fact}")
        comparisons.append(f"Compare {escape(entry.phrase)} with {_anchor(page, url, anchor)}: {hint}.")
    paragraphs.append(f"{' '.join(comparisons)} {_paragraph(rng, topic, entry.phrase, 2)}")
    return paragraphs


# --- their links -----------------------------------------------------------------------------------------------------


def _connect(pages: Mapping[str, _Page]) -> None:
    """Give every page its links."""
    relevant = {topic.name: [page for page in pages.values() if page.topic is topic] for topic in vocabulary.TOPICS}
    for topic in vocabulary.TOPICS:
        _connect_site(pages, topic)
        _connect_elsewhere(pages, topic)
    _connect_fronts(pages)
    _connect_specials(pages)
    for page in pages.values():
        _add_frame(page, relevant)


def _connect_site(pages: Mapping[str, _Page], topic: Topic) -> None:
    site = f"https://{topic.host}"
    home = pages[f"{site}/"]
    rng = _random("links", topic.name)
    for entry in rng.sample(_all_entries(topic), 3):
        home.link(_entry_url(topic, entry), f"This month: {entry.name}", "main")
    for title, section in topic.guides:
        guide = pages[_guide_url(topic, title)]
        home.link(guide, title, "main")
        for entry in rng.sample(topic.sections[section], 3):
            guide.link(_entry_url(topic, entry), entry.phrase, "main")
        guide.link(f"{site}/{section}/", f"All about {section.replace('-', ' ')}", "main")
    for entry in rng.sample(_all_entries(topic), 6):
        pages[f"{site}/glossary.html"].link(_entry_url(topic, entry), entry.also, "main")
    in_library = set(_chosen(topic, LIBRARY, _LIBRARY_ENTRIES))
    for section, entries in topic.sections.items():
        for entry in entries:
            page = pages[_entry_url(topic, entry)]
            pages[f"{site}/{section}/"].link(page, _heading(entry.name), "main")
            page.link(f"{site}/{section}/", f"Back to {section.replace('-', ' ')}", "main")
            for other in rng.sample([other for other in entries if other is not entry], 2):
                page.link(_entry_url(topic, other), other.name, "aside")
            if entry in in_library:
                page.link(_library_url(topic, entry), "Read more in the library", "main")


def _connect_elsewhere(pages: Mapping[str, _Page], topic: Topic) -> None:
    """The topic's pages in the library, in the news and in the forum."""
    shelf = pages[f"https://{LIBRARY}/{topic.name}/"]
    shelf.link(f"https://{topic.host}/", topic.site, "main")
    for entry in _chosen(topic, LIBRARY, _LIBRARY_ENTRIES):
        article = pages[_library_url(topic, entry)]
        shelf.link(article, f"{_heading(entry.name)} ({entry.also})", "main")
        article.link(shelf, f"More articles on {topic.name}", "main")
        article.link(_entry_url(topic, entry), f"{_heading(entry.name)} at {topic.site}", "main")
    for number, entry in enumerate(_chosen(topic, NEWS, _NEWS_ARTICLES)):
        article = pages[_news_url(entry, number)]
        month = "/".join(urlsplit(article.url).path.split("/")[1:3])
        pages[f"https://{NEWS}/{month}/"].link(article, article.title, "main")
        article.link(_entry_url(topic, entry), "background", "main")
    for number, (of, entry) in enumerate(_threads()):
        if of is topic:
            thread = pages[f"https://{FORUM}/thread?id={number + 1}"]
            thread.link(_entry_url(topic, entry), "this page", "main")
            thread.link(_random("spam", thread.url).choice(_goods_urls()), "cheap offers", "main", nofollow=True)


def _goods_urls() -> list[str]:
    return [f"https://{SHOP}/goods/{slug}" for slug, _ in vocabulary.GOODS]


def _connect_fronts(pages: Mapping[str, _Page]) -> None:
    """The front pages of the hosts that belong to no topic."""
    library, news, forum, shop = (pages[f"https://{host}/"] for host in (LIBRARY, NEWS, FORUM, SHOP))
    for topic in vocabulary.TOPICS:
        library.link(f"https://{LIBRARY}/{topic.name}/", _heading(topic.name), "main")
        first = _chosen(topic, NEWS, _NEWS_ARTICLES)[0]
        news.link(_news_url(first, 0), f"{_heading(first.name)} again", "main")
    for month in ("2024/02", "2024/03"):
        news.link(f"https://{NEWS}/{month}/", f"Letters of {month}", "nav")
    numbered = list(enumerate(_threads(), start=1))
    for number, (topic, entry) in numbered[-_RECENT_THREADS:]:
        forum.link(f"https://{FORUM}/thread?id={number}", f"{topic.name}: {entry.name}", "main")
    for number, _ in numbered[:-1]:
        thread = pages[f"https://{FORUM}/thread?id={number}"]
        thread.link(f"https://{FORUM}/thread?id={number + 1}", "next thread", "nav")
        pages[f"https://{FORUM}/thread?id={number + 1}"].link(thread, "previous thread", "nav")
    forum.link(f"https://{FORUM}/members", "Members", "nav")
    pages[f"https://{FORUM}/members"].link(forum, "Back to the table", "main")
    for url, (_, name) in zip(_goods_urls(), vocabulary.GOODS, strict=True):
        shop.link(url, name, "main")
        pages[url].link(shop, "All goods", "main")


def _connect_specials(pages: Mapping[str, _Page]) -> None:
    """Links to what is no page with text: redirects, the missing page, the file that is no HTML; and to German."""
    pages["https://birds.example/"].link("https://birds.example/kestrel", "The bird of the year", "main")
    pages[f"https://{LIBRARY}/birds/"].link("http://birds.example/", "an old address of the bird pages", "main")
    pages["https://astronomy.example/"].link("https://astronomy.example/tonight", "The sky tonight", "main")
    pages[f"https://{LIBRARY}/railways/"].link("https://railways.example/index.htm", "the branch line pages", "main")
    pages["https://baking.example/"].link("https://baking.example/recipes/seed-cake.html", "Seed cake", "main")
    pages["https://geology.example/"].link("https://geology.example/maps/field-map.pdf", "Field map to print", "main")
    german = pages["https://birds.example/de/turmfalke.html"]
    kestrel = pages["https://birds.example/raptors/kestrel.html"]
    pages["https://birds.example/raptors/"].link(german, "Der Turmfalke (deutsch)", "main")
    kestrel.link(german, "Auf Deutsch lesen", "main")
    german.link(kestrel, "Auf Englisch lesen", "main")


def _add_frame(page: _Page, relevant: Mapping[str, Sequence[_Page]]) -> None:
    """Navigation, links into other topics, an advertisement and a footer."""
    parts = urlsplit(page.url)
    site = f"https://{parts.netloc}"
    topic = next((topic for topic in vocabulary.TOPICS if topic.host == parts.netloc), None)
    page.link(f"{site}/", "Home", "nav")
    if topic is not None:
        for section in topic.sections:
            page.link(f"{site}/{section}/", _heading(section.replace("-", " ")), "nav")
        page.link(f"{site}/glossary.html", "Glossary", "footer")
        page.link(f"{site}/about.html", "About us", "footer")
        page.link(f"{site}/privacy.html", "Privacy", "footer")
    if parts.netloc == SHOP:
        return
    rng = _random("frame", page.url)
    elsewhere = sorted(name for name in relevant if page.topic is None or name != page.topic.name)
    for name in rng.sample(elsewhere, 2):
        other = rng.choice(relevant[name])
        page.link(other, other.title, "aside")
    if page.topic is not None:
        same = rng.choice([other for other in relevant[page.topic.name] if other is not page])
        page.link(same, "Related reading", "aside")
    page.link(rng.choice(_goods_urls()), "Advertisement", "aside", nofollow=True)
    page.link(f"https://{rng.choice((LIBRARY, NEWS, FORUM))}/", "Our friends", "footer")


# --- written as HTML -------------------------------------------------------------------------------------------------


def _href(page: _Page, target: str, place: str) -> str:
    """How the page's host writes a link: relative, relative to a base, absolute, or with idle parameters."""
    here, there = urlsplit(page.url), urlsplit(target)
    if here.netloc == FORUM and there.netloc == FORUM:
        session = hashlib.sha256(page.url.encode()).hexdigest()[:16]
        return f"{there.path}?{there.query}{'&' if there.query else ''}PHPSESSID={session}"
    if place == "footer" and here.netloc != there.netloc:
        return f"{target}?utm_source={here.netloc}&utm_medium=footer"
    if here[:2] != there[:2] or here.netloc == NEWS:
        return target
    if here.netloc == LIBRARY:
        return there.path.removeprefix("/") or "./"
    folder = posixpath.dirname(here.path)
    relative = posixpath.relpath(there.path, folder)
    return f"{relative}/" if there.path.endswith("/") and relative != "/" else relative


def _anchor(page: _Page, target: str, text: str, place: str = "text", *, nofollow: bool = False) -> str:
    rel = ' rel="nofollow"' if nofollow else ""
    return f'<a href="{escape(_href(page, target, place))}"{rel}>{escape(text)}</a>'


def _list(page: _Page, place: str) -> str:
    items = [
        f"<li>{_anchor(page, link.target, link.anchor, place, nofollow=link.nofollow)}</li>"
        for link in page.links
        if link.place == place
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _html(page: _Page, *, charset: str, second_edition: bool) -> str:
    host = urlsplit(page.url).netloc
    head = [f'<meta charset="{charset}">', f"<title>{escape(page.title)}</title>"]
    if host == LIBRARY:
        head.append(f'<base href="https://{LIBRARY}/">')
    if page.robots:
        head.append(f'<meta name="robots" content="{page.robots}">')
    head += ["<style>body { max-width: 40em }</style>", "<script>var visits = 1; // <p>not text</p></script>"]
    text = [f"<p>{paragraph}</p>" for paragraph in page.paragraphs]
    if second_edition and page.url in _recaptured() and page.url != _UNCHANGED:
        text.insert(0, "<p>Updated on 17 March 2024: the spring letters have arrived and are being answered.</p>")
    if page.about is not None:
        alternative = escape(f"{_heading(page.about.phrase)}, drawn by a reader")
        text.insert(
            1, f'<p><img src="/pictures/{page.about.slug}.jpg" alt="{alternative}" width="320" height="240"></p>'
        )
        text.insert(2, "<h2>What to look for</h2>")
    contents = "\n".join(text)
    return (
        f'<!DOCTYPE html>\n<html lang="{page.language}">\n<head>\n' + "\n".join(head) + "\n</head>\n<body>\n"
        f"<header><nav>{_list(page, 'nav')}</nav></header>\n"
        f"<main>\n<h1>{escape(page.title)}</h1>\n{contents}\n{_list(page, 'main')}\n</main>\n"
        f"<aside><h2>Elsewhere</h2>{_list(page, 'aside')}</aside>\n"
        f"<footer><p>Made for trying things out. All hosts end in .example.</p>{_list(page, 'footer')}</footer>\n"
        "</body>\n</html>\n"
    )


def _answer(url: str, status: int, content_type: str, body: bytes, *more: tuple[str, str]) -> SamplePage:
    headers = (("Content-Type", content_type), ("Content-Length", str(len(body))), *more)
    return SamplePage(url, status, headers, body)


def _moved(url: str, status: int, target: str) -> SamplePage:
    body = f'<html><body><p>Moved <a href="{target}">here</a>.</p></body></html>\n'.encode()
    return _answer(url, status, _HTML_TYPE, body, ("Location", target))


def _answers(pages: Mapping[str, _Page], *, second_edition: bool) -> list[SamplePage]:
    """What the servers answer at the time of the first or of the second crawl, in the order of URLs."""
    found: list[SamplePage] = []
    for page in pages.values():
        charset, content_type = ("iso-8859-1", _LATIN_TYPE) if page.language == "de" else ("utf-8", _HTML_TYPE)
        body = _html(page, charset=charset, second_edition=second_edition).encode(charset)
        found.append(_answer(page.url, 200, content_type, body))
    tonight = next(url for url, page in pages.items() if url.startswith(f"https://{NEWS}/2") and page.about is not None)
    found += [
        _moved("http://birds.example/", 301, "https://birds.example/"),
        _moved("https://birds.example/kestrel", 301, "/raptors/kestrel.html"),
        _moved("https://astronomy.example/tonight", 302, tonight),
        _answer("https://railways.example/index.htm", 200, _HTML_TYPE, _REFRESH),
        _answer("https://baking.example/recipes/seed-cake.html", 404, _HTML_TYPE, _MISSING),
        _answer("https://geology.example/maps/field-map.pdf", 200, "application/pdf", _PDF),
    ]
    for host in sorted({urlsplit(url).netloc for url in pages}):
        found.append(_answer(f"https://{host}/robots.txt", 200, "text/plain", b"User-agent: *\nDisallow: /search\n"))
    return sorted(found)


_REFRESH = (
    b'<!DOCTYPE html>\n<html lang="en"><head><title>Moved</title><meta http-equiv="refresh" content="0; url=./">'
    b"</head><body><p>The branch line pages have moved to the front.</p></body></html>\n"
)
_MISSING = (
    b"<!DOCTYPE html>\n<html><head><title>Not found</title></head><body><p>There is no such recipe.</p></body></html>\n"
)
_PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"


# --- the crawl -------------------------------------------------------------------------------------------------------


def _captures(pages: Mapping[str, _Page], answers: Mapping[str, SamplePage]) -> tuple[str, ...]:
    """What the first crawl fetched: oddities and robots files, then breadth first from the fronts up to its share."""
    fronts = [url for url in pages if urlsplit(url).path == "/" and SHOP not in url]
    depth = dict.fromkeys(fronts, 0)
    waiting = deque(fronts)
    while waiting:
        url = waiting.popleft()
        for link in pages[url].links:
            if link.target in pages and link.target not in depth and not link.nofollow:
                depth[link.target] = depth[url] + 1
                waiting.append(link.target)
    german = "https://birds.example/de/turmfalke.html"
    oddities = [url for url in answers if url not in pages and SHOP not in url]
    oddities.append(german)
    order = sorted(depth, key=lambda url: (depth[url], hashlib.sha256(url.encode()).digest()))
    room = int(CAPTURED_SHARE * len(answers)) - len(oddities)
    return (*sorted(oddities), *[url for url in order if url not in oddities][:room])


@dataclass(frozen=True)
class _Capture:
    page: SamplePage
    at: dt.datetime
    unchanged_since: _Capture | None = None

    @property
    def date(self) -> str:
        return f"{self.at:%Y-%m-%dT%H:%M:%SZ}"

    def record_id(self, kind: str) -> str:
        return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, f'{kind} {self.page.url} {self.date}')}>"


def _warc_file(name: str, captures: Sequence[_Capture]) -> bytes:
    """A WARC/1.1 file (ISO 28500:2017), one gzip member a record: warcinfo, then a request and a response a capture."""
    buffer = io.BytesIO()
    with GzipWriter(buffer) as stream:
        about = f"software: semrank sample {VERSION}\r\nformat: WARC File Format 1.1\r\n".encode()
        info = _record(WarcRecordType.warcinfo, f"<urn:uuid:{uuid.uuid5(_NAMESPACE, name)}>", captures[0].date, about)
        info.headers["WARC-Filename"] = name
        info.headers["Content-Type"] = "application/warc-fields"
        _write_record(stream, info)
        for capture in captures:
            _write_record(stream, _request(capture))
            payload = capture.page.body if capture.unchanged_since is None else capture.unchanged_since.page.body
            _write_record(stream, _response(capture), hashlib.sha1(payload, usedforsecurity=False).digest())
    return buffer.getvalue()


def _record(kind: WarcRecordType, record_id: str, date: str, content: bytes) -> WarcRecord:
    record = WarcRecord()
    record.init_headers(kind)
    record.headers["WARC-Record-ID"] = record_id
    record.headers["WARC-Date"] = date
    record.set_bytes_content(content)
    return record


def _write_record(stream: GzipWriter, record: WarcRecord, payload_digest: bytes | None = None) -> None:
    record.write(stream, checksum_data=True, payload_digest=payload_digest)
    stream.finish()


def _request(capture: _Capture) -> WarcRecord:
    parts = urlsplit(capture.page.url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    text = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {_USER_AGENT}\r\nAccept: */*\r\n\r\n"
    record = _record(WarcRecordType.request, capture.record_id("request"), capture.date, text.encode())
    record.headers["WARC-Target-URI"] = capture.page.url
    record.headers["WARC-Concurrent-To"] = capture.record_id("response")
    record.headers["Content-Type"] = "application/http; msgtype=request"
    return record


def _response(capture: _Capture) -> WarcRecord:
    """The response, or for an unchanged page the revisit record that stands for it."""
    page, before = capture.page, capture.unchanged_since
    lines = [f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}"]
    lines += [
        f"{name}: {value}" for name, value in (("Date", f"{capture.at:%a, %d %b %Y %H:%M:%S} GMT"), *page.headers)
    ]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    kind = WarcRecordType.response if before is None else WarcRecordType.revisit
    content = head + page.body if before is None else head
    record = _record(kind, capture.record_id("response"), capture.date, content)
    record.headers["WARC-Target-URI"] = page.url
    record.headers["Content-Type"] = "application/http; msgtype=response"
    if before is not None:
        record.headers["WARC-Profile"] = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
        record.headers["WARC-Refers-To-Target-URI"] = before.page.url
        record.headers["WARC-Refers-To-Date"] = before.date
    return record


# --- the click log ---------------------------------------------------------------------------------------------------


class _Click(NamedTuple):
    user_id: str
    user_group: str | None
    session_id: str
    query: str
    clicked_at: dt.datetime
    position: int | None
    url: str


def sample_clicks() -> pa.Table:
    """A click log over four weeks, schema CLICKS in the order of time.

    Each topic has a group of eight users who mostly search within it, and six users belong to no group. A search
    names an entry by either of its names, a section or a topic, often with a second word; the first click falls on
    one of the results (position counts from 1), the following ones on other results or on links of the page
    reached (no position). Many of the pages are in no WARC file.
    """
    web = _web()
    users: list[tuple[str, Topic | None]] = [
        (f"user{number:03d}", topic)
        for number, topic in enumerate(
            [topic for topic in vocabulary.TOPICS for _ in range(_USERS_PER_GROUP)] + [None] * _USERS_WITHOUT_GROUP
        )
    ]
    clicks: list[_Click] = []
    for user, interest in users:
        rng = _random("clicks", user)
        slots = sorted(rng.sample(range(_CLICK_DAYS * 12), _SESSIONS_PER_USER))  # two hours each, so none overlap
        for number, slot in enumerate(slots):
            topic = interest if interest is not None and rng.random() < 0.85 else rng.choice(vocabulary.TOPICS)
            start = _CLICKS_BEGIN + dt.timedelta(hours=2 * slot, seconds=rng.randrange(3600))
            group = None if interest is None else interest.group
            clicks += _session(rng, web.pages, topic, start, user, group, f"{user}-{number:02d}")
    clicks.sort(key=lambda click: (click.clicked_at, click.user_id))
    columns = dict(zip(_Click._fields, zip(*clicks, strict=True), strict=True))
    return conform(pa.table({name: pa.array(values) for name, values in columns.items()}), CLICKS)


def _session(
    rng: random.Random,
    pages: Mapping[str, _Page],
    topic: Topic,
    start: dt.datetime,
    user: str,
    group: str | None,
    session: str,
) -> list[_Click]:
    query, results = _search(rng, pages, topic)
    position = min(len(results), 1 + int(rng.expovariate(0.7)))
    url, place = results[position - 1], position
    clicks = [_Click(user, group, session, query, start, place, url)]
    at = start
    while rng.random() < 0.62 and len(clicks) < 6:
        at += dt.timedelta(seconds=rng.randrange(15, 420))
        onward = [link.target for link in pages[url].links if _followed(link, pages, topic)]
        if onward and rng.random() < 0.6:
            url = rng.choice(onward)
            clicks.append(_Click(user, group, session, query, at, None, url))
        elif position < len(results):
            position += 1
            url = results[position - 1]
            clicks.append(_Click(user, group, session, query, at, position, url))
    return clicks


def _followed(link: _Link, pages: Mapping[str, _Page], topic: Topic) -> bool:
    """Whether a reader with this topic in mind would follow the link."""
    inside = link.place in ("text", "main", "aside") and not link.nofollow
    return inside and link.target in pages and pages[link.target].topic is topic


def _search(rng: random.Random, pages: Mapping[str, _Page], topic: Topic) -> tuple[str, list[str]]:
    """A query and the URLs of its results, best first."""
    kind = rng.random()
    word = rng.choice(topic.searches)
    if kind < 0.6:
        entries = _all_entries(topic)
        entry = rng.choices(entries, weights=[1 / (1 + rank) for rank in range(len(entries))])[0]
        name = (entry.also if rng.random() < 0.35 else entry.name).lower()
        section = next(name for name, members in topic.sections.items() if entry in members)
        about = sorted(page.url for page in pages.values() if page.about is entry)
        about.sort(key=lambda url: topic.host not in url)
        results = [*about, f"https://{topic.host}/{section}/", *_neighbours(topic, section, entry)]
        return (f"{name} {word}" if rng.random() < 0.7 else name), results
    section = rng.choice(sorted(topic.sections))
    inside = [f"https://{topic.host}/{section}/", *_neighbours(topic, section, None)]
    if kind < 0.85:
        return f"{section.replace('-', ' ')} {word}", inside
    guides = [_guide_url(topic, title) for title, of in topic.guides if of == section]
    return f"{topic.name} {word}", [f"https://{topic.host}/", f"https://{LIBRARY}/{topic.name}/", *guides, *inside]


def _neighbours(topic: Topic, section: str, entry: Entry | None) -> Iterable[str]:
    return [_entry_url(topic, other) for other in topic.sections[section] if other is not entry]


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
