"""Conditional writes to object stores, which Beam's filesystems lack: an object is created only if its name is free.

The clients of object stores are optional packages, so they are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

_S3_REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict")
"""Codes with which S3 refuses: the object is there, or another writer was faster while this one uploaded."""


def use_options(arguments: Sequence[str]) -> None:
    """Passes a command's options to Beam's filesystems; that of S3 requires its own."""
    FileSystems.set_options(PipelineOptions(list(arguments)))


def create_object(path: str, content: bytes) -> bool:
    """Writes an object on the condition that none has its name: of two writers one succeeds, the other gets False.

    Where a store knows no such condition (neither `gs://` nor `s3://`), the last writer wins.
    """
    if path.startswith("gs://"):
        return _create_in_gcs(path, content)
    if path.startswith("s3://"):
        return _create_in_s3(path, content)
    with FileSystems.create(path, "application/json") as stream:
        stream.write(content)
    return True


def _create_in_gcs(path: str, content: bytes) -> bool:
    from apache_beam.io.gcp.gcsio import GcsIO, parse_gcs_path
    from google.api_core.exceptions import PreconditionFailed

    bucket, name = parse_gcs_path(path)
    blob = GcsIO().client.bucket(bucket).blob(name)
    try:
        blob.upload_from_string(content, content_type="application/json", if_generation_match=0)
    except PreconditionFailed:
        return False
    return True


def _create_in_s3(path: str, content: bytes) -> bool:
    from apache_beam.io.aws.clients.s3.boto3_client import Client
    from apache_beam.io.aws.s3io import parse_s3_path
    from botocore.exceptions import ClientError

    bucket, name = parse_s3_path(path)
    # The client that Beam itself makes from its options; Beam's own writer has no conditional writes.
    store: Any = FileSystems.get_filesystem(path)
    client = Client(store._options).client
    try:
        client.put_object(Bucket=bucket, Key=name, Body=content, ContentType="application/json", IfNoneMatch="*")
    except ClientError as cause:
        if cause.response["Error"]["Code"] in _S3_REFUSALS:
            return False
        raise
    return True
