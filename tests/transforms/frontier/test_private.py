"""Private hosts against the standard library's own tables, and against spellings that attackers use."""

from __future__ import annotations

import ipaddress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.frontier.private import is_private_host, private_urls
from semrank.transforms.streams.urls import canonicalize

PRIVATE = [
    *("http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/"),
    *("http://127.0.0.1./", "http://127.0.0.1:8080/x", "http://user:word@127.0.0.1/", "http://%31%32%37.0.0.1/"),
    *("http://①②⑦.0.0.1/", "http://0/", "http://169.254.169.254/latest/meta-data/", "http://10.1.2.3/"),
    *("http://172.31.255.255/", "http://192.168.0.1/", "http://100.64.0.1/", "http://100.127.255.255/"),
    *("http://[::1]/", "http://[::]/", "http://[fd00::1]/", "http://[fe80::1]/", "http://[fec0::1]/"),
    *("http://[::ffff:127.0.0.1]/", "http://[::ffff:8.8.8.8]/", "http://[::127.0.0.1]/", "http://[ff02::1]/"),
    *("http://[64:ff9b::10.0.0.1]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::1]/", "http://[::1]:80/"),
    *("http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://intranet/", "http://wiki:8080/"),
    *("http://printer.local/", "http://metadata.google.internal/", "http://router.home.arpa/", "http://nas.lan/"),
    *("http://kubernetes.default.svc/", "http://kubernetes.default.svc.cluster.local/"),
]
PUBLIC = [
    *("http://8.8.8.8/", "http://172.32.0.1/", "http://100.128.0.1/", "http://169.253.0.1/", "http://[2606:4700::1]/"),
    *("http://[64:ff9b::8.8.8.8]/", "http://[2002:808:808::]/", "https://example.com/?to=http://127.0.0.1/"),
    *(
        "http://local.example/",
        "http://localhost.example/",
        "http://internal.com/",
        "http://10.example/",
        "http://a.b/",
    ),
]


@pytest.mark.parametrize(("urls", "expected"), [(PRIVATE, True), (PUBLIC, False)], ids=["private", "public"])
def test_spellings_of_hosts(urls: list[str], expected: bool) -> None:
    canonical = canonicalize(pa.array(urls)).urls
    assert canonical.null_count == 0
    found = dict(zip(urls, private_urls(canonical).to_pylist(), strict=True))
    assert found == dict.fromkeys(urls, expected)


def test_null_is_no_private_url() -> None:
    assert private_urls(pa.array([None, "http://[::1]/", None], pa.string())).to_pylist() == [False, True, False]


@given(st.ip_addresses(v=4))
def test_ipv4_as_the_standard_library(address: ipaddress.IPv4Address) -> None:
    expected = not address.is_global or address.is_multicast or address in ipaddress.IPv4Network("192.0.0.0/24")
    assert is_private_host(str(address)) is expected


@given(st.ip_addresses(v=6))
def test_no_special_ipv6_is_public(address: ipaddress.IPv6Address) -> None:
    embedded = address.sixtofour
    if embedded is not None:
        assert is_private_host(f"[{address}]") is is_private_host(str(embedded))
    elif address.is_private or address.is_multicast or address.is_link_local or address.is_loopback:
        assert is_private_host(f"[{address}]")
