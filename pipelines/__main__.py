"""Lets `python -m pipelines` stand for the installed `semrank` command."""

from pipelines.cli import main

raise SystemExit(main())
