"""Formats of web servers: what becomes of good and of dirty lines."""

from __future__ import annotations

import datetime
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from semrank.transforms.logs import extended
from semrank.transforms.logs.access import AccessReader
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.streams.spans import find_lines
from tests.support.logs import BROWSER, OPTIONS, combined_line, read_all

GOOGLE = "https://www.google.com/search?q=hello+world&ie=UTF-8"
MOMENT = datetime.datetime(2012, 2, 10, 21, 42, 7, tzinfo=datetime.UTC)

OUTCOMES = [
    pytest.param({}, "used", id="page view"),
    pytest.param({"status": "304"}, "used", id="not modified"),
    pytest.param({"request": "GET /a"}, "used", id="HTTP/0.9"),
    pytest.param({"request": "GET / HTTP/2"}, "used", id="HTTP/2"),
    pytest.param({"request": "GET https://other.example/x HTTP/1.1"}, "used", id="absolute URL"),
    pytest.param({"agent": 'Mozilla/5.0 (\\"odd\\")'}, "used", id="escaped quotes"),
    pytest.param({"agent": 'Mozilla/5.0 "odd" thing'}, "used", id="quotes not escaped"),
    pytest.param({"account": "john doe"}, "used", id="space in the account"),
    pytest.param({"client": "host.example.net"}, "used", id="host name instead of an address"),
    pytest.param({"client": "2001:db8::1"}, "used", id="IPv6"),
    pytest.param({"request": "GET /paper.pdf HTTP/1.1"}, "used", id="documents are pages"),
    pytest.param({"request": "GET /a?file=x.css HTTP/1.1"}, "used", id="an extension in the query is none"),
    pytest.param({"status": "404"}, "status-error", id="error"),
    pytest.param({"status": "301"}, "redirect", id="redirect"),
    pytest.param({"status": "099"}, "status-invalid", id="no status"),
    pytest.param({"status": "-"}, "status-invalid", id="status missing"),
    pytest.param({"request": "POST /a HTTP/1.1"}, "not-get", id="POST"),
    pytest.param({"request": "HEAD /a HTTP/1.1"}, "not-get", id="HEAD"),
    pytest.param({"request": ""}, "request-empty", id="empty request"),
    pytest.param({"request": "-"}, "request-empty", id="dash for a request"),
    pytest.param({"request": "\\x16\\x03\\x01\\x02"}, "request-invalid", id="escaped TLS"),
    pytest.param({"request": "\x16\x03\x01"}, "request-invalid", id="raw TLS"),
    pytest.param({"request": "quit"}, "request-invalid", id="not HTTP"),
    pytest.param({"agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}, "robot"),
    pytest.param({"agent": "python-requests/2.31"}, "robot", id="listed robot"),
    pytest.param({"agent": "NewThing/1.0 (+https://new.example/about)"}, "robot", id="describes itself"),
    pytest.param({"agent": "-"}, "robot", id="no user agent"),
    pytest.param({"request": "GET /style.CSS?v=3 HTTP/1.1"}, "static-asset", id="style"),
    pytest.param({"request": "GET /robots.txt HTTP/1.1"}, "static-asset", id="robots.txt"),
    pytest.param({"referrer": "http://www.semalt.com/x"}, "referrer-spam", id="known spammer"),
    pytest.param({"referrer": "http://sub.spam.example/"}, "referrer-spam", id="spammer of the user's list"),
    pytest.param({"time": "30/Feb/2012:16:42:07 -0500"}, "time-invalid", id="no such day"),
    pytest.param({"time": "10/Foo/2012:16:42:07 -0500"}, "time-invalid", id="no such month"),
    pytest.param({"time": "10/Feb/2012:24:42:07 -0500"}, "time-invalid", id="no such hour"),
    pytest.param({"request": "GET http://[bad/ HTTP/1.1"}, "url-invalid", id="no URL"),
    pytest.param({"request": "GET ftp://a.example/ HTTP/1.1"}, "scheme-unsupported", id="not the web"),
    pytest.param({"request": "GET foo HTTP/1.1"}, "scheme-missing", id="no path"),
]


@pytest.mark.parametrize(("parts", "result"), OUTCOMES)
def test_each_line_has_one_outcome(parts: dict[str, str], result: str) -> None:
    outcome = read_all("combined", combined_line(**parts).encode("latin-1"))
    counts = {"used": outcome.used, **outcome.rejected, **outcome.ignored}
    assert {name: count for name, count in counts.items() if count} == {result: 1}
    assert len(outcome.visits) == (result == "used")


def test_a_visit_has_what_the_line_says() -> None:
    outcome = read_all("combined", combined_line(referrer=GOOGLE).encode())
    (visit,) = outcome.visits
    assert re.fullmatch("[0-9a-f]{32}", visit.pop("user_id"))
    assert visit == {
        "visited_at": MOMENT,
        "url": "https://www.example.com/a/b.html",
        "referrer_url": GOOGLE,
        "query": "hello world",
        "position": None,
        "is_search": False,
    }


@pytest.mark.parametrize(
    ("target", "url"),
    [
        (b"/caf\xe9", "https://www.example.com/caf%E9"),
        ("/café".encode(), "https://www.example.com/caf%C3%A9"),
        ("/中".encode("gbk"), "https://www.example.com/%D6%D0"),
        (b"/a b/c d.html", "https://www.example.com/a%20b/c%20d.html"),
        (b"/a?x=1&utm_source=mail#top", "https://www.example.com/a?x=1"),
        (b"/a/../b/./c", "https://www.example.com/b/c"),
        (b"//double/slash", "https://www.example.com//double/slash"),
        (b"/say\\x22hi\\x22", "https://www.example.com/say%22hi%22"),
        (b"HTTP://Other.Example:80/X", "http://other.example/X"),
    ],
)
def test_targets_become_canonical_urls(target: bytes, url: str) -> None:
    line = combined_line(request="GET @ HTTP/1.1").encode().replace(b"@", target)
    assert [visit["url"] for visit in read_all("combined", line).visits] == [url]


def test_the_own_search_names_the_words_of_its_pages_and_of_their_visitors() -> None:
    lines = combined_line(request="GET /find?q=two+words HTTP/1.1") + combined_line(
        request="GET /result HTTP/1.1", referrer="https://www.example.com/find?q=two+words"
    )
    search, result = read_all("combined", lines.encode()).visits
    assert (search["query"], search["is_search"]) == ("two words", True)
    assert (result["query"], result["is_search"]) == ("two words", False)
    foreign = combined_line(referrer="https://elsewhere.example/find?q=two+words")
    assert read_all("combined", foreign.encode()).visits[0]["query"] is None


def test_one_file_may_mix_layouts() -> None:
    common = '203.0.113.7 - - [10/Feb/2012:16:42:07 -0500] "GET /c HTTP/1.0" 200 5\n'
    hosted = "www.other.example:443 " + combined_line(request="GET /h HTTP/1.1")
    extra = combined_line(request="GET /x HTTP/1.1").rstrip("\n") + ' "198.51.100.1" 0.004\n'
    lines = (common + hosted + extra + combined_line()).encode()
    wanted = [
        "https://www.example.com/a/b.html",
        "https://www.example.com/c",
        "https://www.example.com/x",
        "https://www.other.example/h",
    ]
    for name in ("common", "combined", "vhost-combined"):
        outcome = read_all(name, lines)
        assert sorted(visit["url"] for visit in outcome.visits) == wanted
        referrers = {visit["url"]: visit["referrer_url"] for visit in outcome.visits}
        assert referrers["https://www.example.com/c"] is None
        assert referrers["https://www.example.com/x"] == ""


def test_virtual_hosts_stand_in_the_url() -> None:
    line = "shop.example.org:8080 " + combined_line()
    assert read_all("vhost-combined", line.encode()).visits[0]["url"] == "https://shop.example.org:8080/a/b.html"
    without_site = LogOptions(user_salt="a test's own key")
    plain = "shop.example.org:80 " + combined_line()
    assert (
        read_all("vhost-combined", plain.encode(), without_site).visits[0]["url"] == "http://shop.example.org/a/b.html"
    )
    homeless = read_all("vhost-combined", combined_line().encode(), without_site)
    assert homeless.rejected == {"host-missing": 1}


def test_users_are_told_apart_by_address_browser_and_account_and_depend_on_the_key() -> None:
    def user(options: LogOptions = OPTIONS, **parts: str) -> str:
        return str(read_all("combined", combined_line(**parts).encode(), options).visits[0]["user_id"])

    assert user() == user(request="GET /other HTTP/1.1")
    assert len({user(), user(client="203.0.113.8"), user(agent="Mozilla/5.0 B"), user(account="jane")}) == 4
    assert user(account="jane") == user(account="jane", client="203.0.113.8", agent="Mozilla/5.0 B")
    assert user() != user(LogOptions(user_salt="another key", site="https://www.example.com"))


@pytest.mark.parametrize(
    "line",
    [
        'nothing 203.0.113.7 [] " of a log\n',
        '203.0.113.7 - jane [10/Foo/2012:16:42:07 -0500] "GET /?from=203.0.113.7 HTTP/1.1" 200 5 "-" "Mozilla/5.0"\n',
        "203.0.113.7\n",
        'jane.doe.example 2001:db8::7 - "\n',
        '203.0.113.7 - jane [10/Feb/2012:16:42:07 -0500] "" 200 5 "-" "Mozilla/5.0"\n',
    ],
)
@pytest.mark.parametrize("name", ["common", "combined", "vhost-combined", "nginx-json", "w3c", "alb", "cloudfront"])
def test_no_reject_row_holds_an_address_or_an_account(name: str, line: str) -> None:
    outcome = read_all(name, line.encode())
    assert outcome.rejects
    for row in outcome.rejects:
        assert not re.search("203|jane|db8", row["record"])


def test_the_last_line_may_be_cut_off() -> None:
    whole = combined_line()
    cut = read_all("combined", (whole + whole[:-30]).encode())
    assert (cut.used, cut.rejected) == (1, {"record-truncated": 1})
    assert read_all("combined", (whole + whole.rstrip("\n")).encode()).used == 2
    assert read_all("combined", b"").records == 0
    assert read_all("combined", b"\n\r\n\n").records == 0


def test_windows_line_ends_are_line_ends() -> None:
    assert read_all("combined", combined_line().replace("\n", "\r\n").encode()).used == 1


def test_published_lines_are_read(shared_data: Path) -> None:
    fields = re.compile(
        r"^(?:\S+ )??(?P<client>[0-9.]+) \S+ \S+ \[(?P<time>[^\]]+)\] \"(?P<request>[^\"]*)\" (?P<status>\d+) \d+"
    )
    for file in ("common", "common_complete", "common_vhost", "ncsa_extended"):
        content = (shared_data / "logs" / f"{file}.log").read_bytes()
        lines = [fields.match(line) for line in content.decode().splitlines()]
        redirects = sum(line is not None and line["status"].startswith("3") for line in lines)
        for name in ("common", "combined", "vhost-combined"):
            outcome = read_all(name, content)
            assert (outcome.records, outcome.ignored["redirect"]) == (len(lines), redirects)
            opened = read_all(name, content.replace(b" 301 ", b" 200 "))
            assert [visit["visited_at"] for visit in opened.visits] == [MOMENT] * len(lines)
            host = "www.example.com"
            assert [visit["url"] for visit in opened.visits] == [f"https://{host}/"] * len(lines)


def test_published_json_lines_are_read(shared_data: Path) -> None:
    content = (shared_data / "logs" / "nginx_json.log").read_bytes()
    entries = [json.loads(line) for line in content.splitlines()]
    outcome = read_all("nginx-json", content)
    assert outcome.records == outcome.used == len(entries)
    for visit, entry in zip(outcome.visits, entries, strict=True):
        assert visit["visited_at"] == datetime.datetime.fromisoformat(entry["date"])
        assert visit["url"].startswith(f"https://{entry['host']}/piwik.php?action_name=")
        assert visit["referrer_url"] == entry["referrer"]


@pytest.mark.parametrize(
    "entry",
    [
        {"remote_addr": "203.0.113.7", "time_iso8601": "2012-02-10T16:42:07-05:00", "request": "GET /p HTTP/1.1"},
        {"ip": "203.0.113.7", "time_local": "10/Feb/2012:16:42:07 -0500", "method": "GET", "uri": "/p"},
        {"client": "203.0.113.7", "msec": 1328910127.0, "request_uri": "/p", "host": "www.example.com"},
        {"client": "203.0.113.7", "msec": "1328910127.000", "PATH": "/p", "scheme": "https"},
        {"client": "203.0.113.7", "@timestamp": "2012-02-10T21:42:07.000Z", "url": "https://www.example.com/p"},
    ],
)
def test_json_lines_may_name_their_fields_as_they_like(entry: dict[str, object]) -> None:
    (visit,) = read_all("nginx-json", json.dumps(entry | {"status": 200}).encode()).visits
    assert (visit["visited_at"], visit["url"]) == (MOMENT, "https://www.example.com/p")
    assert visit["referrer_url"] is None


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b'{"ip": "1.1.1.1"\n', "json-invalid"),
        (b"[1]\n", "not-an-object"),
        (b"[" * 100_000 + b"\n", "json-invalid"),
        (b'{"ip":"1.1.1.1","path":"/a"}\n', "time-invalid"),
        (b'{"ip":"1.1.1.1","path":"/a","time":"2020-01-01T00:00:00Z","status":"500"}\n', "status-error"),
        (b'{"ip":"1.1.1.1","path":"/a","time":"2020-01-01T00:00:00Z","agent":"curl/8"}\n', "robot"),
        (b'{"ip":"1.1.1.1","path":"","time":"2020-01-01T00:00:00Z"}\n', "request-empty"),
        (b'{"ip":"1.1.1.1","path":"/\\x22","time":"2020-01-01T00:00:00Z"}\n', "used"),
        (b'{"ip":"1.1.1.1","path":"/\xff","time":"2020-01-01T00:00:00Z"}\n', "used"),
        (b'{"ip":"1.1.1.1","path":"/\\ud800","time":"2020-01-01T00:00:00Z"}\n', "used"),
        (b'{"ip":["1.1.1.1"],"path":{"a":1},"time":"2020-01-01T00:00:00Z"}\n', "request-empty"),
    ],
)
def test_json_lines_have_one_outcome(line: bytes, result: str) -> None:
    outcome = read_all("nginx-json", line)
    assert {"used": outcome.used, **outcome.rejected, **outcome.ignored}[result] == 1


