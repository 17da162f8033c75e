"""`semrank sample`: writes the sample web's WARC files, click log, topics and seeds into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.runtime import beam_options
from schemas.errors import InputError
from transforms.columnar import files
from transforms.sources.sample_web import sample_files

_OWN_FILES = ("warc/sample-*.warc.gz", "clicks/clicks-*.parquet", "topics.parquet", "seeds.txt")
"""What an earlier sample left in the folder; `--overwrite` replaces these and touches nothing else."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder for warc/, clicks/, topics.parquet and seeds.txt"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a sample that is in the folder; other files there stay"
    )


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Write the sample; no pipeline runs, so Beam's options change nothing.

    Raises:
        InputError: an option is unknown, or the output is a file, or a folder that holds something and `--overwrite`
            was not given.
    """
    beam_options(beam_arguments)
    output: str = arguments.output
    _prepare(output, overwrite=arguments.overwrite)
    count = size = 0
    for path, content in sample_files():
        files.write_bytes(files.join(output, *path.split("/")), content)
        count += 1
        size += len(content)
    print(f"{output}: {count} files, {size:,} bytes")
    return 0


def _prepare(output: str, *, overwrite: bool) -> None:
    """Hold the output to the rule of the fresh folder."""
    if files.is_local(output) and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"--output {output}: is a file, expected a folder")
    if overwrite:
        for pattern in _OWN_FILES:
            for found in files.match(files.join(output, *pattern.split("/"))):
                files.delete(found.path)
    elif _holds_anything(output):
        raise InputError(
            f"--output {output}: the folder is not empty, expected a new or empty folder "
            "(--overwrite replaces a sample that is in it)"
        )


def _holds_anything(folder: str) -> bool:
    if files.is_local(folder):
        return Path(folder).is_dir() and any(Path(folder).iterdir())
    return files.exists(folder)


if __name__ == "__main__":
    from pipelines.cli import command_main

    raise SystemExit(command_main("sample"))
