"""JSON access logs of several servers: which field tells the page, the host, the scheme and the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semrank.transforms.logs.options import LogOptions
from tests.support.logs import BROWSER, read_all

NO_SITE = LogOptions(user_salt="a test's own key")
SITE = LogOptions(user_salt="a test's own key", site="https://www.example.org")
TIME, HOST = "2024-03-12T10:00:00+00:00", "www.example.org"
CADDY = {
    "level": "info",
    "ts": 1710237600.25,
    "logger": "http.log.access",
    "msg": "handled request",
    "request": {
        "remote_ip": "203.0.113.9",
        "client_ip": "203.0.113.9",
        "proto": "HTTP/2.0",
        "method": "GET",
        "host": "www.example.org",
        "uri": "/a?id=7",
        "headers": {"User-Agent": [BROWSER], "Referer": ["https://www.google.com/search?q=alpine+huts"]},
        "tls": {"version": 772, "server_name": "www.example.org"},
    },
    "user_id": "",
    "status": 200,
}
TRAEFIK = {
    "ClientAddr": "203.0.113.9:51234",
    "ClientHost": "203.0.113.9",
    "ClientUsername": "-",
    "DownstreamStatus": 200,
    "RequestAddr": "www.example.org:443",
    "RequestHost": "www.example.org",
    "RequestMethod": "GET",
    "RequestPath": "/a?id=7",
    "RequestProtocol": "HTTP/2.0",
    "RequestScheme": "https",
    "StartUTC": "2024-03-12T10:00:00.250000123Z",
    "request_User-Agent": BROWSER,
    "request_Referer": "https://www.google.com/search?q=alpine+huts",
    "time": "2024-03-12T10:00:01Z",
}


@pytest.mark.parametrize("entry", [CADDY, TRAEFIK, CADDY | {"ts": "2024-03-12T10:00:00.25Z"}])
def test_logs_of_caddy_and_traefik(entry: dict[str, Any]) -> None:
    (visit,) = read_all("nginx-json", json.dumps(entry).encode(), NO_SITE).visits
    assert (visit["url"], visit["query"]) == ("https://www.example.org/a?id=7", "alpine huts")
    assert visit["visited_at"].isoformat() == "2024-03-12T10:00:00.250000+00:00"
    nginx = {"remote_addr": "203.0.113.9", "time_iso8601": TIME, "request_uri": "/", "http_user_agent": BROWSER}
    assert visit["user_id"] == read_all("nginx-json", json.dumps(nginx).encode(), SITE).visits[0]["user_id"]


def test_fates_in_logs_of_caddy_and_traefik() -> None:
    entries = [CADDY | {"status": 404}, TRAEFIK | {"DownstreamStatus": 302}, TRAEFIK | {"RequestMethod": "POST"}]
    entries += [CADDY | {"request": CADDY["request"] | {"headers": {"User-Agent": ["Googlebot/2.1"]}}}]  # type: ignore[operator]
    outcome = read_all("nginx-json", "\n".join(map(json.dumps, entries)).encode(), NO_SITE)
    assert outcome.ignored == {"status-error": 1, "redirect": 1, "not-get": 1, "robot": 1}


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"request_uri": "/a?id=7", "host": HOST, "protocol": "HTTP/2.0"}, "https://www.example.org/a?id=7"),
        ({"request_uri": "/a", "host": HOST, "scheme": "HTTP"}, "http://www.example.org/a"),
        ({"request_uri": "/a", "host": HOST, "scheme": "HTTPS"}, "https://www.example.org/a"),
        ({"request_uri": "/a", "host": HOST, "scheme": "HTTP/1.1", "protocol": "http"}, "http://www.example.org/a"),
        ({"request": "GET /a/?id=7 HTTP/1.1", "uri": "/index.php", "host": HOST}, "https://www.example.org/a/?id=7"),
        ({"request": "GET /a HTTP/1.1", "path": "/b", "args": "c=1", "host": HOST}, "https://www.example.org/a"),
        ({"request_uri": "/a", "request": "GET /b HTTP/1.1", "host": HOST}, "https://www.example.org/a"),
        ({"uri": "/d", "args": "id=7", "host": HOST}, "https://www.example.org/d?id=7"),
        ({"path": "/d", "query_string": "id=7", "host": HOST}, "https://www.example.org/d?id=7"),
        ({"uri": "/d?id=7", "args": "id=7", "host": HOST}, "https://www.example.org/d?id=7"),
        ({"uri": "/d", "args": "-", "host": HOST}, "https://www.example.org/d"),
        ({"uri": "/d", "query_string": "?id=7", "host": HOST}, "https://www.example.org/d?id=7"),
        ({"request": "-", "uri": "/d", "host": HOST}, "https://www.example.org/d"),
        ({"request_uri": "-", "request": "GET /d HTTP/1.1", "host": HOST}, "https://www.example.org/d"),
        ({"request_uri": "", "uri": "/d", "host": HOST}, "https://www.example.org/d"),
        ({"uri": "/d", "args": "", "host": HOST}, "https://www.example.org/d"),
        ({"request_uri": "/d", "args": "page=rewritten", "host": HOST}, "https://www.example.org/d"),
        ({"request_uri": "/e", "host": "_", "server_name": HOST}, "https://www.example.org/e"),
        ({"request_uri": "/e", "host": "-", "server_name": HOST}, "https://www.example.org/e"),
        ({"request": "GET /g HTTP/1.1", "url": "https://www.example.org/g"}, "https://www.example.org/g"),
        # A log shipper's `host` is the machine; Elastic's tutorials log the server's address there, $host as `domain`.
        ({"uri": "/h", "host": "10.0.0.5", "http_host": HOST}, "https://www.example.org/h"),
        ({"uri": "/h", "host": "web-1", "domain": HOST}, "https://www.example.org/h"),
        ({"uri": "/h", "host": HOST, "http_host": ""}, "https://www.example.org/h"),
        # The JSON formats of ingress-nginx's and of Apache's users: path and query string each for itself.
        ({"path": "/i", "request_query": "id=7", "vhost": HOST}, "https://www.example.org/i?id=7"),
        ({"request": "/i", "query": "?id=7", "method": "GET", "host": HOST}, "https://www.example.org/i?id=7"),
        ({"request": "/i", "host": HOST}, "https://www.example.org/i"),
        # Fluentd, rsyslog and others put the fields of plain lines into JSON, in which nginx had escaped bytes.
        ({"request": "GET /\\xC3\\xBC\\x22 HTTP/1.1", "host": HOST}, "https://www.example.org/%C3%BC%22"),
        ({"path": "/\\xFC", "args": "q=\\xfc", "host": HOST}, "https://www.example.org/%FC?q=%FC"),
        ({"path": "/a\\b", "host": HOST}, "https://www.example.org/a/b"),
        ({"request_uri": "/e", "server_name": "_"}, None),
        ({"request_uri": "/e", "server_name": "~^(www\\.)?(?<name>.+)$"}, None),
        ({"request_uri": "/e", "server_name": "*.example.org"}, None),
    ],
)
def test_which_field_tells_the_page(fields: dict[str, str], url: str | None) -> None:
    entry = {"remote_addr": "203.0.113.9", "time_iso8601": TIME, "status": 200, **fields}
    outcome = read_all("nginx-json", json.dumps(entry).encode(), NO_SITE)
    if url is None:
        assert outcome.rejected == {"host-missing": 1}
        outcome = read_all("nginx-json", json.dumps(entry).encode(), SITE)
        assert [visit["url"][:24] for visit in outcome.visits] == ["https://www.example.org/"]
    else:
        assert [visit["url"] for visit in outcome.visits] == [url]


def test_times_in_brackets() -> None:
    """Apache's mod_log_config: `%t` is the time in the Common Log Format with its brackets."""
    entry = {"remote_addr": "203.0.113.9", "time": "[12/Mar/2024:11:00:00 +0100]", "request_uri": "/a", "host": HOST}
    (visit,) = read_all("nginx-json", json.dumps(entry).encode(), NO_SITE).visits
    assert visit["visited_at"].isoformat() == "2024-03-12T10:00:00+00:00"