W3C = (
    "#Software: Microsoft Internet Information Services 10.0\n"
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip "
    "cs(User-Agent) cs(Referer) sc-status\n"
)


def test_iis_logs_are_read_and_may_change_their_columns() -> None:
    agent = BROWSER.replace(" ", "+")
    row = f"2012-02-10 21:42:07 10.0.0.1 GET /p x=1 443 - 203.0.113.7 {agent} {GOOGLE} 200\n"
    other = "#Fields: time date c-ip cs-method cs-uri-stem sc-status\n21:42:07 2012-02-10 203.0.113.7 GET /q 200\n"
    outcome = read_all("w3c", (W3C + row + "too few\n" + other).encode())
    assert (outcome.records, outcome.used) == (6, 2)
    assert outcome.ignored == {"header": 3}
    assert outcome.rejected == {"layout-unknown": 1}
    assert [(visit["url"], visit["query"]) for visit in outcome.visits] == [
        ("https://www.example.com/p?x=1", "hello world"),
        ("https://www.example.com/q", None),
    ]
    assert {visit["visited_at"] for visit in outcome.visits} == {MOMENT}
    assert read_all("w3c", row.encode()).rejected == {"columns-unknown": 1}


@pytest.mark.parametrize("query", ["x=1", "?x=1"])
def test_query_strings_with_their_mark_and_without(query: str) -> None:
    agent = BROWSER.replace(" ", "+")
    row = f"2012-02-10 21:42:07 10.0.0.1 GET /p {query} 443 - 203.0.113.7 {agent} - 200\n"
    assert read_all("w3c", (W3C + row).encode()).visits[0]["url"] == "https://www.example.com/p?x=1"


