"""URLs that lead to the crawler's own network instead of the web.

A page that is crawled may link to any address, also to one that only the crawler's machine can reach: its own services,
its network's devices, or its cloud's metadata. Names are judged by their spelling alone. A public name may still
resolve to a private address, which only the crawler sees.
"""

from __future__ import annotations

import ipaddress

import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.streams.urls import host_of

PRIVATE_ADDRESS = "private-address"
"""Why such a URL is held back."""

LOCAL_SUFFIXES = frozenset(
    {
        *("localhost", "local", "internal", "home.arpa", "localdomain"),
        *("intranet", "private", "corp", "home", "lan", "svc"),
    }
)
"""Suffixes of names of local networks: RFC 6761, RFC 6762 with its appendix G, RFC 8375, ICANN (`internal`).

Kubernetes resolves `SERVICE.NAMESPACE.svc` within a cluster.
"""

_SPECIAL_IPV4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
    )
)
"""Loopback, link-local, private, carrier-grade NAT, documentation, benchmarks, multicast, reserved (IANA registry)."""

_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20"))
"""Parts of `_GLOBAL_IPV6` that are for protocols and documentation (IANA registry)."""

_EMBEDDED_IPV4 = ((ipaddress.IPv6Network("64:ff9b::/96"), 0), (ipaddress.IPv6Network("2002::/16"), 80))
"""IPv6 networks that lead to an IPv4 address, and how many bits stand after it: NAT64 (RFC 6052), 6to4 (RFC 3056)."""


def private_urls(urls: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    """Whether each canonical URL leads to a private host; bool[n], false for null.

    Args:
        urls: canonical URLs, string[n]. In these, numbers and hexadecimal forms of IPv4 addresses are dotted already.
    """
    hosts = host_of(urls).dictionary_encode()
    private = pa.array([is_private_host(host) for host in hosts.dictionary.to_pylist()], pa.bool_())
    return pc.fill_null(private.take(hosts.indices), False)


def is_private_host(host: str) -> bool:
    """Whether a canonical URL's host is a special address, a name without a dot, or a local network's name."""
    if host.startswith("["):
        return _is_special_ipv6(ipaddress.IPv6Address(host[1:-1]))
    labels = host.split(".")
    if len(labels) == 1 or labels[-1] in LOCAL_SUFFIXES or ".".join(labels[-2:]) in LOCAL_SUFFIXES:
        return True
    return labels[-1].isdigit() and _is_special_ipv4(ipaddress.IPv4Address(host))


def _is_special_ipv4(address: ipaddress.IPv4Address) -> bool:
    return any(address in network for network in _SPECIAL_IPV4)


def _is_special_ipv6(address: ipaddress.IPv6Address) -> bool:
    for network, bits_after in _EMBEDDED_IPV4:
        if address in network:
            return _is_special_ipv4(ipaddress.IPv4Address(int(address) >> bits_after & 0xFFFFFFFF))
    return address not in _GLOBAL_IPV6 or any(address in network for network in _SPECIAL_IPV6)
