"""The queue of a round: seeds from a file, or the URLs that an earlier round selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.schemas.errors import InputError
from semrank.schemas.tables import FRONTIER, HARVEST, REJECTS
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import column_array
from semrank.transforms.columnar.ids import check_collisions, digest_table, text_digests
from semrank.transforms.columnar.parquet import open_stored
from semrank.transforms.sources.batch import MAX_REJECT_CHARS
from semrank.transforms.sources.urls import canonicalize

STAGE = "queue"
NOT_IN_SNAPSHOT = "not-in-snapshot"


@dataclass(frozen=True)
class Queue:
    """The URLs that a round starts from.

    Attributes:
        urls: columns `url_id` and `url`, distinct, sorted by id.
        harvest: all URLs that the crawl chose so far, these among them: columns `url_id`, `url` and `seed`, likewise.
        rejects: lines of the seeds file that are no URLs (`REJECTS`).
        source: the file or folder that they come from.
    """

    urls: pa.Table
    harvest: pa.Table
    rejects: pa.Table
    source: str


def queue_from_seeds(path: str) -> Queue:
    """The seeds of a file: one URL a line, `#` starts a comment.

    Raises:
        InputError: the file can't be read, is no text, or holds no URL.
    """
    with files.open_binary(path) as stream:
        content = stream.read()
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as cause:
        raise InputError(f"--seeds {path}: is no UTF-8 text (byte {cause.start}), expected one URL a line") from cause
    texts = [text for text in (_without_comment(line) for line in lines) if text]
    if not texts:
        raise InputError(f"--seeds {path}: holds no URL in {len(lines)} lines, expected one URL a line")
    return queue_from_urls(texts, path)


def queue_from_urls(texts: Sequence[str], source: str) -> Queue:
    """The queue of some seeds.

    Args:
        texts: URLs; what is none becomes a reject.
        source: where they come from, for messages and the manifest.

    Raises:
        InputError: none of them is a URL.
    """
    canonical = canonicalize(pa.array(texts, pa.string()))
    bad = pc.is_null(canonical.urls)
    rejects = pa.table(
        [
            pa.array([STAGE] * int(pc.sum(bad).as_py() or 0), pa.string()),
            canonical.reasons.filter(bad).cast(pa.string()),
            pa.array([text[:MAX_REJECT_CHARS] for text in texts], pa.string()).filter(bad),
        ],
        schema=REJECTS.schema,
    )
    urls = canonical.urls.drop_null()
    if not len(urls):
        first = f", the first is '{texts[0][:80]}'" if texts else ""
        raise InputError(f"--seeds {source}: none of its {len(texts)} lines is a URL{first}")
    queue = _queue_table(urls)
    harvest = queue.append_column("seed", pa.array(np.ones(queue.num_rows, dtype=np.bool_)))
    return Queue(queue, harvest, rejects, source)


def _without_comment(line: str) -> str:
    """A line without its comment; `#` inside a URL is a fragment, so a comment begins the line or follows a blank."""
    if line.lstrip().startswith("#"):
        return ""
    return line.split(" #", 1)[0].split("\t#", 1)[0].strip()


def queue_from_round(folder: str) -> Queue:
    """The URLs that a finished round selected.

    Raises:
        InputError: the round is unfinished or selected nothing.
    """
    files.read_manifest(folder, "round")
    selected = _selected(folder)
    if not len(selected):
        raise InputError(f"--previous {folder}: this round selected no URL, expected at least one to go on from")
    harvested = folders.read_table(folder, HARVEST.columns("url", "seed"))
    harvest = _queue_table(pa.concat_arrays([column_array(harvested["url"]), selected]))
    seeds = column_array(harvested.filter(harvested["seed"])["url"])
    seed = pc.is_in(harvest["url"], value_set=seeds)
    return Queue(_queue_table(selected), harvest.append_column("seed", seed), REJECTS.empty(), folder)


def _selected(folder: str) -> pa.Array:
    """The URLs that a round selected, in the order of their ranks."""
    parts = folders.read_parts(folder, FRONTIER.columns("url", "selected"))
    return pa.concat_arrays(
        [pa.array([], pa.string()), *(column_array(part.filter(part["selected"])["url"]) for part in parts)]
    )


def _queue_table(urls: pa.Array) -> pa.Table:
    distinct = pc.unique(column_array(urls).cast(pa.string()))
    digests = text_digests(distinct)
    check_collisions([digest_table(digests)])
    order = np.argsort(digests[:, 0])
    return pa.table({"url_id": pa.array(digests[order, 0]), "url": distinct.take(pa.array(order))})


def snapshot_knows_any(known: pa.Table, page_paths: Sequence[str], link_paths: Sequence[str]) -> bool:
    """Whether one of some URLs is a page or links to something in the snapshot; reads until it finds one.

    Args:
        known: a table with a column `url`.
        page_paths: files of the pages table.
        link_paths: files of the links table.
    """
    urls = column_array(known["url"])
    for paths, column in ((page_paths, "url"), (link_paths, "source_url")):
        for path in paths:
            with open_stored(path) as file:
                for batch in file.iter_batches(columns=[column]):
                    if pc.any(pc.is_in(batch.column(0), value_set=urls)).as_py():
                        return True
    return False
