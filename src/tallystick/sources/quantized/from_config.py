"""Count a quantised config without weights, in the bytes that its files would hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tallystick.core.dtypes import size_in_bytes
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted
from tallystick.sources.configs.config import ledger_from_config
from tallystick.sources.configs.native import dtype_in, dtype_note
from tallystick.sources.configs.resolve import TEXT_PARTS
from tallystick.sources.quantized import KEY, KEYS

if TYPE_CHECKING:  # most configs need none of it
    from tallystick.sources.quantized.layouts import Scheme, StoredPart
    from tallystick.sources.quantized.settings import Quantiser

_WHOLE = ("router", "norm", "token_embedding", "position_embedding")  # roles that only MLX quantises
_MOST_LAYERS = 10_000  # layers examined one by one, if a config names single layers
_TWO_IN_ONE = ("gate_up_proj", "input_linear.weight", "w13_weight")  # fused gate and up of experts, published as two
# Types with transposed matrices, held by `transformers.pytorch_utils.Conv1D`.
_CONV1D = ("c_attn.weight", "c_fc.weight", "c_proj.weight", "q_attn.weight")
_OF_CONV1D = ("gpt2", "openai-gpt", "imagegpt", "decision_transformer")


def ledger_of_quantised(
    values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str, kind: str = "config"
) -> Ledger:
    """Return the ledger of a config that states how weights are quantised.

    Args:
        values: the config as a dictionary.
        overrides: keys to set over the config; `quantization_config` is allowed, null removes it.
        source: the user's name for the config, for messages.
        kind: ``"config"`` or ``"preset"``.

    Raises:
        BadInput: if the config cannot be read, or nothing reads one of the overrides.
    """
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
        return ledger.with_notes(f"the config states no dtype: unpacked tensors are assumed to be {quantiser.dtype}")
    return ledger.with_notes(*dtype_note(values, overrides)) if kind == "config" and not quantiser else ledger


def pack_as_stated(ledger: Ledger, values: Mapping[str, Any]) -> Ledger:
    """Return a config's ledger with its weights packed as the config states.

    Args:
        ledger: the ledger of the whole model or of a part.
        values: the config of the whole model.

    Raises:
        BadInput: if the config's patterns take more steps than a source may use.
    """
    with _named(ledger.source):
        quantiser, why = _quantiser(values, dtype_in(values))
        if quantiser:
            ledger = _packed(ledger, quantiser, fused=True)
    return ledger.with_notes(*why)


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Add the source and the key to errors raised in the block, such as an exhausted budget."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{source}: {KEY}: {error}", code=error.code) from None


def _quantiser(values: Mapping[str, Any], dtype: str | None) -> tuple[Quantiser | None, tuple[str, ...]]:
    """Return the quantiser that a config or its language part states, or a note on why not."""
    parts = (values[part] for part in TEXT_PARTS if isinstance(values.get(part), Mapping))
    quantisation = next((one[key] for one in (values, *parts) for key in KEYS if one.get(key)), None)
    if not isinstance(quantisation, Mapping):
        return None, ()
    from tallystick.sources.quantized.layouts import Unstated
    from tallystick.sources.quantized.methods import quantiser_of

    try:
        return quantiser_of({"expert_dtype": values.get("expert_dtype"), **quantisation}, dtype), ()
    except Unstated as missing:
        return None, (_unknown(quantisation, str(missing), dtype or "float32"),)


def _unknown(quantisation: Mapping[str, Any], missing: str, dtype: str) -> str:
    method = quantisation.get("quant_method")
    by = f" by {quoted(method)}" if isinstance(method, str) else ""
    return f"the config says that weights are quantised{by}, but {missing}: they are counted in {dtype}"


def _experts_apart(ledger: Ledger, values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> bool:
    """Return whether files hold experts one by one as linear layers, not fused to one tensor."""
    if ledger.model.recipe is None or not any(
        entry.role == "experts" and len(entry.shape) == 3 for entry in ledger.rolled
    ):
        return True
    files = ledger_from_config(values, overrides, source=source, published=True)
    return not any(entry.role == "experts" and len(entry.shape) == 3 for entry in files.rolled)


def _packed(ledger: Ledger, quantiser: Quantiser, *, fused: bool) -> Ledger:
    """Return a ledger with weights in their packed bytes, scales after each weight, and a note."""
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
            f"the config says that weights are quantised ({quantiser.method}), but excludes all modules"
        )
    size = sum(int(entry.bytes) * int(entry.copies) for entry in entries)
    stored = (sum(int(elements) * int(entry.copies) for entry, elements in held), size)
    ledger = replace(ledger, rolled=tuple(entries), evidence=replace(ledger.evidence, stored=stored))
    counted = sum(int(entry.unique) * int(entry.copies) for entry in packed if not entry.buffer)
    dtypes = ", ".join(dict.fromkeys(entry.dtype for entry in packed if not entry.buffer))
    return ledger.with_notes(
        f"{KEY} ({quantiser.method}): {counted:,} of {ledger.total:,} parameters are packed in {dtypes},"
        f" {sum(int(entry.bytes) * int(entry.copies) for entry in packed):,} bytes with scales; {size:,}"
        " bytes in total",
        *(f"{KEY} lists {quoted(one, most=80)}, which is not a supported pattern" for one in quantiser.unread[:3]),
    )


def _pieces(entry: Entry, quantiser: Quantiser, many: int, out: int, inputs: int) -> Iterator[tuple[Entry, int]]:
    """Yield the tensors that store `many` matrices, and the stored elements of each.

    A stack is split into runs of layers that are stored alike.
    """
    for run, scheme in _by_layer(entry, quantiser):
        parts = scheme.layout(out, inputs) if scheme else []
        if not scheme or not parts:
            yield run, run.size
            continue
        stored = _stored_tensor(run, parts[0], many)
        yield run._replace(dtype=scheme.dtype, packed=stored.packed), stored.size
        for part in parts[1:]:
            one = _stored_tensor(run, part, many)
            yield one, one.size


def _may_be(entry: Entry, quantiser: Quantiser, *, fused: bool) -> bool:
    """Return whether a quantiser could pack a tensor: a linear layer's matrix, or fused experts."""
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
    """Return how many matrices a tensor is, and their outputs and inputs in the files."""
    *stack, out, inputs = map(int, entry.shape)
    many = math.prod(stack)
    two = bool(stack) and entry.name.endswith(_TWO_IN_ONE)
    reads = inputs == width if two or "up" in entry.name else out == width
    if (stack and not reads and width in (out, inputs)) or (conv1d and entry.name.endswith(_CONV1D)):
        out, inputs = inputs, out
    return (2 * many, out // 2, inputs) if two and out % 2 == 0 else (many, out, inputs)


def _stored_tensor(entry: Entry, part: StoredPart, many: int) -> Entry:
    """Return one of the tensors that store a weight, for each of `many` matrices."""
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
    """Return the first tensor of a stack."""
    for axis in entry.axes:
        entry = entry.numbered(int(axis.start))
    return entry


def _by_layer(entry: Entry, quantiser: Quantiser) -> Iterator[tuple[Entry, Scheme | None]]:
    """Yield runs of layers that are stored alike, each with its scheme; None if not quantised."""
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
    """Return the names that configs may use for a tensor's module.

    Fused experts are listed as a whole or one by one.
    """
    module = name.removesuffix(".weight")
    before, found, last = module.rpartition(".experts.")
    if not found or last[:1].isdigit():
        return (module,)
    single = ("gate_proj", "up_proj") if "gate_up" in last else (last,)
    return (f"{before}.experts", module, *(f"{before}.experts.0.{one}" for one in single))
