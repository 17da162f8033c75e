"""The Wikispeedia data set: articles, their links and texts, and the paths of people who played the game.

Robert West and Jure Leskovec: Human Wayfinding in Information Networks, WWW 2012. Robert West, Joelle Pineau and
Doina Precup: Wikispeedia: An Online Game for Inferring Semantic Distances between Concepts, IJCAI 2009.

A player starts at one article and has to reach a target article by following links. Here the target's title plays
the query, and each article that the player saw is a click:

- A step back (`<`) shows the previous article again, so it is a click on that article. The edge that matters, from
  that article to the next one chosen there, is then right; leaving the step out would join two articles without a link.
- A game's timestamp is when it ended: the next game of the same player seldom begins (timestamp minus duration)
  before it. The clicks are spread evenly over the duration. A game that ended by timeout had no click for the last 30
  minutes, so these are taken off first.
- Games have sessions of their own. The player's hashed address is the user; there are no groups and no positions.

A link's anchor text is the title of its target, since the set does not keep the words that were linked. From the
texts the lines that all articles share are removed: the copyright mark, the licence at the end, and above all the line
of related subjects, which would give away the topics. Topics are the categories and all their prefixes, apart from
`subject`, which every category begins with.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from semrank.schemas.errors import InputError
from semrank.transforms.crawls.pages import content_digest
from semrank.transforms.samples.topics import topic_table
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.urls import canonical_url

GRAPH = "wikispeedia_paths-and-graph"
"""Folder and archive of articles, links, categories and paths."""

TEXTS = "plaintext_articles"
"""Folder of the texts."""

GRAPH_ARCHIVE = f"{GRAPH}.tar.gz"
TEXTS_ARCHIVE = "wikispeedia_articles_plaintext.tar.gz"
ARCHIVES = (GRAPH_ARCHIVE, TEXTS_ARCHIVE)
"""The published files."""

ARTICLE_BASE = "https://en.wikipedia.org/wiki/"
LANGUAGE = "en"

TIMEOUT_SECONDS = 30 * 60
"""Time without a click after which a game was ended as a timeout (stated in the head of the paths' file)."""

MAX_HEADER_BYTES = 1 << 20
"""Bytes of extension headers that one member of an archive, or all of its global ones, may have."""

_EXTENSION_HEADERS = frozenset(
    {
        *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE),
        tarfile.SOLARIS_XHDTYPE,
    }
)

MAX_MEMBER_BYTES = 256 << 20
"""Bytes that one file of an archive may have when unpacked: many times the largest there is (8 MB)."""

_DRAIN_BYTES = 1 << 16
_BACK = "<"
_REQUIRED = ("articles.tsv", "categories.tsv", "links.tsv", "paths_unfinished.tsv")
_OPTIONAL = ("paths_finished.tsv",)
_CATEGORY = re.compile(r"subject(?:\.[A-Za-z0-9][A-Za-z0-9_-]*)+")
_RELATED_SUBJECTS = re.compile(r"^2007 Schools Wikipedia Selection\. Related subjects:.*+(?:\n.++)*+\n?+", re.MULTILINE)
_LICENCE = re.compile(
    r'^[^\S\n]*+Retrieved from\s++"[^"]*+"\s++This reference article is mainly selected from the English Wikipedia',
    re.MULTILINE,
)
_COPYRIGHT = re.compile(r"\A\s*+#copyright[^\S\n]*+\n")
_MICROSECONDS = 1_000_000
_LATEST = 1 << 33  # seconds since 1970, the year 2242: more is no timestamp


@dataclass(frozen=True)
class SourceFile:
    """One file of the set.

    Attributes:
        name: its own name.
        path: where it was found, an archive's member as `archive/member`.
        content: its bytes.
    """

    name: str
    path: str
    content: bytes

    def open(self) -> BinaryIO:
        """The content as a stream."""
        return io.BytesIO(self.content)


def graph_files(source: Path) -> dict[str, SourceFile]:
    """The files of the graph by name, from their folder, from the archive, or from the source folder itself.

    Raises:
        InputError: a file that the set always has is missing, or the archive is damaged or unsafe.
    """
    for folder in (source / GRAPH, source):
        if (folder / _REQUIRED[0]).is_file():
            found = {name: _unpacked(folder / name) for name in (*_REQUIRED, *_OPTIONAL) if (folder / name).is_file()}
            break
    else:
        archive = _archive(source, GRAPH_ARCHIVE, f"the folder {GRAPH}")
        found = {file.name: file for file in archive_files(archive) if file.name in (*_REQUIRED, *_OPTIONAL)}
    missing = [name for name in _REQUIRED if name not in found]
    if missing:
        raise InputError(f"{source}: found no {', '.join(missing)}, expected the files of {GRAPH_ARCHIVE}")
    return found


