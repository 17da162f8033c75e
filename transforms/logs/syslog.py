"""The header that syslog puts before each line of a log that it carries (RFC 3164 and 5424, and rsyslog's files).

Containers' runtimes do the same: time, stream and a tag for whole lines (Kubernetes, "CRI container log format").
"""

from __future__ import annotations

import re

import numpy as np

from semrank.transforms.streams.spans import Lines

_HEADER = re.compile(
    rb"(?:<[0-9]{1,3}>)?(?:[JFMASOND][a-z]{2} [ 0-9][0-9] [0-9:]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[!-~]{8,30})"
    rb" [!-~]{1,255} [^\s:\[\]]{1,48}(?:\[[0-9]{1,10}\])?: ?"
    rb"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[!-~]{8,30} (?:stdout|stderr) [FP] "
    rb"|<[0-9]{1,3}>1 [!-~]{1,64} [!-~]{1,255} [!-~]{1,48} [!-~]{1,128} [!-~]{1,32} "
    rb"(?:-|(?:\[[^\]]{0,500}\]){1,9}) (?:\xef\xbb\xbf)?"
)
_FIRST = np.frombuffer(b"<JFMASOND", dtype=np.uint8)
_ISO_BYTES = 11  # of `2024-03-12T`


def without_headers(lines: Lines) -> Lines:
    """The lines, each without its header if it has one and something stands behind it."""
    content, starts = lines.content, lines.starts
    if not len(lines):
        return lines
    last = np.minimum(starts + _ISO_BYTES - 1, len(content) - 1)
    suspects = np.flatnonzero(np.isin(content[starts], _FIRST) | (content[last] == ord("T")))
    if not len(suspects):
        return lines
    begins = starts.copy()
    for line in suspects.tolist():
        header = _HEADER.match(lines.data, int(starts[line]), int(lines.ends[line]))
        if header is not None and header.end() < lines.ends[line]:
            begins[line] = header.end()
    return Lines(lines.data, begins, lines.ends)