@pytest.mark.parametrize(("time", "micros"), [("21:42:07", 0), ("21:42:07.25", 250_000), ("21:42", None)])
def test_times_may_have_fractions_of_seconds(time: str, micros: int | None) -> None:
    agent = BROWSER.replace(" ", "+")
    row = f"2012-02-10 {time} 10.0.0.1 GET /p - 443 - 203.0.113.7 {agent} - 200\n"
    (visit,) = read_all("w3c", (W3C + row).encode()).visits
    expected = MOMENT.replace(second=0) if micros is None else MOMENT.replace(microsecond=micros)
    assert visit["visited_at"] == expected


def test_a_space_is_a_plus_in_the_user_agent_of_iis() -> None:
    robot = W3C + "2012-02-10 21:42:07 10.0.0.1 GET /p - 80 - 203.0.113.7 Mediapartners+(Googlebot) - 200\n"
    assert read_all("w3c", robot.encode()).ignored["robot"] == 1


@pytest.mark.parametrize(
    "header",
    [
        *("Mar  2 10:00:00 web1 nginx: ", "<190>Mar 12 10:00:00 web1 nginx: ", "Oct 11 22:14:15 web1 httpd[99]:"),
        *("2024-03-12T10:00:00.123456+01:00 web1 nginx: ", "<190>1 2024-03-12T10:00:00Z web1 nginx - - - "),
        "2024-03-12T10:00:00.123456789Z stdout F ",
        '<165>1 2003-10-11T22:14:15.003Z web1 nginx 12 ID47 [a@1 b="c"][d@2 e="f"] \ufeff',
    ],
)
@pytest.mark.parametrize("name", ["combined", "nginx-json"])
def test_lines_that_syslog_carried(header: str, name: str) -> None:
    """RFC 3164, 4 (so nginx with `access_log syslog:`); RFC 5424, 6; Kubernetes, "CRI container log format"."""
    entry = {"remote_addr": "203.0.113.7", "request": "GET /a HTTP/1.1", "time_local": "10/Feb/2012:21:42:07 +0000"}
    line = combined_line() if name == "combined" else json.dumps(entry | {"status": 200, "host": "www.example.com"})
    bare, carried = (read_all(name, f"{text}\n".encode()) for text in (line, header + line))
    assert carried.visits == bare.visits != []
    for alone in (header, f"{header}\n"):
        assert read_all("w3c", alone.encode()).rejected == {"columns-unknown": 1}


