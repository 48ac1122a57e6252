"""What a file of weights holds, whatever its format: the same few facts for all that reads them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tallystick.errors import BadInput, quoted
from tallystick.files.remote import Location

NOWHERE = -1  # where a tensor begins and ends that is not stored in one piece: its values are not compared


LARGEST_TENSOR = 2**63 - 1  # elements that a tensor of torch can have
MOST_DIMENSIONS = 1000


class StoredTensor(NamedTuple):
    """What a header says of one tensor; `start` and `end` are bytes after the header."""

    name: str
    dtype: str  # torch's word
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """A whole header: the tensors in the order of their bytes, and the free text in `__metadata__`."""

    tensors: list[StoredTensor]
    metadata: dict[str, str]
    data: int = 0  # where in the file the tensors' bytes begin


class Weight(NamedTuple):
    """A weight as the model has it."""

    shape: tuple[int, ...]
    dtype: str
    scheme: str = ""  # who packed it; "" where the format itself did, as torch a sparse tensor
    stored: int = 0  # elements of the tensor that holds its values
    bytes: int = 0  # of that tensor

    @property
    def size(self) -> int:
        """Its elements."""
        return math.prod(self.shape)


class SharedStorage(NamedTuple):
    """A tensor with memory that others have too."""

    owner: str  # the first that has it
    new: int  # elements that none before it has
    whole: bool  # whether it is the very tensor of its owner under another name


class WeightsFile(NamedTuple):
    """The tensors of a checkpoint, and what else was learnt of them."""

    kind: str  # the format, as the ledger's kind
    files: Sequence[tuple[Location, Header]]
    sharing: Mapping[str, SharedStorage] = {}  # the names that share memory, the first of each memory among them
    buffers: frozenset[str] = frozenset()  # which the format itself says to be no parameters
    config: Mapping[str, Any] | None = None  # of the model, where the file holds it
    architecture: str | None = None  # where the file names it
    own_names: bool = False  # whether the tensors' names are the format's, which no config beside it describes
    role: Callable[[str], str] | None = None  # of a tensor, by its name, where the format's own names say it
    experts_used: Fraction | None = None  # the share of them that a token uses, where the file tells
    notes: tuple[str, ...] = ()
    weights: Mapping[str, Weight] = {}  # what tensors of another shape stand for, as the values of a sparse one
    beside: frozenset[str] = frozenset()  # names of what these need to be numbers, as indices
    stated: Mapping[str, Any] = {}  # what the index of a checkpoint says of its sums

    @property
    def tensors(self) -> list[StoredTensor]:
        """All that is stored, file after file."""
        return [tensor for _, header in self.files for tensor in header.tensors]


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse a shape that no tensor can have; the caller says whose it is."""
    if len(shape) > MOST_DIMENSIONS:
        raise BadInput(f"more than {MOST_DIMENSIONS:,} dimensions", code="too-large")
    elements = 1
    for size in shape:
        elements *= size or 1  # a zero does not excuse the sizes beside it
        if elements > LARGEST_TENSOR:
            raise BadInput(f"the shape {quoted(shape)}: more than 2^63 elements", code="too-large")
