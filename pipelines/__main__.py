"""Lets `python -m pipelines` stand for the installed `semrank` command."""

from semrank.pipelines.cli import console

console()
