"""A small fuzzer without coverage, which needs nothing but Python: the same seed gives the same inputs.

It runs in a process of its own (`python -m tests.fuzz.mutation`), since what it looks for includes the death of the
process; `limit_memory` makes an input that wants too much fail instead of the machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import resource
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.fuzz.corpus import corpus
from tests.fuzz.targets import TARGETS, Target

MAX_INPUT_BYTES = 1 << 16
"""Bytes of an input: what is wrong with a parser shows in small files, and they are fast."""

HANG_SECONDS = 10.0
"""Seconds of processor time after which an input counts as a hang; the slowest good ones take some 50 ms."""

MEMORY_BYTES = 6 << 30
"""Address space of the process, of which Arrow's and NumPy's libraries reserve a good part without using it."""

TOKENS = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\t",
        b'"',
        b"\\",
        b"%",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"{",
        b"[",
        b"<",
        b"-",
    ),
    *(b"0", b"-1", b"9" * 18, b"9" * 40, b"1e999", b"NaN", b"null", b"{}", b"[" * 2000, b'{"a":' * 300),
    *(b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18", b"PAR1", b"BZh9"),
    *(
        b"WARC/1.0\r\n",
        b"Content-Length: ",
        b"\r\n\r\n",
        b"http://",
        b"xn--",
        b"..",
        b"../../",
        b"#Fields: ",
        b"<base href=",
    ),
)
"""Pieces that parsers of these formats look for, and numbers at the ends of their ranges."""


class HangError(Exception):
    """An input took too long."""


def mutated(base: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """An input changed in one to eight places."""
    data = bytearray(base)
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[at : at + draw.randint(1, 64)]
        elif kind == 2:
            data[at:at] = draw.choice(TOKENS)
        elif kind == 3:
            token = draw.choice(TOKENS)
            data[at : at + len(token)] = token
        elif kind == 4:
            piece = data[at : at + draw.randint(1, 256)]
            data[at:at] = piece * draw.randint(1, 8)
        elif kind == 5:
            other = draw.choice(others)
            begin = draw.randrange(len(other) + 1)
            data[at:] = other[begin:]
        else:
            data[at:at] = draw.randbytes(draw.randint(1, 16))
    return bytes(data[:MAX_INPUT_BYTES])


def inputs(target: str, seed: int) -> Iterator[bytes]:
    """The corpus of a target, then changes of it without end."""
    draw = random.Random(f"{target} {seed}")
    own = corpus(target)
    yield from own
    while True:
        yield mutated(draw.choice(own), own, draw)


@contextmanager
def ended_when_hanging(seconds: float) -> Iterator[None]:
    """Raises HangError inside the block when it takes too long."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def try_input(target: Target, data: bytes) -> str | None:
    """What goes wrong with an input: the end of the traceback; None if nothing does."""
    try:
        with ended_when_hanging(HANG_SECONDS):
            target(data)
    except Exception:
        return traceback.format_exc(limit=-4)
    return None


def fuzz(name: str, *, seconds: float, seed: int, findings: Path) -> dict[str, object]:
    """Fuzzes a target for some seconds of processor time; the first input of each kind of failure is left in a folder.

    Returns:
        `inputs`, `crashes`, `hangs`, `slowest_s`, and `failures`: the kinds by file.
    """
    findings.mkdir(parents=True, exist_ok=True)
    current = findings / f"{name}-current"  # stays where the process dies
    target, end = TARGETS[name], time.process_time() + seconds
    tried = crashes = hangs = 0
    slowest = 0.0
    failures: dict[str, str] = {}
    with current.open("wb", buffering=0) as kept:  # opened once: that takes longer than the fastest targets
        for data in inputs(name, seed):
            begin = time.process_time()
            # The first input of a target pays for its imports.
            if begin >= end and tried > 1:
                break
            kept.seek(0)
            kept.write(data)
            kept.truncate()
            problem = try_input(target, data)
            slowest = max(slowest, time.process_time() - begin)
            tried += 1
            if problem is not None:
                hangs += "HangError" in problem
                crashes += "HangError" not in problem
                if problem not in failures.values():
                    path = findings / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
                    path.write_bytes(data)
                    failures[str(path)] = problem
    current.unlink(missing_ok=True)
    return {"inputs": tried, "crashes": crashes, "hangs": hangs, "slowest_s": round(slowest, 3), "failures": failures}


def _peak_mib() -> int:
    """The largest memory of this process; what `getrusage` tells begins with that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)[1]) >> 10  # type: ignore[index]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzzes targets one after another and prints a line of JSON for each; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutation", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of processor time, for each target (default 10)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    parser.add_argument("--findings", type=Path, required=True, help="folder for inputs that do harm")
    parsed = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    found = False
    for name in parsed.targets or TARGETS:
        outcome = fuzz(name, seconds=parsed.seconds, seed=parsed.seed, findings=parsed.findings)
        print(json.dumps({"target": name, **outcome, "peak_mib": _peak_mib()}), flush=True)
        found = found or bool(outcome["failures"])
    return int(found)


if __name__ == "__main__":
    raise SystemExit(main())
