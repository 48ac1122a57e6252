"""Files of torch.save drawn at random, their pickles as they are and changed, and the two readers
of them.
"""

from __future__ import annotations

import io
import itertools
import math
import random
import warnings
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import torch

from differential import Pair
from tallystick.formats import read_weights

warnings.simplefilter("ignore")

_FLOATS = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
]
_DTYPES = [
    *_FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.uint16, torch.uint32, torch.uint64,
    torch.complex32, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2,
    torch.bits8, torch.bits16, torch.bits1x8, torch.bits2x4, torch.bits4x2,
]  # fmt: skip
_KEYS = ["w", "b", "h.0.w", "größe", "\x1b[2J", "", " ", "a\nb", "\ud800", "qdata", "{}", 0, 7, -1]
_VALUES = [
    None, True, 3, 2**40, -(2**70), 1.5, "text", 1j, torch.float32, torch.device("cpu"), torch.device("cuda", 1), torch.Size([1, 2]), {1, 2},
    bytearray(b"abc"), (), [], {}, Counter("aab"), torch.strided, torch.per_tensor_affine,
]  # fmt: skip


def draw_value(draw: random.Random) -> dict[Any, Any]:
    """A state dict: tensors by name, with others in dictionaries and lists inside, and what is
    none.
    """
    pool: list[torch.Tensor] = []
    values: dict[Any, Any] = draw.choice([dict, OrderedDict])()
    values["first"] = _tensor(draw, pool)
    for place in range(draw.randint(0, 5)):
        key = draw.choice(_KEYS)
        key = f"{key}{place}" if isinstance(key, str) else key * 10 + place
        values[key] = _inside(draw, pool, 0)
    if isinstance(values, OrderedDict) and draw.random() < 0.3:
        values._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
    return values


def _inside(draw: random.Random, pool: list[torch.Tensor], deep: int) -> Any:
    kind = draw.random()
    if kind < 0.65 or deep > 2:
        return _tensor(draw, pool)
    if kind < 0.75:
        return draw.choice(_VALUES)
    items = [_inside(draw, pool, deep + 1) for _ in range(draw.randint(0, 3))]
    named = {f"{draw.choice('abc')}{place}": item for place, item in enumerate(items)}
    return draw.choice([items, tuple(items), named, OrderedDict(named), Counter(named)])


def _tensor(draw: random.Random, pool: list[torch.Tensor]) -> torch.Tensor:
    kind = draw.random()
    if kind < 0.3 and pool:
        base = draw.choice(pool)
        return base if draw.random() < 0.5 else _view(draw, base)
    if kind < 0.36:
        return _sparse(draw)
    if kind < 0.39:
        return torch.nested.nested_tensor([torch.zeros(draw.randint(1, 3), 2) for _ in range(draw.randint(1, 3))])
    if kind < 0.44:
        return _quantized(draw)
    if kind < 0.47:
        return torch.empty(draw.randint(0, 3), 2, dtype=draw.choice([*_DTYPES, torch.int3, torch.uint4]), device="meta")
    shape = [draw.choice([0, 1, 2, 3, 4, 6]) for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 5]))]
    made = torch.empty(shape, dtype=draw.choice(_DTYPES + 2 * _FLOATS))
    pool.append(made)
    made = _view(draw, made) if draw.random() < 0.3 else made
    if draw.random() < 0.25:
        made = torch.nn.Parameter(made, requires_grad=made.is_floating_point() and draw.random() < 0.7)
        if draw.random() < 0.3:
            made.note = draw.choice([1, "x", [1]])
    elif draw.random() < 0.1:
        made.note = draw.choice([1, {"a": 1}])  # type: ignore[attr-defined]
    elif draw.random() < 0.05:
        made = torch.nn.Buffer(made)
    return made


