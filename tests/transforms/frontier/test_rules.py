"""Scopes of crawls against the same rules applied URL by URL with another library of RE2."""

from __future__ import annotations

import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.frontier.rules import Rule, Rules, read_rules

HOSTS = ("a.example", "www.a.example", "b.example", "a.example.org", "192.0.2.1")
PATTERNS = (r"\.pdf$", "a", "^https://b", "[?]", "/x/.*/x/", "(?i)PDF")
URLS = st.builds(
    lambda host, path: (f"https://{host}/{path}", host),
    st.sampled_from(HOSTS),
    st.sampled_from(["", "a.pdf", "b?c=d", "x/y/x/", "long" * 9]),
)
RULE_LISTS = st.lists(st.builds(Rule, st.booleans(), st.sampled_from(PATTERNS)), max_size=4).map(tuple)
SCOPES = st.builds(
    Rules,
    include=st.none() | RULE_LISTS,
    exclude=RULE_LISTS,
    hosts=st.none() | st.frozensets(st.sampled_from(HOSTS)),
    domains=st.none() | st.frozensets(st.sampled_from(["example", "a.example", "example.org"])),
    max_url_length=st.none() | st.integers(15, 40),
)


def plainly(url: str, host: str, scope: Rules) -> str | None:
    if scope.max_url_length is not None and len(url) > scope.max_url_length:
        return "filter:max-url-length"
    if scope.hosts is not None and host not in scope.hosts:
        return "filter:only-hosts"
    if scope.domains is not None and not any(f".{host}".endswith(f".{domain}") for domain in scope.domains):
        return "filter:only-domains"
    for rule in scope.exclude:
        if re2.search(rule.pattern, url):
            if not rule.keeps:
                return f"filter:-{rule.pattern}"
            break
    for rule in scope.include or ():
        if re2.search(rule.pattern, url):
            return None if rule.keeps else f"filter:-{rule.pattern}"
    return None if scope.include is None else "filter:include"


@given(st.lists(URLS, max_size=8), SCOPES)
def test_the_first_rule_that_matches_decides(urls: list[tuple[str, str]], scope: Rules) -> None:
    columns = (pa.array([row[column] for row in urls], pa.string()) for column in (0, 1))
    assert scope.reasons(*columns).to_pylist() == [plainly(url, host, scope) for url, host in urls]


def test_a_file_is_read_line_by_line() -> None:
    assert read_rules("# images\n-\\.png$\n\n  +^https://a\n", "f") == (
        Rule(False, "\\.png$"),
        Rule(True, "^https://a"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-a\nb", "--exclude f, line 2: found 'b', expected [+]REGEX, -REGEX or # and a comment"),
        ("-", "line 1: found '-', expected"),
        ("-(a", "line 1: '-[(]a' is not a regular expression of RE2: "),
        ("-(?=a)", "is not a regular expression of RE2: "),
    ],
)
def test_what_is_no_rule_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_rules(text, "--exclude f")
