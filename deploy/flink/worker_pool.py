"""Starts workers of the Python SDK when TaskManagers of this machine ask for them.

Beam's own pool listens on all addresses of the machine, and everybody who can connect to a pool can run code there;
this one listens on the loopback address. Beam's pool also identifies workers by ids that each TaskManager counts on
its own, so with two TaskManagers one could stop the other's worker. Here a worker ends when its TaskManager closes the
connection.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from types import FrameType
from typing import Any

import grpc  # type: ignore[import-untyped]
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.runners.worker.sdk_worker import SdkHarness
from apache_beam.utils import thread_pool_executor

HOST = "127.0.0.1"

log = logging.getLogger("worker pool")


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """The service from which TaskManagers request workers."""

    def __init__(self) -> None:
        super().__init__()
        self._workers: list[subprocess.Popen[bytes]] = []

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Starts a worker process that connects to the address in the request."""
        del context
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        address, name = request.control_endpoint.url, request.worker_id
        try:
            worker = subprocess.Popen([sys.executable, "-W", "ignore", __file__, address, name])
        except OSError as cause:
            return beam_fn_api_pb2.StartWorkerResponse(error=f"worker {name}: can't be started: {cause}")
        log.info("worker %s of %s is process %d", name, address, worker.pid)
        self._workers.append(worker)
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Does nothing: the worker ends when its TaskManager closes the connection."""
        del request, context
        return beam_fn_api_pb2.StopWorkerResponse()

    def end(self) -> None:
        """Stops the workers."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait()


def serve(port: int) -> None:
    """Serves on a port of the loopback address until a signal ends the process, and its workers with it."""
    pool = WorkerPool()
    server = grpc.server(thread_pool_executor.shared_unbounded_instance())
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.add_insecure_port(f"{HOST}:{port}")

    def end(signal_number: int, frame: FrameType | None) -> None:
        del signal_number, frame
        pool.end()
        server.stop(None)

    signal.signal(signal.SIGTERM, end)
    server.start()
    server.wait_for_termination()


def work(address: str, name: str) -> None:
    """Runs a worker until the TaskManager closes the connection."""
    # S3's filesystem needs an options object; its settings are in the environment.
    FileSystems.set_options(PipelineOptions([]))
    SdkHarness(address, worker_id=name).run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    if len(sys.argv) == 2:
        serve(int(sys.argv[1]))
    else:
        work(sys.argv[1], sys.argv[2])
