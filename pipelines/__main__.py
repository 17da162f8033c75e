"""Lets `python -m semrank.pipelines` stand for the installed `semrank` command."""

from semrank.pipelines.cli import console

console()
