"""Hostile inputs and uses at full size: what each costs in time and memory, held to its bound.

    python -m tests.faults.hostile [INPUT ...] [--quick]

The tests hold smaller ones to the same bounds. Each input is read in a process of its own, whose memory is measured
from where the input is there: what it takes itself does not count, nor do the interpreter and its libraries. Processes
that it starts count with what they take more than it had at the beginning. How containers are confined costs nothing
and is tested alone (`tests/deploy`).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import gzip
import io
import json
import multiprocessing
import resource
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from semrank.pipelines.queue import queue_from_seeds
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.ids import surplus_strings
from semrank.transforms.crawls import bounded
from semrank.transforms.crawls.html import MAX_HTML_BYTES
from semrank.transforms.samples.wikispeedia import archive_files, article_text
from semrank.transforms.streams.download import DownloadError, Policy, download
from tests.faults.attacks import ATTACKS
from tests.support.apart import MEBIBYTE, begin_peak, peak_growth
from tests.support.crawls import http, warc
from tests.support.hostile_inputs import (
    GIBIBYTE,
    LOG_MEMORY,
    MEMORY,
    URL,
    null_words,
    one_click_users,
    one_text,
    one_word_pages,
    page,
    parquet,
    rank,
    read,
    read_log,
    read_stream,
    texts_apart,
    zeros,
)
from tests.support.servers import dripping_server

QUICK_SHARE = 1 / 50
"""Part of the full sizes that a quick run takes."""

PAGE_MEMORY = 6 * MEMORY
ROUND_MEMORY = 8 * MEMORY
"""A round holds tables several times over; the tests of smaller ones have the same bound."""

PARQUET_MEMORY = 15 * MEMORY
"""What a page of Parquet of half a gigabyte takes, which Arrow decompresses whole and copies several times."""

PATIENCE_SECONDS = 1_800.0

HARM = "harm"
"""A count of what must not be."""

Counts = Mapping[str, int]
Read = Callable[[], Counts]


@dataclass(frozen=True)
class Hostile:
    """An input that means harm.

    Attributes:
        text: what it is.
        bound_bytes: memory that reading it may take.
        prepare: makes it, at a share of the full size, in a folder; gives what reads it and tells what was counted.
    """

    text: str
    bound_bytes: int
    prepare: Callable[[float, Path], Read]


def _shown(found: tuple[int, Mapping[str, int], Mapping[str, int]]) -> Counts:
    """Number of records, and the counts above 0."""
    records, counts, _ = found
    return {"records": records, **{name: count for name, count in counts.items() if count}}


def _gzip_in_gzip(share: float, _: Path) -> Read:
    bomb = gzip.compress(zeros(int(10 * GIBIBYTE * share)), mtime=0)
    content = warc(http(bomb, Content_Encoding="gzip, gzip"))
    return lambda: _shown(read("warc", content))


def _zstd_window(share: float, _: Path) -> Read:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=31, write_content_size=False)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    block = bytes(16 * MEBIBYTE)
    pieces = [frame.compress(block) for _ in range(max(1, int(256 * share)))]
    content = b"".join([*pieces, frame.flush()])
    return lambda: _shown(read("warc", content))


def _attribute(share: float, _: Path) -> Read:
    body = b"".join([b'<a href=/y>on</a><a title="', b"x " * int(GIBIBYTE * share), b'">'])

    def parse() -> Counts:
        links, characters, counted = page(body)
        return {"links": links, "characters": characters, **counted}

    return parse


def _attribute_in_warc(share: float, folder: Path) -> Read:
    size = int(2 * GIBIBYTE * share)
    head, end = http(b'<a href=/y>on</a><a title="'), b'">'
    path = folder / "attribute.warc.gz"
    with gzip.open(path, "wb", 1) as packed:
        packed.write(warc(b"", length=len(head) + size + len(end)).removesuffix(b"\r\n\r\n") + head)
        for _ in range(size // MEBIBYTE):
            packed.write(b"x" * MEBIBYTE)
        packed.write(b"x" * (size % MEBIBYTE) + end + b"\r\n\r\n")
    with path.open("ab") as following:
        following.write(gzip.compress(warc(http())))

    def parse() -> Counts:
        with path.open("rb") as stream:
            return _shown(read_stream("warc", stream))

    return parse


def _cell(share: float, _: Path) -> Read:
    content = one_text(int(GIBIBYTE * 0.4 * share), 3)
    return lambda: _shown(read("pages", content))


def _links(share: float, _: Path) -> Read:
    body = b"".join(b"<a href=/%d>" % number for number in range(int(10_000_000 * share)))

    def parse() -> Counts:
        links, characters, counted = page(body)
        return {"links": links, "characters": characters, **counted}

    return parse


def _links_in_wat(share: float, _: Path) -> Read:
    links = ",".join(f'{{"path":"A@/href","url":"/{number}"}}' for number in range(int(10_000_000 * share)))
    envelope = (
        '{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/"},'
        f'"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":{{"Links":[{links}]}}}}}}}}}}'
    ).encode()
    content = warc(envelope, kind="metadata", content_type="application/json")
    return lambda: _shown(read("wat", content))


def _one_word(share: float, folder: Path) -> Read:
    snapshot = one_word_pages(folder, int(200 * share) + 2)
    return _ranking(snapshot, folder)


def _users(*options: str) -> Callable[[float, Path], Read]:
    return lambda share, folder: _ranking(one_click_users(folder, int(1_000_000 * share)), folder, *options)


def _ranking(snapshot: Path, folder: Path, *options: str) -> Read:
    output = folder / "round"

    def run() -> Counts:
        with contextlib.redirect_stdout(io.StringIO()):
            status = rank(str(snapshot), str(folder / "seeds.txt"), str(output), *options)
        manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
        return {"status": status, "frontier": manifest["rows"]["frontier"], "relations": manifest["rows"]["relations"]}

    return run


def _line(name: str, read_as: Callable[[str, bytes], Any], begin: bytes) -> Callable[[float, Path], Read]:
    def prepare(share: float, _: Path) -> Read:
        content = b"".join([begin, b"x" * int(GIBIBYTE * share), b'"}\n{}\n'])
        return lambda: _shown(read_as(name, content))

    return prepare


def _nested(share: float, _: Path) -> Read:
    body = b"<div>" * int(10_000_000 * share) + b"words"

    def parse() -> Counts:
        links, characters, counted = page(body)
        return {"links": links, "characters": characters, **counted}

    return parse


def _nested_json(share: float, _: Path) -> Read:
    content = b'{"url":' + b"[" * int(10_000_000 * share) + b"\n"
    return lambda: _shown(read("scrapy", content))


def _nulls(name: str, read_as: Callable[[str, bytes], Any]) -> Callable[[float, Path], Read]:
    def prepare(share: float, _: Path) -> Read:
        content = zeros(int(GIBIBYTE * share))
        return lambda: _shown(read_as(name, content))

    return prepare


def _attempt(function: Callable[[], object]) -> Counts:
    """Counts a refusal of an input; what it gives otherwise is of no interest."""
    try:
        function()
    except (InputError, DownloadError):
        return {"refused": 1}
    return {"read": 1}


def _word_lists(share: float, _: Path) -> Read:
    rows = max(1, int(17_000 * share))
    words = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["k" * MEBIBYTE]))
    lists = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), words)
    content = parquet(pa.table({"url": [f"{URL}{row}" for row in range(rows)], "keywords": lists}), row_group_size=rows)
    return lambda: _shown(read("pages", content))


def _archive(kind: bytes) -> Callable[[float, Path], Read]:
    def prepare(share: float, folder: Path) -> Read:
        size = int(4 * GIBIBYTE * share)
        member = tarfile.TarInfo("articles/x.txt")
        member.type, member.size = kind, size
        path = folder / "a.tar.gz"
        with gzip.open(path, "wb", 1) as packed:
            packed.write(member.tobuf(tarfile.GNU_FORMAT))
            for _ in range(size // MEBIBYTE + 1):
                packed.write(bytes(MEBIBYTE))
        return lambda: _attempt(lambda: sum(1 for _ in archive_files(path)))

    return prepare


def _seeds(share: float, folder: Path) -> Read:
    packed = folder / "seeds.gz"
    packed.write_bytes(zeros(int(10 * GIBIBYTE * share)))

    def read_both() -> Counts:
        tried = [_attempt(partial(queue_from_seeds, path)) for path in ("/dev/zero", str(packed))]
        return {"refused": sum(each.get("refused", 0) for each in tried)}

    return read_both


def _drip(share: float, folder: Path) -> Read:
    """Servers that send a byte of a header, a body or trailers every 50 ms; each download may take 10 s in all."""
    policy = Policy(first_wait=0.1, longest=10 * share)
    begin = b"HTTP/1.1 200 OK\r\n"
    drips = (
        (begin + b"X: ", b"y"),
        (begin + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (begin + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"A: b\r\n"),
    )

    def fetch() -> Counts:
        refused = 0
        for drip in drips:
            with dripping_server(*drip) as url:
                refused += _attempt(partial(download, url, folder, policy=policy)).get("refused", 0)
        return {"refused": refused, HARM: len(drips) - refused}

    return fetch


def _markup(*pieces: bytes) -> Callable[[float, Path], Read]:
    """Pages that repeat a piece up to the cap of HTML."""

    def prepare(share: float, _: Path) -> Read:
        size = int(MAX_HTML_BYTES * share)
        bodies = [b"<p>x" + piece * (size // len(piece)) for piece in pieces]
        content = b"".join(warc(http(body), f"{URL}/{number}") for number, body in enumerate(bodies))
        return lambda: _shown(read("warc", content))

    return prepare


def _attributes(share: float, _: Path) -> Read:
    names = b" ".join(b"a%d" % number for number in range(int(500_000 * share)))
    content = warc(http(b"<p " + names + b">x"))
    return lambda: _shown(read("warc", content))


def _expressions(share: float, _: Path) -> Read:
    """Short pages and texts that expressions backtracked on for hours."""
    size = max(10, int(60_000 * share))
    pages = [
        (b"<!---->" * size + b"x", None),
        (b"<p>x", "text/html; charset=" + " " * size + ";"),
        (b"<meta " * 2_000 + b"charset=" + b" " * size + b"!", "text/html"),
        (b"<meta http-equiv=refresh content='1" + b" " * size + b'url=""\'>', "text/html"),
    ]
    content = b"".join(
        warc(http(body, content_type=kind), f"{URL}/{number}") for number, (body, kind) in enumerate(pages)
    )

    def parse() -> Counts:
        article_text("a\n" + "\n" * size + "b")
        return _shown(read("warc", content))

    return parse


def _words(share: float, _: Path) -> Read:
    words = json.dumps([f"w{number}" for number in range(int(1_000_000 * share))])
    content = f'{{"url":"{URL}","keywords":{words}}}\n'.encode()
    return lambda: _shown(read("pages", content))


def _texts_apart(share: float, _: Path) -> Read:
    content = texts_apart(20, max(1, int(200 * share)), "text")
    return lambda: _shown(read("pages", content))


def _null_words(share: float, _: Path) -> Read:
    content = null_words(int(300_000_000 * share))
    return lambda: _shown(read("pages", content))


def _collisions(share: float, _: Path) -> Read:
    """URLs whose low halves of XXH3 are equal would be pairs of this kind; here the ids of many URLs are compared."""
    urls = pa.array([f"https://a.example/{number}" for number in range(int(5_000_000 * share))])
    return lambda: {"urls": len(urls), "shared ids": len(surplus_strings(urls))}


INPUTS: dict[str, Hostile] = {
    "expressions": Hostile("pages that expressions backtracked on", MEMORY, _expressions),
    "formatting": Hostile("4 MiB of <a><b>; of <b><i><u><s>", PAGE_MEMORY, _markup(b"<a><b>", b"<b><i><u><s>")),
    "tables": Hostile(
        "4 MiB of tables; selects; foreign objects; &",
        PAGE_MEMORY,
        _markup(b"<table><tr>x", b"<select><option>", b"<svg><foreignObject>", b"&"),
    ),
    "attributes": Hostile("half a million attributes of one tag", PAGE_MEMORY, _attributes),
    "words": Hostile("a list of a million keywords", 2 * MEMORY, _words),
    "texts-apart": Hostile("Parquet of 300 KB with 4 GB of different texts", 2 * MEMORY, _texts_apart),
    "null-words": Hostile("Parquet with a list of 300 million nulls", PARQUET_MEMORY, _null_words),
    "word-lists": Hostile("Parquet of 70 KB with 17 GB of lists of words", 4 * MEMORY, _word_lists),
    "tar-name": Hostile("a tar header of 4 GiB as a long name", MEMORY, _archive(tarfile.GNUTYPE_LONGNAME)),
    "tar-attributes": Hostile("a tar header of 4 GiB of attributes", MEMORY, _archive(tarfile.XHDTYPE)),
    "seeds": Hostile("seeds: /dev/zero, and 10 GiB in gzip", 8 * MEMORY, _seeds),
    "drip": Hostile("a download that drips, of 10 s at most", MEMORY, _drip),
    "ids": Hostile("ids of 5 million URLs, compared", 10 * MEMORY, _collisions),
    "gzip-in-gzip": Hostile("a body of 10 GiB in gzip in gzip", MEMORY, _gzip_in_gzip),
    "zstd-window": Hostile("4 GiB in a zstd frame with a window of 2 GiB", MEMORY, _zstd_window),
    "attribute": Hostile("a page with an attribute of 2 GiB", MEMORY, _attribute),
    "attribute-warc": Hostile("the same in a record of WARC", MEMORY, _attribute_in_warc),
    "cell": Hostile("Parquet with texts of 0.4 GiB", PARQUET_MEMORY, _cell),
    "links": Hostile("a page of 10 million links", PAGE_MEMORY, _links),
    "links-wat": Hostile("a record of WAT with 10 million links", MEMORY, _links_in_wat),
    "one-word": Hostile("200 pages of 1 MiB that are one word, ranked", ROUND_MEMORY, _one_word),
    "users": Hostile("a million users of one click, ranked", ROUND_MEMORY, _users()),
    "users-paper": Hostile("the same by --profile paper-2013", ROUND_MEMORY, _users("--profile", "paper-2013")),
    "line-log": Hostile("a line of 1 GiB in an access log", LOG_MEMORY, _line("combined", read_log, b"a b ")),
    "line-matomo": Hostile("a line of 1 GiB in a log of Matomo", LOG_MEMORY, _line("matomo", read_log, b'{"a":"')),
    "line-json": Hostile("a line of 1 GiB in JSON Lines", MEMORY, _line("pages", read, b'{"url":"')),
    "nested": Hostile("10 million elements, one in the other", PAGE_MEMORY, _nested),
    "nested-json": Hostile("10 million arrays, one in the other", MEMORY, _nested_json),
    "nulls-warc": Hostile("1 GiB of NUL in gzip as WARC", MEMORY, _nulls("warc", read)),
    "nulls-log": Hostile("1 GiB of NUL in gzip as an access log", LOG_MEMORY, _nulls("combined", read_log)),
    **{name: Hostile(kind.text, ROUND_MEMORY, kind.prepare) for name, kind in ATTACKS.items()},
}
"""The inputs by name."""


@dataclass(frozen=True)
class Outcome:
    """What an input cost.

    Attributes:
        name: of the input.
        seconds: processor time.
        peak_bytes: memory beyond what was held when reading began.
        counts: records and rows, and what was rejected, cut or left out, by name.
        failure: what went wrong, empty if nothing did.
    """

    name: str
    seconds: float
    peak_bytes: int
    counts: Counts
    failure: str = ""

    @property
    def held(self) -> bool:
        """Whether it was read within its bound."""
        within = self.peak_bytes <= INPUTS[self.name].bound_bytes
        return not self.failure and within and not self.counts.get(HARM)

    def __str__(self) -> str:
        """A line of the table."""
        known = INPUTS[self.name]
        shown = self.failure or ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        memory = f"{self.peak_bytes / MEBIBYTE:>9,.0f} {known.bound_bytes / MEBIBYTE:>9,.0f}"
        return f"{known.text:<52} {self.seconds:>8.1f} {memory}  {shown}"


HEAD = f"{'input':<52} {'seconds':>8} {'peak MiB':>9} {'bound MiB':>9}  counted"


def _give_back_memory() -> None:
    """Gives the memory that an input was made in back to the system, so that reading it is seen to take its own."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def _measure(name: str, share: float, folder: str, sender: Connection) -> None:
    try:
        read_it = INPUTS[name].prepare(share, Path(folder))
        _give_back_memory()
        before, begin = begin_peak(), time.process_time()
        counts = dict(read_it())
        bounded._helper.close()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = time.process_time() - begin + children.ru_utime + children.ru_stime
        peak = max(peak_growth(before), (children.ru_maxrss << 10) - before)
        outcome = Outcome(name, seconds, peak, counts)
    except BaseException as error:  # whatever it is, it is what came of the input
        traceback.print_exc()
        outcome = Outcome(name, 0.0, 0, {}, f"{type(error).__name__}: {error}")
    sender.send(outcome)


