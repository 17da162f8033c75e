"""Rules that hold for every format of logs, each asked in all formats that can show it."""

from __future__ import annotations

import gzip
import ipaddress
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from semrank.transforms.logs import users
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.users import first_client
from semrank.transforms.streams.lines import is_compressed
from tests.support.logs import BROWSER, combined_line, read_all

COLUMNS = {"user": "u", "query": "q", "time": "t", "url": "p", "position": "n"}
OPTIONS = LogOptions(user_salt="a test's own key", site="https://www.example.com", columns=COLUMNS)
SEARCH = "https://www.google.com/search?q=alpine+huts"
W3C = "#Fields: date time c-ip cs-method cs-host cs-uri-stem s-port sc-status cs(User-Agent) cs(Sec-Purpose)\n"


def matomo(rank: Any, *actions: Any) -> bytes:
    action = {"type": "action", "url": "https://a.example/", "timestamp": 1710234000}
    visit = {"idVisit": 1, "visitorId": "v", "referrerType": "search", "referrerKeyword": "moon"}
    return json.dumps([{**visit, "referrerKeywordPosition": rank, "actionDetails": [action, *actions]}]).encode()


def w3c(host: str = "www.example.org", port: str = "443", purpose: str = "-", date: str = "2024-03-12") -> bytes:
    agent = BROWSER.replace(" ", "+")
    return f"{W3C}{date} 09:00:00 203.0.113.9 GET {host} /a {port} 200 {agent} {purpose}\n".encode()


def json_line(**members: Any) -> bytes:
    entry = {"ip": "203.0.113.9", "time": "2024-03-12T09:00:00Z", "uri": "/a", "host": "www.example.org", **members}
    return json.dumps(entry).encode() + b"\n"


POSITIONS: dict[str, Callable[[str], bytes]] = {
    "aol": lambda rank: f"7\tmoon\t2006-03-01 07:17:12\t{rank}\thttps://a.example/\n".encode(),
    "sogou": lambda rank: f"20111230000005\t5737\tmoon\t{rank}\t1\thttps://a.example/\n".encode(),
    "table": lambda rank: f"u,q,t,p,n\n7,moon,2024-03-12,https://a.example/,{rank}\n".encode(),
    "matomo": matomo,
}


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize(
    ("rank", "position", "counters"),
    [
        *(("3", 3, {}), ("3.0", 3, {}), ("", None, {})),
        *(("0", None, {"position-below-one": 1}), ("-1", None, {"position-below-one": 1})),
        *(("x", None, {"position-unreadable": 1}), ("2.5", None, {"position-unreadable": 1})),
        *(("99999999999", None, {"position-unreadable": 1}), ("NULL", None, {"position-unreadable": 1})),
    ],
)
def test_positions_that_are_none_are_counted(
    name: str, rank: str, position: int | None, counters: dict[str, int]
) -> None:
    outcome = read_all(name, POSITIONS[name](rank), OPTIONS)
    assert [row["position"] for row in outcome.clicks] == [position]
    assert outcome.counters == counters


def test_positions_of_rejected_rows_are_not_counted() -> None:
    outcome = read_all("table", b"u,q,t,p,n\n7,moon,never,https://a.example/,x\n", OPTIONS)
    assert (outcome.rejected, outcome.counters) == ({"time-invalid": 1}, {})


def test_actions_of_a_visit_that_are_no_clicks_are_counted() -> None:
    outcome = read_all("matomo", matomo("1", "text", {"type": "action", "url": "ftp://a.example/", "timestamp": 1}))
    assert (len(outcome.clicks), outcome.counters) == (1, {"actions-unreadable": 2})


@pytest.mark.parametrize("url", ["NULL", "\\N", "url", "none", '""'])
@pytest.mark.parametrize("name", ["aol", "orcas", "sogou", "table"])
def test_a_word_is_no_host(name: str, url: str) -> None:
    line = {
        "aol": f"7\tmoon\t2006-03-01 07:17:12\t1\t{url}\n",
        "orcas": f"1\tmoon\tD1\t{url}\n2\tmoon\tD2\thttps://a.example/\n",
        "sogou": f"20111230000005\t5737\tmoon\t1\t1\t{url}\n",
        "table": f"u\tq\tt\tp\tn\n7\tmoon\t2024-03-12\t'{url}'\t1\n",
    }[name]
    assert read_all(name, line.encode(), OPTIONS).rejected == {"scheme-missing": 1}


