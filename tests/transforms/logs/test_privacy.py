"""No name of a visitor leaves a log: not in a URL, not as another's user id, not in a reject row."""

from __future__ import annotations

import json

import pytest

from semrank.transforms.logs.formats import FORMATS
from semrank.transforms.logs.options import LogOptions, parse_columns
from semrank.transforms.logs.users import first_client
from semrank.transforms.streams.quotes import quote_click_line, quote_line, quote_request
from tests.support.logs import BROWSER, combined_line, read_all

FIRST, SECOND, THIRD, SIXTH = "203.0.113.9", "198.51.100.7", "192.0.2.33", "2001:db8::17"


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (FIRST, FIRST),
        (f"{FIRST}, {SECOND}", FIRST),
        (f"{FIRST},{SECOND},{THIRD}", FIRST),
        (f"{FIRST} {SECOND}", FIRST),
        (f"{FIRST} ({SECOND})", FIRST),
        (f"unknown, {FIRST}", FIRST),
        (f"-, {FIRST}", FIRST),
        (f"pc-7.example.net, {FIRST}", FIRST),
        (f"{SIXTH}, {SECOND}", SIXTH),
        (f"[{SIXTH}]:51234, {SECOND}", SIXTH),
        (f"{FIRST}:51234", FIRST),
        (f'"{FIRST}, {SECOND}"', FIRST),
        (f"{FIRST},+{SECOND}", FIRST),
        (f"{FIRST},%20{SECOND}", FIRST),
        (f"{FIRST}|{SECOND}", FIRST),
        (f"{FIRST}%2C{SECOND}", FIRST),
        (f"for={FIRST}", FIRST),
        (f'For="{FIRST}:4711";proto=https, for={SECOND}', FIRST),
        (f"::ffff:{FIRST}", FIRST),
        (f"[::FFFF:{FIRST}]:443, {SECOND}", FIRST),
        (f"0:0:0:0:0:ffff:{FIRST}", FIRST),
        ("2001:0DB8:0:0:0:0:0:0001", "2001:db8::1"),  # RFC 5952: one form of an address's many
        ("FE80::1%eth0", "fe80::1%eth0"),
        ("pc-7.example.net", "pc-7.example.net"),
        ("unknown, pc-7.example.net", "pc-7.example.net"),
        ("unknown", "unknown"),
        ("-", "-"),
        ("", ""),
    ],
)
def test_the_left_most_address_is_the_client(value: str, client: str) -> None:
    assert first_client(value.encode()).decode() == client


@pytest.mark.parametrize(
    ("clients", "client"),
    [
        (f"{FIRST}, {SECOND}", FIRST),
        (f"{FIRST}, {SECOND}, {THIRD}", FIRST),
        (f"{FIRST},{SECOND}", FIRST),
        (f"{FIRST} ,{SECOND}", FIRST),
        (f"{FIRST} {SECOND}", FIRST),
        (f"{FIRST} {SECOND} {THIRD}", FIRST),
        (f"{FIRST} ({SECOND})", FIRST),
        (f"unknown, {FIRST}", FIRST),
        (f"unknown {FIRST}", FIRST),
        (f"- {FIRST}", FIRST),
        (f"-, {FIRST}", FIRST),
        (f"pc-jane.example.net {FIRST}", FIRST),
        (f"pc-jane.example.net, {FIRST}", FIRST),
        (f"{SIXTH}, {SECOND}", SIXTH),
        (f"{SIXTH}, fe80::1, {SECOND}", SIXTH),
        (f'"{FIRST}, {SECOND}"', FIRST),
    ],
)
@pytest.mark.parametrize("account", ["-", "jane", "jane doe"])
@pytest.mark.parametrize("name", ["combined", "common", "vhost-combined"])
def test_lists_of_clients_are_the_first_ones_visits(name: str, account: str, clients: str, client: str) -> None:
    host = "shop.example.org:443 " if name == "vhost-combined" else ""
    tail = 1 if name != "common" else 0
    line = host + combined_line(client=clients, account=account)
    alone = host + combined_line(client=client, account=account)
    if not tail:
        line, alone = (text.split(' "-" "')[0] + "\n" for text in (line, alone))
    visit, expected = read_all(name, line.encode()).visits[0], read_all(name, alone.encode()).visits[0]
    site = "https://shop.example.org" if host else "https://www.example.com"
    assert visit["url"] == f"{site}/a/b.html"
    assert visit["user_id"] == expected["user_id"]


