"""Hosts and stores on this machine that serve a small checkpoint: fixtures of the tests of remote
sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import tallystick
from checkpoints import gpt2_published, write_config, write_sharded
from host import Handler, Host, serving
from tallystick.cli.main import main
from tallystick.files import http

CONFIG = {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64, "n_embd": 128, "n_layer": 2, "n_head": 4}


SHAPES = gpt2_published(layers=2, width=128, vocabulary=1000, positions=64)


# By hand: (1000 + 64) × 128, two blocks of 12 × 128² + 13 × 128, and a last norm of 2 × 128.
PARAMETERS = 136_192 + 2 * (196_608 + 1_664) + 256


FIRST = 65_536  # bytes of the first piece


@pytest.fixture(autouse=True)
def directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as one:
        yield one


@pytest.fixture
def hub(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A hub that points to another host for its files, as the real one does."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", host.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    return host


@pytest.fixture
def storage() -> Iterator[Host]:
    with serving() as one:
        yield one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sharded GPT-2 with its config."""
    names = list(SHAPES)
    half = len(names) // 2
    write_sharded(
        tmp_path, {name: SHAPES[name] for name in names[:half]}, {name: SHAPES[name] for name in names[half:]}
    )
    write_config(tmp_path, CONFIG)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a count of a source is refused with."""
    assert main(["count", source]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tallystick: ")
    assert said.err.count("\n") == 1
    return said.err.strip().removeprefix("tallystick: ")


class Wire:
    """A host without sockets, whose handler answers at once; one of its answers can be another."""

    def __init__(self) -> None:
        self.host = Host("http://host")
        self.handler = type("Bound", (Handler,), {"host": self.host})
        self.said = cache(self._said)
        self.asked: list[bytes] = []
        self.told: list[bytes] = []  # what the handler answered since an input was taken
        self.place, self.other = -1, b""

    def take(self, changed: bytes) -> None:
        """An input: the place of an answer, and what is answered there."""
        self.asked, self.told, self.place, self.other = [], [], changed[0], changed[1:]

    def answer(self, asked: bytes) -> bytes:
        self.asked.append(asked)
        self.told.append(self.said(asked))
        return self.other if len(self.told) == self.place + 1 else self.told[-1]

    def _said(self, asked: bytes) -> bytes:
        mouth = Mouth(asked)
        self.handler(mouth, ("host", 0), None)
        return mouth.said


class Mouth:
    """What a handler takes for its socket."""

    def __init__(self, asked: bytes) -> None:
        self.asked, self.said = asked, b""

    def makefile(self, *_: object) -> BytesIO:
        return BytesIO(self.asked)

    def sendall(self, content: bytes) -> None:
        self.said += content


class Ear(HTTPConnection):
    """A connection, and what it takes for its socket."""

    wire: Wire

    def connect(self) -> None:
        self.sock, self.asked = self, b""

    def sendall(self, content: bytes) -> None:
        self.asked += content

    def makefile(self, *_: object) -> BytesIO:
        return BytesIO(self.wire.answer(self.asked))

    def close(self) -> None:
        self.sock = None


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A hub, all that it points to, and the web."""
    from huggingface_hub import constants

    wire = Wire()
    ear = type("Bound", (Ear,), {"wire": wire})

    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr(http, "HTTPConnection", ear)
    monkeypatch.setattr(http, "HTTPSConnection", ear)  # nothing is asked beyond this process
    monkeypatch.setattr(constants, "ENDPOINT", wire.host.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    return wire


class Bucket(MemoryFileSystem):
    """A store that stands for S3: in memory, and it knows who may read."""

    protocol = "s3"
    store: dict[str, Any] = {}  # noqa: RUF012 - as its base has it
    pseudo_dirs = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.removeprefix("s3://"))

    def info(self, path: str, **more: Any) -> dict[str, Any]:
        if "secret" in path:
            raise PermissionError("Access Denied\nRequest: 1")
        told = super().info(path, **more)
        return {**told, "ETag": str(told.get("created"))}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setattr(Bucket, "store", {})
    monkeypatch.setitem(_registry, "s3", Bucket)
    return Bucket()


def same(one: tallystick.Ledger, other: tallystick.Ledger) -> None:
    assert one.rolled == other.rolled
    assert one.totals == other.totals
    assert one.mismatches == other.mismatches
