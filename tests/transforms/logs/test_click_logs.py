"""Formats of published click logs and of the user's own tables."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from semrank.schemas.errors import InputError
from semrank.transforms.logs.options import LogOptions, parse_columns
from tests.support.log_samples import YANDEX
from tests.support.logs import OPTIONS, read_all

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NO_SALT = LogOptions()


def click(**values: Any) -> dict[str, Any]:
    row = dict.fromkeys(("user_group", "session_id", "keywords", "position"))
    return {**row, **values}


def test_aol() -> None:
    content = (
        b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
        b"142\tmoon  landing\t2006-03-01 07:17:12\t2\thttp://www.nasa.gov\n"
        b"142\tmoon landing\t2006-03-01 07:18:00\t\t\n"
        b"142\tmoon landing\t2006-03-01 07:18:00\n"
        b"142\t-\t2006-03-01 07:18:00\t1\thttp://www.nasa.gov\n"
        b"142\tmoon\t2006-13-01 07:18:00\t1\thttp://www.nasa.gov\n"
        b"142\tmoon\t2006-03-01 07:18:00\t1\thttp://\n"
        b"142\tcaf\xe9\t2006-03-01 07:18:00\tx\twww.nasa.gov\n"
        b"\tmoon\t2006-03-01 07:18:00\t1\thttp://www.nasa.gov\n"
        b"a\tb\n"
    )
    outcome = read_all("aol", content, NO_SALT)
    assert outcome.clicks[0] == click(
        user_id="aol-142",
        query="moon landing",
        clicked_at=datetime.datetime(2006, 3, 1, 7, 17, 12, tzinfo=datetime.UTC),
        position=2,
        url="http://www.nasa.gov/",
    )
    assert [(row["query"], row["position"]) for row in outcome.clicks[1:]] == [("café", None)]
    assert outcome.ignored == {"header": 1, "no-click": 2, "no-query": 1}
    assert outcome.rejected == {"time-invalid": 1, "host-missing": 1, "user-missing": 1, "layout-unknown": 1}
    assert not any("142" in row["record"] for row in outcome.rejects)
    hashed = read_all("aol", content, OPTIONS)
    assert "142" not in hashed.clicks[0]["user_id"]
    assert len(hashed.clicks) == 2


@pytest.mark.parametrize(
    ("written", "url"),
    [
        *((scheme, "http://h.example/a") for scheme in ("http:\\\\h.example\\a", "HTTP:/h.example/a", "h.example/a")),
        ("localhost:8080/a", "http://localhost:8080/a"),
        ("h.example:8080", "http://h.example:8080/"),
        ("[2001:db8::1]/a", "http://[2001:db8::1]/a"),
    ],
)
def test_schemes_of_clicked_urls(written: str, url: str) -> None:
    """WHATWG, "URL parsing": a special scheme counts with any number of slashes or backslashes."""
    assert [row["url"] for row in read_all("orcas", f"1\tq\tD1\t{written}\n".encode()).clicks] == [url]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("mailto:jane@h.example", "scheme-unsupported"),
        ("tel:4930123456", "scheme-unsupported"),
        ("jane@h.example", "scheme-missing"),
        ("jane:secret@h.example/a", "scheme-unsupported"),
    ],
)
@pytest.mark.parametrize(
    ("log", "row"),
    [
        ("aol", "142\tmoon\t2006-03-01 07:17:12\t2\t{}\n"),
        ("orcas", "1\tmoon\tD1\t{}\n"),
        ("sogou", "20111230000005\t57a\tmoon\t1\t2\t{}\n"),
        ("table", "u1\tmoon\t2024-01-01T00:00:00Z\t{}\n"),
    ],
)
def test_other_schemes_and_accounts_are_no_hosts(log: str, row: str, written: str, reason: str) -> None:
    """RFC 3986, 3.1: what stands before the first colon is a scheme; RFC 6068: a mailto URL names a mailbox."""
    assert read_all(log, row.format(written).encode()).rejected == {reason: 1}


def test_orcas_rows_are_users_of_their_own() -> None:
    content = b"1\tmoon\tD2\thttps://a.example/\n1\tmoon\tD3\thttps://b.example/\nbad\trow\n"
    outcome = read_all("orcas", content, NO_SALT)
    assert outcome.clicks == [
        click(user_id="orcas-1-D2", query="moon", clicked_at=EPOCH, url="https://a.example/"),
        click(user_id="orcas-1-D3", query="moon", clicked_at=EPOCH, url="https://b.example/"),
    ]
    assert outcome.rejected == {"layout-unknown": 1}


def test_sogou_in_both_layouts() -> None:
    old = "00:00:01\t298\t[360安全卫士]\t8 3\tdownload.it.com.cn/softweb/17938.html\n".encode("gbk")
    new = "20111230000005\t57a\t奇艺高清\t1\t2\thttp://www.qiyi.com/\n"
    outcome = read_all(
        "sogou", old + new.encode("gbk") + new.encode() + b"x\ty\n", NO_SALT, "log.20060801.decode.filter"
    )
    assert outcome.rejected == {"layout-unknown": 1}
    rows = {(row["query"], row["clicked_at"].isoformat(), row["position"], row["url"]) for row in outcome.clicks}
    assert rows == {
        ("360安全卫士", "2006-08-01T00:00:01+00:00", 8, "http://download.it.com.cn/softweb/17938.html"),
        ("奇艺高清", "2011-12-30T00:00:05+00:00", 1, "http://www.qiyi.com/"),
    }
    assert len(outcome.clicks) == 3
    undated = read_all("sogou", old, NO_SALT)
    assert undated.clicks[0]["clicked_at"] == EPOCH + datetime.timedelta(seconds=1)


def test_wikipedia_clickstream() -> None:
    content = (
        b"prev\tcurr\ttype\tn\n"
        b"Moon\tNaN\tlink\t123\n"
        b"other-search\tApollo_11\texternal\t9\n"
        b"other-empty\tApollo_11\texternal\t1000\n"
        b"Moon\tWho?\tother\t10\n"
        b"Moon\tEarth\tlink\t0\n"
        b"Moon\tEarth\tlink\t-1\n"
        b"Moon\tEarth\n"
    )
    outcome = read_all("wikipedia-clickstream", content, NO_SALT, "dumps/clickstream-dewiki-2024-03.tsv.gz")
    assert (outcome.used, outcome.ignored) == (3, {"header": 1, "no-source-page": 1})
    assert outcome.rejected == {"count-invalid": 2, "layout-unknown": 1}
    begin = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)
    second = datetime.timedelta(seconds=1)
    wiki = "https://de.wikipedia.org/wiki/"
    by_user: dict[str, list[tuple[Any, ...]]] = {}
    for row in sorted(outcome.clicks, key=lambda row: row["clicked_at"]):
        by_user.setdefault(row["user_id"], []).append((row["query"], row["clicked_at"] - begin, row["url"]))
    walk = [("NaN", 0 * second, wiki + "Moon"), ("NaN", second, wiki + "NaN")]
    question = [("Who?", 0 * second, wiki + "Moon"), ("Who?", second, wiki + "Who%3F")]
    expected = {f"wikipedia-clickstream-Moon>NaN>{copy}": walk for copy in range(3)}
    expected |= {f"wikipedia-clickstream-Moon>Who?>{copy}": question for copy in range(2)}
    expected["wikipedia-clickstream-other-search>Apollo_11>0"] = [("Apollo 11", second, wiki + "Apollo_11")]
    assert by_user == expected


@pytest.mark.parametrize(
    ("source", "site"),
    [
        ("clickstream-enwiki-2018-12.tsv", "https://en.wikipedia.org/"),
        ("some/enwiki/file.tsv", "https://en.wikipedia.org/"),
        ("clickstream-zh_yuewiki-2018-12.tsv", "https://zh-yue.wikipedia.org/"),
    ],
)
def test_the_wiki_is_named_by_the_file(source: str, site: str) -> None:
    outcome = read_all("wikipedia-clickstream", b"A\tB\tlink\t1\n", NO_SALT, source)
    assert all(row["url"].startswith(site) for row in outcome.clicks)


def test_yandex() -> None:
    outcome = read_all("yandex", YANDEX.encode(), NO_SALT)
    assert outcome.clicks == [
        click(
            user_id="yandex-99",
            session_id="yandex-7",
            query="11 12",
            keywords=["11", "12"],
            clicked_at=EPOCH + datetime.timedelta(days=5, seconds=13),
            position=3,
            url="https://92.yandex.invalid/902",
        ),
        click(
            user_id="yandex-99",
            session_id="yandex-10",
            query="11",
            keywords=["11"],
            clicked_at=EPOCH + datetime.timedelta(days=6, seconds=2),
            position=1,
            url="https://91.yandex.invalid/901",
        ),
    ]
    assert outcome.used == 6
    assert outcome.ignored == {"no-click": 3}
    assert outcome.rejected == {"result-unknown": 1, "query-unknown": 1, "session-unknown": 2, "layout-unknown": 1}


def matomo_visit(**values: Any) -> dict[str, Any]:
    visit = {
        "idVisit": 12,
        "visitorId": "0123456789abcdef",
        "visitIp": "203.0.113.7",
        "referrerType": "search",
        "referrerKeyword": "moon landing",
        "referrerKeywordPosition": "3",
        "serverTimestamp": 1_600_000_000,
        "actionDetails": [
            {"type": "action", "url": "https://www.example.com/a", "timestamp": 1_600_000_000},
            {"type": "event", "url": "https://www.example.com/e", "timestamp": 1_600_000_001},
            {"type": "search", "siteSearchKeyword": "apollo {11}", "timestamp": 1_600_000_002},
            {"type": "outlink", "url": "https://nasa.example/", "timestamp": 1_600_000_003},
            {"type": "action", "url": "about:blank", "timestamp": 1_600_000_004},
        ],
    }
    return {**visit, **values}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("lines", [False, True])
def test_matomo(indent: int | None, lines: bool) -> None:
    visits = [
        matomo_visit(),
        matomo_visit(referrerType="direct", actionDetails=[{"type": "action", "url": "https://a.example/"}]),
        matomo_visit(actionDetails=[{"type": "action", "url": "nothing", "timestamp": 1}]),
        matomo_visit(actionDetails="none"),
        matomo_visit(visitorId=None, visitIp=""),
    ]
    texts = [json.dumps(visit, indent=indent) for visit in visits]
    content = "\n".join(texts) if lines else f"[{', '.join(texts)}]"
    outcome = read_all("matomo", content.encode())
    first, second = outcome.clicks
    assert (first["query"], first["position"], first["url"]) == ("moon landing", 3, "https://www.example.com/a")
    assert (second["query"], second["position"], second["url"]) == ("apollo {11}", None, "https://nasa.example/")
    assert second["clicked_at"].timestamp() == 1_600_000_003
    assert first["session_id"] == f"{first['user_id']}-12"
    assert (outcome.records, outcome.used, outcome.ignored) == (5, 1, {"no-query": 1})
    assert outcome.rejected == {"scheme-missing": 1, "visit-invalid": 1, "user-missing": 1}
    assert not any(secret in row["record"] for row in outcome.rejects for secret in ("203.0.113.7", "0123456789abcdef"))


@pytest.mark.parametrize("keyword", ["Keyword not defined", "Suchbegriff nicht definiert", "", None])
def test_matomo_visits_whose_words_the_engine_kept(keyword: str | None) -> None:
    """Matomo's `getCleanKeyword`: a label in the user's language stands for a keyword that is empty."""
    outcome = read_all("matomo", json.dumps([matomo_visit(referrerKeyword=keyword)]).encode())
    assert [click["query"] for click in outcome.clicks] == ["apollo {11}"]


def test_halves_of_surrogate_pairs_in_matomo_visits() -> None:
    visit = matomo_visit(idVisit="a\ud83d", visitorId="b\ud83d", referrerKeyword="moon \ud83d")
    (first, *_) = read_all("matomo", json.dumps([visit]).encode()).clicks
    assert (first["query"], first["session_id"].partition("-")[2]) == ("moon \ufffd", "a\ufffd")


@pytest.mark.parametrize("kind", [[], {}, None, 1])
def test_matomo_actions_of_other_types_are_no_clicks(kind: Any) -> None:
    actions = [{"type": kind, "url": "https://a.example/"}, *matomo_visit()["actionDetails"][:1]]
    outcome = read_all("matomo", json.dumps([matomo_visit(actionDetails=actions)]).encode())
    assert [row["url"] for row in outcome.clicks] == ["https://www.example.com/a"]


@pytest.mark.parametrize("number", [None, "", [], {}])
def test_matomo_visits_without_a_number_have_no_session(number: Any) -> None:
    outcome = read_all("matomo", json.dumps([matomo_visit(idVisit=number)]).encode())
    assert {row["session_id"] for row in outcome.clicks} == {None}


def test_matomo_export_may_break_off() -> None:
    text = json.dumps([matomo_visit(), matomo_visit()]).encode()
    outcome = read_all("matomo", text[:-40])
    assert (outcome.used, outcome.rejected) == (1, {"record-truncated": 1})
    assert read_all("matomo", b"[]").records == 0
    assert read_all("matomo", b'{"result":"error"} stray {"actionDetails": nonsense}').rejected == {
        "visit-invalid": 1,
        "json-invalid": 2,
    }


def table_options(text: str) -> LogOptions:
    return LogOptions(user_salt="a test's own key", columns=parse_columns(text))


def test_blank_sessions_and_groups_are_none() -> None:
    content = "".join(
        f"ann,moon,2024-01-01T00:00:00Z,https://a.example/,{name},{name}\n" for name in ("", " ", "-", "x")
    )
    outcome = read_all("table", content.encode(), table_options("user=0,query=1,time=2,url=3,session=4,group=5"))
    assert [(row["session_id"], row["user_group"]) for row in outcome.clicks] == [(None, None)] * 3 + [("x", "x")]


def test_table_with_named_columns() -> None:
    content = (
        "\ufeffwhen,who,page,words,rank,team\n"
        '2024-01-01T00:00:00+01:00,ann,https://a.example/,"moon, landing ""1969""",4,red\n'
        "1704063600,ann,b.example/x,moon,,red\n"
        ",ann,b.example/x,moon,,red\n"
        "2024-01-01,,b.example/x,moon,,red\n"
        "2024-01-01,ann\n"
    ).encode()
    options = table_options("user=who,query=words,time=when,url=page,position=rank,group=team")
    outcome = read_all("table", content, options)
    first, second = outcome.clicks
    moment = datetime.datetime(2023, 12, 31, 23, tzinfo=datetime.UTC)
    assert (first["query"], first["position"], first["user_group"]) == ('moon, landing "1969"', 4, "red")
    assert (second["url"], second["position"]) == ("http://b.example/x", None)
    assert {row["clicked_at"] for row in outcome.clicks} == {moment}
    assert len({row["user_id"] for row in outcome.clicks}) == 1
    assert outcome.ignored == {"header": 1}
    assert outcome.rejected == {"time-invalid": 1, "user-missing": 1, "layout-unknown": 1}
    assert not any("ann" in row["record"] for row in outcome.rejects)
    missing = read_all("table", content, table_options("user=who,query=words,time=at,url=page"))
    assert (missing.ignored, missing.rejected) == ({"header": 1}, {"columns-unknown": 5})


