"""What is said of a cluster before a job is handed to it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import grpc  # type: ignore[import-untyped]
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2_grpc

from semrank.pipelines import cluster
from semrank.pipelines.cluster import ClusterCheck, is_remote, path_for_workers
from semrank.pipelines.runtime import _worker_error, beam_options, run_pipeline
from semrank.schemas.errors import InputError


@contextmanager
def flink_with(total: int, free: int) -> Iterator[str]:
    """Flink's REST address, as far as its overview goes."""

    class Overview(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"slots-total": total, "slots-available": free}).encode()
            self.send_response(200 if self.path == "/overview" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Overview) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def check(*arguments: str) -> None:
    ClusterCheck()(PipelineOptions(list(arguments)))


def test_nobody_at_the_job_endpoint(closed_port: int) -> None:
    address = f"127.0.0.1:{closed_port}"
    with pytest.raises(InputError, match=f"^--job_endpoint {address}: no answer .*, expected a Beam job server$"):
        check(f"--job_endpoint={address}")


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":8099", "localhost:http"])
def test_endpoint_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match=f"^--job_endpoint: found '{address}', expected HOST:PORT of a Beam job"):
        check(f"--job_endpoint={address}")


def test_portable_runner_without_an_endpoint() -> None:
    with pytest.raises(InputError, match=r"^--runner PortableRunner: found no --job_endpoint, expected HOST:PORT"):
        check("--runner=PortableRunner")


def test_another_program_at_the_job_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that answers in another language, and one that takes connections and says nothing."""
    monkeypatch.setattr(cluster, "JOB_SERVER_SECONDS", 2.0)
    with flink_with(1, 1) as address, pytest.raises(InputError, match=f"^--job_endpoint {address}: does not answer as"):
        check(f"--job_endpoint={address}")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=f"^--job_endpoint {address}: does not answer as a Beam job server does"):
            check(f"--job_endpoint={address}")


def test_job_servers_that_do_not_list_their_jobs_are_taken() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    beam_job_api_pb2_grpc.add_JobServiceServicer_to_server(beam_job_api_pb2_grpc.JobServiceServicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        cluster._check_job_server(f"127.0.0.1:{port}")
    finally:
        server.stop(None)


def test_unknown_runner() -> None:
    for name, meant in (("NoSuchOne", ""), ("DirctRunner", r" \(did you mean DirectRunner\?\)")):
        with pytest.raises(InputError, match=f"^--runner: found '{name}'{meant}, expected one of LocalRunner, "):
            run_pipeline(beam_options([f"--runner={name}"]), lambda _: None)
    with pytest.raises(InputError, match=r"^--runner no\.SuchRunner: can't be used: No module named 'no'"):
        run_pipeline(beam_options(["--runner=no.SuchRunner"]), lambda _: None)


def test_nobody_at_the_master(closed_port: int) -> None:
    with pytest.raises(InputError, match=f"^--flink_master 127.0.0.1:{closed_port}: .*expected Flink's REST address$"):
        check(f"--flink_master=127.0.0.1:{closed_port}")


def test_too_few_slots() -> None:
    with flink_with(4, 4) as address:
        check(f"--flink_master={address}", "--parallelism=4")
        check(f"--flink_master=http://{address}/", "--parallelism=4")
        with pytest.raises(InputError, match=f"^--parallelism 5: found 4 slots at {address}, expected at least 5"):
            check(f"--flink_master={address}", "--parallelism=5")


def test_taken_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SLOT_SECONDS", 0.0)
    with flink_with(4, 1) as address:
        check(f"--flink_master={address}")
        with pytest.raises(
            RuntimeError, match=rf"^1 of the 4 slots at {address} are free after 0 s, expected 2: other"
        ):
            check(f"--flink_master={address}", "--parallelism=2")


def test_not_flink() -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(InputError, match=r"expected Flink's REST address$"):
            check(f"--flink_master=127.0.0.1:{server.server_port}")
        thread.join()


def test_paths_of_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    local, remote = beam_options([]), beam_options(["--runner=PortableRunner", "--job_endpoint=somewhere:8099"])
    embedded = beam_options(["--runner=FlinkRunner", "--flink_master=[local]"])
    assert [is_remote(options) for options in (local, remote, embedded)] == [False, True, False]
    assert path_for_workers(local, "round") == "round"
    assert path_for_workers(remote, "round") == str(tmp_path / "round")
    assert path_for_workers(remote, "/data/round") == "/data/round"
    assert path_for_workers(remote, "gs://bucket/round") == "gs://bucket/round"


def test_lost_job_server() -> None:
    text = (
        "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
        '\tdetails = "Socket closed"\n\tdebug_error_string = "UNKNOWN"\n>'
    )
    assert _worker_error(RuntimeError(text)) == "the job server is lost: Socket closed"