@pytest.mark.parametrize("gap", ["\t", " "])
def test_strings_and_tabs_of_w3c_logs(gap: str) -> None:
    """WD-logfile-960323: white space parts fields, best tabs; a string is in quotes, and one within it is doubled."""
    fields = ["date", "time", "c-ip", "cs-method", "cs-uri", "sc-status", "cs(User-Agent)", "cs(Referer)"]
    agent, words = BROWSER.replace("(X11", '(""X11""'), "https://www.google.com/search?q=alpine+huts"
    begin = ["2012-02-10", "21:42:07", "203.0.113.7", "GET"]
    rows = [[*begin, f'"/{name}"', "200", f'"{agent}"', f'"{words}"'] for name in "ab"]
    rows.insert(1, [*begin, "/plain", "200", "Mozilla/5.0", words])
    log = ["#Fields: " + gap.join(fields), *(gap.join(row) for row in rows), gap.join([*rows[0], "more"]), ""]
    outcome = read_all("w3c", "\n".join(log).encode())
    assert [(visit["url"], visit["query"]) for visit in outcome.visits] == [
        (f"https://www.example.com/{name}", "alpine huts") for name in ("a", "plain", "b")
    ]
    assert outcome.rejected == {"layout-unknown": 1}


def test_names_of_columns_may_be_no_ascii() -> None:
    """The last byte of `à` in UTF-8 is a no-break space in Latin-1."""
    row = f"2012-02-10 21:42:07 - 203.0.113.7 /a 200 {BROWSER.replace(' ', '+')}"
    log = f"#Fields: date time x(à) c-ip cs-uri sc-status cs(User-Agent)\n{row}\n"
    (visit,) = read_all("w3c", log.encode()).visits
    assert visit["url"] == "https://www.example.com/a"