@pytest.mark.parametrize("separator", ["\t", ","])
def test_quotes_around_a_field_are_none_of_it(separator: str) -> None:
    fields = ['"7"', '"a ""b"", c"', '"2024-03-12"', '"https://a.example/"', '"2"']
    plain = read_all("table", b'u\tq\tt\tp\tn\n7\ta "b", c\t2024-03-12\thttps://a.example/\t2\n', OPTIONS)
    header = separator.join(("u", "q", "t", "p", "n"))
    assert read_all("table", f"{header}\n{separator.join(fields)}\n".encode(), OPTIONS).clicks == plain.clicks
    assert plain.clicks[0]["query"] == 'a "b", c'


@pytest.mark.parametrize(
    "host", ["https://www.example.org", "www.example.org/a", "www.example.org?x", "me@example.org"]
)
def test_what_is_no_host_does_not_become_one(host: str) -> None:
    """The page is the site's; `https://https//www.example.org/a` is no page at all."""
    combined = combined_line(client=f"{host} 203.0.113.9").encode()
    for name, content in (("nginx-json", json_line(host=host)), ("w3c", w3c(host)), ("vhost-combined", combined)):
        (visit,) = read_all(name, content, OPTIONS).visits
        assert visit["url"].startswith("https://www.example.com/a"), name


@pytest.mark.parametrize(
    ("members", "scheme"),
    [
        *(({"server_port": "80"}, "http"), ({"server_port": 443}, "https"), ({"server_port": "8443"}, "https")),
        *(({"https": "on", "server_port": 80}, "https"), ({"https": ""}, "https")),
        *(({"scheme": "http", "server_port": "443"}, "http"), ({"RequestPort": "80"}, "http")),
    ],
)
def test_the_port_tells_the_scheme_where_no_other_field_does(members: dict[str, Any], scheme: str) -> None:
    (visit,) = read_all("nginx-json", json_line(**members), OPTIONS).visits
    assert visit["url"] == f"{scheme}://www.example.org/a"


@pytest.mark.parametrize("purpose", ["prefetch", "prefetch;prerender", "Preview"])
def test_pages_fetched_ahead_are_no_views(purpose: str) -> None:
    caddy = {"headers": {"Sec-Purpose": [purpose]}}
    for name, content in (
        ("nginx-json", json_line(http_sec_purpose=purpose)),
        ("nginx-json", json_line(http_x_moz=purpose)),
        ("nginx-json", json_line(request=caddy)),
        ("w3c", w3c(purpose=purpose)),
    ):
        assert read_all(name, content, OPTIONS).ignored["prefetch"] == 1
    assert read_all("w3c", w3c(), OPTIONS).used == 1


ECS: dict[str, Any] = {
    "@timestamp": "2024-03-12T09:00:00.000Z",
    "source": {"ip": "203.0.113.9", "port": 1234},
    "host": {"name": "web-1"},
    "url": {"original": "/a?id=7", "domain": "www.example.org", "scheme": "http", "path": "/a", "query": "id=7"},
    "http": {"request": {"method": "get", "referrer": SEARCH}, "response": {"status_code": 200, "body": {"bytes": 5}}},
    "user": {"name": "-"},
    "user_agent": {"original": BROWSER, "name": "Chrome"},
}