@pytest.mark.parametrize("name", ["x_forward_for", "x-forward-for", "xff", "remoteIP"])
def test_other_names_of_the_client(name: str) -> None:
    entry = {"time_iso8601": TIME, "request_uri": "/a", "host": HOST, "http_user_agent": BROWSER}
    lines = [json.dumps({**entry, field: "203.0.113.9"}) for field in (name, "remote_addr")]
    one, other = read_all("nginx-json", "\n".join(lines).encode(), NO_SITE).visits
    assert one["user_id"] == other["user_id"]


@pytest.mark.parametrize("none", ["-", ""])
def test_the_client_is_the_one_passed_on_where_no_other_is_told(none: str) -> None:
    entry = {"time_iso8601": TIME, "request_uri": "/a", "host": HOST, "http_user_agent": BROWSER}
    passed = {"remote_addr": none, "http_x_forwarded_for": "203.0.113.9, 198.51.100.7"}
    lines = [json.dumps({**entry, **client}) for client in (passed, {"remote_addr": "203.0.113.9"})]
    one, other = read_all("nginx-json", "\n".join(lines).encode(), NO_SITE).visits
    assert one["user_id"] == other["user_id"]


@pytest.mark.parametrize("none", ["-", ""])
def test_an_empty_request_has_the_same_reason_as_in_other_logs(none: str) -> None:
    entry = {"time_iso8601": TIME, "remote_addr": "203.0.113.9", "status": "200", "request": none}
    line = f'203.0.113.9 - - [12/Mar/2024:10:00:00 +0000] "{none}" 200 9\n'
    w3c = f"#Fields: date time c-ip cs-uri-stem sc-status\n2024-03-12 10:00:00 203.0.113.9 {none or '-'} 200"
    for name, log in (("nginx-json", json.dumps(entry)), ("common", line), ("w3c", w3c)):
        assert read_all(name, log.encode(), SITE).rejected == {"request-empty": 1}