def test_cloudfront_logs_are_read() -> None:
    header = (
        "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status "
        "cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header "
        "cs-protocol\n"
    )
    agent = BROWSER.replace(" ", "%20")
    referrer = GOOGLE.replace("%", "%25").replace("+", "%2B")
    row = (
        f"2012-02-10\t21:42:07\tFRA2\t99\t203.0.113.7\tGET\td1.cloudfront.net\t/p\t200\t{referrer}\t{agent}\t-\t-\tHit\tid"
        "\tshop.example.org\thttp\n"
    )
    outcome = read_all("cloudfront", (header + row).encode())
    assert (outcome.used, outcome.ignored) == (1, {"header": 2})
    (visit,) = outcome.visits
    assert (visit["url"], visit["visited_at"]) == ("http://shop.example.org/p", MOMENT)
    assert visit["query"] == "hello world"


def test_load_balancer_logs_are_read() -> None:
    row = (
        "https 2012-02-10T21:42:07.186641Z app/x/5 203.0.113.7:2817 10.0.0.1:80 0.1 0.0 0.0 200 200 34 366 "
        f'"GET https://www.example.com:443/find?q=a+b HTTP/1.1" "{BROWSER}" ECDHE TLSv1.2 arn "Root=1" "d" "arn" 0 '
        '2012-02-10T21:42:07.1Z "forward" "-" "-"\n'
    )
    outcome = read_all("alb", (row + row.replace(" 200 200 ", " 502 - ") + row[:90] + "\n").encode())
    assert (outcome.used, outcome.ignored, outcome.rejected) == (1, {"status-error": 1}, {"layout-unknown": 1})
    (visit,) = outcome.visits
    assert visit["visited_at"] == MOMENT.replace(microsecond=186641)
    assert (visit["url"], visit["query"], visit["is_search"]) == ("https://www.example.com/find?q=a+b", "a b", True)
    assert visit["referrer_url"] is None


