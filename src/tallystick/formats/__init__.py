"""The formats of weights: one registry, and one file for each with two functions.

`sniff(file)` says whether an open file is of the format, by its first bytes. `read(file)` gives what it says of its
tensors. A file's name says which formats it may be of; where several end alike, the first that knows its bytes reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from tallystick.files.local import OpenFile, opened
from tallystick.files.remote import Location
from tallystick.formats.weights_file import WeightsFile


class Reader(Protocol):
    """What the file of a format has."""

    def sniff(self, file: OpenFile) -> bool:
        """Whether a file is of this format."""

    def read(self, file: OpenFile) -> WeightsFile:
        """What it holds; `BadInput` for what is not of the format, or broken."""


class Format(NamedTuple):
    """A format by the names of its files, so that no reader is imported before there is something to read."""

    name: str  # of its file in this folder
    endings: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # whole ones

    def has(self, name: str) -> bool:
        """Whether a file of that name may be of this format."""
        return name in self.names or name.endswith(self.endings)

    @property
    def reader(self) -> Reader:
        """Its functions, imported."""
        return _reader(self.name)


@cache
def _reader(name: str) -> Reader:
    return cast("Reader", import_module(f"{__name__}.{name}"))


SAFETENSORS = Format("safetensors", (".safetensors",))
OTHERS = (
    Format("torch_save", (".bin", ".pt", ".pth", ".ckpt")),
    Format("openvino", (".bin",)),
    Format("llama2c", (".bin",)),  # the last of those that end so: it begins with a size, as anything may
    Format("gguf", (".gguf",)),
    Format("npz", (".npz",)),
    Format("distributed", names=(".metadata",)),
)
FORMATS = (SAFETENSORS, *OTHERS)
INDEXES = (".safetensors.index.json", ".bin.index.json")
NOT_READ = (".h5", ".msgpack", ".onnx", ".xml")  # weights in formats without a reader; .xml is OpenVINO's


def is_weights(name: str) -> bool:
    """Whether a file of that name holds weights, or is an index of such files."""
    return name.endswith(INDEXES) or any(one.has(name) for one in FORMATS)


def read_weights(path: Location, among: Sequence[Format] = FORMATS) -> WeightsFile:
    """Read one file of weights, opened once.

    Args:
        path: the file.
        among: the formats to choose from, by the file's name and then by its first bytes.

    Raises:
        BadInput: for a file of none of these formats, and for a broken one.
    """
    first, *others = [one for one in among if one.has(path.name)] or among[:1]  # an index may call its shards anything
    with opened(path) as file:
        for other in others:
            if first.reader.sniff(file):
                break
            first = other
        return first.reader.read(file)
