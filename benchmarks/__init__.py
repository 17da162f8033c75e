"""Measurements against peers: `python -m benchmarks [NAME ...] [--output DIR] [--quick]`.

Every module here with a function `run` is a benchmark. `run` gives `harness.Result`s, and takes `quick: bool` where the
benchmark has a small size, too.
"""
