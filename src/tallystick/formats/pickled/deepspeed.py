"""Read DeepSpeed ZeRO-3 ``*_model_states.pt``: empty tensors and a list of their shapes.

The values are in the files of the ranks, ``*_optim_states.pt``. ``param_shapes`` holds a dictionary
of shapes for each optimizer group. ``frozen_param_shapes`` holds the shapes of frozen parameters.
``shared_params`` holds the other names of tied parameters. See DeepSpeed's ``runtime/engine.py``,
and its ``zero_to_fp32.py``, which reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tallystick.formats.pickled.state_dicts import FoundTensors
from tallystick.formats.pickled.torch_tensors import SavedTensor, shape_of

_SHAPES = ("param_shapes", "frozen_param_shapes")
_SHARED = "shared_params"
_BUFFERS = "buffer_names"


class Partitioned(NamedTuple):
    """Tensors of a file; the values of some are in other files."""

    tensors: dict[str, SavedTensor]  # all tensors of the model, each under one name
    shapes: dict[str, tuple[int, ...]]  # of tensors whose values are in other files
    aliases: dict[str, str]  # further names of tied tensors -> the name that is counted
    buffers: frozenset[str]  # as the file lists them

    def notes(self) -> Iterator[str]:
        """Yield a note on the source of the shapes."""
        if self.shapes:
            yield (
                f"{len(self.shapes):,} tensors are counted by the shapes in param_shapes: DeepSpeed ZeRO-3 stores"
                " their values per rank, in *_optim_states.pt"
            )


def partitioned(found: FoundTensors, tensors: Mapping[str, Any]) -> Partitioned:
    """Return the model's tensors, with ZeRO-3's recorded shapes of empty ones.

    Args:
        found: contents of the file.
        tensors: the model's tensors; wrapped ones are left unchanged.

    Raises:
        BadInput: for a shape that no tensor can have.
    """
    known = {name: shape_of(shape) for key in _SHAPES for name, shape in _shapes(found.extras.get(key))}
    dtypes = Counter(one.dtype for one in tensors.values() if isinstance(one, SavedTensor))
    usual = dtypes.most_common(1)[0][0] if dtypes else "float32"
    whole: dict[str, Any] = dict(tensors)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in known.items():
        one = whole.setdefault(name, SavedTensor(None, usual, 0, (0,), (1,)))
        if isinstance(one, SavedTensor) and not one.elements and shape != one.shape:
            shapes[name] = shape
    shared = found.extras.get(_SHARED)
    aliases = {
        alias: name
        for alias, name in (shared.items() if isinstance(shared, dict) else ())
        if isinstance(alias, str) and isinstance(name, str) and name in shapes and alias not in shapes
    }
    for alias in aliases:
        whole.pop(alias, None)
    listed = found.extras.get(_BUFFERS)
    buffers = frozenset(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else frozenset()
    return Partitioned(whole, shapes, aliases, buffers & whole.keys() - shapes.keys() if known else frozenset())


def _shapes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and shapes of a dictionary, or of a list with one for each optimizer group."""
    for group in value if isinstance(value, list | tuple) else [value]:
        if isinstance(group, dict):
            yield from ((name, shape) for name, shape in group.items() if isinstance(name, str))
