"""HTML manuals as a distribution packages them, unpacked in a folder: a labelled web without a click log.

Pages are the HTML files. Their addresses are numbers in the order of stable ids of the paths, so neither an address nor
the order of addresses implies a topic; links between pages are rewritten, and lead out of the manuals otherwise. What a
page contains about navigation stays as it is.

Topics are the sections of the manuals: folders, with all pages below them. A folder that holds nothing but one other
folder is no section of its own: `linux-doc/usr/share/doc/linux-doc/html/networking` is `linux-doc.networking`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeAlias
from urllib.parse import quote_from_bytes

import numpy as np
import pyarrow as pa

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.ids import text_draws
from semrank.transforms.crawls.html import read_html
from semrank.transforms.crawls.links import PageLinks
from semrank.transforms.crawls.pages import Fetch, content_digest, page
from semrank.transforms.samples.topics import topic_table
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.urls import canonical_url

BASE = "https://manuals.example/"
"""What all addresses begin with."""

SUFFIXES = (".html", ".htm", ".xhtml")
INDEX_NAMES = ("index.html", "index.htm", "index.xhtml")
"""Files that a reference to their folder means."""

MAX_FILE_BYTES = 64 << 20
"""Bytes of a file that is read: more than any page has; the parser takes the first `html.MAX_HTML_BYTES` of it."""

MAX_TOPIC_CHARS = 200
"""Characters of a topic's name, which is a file's name, too; deeper sections count as part of those above them."""

_STAGE = "manuals"

Section: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class ManualFiles:
    """The HTML files of a folder.

    Attributes:
        source: the folder.
        paths: paths below it with slashes, ascending.
        sizes: bytes of each file.
        shortcuts: symbolic link -> what it leads to, both below the folder.
    """

    source: Path
    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    shortcuts: Mapping[str, str]

    @classmethod
    def of(cls, source: Path) -> ManualFiles:
        """Lists the files.

        Raises:
            InputError: the source is no folder or holds no HTML file.
        """
        if not source.is_dir():
            raise InputError(f"--source {source}: no such folder, expected one with unpacked HTML manuals")
        root = source.resolve()
        sizes: dict[str, int] = {}
        shortcuts: dict[str, str] = {}
        for folder, folders, names in os.walk(root, onerror=_refuse):
            for name in sorted([*folders, *names]):
                path = Path(folder, name)
                if path.is_symlink():
                    target = Path(os.path.realpath(path))
                    if target.is_relative_to(root) and target.exists():
                        shortcuts[_below(root, path)] = _below(root, target)
                elif name.lower().endswith(SUFFIXES) and path.is_file():
                    sizes[_below(root, path)] = path.stat().st_size
        if not sizes:
            raise InputError(f"--source {source}: holds no {', '.join(SUFFIXES)} file, expected unpacked HTML manuals")
        paths = tuple(sorted(sizes))
        return cls(root, paths, tuple(sizes[path] for path in paths), dict(sorted(shortcuts.items())))

    @cached_property
    def urls(self) -> Mapping[str, str]:
        """Path -> address of its page."""
        order = np.argsort(text_draws(pa.array(self.paths, pa.string())), kind="stable").tolist()
        digits = len(str(len(order)))
        return {self.paths[place]: f"{BASE}{number:0{digits}d}" for number, place in enumerate(order)}

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """What references lead to, as URLs of paths below `BASE` -> address of the page."""
        found: dict[str, str] = {}
        for path, url in self.urls.items():
            for name in (path, *_folder_names(path)):
                found.setdefault(_path_url(name), url)
        for shortcut, path in self.shortcuts.items():
            if path in self.urls:
                found.setdefault(_path_url(shortcut), self.urls[path])
        return found

    @cached_property
    def _folder_shortcuts(self) -> list[tuple[str, str]]:
        """URLs of symbolic links to folders, and of these."""
        return [(_path_url(link), _path_url(path)) for link, path in self.shortcuts.items() if path not in self.urls]

    @property
    def manuals(self) -> Mapping[str, list[int]]:
        """First part of the path -> numbers of its files; the folder's own files have the empty name."""
        found: dict[str, list[int]] = {}
        for number, path in enumerate(self.paths):
            found.setdefault(path.partition("/")[0] if "/" in path else "", []).append(number)
        return found

    def target(self, url: str) -> str | None:
        """Address of the page that a URL below `BASE` leads to, by way of symbolic links where there are any."""
        if url in self.addresses:
            return self.addresses[url]
        for begin, folder in self._folder_shortcuts:
            if url == begin or url.startswith(begin + "/"):
                return self.addresses.get(folder + url[len(begin) :])
        return None

    def topics(self) -> pa.Table:
        """The sections as topics (`schemas.tables.TOPICS`)."""
        pages: dict[str, set[str]] = {}
        for path, section in sections(self.paths).items():
            for length in range(1, len(section) + 1):
                name = ".".join(part.replace(".", "_") for part in section[:length])
                if len(os.fsencode(name)) <= MAX_TOPIC_CHARS:
                    pages.setdefault(name, set()).add(self.urls[path])
        return topic_table(pages)


