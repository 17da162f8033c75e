"""How the time of each parser grows: every token of its grammar is repeated at every place of its seeds.

    python -m tests.fuzz.growth [TARGET ...] [--share S]

An input of `SMALL_BYTES` is tried first, which what is quadratic makes slow and what is linear does not; only slow ones
are measured again at twice the length. Times are of the processor, so that a busy machine raises no alarm.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.corpus import seeds
from tests.fuzz.mutation import HangError, ended_when_hanging
from tests.fuzz.targets import TARGETS, Target

SMALL_BYTES = 1 << 13
SLOW_SECONDS = 0.08
"""Of a small input: linear parsers take some milliseconds, quadratic ones some tenths of a second."""

MAX_GROWTH = 2.8
"""Of the time when the length doubles: 2 for what is linear, 4 for what is quadratic."""

_HANG_SECONDS = 5.0
_MAX_SEED_BYTES = 1 << 13
_TOKEN = re.compile(rb"[A-Za-z]+|[0-9]+|[ \t]+|[^A-Za-z0-9 \t]")
COMMON_TOKENS = (
    *(
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
        b"\\",
        b"<",
        b">",
        b"=",
        b"/",
        b"-",
        b";",
        b",",
        b"&",
        b"%",
        b"(",
        b"[",
        b"]",
    ),
    *(b"<!---->", b"<a><b>", b"<p x=", b"<a href=x>", b'="', b"a=b&", b"%41", b"/../", b"&amp;", b"a", b"0"),
)
"""Tokens that many grammars have."""

_NO_PARSERS = frozenset({"options", "option-file", "manifest", "topics", "seeds", "path-list"}) | {
    name for name in TARGETS if name.startswith("ontology-")
}
"""Targets that read what a user or semrank itself wrote."""


@dataclass(frozen=True)
class Growth:
    """A repetition whose time grows faster than its length.

    Attributes:
        target: name of the parser.
        token: what was repeated.
        place: where in the seed, of which seed.
        seconds: processor time of the small input and of that of twice the length.
    """

    target: str
    token: bytes
    place: str
    seconds: tuple[float, float]


def repetitions(name: str, share: float, draw: random.Random) -> Iterator[tuple[bytes, bytes, bytes, str]]:
    """(what stands before, token, what stands behind, place) of a sample of all tokens and places."""
    for label, seed in seeds()[name].items():
        seed = seed[:_MAX_SEED_BYTES]
        found = list(_TOKEN.finditer(seed))
        tokens = list(dict.fromkeys([*COMMON_TOKENS, *(match[0] for match in found)]))
        places = [0, *dict.fromkeys(match.end() for match in found)]
        for place in places:
            for token in tokens:
                if draw.random() < share:
                    yield seed[:place], token, seed[place:], f"{label} at {place}"
                    yield seed[:place], token, b"", f"{label} at {place}, cut"


def seconds(target: Target, data: bytes) -> float:
    """Processor time of reading an input; infinite where it hangs."""
    begin = time.process_time()
    try:
        with ended_when_hanging(_HANG_SECONDS):
            target(data)
    except HangError:
        return float("inf")
    return time.process_time() - begin


def growing(name: str, share: float, seed: int) -> Iterator[Growth]:
    """Repetitions that a target reads in more than linear time."""
    target = TARGETS[name]
    draw = random.Random(f"{name} {seed}")
    for before, token, behind, place in repetitions(name, share, draw):
        times = SMALL_BYTES // len(token)
        small = seconds(target, before + token * times + behind)
        if small < SLOW_SECONDS:
            continue
        if small == float("inf"):
            yield Growth(name, token, place, (small, small))
            continue
        large = min(seconds(target, before + token * (2 * times) + behind) for _ in range(2))
        small = min(small, seconds(target, before + token * times + behind))
        if large > MAX_GROWTH * small and large > 2 * SLOW_SECONDS:
            yield Growth(name, token, place, (round(small, 3), round(large, 3)))


def parsers() -> list[str]:
    """Names of the targets that read what others wrote."""
    return [name for name in TARGETS if name not in _NO_PARSERS]


def main() -> int:
    """Measures and prints one line of JSON a target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=parsers())
    parser.add_argument("--share", type=float, default=1.0, help="of all tokens and places (default 1)")
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    bad = 0
    for name in parsed.targets:
        begin = time.process_time()
        found = list(growing(name, parsed.share, parsed.seed))
        bad += len(found)
        shown = [f"{growth.token!r} in {growth.place}: {growth.seconds}" for growth in found[:5]]
        print(
            json.dumps(
                {
                    "target": name,
                    "growing": len(found),
                    "examples": shown,
                    "seconds": round(time.process_time() - begin, 1),
                }
            ),
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