AGENT = "Mozilla/5.0"
FORWARDED_FIELDS = "#Fields: date time c-ip {name} cs-method cs-uri-stem sc-status cs(User-Agent)\n"


def passed_on(layout: str, peer: str, told: str) -> tuple[str, str]:
    """A format, and a request in it whose connection came from `peer`, of which a proxy told `told`."""
    entry: dict[str, Any] = {"ts": 1710237600, "status": 200}
    if layout in ("w3c", "cloudfront"):
        name, gap, none = ("X-Forwarded-For", " ", "+") if layout == "w3c" else ("x-forwarded-for", "\t", "%20")
        fields = ["2024-03-12", "10:00:00", peer, told.replace(" ", none), "GET", "/a", "200", AGENT]
        return layout, FORWARDED_FIELDS.format(name=name) + gap.join(fields)
    if layout == "caddy":
        entry["request"] = {
            "remote_ip": peer,
            "uri": "/a",
            "headers": {"X-Forwarded-For": [told], "User-Agent": [AGENT]},
        }
        return "nginx-json", json.dumps(entry)
    if layout == "traefik":
        names = {"ClientHost": peer, "RequestPath": "/a", "request_X-Forwarded-For": told, "request_User-Agent": AGENT}
        return "nginx-json", json.dumps({**entry, **names})
    if layout.startswith("http_"):
        names = {"remote_addr": peer, "request_uri": "/a", layout: told, "http_user_agent": AGENT}
        return "nginx-json", json.dumps({**entry, **names})
    host = "www.example.com:443 " if layout == "vhost-combined" else ""
    tail = {"combined escaped": ' \\"x\\"', "combined more": ' "0.1" 7'}.get(layout, "")
    request = f'"GET /a HTTP/1.1" 200 9 "-" "{BROWSER.replace(" ", "+")}" "{told}"{tail}'
    return layout.partition(" ")[0], f"{host}{peer} - - [12/Mar/2024:10:00:00 +0000] {request}"