def _view(draw: random.Random, base: torch.Tensor) -> torch.Tensor:
    elements = base.untyped_storage().nbytes() // base.element_size()
    if not elements:
        return base
    match draw.randrange(6):
        case 0 if base.dim() > 1:
            return base.transpose(0, -1)
        case 1 if base.dim():
            place = draw.randrange(base.shape[0] + 1)
            return base[place:] if draw.random() < 0.5 else base[::2]
        case 2:
            return base.expand(draw.randint(1, 3), *base.shape)
        case 3 if base.dtype in (torch.complex64, torch.complex128):
            return draw.choice([base.conj(), torch.view_as_real(base)])
        case 4 if base.element_size() == 2 and draw.random() < 0.3:
            return base.view(torch.uint16)
        case _:
            shape = [draw.randint(1, 4) for _ in range(draw.randint(0, 3))]
            strides = [draw.randint(0, 5) for _ in shape]
            reach = sum(stride * (size - 1) for stride, size in zip(strides, shape, strict=True))
            if reach >= elements:
                return base
            return base.as_strided(shape, strides, draw.randrange(elements - reach))


def _sparse(draw: random.Random) -> torch.Tensor:
    dense = torch.zeros(4, draw.choice([2, 4, 6]))
    dense.view(-1)[:: draw.randint(1, 5)] = 1
    match draw.randrange(5):
        case 0:
            return dense.to_sparse(draw.randint(1, 2))
        case 1:
            return dense.to_sparse_csr()
        case 2:
            return dense.to_sparse_csc()
        case 3:
            return dense.to_sparse_bsr((2, 2))
        case _:
            return dense.to_sparse_bsc((2, 2))


def _quantized(draw: random.Random) -> torch.Tensor:
    dtype = draw.choice([torch.qint8, torch.quint8, torch.qint32])
    shape = (draw.randint(1, 4), draw.randint(1, 5))
    if draw.random() < 0.4:
        return torch.quantize_per_tensor(torch.zeros(shape), 0.1, 0, dtype)
    scales, zeros = torch.ones(shape[0]), torch.zeros(shape[0])
    if draw.random() < 0.5:
        return torch.quantize_per_channel(
            torch.zeros(shape), scales, zeros, 0, draw.choice([torch.quint4x2, torch.quint2x4])
        )
    return torch.quantize_per_channel(torch.zeros(shape), scales, zeros.long(), 0, dtype)


def draw_file(draw: random.Random) -> bytes:
    """A whole file of either form."""
    while True:
        buffer = io.BytesIO()
        protocol = draw.choice([2, 2, 2, 3, 4, 5])
        try:
            torch.save(
                draw_value(draw), buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=draw.random() < 0.6
            )
        except (
            RuntimeError,
            NotImplementedError,
            ValueError,
        ):  # what torch cannot save, as one memory under two dtypes
            continue
        return buffer.getvalue()


# -- changed pickles ------------------------------------------------------------------------------

_NAMES = [
    b"torch\nfloat16", b"torch\nFloatStorage", b"torch.storage\nUntypedStorage", b"collections\nOrderedDict", b"collections\nCounter",
    b"torch._utils\n_rebuild_tensor_v2", b"torch._utils\n_rebuild_tensor", b"torch._utils\n_rebuild_tensor_v3", b"torch._utils\n_rebuild_parameter",
    b"torch._utils\n_rebuild_qtensor", b"torch._utils\n_rebuild_sparse_tensor", b"torch\nSize", b"torch\ndevice", b"__builtin__\nset",
    b"builtins\nset", b"__builtin__\nlong", b"__builtin__\nfrozenset", b"__builtin__\ncomplex", b"collections\ndeque", b"os\nsystem",
    b"_codecs\nencode", b"torch._utils\n_rebuild_meta_tensor_no_storage", b"torch.nn.parameter\nParameter", b"numpy\ndtype",
]  # fmt: skip
_STEPS = [bytes([code]) for code in b"(.0N\x88\x89}])eatusbR\x81\x85\x86\x87\x8fQlod12"] + [
    b"K\x01", b"K\x00", b"M\x00\x01", b"J\xff\xff\xff\xff", b"X\x01\x00\x00\x00a", b"U\x01a", b"U\x02\xc3\xa9", b"\x8a\x01\x05", b"h\x00", b"q\x00",
    b"G\x3f\xf0\0\0\0\0\0\0", b"r\0\1\0\0", b"j\0\0\0\0", *(b"c" + name + b"\n" for name in _NAMES),
]  # fmt: skip