def test_objects_without_a_known_field_are_told() -> None:
    outcome = read_all("nginx-json", b'{"level":"info","msg":"started"}\n{}\n{"zeit":"2024","pfad":"/a"}\n')
    assert (outcome.records, outcome.rejected) == (3, {"fields-unknown": 3})


@pytest.mark.parametrize("status", [200, 200.0, "200"])
@pytest.mark.parametrize("time", [1710237600, 1710237600.0, 1710237600000, 1710237600000.0, "1710237600"])
def test_numbers_may_be_written_as_floats(status: Any, time: Any) -> None:
    entry = {"remote_addr": "203.0.113.9", "msec": time, "status": status, "request_uri": "/a"}
    (visit,) = read_all("nginx-json", json.dumps(entry).encode(), SITE).visits
    assert visit["visited_at"].isoformat() == "2024-03-12T10:00:00+00:00"


MINIMAL = {"remote_addr": "203.0.113.9", "time_iso8601": TIME, "request": "GET /a HTTP/1.1", "host": HOST}


def json_visit(line: str) -> dict[str, Any]:
    (visit,) = read_all("nginx-json", line.encode(), SITE).visits
    return visit


def test_of_a_list_the_first_value_counts() -> None:
    names = {**MINIMAL, "host": "www.a.example", "http_referer": "https://www.google.com/search?q=moon", "status": 200}
    assert json_visit(json.dumps({name: [value] for name, value in names.items()})) == json_visit(json.dumps(names))
    told = {"http_x_forwarded_for": ["198.51.100.7", "10.0.0.1"]}
    client = {"remote_addr": "198.51.100.7"}
    assert json_visit(json.dumps(MINIMAL | told)) == json_visit(json.dumps(MINIMAL | client))


@pytest.mark.parametrize("status", [[404], {"code": 404}, True, [], "OK"])
def test_a_status_that_is_no_number_is_not_taken_for_none(status: Any) -> None:
    outcome = read_all("nginx-json", json.dumps(MINIMAL | {"status": status}).encode(), SITE)
    assert (outcome.used, outcome.records) == (0, 1)


def test_hexadecimal_escapes_are_bytes() -> None:
    line = json.dumps(MINIMAL).replace("/a", r"/\xC3\xBC\xE9?b=\x22\x5C\x0A")
    assert json_visit(line)["url"] == f"https://{HOST}/%C3%BC%E9?b=%22\\"


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"date": "2024-03-12", "time": "10:00:01.5"}, "2024-03-12T10:00:01.500000+00:00"),
        ({"date": "2024-03-12T10:00:02Z", "time": "10:00:01"}, "2024-03-12T10:00:02+00:00"),
        ({"time_iso8601": "", "msec": "1710237600.250"}, "2024-03-12T10:00:00.250000+00:00"),
        ({"time_iso8601": "-", "time_local": "12/Mar/2024:10:00:00 +0000"}, "2024-03-12T10:00:00+00:00"),
    ],
)
def test_times_in_two_members(times: dict[str, str], expected: str) -> None:
    entry = {name: value for name, value in MINIMAL.items() if name != "time_iso8601"} | times
    assert json_visit(json.dumps(entry))["visited_at"].isoformat() == expected


def test_of_several_schemes_the_first_is_the_clients() -> None:
    assert json_visit(json.dumps(MINIMAL | {"x_forwarded_proto": "HTTP, https"}))["url"] == f"http://{HOST}/a"
