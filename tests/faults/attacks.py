"""Attacks that need a command: what careless users, strangers' rounds, servers and signals do to it.

Each is made in a folder of its own and gives what was counted. `harm` is what must not be: a file that is lost, an
account that a result shows, a control character that is printed, a process that is left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.pipelines import rank as rank_command
from semrank.pipelines import runtime
from semrank.pipelines.cli import main
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import ids
from semrank.transforms.frontier.private import PRIVATE_ADDRESS
from semrank.transforms.streams import download as download_module
from semrank.transforms.streams.download import DownloadError, Policy, download
from semrank.transforms.weblog import beam as weblog
from semrank.transforms.weblog import clicks as clicks_module
from tests.support.crawls import http, warc
from tests.support.hostile_inputs import one_click_users
from tests.support.snapshots import write_snapshot
from tests.support.strategies import HOST

Attack = Callable[[], Mapping[str, int]]

SECRET = "hunter2hunter2"
PAIR = (f"{HOST}/trap/a", f"{HOST}/trap/b")
ROOT = Path(__file__).resolve().parents[2]
_CONTROL = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PATIENCE_SECONDS = 300.0


def run_command(*arguments: object) -> tuple[int, str]:
    """The exit status of a command, and all that it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = main([str(argument) for argument in arguments])
    return status, printed.getvalue()