@pytest.mark.parametrize(
    "clients",
    [
        *(f"{FIRST}, {SECOND}", f"{FIRST}, {SECOND}, {THIRD}", f"{FIRST} ({SECOND})", f"{FIRST} {SECOND}"),
        *(f"{SIXTH} {SECOND}", f"{SIXTH}, {SECOND}", f"{FIRST},{SECOND}"),
    ],
)
def test_a_list_of_clients_is_no_host_where_the_host_is_missing(clients: str) -> None:
    outcome = read_all("vhost-combined", combined_line(client=clients).encode(), LogOptions(user_salt="a test's key"))
    assert outcome.rejected == {"host-missing": 1}


@pytest.mark.parametrize("host", ["192.0.2.80:8080", "[2001:db8::80]:8080", "4u.example.org", "h2.example.org2"])
def test_hosts_that_resemble_addresses_are_hosts(host: str) -> None:
    (visit,) = read_all("vhost-combined", f"{host} {combined_line()}".encode()).visits
    assert visit["url"] == f"https://{host}/a/b.html"


@pytest.mark.parametrize("host", ["-", "_", "*.example.org", "~^www."])
def test_hosts_that_are_none_are_not_taken_for_names(host: str) -> None:
    line = f"{host} {combined_line()}".encode()
    assert read_all("vhost-combined", line, LogOptions(user_salt="a test's key")).rejected == {"host-missing": 1}
    assert read_all("vhost-combined", line).visits[0]["url"] == "https://www.example.com/a/b.html"


@pytest.mark.parametrize("names", ["- - -", "-  -", "www.example.org - -"])
def test_dashes_are_no_account_that_all_visitors_share(names: str) -> None:
    lines = "".join(combined_line(client=f"203.0.113.{host}").replace(" - - ", f" {names} ") for host in range(9))
    assert len({visit["user_id"] for visit in read_all("combined", lines.encode()).visits}) == 9


def test_visitors_behind_one_proxy_stay_apart() -> None:
    lines = "".join(combined_line(client=f"203.0.113.{host} (198.51.100.7)") for host in range(9))
    assert len({visit["user_id"] for visit in read_all("combined", lines.encode()).visits}) == 9


