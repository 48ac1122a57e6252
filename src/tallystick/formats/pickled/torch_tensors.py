"""Tensors, storages and dtypes of ``torch.save``, as described in its pickles.

Arguments are checked as ``torch.load(weights_only=True)`` of torch 2.13 checks them: whatever makes
torch fail is refused.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeGuard

from tallystick.errors import BadInput, quoted
from tallystick.formats.pickled.pickle_values import Name, Other
from tallystick.formats.pickled.torch_names import DTYPES, SHARED_BYTES, STORAGES
from tallystick.formats.storage_overlap import joined
from tallystick.formats.weights_file import check_shape

_REAL = ("float", "bfloat", "complex")  # prefixes of dtypes that can have gradients


class Storage(NamedTuple):
    """Memory of tensors: a number of bytes under a key of the file."""

    key: str
    dtype: str  # of the storage class; uint8 if it has none
    bytes: int
    start: int = 0  # byte offset in the memory, if this is a part of it


class SavedTensor(NamedTuple):
    """A tensor as saved; offset, shape and strides are in elements."""

    storage: Storage | None  # None on the meta device
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    trainable: bool | None = None  # if it was saved as a Parameter

    @property
    def elements(self) -> int:
        """Number of elements in its shape."""
        return math.prod(self.shape)

    @property
    def layout(self) -> tuple[tuple[int, int], ...]:
        """(stride, size) pairs of its memory; only for a tensor with elements."""
        return joined(self.shape, self.strides)


class Wrapped(NamedTuple):
    """A tensor made of others: quantised (values and scales), sparse, nested or distributed."""

    kind: str  # the class without its module, or the layout
    shape: tuple[int, ...]
    parts: dict[str, SavedTensor]


def storage_of(kind: Any, key: Any, elements: Any) -> Storage:
    """Return the storage that a persistent id describes.

    Args:
        kind: the storage class.
        key: its key in the file.
        elements: number of elements.

    Raises:
        BadInput: if any of these is not valid.
    """
    dtype = _dtype_of_class(kind)
    key = str(key) if is_size(key) else key
    if not isinstance(key, str) or dtype is None or not is_size(elements):
        raise BadInput("its pickle has an invalid storage id", code="malformed")
    return Storage(key, dtype, elements * DTYPES[dtype] // 8)


def _dtype_of_class(kind: Any) -> str | None:
    if not isinstance(kind, Name) or not kind.name.endswith("Storage"):
        return None
    return STORAGES.get(kind.name.rpartition(".")[2].removesuffix("Storage"))


def is_size(value: Any) -> TypeGuard[int]:
    """Return whether a value can be a count or offset of elements or bytes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def sizes_of(value: Any) -> tuple[int, ...]:
    """Return a shape or strides, given as a tuple, list or ``torch.Size``.

    Raises:
        BadInput: if it is none of these, or holds anything but sizes.
    """
    sizes = value.state if isinstance(value, Other) and value.name == "torch.Size" else value
    if not isinstance(sizes, tuple | list) or not all(map(is_size, sizes)):
        raise BadInput("its pickle gives a tensor an invalid shape", code="malformed")
    return tuple(sizes)


