"""The queue of a round: seeds from a file, or the URLs that an earlier round selected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.pipelines.answers import counted
from semrank.pipelines.collisions import collision_rejects
from semrank.schemas.errors import InputError
from semrank.schemas.tables import FRONTIER, HARVEST, REJECTS
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import column_array
from semrank.transforms.columnar.beam import without_urls
from semrank.transforms.columnar.ids import surplus_strings, text_ids
from semrank.transforms.columnar.parquet import open_stored
from semrank.transforms.crawls.seeds import Seed, read_seeds
from semrank.transforms.streams.batch import MAX_REJECT_CHARS
from semrank.transforms.streams.lines import DamagedStreamError, decompressed
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules
from semrank.transforms.streams.quotes import quote_page
from semrank.transforms.streams.urls import canonicalize

STAGE = "queue"
NOT_IN_SNAPSHOT = "not-in-snapshot"


@dataclass(frozen=True)
class Queue:
    """The URLs that a round starts from.

    Attributes:
        urls: columns `url_id` and `url`, distinct, sorted by id.
        harvest: all URLs that the crawl chose so far, these among them: columns `url_id`, `url` and `seed`, likewise.
        rejects: lines of the seeds file that are not URLs (`REJECTS`).
        source: the file or folder that they come from.
        option: the option that names it, for messages.
    """

    urls: pa.Table
    harvest: pa.Table
    rejects: pa.Table
    source: str
    option: str = "--seeds"

    def without(self, urls: pa.Array) -> Queue:
        """The queue without URLs that share an id with others; they become rejects."""
        rejects = pa.concat_tables([self.rejects, collision_rejects(urls)])
        urls_left, harvest = without_urls(self.urls, urls), without_urls(self.harvest, urls)
        return replace(self, urls=urls_left, harvest=harvest, rejects=rejects)


def queue_from_seeds(path: str, rules: ParameterRules = NO_RULES) -> Queue:
    """The seeds of a file, perhaps compressed; see `semrank.transforms.crawls.seeds`.

    Args:
        path: the file.
        rules: the snapshot's rules for parameters of URLs.

    Raises:
        InputError: the path is a web address, or the file can't be read, is not text, or has no URL.
    """
    expected = "expected UTF-8 text with one URL a line"
    if is_web_address(path):
        raise InputError(f"--seeds {path}: found a URL, expected a file with one URL a line")
    with files.open_binary(path) as stream:
        try:
            content = _bounded(path, decompressed(stream))
        except DamagedStreamError as cause:
            raise InputError(f"--seeds {path}: {cause}, {expected}") from cause
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        found = "is UTF-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else f"is not UTF-8 (byte {cause.start})"
        raise InputError(f"--seeds {path}: {found}, {expected}") from cause
    seeds = read_seeds(text)
    if not seeds:
        raise InputError(f"--seeds {path}: holds no URL, {expected}")
    return _queue_of(seeds, path, rules)


def is_web_address(path: str) -> bool:
    """Whether a path is a web address, which no file system can read."""
    return path.lower().startswith(("http://", "https://"))


def _bounded(path: str, parts: Iterable[bytes]) -> bytes:
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > files.MAX_TEXT_BYTES:
            raise InputError(f"--seeds {path}: holds more than {files.MAX_TEXT_BYTES:,} bytes, expected one URL a line")
    return bytes(content)


def queue_from_urls(texts: Sequence[str], source: str, rules: ParameterRules = NO_RULES) -> Queue:
    """The queue of some seeds.

    Args:
        texts: URLs; invalid ones become rejects.
        source: where they come from, for messages and the manifest.
        rules: the snapshot's rules for parameters of URLs.

    Raises:
        InputError: none of them is a URL.
    """
    return _queue_of([Seed(text, None, text) for text in texts], source, rules)


def _queue_of(seeds: Sequence[Seed], source: str, rules: ParameterRules) -> Queue:
    canonical = canonicalize(pa.array([seed.url for seed in seeds], pa.string()), rules)
    reasons = pc.coalesce(pa.array([seed.reason for seed in seeds], pa.string()), canonical.reasons.cast(pa.string()))
    bad = reasons.is_valid()
    urls = canonical.urls.filter(pc.invert(bad))
    if not len(urls):
        if not seeds:
            raise InputError(f"--seeds {source}: found no URL, expected at least one")
        first = f"the first is '{seeds[0].line[:80]}' ({reasons[0]})"
        raise InputError(f"--seeds {source}: found no URL in {counted(len(seeds), 'line')}, {first}")
    quoted = pa.array([quote_page(seed.line)[:MAX_REJECT_CHARS] for seed in seeds], pa.string()).filter(bad)
    stages = pa.repeat(pa.scalar(STAGE), len(quoted))
    queue = _queue_table(urls)
    harvest = queue.append_column("seed", pa.array(np.ones(queue.num_rows, dtype=np.bool_)))
    rejects = pa.table([stages, reasons.filter(bad), quoted], schema=REJECTS.schema)
    return Queue(queue, harvest, rejects, source).without(surplus_strings(urls))


def queue_from_round(folder: str) -> Queue:
    """The URLs that a finished round selected.

    Raises:
        InputError: the round is unfinished or selected nothing.
    """
    with folders.unchanged(folder, "round"):
        selected = _selected(folder)
        harvested = folders.read_table(folder, HARVEST.columns("url", "seed"))
    if not len(selected):
        raise InputError(f"--previous {folder}: this round selected no URL, expected at least one")
    harvest = _queue_table(pa.concat_arrays([column_array(harvested["url"]), selected]))
    seeds = column_array(harvested.filter(harvested["seed"])["url"])
    seed = pc.is_in(harvest["url"], value_set=seeds)
    queue = Queue(_queue_table(selected), harvest.append_column("seed", seed), REJECTS.empty(), folder, "--previous")
    return queue.without(surplus_strings(column_array(harvest["url"])))


def _selected(folder: str) -> pa.Array:
    """The URLs that a round selected, in the order of their ranks."""
    parts = folders.read_parts(folder, FRONTIER.columns("url", "selected"))
    return pa.concat_arrays(
        [pa.array([], pa.string()), *(column_array(part.filter(part["selected"])["url"]) for part in parts)]
    )


def _queue_table(urls: pa.Array) -> pa.Table:
    distinct = pc.unique(column_array(urls).cast(pa.string()))
    ids = text_ids(distinct)
    order = np.argsort(ids)
    return pa.table({"url_id": pa.array(ids[order]), "url": distinct.take(pa.array(order))})


def snapshot_knows_any(known: pa.Table, page_paths: Sequence[str], link_paths: Sequence[str]) -> bool:
    """Whether any of some URLs is a page or a source of links in the snapshot; stops at the first one.

    Args:
        known: a table with a column `url`.
        page_paths: files of the pages table.
        link_paths: files of the links table.
    """
    urls = column_array(known["url"])
    for paths, column in ((page_paths, "url"), (link_paths, "source_url")):
        for path in paths:
            with open_stored(path) as file:
                for batch in file.iter_batches(columns=[column], use_threads=False):
                    if pc.any(pc.is_in(batch.column(0), value_set=urls)).as_py():
                        return True
    return False
