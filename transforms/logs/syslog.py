"""What carriers of logs put around each line: syslog a header (RFC 3164 and 5424, and rsyslog's files).

Containers' runtimes do the same: time, stream and a tag for whole lines (Kubernetes, "CRI container log format"), or an
object with the line in it (Docker's driver "json-file").
"""

from __future__ import annotations

import re

import numpy as np

from semrank.transforms.streams.json_lines import parse_object
from semrank.transforms.streams.spans import Lines, find_lines

# An address with a port is no name of a program: lines of a classic load balancer begin like a header.
_HEADER = re.compile(
    rb"(?:<[0-9]{1,3}>)?(?:[JFMASOND][a-z]{2} [ 0-9][0-9] [0-9:]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[!-~]{8,30})"
    rb" [!-~]{1,255} (?![0-9A-Fa-f.]{1,15}:[0-9A-Fa-f:])[^\s:\[\]]{1,48}(?:\[[0-9]{1,10}\])?: ?"
    rb"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[!-~]{8,30} (?:stdout|stderr) [FP] "
    rb"|<[0-9]{1,3}>1 [!-~]{1,64} [!-~]{1,255} [!-~]{1,48} [!-~]{1,128} [!-~]{1,32} "
    rb"(?:-|(?:\[[^\]]{0,500}\]){1,9}) (?:\xef\xbb\xbf)?"
)
_DOCKER = b'{"log":"'
_DOCKER_MEMBERS = frozenset({"log", "stream", "time"})
_FIRST = np.frombuffer(b"<JFMASOND", dtype=np.uint8)
_ISO_BYTES = 11  # of `2024-03-12T`


def without_carriers(lines: Lines) -> Lines:
    """The lines as their servers wrote them, each without what a carrier put around it."""
    return _without_headers(_out_of_objects(_without_hole(lines)))


def _without_hole(lines: Lines) -> Lines:
    """The lines without the NULs before them that stand for what a rotation took out of the file (copytruncate)."""
    holed = np.flatnonzero(lines.content[lines.starts] == 0).tolist()
    if not holed:
        return lines
    starts = lines.starts.copy()
    for line in holed:
        text = lines.text(line).lstrip(b"\0")
        starts[line] = lines.ends[line] - (len(text) or lines.ends[line] - lines.starts[line])
    return Lines(lines.data, starts, lines.ends)


def _out_of_objects(lines: Lines) -> Lines:
    """The lines, those inside of Docker's objects taken out."""
    content, last = lines.content, len(lines.data) - 1
    begins = [content[np.minimum(lines.starts + place, last)] == _DOCKER[place] for place in (0, 2, 6)]  # {, l, :
    suspects = np.flatnonzero(np.logical_and.reduce(begins)).tolist()
    wrapped = [line for line in suspects if lines.data.startswith(_DOCKER, int(lines.starts[line]))]
    if not wrapped:
        return lines
    texts = lines.texts()
    for line in wrapped:
        texts[line] = _logged(texts[line])
    return find_lines(b"\n".join(texts))


def _logged(line: bytes) -> bytes:
    """The line in one of Docker's objects; the object where it holds none, or more than one."""
    entry = parse_object(line)
    if not isinstance(entry, dict) or not entry.keys() >= _DOCKER_MEMBERS or not isinstance(entry["log"], str):
        return line
    logged = entry["log"].rstrip("\r\n").encode("utf-8", "replace")
    return logged if logged and b"\n" not in logged else line


def _without_headers(lines: Lines) -> Lines:
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