def text_files(source: Path) -> Iterator[SourceFile]:
    """The articles' texts in the order of their names (in the archive's order where they are packed).

    Raises:
        InputError: there are none, or the archive is damaged or unsafe.
    """
    folder = source / TEXTS
    if folder.is_dir():
        for path in sorted(folder.glob("*.txt")):
            yield _unpacked(path)
    else:
        archive = _archive(source, TEXTS_ARCHIVE, f"the folder {TEXTS}")
        yield from (file for file in archive_files(archive) if file.name.endswith(".txt"))


def _unpacked(path: Path) -> SourceFile:
    with path.open("rb") as stream:
        content = stream.read(MAX_MEMBER_BYTES + 1)
    if len(content) > MAX_MEMBER_BYTES:
        raise InputError(f"{path}: is larger than {MAX_MEMBER_BYTES:,} bytes")
    return SourceFile(path.name, str(path), content)


def texts_path(source: Path) -> str:
    """Where `text_files` looks for the texts: their folder or their archive."""
    folder = source / TEXTS
    return str(folder if folder.is_dir() else source / TEXTS_ARCHIVE)


def _archive(source: Path, name: str, instead: str) -> Path:
    archive = source / name
    if not archive.is_file():
        raise InputError(f"{source}: found neither {name} nor {instead}, expected one of them")
    return archive


class _BoundedTarInfo(tarfile.TarInfo):
    """A member whose extension headers (long names, attributes) are bounded; `tarfile` reads them whole."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENSION_HEADERS:
            archive.header_bytes = getattr(archive, "header_bytes", 0) + self.size  # type: ignore[attr-defined]
            if archive.header_bytes > MAX_HEADER_BYTES:  # type: ignore[attr-defined]
                raise tarfile.ReadError(f"a member has more than {MAX_HEADER_BYTES} bytes of extension headers")
        elif self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a member is a sparse file")
        return super()._proc_member(archive)  # type: ignore[misc, no-any-return]

    def _proc_gnusparse_10(self, *_: object) -> None:
        raise tarfile.ReadError("a member is a sparse file")


def archive_files(archive: Path) -> Iterator[SourceFile]:
    """The regular files of a compressed tar archive, one after another; nothing is written to disk.

    Raises:
        InputError: the archive is damaged, or has a member that a set of texts has no use for: a link, a device,
            a path that leaves the archive's folder, a file of more than `MAX_MEMBER_BYTES`.
    """
    try:
        # tarfile's own decompression takes a cut file for a shorter archive; gzip's notices, and checks the sum.
        with (
            gzip.open(archive) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_BoundedTarInfo) as members,
        ):
            while (member := members.next()) is not None:
                # A stream of members that are all kept would grow with their number.
                members.members.clear()  # type: ignore[attr-defined]
                members.header_bytes = sum(map(len, members.pax_headers.values()))  # type: ignore[attr-defined]
                _check_member(archive, member)
                if member.isreg():
                    stream = members.extractfile(member)
                    content = b"" if stream is None else stream.read()
                    yield SourceFile(posixpath.basename(member.name), f"{archive}/{member.name}", content)
            while unpacked.read(_DRAIN_BYTES):
                pass
    except (tarfile.TarError, EOFError, zlib.error, OSError, RecursionError, ValueError) as cause:
        raise InputError(f"{archive}: is damaged, or not a tar.gz archive: {cause}") from cause


def _check_member(archive: Path, member: tarfile.TarInfo) -> None:
    parts = member.name.replace("\\", "/").split("/")
    if member.name.startswith(("/", "\\")) or ".." in parts:
        raise InputError(f"{archive}: found the path '{member.name}', expected paths within the archive's folder")
    if not member.isreg() and not member.isdir():
        raise InputError(f"{archive}: found a link or device '{member.name}', expected files and folders only")
    if member.size > MAX_MEMBER_BYTES:
        raise InputError(f"{archive}: '{member.name}' has {member.size} bytes, expected at most {MAX_MEMBER_BYTES}")


# --- names -----------------------------------------------------------------------------------------------------------


def article_title(article: str) -> str:
    """A name's title: percent-encoding undone, underscores as spaces."""
    return unquote(article).replace("_", " ").strip()