def with_dots(entry: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in entry.items():
        flat |= with_dots(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


@pytest.mark.parametrize("entry", [ECS, with_dots(ECS)])
@pytest.mark.parametrize("without", ["", "original"])
def test_elastic_common_schema(entry: dict[str, Any], without: str) -> None:
    told = {**entry, "url": {name: value for name, value in ECS["url"].items() if name != without}}
    (visit,) = read_all("nginx-json", json.dumps(told).encode() + b"\n", OPTIONS).visits
    (same,) = read_all("combined", combined_line(client="203.0.113.9").encode(), OPTIONS).visits
    assert (visit["url"], visit["query"]) == ("http://www.example.org/a?id=7", "alpine huts")
    assert (visit["visited_at"], visit["user_id"]) == (datetime(2024, 3, 12, 9, tzinfo=UTC), same["user_id"])


@pytest.mark.parametrize(
    ("part", "result"),
    [
        ({"http": {"request": {"method": "POST"}}}, "not-get"),
        ({"http": {"response": {"status_code": 404}}}, "status-error"),
        ({"user_agent": {"original": "Googlebot/2.1"}}, "robot"),
    ],
)
def test_outcomes_in_elastic_common_schema(part: dict[str, Any], result: str) -> None:
    assert read_all("nginx-json", json.dumps({**ECS, **part}).encode() + b"\n", OPTIONS).ignored == {result: 1}


def test_objects_of_an_array_may_stand_on_lines() -> None:
    lines = b"[\n" + json_line().strip() + b",\n" + json_line(uri="/b").strip() + b"\n]\n"
    outcome = read_all("nginx-json", lines, OPTIONS)
    assert ([visit["url"][-2:] for visit in outcome.visits], outcome.ignored) == (["/a", "/b"], {"bracket": 2})


CLASSIC = '2024-03-12T09:00:00.186641Z my-lb {client} 10.0.0.1:80 0.1 0.2 0.3 {status} 200 0 29 "{request}"'.replace(
    "{request}", "GET http://www.example.org:80/a?id=7 HTTP/1.1"
)


@pytest.mark.parametrize("tail", ["", f' "{BROWSER}" - -', f' "{BROWSER}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2'])
@pytest.mark.parametrize("client", ["203.0.113.9:2817", "[2001:db8::1]:2817", "2001:db8::1:2817"])
def test_classic_load_balancers(client: str, tail: str) -> None:
    outcome = read_all("alb", (CLASSIC.format(client=client, status=200) + tail + "\n").encode(), OPTIONS)
    (visit,) = outcome.visits
    assert visit["url"] == "http://www.example.org/a?id=7"
    assert visit["visited_at"] == datetime(2024, 3, 12, 9, 0, 0, 186641, tzinfo=UTC)


@pytest.mark.parametrize(("status", "reason"), [("-", "status-invalid"), ("x", "status-invalid")])
def test_requests_of_classic_load_balancers_without_an_answer(status: str, reason: str) -> None:
    line = CLASSIC.format(client="203.0.113.9:2817", status=status) + f' "{BROWSER}" - -\n'
    assert read_all("alb", line.encode(), OPTIONS).rejected == {reason: 1}


def docker(line: str, **members: Any) -> bytes:
    entry = {"log": line, "stream": "stdout", "time": "2024-03-12T09:00:00Z", **members}
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def test_lines_in_objects_of_docker() -> None:
    line = combined_line(request='GET /a\\"b HTTP/1.1', referrer=SEARCH)
    plain = read_all("combined", line.encode() * 3, OPTIONS)
    assert plain.used == 3
    mixed = docker(line) + line.encode() + docker(line.replace("\n", "\r\n"))
    assert read_all("combined", mixed, OPTIONS).visits == plain.visits
    fields, row = w3c().decode().splitlines()
    assert read_all("w3c", docker(fields) + docker(row), OPTIONS).visits == read_all("w3c", w3c(), OPTIONS).visits
    inner = json_line().decode()
    assert (
        read_all("nginx-json", docker(inner), OPTIONS).visits == read_all("nginx-json", inner.encode(), OPTIONS).visits
    )


@pytest.mark.parametrize("line", [docker(""), docker("\n"), docker("a\nb"), docker("x", log=5), b'{"log":"x"}\n'])
def test_objects_without_one_line_are_rejected_as_they_are(line: bytes) -> None:
    outcome = read_all("combined", line, OPTIONS)
    assert (outcome.records, outcome.rejected) == (1, {"layout-unknown": 1})


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("combined", combined_line(referrer=SEARCH).encode() * 2),
        ("nginx-json", json_line(uri="/\u00e4")),
        ("w3c", w3c()),
        ("table", "u\tq\tt\tp\tn\n7\tm\u00f6\u65e5\U0001f600\t2024-03-12\thttps://a.example/\t1".encode()),
        ("matomo", matomo("1")),
        ("aol", POSITIONS["aol"]("1")),
    ],
)
def test_utf_16_with_a_byte_order_mark(name: str, content: bytes, encoding: str) -> None:
    wide = ("\ufeff" + content.decode()).encode(encoding)
    plain = read_all(name, content, OPTIONS)
    assert plain.used > 0
    for stored in (wide, gzip.compress(wide)):
        assert read_all(name, stored, OPTIONS) == plain
    assert is_compressed(wide)


def test_utf_16_that_breaks_off_is_truncated() -> None:
    wide = combined_line().encode("utf-16")
    assert read_all("combined", wide[:-5], OPTIONS).rejected == {"record-truncated": 1}
    assert read_all("combined", b"\xff\xfe", OPTIONS).records == 0


def test_quoted_dates_and_times() -> None:
    line = '#Fields: date time c-ip cs-uri\n"2024-03-12" "09:00:00" 203.0.113.9 /a\n'
    (visit,) = read_all("w3c", line.encode(), OPTIONS).visits
    assert visit["visited_at"] == datetime(2024, 3, 12, 9, tzinfo=UTC)


def test_iso_times_in_brackets() -> None:
    (visit,) = read_all("combined", combined_line(time="2024-03-12T10:00:00+01:00").encode(), OPTIONS).visits
    assert visit["visited_at"] == datetime(2024, 3, 12, 9, tzinfo=UTC)


