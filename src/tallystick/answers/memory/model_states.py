"""Model states: weights, gradients and optimizer state of each parameter.

See Rajbhandari et al. 2020, "ZeRO", section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tallystick.answers.lora import is_adapter
from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.number_formats import PACKED, bytes_of, is_kept
from tallystick.answers.memory.optimizers import optimizer_named, state_bytes, step_bytes
from tallystick.core.dtypes import BITS, size_in_bytes
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

TRAINED = ("float16", "bfloat16", "float32", "float64")  # dtypes that autograd and torch's optimizers accept
ZERO = "Rajbhandari et al. 2020, ZeRO, section 3.1"


class Precision(NamedTuple):
    """The dtypes of a training run; None keeps each tensor's own."""

    weights: str | None
    products: str  # of matrix products, and thus of most activations
    moments: str | None  # of the optimizer's moments
    copy: bool = False  # the optimizer keeps a float32 copy of the weights


PRECISIONS = ("pure", "mixed", "master")


def precision_of(name: str, form: str | None, own: str, *, adapted: bool) -> Precision:
    """Return the dtypes of a precision.

    Args:
        name: one of `PRECISIONS`.
        form: dtype or packed format that the user wants for the weights; None keeps their own.
        own: the dtype of most weights.
        adapted: whether LoRA freezes the weights, which may then have any format.

    Raises:
        BadInput: for a format that contradicts the precision.
    """
    narrow = ("float16", "bfloat16")
    stated = form if form not in PACKED else None
    if name == "mixed":
        if stated not in (None, "float32", *narrow):
            raise BadInput(f"autocast computes in float16 or bfloat16, not in {stated}", code="conflicting-options")
        products = stated if stated in narrow else "bfloat16"
        return Precision(form if adapted else "float32", products, None)
    if name == "master":
        if adapted:
            raise BadInput(
                "precision master does not apply to LoRA: adapters are float32 already", code="conflicting-options"
            )
        if stated not in (None, *narrow):
            raise BadInput(
                f"precision master keeps a float32 copy of weights in 16 bits, not in {stated}",
                code="conflicting-options",
            )
        weights = stated or (own if own in narrow else "bfloat16")
        return Precision(weights, weights, "float32", copy=True)
    products = stated or (own if own in TRAINED and form is None else "bfloat16")
    return Precision(form, products, None)


def parameters_of(entries: Iterable[Entry], *, live: bool) -> list[Entry]:
    """Return one entry per Parameter object, which has its own gradient and optimizer state.

    In a live module, `aliased` Parameters share only their values: each counts in full.
    """
    if not live:
        return [entry for entry in entries if entry.unique]
    return [entry._replace(unique=entry.size) for entry in entries if entry.identity in ("", entry.name)]


def weights(entries: Sequence[Entry], form: str | None) -> list[Line]:
    """Return lines for the weights, each storage once, and for the adapters."""
    base = [entry for entry in entries if not is_adapter(entry)]
    adapters = [entry for entry in entries if is_adapter(entry)]
    lines = [_of_weights("weights", base, form)]
    if adapters:
        lines.append(_of_weights("LoRA adapters", adapters, None))
    return lines


def _of_weights(what: str, entries: Sequence[Entry], form: str | None) -> Line:
    total = sum(bytes_of(entry, form) for entry in entries)
    elements = _elements(entries)
    if form in PACKED:
        packed = PACKED[form]
        grouped = f"each {packed.group}" if packed.group else "each row"
        formula = (
            f"matrices of the blocks × {packed.bits} bits + {packed.per_group:g} bits for {grouped}; the rest unchanged"
        )
        return Line("weights", f"{what} in {form}", total, formula, packed.source)
    dtypes = [form] if form else list(dict.fromkeys(entry.dtype for entry in entries if entry.unique))
    as_stored = form is None and any(entry.packed is not None for entry in entries)
    formula = f"{elements:,} elements, packed as stored" if as_stored else _times(elements, dtypes)
    return Line("weights", f"{what} in {', '.join(dtypes)}", total, formula)


def is_packed(ledger: Ledger) -> bool:
    """Return whether some of the weights are packed."""
    return any(entry.packed is not None for entry in ledger.rolled)


def quantisation(ledger: Ledger, form: str | None) -> list[Line]:
    """Return the scales, zero points and tables of weights that stay packed as stored."""
    tables = (entry for entry in ledger.rolled if entry.buffer and entry.packed is not None)
    found = [entry for entry in tables if form is None or is_kept(entry, form)]
    total = sum(entry.bytes * entry.copies for entry in found)
    if not total:
        return []
    formula = f"{_elements(found):,} elements in {sum(entry.copies for entry in found):,} tensors, as stored"
    return [Line("weights", "scales, zero points and tables of quantised weights", total, formula)]