def article_url(article: str) -> str | None:
    """Canonical URL of an article; None if its name gives none."""
    return canonical_url(ARTICLE_BASE + article).url if article else None


class _Articles:
    """URLs and titles of articles, each made once."""

    def __init__(self, listed: frozenset[str]) -> None:
        self.listed = listed
        self._urls: dict[str, str | None] = {}
        self._titles: dict[str, str] = {}

    def url(self, article: str) -> str | None:
        if article not in self._urls:
            self._urls[article] = article_url(article)
        return self._urls[article]

    def title(self, article: str) -> str:
        if article not in self._titles:
            self._titles[article] = article_title(article)
        return self._titles[article]


def _rows(stream: BinaryIO, builder: BatchBuilder, columns: int) -> Iterator[tuple[int, list[str], str]]:
    """Line number, fields and text of each line that has the right number of columns; others become rejects."""
    for number, raw in enumerate(stream, start=1):
        line = raw.rstrip(b"\r\n")
        if not line or line.startswith(b"#"):
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            builder.reject("not-utf-8", line.decode(errors="replace"))
            continue
        fields = text.split("\t")
        if len(fields) != columns:
            builder.reject("columns-unexpected", text)
            continue
        yield number, fields, text


# --- the tables ------------------------------------------------------------------------------------------------------


def read_articles(stream: BinaryIO) -> tuple[frozenset[str], list[SourceBatch]]:
    """The listed articles, and the balance of their file (it fills no table: pages come from the texts)."""
    builder = BatchBuilder("wikispeedia")
    listed: set[str] = set()
    for _, (article,), text in _rows(stream, builder, 1):
        if article_url(article) is None:
            builder.reject("url-invalid", text)
        elif article in listed:
            builder.ignore("duplicate")
        else:
            listed.add(article)
            builder.use()
    return frozenset(listed), list(builder.drain(last=True))


def read_texts(files: Iterator[SourceFile], articles: frozenset[str]) -> Iterator[SourceBatch]:
    """Pages, one a text: URL, title and text of the article, language `en`, digest of the file.

    Status and time are null: the articles are a collection, and no crawl fetched them.

    A text of no listed article is rejected (article-unknown), as is one that is not UTF-8 (not-utf-8).
    """
    builder = BatchBuilder("wikispeedia")
    for file in files:
        article = file.name.removesuffix(".txt")
        if article not in articles:
            builder.reject("article-unknown", file.path)
        else:
            try:
                text = article_text(file.content.decode())
            except UnicodeDecodeError:
                builder.reject("not-utf-8", file.path)
            else:
                builder.append(
                    "pages",
                    (
                        article_url(article),
                        None,
                        None,
                        article_title(article),
                        text,
                        None,
                        LANGUAGE,
                        content_digest(file.content),
                    ),
                )
                builder.use()
        yield from builder.drain()
    yield from builder.drain(last=True)


def article_text(raw: str) -> str:
    """An article's text without the lines that all articles share (see the module's description)."""
    text = _RELATED_SUBJECTS.sub("", _COPYRIGHT.sub("", raw), count=1)
    licence = _LICENCE.search(text)
    return (text if licence is None else text[: licence.start()]).strip()


def read_links(stream: BinaryIO, articles: frozenset[str]) -> Iterator[SourceBatch]:
    """Links with their target's title as anchor text; a link from or to an article that is not listed is rejected."""
    builder = BatchBuilder("wikispeedia")
    names = _Articles(articles)
    for _, (source, target), text in _rows(stream, builder, 2):
        if source not in articles or target not in articles:
            builder.reject("article-unknown", text)
        else:
            builder.append("links", (names.url(source), names.url(target), names.title(target), False))
            builder.use()
        yield from builder.drain()
    yield from builder.drain(last=True)


def visited_articles(path: str) -> list[str] | None:
    """The articles that a player saw, in order.

    Args:
        path: article names separated by `;`, with `<` for a step back to the article before.

    Returns:
        One name a step, the article returned to for a step back; None if the path is empty, holds an empty name, or
        steps back from its first article.
    """
    trail: list[str] = []
    seen: list[str] = []
    for step in path.split(";"):
        if step == _BACK:
            if len(trail) < 2:
                return None
            trail.pop()
        elif step:
            trail.append(step)
        else:
            return None
        seen.append(trail[-1])
    return seen


