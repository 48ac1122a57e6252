"""Folders of object stores, from a store in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from fsspec.registry import _registry, known_implementations

from remote_hosts import (
    FIRST,
    PARAMETERS,
    Bucket,
    bucket,
    contents,
    directly,
    folder,
    refused,
    same,
)
from tallystick import BadInput, count
from tallystick.files import http
from tallystick.files.addresses import elsewhere

__all__ = ["bucket", "directly", "folder"]  # fixtures


# -- object stores --------------------------------------------------------------------------------


def test_a_folder_of_a_bucket_is_counted_as_a_folder(bucket: Bucket, folder: Path) -> None:
    for name, content in contents(folder).items():
        bucket.pipe_file(f"/bucket/models/{name}", content)
    same(count("s3://bucket/models"), count(folder))
    assert count("s3://bucket/models/config.json").total == PARAMETERS


def test_what_a_bucket_refuses_is_told(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    bucket.pipe_file("/bucket/secret/config.json", b"{}")
    assert refused("s3://bucket/none/config.json", capsys) == "s3://bucket/none/config.json was not found"
    assert refused("s3://bucket/none", capsys) == "s3://bucket/none was not found"
    said = refused("s3://bucket/secret/config.json", capsys)
    assert said == "s3://bucket/secret/config.json cannot be read with your credentials: Access Denied"


def test_a_file_of_a_bucket_that_is_written_anew_in_between_is_refused(bucket: Bucket) -> None:
    bucket.pipe_file("/bucket/model.gguf", bytes(10 * FIRST))
    file, size = elsewhere("s3://bucket/model.gguf").open()
    assert (file.read(4), size) == (bytes(4), 10 * FIRST)
    bucket.pipe_file("/bucket/model.gguf", bytes(10 * FIRST))
    with pytest.raises(BadInput, match="changed while it was read"):
        file.read(2 * FIRST)


def test_a_store_that_does_not_answer_is_not_waited_for(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def silent(*_: object, timeout: float, **__: object) -> None:
        assert timeout == http.PATIENCE
        raise TimeoutError

    monkeypatch.setattr(Bucket, "info", silent)
    assert refused("s3://bucket/config.json", capsys) == "s3://bucket/config.json: the store did not answer in time"


def test_a_store_without_its_package_says_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(known_implementations, "gs", {"class": "no_gcsfs.Files", "err": "install it"})
    monkeypatch.delitem(_registry, "gs", raising=False)
    assert refused("gs://bucket/model", capsys) == "gs:// needs gcsfs: pip install 'tallystick[stores]'"