JSON = {"remote_addr": FIRST, "remote_user": "jane.doe", "http_cookie": "sid=5ecre7", "request_method": "GET"}
JSON_TIME = "2024-03-12T10:00:00Z"
W3C = "#Fields: date time cs-method cs-uri-stem cs-uri-query cs-username c-ip cs(Cookie) sc-status\n"
UNUSABLE = {
    "combined": [
        combined_line(client=FIRST, account="jane.doe", time="31/Feb/2024:10:00:00 +0000"),
        combined_line(client="pc-jane.doe.example.net", account='"jane.doe"', status="2xx"),
        combined_line(client=FIRST, account="jane.doe@example.org", request=""),
        f'[12/Mar/2024:10:00:00 +0000] {FIRST} jane.doe "GET /a HTTP/1.1" 200 1 "-" "-"\n',
        f'jane.doe {FIRST} "GET /a?user=jane.doe HTTP/1.1" 200\n',
        combined_line(client=FIRST, time="-", request="GET http://jane.doe:5ecre7@www.example.org/a;s=5ecre7 HTTP/1.1"),
    ],
    "nginx-json": [
        json.dumps({**JSON, "time_iso8601": "yesterday, jane.doe", "request_uri": "/a?u=jane.doe", "status": 200}),
        json.dumps({**JSON, "time_iso8601": JSON_TIME, "request_uri": "/a", "status": "jane.doe"}),
        json.dumps({**JSON, "time_iso8601": JSON_TIME, "request_uri": "/a", "status": 200})[:-1],
        json.dumps({**JSON, "who": "jane.doe"}).replace("request_method", "what"),
        json.dumps({"request": {"remote_ip": FIRST, "headers": {"Cookie": ["sid=5ecre7"]}}, "user_id": "jane.doe"}),
    ],
    "w3c": [
        W3C + f"2024-13-12 10:00:00 GET /a u=jane.doe CORP\\jane.doe {FIRST} sid=5ecre7 200\n",
        W3C + f"2024-03-12 10:00:00 GET /a - CORP\\jane.doe {FIRST} sid=5ecre7 2xx\n",
        W3C + f"2024-03-12 10:00:00 GET /a - jane.doe x {FIRST} sid=5ecre7 200\n",
        f"2024-03-12 10:00:00 GET /a - jane.doe {FIRST} sid=5ecre7 200\n",
        W3C.replace("date time", "cs-username time") + f"jane.doe 10:00:00 GET /a - 1 {FIRST} sid=5ecre7 200\n",
    ],
    "alb": [f"h2 2024-03-12T10:00:00Z app/lb {FIRST}:51234 jane.doe\n"],
    "cloudfront": [W3C.replace(" ", "\t") + f"2024-03-12\t10:00:00\tGET\t/a\t-\tjane.doe\t{FIRST}\n"],
    "aol": ["jane.doe\tmoon\n", "jane.doe moon 2006-03-01 http://a.example/?u=jane.doe\n"],
    "orcas": ["10\tjane.doe\tD1\tnot a url\n", "10\tjane.doe\n"],
    "sogou": ["jane.doe moon 1 1 www.example.org/\n", "00:00:01\tjane.doe\tx\n"],
    "yandex": ["7\tM\tx\tjane.doe\n", "jane.doe\n"],
    "matomo": [json.dumps({"idVisit": 7, "userId": "jane.doe", "visitIp": FIRST, "actionDetails": "5ecre7"})],
    "table": [f"jane.doe\tmoon for jane.doe\tnever\thttps://a.example/?u={FIRST}\n", "jane.doe moon\n"],
}


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"combined", "common", "vhost-combined"}))
def test_a_log_read_as_another_format_is_not_quoted(name: str) -> None:
    line = combined_line(client=FIRST, account="jane.doe", request="GET /a?u=jane.doe HTTP/1.1")
    outcome = read_all(name, (line * 3).encode())
    assert outcome.rejects
    assert not any(secret in row["record"] for row in outcome.rejects for secret in ("jane", FIRST))


@pytest.mark.parametrize(("name", "content"), [(name, text) for name, texts in UNUSABLE.items() for text in texts])
def test_rejects_quote_an_allow_list(name: str, content: str) -> None:
    columns = parse_columns("user=0,query=1,time=2,url=3")
    options = LogOptions(user_salt="a test's own key", site="https://www.example.org", columns=columns)
    outcome = read_all(name, content.encode(), options)
    assert outcome.rejects
    for row in outcome.rejects:
        assert not any(secret in row["record"] for secret in ("jane", FIRST, "5ecre7", "CORP"))


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        (combined_line(account="jane"), "10/Feb/2012:16:42:07 -0500 GET /a/b.html 200"),
        ("2024-03-12 10:00:01 192.0.2.1 GET /b c=1 443 jane 203.0.113.9", "2024-03-12 10:00:01 GET /b"),
        (
            'x - - [x] "GET /to/jane@example.org/203.0.113.9?q HTTP/1.1" 200',
            "GET /to/<account>/<address> 200",
        ),
        (f'"{BROWSER}" GET', ""),
    ],
)
def test_what_is_quoted_of_a_request(line: str, quoted: str) -> None:
    assert quote_line(line.encode()) == f"{quoted} ({len(line)} bytes)".strip()


def test_values_that_are_not_what_they_should_be_are_not_quoted() -> None:
    assert quote_request(b"jane", b"JANE", b"jane", b"jane", 9) == "(9 bytes)"
    assert quote_request(b"1646861401.524", b"GET", b"/a;s=1", b"404", 9) == "1646861401.524 GET /a 404 (9 bytes)"
    assert quote_click_line(b"7\tx\t2006-03-01 07:17:12\t1\thttp://u:p@a.example/b?c") == (
        "2006-03-01 07:17:12 http://a.example/b (50 bytes)"
    )