def test_table_with_numbered_columns() -> None:
    content = b"ann\tmoon\t2024-01-01 00:00:00\thttps://a.example/\textra\n"
    outcome = read_all("table", content, table_options("user=0,query=1,time=2,url=3"))
    assert (outcome.used, outcome.clicks[0]["url"]) == (1, "https://a.example/")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogOptions(user_salt="short"), "--user-salt: found 5 bytes, expected 8 to 64"),
        (lambda: LogOptions(user_salt="x" * 65), "--user-salt: found 65 bytes"),
        (lambda: LogOptions(site="www.example.com"), "--log-site: found 'www.example.com', expected scheme and host"),
        (lambda: LogOptions(site="https://a.example/path"), "--log-site"),
        (lambda: LogOptions(site_search=("a b",)), "--site-search: found 'a b'"),
        (lambda: LogOptions(spam_domains=("spam",)), "--spam-domain: found 'spam'"),
        (lambda: LogOptions(columns={"user": "0"}), "--log-columns: query, time, url not given"),
        (lambda: LogOptions(columns={"who": "0"}), "--log-columns: found who, expected some of user"),
        (lambda: table_options("user=0,query=q,time=2,url=3"), "expected either names or numbers"),
        (lambda: parse_columns("user"), "--log-columns: found 'user', expected NAME=COLUMN"),
        (lambda: parse_columns("user=1,user=2"), "--log-columns: user is given twice"),
    ],
)
def test_options_are_checked_when_made(make: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("written", "position"), [("3", 3), ("3.0", 3), ("3.000", 3), ("3.5", None), ("0", None), ("-1", None), ("x", None)]
)
def test_positions_may_be_written_as_floats(written: str, position: int | None) -> None:
    options = table_options("user=0,query=1,time=2,url=3,position=4")
    table = f"ann\tmoon\t2024-01-01\thttps://a.example/\t{written}\n"
    aol = f"7\tmoon\t2006-03-01 07:17:12\t{written}\thttps://a.example/\n"
    for name, log in (("table", table), ("aol", aol)):
        (click,) = read_all(name, log.encode(), options).clicks
        assert click["position"] == position