def measure(name: str, share: float = 1.0) -> Outcome:
    """Reads an input in a process of its own, at a share of its full size."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        process = context.Process(target=_measure, args=(name, share, folder, sender))
        process.start()
        sender.close()
        try:
            if not receiver.poll(PATIENCE_SECONDS):
                return Outcome(name, PATIENCE_SECONDS, 0, {}, f"no end after {PATIENCE_SECONDS:g} s")
            outcome: Outcome = receiver.recv()
        except EOFError:
            process.join()
            return Outcome(name, 0.0, 0, {}, f"the process died with status {process.exitcode}")
        finally:
            process.kill()
            process.join()
            receiver.close()
    return outcome


def measure_all(names: Sequence[str], share: float) -> Iterator[Outcome]:
    """Reads inputs one after another."""
    for name in names:
        yield measure(name, share)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: a line for each input; 1 where one is not held to its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.hostile", description="Reads hostile inputs.")
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help=f"of {', '.join(INPUTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the sizes")
    parsed = parser.parse_args(arguments)
    unknown = sorted(set(parsed.inputs) - set(INPUTS))
    if unknown:
        sys.stderr.write(f"{unknown[0]}: no such input, expected some of {', '.join(INPUTS)}\n")
        return 2
    print(HEAD)
    held = True
    for outcome in measure_all(parsed.inputs or list(INPUTS), QUICK_SHARE if parsed.quick else 1.0):
        print(outcome, flush=True)
        held = held and outcome.held
    return int(not held)


if __name__ == "__main__":
    raise SystemExit(main())
