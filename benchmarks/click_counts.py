"""Counting a click log: f(n), clicks by (URL, word), and c-edges, against DuckDB and against Beam row by row.

All begin with the same Parquet files and end with merged counts. Ours writes them as Parquet, as ids; DuckDB keeps them
in memory, as strings; both have to be equal. DuckDB gets one thread, as a worker does. Beam row by row takes its time
from a smaller log, and the rest is extrapolated.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.generate import ClickLog, write_clicks
from benchmarks.harness import Result, compare, interleaved, without_peer
from pipelines.folders import ...