def click_times(end: int, duration: int, clicks: int, *, timeout: bool) -> list[int]:
    """When a game's clicks happened.

    Args:
        end: when the game ended, in seconds since 1970.
        duration: how long it took, in seconds.
        clicks: number of clicks, at least 1.
        timeout: whether it ended because no click came for `TIMEOUT_SECONDS`.

    Returns:
        Microseconds since 1970, strictly increasing: the first at the start of the game, the others evenly spread up
        to the last click, at least a microsecond apart.
    """
    active = max(0, duration - TIMEOUT_SECONDS if timeout else duration) * _MICROSECONDS
    begin = (end - duration) * _MICROSECONDS
    return [begin + max(step, step * active // max(1, clicks - 1)) for step in range(clicks)]


def read_paths(stream: BinaryIO, *, finished: bool) -> Iterator[SourceBatch]:
    """Clicks of the games in `paths_finished.tsv` or `paths_unfinished.tsv`.

    A finished path's columns are address, timestamp, duration, path and rating, and its target is the article it ends
    at; an unfinished one's are address, timestamp, duration, path, target and how it was given up. A path is used or
    rejected as a whole: columns-unexpected, user-missing, timestamp-invalid, duration-invalid, path-invalid (see
    `visited_articles`), url-invalid, query-missing.
    """
    builder = BatchBuilder("wikispeedia")
    names = _Articles(frozenset())
    kind = "finished" if finished else "unfinished"
    for number, fields, text in _rows(stream, builder, 5 if finished else 6):
        user, timestamp, seconds, path = fields[:4]
        reason = _why_unusable(user, timestamp, seconds)
        seen = visited_articles(path)
        urls = [] if seen is None else [names.url(article) for article in seen]
        target = (seen[-1] if seen else "") if finished else fields[4]
        if reason is None and seen is None:
            reason = "path-invalid"
        if reason is None and None in urls:
            reason = "url-invalid"
        if reason is None and not names.title(target):
            reason = "query-missing"
        if reason is not None:
            builder.reject(reason, text)
            continue
        count = len(urls)
        times = click_times(int(timestamp), int(seconds), count, timeout=not finished and fields[5] == "timeout")
        nothing = [None] * count
        session = [f"{kind}-{number:06d}"] * count
        query = [names.title(target)] * count
        builder.extend("clicks", ([user] * count, nothing, session, query, nothing, times, nothing, urls))
        builder.use()
        yield from builder.drain()
    yield from builder.drain(last=True)


def _why_unusable(user: str, timestamp: str, seconds: str) -> str | None:
    if not user:
        return "user-missing"
    if not (timestamp.isascii() and timestamp.isdecimal() and 0 < int(timestamp) < _LATEST):
        return "timestamp-invalid"
    if not (seconds.isascii() and seconds.isdecimal() and int(seconds) <= int(timestamp)):
        return "duration-invalid"
    return None


# --- the topics ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicRows:
    """The content of the categories.

    Attributes:
        topics: schema TOPICS, in the order of topic and URL.
        batches: the balance and the rejects of the categories' file.
    """

    topics: pa.Table
    batches: list[SourceBatch]


def topic_names(category: str) -> list[str]:
    """A category's topics: itself and what its name begins with, without `subject` alone."""
    parts = category.split(".")
    return [".".join(parts[:length]) for length in range(2, len(parts) + 1)]


def read_categories(stream: BinaryIO, articles: frozenset[str]) -> TopicRows:
    """Topics from `categories.tsv`; their seeds are those of `topic_table`.

    Rejected are lines about articles that are not listed (article-unknown) and names that are no category
    (category-invalid).
    """
    builder = BatchBuilder("wikispeedia")
    names = _Articles(articles)
    pages: dict[str, set[str]] = {}
    for _, (article, category), text in _rows(stream, builder, 2):
        url = names.url(article)
        if article not in articles or url is None:
            builder.reject("article-unknown", text)
        elif _CATEGORY.fullmatch(category) is None:
            builder.reject("category-invalid", text)
        else:
            for topic in topic_names(category):
                pages.setdefault(topic, set()).add(url)
            builder.use()
    return TopicRows(topic_table(pages), list(builder.drain(last=True)))
