"""What Beam's filesystems of object stores lack: conditional writes, and S3 clients that are made once.

An object is created only if its name is free. The clients of object stores are optional packages, so they are imported
where they are used.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Sequence
from typing import Any

from apache_beam.io.aws.clients.s3 import boto3_client
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

_S3_REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict")
"""Codes with which S3 refuses: the object is there, or another writer was faster while this one uploaded."""


def use_options(arguments: Sequence[str]) -> None:
    """Passes a command's options to Beam's filesystems; that of S3 requires its own."""
    FileSystems.set_options(PipelineOptions(list(arguments)))


def _s3_client(options: Any) -> Any:
    """A client of Beam's for one stream; all of a process with the same options share boto3's, which serves threads."""
    if isinstance(options, PipelineOptions):
        options = options.view_as(S3Options).get_all_options()
    known = {name: value for name, value in options.items() if name.startswith("s3_")}
    # After a fork, two processes must not use one connection.
    return copy.copy(_unused_s3_client(os.getpid(), tuple(sorted(known.items()))))


@functools.cache
def _unused_s3_client(_process: int, options: tuple[tuple[str, Any], ...]) -> Any:
    return _MakeClient(dict(options))


# Beam makes a client for each file that it opens, lists, or deletes, and boto3 reads its description of all services
# for each of them, which takes a third of a second.
_MakeClient = boto3_client.Client
boto3_client.Client = _s3_client  # type: ignore[assignment, misc]


def create_object(path: str, content: bytes) -> bool:
    """Writes an object on the condition that none has its name: of two writers one succeeds, the other gets False.

    If a store has no such condition (neither `gs://` nor `s3://`), the last writer wins.
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
    from apache_beam.io.aws.s3io import parse_s3_path
    from botocore.exceptions import ClientError

    bucket, name = parse_s3_path(path)
    # The client that Beam itself makes from its options; Beam's own writer has no conditional writes.
    store: Any = FileSystems.get_filesystem(path)
    client = boto3_client.Client(store._options).client
    try:
        client.put_object(Bucket=bucket, Key=name, Body=content, ContentType="application/json", IfNoneMatch="*")
    except ClientError as cause:
        if cause.response["Error"]["Code"] in _S3_REFUSALS:
            return False
        raise
    return True