@pytest.mark.parametrize(
    "layout",
    [
        *("http_x_forwarded_for", "http_x_real_ip", "http_cf_connecting_ip", "caddy", "traefik", "w3c", "cloudfront"),
        *("combined", "combined escaped", "combined more", "vhost-combined", "common"),
    ],
)
def test_behind_a_proxy_the_client_is_the_one_that_it_tells(layout: str) -> None:
    def user(peer: str, told: str) -> str:
        name, line = passed_on(layout, peer, told)
        (visit,) = read_all(name, line.encode()).visits
        return str(visit["user_id"])

    through_one, through_another = user("10.0.0.7", "203.0.113.9, 10.0.0.2"), user("10.0.0.8", "203.0.113.9")
    assert through_one == through_another == user("203.0.113.9", "-") == user("203.0.113.9", "unknown")
    assert len({through_one, user("10.0.0.7", "-"), user("10.0.0.7", "198.51.100.7")}) == 3


def test_dates_of_w3c_logs_may_stand_in_a_directive() -> None:
    fields = "#Fields: time c-ip cs-method cs-uri-stem sc-status"
    views = [f"{clock} 203.0.113.9 GET /a 200" for clock in ("09:00:00", "10:00:00", "00:00:02")]
    log = [fields, views[0], "#Date: 2024-03-12 09:59:59", fields, views[1], "#Date: 2024-03-13 00:00:01", views[2]]
    outcome = read_all("w3c", "\n".join(log).encode())
    assert outcome.rejected == {"time-invalid": 1}
    times = [visit["visited_at"].isoformat() for visit in outcome.visits]
    assert times == ["2024-03-12T10:00:00+00:00", "2024-03-13T00:00:02+00:00"]


@pytest.mark.parametrize(
    ("scheme", "port", "url"),
    [
        ("HTTP", "443", "http://www.example.com/a"),
        ("HTTPS", "80", "https://www.example.com/a"),
        ("HTTP/1.1", "80", "http://www.example.com/a"),
        ("-", "443", "https://www.example.com/a"),
        ("-", "8080", "https://www.example.com/a"),
    ],
)
def test_schemes_of_w3c_logs_in_any_case_and_else_by_the_port(scheme: str, port: str, url: str) -> None:
    fields = "#Fields: date time c-ip cs-method cs-uri-stem cs-host cs-protocol s-port sc-status"
    line = f"2024-03-12 10:00:00 203.0.113.9 GET /a www.example.com {scheme} {port} 200"
    assert [visit["url"] for visit in read_all("w3c", f"{fields}\n{line}\n".encode()).visits] == [url]


