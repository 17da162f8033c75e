"""Figures of a finished run in the text format of Prometheus, for a node exporter's text-file collector."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from semrank.pipelines import __version__
from semrank.pipelines.crawl import round_figures
from semrank.schemas.errors import InputError
from semrank.transforms.streams.quotes import quote_head

_BEGIN = b"# HELP semrank_"


def check_metrics(path: str) -> None:
    """Refuses a file in a missing folder, and one that holds something else than figures of a run.

    Raises:
        InputError: it is unusable, or can't be read.
    """
    if not Path(path).parent.is_dir():
        raise InputError(f"--metrics {path}: its folder is missing, expected an existing one")
    if not Path(path).exists():
        return
    try:
        with Path(path).open("rb") as stream:
            found = stream.read(len(_BEGIN))
    except OSError as cause:
        raise InputError(f"--metrics {path}: can't be read: {cause.strerror}") from cause
    if found not in (b"", _BEGIN):
        begin = quote_head(found)
        raise InputError(f"--metrics {path}: begins with {begin}, expected a new file, or one that --metrics wrote")


def write_metrics(path: str, manifests: list[dict[str, Any]]) -> None:
    """Writes the figures of the last of some finished folders; the file appears whole or not at all.

    Args:
        path: a local file, which is replaced.
        manifests: manifests of one kind with their `folder`, the latest last.

    Raises:
        InputError: the file can't be written.
    """
    registry = CollectorRegistry()
    _gauge(registry, "build_info", "Version of semrank; the value is 1.", {"version": __version__}, 1)
    _gauge(registry, "last_success_timestamp_seconds", "When the last run ended.", {}, time.time())
    if manifests:
        _of_manifest(registry, manifests[-1])
    try:
        write_to_textfile(path, registry)
    except OSError as cause:
        folder = Path(path).parent
        raise InputError(f"--metrics {path}: can't be written in {folder}: {cause.strerror}") from cause


def _of_manifest(registry: CollectorRegistry, manifest: dict[str, Any]) -> None:
    kind = str(manifest.get("kind", ""))
    _gauge(registry, "run_seconds", "Duration of the run.", {"kind": kind}, manifest.get("seconds", 0.0))
    rows = Gauge("semrank_rows", "Rows of each table.", ["kind", "table"], registry=registry)
    for table, count in manifest.get("rows", {}).items():
        rows.labels(kind, table).set(count)
    rejected = Gauge("semrank_rejected", "Rejects by reason.", ["kind", "reason"], registry=registry)
    for reason, count in manifest.get("rejected", {}).items():
        rejected.labels(kind, reason).set(count)
    stages = Gauge("semrank_stage_seconds", "Seconds spent in each stage.", ["kind", "stage"], registry=registry)
    for stage, figures in manifest.get("stages", {}).items():
        stages.labels(kind, stage).set(figures["seconds"])
    if kind == "round":
        _of_round(registry, str(manifest["folder"]))


def _of_round(registry: CollectorRegistry, folder: str) -> None:
    figures = round_figures(folder)
    _gauge(registry, "urls_ranked", "URLs of the frontier.", {}, figures.ranked)
    _gauge(registry, "urls_harvested", "URLs that the crawl chose so far.", {}, figures.harvested)
    _gauge(registry, "hosts_selected", "Hosts of the selected URLs.", {}, figures.hosts)
    if figures.mean_score is not None:
        _gauge(registry, "selected_score_mean", "Mean score of the selected URLs.", {}, figures.mean_score)
    if figures.relevance is not None:
        text = "Mean relevance of the pages fetched since the round before."
        _gauge(registry, "harvest_relevance", text, {}, figures.relevance)
    selected = Gauge("semrank_urls_selected", "Selected URLs, new and known ones.", ["state"], registry=registry)
    selected.labels("new").set(figures.new)
    selected.labels("known").set(figures.known)
    held = Gauge("semrank_urls_held_back", "URLs that are not selected, by reason.", ["reason"], registry=registry)
    for reason, count in figures.held_back.items():
        held.labels(reason).set(count)


def _gauge(registry: CollectorRegistry, name: str, text: str, labels: dict[str, str], value: float) -> None:
    gauge = Gauge(f"semrank_{name}", text, list(labels), registry=registry)
    (gauge.labels(**labels) if labels else gauge).set(value)