# Pieces of pickles that may stand for one another.
_LIKE = [
    *((b"K" + bytes([old]), b"K" + bytes([new])) for old in range(7) for new in (0, 1, 2, 3, 4)),
    *((old, new) for old in (b"\x88", b"\x89") for new in (b"\x88", b"\x89", b"N")),
    *((old, new) for old in (b"FloatStorage", b"HalfStorage", b"LongStorage") for new in (b"IntStorage", b"ShortStorage", b"BoolStorage")),
    (b"torch float16\n", b"torch int3\n"), (b"a", b"b"), (b"w", b"\n"), (b"__builtin__", b"builtins"), (b"_v2", b"_v3"), (b"}", b"]"), (b")", b"]"),
    (b"ctorch\nSize\n", b""), (b"OrderedDict", b"Counter"), (b"Counter", b"OrderedDict"), (b"sparse_csr", b"sparse_csc"),
    (b"sparse_coo", b"sparse_csr"), (b"cpu", b"cuda:0"), (b"0", b"1"), (b"1", b"0"), (b"per_tensor", b"per_channel"),
]  # fmt: skip


def draw_changed(draw: random.Random) -> bytes:
    """A zip archive whose pickle is changed at a few places, its checksum right."""
    while True:
        buffer = io.BytesIO()
        try:
            torch.save(draw_value(draw), buffer)
        except (RuntimeError, NotImplementedError, ValueError):
            continue
        if b"_rebuild_nested_tensor" not in buffer.getvalue():  # torch judges these by the values of their sizes
            break
    with zipfile.ZipFile(buffer) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(one for one in members if one.endswith("data.pkl"))
    pickled = members[name]
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        pickled = _changed(draw, pickled)
    members[name] = pickled
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for one, content in members.items():
            archive.writestr(one, content)
    return out.getvalue()


def _changed(draw: random.Random, content: bytes) -> bytes:
    place = draw.randrange(len(content))
    if draw.random() < 0.6:  # what may well be read still
        old, new = draw.choice(_LIKE)
        places = [at for at in range(len(content)) if content.startswith(old, at)]
        place = draw.choice(places or [place])
        return content[:place] + new + content[place + len(old) :] if places else content
    match draw.randrange(6):
        case 0:
            return content[:place] + draw.choice(_STEPS) + content[place:]
        case 1:
            return content[:place] + content[place + draw.randint(1, 5) :]
        case 2:
            return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]
        case 3:
            places = [at for at in range(len(content) - 1) if content[at] == ord("K")] or [place]
            at = draw.choice(places) + 1
            return content[:at] + bytes([draw.choice([0, 1, 2, 3, 255])]) + content[at + 1 :]
        case 4:
            found = [name for name in _NAMES if name in content]
            return content.replace(draw.choice(found), draw.choice(_NAMES), 1) if found else content
        case _:
            start = draw.randrange(len(content))
            return content[:place] + content[start : start + draw.randint(1, 30)] + content[place:]


# -- the two readers ------------------------------------------------------------------------------