def _refuse(cause: OSError) -> None:
    raise InputError(f"--source {cause.filename}: can't be read: {cause.strerror}") from cause


def _below(root: Path, path: Path) -> str:
    """A path relative to the root; bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "replace")


def _path_url(path: str) -> str:
    raw = BASE + quote_from_bytes(path.encode())
    return canonical_url(raw).url or raw


def _folder_names(path: str) -> tuple[str, ...]:
    folder, _, name = path.rpartition("/")
    return (folder, f"{folder}/") if name.lower() in INDEX_NAMES else ()


def sections(paths: tuple[str, ...]) -> dict[str, Section]:
    """The section of each path: names of the folders that it is in, without those that only hold one other folder.

    A chain of such folders has the name of the first.
    """
    inside: dict[PurePosixPath, set[PurePosixPath]] = {}
    for path in map(PurePosixPath, paths):
        for child in (path, *path.parents[:-1]):
            inside.setdefault(child.parent, set()).add(child)
    top = PurePosixPath(".")
    names: dict[PurePosixPath, Section] = {top: ()}
    for folder in sorted(set(inside) - {top}, key=lambda folder: (len(folder.parts), folder)):
        parent = folder.parent
        # The only thing in its parent is that parent, unless the parent is where all begins.
        alone = parent != top and len(inside[parent]) == 1
        names[folder] = names[parent] if alone else (*names[parent], folder.name)
    return {path: names[PurePosixPath(path).parent] for path in paths}


def read_manual(files: ManualFiles, manual: str) -> Iterator[SourceBatch]:
    """Pages and links of one manual, in the order of the paths.

    A file that can't be read is rejected (unreadable), as is a larger one than `MAX_FILE_BYTES` (file-too-large). Links
    to files that are not there are left aside and counted (links-to-nothing).

    Args:
        files: all files.
        manual: a key of `ManualFiles.manuals`.
    """
    builder = BatchBuilder(_STAGE)
    for number in files.manuals[manual]:
        path = files.paths[number]
        if files.sizes[number] > MAX_FILE_BYTES:
            builder.reject("file-too-large", path)
            continue
        try:
            body = (files.source / path).read_bytes()
        except OSError:
            builder.reject("unreadable", path)
            continue
        read = read_html(body, url=_path_url(path))
        url = files.urls[path]
        links = _numbered_links(read.links, files, url)
        fetch = Fetch(url, None, 200, content_digest(body), path)
        page(builder, fetch, title=read.title, text=read.text, language=read.language, links=links)
        yield from builder.drain()
    yield from builder.drain(last=True)


def _numbered_links(found: PageLinks, files: ManualFiles, url: str) -> PageLinks:
    """The links with addresses in place of paths; what a page calls itself elsewhere is not taken."""
    links = PageLinks(url)
    links.robots, links.bad, links.counters = found.robots, found.bad, found.counters
    for target, anchor, nofollow in zip(found.targets, found.anchors, found.nofollows, strict=True):
        address = files.target(target) if target.startswith(BASE) else target
        if address is None:
            links.counters["links-to-nothing"] += 1
        else:
            links.targets.append(address)
            links.anchors.append(anchor)
            links.nofollows.append(nofollow)
    if found.refresh is not None:
        links.refresh = files.target(found.refresh) if found.refresh.startswith(BASE) else found.refresh
    return links