@pytest.mark.parametrize("directive", ["#Date: 2024-02-28", "#Date: 2024-02-28 15:00:00"])
def test_midnight_in_w3c_logs_whose_lines_have_no_date(directive: str) -> None:
    """Expected: days as the clock goes on; two lines across midnight are out of order, the last day has a gap."""
    clocks = ["15:00:01", "23:59:59", "00:00:01", "23:59:58", "00:00:02", "14:00:00", "11:00:00", "11:00:01"]
    days = [28, 28, 29, 28, 29, 29, 1, 1]
    views = [f"{clock} 203.0.113.9 GET /a 200" for clock in clocks]
    log = [directive, "#Fields: time c-ip cs-method cs-uri-stem sc-status", *views]
    outcome = read_all("w3c", "\n".join(log).encode())
    times = [visit["visited_at"].strftime("%d %H:%M:%S") for visit in outcome.visits]
    assert times == [f"{day:02} {clock}" for day, clock in zip(days, clocks, strict=True)]


def test_the_first_line_of_a_w3c_log_may_be_past_midnight() -> None:
    head = "#Date: 2024-03-12 23:59:59\n#Fields: time c-ip cs-method cs-uri-stem sc-status\n"
    (visit,) = read_all("w3c", f"{head}00:00:01 203.0.113.9 GET /a 200\n".encode()).visits
    assert visit["visited_at"].day == 13


def test_midnight_between_two_blocks_of_a_w3c_log() -> None:
    view = "{} 203.0.113.9 GET /a 200"
    head = ["#Date: 2024-03-12 23:59:50", "#Fields: time c-ip cs-method cs-uri-stem sc-status"]
    reader = extended._ExtendedReader(extended.IIS)
    days = []
    for texts in ([*head, view.format("23:59:59")], [view.format("00:00:01")], [view.format("00:00:02")]):
        balance, access = Balance("w3c"), AccessReader(OPTIONS)
        reader(find_lines("\n".join(texts).encode()), access, balance)
        days += [visit.day for visit in balance.batch().visits["visited_at"].to_pylist()]
    assert days == [12, 13, 13]


def test_a_w3c_log_has_so_many_headers_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extended, "_MAX_HEADERS", 3)
    log = [
        line
        for number in (0, 1, 2, 3, 0)
        for line in (f"#Fields: date time cs-method cs-uri-stem x-{number}", "2024-03-12 10:00:00 GET /a -")
    ]
    outcome = read_all("w3c", "\n".join(log).encode())
    assert (outcome.used, outcome.rejected) == (4, {"headers-too-many": 1})


def test_a_date_that_cannot_be_read_is_not_the_one_before() -> None:
    fields = "#Fields: time c-ip cs-method cs-uri-stem sc-status"
    view = "10:00:00 203.0.113.9 GET /a 200"
    log = ["#Date: 2024-03-12", fields, view, "#Date: 12-Mar-2024", view]
    outcome = read_all("w3c", "\n".join(log).encode())
    assert (outcome.used, outcome.rejected) == (1, {"time-invalid": 1})


def test_escapes_of_a_load_balancer_are_bytes() -> None:
    line = (
        "https 2024-03-12T10:00:00.5Z app/x/1 203.0.113.9:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 1 2 "
        rf'"GET https://www.example.com:443/\xC3\xBC\x5Ca?b=\x22 HTTP/2.0" "{BROWSER.replace(" ", "+")}" - - -'
    )
    (visit,) = read_all("alb", line.encode()).visits
    assert visit["url"] == "https://www.example.com/%C3%BC/a?b=%22"


@pytest.mark.parametrize(
    ("name", "log"),
    [
        (
            "combined",
            lambda n: "203.0.113.9" + " -" * n + " [10/Feb/2012:16:42:07 -0500] " + '"GET /a HTTP/1.1" 200 1\n',
        ),
        ("w3c", lambda n: ("#Fields: date time cs-method cs-uri-stem\n2024-03-12 10:00:00 GET /a\n") * (n // 50)),
    ],
)
def test_time_grows_with_the_length_of_repeated_parts(name: str, log: Any) -> None:
    begin = time.process_time()
    assert read_all(name, log(400_000).encode()).used
    assert time.process_time() - begin < 8  # with a cost per pair of parts, or of all readers per part: 20 s and more