def content(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def shown_by(folder: Path) -> str:
    """All that stands in the files of a folder."""
    texts = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            texts.append(repr(pq.read_table(path).to_pylist()))
        elif path.is_file():
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return "\n".join(texts)


def small_web(folder: Path, targets: tuple[str, ...] = (), anchor: str = "owls and birds") -> tuple[Path, Path]:
    """A snapshot whose first page links to others, and a file of seeds."""
    urls = [f"{HOST}/{name}" for name in ("", "birds", "finches", "owls")]
    pages = [{"url": url, "text": f"lattices of birds and owls at {url}", "language": "en"} for url in urls]
    links = [{"source_url": urls[0], "target_url": url, "anchor_text": anchor} for url in (*urls[1:], *targets)]
    (folder / "seeds.txt").write_text(f"{urls[0]}\n", encoding="utf-8")
    return write_snapshot(folder / "snapshot", pages, links, []), folder / "seeds.txt"


def ranking(snapshot: Path, seeds: Path, output: Path) -> list[object]:
    """The command that ranks a snapshot quickly."""
    return ["rank", "--snapshot", snapshot, "--seeds", seeds, "--output", output, "--ranker", "pagerank", "--quiet"]


def foreign_files(_: float, folder: Path) -> Attack:
    """Outputs that hold files of somebody else."""
    names = (".env", ".git/HEAD", ".ssh/id", "pages/notes.txt", "pages/part-00000.parquet", "manifest.json")
    pages = folder / "pages.jsonl"
    pages.write_text(json.dumps({"url": HOST}) + "\n", encoding="utf-8")

    def attack() -> Mapping[str, int]:
        refused = harm = 0
        for number, name in enumerate(names):
            kept = folder / f"output-{number}" / name
            kept.parent.mkdir(parents=True)
            kept.write_text('{"mine": 1}', encoding="utf-8")
            for options in ((), ("--overwrite",)):
                output = folder / f"output-{number}"
                refused += run_command("ingest", "--pages", pages, "--output", output, *options)[0] == 2
                harm += not kept.is_file() or kept.read_text(encoding="utf-8") != '{"mine": 1}'
        return {"refused": refused, "harm": harm}

    return attack


def own_inputs(_: float, folder: Path) -> Attack:
    """Outputs that are, or hold, what the command reads."""
    snapshot, seeds = small_web(folder)
    first = folder / "first"
    if run_command(*ranking(snapshot, seeds, first))[0]:
        raise RuntimeError("the round to attack was not made")
    inner = folder / "outer" / "pages.jsonl"
    inner.parent.mkdir()
    inner.write_text(json.dumps({"url": HOST}) + "\n", encoding="utf-8")
    begin = ["rank", "--snapshot", snapshot]
    commands: list[list[object]] = [
        ["ingest", "--pages", snapshot / "pages", "--links", snapshot / "links", "--output", snapshot],
        ["ingest", "--pages", inner, "--output", inner.parent],
        [*begin, "--previous", first, "--output", first],
        [*begin, "--seeds", seeds, "--output", snapshot],
    ]

    def attack() -> Mapping[str, int]:
        before = content(folder)
        refused = sum(run_command(*command, "--overwrite", "--quiet")[0] == 2 for command in commands)
        return {"refused": refused, "harm": int(content(folder) != before)}

    return attack


def accounts(share: float, folder: Path) -> Attack:
    """Lines of logs that can't be used and name an account, an address or a cookie."""
    bad = (
        f'203.0.113.77 - {SECRET} [not a time] "GET /x HTTP/1.1" 200 1 "-" "M"',
        f'203.0.113.77 - {SECRET} [10/Oct/2023:13:55:01 +0000] "\\x16\\x03" 200 1 "-" "M"',
        f"203.0.113.77 {SECRET}",
        f'[2001:db8:5ec::77]:443 - {SECRET} [bad] "GET / HTTP/1.1" 200 1 "-" "-"',
        f'203.0.113.77, 10.0.0.1 - a {SECRET} b [bad] "GET /?user={SECRET} HTTP/1.1" 200 1 "-" "-"',
        f"{'B' * (1 << 21)} 203.0.113.77 {SECRET}",
    )
    count = max(1, int(1_000 * share))
    (folder / "access.log").write_text("\n".join([*bad[:5] * count, bad[5], ""]), encoding="utf-8")
    rows = [
        {"remote_addr": "203.0.113.77", "remote_user": SECRET, "time_iso8601": "bad", "request": "GET /x HTTP/1.1"},
        {
            "remote_addr": "203.0.113.77",
            "http_cookie": f"sid={SECRET}",
            "request": "\x16",
            "x": {"remote_user": SECRET},
        },
    ]
    lines = [json.dumps(row) for row in rows] + [f'{{"remote_addr":"203.0.113.77","remote_user":"{SECRET}"']
    (folder / "nginx.json").write_text("\n".join([*lines * count, ""]), encoding="utf-8")
    logs = [f"--log=combined={folder}/access.log", f"--log=nginx-json={folder}/nginx.json"]
    output = folder / "snapshot"

    def attack() -> Mapping[str, int]:
        status, printed = run_command("ingest", *logs, "--user-salt", SECRET, "--log-site", HOST, "--output", output)
        text = printed + shown_by(output)
        rejects = sum(pq.read_metadata(path).num_rows for path in (output / "rejects").glob("*.parquet"))
        marks = (SECRET, "203.0.113.77", "2001:db8:5ec")
        return {"status": status, "rejects": rejects, "harm": sum(text.count(mark) for mark in marks)}

    return attack


def escapes(_: float, folder: Path) -> Attack:
    """Anchors with escapes of terminals and overrides of direction, raw and as references, that `explain` prints."""
    texts = (
        "\x1b]52;c;Y3VybA==\x07\x1b[2J",
        "&#27;[31m&#7;&#x9b;31m",
        "&#10;forged&#13;line",
        "&#x202e;gnp.exe",
        "\x9b2J",
    )
    anchors = "".join(f"<a href=/{number}>kestrel {text}</a>" for number, text in enumerate(texts))
    body = f"<title>kestrel {texts[0]}</title><p>kestrel falcon</p>{anchors}".encode()
    (folder / "crawl.warc").write_bytes(warc(http(body), f"{HOST}/"))
    (folder / "seeds.txt").write_text(f"{HOST}/\n", encoding="utf-8")
    snapshot, output = folder / "snapshot", folder / "round"

    def attack() -> Mapping[str, int]:
        printed = run_command("ingest", "--warc", folder / "crawl.warc", "--output", snapshot)[1]
        printed += run_command(*ranking(snapshot, folder / "seeds.txt", output)[:-1])[1]
        for number in range(len(texts)):
            for options in ((), ("--json",)):
                printed += run_command("explain", "--round", output, f"{HOST}/{number}", *options)[1]
        return {"characters": len(printed), "harm": len(_CONTROL.findall(printed))}

    return attack


@contextlib.contextmanager
def _server(answer: Callable[[bytes], bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers by the head of a request, and the heads that it got."""
    heads: list[bytes] = []

    class Answering(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b"".join(iter(self.rfile.readline, b"\r\n"))
            heads.append(head)
            self.wfile.write(answer(head))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", heads
        finally:
            server.shutdown()


def _fetched(url: str, folder: Path, *hosts: str) -> int:
    """1 where a download is refused."""
    policy = Policy(attempts=1, first_wait=0.01, redirect_hosts=frozenset(hosts))
    try:
        download(url, folder, policy=policy)
    except (InputError, DownloadError):
        return 1
    return 0


def digests_and_lengths(_: float, folder: Path) -> Attack:
    """Answers with digests that are no Base64 and lengths of thousands of digits."""
    heads = ("Repr-Digest: sha-256=:!!:", "Digest: sha-256=?", "Content-MD5: !!", f"Content-Length: {'9' * 5_000}")

    def attack() -> Mapping[str, int]:
        refused = 0
        for head in heads:
            answer = f"HTTP/1.1 200 OK\r\n{head}\r\nConnection: close\r\n\r\nx".encode()
            with _server(lambda _, answer=answer: answer) as (url, _heads):  # type: ignore[misc]
                refused += _fetched(f"{url}/file.bin", folder)
        return {"refused": refused, "harm": len(heads) - refused}

    return attack


def rebound_names(_: float, folder: Path) -> Attack:
    """A redirect to a name that is public when it is checked and this machine when it is connected to."""
    resolve = socket.getaddrinfo

    def attack() -> Mapping[str, int]:
        asked: list[str] = []

        def rebound(host: Any, *arguments: Any, **options: Any) -> Any:
            if host == "rebound.example":
                asked.append(host)
                host = "9.9.9.9" if len(asked) == 1 else "127.0.0.1"
            return resolve(host, *arguments, **options)

        with _server(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx") as (inner, heads):
            to = inner.replace("127.0.0.1", "rebound.example").encode()
            redirect = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + to + b"/file.bin\r\n\r\n"
            with _server(lambda _: redirect) as (url, _heads), mock.patch.object(socket, "getaddrinfo", rebound):
                refused = _fetched(f"{url}/file.bin", folder, "rebound.example")
            return {"refused": refused, "harm": len(heads)}

    return attack


def passwords(_: float, folder: Path) -> Attack:
    """A redirect to another host, which the default entry of `.netrc` would give a password."""
    netrc = folder / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login u password {SECRET}\ndefault login d password {SECRET}\n")
    netrc.chmod(0o600)

    def attack() -> Mapping[str, int]:
        with _server(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx") as (inner, heads):
            to = inner.replace("127.0.0.1", "localhost").encode()
            redirect = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + to + b"/file.bin\r\n\r\n"
            with (
                _server(lambda _: redirect) as (url, _heads),
                mock.patch.dict(os.environ, {"NETRC": str(netrc)}),
                mock.patch.object(download_module, "_private_address", return_value=None),
            ):
                _fetched(f"{url}/file.bin", folder, "localhost")
            return {"requests": len(heads), "harm": sum(b"uthorization" in head for head in heads)}

    return attack


def secrets(_: float, folder: Path) -> Attack:
    """A token in the address of an input, the key of users in a file, and passwords in a database's address."""
    (folder / "salt").write_text(SECRET + "key\n", encoding="utf-8")
    row = json.dumps({"user_id": "u", "query": "owls", "clicked_at": "2026-01-01T00:00:00Z", "url": HOST}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n" % (len(row) + 1, row)
    output = folder / "snapshot"

    def attack() -> Mapping[str, int]:
        with _server(lambda _: answer) as (url, _heads):
            given = ["--clicks", f"{url}/clicks.jsonl?token={SECRET}", "--user-salt-file", folder / "salt"]
            status, printed = run_command("ingest", *given, "--output", output, "--verbose")
        database = f"postgresql://user:{SECRET}@127.0.0.1:1/shop?sslpassword={SECRET}"
        printed += run_command("ontology", "--ontology", database, "--output", folder / "shop.ttl")[1]
        text = printed + shown_by(output)
        return {"status": status, "characters": len(text), "harm": text.count(SECRET)}

    return attack


def foreign_round(_: float, folder: Path) -> Attack:
    """The report of a round that somebody else wrote: markup and scripts in all texts."""
    snapshot, seeds = small_web(folder)
    output, page = folder / "round", folder / "round.html"
    if run_command(*ranking(snapshot, seeds, output))[0]:
        raise RuntimeError("the round to attack was not made")
    (path,) = (output / "frontier").glob("*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    script = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    rows[0]["url"], rows[1]["host"], rows[2]["held_back"] = "javascript:alert(3)", script, script
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)

    def attack() -> Mapping[str, int]:
        status, _printed = run_command("report", "--round", output, "--output", page)
        text = page.read_text(encoding="utf-8")
        open_ones = ("<script>alert", "<img src=x", 'href="javascript', "unsafe-inline")
        lacking = "Content-Security-Policy" not in text
        harm = sum(text.count(each) for each in open_ones) + lacking
        return {"status": status, "characters": len(text), "harm": harm}

    return attack


def replaced_snapshot(_: float, folder: Path) -> Attack:
    """A snapshot that another run replaces while it is ranked."""
    snapshot, seeds = small_web(folder)
    run = runtime.run_pipeline

    def replacing(*arguments: Any, **options: Any) -> Any:
        found = run(*arguments, **options)
        (snapshot / "manifest.json").write_text(json.dumps({"kind": "snapshot", "sources": [], "other": 1}))
        return found

    def attack() -> Mapping[str, int]:
        with mock.patch.object(rank_command, "run_pipeline", replacing):
            status, _printed = run_command(*ranking(snapshot, seeds, folder / "round"))
        return {"refused": int(status == 2), "harm": int((folder / "round" / "manifest.json").exists())}

    return attack


def private_targets(share: float, folder: Path) -> Attack:
    """Links to the crawler's own network, which no export offers."""
    hosts = (
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "[::1]",
        "localhost",
        "intranet",
        "0x7f.1",
        "2130706433",
    )
    count = max(1, int(1_000 * share))
    targets = tuple(f"http://{host}/{number}" for host in hosts for number in range(count))
    (folder / "pages.jsonl").write_text(json.dumps({"url": f"{HOST}/", "text": "birds"}) + "\n", encoding="utf-8")
    links = [json.dumps({"source_url": f"{HOST}/", "target_url": url}) for url in (*targets, f"{HOST}/owls")]
    (folder / "links.jsonl").write_text("\n".join([*links, ""]), encoding="utf-8")
    (folder / "seeds.txt").write_text(f"{HOST}/\n", encoding="utf-8")
    snapshot, output = folder / "snapshot", folder / "round"

    def attack() -> Mapping[str, int]:
        run_command(
            "ingest", "--pages", folder / "pages.jsonl", "--links", folder / "links.jsonl", "--output", snapshot
        )
        run_command(*ranking(snapshot, folder / "seeds.txt", output))
        run_command("export", "--round", output, "--format", "urls", "--output", folder / "urls.txt")
        offered = (folder / "urls.txt").read_text(encoding="utf-8").split()
        held = sum(row["held_back"] == PRIVATE_ADDRESS for row in pq.read_table(output / "frontier").to_pylist())
        return {"held back": held, "harm": len(offered) - offered.count(f"{HOST}/owls")}

    return attack


def weak_ids(_: float, folder: Path) -> Attack:
    """Two URLs with one id, as a weaker hash would give them."""
    snapshot, seeds = small_web(folder, PAIR)

    def weak(text: bytes, digest_size: int) -> Any:
        whole = hashlib.blake2b(text, digest_size=digest_size).digest()
        return SimpleNamespace(digest=lambda: bytes(8) + whole[8:] if text.decode() in PAIR else whole)

    def attack() -> Mapping[str, int]:
        with mock.patch.object(ids, "blake2b", weak):
            status, _printed = run_command(*ranking(snapshot, seeds, folder / "round"))
        rows = [row["url"] for row in pq.read_table(folder / "round" / "frontier").to_pylist()]
        rejects = pq.read_table(folder / "round" / "rejects")["record"].to_pylist()
        return {"frontier": len(rows), "rejects": len(rejects), "harm": status + (rejects != [PAIR[1]])}

    return attack


def many_clicks(share: float, folder: Path) -> Attack:
    """Clicks that are counted a thousand million times each: what is counted is more than 32 bits hold."""
    snapshot = one_click_users(folder, 2 * max(2, int(5_000 * share)))
    many = 10**9

    def times(count: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
        def counted(clicks: Any) -> pa.Table:
            rows = count(clicks)
            place = rows.schema.get_field_index("clicks")
            return rows.set_column(place, rows.schema.field(place), pc.multiply(rows["clicks"], many))

        return counted

    def ranked(name: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
        output = folder / name
        profile = ["--profile", "paper-2013", "--workers", "1", "--quiet"]
        run_command("rank", "--snapshot", snapshot, "--seeds", folder / "seeds.txt", "--output", output, *profile)
        clicks = {row["keyword"]: row["clicks"] for row in pq.read_table(output / "keywords").to_pylist()}
        return pq.read_table(output / "frontier").to_pylist(), clicks

    def attack() -> Mapping[str, int]:
        rows, clicks = ranked("once")
        with (
            mock.patch.object(weblog, "word_clicks", times(clicks_module.word_clicks)),
            mock.patch.object(weblog, "url_word_clicks", times(clicks_module.url_word_clicks)),
        ):
            rows_of_many, clicks_of_many = ranked("many")
        wrong = sum(clicks_of_many[word] != many * count for word, count in clicks.items())
        return {"clicks": sum(clicks_of_many.values()), "harm": wrong + (not clicks) + (rows_of_many != rows)}

    return attack


def option_files(share: float, folder: Path) -> Attack:
    """Files of options whose names have many parts, or whose values are deep in others."""
    size = max(1_000, int(500_000 * share))
    keys = f"[{'a.' * 63}a]\n" + "".join(f"k{number}.{'a.' * 62}a = 1\n" for number in range(size // 64))
    texts = ("a." * size + "a = 1", f"[{'a.' * size}a]", "x = " + "[" * 2 * size, "x = " + "{a=" * (size // 2), keys)

    def attack() -> Mapping[str, int]:
        refused = harm = 0
        for text in texts:
            (folder / "own.toml").write_text(text, encoding="utf-8")
            status, printed = run_command("ls", folder, "--config", folder / "own.toml")
            refused += status == 2
            harm += printed.count("\n") != 1 or "own.toml" not in printed
        return {"refused": refused, "harm": harm}

    return attack


def no_locks(_: float, folder: Path) -> Attack:
    """A file system without locks."""
    snapshot, seeds = small_web(folder)

    def attack() -> Mapping[str, int]:
        with mock.patch.object(fcntl, "flock", side_effect=OSError(errno.ENOLCK, "No locks available")):
            status, printed = run_command(*ranking(snapshot, seeds, folder / "round"))
        return {"refused": int(status == 2), "harm": int(printed.count("\n") != 1)}

    return attack


def _command(*arguments: object, before: str = "", **environment: str) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    program = f"import sys; {before}from semrank.pipelines.cli import leave, main; leave(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupts(share: float, folder: Path) -> Attack:
    """Ctrl-C while a reader is inside a page that takes long."""
    body = b"<a href=/x>words</a>" * max(2_000, int(200_000 * share))
    (folder / "crawl.warc").write_bytes(b"".join(warc(http(body), f"{HOST}/{number}") for number in range(40)))
    before = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "

    def attack() -> Mapping[str, int]:
        output = folder / "snapshot"
        process = _command("ingest", "--warc", folder / "crawl.warc", "--output", output, before=before)
        while not output.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(1.0)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _out, error = process.communicate(timeout=_PATIENCE_SECONDS)
        ended = time.monotonic() - begin
        harm = int("Traceback" in error) + int((output / "manifest.json").exists())
        return {"status": process.returncode, "milliseconds": round(1_000 * ended), "harm": harm}

    return attack


def full_disks(_: float, folder: Path) -> Attack:
    """A limit on the size of files stands for a disk that is full, `/proc` for a folder that is read-only."""
    snapshot, seeds = small_web(folder)
    limit = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); "
    )

    def attack() -> Mapping[str, int]:
        lines = harm = 0
        for output, before in ((folder / "round", limit), (Path("/proc/round"), "")):
            process = _command(*ranking(snapshot, seeds, output), before=before, PYTHONDONTWRITEBYTECODE="1")
            _out, error = process.communicate(timeout=_PATIENCE_SECONDS)
            lines += error.count("\n")
            harm += process.returncode not in (1, 2) or str(output) not in error or "Traceback" in error
        return {"lines": lines, "harm": harm}

    return attack


def two_at_once(_: float, folder: Path) -> Attack:
    """Two runs into one folder: one wins."""
    snapshot, seeds = small_web(folder)
    rounds = ["rounds", "--snapshot", snapshot, "--seeds", seeds, "--rounds", "2", "--ranker", "pagerank"]

    def attack() -> Mapping[str, int]:
        refused = harm = 0
        for name, command in (("round", ranking(snapshot, seeds, folder / "round")), ("rounds", rounds)):
            if name == "rounds":
                command = [*rounds, "--output", folder / "rounds", "--max-urls", "1", "--quiet"]
            runs = [_command(*command) for _run in range(2)]
            errors = [run.communicate(timeout=_PATIENCE_SECONDS)[1] for run in runs]
            statuses = sorted(run.returncode for run in runs)
            refused += statuses.count(2)
            harm += statuses[0] != 0 or statuses[1] not in (0, 2) or any("Traceback" in error for error in errors)
        return {"refused": refused, "harm": harm}

    return attack


def _marked(mark: str) -> list[int]:
    """Processes that have a word in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def orphans(share: float, folder: Path) -> Attack:
    """A command with two workers, each with its reader of large pages, that is killed."""
    body = b"<a href=/x>words</a>" * max(30_000, int(200_000 * share))
    for name in ("a", "b"):
        records = b"".join(warc(http(body), f"{HOST}/{name}{number}") for number in range(40))
        (folder / f"{name}.warc").write_bytes(records)
    mark = f"SEMRANK_MARK={uuid.uuid4().hex}"

    def attack() -> Mapping[str, int]:
        name, value = mark.split("=")
        command = ["ingest", "--warc", f"{folder}/*.warc", "--output", folder / "snapshot", "--workers", "2"]
        process = _command(*command, **{name: value})
        end = time.monotonic() + _PATIENCE_SECONDS
        while len(_marked(mark)) < 4 and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        most = len(_marked(mark))
        process.kill()
        _out, error = process.communicate(timeout=_PATIENCE_SECONDS)
        end = time.monotonic() + 30
        while _marked(mark) and time.monotonic() < end:
            time.sleep(0.05)
        return {"processes": most, "harm": len(_marked(mark)) + error.count("Traceback")}

    return attack


@dataclass(frozen=True)
class Kind:
    """An attack by what it is; `prepare` makes it, at a share of the full size, in a folder."""

    text: str
    prepare: Callable[[float, Path], Attack]


ATTACKS: dict[str, Kind] = {
    "foreign-files": Kind("outputs with files of somebody else", foreign_files),
    "own-inputs": Kind("outputs that hold what is read, --overwrite", own_inputs),
    "accounts": Kind("damaged lines of logs with accounts and cookies", accounts),
    "escapes": Kind("anchors with terminal escapes, explained", escapes),
    "digests": Kind("digests and lengths that are none, downloaded", digests_and_lengths),
    "rebound": Kind("a redirect to a name that is bound anew", rebound_names),
    "passwords": Kind("a redirect that .netrc has a default for", passwords),
    "secrets": Kind("a token in an address, a key in a file", secrets),
    "foreign-round": Kind("a round with scripts in all texts, reported", foreign_round),
    "replaced": Kind("a snapshot replaced while it is ranked", replaced_snapshot),
    "private": Kind("links to the crawler's own network, exported", private_targets),
    "weak-ids": Kind("two URLs with one id, ranked", weak_ids),
    "many-clicks": Kind("clicks counted a thousand million times, ranked", many_clicks),
    "option-files": Kind("options with names of 500,000 parts", option_files),
    "no-locks": Kind("a file system without locks", no_locks),
    "interrupt": Kind("Ctrl-C inside a page that takes long", interrupts),
    "full-disk": Kind("a disk that is full, a folder that is read-only", full_disks),
    "two-at-once": Kind("two rank, two rounds into one folder", two_at_once),
    "orphans": Kind("a command with two workers, killed", orphans),
}
"""The attacks by name."""
