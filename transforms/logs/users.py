"""Ids of users that can't be turned back into an address or a name without the key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ID_BYTES = 16
"""Bytes of an id: with 2^32 users two share one with probability 2^-65."""

_SEPARATOR = b"\0"
_LONE_ADDRESS = r"^[0-9A-Fa-f.]+$"  # the usual client, which needs no second look
_BETWEEN_CLIENTS = re.compile(rb"(?:[\s,;|()\"'+]|%20|%2c|for=)+", re.IGNORECASE)
_WITH_PORT = re.compile(rb"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
_HIDDEN_CLIENTS = frozenset({b"", b"-", b"unknown"})


def hashed_ids(identities: Iterable[bytes], salt: bytes) -> list[str]:
    """Keyed BLAKE2b (RFC 7693) of identities, 32 hexadecimal digits each.

    Args:
        identities: how users are distinguished.
        salt: the key, up to 64 bytes.
    """
    keyed = hashlib.blake2b(digest_size=ID_BYTES, key=salt)
    ids = []
    for identity in identities:
        digest = keyed.copy()
        digest.update(identity)
        ids.append(digest.hexdigest())
    return ids


def visitor_ids(
    client: pa.BinaryArray, account: pa.BinaryArray | None, agent: pa.BinaryArray | None, salt: bytes
) -> pa.StringArray:
    """Ids of the visitors behind requests.

    A visitor is an account where the server knows one, else an address with a browser, the usual reading of a log
    (Cooley, Mobasher, Srivastava, Knowledge and Information Systems 1999): people behind one proxy differ by browser.

    Args:
        client: address or host name, or a list of these (`first_client`), binary[n].
        account: name of the account, empty or null where there is none, binary[n]; None if not recorded.
        agent: the browser's user agent, binary[n]; None if not recorded.
        salt: key of the hash.

    Returns:
        string[n].
    """
    count = len(client)
    columns = []
    codes = np.zeros(count, dtype=np.int64)
    for column in (client, agent, account):
        encoded = (pa.nulls(count, pa.binary()) if column is None else column).fill_null(b"").dictionary_encode()
        columns.append((_first_clients(encoded.dictionary) if column is client else encoded.dictionary).to_pylist())
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy(zero_copy_only=False)
    clients, agents, accounts = columns
    distinct, inverse = np.unique(codes, return_inverse=True)
    pairs, account_codes = np.divmod(distinct, max(1, len(accounts)))
    client_codes, agent_codes = np.divmod(pairs, max(1, len(agents)))
    identities = [
        b"account" + _SEPARATOR + accounts[name]
        if accounts[name]
        else b"client" + _SEPARATOR + clients[address] + _SEPARATOR + agents[browser]
        for address, browser, name in zip(
            client_codes.tolist(), agent_codes.tolist(), account_codes.tolist(), strict=True
        )
    ]
    return pa.array(hashed_ids(identities, salt), pa.string()).take(pa.array(inverse))


def _first_clients(values: pa.BinaryArray) -> pa.BinaryArray:
    other = pc.invert(pc.match_substring_regex(values, _LONE_ADDRESS))
    firsts = [first_client(value) for value in values.filter(other).to_pylist()]
    return pc.replace_with_mask(values, other, pa.array(firsts, pa.binary()))


def address_of(word: bytes) -> bytes | None:
    """The network address that a word is, without its port; None if it is none."""
    found = _parsed(word)
    return None if found is None else found[0]


def _parsed(word: bytes) -> tuple[bytes, IPv4Address | IPv6Address] | None:
    """The network address that a word is, without its port, and what it stands for; None if it is none."""
    found = _WITH_PORT.fullmatch(word)
    bare = (found[1] or found[2]) if found else word
    try:
        return bare, ip_address(bare.decode("ascii").partition("%")[0])
    except ValueError:
        return None


def first_client(value: bytes) -> bytes:
    """The client among the addresses that proxies have passed on.

    A proxy appends the address that it was asked from (the header X-Forwarded-For), so the left-most address is the
    client's. Words that are no address (`unknown`) count only where there is no address; then the first name is it.

    Args:
        value: one address or name, or several, separated by commas or blanks, each perhaps in parentheses.
    """
    words = [word for word in _BETWEEN_CLIENTS.split(value) if word.lower() not in _HIDDEN_CLIENTS]
    return _first_address(words) or (words[0] if words else value)


def _first_address(words: Iterable[bytes]) -> bytes | None:
    found = next(filter(None, map(_parsed, words)), None)
    return None if found is None else _in_one_form(*found)


def _in_one_form(address: bytes, parsed: IPv4Address | IPv6Address) -> bytes:
    """An address as RFC 5952 writes it; one of IPv4 as a socket of IPv6 has it, without what is added there."""
    _, percent, zone = address.decode("ascii").partition("%")
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return f"{mapped or parsed}{percent}{zone}".encode()


def forwarded_clients(client: pa.BinaryArray, forwarded: pa.BinaryArray) -> pa.BinaryArray:
    """The clients of requests: the left-most address of a proxy header, if there is one.

    Args:
        client: the address that the connection came from, binary[n].
        forwarded: the header X-Forwarded-For or one like it, binary[n].
    """
    encoded = forwarded.fill_null(b"").dictionary_encode()
    addresses = [_first_address(_BETWEEN_CLIENTS.split(value)) for value in encoded.dictionary.to_pylist()]
    return pc.coalesce(pa.array(addresses, pa.binary()).take(encoded.indices), client)


def subject_ids(format_name: str, subjects: pa.StringArray, salt: bytes) -> pa.StringArray:
    """Ids of users whom a published data set has numbered itself.

    Without a key the set's own number stands, after the format's name so that two sets share no user; with a key it is
    hashed like any other user. An empty number is no user: null.
    """
    subjects = pc.if_else(pc.equal(subjects, ""), None, subjects)
    if not salt:
        return pc.binary_join_element_wise(format_name, subjects, "-")
    encoded = subjects.dictionary_encode()  # nulls stay nulls among the indices
    known = [f"{format_name}-{subject}".encode() for subject in encoded.dictionary.to_pylist()]
    return pa.array(hashed_ids(known, salt), pa.string()).take(encoded.indices)
