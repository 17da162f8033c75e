"""Object stores on this machine: emulators of `gs://` and `s3://`, each with a bucket of the same name.

Needs the extras `gcp`, `aws` and `cloud-test`; what is missing is skipped. Not in the default suite, since a process
takes seconds to import those packages; `python -m pytest tests/cloud` runs it.
"""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "bucket"
LIMITS = ("--max-urls", "12", "--profile", "paper-2013")


def run(store: Store | None, folder: Path, *arguments: str, expected: int = 0) -> str:
    """Standard output and error of a command that finds the store through its environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(store.environment if store is not None else {})}
    command = [sys.executable, "-m", "semrank.pipelines", *arguments, "--quiet"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == expected, done.stderr
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Store:
    """An emulated object store with one bucket.

    Attributes:
        scheme: `gs` or `s3`.
        endpoint: its address.
        environment: variables by which Google's and Amazon's libraries find it.
    """

    scheme: str
    endpoint: str
    environment: dict[str, str]

    def path(self, name: str) -> str:
        return f"{self.scheme}://{BUCKET}/{name}"

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Content of every object by its name below the prefix."""
        with self.reached():
            if self.scheme == "gs":
                from google.cloud import storage

                client = storage.Client.create_anonymous_client()
                found = {blob.name: blob.download_as_bytes() for blob in client.list_blobs(BUCKET, prefix=prefix)}
            else:
                import boto3

                bucket = boto3.resource("s3").Bucket(BUCKET)
                found = {item.key: item.get()["Body"].read() for item in bucket.objects.filter(Prefix=prefix)}
        return {name.removeprefix(prefix): content for name, content in found.items()}

    @contextmanager
    def reached(self) -> Iterator[None]:
        """This process finds the store while the block runs."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            yield


class _Tokens(http.server.BaseHTTPRequestHandler):
    """Gives an access token to whoever asks, as Google's service for service accounts does for those it knows."""

    def do_POST(self) -> None:
        token = json.dumps({"access_token": "none", "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(token)))
        self.end_headers()
        self.wfile.write(token)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def service_account(folder: Path) -> Iterator[Path]:
    """Key file of a service account; without any credentials every process looks for some for 20 s."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Tokens) as tokens:
        threading.Thread(target=tokens.serve_forever, daemon=True).start()
        account = {
            "type": "service_account",
            "client_email": "test@semrank-test.example",
            "private_key": key.private_bytes(*kinds).decode(),
            "token_uri": f"http://127.0.0.1:{tokens.server_port}/token",
        }
        (folder / "key.json").write_text(json.dumps(account), encoding="utf-8")
        try:
            yield folder / "key.json"
        finally:
            tokens.shutdown()


@contextmanager
def conditions(handlers: Any) -> Iterator[None]:
    """Adds what the emulator lacks: an upload that asks for generation 0 is refused where the object is there."""
    upload, one_at_a_time = handlers._multipart_upload, threading.Lock()

    def conditional(request: Any, response: Any, storage: Any) -> Any:
        with one_at_a_time:
            if request.query.get("ifGenerationMatch") == ["0"]:
                name = request.query.get("name", [request.data["meta"].get("name")])[0]
                with suppress(handlers.NotFound):
                    storage.get_file_obj(request.params["bucket_name"], name)
                    response.status = http.HTTPStatus.PRECONDITION_FAILED
                    return None
            return upload(request, response, storage)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handlers, "_multipart_upload", conditional)
        yield


@contextmanager
def google(folder: Path) -> Iterator[Store]:
    server = pytest.importorskip("gcp_storage_emulator.server", reason="needs the extra cloud-test")
    pytest.importorskip("google.cloud.storage", reason="needs the extra gcp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    emulator = server.create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    emulator.start()
    endpoint = f"http://127.0.0.1:{port}"
    try:
        with service_account(folder) as key, conditions(server.objects):
            account = {"GOOGLE_CLOUD_PROJECT": "semrank-test", "GOOGLE_APPLICATION_CREDENTIALS": str(key)}
            yield Store("gs", endpoint, {"STORAGE_EMULATOR_HOST": endpoint, **account})
    finally:
        emulator.stop()


@contextmanager
def amazon() -> Iterator[Store]:
    moto = pytest.importorskip("moto.server", reason="needs the extra cloud-test")
    boto3 = pytest.importorskip("boto3", reason="needs the extra aws")
    emulator = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    emulator.start()
    endpoint = "http://{}:{}".format(*emulator.get_host_and_port())
    keys = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    store = Store("s3", endpoint, {"AWS_ENDPOINT_URL": endpoint, **keys})
    try:
        with store.reached():
            boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield store
    finally:
        emulator.stop()


@dataclass(frozen=True)
class Disk:
    """A web, its snapshot and two rounds on a disk."""

    web: Path
    folder: Path


def run_chain(store: Store | None, web: Path, folder: Path, place: str) -> None:
    """Ingests the web and ranks two rounds into folders of a place."""
    run(
        store,
        folder,
        "ingest",
        "--warc",
        f"{web}/warc/*",
        "--clicks",
        f"{web}/clicks/*",
        "--output",
        f"{place}/snapshot",
    )
    rank = ("rank", "--snapshot", f"{place}/snapshot", *LIMITS)
    run(store, folder, *rank, "--seeds", f"{web}/seeds.txt", "--output", f"{place}/first")
    run(store, folder, *rank, "--previous", f"{place}/first", "--output", f"{place}/second")


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    folder = tmp_path_factory.mktemp("disk")
    run(None, folder, "sample", "--output", "web")
    run_chain(None, folder / "web", folder, str(folder / "chain"))
    return Disk(folder / "web", folder / "chain")


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with google(tmp_path_factory.mktemp("account")) as store:
        yield store


@pytest.fixture(scope="session")
def s3() -> Iterator[Store]:
    with amazon() as store:
        yield store


@pytest.fixture(params=["gcs", "s3"])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found
