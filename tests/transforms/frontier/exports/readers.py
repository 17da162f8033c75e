r"""How crawlers read their files, written from their documentation and sources; shares nothing with the exports.

Java's `BufferedReader.readLine` and Hadoop's `LineRecordReader` end lines at LF, CR or CRLF; Java's `String.trim` cuts
characters up to U+0020; Java's `\s` is ASCII's white space.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

_JAVA_SPACE = "".join(map(chr, range(0x21)))


def java_lines(content: str) -> list[str]:
    found = re.split(r"\r\n|\n|\r", content)
    return found[:-1] if found and not found[-1] else found


class Injected(NamedTuple):
    """What Nutch's Injector makes of a line."""

    url: str
    score: np.float32 | None
    interval: int | None
    metadata: dict[str, str]


def nutch(content: str) -> list[Injected]:
    """`Injector.InjectMapper` over `KeyValueTextInputFormat`: the key ends at the first tab."""
    found = []
    for line in java_lines(content):
        key, _, value = line.partition("\t")
        url = key.strip(_JAVA_SPACE)
        if not url or url.startswith("#"):
            continue
        score: np.float32 | None = None
        interval: int | None = None
        metadata: dict[str, str] = {}
        for field in value.strip(_JAVA_SPACE).split("\t"):
            name, equals, text = field.partition("=")
            if not equals:
                continue
            if name == "nutch.score":
                score = np.float32(text)
            elif name == "nutch.fetchInterval":
                interval = int(text)
            else:
                metadata[name] = text
        found.append(Injected(url, score, interval, metadata))
    return found


def stormcrawler(content: str) -> list[tuple[str, dict[str, str]]]:
    """`FileSpout` with `StringTabScheme`."""
    found = []
    for line in java_lines(content):
        if not line.strip() or line.startswith("#"):
            continue
        url, *fields = line.strip(_JAVA_SPACE).split("\t")
        found.append((url, {name: value for name, _, value in (field.partition("=") for field in fields)}))
    return found


def _url_item() -> Any:
    """The message `URLItem` of urlfrontier.proto, as far as it is used."""
    file = descriptor_pb2.FileDescriptorProto(name="readers.proto", package="urlfrontier", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    string, number, message = kinds.TYPE_STRING, kinds.TYPE_UINT64, kinds.TYPE_MESSAGE

    def add(where: Any, name: str, *fields: tuple[str, int, int, str]) -> Any:
        made = where.add(name=name)
        for field, place, kind, of in fields:
            repeated = kinds.LABEL_REPEATED if of.startswith("*") else kinds.LABEL_OPTIONAL
            made.field.add(name=field, number=place, type=kind, label=repeated, type_name=of.lstrip("*") or None)
        return made

    add(file.message_type, "StringList", ("values", 1, string, "*"))
    metadata = ".urlfrontier.URLInfo.MetadataEntry"
    info = add(
        file.message_type,
        "URLInfo",
        ("url", 1, string, ""),
        ("key", 2, string, ""),
        ("metadata", 3, message, f"*{metadata}"),
        ("crawlID", 4, string, ""),
    )
    entry = add(
        info.nested_type, "MetadataEntry", ("key", 1, string, ""), ("value", 2, message, ".urlfrontier.StringList")
    )
    entry.options.map_entry = True
    of_info = ("info", 1, message, ".urlfrontier.URLInfo")
    add(file.message_type, "KnownURLItem", of_info, ("refetchable_from_date", 2, number, ""))
    add(file.message_type, "DiscoveredURLItem", of_info)
    item = add(
        file.message_type,
        "URLItem",
        ("discovered", 1, message, ".urlfrontier.DiscoveredURLItem"),
        ("known", 2, message, ".urlfrontier.KnownURLItem"),
        ("ID", 3, string, ""),
    )
    item.oneof_decl.add(name="item")
    for field in item.field[:2]:
        field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("urlfrontier.URLItem"))


_URL_ITEM = _url_item()


def urlfrontier(content: str) -> list[Any]:
    """The client's `PutURLs`: protobuf JSON where a line starts with a brace; an unknown field is an error."""
    found = []
    for line in java_lines(content):
        if line.strip(_JAVA_SPACE).startswith("{"):
            found.append(json_format.Parse(line, _URL_ITEM()))
        else:
            item = _URL_ITEM()
            item.discovered.info.url = line.strip(_JAVA_SPACE)
            found.append(item)
    return found


def heritrix_seeds(content: str) -> list[str]:
    """`TextSeedModule.announceSeedsFromReader` and `seedLine`."""
    found = []
    for line in java_lines(content):
        if re.fullmatch(r"\s*(#.*)?", line, re.ASCII):
            continue
        entry = re.fullmatch(r"\s*(\S+)\s*(#.*)?", line, re.ASCII)
        if entry is None or not entry[1][0].isalnum():
            continue
        found.append(
            _uuri(entry[1] if re.fullmatch(r"[a-zA-Z][\w+\-]+:.*", entry[1], re.ASCII) else f"http://{entry[1]}")
        )
    return [url for url in found if url is not None]


def heritrix_schedule(content: str) -> list[tuple[str, str, str, str]]:
    """`AbstractFrontier.importRecoverFormat` and `CrawlURI.fromHopsViaString`: URL, hops, via, context."""
    found = []
    for line in java_lines(content):
        if len(line) < 4:
            continue
        url, *rest = re.split(r"\s+", line[3:].strip(_JAVA_SPACE), flags=re.ASCII)
        hops, via, context = [*rest, "", "", ""][:3]
        if _uuri(url) is not None:
            found.append((url, hops, via, context))
    return found


def heritrix_precedence(content: str) -> list[tuple[str, int]]:
    """`PrecedenceLoader`: URL and number, split at any one white space."""
    rows = [re.split(r"\s", line, flags=re.ASCII) for line in java_lines(content)]
    return [(row[0], int(row[1])) for row in rows]


def _uuri(url: str) -> str | None:
    """`UURIFactory` refuses what is longer than 2,083 characters."""
    return url if len(url) <= 2083 else None


def scrapy_requests(content: str) -> list[tuple[str, int, dict[str, Any]]]:
    """`Request(url, priority=..., meta=...)` of each line; other members would be other arguments."""
    messages = [json.loads(line) for line in content.split("\n")[:-1]]
    assert all(set(message) == {"url", "priority", "meta"} for message in messages)
    return [(message["url"], message["priority"], message["meta"]) for message in messages]
