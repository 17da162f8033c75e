"""Reads the files that bound a crawl's scope: rules, hosts and domains."""

from __future__ import annotations

from semrank.pipelines.config import ScopeOptions
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.frontier.rules import Rules, read_rules
from semrank.transforms.streams.urls import canonical_url


def scope_rules(options: ScopeOptions) -> Rules:
    """The scope that options describe.

    Raises:
        InputError: a file can't be read, or a line of it is unusable.
    """
    include = None if options.include is None else read_rules(*_text("--include", options.include))
    if include == ():
        # An empty file that excludes is the beginning of one; this one would hold back every URL.
        raise InputError(f"--include {options.include}: holds no rule, expected +REGEX or -REGEX on a line")
    return Rules(
        include=include,
        exclude=() if options.exclude is None else read_rules(*_text("--exclude", options.exclude)),
        hosts=None if options.only_hosts is None else _names(*_text("--only-hosts", options.only_hosts)),
        domains=None if options.only_domains is None else _names(*_text("--only-domains", options.only_domains)),
        max_url_length=options.max_url_length,
    )


def _text(option: str, path: str) -> tuple[str, str]:
    """A file's text, and how messages call it."""
    source = f"{option} {path}"
    try:
        return files.read_bounded(path).decode("utf-8-sig"), source
    except UnicodeDecodeError as cause:
        raise InputError(f"{source}: is not UTF-8") from cause
    except OSError as cause:
        raise InputError(f"{source}: can't be read: {cause.strerror or cause}") from cause


def _names(text: str, source: str) -> frozenset[str]:
    names = set()
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        if not name:
            continue
        found = canonical_url(f"http://{name}/").url
        host = "" if found is None else found.removeprefix("http://").removesuffix("/")
        if not host or "/" in host or ":" in host.rpartition("]")[2] or "@" in name or "*" in host:
            hint = "; --only-domains also keeps all hosts below a name" if "*" in host else ""
            raise InputError(f"{source}, line {number}: found '{name:.100}', expected the name of a host{hint}")
        names.add(host)
    if not names:
        raise InputError(f"{source}: holds no name, expected one a line")
    return frozenset(names)
