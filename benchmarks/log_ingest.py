"""Reading an access log: lines to page views of people, against a bare read of the same file into columns.

The log is generated: visitors with browsers of their own walk from page to page, some arrive from search engines,
pages bring their images and styles along, a fifth of the requests are robots', and one line in two hundred is dirt.
"""

from __future__ import annotations

import random
import tempfile
import time
from functools import partial
from itertools import accumulate
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv

from benchmarks.harness import Result, interleaved
from semrank.transforms.logs.formats import FORMATS
from semrank.transforms.logs.options import LogOptions

LINES = 1_000_000
QUICK_LINES = 50_000
PAGES = 20_000
AGENTS = 2_000
REPEATS = 5
AIM = 3.0
"""A worker uses one core, so the peers get one thread too."""

SITE = "https://www.example.com"
_COLUMNS = ("client", "ident", "account", "time", "zone", "request", "status", "bytes", "referrer", "agent")
_ROBOTS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "python-requests/2.31.0",
)
_DIRT = (
    '{client} - - [{time}] "\\x16\\x03\\x01" 400 226 "-" "-"',
    '{client} - - [{time}] "-" 408 - "-" "-"',
    '{client} - jane doe [{time}] "GET /with space/a b.html HTTP/1.1" 200 5 "-" "Mozilla/5.0 (\\"odd\\")"',
    "no log line at all",
)


def write_log(path: Path, lines: int, seed: int = 7) -> None:
    """Write a log in the combined format."""
    draw = random.Random(seed)
    words = [
        f"{head}{tail}" for head in ("red", "blue", "old", "new", "fast") for tail in ("boat", "lamp", "tree", "road")
    ]
    pages = [f"/{draw.choice(words)}/{draw.choice(words)}-{page}.html" for page in range(PAGES)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(PAGES)))
    agents = [
        f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{draw.randint(70, 140)}.0.{draw.randint(1000, 7000)}.{draw.randint(1, 200)} Safari/537.36"
        for _ in range(AGENTS)
    ]
    visitors: list[tuple[str, str, str]] = []
    now = 1_700_000_000.0
    with path.open("w", encoding="utf-8") as out:
        for _ in range(lines):
            now += draw.random() * 0.2
            stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now))
            kind = draw.random()
            client = f"{draw.randint(1, 223)}.{draw.randint(0, 255)}.{draw.randint(0, 255)}.{draw.randint(1, 254)}"
            page = draw.choices(pages, cum_weights=weights)[0]
            size = draw.randint(200, 90_000)
            if kind < 0.005:
                out.write(draw.choice(_DIRT).format(client=client, time=stamp) + "\n")
            elif kind < 0.2:
                out.write(f'{client} - - [{stamp}] "GET {page} HTTP/1.1" 200 {size} "-" "{draw.choice(_ROBOTS)}"\n')
            elif kind < 0.25 or len(visitors) < 200:
                agent = draw.choice(agents)
                query = f"{draw.choice(words)}+{draw.choice(words)}"
                referrer = f"https://www.google.com/search?q={query}" if draw.random() < 0.6 else "-"
                visitors.append((client, agent, page))
                out.write(f'{client} - - [{stamp}] "GET {page} HTTP/1.1" 200 {size} "{referrer}" "{agent}"\n')
            else:
                visitor = len(visitors) - 1 - draw.randrange(min(len(visitors), 2_000))
                client, agent, before = visitors[visitor]
                asset = draw.random() < 0.5
                target = f"/static/{draw.randint(1, 300)}.png" if asset else page
                if not asset:
                    visitors[visitor] = (client, agent, page)
                out.write(f'{client} - - [{stamp}] "GET {target} HTTP/1.1" 200 {size} "{SITE}{before}" "{agent}"\n')


def read_with_ours(path: Path) -> dict[str, int]:
    """Ours: reads the log to page views; gives the numbers of records and of those that were used."""
    options = LogOptions(user_salt="benchmark-key", site=SITE, site_search=("q",))
    records = used = 0
    with path.open("rb") as stream:
        for batch in FORMATS["combined"].read(stream, source=str(path), options=options):
            records, used = records + batch.records, used + batch.used
    return {"records": records, "used": used}


def read_with_arrow(path: Path) -> int:
    """Rows that Arrow's CSV reader makes of the log."""
    table = pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(column_names=list(_COLUMNS), use_threads=False, block_size=4 << 20),
        parse_options=pa_csv.ParseOptions(delimiter=" ", invalid_row_handler=lambda _: "skip"),
        convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(_COLUMNS, pa.binary())),
    )
    return int(table.num_rows)


def read_with_duckdb(path: Path) -> int:
    """Rows that DuckDB's CSV reader makes of the log."""
    columns = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in _COLUMNS) + "}"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            f"CREATE TABLE log AS FROM read_csv('{path}', delim=' ', quote='\"', header=false, columns={columns}, "
            "auto_detect=false, ignore_errors=true, strict_mode=false, null_padding=true)"
        )
        row = connection.execute("SELECT count(*) FROM log").fetchone()
    return int(row[0]) if row else 0


def run(*, quick: bool = False) -> list[Result]:
    """Results of the benchmark: one for each peer."""
    lines, repeats = (QUICK_LINES, 1) if quick else (LINES, REPEATS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "access.log"
        write_log(path, lines)
        sides = [partial(side, path) for side in (read_with_ours, read_with_arrow, read_with_duckdb)]
        ours, *peers = interleaved(sides, repeats)
    note = (
        f"{lines:,} lines of the combined format, {ours.value['used']:,} used, {lines / ours.wall_s:,.0f} lines a "
        "second; one thread each; the peer only splits them into columns"
    )
    return [
        ours.against(peer, "log_ingest", name, AIM, note, ours.value)
        for name, peer in zip(("pyarrow.csv", "DuckDB read_csv"), peers, strict=True)
    ]
