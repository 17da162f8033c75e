"""Writes the sample web's WARC files, click log, topics and seeds into a folder, or serves its pages to a crawler.

With --serve, the address is an HTTP proxy: a crawler that uses it gets all pages of the sample under their own URLs,
also those that are in no WARC file. Only programs on this machine can reach it.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from semrank.pipelines.answers import answer, counted
from semrank.pipelines.options import option, read_options
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.samples.sample_web import sample_files

_OWN_FILES = (
    *("warc/sample-*.warc.gz", "warc/.sample-*.warc.gz.*", "clicks/clicks-*.parquet", "clicks/.clicks-*.parquet.*"),
    *("topics.parquet", "seeds.txt"),
)
"""What an earlier sample left in the folder, a killed one too; `--overwrite` replaces nothing else."""

_LAST_PORT = 65_535


EXAMPLES = """\
examples:
  semrank sample --output web
  semrank sample --serve 8080 &
  curl --insecure --proxy http://127.0.0.1:8080 https://birds.example/
"""


@dataclass(frozen=True)
class SampleOptions:
    """Whether the sample is written or served, and where."""

    output: str | None = option(
        None,
        "folder for warc/, clicks/, topics.parquet and seeds.txt",
        metavar="DIR",
        exclusive="what",
        needed=True,
    )
    serve: int | None = option(
        None,
        "serve the pages as an HTTP proxy on this port (0: any free one) until interrupted",
        metavar="PORT",
        low=0,
        high=_LAST_PORT,
        exclusive="what",
        needed=True,
    )
    overwrite: bool = option(False, "replace a sample in the folder; other files there are kept", plain=True)


OPTIONS = (SampleOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Write or serve the sample.

    Raises:
        InputError: the port can't be used, or the output is a file, or a folder that holds
            something and `--overwrite` was not given.
    """
    own = read_options(SampleOptions, arguments)
    if own.output is None:
        return _serve(own.serve or 0, arguments, overwrite=own.overwrite)
    output = own.output
    earlier = _earlier_sample(output, overwrite=own.overwrite)
    size = 0
    written = set()
    for name, content in sample_files():
        path = files.join(output, *name.split("/"))
        files.write_bytes(path, content)
        written.add(path)
        size += len(content)
    for path in earlier - written:
        files.delete(path)
    count = len(written)
    answer(
        arguments,
        f"{output}: {counted(count, 'file')}, {counted(size, 'byte')}",
        {"folder": output, "files": count, "bytes": size},
    )
    return 0


def _serve(port: int, arguments: argparse.Namespace, *, overwrite: bool) -> int:
    """Serve the sample until the user interrupts it."""
    # Certificates are only needed for --serve.
    try:
        from semrank.pipelines.sample_server import SampleServer
    except ModuleNotFoundError as cause:
        raise InputError(f"--serve: {cause.name} is missing, which the extra `crawlers` installs") from cause

    if overwrite:
        raise InputError("--overwrite: found --serve, expected --output")
    try:
        server = SampleServer(port)
    except OSError as cause:
        raise InputError(f"--serve {port}: can't listen on this port: {cause.strerror}") from cause
    with server:
        pages, hosts = len(server.pages), len(server.hosts())
        text = f"{server.url}: HTTP proxy for {pages} URLs on {hosts} hosts"
        answer(arguments, text, {"url": server.url, "pages": pages, "hosts": hosts})
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _earlier_sample(output: str, *, overwrite: bool) -> set[str]:
    """Hold the output to the rule of the fresh folder; returns the files of a sample that may be replaced."""
    if files.is_local(output) and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"--output {output}: is a file, expected a folder")
    if overwrite:
        found = {
            pattern: {str(file.path) for file in files.match(files.join(output, *pattern.split("/")))}
            for pattern in _OWN_FILES
        }
        # Files that are called seeds.txt or topics.parquet may be anybody's; a sample has its WARC files, too.
        if found[_OWN_FILES[0]] or found[_OWN_FILES[1]]:
            return set().union(*found.values())
    if _holds_anything(output):
        raise InputError(
            f"--output {output}: the folder is not empty, expected a new or empty folder "
            "(--overwrite replaces a sample that is in it)"
        )
    return set()


def _holds_anything(folder: str) -> bool:
    if files.is_local(folder):
        return any(not path.is_dir() for path in Path(folder).rglob("*"))
    return files.exists(folder)


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("sample"))