def size_of(arguments: tuple[Any, ...]) -> Other:
    """Interpret ``torch.Size(sizes)``."""
    if len(arguments) > 1:
        raise BadInput("its pickle creates a shape from several arguments", code="malformed")
    return Other("torch.Size", sizes_of(arguments[0]) if arguments else ())


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor.

    Raises:
        BadInput: if no tensor can have it.
    """
    shape = sizes_of(value)
    try:
        check_shape(shape)
    except BadInput as error:
        raise BadInput(f"it holds a tensor with {error}", code=error.code) from None
    return shape


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, dtype: str | None = None) -> SavedTensor:
    """Return a tensor over a storage; raise `BadInput` if it reaches beyond it."""
    if not isinstance(storage, Storage) or not is_size(offset):
        raise BadInput("its pickle creates a tensor from something other than a storage", code="malformed")
    shape, strides = shape_of(shape), sizes_of(strides)
    if not strides:  # torch's default
        strides = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
    if len(shape) != len(strides):
        raise BadInput(f"it holds a tensor of {len(shape)} dimensions and {len(strides)} strides", code="malformed")
    tensor = SavedTensor(storage, dtype or storage.dtype, offset, shape, strides)
    if tensor.elements:
        bits = SHARED_BYTES.get(tensor.dtype) or DTYPES[tensor.dtype]
        reach = offset + 1 + sum(stride * (size - 1) for stride, size in tensor.layout)
        if reach * bits > storage.bytes * 8:
            raise BadInput(
                f"it holds a tensor of shape {quoted(shape)} that needs {reach:,} elements of a storage with"
                f" {storage.bytes * 8 // bits:,}",
                code="malformed",
            )
    return tensor


def rebuilt(arguments: tuple[Any, ...]) -> SavedTensor:
    """Interpret ``_rebuild_tensor(storage, offset, size, stride)``."""
    return _tensor(*as_many(arguments, 4))


def rebuilt_with_hooks(arguments: tuple[Any, ...]) -> SavedTensor:
    """Interpret ``_rebuild_tensor_v2``.

    Its arguments are (storage, offset, size, stride, requires_grad, hooks, metadata).
    """
    tensor = _tensor(*as_many(arguments, 6, 7)[:4])
    _check_metadata(arguments[6:])
    return with_gradient(tensor, arguments[4])


def rebuilt_with_dtype(arguments: tuple[Any, ...]) -> SavedTensor:
    """Interpret ``_rebuild_tensor_v3``.

    Its arguments are (storage, offset, size, stride, requires_grad, hooks, dtype, metadata).
    """
    storage, offset, shape, strides, gradient, _, dtype = as_many(arguments, 7, 8)[:7]
    _check_metadata(arguments[7:])
    return with_gradient(_tensor(storage, offset, shape, strides, dtype_of(dtype)), gradient or False)


def quantized(arguments: tuple[Any, ...]) -> SavedTensor:
    """Interpret ``_rebuild_qtensor``; its scales are not counted.

    Its arguments are (storage, offset, size, stride, quantizer, requires_grad, hooks).
    """
    storage, offset, shape, strides, quantizer, gradient, _ = as_many(arguments, 7)
    tensor = with_gradient(_tensor(storage, offset, shape, strides), gradient)
    if not tensor.dtype.startswith("q") or not isinstance(quantizer, tuple) or not quantizer:
        raise BadInput("its pickle creates a quantised tensor from invalid parts", code="malformed")
    scheme = quantizer[0].name if isinstance(quantizer[0], Name) else ""
    if (scheme, len(quantizer)) == ("torch.per_tensor_affine", 3):
        return tensor
    if scheme not in _PER_CHANNEL or len(quantizer) != 4:
        raise BadInput("its pickle creates a quantised tensor with a scheme that torch does not have", code="malformed")
    _, scales, zeros, axis = quantizer
    lengths = {_length(scales), _length(zeros)}
    if not is_size(axis) or axis >= len(tensor.shape) or lengths != {tensor.shape[axis]}:
        raise BadInput(
            f"the scales of a quantised tensor of shape {quoted(tensor.shape)} do not match its channels",
            code="malformed",
        )
    return tensor


_PER_CHANNEL = ("torch.per_channel_affine", "torch.per_channel_affine_float_qparams")


def _check_metadata(given: tuple[Any, ...]) -> None:
    """Check the metadata, which say whether a tensor is conjugated or negated."""
    said = [one.state if isinstance(one, Other) else one for one in given]
    if any(one and not isinstance(one, dict) for one in said):
        raise BadInput("its pickle gives a tensor invalid metadata", code="malformed")


def _length(values: Any) -> int:
    """Return the number of scales or zero points."""
    if isinstance(values, SavedTensor):
        return values.elements
    return len(values) if isinstance(values, list) else -1


def _plain(tensor: SavedTensor) -> SavedTensor:
    """Return the tensor; refuse a quantised one, which the meta device cannot hold."""
    if tensor.dtype.startswith("q"):
        raise BadInput("its pickle creates a quantised tensor on the meta device", code="malformed")
    return tensor


def with_gradient(tensor: SavedTensor, gradient: Any) -> SavedTensor:
    """Return the tensor; refuse gradients unless its dtype is real or complex."""
    if not isinstance(gradient, bool) or (gradient and not tensor.dtype.startswith(_REAL)):
        raise BadInput(
            f"its pickle gives a {tensor.dtype} tensor gradients, which torch does not allow", code="malformed"
        )
    return tensor


def rebuilt_without_values(arguments: tuple[Any, ...]) -> SavedTensor:
    """Interpret ``_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)``."""
    dtype, shape, strides, gradient = as_many(arguments, 4)
    word = dtype_of(dtype)
    # Build it over a large enough storage, for the usual checks; then drop the storage.
    memory = Storage("", word, 1 << 192)
    return with_gradient(_plain(_tensor(memory, 0, shape, strides))._replace(storage=None), gradient or False)


def moved(arguments: tuple[Any, ...]) -> SavedTensor:
    """Interpret ``_rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad)``.

    The data may be a NumPy array.
    """
    data, dtype, _, gradient = as_many(arguments, 4)
    if isinstance(data, Other) and data.name.endswith("._reconstruct") and isinstance(data.state, tuple):
        data = SavedTensor(None, "uint8", 0, shape_of(data.state[1] if len(data.state) > 1 else None), ())
    if not isinstance(data, SavedTensor):
        raise BadInput("its pickle creates a tensor from invalid parts", code="malformed")
    word = dtype_of(dtype)
    return with_gradient(data if word == data.dtype else data._replace(storage=None, dtype=word), gradient)


def parameter(arguments: tuple[Any, ...]) -> SavedTensor | Wrapped:
    """Interpret ``_rebuild_parameter(data, requires_grad, hooks)``, also with a state."""
    data, trainable = as_many(arguments, 3, 4)[:2]
    if isinstance(data, Wrapped):
        return data
    if not isinstance(data, SavedTensor):
        raise BadInput("its pickle creates a Parameter from something other than a tensor", code="malformed")
    return with_gradient(data, trainable)._replace(trainable=trainable)


def new_parameter(arguments: tuple[Any, ...]) -> SavedTensor | Wrapped:
    """Interpret ``Parameter(data, requires_grad=True)``; without data, an empty tensor."""
    if not arguments:
        return SavedTensor(None, "float32", 0, (0,), (1,), True)
    data, trainable = (*as_many(arguments, 1, 2), True)[:2]
    return parameter((data, trainable, None))


def as_many(arguments: tuple[Any, ...], fewest: int, most: int = 0) -> tuple[Any, ...]:
    """Return the arguments; raise `BadInput` unless their number is from `fewest` to `most`."""
    if not fewest <= len(arguments) <= (most or fewest):
        raise BadInput("its pickle creates a tensor with a wrong number of arguments: it is broken", code="malformed")
    return arguments


def dtype_of(value: Any) -> str:
    """Return torch's name of a dtype that a pickle names."""
    word = value.name.removeprefix("torch.") if isinstance(value, Name) else ""
    if word not in DTYPES:
        raise BadInput("its pickle gives a tensor an invalid dtype", code="malformed")
    return word
