"""Reads the files that bound a crawl's scope: rules, hosts and domains."""

from __future__ import annotations

import argparse

from semrank.pipelines.config import RoundConfig
from semrank.pipelines.options import declared, help_group, option_name
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.frontier.rules import Rules, read_rules
from semrank.transforms.streams.urls import canonical_url

SCOPE = ("include", "exclude", "only_hosts", "only_domains", "max_url_length")
"""Options of a round that bound its scope, which `export` has, too."""


def add_scope_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the scope as a round has them."""
    for name in SCOPE:
        what, kinds = declared(RoundConfig)[name]
        help_group(parser, what.group).add_argument(
            option_name(name), type=int if int in kinds else str, metavar=what.metavar, help=what.text
        )


def scope_rules(options: RoundConfig | argparse.Namespace) -> Rules:
    """The scope that options describe.

    Raises:
        InputError: a file can't be read, or a line of it is unusable.
    """
    include, exclude, hosts, domains = (getattr(options, name) for name in SCOPE[:4])
    return Rules(
        include=None if include is None else read_rules(*_text("--include", include)),
        exclude=() if exclude is None else read_rules(*_text("--exclude", exclude)),
        hosts=None if hosts is None else _names(*_text("--only-hosts", hosts)),
        domains=None if domains is None else _names(*_text("--only-domains", domains)),
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
        if not host or "/" in host or ":" in host.rpartition("]")[2] or "@" in name:
            raise InputError(f"{source}, line {number}: found '{name:.100}', expected the name of a host")
        names.add(host)
    if not names:
        raise InputError(f"{source}: holds no name, expected one a line")
    return frozenset(names)