def buffers(ledger: Ledger, form: str | None) -> list[Line]:
    """Return the state dict's buffers, such as causal masks; a cast leaves integers as they are."""
    if ledger.filed:  # a file's stored buffers say nothing: a loader need not keep them
        return []
    found = [entry for entry in ledger.rolled if entry.buffer and entry.packed is None]
    dtype = form if form not in PACKED else None
    total = sum(
        size_in_bytes(entry.unique, dtype if dtype and entry.dtype in TRAINED else entry.dtype) * entry.copies
        for entry in found
    )
    if not total:
        return []
    elements = sum(entry.unique * entry.copies for entry in found)  # a buffer on a parameter's storage takes no memory
    return [Line("weights", "buffers", total, f"{elements:,} elements, each in its dtype")]


def trained(entries: Sequence[Entry], precision: Precision, source: str) -> list[tuple[Entry, str]]:
    """Return the trained entries, with the dtypes of their gradients.

    Raises:
        BadInput: for weights in a dtype that cannot be trained.
    """
    found = [
        (entry, entry.dtype if is_adapter(entry) else precision.weights or entry.dtype)
        for entry in entries
        if entry.trainable
    ]
    for entry, dtype in found:
        if dtype not in TRAINED:
            raise BadInput(
                f"{source}: {dtype} weights, such as {entry.name}, cannot be trained; use another dtype, or LoRA"
                " adapters (lora)",
                code="conflicting-options",
            )
    return found


def gradients(parameters: Sequence[tuple[Entry, str]]) -> Line:
    """Return the gradients: one number per trained element, in its parameter's dtype."""
    total = sum(size_in_bytes(entry.unique, dtype) * entry.copies for entry, dtype in parameters)
    dtypes = list(dict.fromkeys(dtype for _, dtype in parameters))
    formula = _times(_elements(entry for entry, _ in parameters), dtypes)
    return Line("gradients", f"gradients in {', '.join(dtypes)}" if dtypes else "gradients", total, formula, ZERO)


def optimizer(parameters: Sequence[tuple[Entry, str]], name: str, precision: Precision) -> list[Line]:
    """Return the optimizer's state, its master weights, and the buffers of one step."""
    how = optimizer_named(name)
    moments = [(entry, precision.moments or dtype) for entry, dtype in parameters]
    elements = _elements(entry for entry, _ in moments)
    widths = {BITS[dtype] // 8 for _, dtype in moments}
    width, twice = ("/".join(str(times * width) for width in sorted(widths)) or "0" for times in (1, 2))
    formula = how.formula.format(
        elements=elements, width=width, twice=twice, tensors=sum(entry.copies for entry, _ in moments)
    )
    kept = sum(state_bytes(entry, name, dtype) for entry, dtype in moments)
    lines = []
    if precision.copy:
        lines.append(Line("optimizer", "master weights in float32", 4 * elements, f"{elements:,} × 4 B", ZERO))
    lines.append(Line("optimizer", f"optimizer state of {name}", kept, formula, how.source))
    if needed := step_bytes(moments, name):
        together = needed % elements == 0
        words = f"{elements:,} × {width} B" if together else "one tensor at a time, at most"
        lines.append(Line("step_buffers", f"buffers of {name}'s step", needed, words, how.source))
    return lines


def backward_buffers(ledger: Ledger, parameters: Sequence[tuple[Entry, str]]) -> list[Line]:
    """Return the memory that a tied matrix needs at the end of the backward pass.

    The head's gradient waits for the embedding's gradient, and autograd writes their sum to a third
    tensor.
    """
    held = {entry.name: dtype for entry, dtype in parameters}
    tied = [
        (entry, held[entry.storage])
        for entry in ledger.parameters
        if entry.storage != entry.name and entry.storage in held and entry.size
        if ledger.kind != "module" or entry.identity == entry.storage
    ]
    if not tied:
        return []
    entry, dtype = max(tied, key=lambda pair: pair[0].size)
    size = entry.size
    return [
        Line(
            "backward_buffers",
            f"both gradients of {entry.storage} = {entry.name}, before their sum",
            2 * size_in_bytes(size, dtype),
            f"2 × {size:,} × {BITS[dtype] // 8} B",
            "torch.autograd: one gradient per use, and their sum in a third tensor",
        )
    ]


def _elements(entries: Iterable[Entry]) -> int:
    return sum(entry.unique * entry.copies for entry in entries)


def _times(elements: int, dtypes: Sequence[str]) -> str:
    """Return `124,439,808 × 2 B` if all dtypes have one width."""
    widths = {size_in_bytes(256, dtype) / 32 for dtype in dtypes}  # in bits; 256 elements fill blocks of every format
    if len(widths) != 1:
        return f"{elements:,} elements, each in its dtype"
    bits = widths.pop()
    return f"{elements:,} × {bits // 8:g} B" if bits % 8 == 0 else f"{elements:,} × {bits:g} bits"
