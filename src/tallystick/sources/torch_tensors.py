"""The words that torch.save writes: tensors, their storages and dtypes, as what they say and no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeGuard

from tallystick.dtypes import BITS, NARROW
from tallystick.errors import BadInput, quoted
from tallystick.sources.contents import check_shape
from tallystick.sources.pickles import Make, Name, Other
from tallystick.sources.views import joined, meets_itself

_STORAGES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32", "Untyped": "uint8",
}  # fmt: skip


class Storage(NamedTuple):
    """Memory that tensors see: so many bytes under a key of the file."""

    key: str
    dtype: str  # of which its class is; bytes where it has none
    bytes: int
    start: int = 0  # bytes of the memory before it, where it is a part of one


class SavedTensor(NamedTuple):
    """A tensor as it was saved; sizes are in elements."""

    storage: Storage | None  # None for one of the meta device
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    trainable: bool | None = None  # where it was saved as a Parameter

    @property
    def elements(self) -> int:
        """How many it shows."""
        return math.prod(self.shape)

    @property
    def layout(self) -> tuple[tuple[int, int], ...]:
        """(stride, size) of the memory that it sees; only where it has elements."""
        return joined(self.shape, self.strides)


class Wrapped(NamedTuple):
    """A tensor of a class of its own, made of others: a quantised one, with its values and scales."""

    kind: str  # the class, without its module
    shape: tuple[int, ...]
    parts: dict[str, SavedTensor]


def storage_of(kind: Any, key: Any, elements: Any) -> Storage:
    """A storage as its persistent id tells it.

    Raises:
        BadInput: for a class, key or size that none has.
    """
    dtype = _dtype_of_class(kind)
    if not isinstance(key, str) or dtype is None or not is_size(elements):
        raise BadInput("its pickle asks for memory by what is no storage's id")
    return Storage(key, dtype, elements * BITS[dtype] // 8)


def _dtype_of_class(kind: Any) -> str | None:
    if not isinstance(kind, Name) or not kind.name.endswith("Storage"):
        return None
    return _STORAGES.get(kind.name.rpartition(".")[2].removesuffix("Storage"))


def is_size(value: Any) -> TypeGuard[int]:
    """Whether a value can be a count or place of elements or bytes."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def sizes_of(value: Any) -> tuple[int, ...]:
    """A shape or strides, as a tuple or ``torch.Size``."""
    sizes = value.state if isinstance(value, Other) and value.name == "torch.Size" else value
    if not isinstance(sizes, tuple) or not all(map(is_size, sizes)):
        raise BadInput("its pickle gives a tensor a shape that is none")
    return sizes


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, dtype: str | None = None) -> SavedTensor:
    """A tensor over a storage, all of it inside."""
    if not isinstance(storage, Storage) or not is_size(offset):
        raise BadInput("its pickle makes a tensor of what is no storage")
    shape, strides = sizes_of(shape), sizes_of(strides)
    try:
        check_shape(shape)
    except BadInput as error:
        raise BadInput(f"it holds a tensor with {error}") from None
    if len(shape) != len(strides):
        raise BadInput(f"it holds a tensor of {len(shape)} dimensions and {len(strides)} strides")
    tensor = SavedTensor(storage, dtype or storage.dtype, offset, shape, strides)
    if tensor.elements:
        layout = tensor.layout
        reach = offset + 1 + sum(stride * (size - 1) for stride, size in layout)
        if reach * BITS[tensor.dtype] > storage.bytes * 8:
            raise BadInput(
                f"it holds a tensor of shape {shape} that reaches {reach:,} elements into a storage of"
                f" {storage.bytes * 8 // BITS[tensor.dtype]:,}"
            )
        if meets_itself(layout):
            raise BadInput(
                f"it holds a tensor of shape {shape} that shows one element at two places: it cannot be counted"
            )
    return tensor


def _rebuilt(arguments: tuple[Any, ...]) -> SavedTensor:
    """``_rebuild_tensor(_v2)(storage, offset, size, stride, …)``."""
    return _tensor(*_first(arguments, 4))


def _rebuilt_with_dtype(arguments: tuple[Any, ...]) -> SavedTensor:
    """``_rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, …)``."""
    storage, offset, shape, strides, _, _, dtype = _first(arguments, 7)
    return _tensor(storage, offset, shape, strides, dtype_of(dtype))


def _rebuilt_without_values(arguments: tuple[Any, ...]) -> SavedTensor:
    """``_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)``."""
    dtype, shape, strides = _first(arguments, 3)
    word = dtype_of(dtype)
    # Over memory as large as it needs, to be checked as any other, and then over none.
    memory = Storage("", word, 1 << 66)
    return _tensor(memory, 0, shape, strides)._replace(storage=None)


def _parameter(arguments: tuple[Any, ...]) -> SavedTensor | Wrapped:
    """``_rebuild_parameter(data, requires_grad, …)``: the tensor itself."""
    data, trainable = _first(arguments, 2)
    if isinstance(data, Wrapped):
        return data
    if not isinstance(data, SavedTensor):
        raise BadInput("its pickle makes a Parameter of what is no tensor")
    return data._replace(trainable=bool(trainable))


