"""Writes the sample web's WARC files, click log, topics and seeds into a folder, or serves its pages to a crawler.

With --serve, a crawler that uses the address as its HTTP proxy gets the sample's pages under the URLs that they have,
also those that are in no WARC file. Only programs on this machine can reach it.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from semrank.pipelines.answers import answer
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.samples.sample_web import sample_files

_OWN_FILES = ("warc/sample-*.warc.gz", "clicks/clicks-*.parquet", "topics.parquet", "seeds.txt")
"""What an earlier sample left in the folder; `--overwrite` replaces these and touches nothing else."""

_LAST_PORT = 65_535


EXAMPLES = """\
examples:
  semrank sample --output web
  semrank sample --serve 8080 &
  curl --insecure --proxy http://127.0.0.1:8080 https://birds.example/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", metavar="DIR", help="folder for warc/, clicks/, topics.parquet and seeds.txt")
    what.add_argument(
        "--serve", type=int, metavar="PORT", help="serve the pages as an HTTP proxy on this port until interrupted"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a sample that is in the folder; other files there stay"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write or serve the sample.

    Raises:
        InputError: the port can't be used, or the output is a file, or a folder that holds
            something and `--overwrite` was not given.
    """
    if arguments.serve is not None:
        return _serve(arguments)
    output: str = arguments.output
    earlier = _earlier_sample(output, overwrite=arguments.overwrite)
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
    answer(arguments, f"{output}: {count} files, {size:,} bytes", {"folder": output, "files": count, "bytes": size})
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    """Serve the sample until the user interrupts it."""
    # Certificates are only needed for --serve.
    try:
        from semrank.pipelines.sample_server import SampleServer
    except ModuleNotFoundError as cause:
        raise InputError(f"--serve: {cause.name} is missing, which the extra `crawlers` installs") from cause

    port: int = arguments.serve
    if arguments.overwrite:
        raise InputError("--overwrite: found --serve, expected --output")
    if not 0 <= port <= _LAST_PORT:
        raise InputError(f"--serve: found {port}, expected a port from 0 (any free one) to {_LAST_PORT}")
    try:
        server = SampleServer(port)
    except OSError as cause:
        raise InputError(f"--serve {port}: can't be listened on: {cause.strerror}") from cause
    with server:
        pages, hosts = len(server.pages), len(server.hosts())
        text = f"{server.url}: HTTP proxy to {pages} URLs on {hosts} hosts"
        answer(arguments, text, {"url": server.url, "pages": pages, "hosts": hosts})
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _earlier_sample(output: str, *, overwrite: bool) -> set[str]:
    """Hold the output to the rule of the fresh folder; gives the files of a sample that may be replaced."""
    if files.is_local(output) and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"--output {output}: is a file, expected a folder")
    if overwrite:
        found = {
            pattern: {str(file.path) for file in files.match(files.join(output, *pattern.split("/")))}
            for pattern in _OWN_FILES
        }
        # Files that are called seeds.txt or topics.parquet may be anybody's; a sample has its WARC files, too.
        if found[_OWN_FILES[0]]:
            return set().union(*found.values())
    if _holds_anything(output):
        raise InputError(
            f"--output {output}: the folder is not empty, expected a new or empty folder "
            "(--overwrite replaces a sample that is in it)"
        )
    return set()


def _holds_anything(folder: str) -> bool:
    if files.is_local(folder):
        return Path(folder).is_dir() and any(Path(folder).iterdir())
    return files.exists(folder)


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("sample"))
