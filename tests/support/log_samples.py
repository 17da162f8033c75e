"""A sample of each log format."""

from __future__ import annotations

from tests.support.logs import BROWSER, combined_line

YANDEX = (
    "7\tM\t5\t99\n"
    "7\t0\tQ\t0\t500\t11,12\t900,90\t901,91\t902,92\n"
    "7\t13\tC\t0\t902\n"
    "7\t20\tC\t0\t999\n"
    "7\t21\tC\t4\t902\n"
    "7\t30\tQ\t1\t501\t13\t900,90\n"
    "8\tM\t6\t98\n"
    "8\t0\tT\t0\t500\t11\t900,90\n"
    "9\t5\tC\t0\t900\n"
    "9\t0\tQ\t0\t500\t11\t900,90\n"
    "what\tis\tthis\n"
    "10\tM\t6\t99\n"
    "10\t1\tQ\t0\t500\t11\t901,91\t901,95\n"
    "10\t2\tC\t0\t901\n"
)

W3C_HEADER = "#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query cs(User-Agent) cs(Referer) sc-status"

SAMPLES: dict[str, list[str]] = {
    "combined": [
        combined_line().rstrip("\n"),
        combined_line(referrer="https://www.bing.com/search?q=moon").rstrip("\n"),
        combined_line(request="GET /find?q=x%ff HTTP/1.1", agent='a\\"b').rstrip("\n"),
    ],
    "common": ['203.0.113.7 - - [10/Feb/2012:16:42:07 -0500] "GET /c HTTP/1.0" 200 5'],
    "vhost-combined": ["www.example.com:443 " + combined_line().rstrip("\n")],
    "nginx-json": ['{"ip":"203.0.113.7","path":"/a","time":"2020-01-01T00:00:00Z","status":200,"referrer":"-"}'],
    "w3c": [W3C_HEADER, f"2012-02-10 21:42:07 203.0.113.7 GET /p - {BROWSER.replace(' ', '+')} - 200"],
    "alb": [
        "http 2020-01-01T00:00:00.1Z app/x 203.0.113.7:1 - 0 0 0 200 200 1 1 "
        f'"GET http://a.example:80/ HTTP/1.1" "{BROWSER}" - -'
    ],
    "cloudfront": [
        W3C_HEADER.replace("#Fields: ", "#Fields:\t"),
        "2012-02-10\t21:42:07\t203.0.113.7\tGET\t/p\t-\tM\t-\t200",
    ],
    "aol": ["AnonID\tQuery\tQueryTime\tItemRank\tClickURL", "1\tmoon\t2006-03-01 07:17:12\t1\thttp://a.example"],
    "orcas": ["1\tmoon\tD2\thttps://a.example/"],
    "sogou": [
        "00:00:01\t298\t[360安全卫士]\t8 3\tdownload.it.com.cn/",
        "20111230000005\t5\t奇艺\t1\t2\thttp://q.example/",
    ],
    "wikipedia-clickstream": ["Moon\tNaN\tlink\t123", "other-search\tApollo_11\texternal\t9"],
    "yandex": YANDEX.splitlines(),
    "matomo": [
        '{"visitorId":"x","referrerType":"search","referrerKeyword":"m",',
        '"actionDetails":[{"type":"action",',
        "}]}",
    ],
    "table": ["ann\tmoon\t2024-01-01 00:00:00\thttps://a.example/", 'ann,"moon, x",2024-01-01,https://a.example/'],
}


def sample(name: str, repeats: int = 1) -> bytes:
    encoding = "gbk" if name == "sogou" else "utf-8"
    return ("\n".join(SAMPLES[name] * repeats) + "\n").encode(encoding)
