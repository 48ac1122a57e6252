"""A config whose `quantization_config` says how its weights are packed: what files of it would hold, without any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tallystick import architectures
from tallystick.core.dtypes import size_in_bytes
from tallystick.core.ledger import Axis, Entry, Ledger
from tallystick.errors import BadInput, quoted
from tallystick.sources.configs.config import dtype_in, ledger_from_config
from tallystick.sources.configs.resolve import TEXT_PARTS

if TYPE_CHECKING:  # most configs need none of it
    from tallystick.sources.quantized.layouts import Scheme, StoredPart
    from tallystick.sources.quantized.settings import Quantiser

KEYS = (
    "quantization_config",
    "quantization",
    "compression_config",
)  # MLX's second, and that of older compressed-tensors
KEY = KEYS[0]
_WHOLE = ("router", "norm", "token_embedding", "position_embedding")  # roles that no quantiser packs but MLX's
_MOST_LAYERS = 10_000  # that are looked at one by one, where a config names single ones
_TWO_IN_ONE = ("gate_up_proj", "input_linear.weight", "w13_weight")  # experts' gate and up, published as two
# Types whose matrices lie the other way round: what `transformers.pytorch_utils.Conv1D` holds.
_CONV1D = ("c_attn.weight", "c_fc.weight", "c_proj.weight", "q_attn.weight")
_OF_CONV1D = ("gpt2", "openai-gpt", "imagegpt", "decision_transformer")


def ledger_of_config(
    values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str, kind: str = "config"
) -> Ledger:
    """The ledger of a config that comes without weights: each tensor in the bytes that its files would hold.

    Arguments and errors are those of `ledger_from_config`; `quantization_config` may be overridden too, by null for none.
    """
    if not isinstance(values, Mapping):
        return ledger_from_config(values, overrides, source=source, kind=kind)
    if KEY in overrides:
        values = {**{key: value for key, value in values.items() if key not in KEYS}, KEY: overrides[KEY]}
        overrides = {key: value for key, value in overrides.items() if key != KEY}
    stated = dtype_in({**values, **overrides})
    with _named(source):
        quantiser, why = _quantiser(values, stated)
    assumed = {"dtype": quantiser.dtype} if quantiser and not stated else {}
    ledger = ledger_from_config({**values, **assumed}, overrides, source=source, kind=kind)
    if quantiser:
        fused = not quantiser.linear or _experts_apart(ledger, values, overrides, source)
        with _named(source):
            ledger = _packed(ledger, quantiser, fused=fused)
    ledger = ledger.with_notes(*why)
    if quantiser and assumed:
        return ledger.with_notes(f"the config states no dtype: what is not packed is taken as {quantiser.dtype}")
    if kind == "config" and stated is None and _has_dtype(values):
        return ledger.with_notes(_NO_DTYPE)
    return ledger


def pack_as_stated(ledger: Ledger, values: Mapping[str, Any]) -> Ledger:
    """A config's ledger, of the whole or of a part, with weights in the bytes that the config says."""
    with _named(ledger.source):
        quantiser, why = _quantiser(values, dtype_in(values))
        if quantiser:
            ledger = _packed(ledger, quantiser, fused=True)
    return ledger.with_notes(*why)


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Say of what is refused within whose quantisation it is: patterns may take more steps than a source has."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{source}: {KEY}: {error}", code=error.code) from None


_NO_DTYPE = "the config states no dtype: float32 is assumed; --set dtype=bfloat16 says another"


def _quantiser(values: Mapping[str, Any], dtype: str | None) -> tuple[Quantiser | None, tuple[str, ...]]:
    """What a config says of its quantisation, at its top or in its language part; or a note why that tells no bytes."""
    parts = (values[part] for part in TEXT_PARTS if isinstance(values.get(part), Mapping))
    told = next((one[key] for one in (values, *parts) for key in KEYS if one.get(key)), None)
    if not isinstance(told, Mapping):
        return None, ()
    from tallystick.sources.quantized.layouts import Unstated
    from tallystick.sources.quantized.methods import quantiser_of

    try:
        return quantiser_of({"expert_dtype": values.get("expert_dtype"), **told}, dtype), ()
    except Unstated as missing:
        return None, (_unknown(told, str(missing), dtype or "float32"),)


def _has_dtype(values: Mapping[str, Any]) -> bool:
    """Whether a config is of a kind that states its dtype: one of a published model."""
    model_type = values.get("model_type")
    return isinstance(model_type, str) and model_type not in architectures.TEACHING


def _unknown(told: Mapping[str, Any], missing: str, dtype: str) -> str:
    method = told.get("quant_method")
    by = f" by {quoted(method)}" if isinstance(method, str) else ""
    return f"the config says that weights are quantised{by}, and {missing}: they are counted in {dtype}"


