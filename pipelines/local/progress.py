"""How far a run is, as log messages of level DEBUG: a terminal shows the last one in a line that rewrites itself."""

from __future__ import annotations

import logging
import sys
import time

PROGRESS = "semrank.progress"
"""The logger of the messages."""

TICK_SECONDS = 0.2
"""Least time between two messages about one stage."""

log = logging.getLogger(PROGRESS)


class Progress:
    """Reports stages.

    Args:
        stages: their number.
    """

    def __init__(self, stages: int) -> None:
        self._stages, self._stage, self._name, self._rows = stages, 0, "", 0
        self._begin = self._shown_at = time.monotonic()
        # Only a line that rewrites itself is written more than once a stage.
        self._ticks = log.isEnabledFor(logging.DEBUG) and sys.stderr.isatty()

    def start(self, name: str, rows: int) -> None:
        """Reports that the next stage begins.

        Args:
            name: of the stage.
            rows: read so far, by all stages.
        """
        self._stage, self._name, self._rows = self._stage + 1, name, rows
        if not self._ticks or time.monotonic() - self._shown_at >= TICK_SECONDS or self._stage == 1:
            self._tell(0.0)

    def tick(self, share: float) -> None:
        """Reports the share of the stage that is done, from 0 to 1, if it is time."""
        if self._ticks and time.monotonic() - self._shown_at >= TICK_SECONDS:
            self._tell(share)

    def _tell(self, share: float) -> None:
        self._shown_at = time.monotonic()
        done = (self._stage - 1 + share) / self._stages
        left = (self._shown_at - self._begin) * (1 - done) / done if done else 0.0
        about = f", about {left:.0f} s left" if left >= 1 else ""
        log.debug("stage %d of %d: %s, %s rows read%s", self._stage, self._stages, self._name, f"{self._rows:,}", about)