@pytest.mark.parametrize("encoding", ["euc_jp", "cp932", "utf-8"])
def test_words_of_japanese_engines(encoding: str) -> None:
    words = "".join(f"%{byte:02X}" for byte in "アルプスの山小屋".encode(encoding))
    line = combined_line(referrer=f"https://search.yahoo.co.jp/search?p={words}")
    assert [visit["query"] for visit in read_all("combined", line.encode(), OPTIONS).visits] == ["アルプスの山小屋"]


def test_an_address_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(text: str) -> Any:
        parsed.append(text)
        return ipaddress.ip_address(text)

    monkeypatch.setattr(users, "ip_address", counted)
    assert first_client(b"[2001:DB8::0:1]:4433") == b"2001:db8::1"
    assert first_client(b"::ffff:203.0.113.9") == b"203.0.113.9"
    assert len(parsed) == 2


def test_quotes_that_logstash_keeps_are_no_part_of_a_field() -> None:
    plain = read_all("nginx-json", json_line(referrer=SEARCH, agent=BROWSER), OPTIONS)
    quoted = read_all("nginx-json", json_line(referrer=f'"{SEARCH}"', agent=f'"{BROWSER}"'), OPTIONS)
    assert (quoted.visits, quoted.visits[0]["query"]) == (plain.visits, "alpine huts")
    assert read_all("nginx-json", json_line(agent='"-"'), OPTIONS).ignored == {"robot": 1}


def test_an_empty_account_in_quotes_is_none() -> None:
    (visit,) = read_all("combined", combined_line(account='""').encode(), OPTIONS).visits
    (same,) = read_all("combined", combined_line().encode(), OPTIONS).visits
    assert visit == same


def test_the_hole_of_a_rotated_file_is_no_part_of_a_line() -> None:
    line = combined_line().encode()
    plain = read_all("combined", line * 2, OPTIONS)
    assert read_all("combined", b"\0" * 5_000 + line + b"\0" + line, OPTIONS).visits == plain.visits
    assert read_all("combined", b"\0\0\n", OPTIONS).rejected == {"layout-unknown": 1}


@pytest.mark.parametrize(
    ("members", "url"),
    [
        ({"scheme": "http", "http_x_forwarded_proto": "https"}, "https://www.example.org/a"),
        ({"scheme": "http", "http_x_forwarded_proto": "https, http"}, "https://www.example.org/a"),
        ({"scheme": "http", "http_x_forwarded_proto": "-"}, "http://www.example.org/a"),
        ({"host": "10.0.0.5:8080", "http_x_forwarded_host": "www.example.org, inner"}, "https://www.example.org/a"),
        ({"http_x_forwarded_host": ""}, "https://www.example.org/a"),
        ({"server_port": "80", "http_x_forwarded_port": "443,80"}, "https://www.example.org/a"),
        ({"request": {"tls": None, "headers": {"X-Forwarded-Proto": ["http"]}}}, "http://www.example.org/a"),
    ],
)
def test_what_proxies_pass_on_tells_the_visitors_page(members: dict[str, Any], url: str) -> None:
    assert [visit["url"] for visit in read_all("nginx-json", json_line(**members), OPTIONS).visits] == [url]


@pytest.mark.parametrize(
    ("told", "url"),
    [("https,+http www.example.org,+inner", "https://www.example.org/a"), ("- -", "http://10.0.0.5:8080/a")],
)
def test_what_proxies_pass_on_in_w3c_logs(told: str, url: str) -> None:
    header = "#Fields: date time c-ip cs-uri-stem cs-protocol cs-host cs(X-Forwarded-Proto) cs(X-Forwarded-Host)\n"
    content = f"{header}2024-03-12 09:00:00 203.0.113.9 /a http 10.0.0.5:8080 {told}\n"
    assert [visit["url"] for visit in read_all("w3c", content.encode(), OPTIONS).visits] == [url]


def test_the_requested_host_counts_where_cloudfront_has_no_other() -> None:
    header = "#Fields: date\ttime\tc-ip\tcs(Host)\tcs-uri-stem\tx-host-header\n"
    line = "2024-03-12\t09:00:00\t203.0.113.9\td1.cloudfront.net\t/a\t-\n"
    (visit,) = read_all("cloudfront", (header + line).encode(), OPTIONS).visits
    assert visit["url"] == "https://d1.cloudfront.net/a"


def test_an_empty_list_of_proxies_leaves_the_next_header() -> None:
    header = "#Fields: date time c-ip cs-uri cs(X-Forwarded-For) cs(X-Real-IP)\n2024-03-12 09:00:00 "
    (passed_on,) = read_all("w3c", f"{header}10.0.0.1 /a - 203.0.113.9\n".encode(), OPTIONS).visits
    (direct,) = read_all("w3c", f"{header}203.0.113.9 /a - -\n".encode(), OPTIONS).visits
    assert passed_on == direct
