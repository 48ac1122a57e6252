"""Contents of a weight file, independent of its format."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tallystick.errors import BadInput, quoted
from tallystick.files.remote import Location

NOWHERE = -1  # start and end of a tensor that is not stored as one piece; its values are not compared


LARGEST_TENSOR = 2**63 - 1  # most elements of a torch tensor
MOST_DIMENSIONS = 1000


class StoredTensor(NamedTuple):
    """A tensor as a header states it; `start` and `end` are byte offsets in the tensor data."""

    name: str
    dtype: str  # torch's name
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """A whole header: its tensors in the order of their data, and the text in `__metadata__`."""

    tensors: list[StoredTensor]
    metadata: dict[str, str]
    data: int = 0  # byte offset of the tensor data in the file


class Weight(NamedTuple):
    """A weight as the model uses it, unpacked."""

    shape: tuple[int, ...]
    dtype: str
    scheme: str = ""  # who packed it; "" if the format itself did, such as a sparse tensor of torch
    stored: int = 0  # elements of the tensor that holds its values
    bytes: int = 0  # bytes of that tensor

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class SharedStorage(NamedTuple):
    """A tensor that shares memory with others."""

    owner: str  # name of the first tensor in this memory
    new: int  # elements that no earlier tensor holds
    whole: bool  # whether it is exactly the owner's tensor under another name


class WeightsFile(NamedTuple):
    """Tensors of a checkpoint, and other facts from its files."""

    kind: str  # the format, as the ledger's kind
    files: Sequence[tuple[Location, Header]]
    sharing: Mapping[str, SharedStorage] = {}  # every name that shares its memory with another
    buffers: frozenset[str] = frozenset()  # names that the format itself declares as buffers
    config: Mapping[str, Any] | None = None  # the model's config, if the file holds it
    architecture: str | None = None  # if the file names it
    own_names: bool = False  # tensor names are the format's own, which no config describes
    role: Callable[[str], str] | None = None  # returns the role of a tensor, if the format's names state it
    experts_used: Fraction | None = None  # share of experts that one token uses, if the file states it
    notes: tuple[str, ...] = ()
    weights: Mapping[str, Weight] = {}  # weights stored in another shape, such as the values of a sparse one
    auxiliary: frozenset[str] = frozenset()  # names of auxiliary tensors, such as indices and scales
    stated: Mapping[str, Any] = {}  # totals that the index of a checkpoint states

    @property
    def tensors(self) -> list[StoredTensor]:
        """All stored tensors, file after file."""
        return [tensor for _, header in self.files for tensor in header.tensors]


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise `BadInput` for a shape that no tensor can have; the caller adds the tensor's name."""
    if len(shape) > MOST_DIMENSIONS:
        raise BadInput(f"more than {MOST_DIMENSIONS:,} dimensions", code="too-large")
    elements = 1
    for size in shape:
        elements *= size or 1  # a zero does not excuse other sizes that are too large
        if elements > LARGEST_TENSOR:
            raise BadInput(f"the shape {quoted(shape)}: more than 2^63 elements", code="too-large")