class _Any:
    """Equal to everything: what is not compared, as which of several dictionaries is counted."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


_CHOSEN = ("state_dict", "model_state_dict", "model", "module", "net", "weights", "params")


def by_library(path: Path) -> Any:
    """Name, shape, dtype and new elements of each tensor that `torch.load(weights_only=True)`
    gives.
    """
    whole = torch.load(path, weights_only=True, map_location="cpu")
    if _is_tensor(whole):
        return {"tensor": _facts(whole, set())}
    if isinstance(whole, dict):
        alone = any(isinstance(key, str) and _is_tensor(one) for key, one in whole.items())
        if not alone or any(key in _CHOSEN for key in whole):
            return _Any()
    elif not isinstance(whole, list | tuple):
        return _Any()
    found: dict[str, Any] = {}
    seen: set[Any] = set()
    for name, tensor in _flattened(whole, ""):
        assert name not in found
        found[name] = _facts(tensor, seen)
    return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _flattened(values: Any, prefix: str) -> Any:
    named = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in named:
        if _is_tensor(value):
            yield f"{prefix}{key}", value
        elif isinstance(value, dict) or (
            isinstance(value, list | tuple)
            and any(isinstance(one, dict | list | tuple | torch.Tensor) for one in value)
        ):
            yield from _flattened(value, f"{prefix}{key}.")


def _facts(tensor: torch.Tensor, seen: set[Any]) -> Any:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_nested:
        return (sum(one.numel() for one in tensor.unbind()),), dtype, None
    shape = tuple(tensor.shape)
    if tensor.layout != torch.strided or dtype in ("quint4x2", "quint2x4"):
        return shape, dtype, None
    if tensor.is_meta:
        return shape, dtype, tensor.numel()
    if tensor.numel() > 10_000:
        return shape, dtype, None
    steps = [[stride * step for step in range(size)] for stride, size in zip(tensor.stride(), shape, strict=True)]
    width, memory = tensor.element_size(), tensor.untyped_storage()._cdata
    places = {(tensor.storage_offset() + sum(one)) * width for one in itertools.product(*steps)}
    held = {(memory, place + byte) for place in places for byte in range(width)}
    new = len(held - seen) // width
    seen |= held
    return shape, dtype, new


def by_us(path: Path) -> Any:
    """The same as we read it."""
    contents = read_weights(path)
    if any("were counted" in note for note in contents.notes):
        return _Any()
    found = {}
    for tensor in contents.tensors:
        if tensor.name in contents.auxiliary:
            continue
        weight = contents.weights.get(tensor.name)
        shape, dtype = (weight.shape, weight.dtype) if weight else (tensor.shape, tensor.dtype)
        shared = contents.sharing.get(tensor.name)
        new = shared.new if shared else math.prod(shape)
        held = weight or dtype in ("quint4x2", "quint2x4")
        found[tensor.name] = shape, dtype, None if held or math.prod(shape) > 10_000 else new
    return found


_PROTOCOLS = r"Unsupported operand (149|140|148|147|146|145|144|143|150)"  # of pickles of protocol 3 and later
PAIR = Pair(
    "a.pt",
    draw_file,
    by_us,
    by_library,
    we_accept=(
        _PROTOCOLS,
        "Unsupported operand 67",  # bytes, which a pickle of protocol 3 holds
        "UntypedStorage' has no attribute 'dtype'",  # torch writes its newer dtypes in the old form, and cannot read them
        "Storage size calculation overflowed|setStorage",  # in the old form torch reads the sizes of nested tensors too early
    ),
)
_LENIENT = (
    "record size .* does not match expected size",  # a storage larger than its pickle says
    "a leaf Variable that requires grad",  # torch saves such a tensor of its newer dtypes, and cannot read it
    "scale tensor must be floating point|expected scalar type",  # dtypes of scales
    "missing 1 required positional argument: 'state'",  # of a Parameter, which changes nothing
    "unknown encoding",  # of bytes that are no tensor's
)
MUTATED = Pair(
    "a.pt",
    draw_changed,
    by_us,
    by_library,
    we_refuse=("holds no state dict", "holds no tensors", "calls 'torch.storage.UntypedStorage'"),
    we_accept=("Unsupported operand", "Unsupported global", *_LENIENT),  # steps and classes that run nothing here
)