def _of_type(arguments: tuple[Any, ...]) -> Any:
    """``_rebuild_from_type_v2(function, type, arguments, state)``."""
    function, kind, given, state = _first(arguments, 4)
    if not isinstance(function, Name) or not isinstance(kind, Name) or not isinstance(given, tuple):
        raise BadInput("its pickle calls what is no function: it is broken")
    made = function.make(given)
    if isinstance(made, Wrapped) and isinstance(state, dict):
        made.parts.update((name, one) for name, one in state.items() if isinstance(one, SavedTensor))
    return made


def _wrapper(arguments: tuple[Any, ...]) -> Wrapped:
    """``_rebuild_wrapper_subclass(class, dtype, size, …)``, whose tensors are in the state that comes after."""
    kind, _, shape = _first(arguments, 3)
    if not isinstance(kind, Name):
        raise BadInput("its pickle makes a tensor of what is no class")
    shape = sizes_of(shape)
    try:
        check_shape(shape)
    except BadInput as error:
        raise BadInput(f"it holds a tensor with {error}") from None
    return Wrapped(kind.name.rpartition(".")[2], shape, {})


def _first(arguments: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if len(arguments) < count:
        raise BadInput("its pickle makes a tensor of too few arguments: it is broken")
    return arguments[:count]


def dtype_of(value: Any) -> str:
    """Torch's word for a dtype that a pickle names."""
    word = value.name.removeprefix("torch.") if isinstance(value, Name) else ""
    if word not in BITS:
        raise BadInput("its pickle gives a tensor a dtype that is none")
    return word


def ordered_dict(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """``OrderedDict()`` and ``OrderedDict([(key, value), …])``."""
    pairs = arguments[0] if arguments else []
    if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise BadInput("its pickle makes a dictionary of what are no pairs")
    return {key if isinstance(key, str) else object(): value for key, value in pairs}


def other(name: str) -> Make:
    """What is noted of a call that gives no tensor: its name, and its first argument."""
    return lambda arguments: Other(name, arguments[0] if arguments else None)


def names_alone(names: Iterable[str]) -> dict[str, Make]:
    """Names that stand for themselves, as dtypes do: calling one is refused."""
    return {name: _not_called(name) for name in names}


def _not_called(name: str) -> Make:
    def refuse(_: tuple[Any, ...]) -> Any:
        raise BadInput(f"its pickle calls {quoted(name)}, which only names something")

    return refuse


_STORAGE_CLASSES = [
    f"{module}.{word}Storage" for module in ("torch", "torch.cuda", "torch.storage") for word in _STORAGES
]
_CALLED: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "torch._utils._rebuild_tensor": _rebuilt,
    "torch._utils._rebuild_tensor_v2": _rebuilt,
    "torch._utils._rebuild_qtensor": _rebuilt,  # whose scales come after
    "torch._utils._rebuild_tensor_v3": _rebuilt_with_dtype,
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuilt_without_values,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "collections.OrderedDict": ordered_dict,
}
# What stands beside tensors, in a checkpoint of a run above all: noted, and of no interest.
_BESIDE = (
    "torch.Size", "torch.device", "torch.serialization._get_layout", "collections.defaultdict", "collections.Counter",
    "argparse.Namespace", "_codecs.encode", "builtins.set", "__builtin__.set", "builtins.frozenset", "builtins.slice",
    "builtins.complex", "builtins.bytearray", "__builtin__.bytearray", "numpy.dtype", "numpy.ndarray",
    "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct", "datetime.datetime", "datetime.timedelta", "pathlib.Path", "pathlib.PosixPath",
    "pathlib.WindowsPath", "pathlib._local.PosixPath", "pathlib._local.WindowsPath",
)  # fmt: skip
# torchao 0.18's tensors, and what they keep beside theirs.
_TORCHAO = [
    f"torchao.quantization.{word}Tensor"
    for word in (
        "Int8",
        "Float8",
        "Int4",
        "Int4TilePackedTo4d",
        "Int4PlainInt32",
        "Int4Preshuffled",
        "IntxUnpackedToInt8",
    )
] + [f"torchao.prototype.mx_formats.{word}" for word in ("nvfp4_tensor.NVFP4Tensor", "mx_tensor.MXTensor")]
_BESIDE_TORCHAO = [
    f"torchao.quantization.{word}"
    for word in (
        "granularity.PerRow", "granularity.PerTensor", "granularity.PerGroup", "granularity.PerBlock",
        "quant_primitives.MappingType", "quantize_.common.kernel_preference.KernelPreference",
        "quantize_.workflows.int8.int8_tensor.QuantizeTensorToInt8Kwargs",
        "quantize_.workflows.float8.float8_tensor.QuantizeTensorToFloat8Kwargs",
    )
] + ["torchao.float8.inference.Float8MMConfig", "torchao.prototype.mx_formats.config.ScaleCalculationMode"]  # fmt: skip
_NAMES_ALONE = (
    *(f"torch.{word}" for word in (*BITS, *NARROW, "float4_e2m1fn_x2")), *_TORCHAO, *_STORAGE_CLASSES, "torch.Tensor", "torch.nn.parameter.Parameter",
    "torch.per_tensor_affine", "torch.per_channel_affine", "builtins.int", "builtins.float", "builtins.dict",
    "builtins.list", "builtins.str",
)  # fmt: skip

# Every name that a file of weights may hold, with what is made where it is called.
KNOWN: dict[str, Make] = {
    **names_alone(_NAMES_ALONE),
    **{name: other(name) for name in (*_BESIDE, *_BESIDE_TORCHAO)},
    **_CALLED,
}
