"""The user's options about logs, checked when they are set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from semrank.schemas.errors import InputError
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules
from semrank.transforms.streams.urls import canonical_url

MIN_SALT_BYTES = 8
MAX_SALT_BYTES = 64
"""Maximum bytes of a BLAKE2b key (RFC 7693); fewer than `MIN_SALT_BYTES` can be guessed."""

TABLE_COLUMNS = ("user", "query", "time", "url", "position", "group", "session")
REQUIRED_TABLE_COLUMNS = ("user", "query", "time", "url")

_HOST = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z0-9-]+")


@dataclass(frozen=True)
class LogOptions:
    """Options of all log formats; each format declares which ones it needs.

    Attributes:
        user_salt: key of the hash that replaces user ids (keyed BLAKE2b). There is no default: with a constant one
            anybody could hash all addresses, with a random one user ids would differ between runs.
        site: scheme and host of the logged site, for logs that record only the path of a request.
        site_search: query parameters with the words of the site's own search.
        columns: for the format `table`: which column is the user, query, time and url (and position, group, session),
            each a name from the header line or a number from 0. Either all are names or all are numbers.
        spam_domains: domains whose referrers are spam, besides the known ones.
        rules: rules for parameters of URLs.

    Raises:
        InputError: an option can't be used; the message names it.
    """

    user_salt: str | None = None
    site: str | None = None
    site_search: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    spam_domains: tuple[str, ...] = ()
    rules: ParameterRules = NO_RULES

    def __post_init__(self) -> None:
        """Checks each option and the combination of columns."""
        self._check_salt()
        if self.site is not None:
            object.__setattr__(self, "site", _origin(self.site))
        for name in self.site_search:
            if not name or re.search(r"[\s&=?#]", name):
                raise InputError(f"--site-search: found {name!r}, expected the name of a query parameter such as q")
        domains = tuple(sorted({domain.lower().strip(".") for domain in self.spam_domains}))
        for domain in domains:
            if not _HOST.fullmatch(domain):
                raise InputError(f"--spam-domain: found {domain!r}, expected a domain such as spam.example")
        object.__setattr__(self, "spam_domains", domains)
        self._check_columns()

    def _check_salt(self) -> None:
        if self.user_salt is None:
            return
        size = len(self.user_salt.encode("utf-8", "surrogateescape"))
        if not MIN_SALT_BYTES <= size <= MAX_SALT_BYTES:
            raise InputError(f"--user-salt: found {size} bytes, expected {MIN_SALT_BYTES} to {MAX_SALT_BYTES}")

    def _check_columns(self) -> None:
        if not self.columns:
            return
        unknown = sorted(set(self.columns) - set(TABLE_COLUMNS))
        if unknown:
            raise InputError(f"--log-columns: found {', '.join(unknown)}, expected some of {', '.join(TABLE_COLUMNS)}")
        missing = [name for name in REQUIRED_TABLE_COLUMNS if name not in self.columns]
        if missing:
            raise InputError(
                f"--log-columns: {', '.join(missing)} not given, expected all of {', '.join(REQUIRED_TABLE_COLUMNS)}"
            )
        numbers = [column.isascii() and column.isdigit() for column in self.columns.values()]
        if any(numbers) and not all(numbers):
            raise InputError(
                f"--log-columns: found {', '.join(self.columns.values())}, expected either names or numbers, not both"
            )

    @property
    def salt(self) -> bytes:
        """The key as bytes; empty when no salt was given."""
        return (self.user_salt or "").encode("utf-8", "surrogateescape")


def parse_columns(text: str) -> dict[str, str]:
    """The columns that `--log-columns user=uid,query=q,time=at,url=page` names.

    Raises:
        InputError: a part is not NAME=COLUMN, or a name is given twice.
    """
    columns: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = part.strip().partition("=")
        if not equals or not name or not column:
            raise InputError(f"--log-columns: found {part!r}, expected NAME=COLUMN such as user=0 or query=words")
        if name in columns:
            raise InputError(f"--log-columns: {name} is given twice, expected once")
        columns[name] = column
    return columns


def _origin(site: str) -> str:
    """Scheme and host of the site, as in canonical URLs."""
    canonical = canonical_url(site).url
    if canonical is None or urlsplit(canonical).path != "/" or urlsplit(canonical).query:
        raise InputError(f"--log-site: found {site!r}, expected scheme and host such as https://www.example.com")
    return canonical[:-1]


def require(options: LogOptions, format_name: str, *, salt: bool = False, site: bool = False) -> None:
    """Checks that the required options of a format are set.

    Raises:
        InputError: one is missing; the message names it and its purpose.
    """
    if salt and not options.user_salt:
        raise InputError(
            f"--log {format_name}: --user-salt is missing, expected a secret text that user ids are hashed with, "
            "or --user-salt-file, or the variable SEMRANK_USER_SALT"
        )
    if site and not options.site:
        raise InputError(
            f"--log {format_name}: --log-site is missing, expected scheme and host such as https://www.example.com, "
            "since this format records only the path of a request"
        )
