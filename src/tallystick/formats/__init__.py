"""Registry of weight formats: one file for each, with the functions `sniff` and `read`.

`sniff(file)` says by its first bytes whether an open file is of the format. `read(file)` returns
the facts of its tensors. A file's name selects the formats that it may be of. If several formats
share an ending, the first one whose `sniff` accepts the file reads it.
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
    """The functions in the file of a format."""

    def sniff(self, file: OpenFile) -> bool:
        """Return whether a file is of this format."""

    def read(self, file: OpenFile) -> WeightsFile:
        """Return the facts of a file's tensors.

        Raises:
            BadInput: if it is not of the format, or broken.
        """


class Format(NamedTuple):
    """A format and the names of its files; its reader is imported only when needed."""

    name: str  # of its module in this folder
    endings: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # whole file names

    def has(self, name: str) -> bool:
        """Return whether a file with this name may be of this format."""
        return name in self.names or name.endswith(self.endings)

    @property
    def reader(self) -> Reader:
        """Its reader, imported on first use."""
        return _reader(self.name)


@cache
def _reader(name: str) -> Reader:
    return cast("Reader", import_module(f"{__name__}.{name}"))


SAFETENSORS = Format("safetensors", (".safetensors",))
OTHERS = (
    Format("torch_save", (".bin", ".pt", ".pth", ".ckpt")),
    Format("openvino", (".bin",)),
    Format("llama2c", (".bin",)),  # last of the .bin formats: its header has no magic number
    Format("gguf", (".gguf",)),
    Format("npz", (".npz",)),
    Format("distributed", names=(".metadata",)),
)
FORMATS = (SAFETENSORS, *OTHERS)
INDEXES = (".safetensors.index.json", ".bin.index.json")
NOT_READ = (".h5", ".msgpack", ".onnx", ".xml")  # weight formats without a reader; .xml is OpenVINO's


def is_weights(name: str) -> bool:
    """Return whether a file with this name holds weights, or is an index of weight files."""
    return name.endswith(INDEXES) or any(one.has(name) for one in FORMATS)


def read_weights(path: Location, among: Sequence[Format] = FORMATS) -> WeightsFile:
    """Read one weight file, opened once.

    Args:
        path: the file.
        among: candidate formats, selected by the file's name and then by its first bytes.

    Raises:
        BadInput: if the file is of none of these formats, or broken.
    """
    first, *others = [one for one in among if one.has(path.name)] or among[:1]  # an index may give its shards any names
    with opened(path) as file:
        for other in others:
            if first.reader.sniff(file):
                break
            first = other
        return first.reader.read(file)