NAMED = table_options("user=user,query=query,time=time,url=url")
TABLE = "user,query,time,url\nann,moon,2024-01-01,https://a.example/{}\nann,sun,2024-01-02,https://a.example/b\n"


@pytest.mark.parametrize("end", ["", ",", ",,"])
def test_a_comma_in_a_field_without_quotes_makes_no_other_url(end: str) -> None:
    outcome = read_all("table", TABLE.format(f"x{end}").encode(), NAMED)
    assert [click["url"] for click in outcome.clicks] == ["https://a.example/x", "https://a.example/b"]
    for rest in ("x,y", "x,,y"):
        outcome = read_all("table", TABLE.format(rest).encode(), NAMED)
        assert ([click["url"] for click in outcome.clicks], outcome.rejected) == (
            ["https://a.example/b"],
            {"layout-unknown": 1},
        )


def test_blanks_around_an_address_are_no_part_of_it() -> None:
    aol = b"7\tmoon\t2006-03-01 07:17:12\t1\t https://a.example/x \n"
    table = TABLE.format("x ").replace(",https", ", https")
    for outcome in (read_all("aol", aol), read_all("table", table.encode(), NAMED)):
        assert (outcome.clicks[0]["url"], outcome.rejected) == ("https://a.example/x", {})


def test_names_of_columns_are_no_click_of_orcas() -> None:
    outcome = read_all("orcas", b"qid\tquery\tdid\turl\n1\tmoon\tD2\thttps://a.example/\n")
    assert (outcome.used, outcome.ignored, outcome.clicks[0]["url"]) == (1, {"header": 1}, "https://a.example/")