def _experts_apart(ledger: Ledger, values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> bool:
    """Whether files hold experts one by one, each a linear layer, and not fused to one tensor."""
    if ledger.model.recipe is None or not any(
        entry.role == "experts" and len(entry.shape) == 3 for entry in ledger.rolled
    ):
        return True
    files = ledger_from_config(values, overrides, source=source, published=True)
    return not any(entry.role == "experts" and len(entry.shape) == 3 for entry in files.rolled)


def _packed(ledger: Ledger, quantiser: Quantiser, *, fused: bool) -> Ledger:
    """A ledger with each weight in the bytes that it is packed in, its scales after it, and a note that says so."""
    width = next((int(entry.shape[-1]) for entry in ledger.rolled if entry.role == "token_embedding"), 0)
    conv1d = ledger.architecture in _OF_CONV1D
    held = [
        piece
        for entry in ledger.rolled
        for piece in (
            _pieces(entry, quantiser, *_matrices(entry, width, conv1d=conv1d))
            if _may_be(entry, quantiser, fused=fused)
            else [(entry, entry.size if entry.unique or entry.buffer else 0)]
        )
    ]
    entries = [entry for entry, _ in held]
    packed = [entry for entry in entries if entry.packed is not None]
    if not packed:
        return ledger.with_notes(
            f"the config says that weights are quantised ({quantiser.method}), and none of its modules is"
        )
    size = sum(int(entry.bytes) * int(entry.copies) for entry in entries)
    stored = (sum(int(elements) * int(entry.copies) for entry, elements in held), size)
    ledger = replace(ledger, rolled=tuple(entries), evidence=replace(ledger.evidence, stored=stored))
    counted = sum(int(entry.unique) * int(entry.copies) for entry in packed if not entry.buffer)
    dtypes = ", ".join(dict.fromkeys(entry.dtype for entry in packed if not entry.buffer))
    return ledger.with_notes(
        f"{KEY} ({quantiser.method}): {counted:,} of {ledger.total:,} parameters are packed in {dtypes},"
        f" {sum(int(entry.bytes) * int(entry.copies) for entry in packed):,} bytes with their scales; {size:,} bytes in all",
        *(f"{KEY} lists {quoted(one, most=80)}, which is not read as a pattern" for one in quantiser.unread[:3]),
    )


def _pieces(entry: Entry, quantiser: Quantiser, many: int, out: int, inputs: int) -> Iterator[tuple[Entry, int]]:
    """A tensor that may be packed, as `many` matrices: in runs of layers, each with its scales; and stored elements of one."""
    for run, scheme in _by_layer(entry, quantiser):
        parts = scheme.layout(out, inputs) if scheme else []
        if not scheme or not parts:
            yield run, run.size
            continue
        stored = _beside(run, parts[0], many)
        yield run._replace(dtype=scheme.dtype, packed=stored.packed), stored.size
        for part in parts[1:]:
            one = _beside(run, part, many)
            yield one, one.size


def _may_be(entry: Entry, quantiser: Quantiser, *, fused: bool) -> bool:
    """Whether a quantiser could pack such a tensor: a matrix of a linear layer, or the experts in one tensor."""
    if entry.buffer or not entry.unique or entry.packed is not None:
        return False
    experts, dimensions = entry.role == "experts", len(entry.shape)
    alone = dimensions == 2 and entry.name.endswith(".weight")
    if not alone and not (dimensions == 3 and experts and fused and not entry.name.endswith("bias")):
        return False
    if quantiser.everything or quantiser.experts:
        return experts or (quantiser.everything and entry.role not in ("norm", "position_embedding"))
    within = bool(entry.axes) or not quantiser.blocks
    return quantiser.head if entry.role == "head" else within and entry.role not in _WHOLE


def _matrices(entry: Entry, width: int, *, conv1d: bool) -> tuple[int, int, int]:
    """How many matrices a tensor is, and their outputs and inputs, as their files have them."""
    *stack, out, inputs = map(int, entry.shape)
    many = math.prod(stack)
    two = bool(stack) and entry.name.endswith(_TWO_IN_ONE)
    reads = inputs == width if two or "up" in entry.name else out == width
    if (stack and not reads and width in (out, inputs)) or (conv1d and entry.name.endswith(_CONV1D)):
        out, inputs = inputs, out
    return (2 * many, out // 2, inputs) if two and out % 2 == 0 else (many, out, inputs)


def _beside(entry: Entry, part: StoredPart, many: int) -> Entry:
    """One of the tensors in which a weight is stored, for each of so many matrices."""
    stem = entry.name.removesuffix(".weight")
    ending = part.ending.removeprefix("weight") if stem == entry.name else f".{part.ending}"
    name = f"{stem}{ending if ending.startswith(('.', '_')) else f'_{ending}'}"
    shape = (many, *part.shape) if many > 1 else part.shape
    size = many * math.prod(part.shape)
    bytes_ = size_in_bytes(size, part.dtype)
    return entry._replace(
        name=name, storage=name, shape=shape, dtype=part.dtype, unique=size, buffer=True, active=None, packed=bytes_
    )


def _first(entry: Entry) -> Entry:
    """The first tensor of a stack."""
    for axis in entry.axes:
        entry = entry.numbered(int(axis.start))
    return entry


def _by_layer(entry: Entry, quantiser: Quantiser) -> Iterator[tuple[Entry, Scheme | None]]:
    """A stack in runs of layers that are stored alike, each with how; None as they are."""
    if not entry.axes or not quantiser.by_layer or entry.axes[0].length > _MOST_LAYERS:
        yield entry, quantiser.scheme_of(_names(_first(entry).name))
        return
    first, *others = entry.axes
    found = []
    for number in range(first.start, first.start + first.length):
        name = _first(entry._replace(axes=(Axis(number, 1), *others))).name
        found.append((number, quantiser.scheme_of(_names(name))))
    for scheme, run in groupby(found, key=lambda one: one[1]):
        numbers = [number for number, _ in run]
        yield entry._replace(axes=(Axis(numbers[0], len(numbers)), *others)), scheme


def _names(name: str) -> Sequence[str]:
    """What configs may call the module of a tensor: experts in one tensor are listed as a whole, or one by one."""
    module = name.removesuffix(".weight")
    before, found, last = module.rpartition(".experts.")
    if not found or last[:1].isdigit():
        return (module,)
    single = ("gate_proj", "up_proj") if "gate_up" in last else (last,)
    return (f"{before}.experts", module, *(f"{before}.experts.0.{one}" for one in single))
