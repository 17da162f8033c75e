"""Reading pages in bounded time: large ones in a process of their own, which the system ends when its time is over.

A tree is built by compiled code that nothing can interrupt. So a page whose cost its size does not bound is read by a
helper process, one a worker, that has a timer of processor time set for each page; its default action ends the process,
wherever it is. The next large page gets a new one. Small pages stay in the worker: copying them would cost more.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from semrank.transforms.crawls.html import MAX_HTML_BYTES, HtmlPage, read_html
from semrank.transforms.crawls.links import PageLinks
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules, count_lost, urls_that_lost_parameters

DEFAULT_RECORD_SECONDS = 5.0
"""Seconds of processor time that one record may take; large honest pages take some tenths of one."""

APART_BYTES = 1 << 19
"""Bytes of a page from which on it is read in the helper process."""

APART_TAGS = 20_000
"""Tags of a page from which on it is read in the helper process: fewer cost less than 1 s however they are nested."""

TOOK_TOO_LONG, CRASHED = "took-too-long", "parser-crashed"
"""Reasons of rejects: the time limit was exceeded; the parser ended the helper process by a fault of its own."""


class UnreadableError(Exception):
    """A record that can't be read; `reason` is the reason of its reject."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Checks, at its end, that a record did not take more processor time of this thread than it may.

    Raises:
        UnreadableError: it did.
    """
    begin = time.thread_time()
    yield
    if time.thread_time() - begin > seconds:
        raise UnreadableError(TOOK_TOO_LONG)


def read_page(
    body: bytes, *, seconds: float = DEFAULT_RECORD_SECONDS, rules: ParameterRules = NO_RULES, **options: Any
) -> HtmlPage:
    """`html.read_html` with a limit of processor time that also ends compiled code.

    Args:
        body: the page.
        seconds: the limit.
        rules: the user's rules for parameters of URLs.
        options: further arguments of `read_html`.

    Raises:
        UnreadableError: the limit was exceeded, or the parser crashed.
    """
    if len(body) < APART_BYTES and (len(body) < 2 * APART_TAGS or body.count(b"<") < APART_TAGS):
        with time_limit(seconds):
            return read_html(body, rules=rules, **options)
    return _helper.read(body[: MAX_HTML_BYTES + 1], seconds, rules, options)


class _Helper:
    """The helper process of this process, started when it is first needed, and again after it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def read(self, body: bytes, seconds: float, rules: ParameterRules, options: dict[str, Any]) -> HtmlPage:
        with self._lock:
            process = self._running()
            requests, answers = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
            try:
                request = json.dumps([len(body), seconds, rules, options], default=list)
                requests.write(request.encode() + b"\n" + body)
                requests.flush()
                title, text, language, links, lost = json.loads(answers.readline())
                count_lost(lost)
                return HtmlPage(title, text, language, PageLinks.of_state(options["url"], links))
            except (BrokenPipeError, ValueError):
                status = process.wait()
                self.close()
                if status >= 0:
                    raise RuntimeError(f"the process that reads large pages ended with status {status}") from None
                raise UnreadableError(TOOK_TOO_LONG if status == -signal.SIGPROF else CRASHED) from None
            except BaseException:  # an interrupt: an answer may be half read
                self.close()
                raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # a process that was forked from the one that started the helper
            self._process, self._owner = None, os.getpid()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # an interrupt from the terminal is for the command
            )
        return self._process

    def close(self) -> None:
        """End the process, if this one started it."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()


_helper = _Helper()
atexit.register(_helper.close)


def serve() -> None:
    """The helper process: reads pages from standard input until it ends, and writes what was found on them."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the process that asked was killed: this one ends, too
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while request := requests.readline():
        size, seconds, rules, options = json.loads(request)
        body = requests.read(size)
        before = urls_that_lost_parameters()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        page = read_html(body, rules=ParameterRules.of(*rules), **options)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found = [page.title, page.text, page.language, page.links.state(), urls_that_lost_parameters() - before]
        answers.write(json.dumps(found).encode() + b"\n")
        answers.flush()
