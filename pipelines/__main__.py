"""Lets `python -m pipelines` stand for the installed `semrank` command."""

from pipelines.cli import console

console()
