"""Write the notes of a ledger: caveats that a reader of the count should know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tallystick.core.entries import Entry, total_of
from tallystick.core.ledger import Ledger
from tallystick.errors import grouped, quoted
from tallystick.formats.weights_file import Weight

NO_HEAD = "no LM head is stored: either it is tied to the token embedding, or the model has none (a config would show)"


def notes_by_name(entries: list[Entry], *, whole: bool = True) -> list[str]:
    """Return notes for a count without a config: buffers guessed by name, a missing head, experts.

    Args:
        entries: the stored tensors.
        whole: whether they are a whole model; False for an adapter.
    """
    notes = []
    buffers = [entry for entry in entries if entry.buffer]
    if buffers:
        example = next(buffers[0].unrolled()).name
        notes.append(
            f"{sum(entry.copies for entry in buffers)} stored tensors count as buffers, because of their names"
            f" (such as {example}): {sum(e.size * e.copies for e in buffers):,} elements"
        )
    present = {entry.role for entry in entries} if whole else set()
    if "token_embedding" in present and "head" not in present:
        notes.append(NO_HEAD)
    return notes + active_note(entries) if whole else notes


def active_note(entries: Iterable[Entry]) -> list[str]:
    """Return a note if there are experts and the number used per token is unknown."""
    if all(entry.role != "experts" or entry.active is not None or entry.buffer for entry in entries):
        return []
    return ["active parameters are unknown: only a config states how many experts a token uses"]


def packed_notes(entries: Iterable[Entry], weights: Mapping[str, Weight], method: object = None) -> list[str]:
    """Return notes on how packed weights were counted, and a warning if the packing is unknown.

    Args:
        entries: the ledger's entries.
        weights: the weights that are known to be packed, by name.
        method: the quantisation method that the config states.
    """
    groups: dict[tuple[str, str], list[Weight]] = {}
    for weight in weights.values():
        if weight.scheme and weight.size != weight.stored:  # the format writes its own note on the others
            groups.setdefault((weight.scheme, weight.dtype), []).append(weight)
    notes = [
        f"{_counted(len(group), 'weight')} packed in {dtype} ({scheme}): {sum(one.size for one in group):,} elements in"
        f" {sum(one.stored for one in group):,} stored ones"
        for (scheme, dtype), group in groups.items()
    ]
    unknown = [
        entry
        for entry in entries
        if not entry.buffer
        and "int" in entry.dtype
        and len(entry.shape) > 1
        and next(entry.unrolled()).name not in weights
    ]
    if unknown:
        count = sum(entry.copies for entry in unknown)
        notes.append(f"{count} tensors hold integers, possibly packed quantised weights: counted as stored elements")
    if method and not weights:
        notes.append(
            f"the config says that weights are quantised by {quoted(method)}, but no packed weight is"
            " recognised: stored elements are counted"
        )
    return notes


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun} is" if count == 1 else f"{count:,} {noun}s are"


_FLOATS = ("float16", "bfloat16", "float32", "float64")
_FEW = 100  # up to 1/100 of the parameters may have another dtype without a note: norms, router biases


def dtype_notes(entries: Iterable[Entry], config: Mapping[str, Any]) -> list[str]:
    """Return a note if the tensors' dtype differs from the config's.

    Quantised tensors are ignored.

    Args:
        entries: the stored tensors.
        config: the config next to them.
    """
    stated = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    counts: dict[str, int] = {}
    for entry in entries:
        if not entry.buffer and entry.dtype in _FLOATS:
            counts[entry.dtype] = counts.get(entry.dtype, 0) + entry.unique * entry.copies
    other = {dtype: count for dtype, count in counts.items() if dtype != stated and count * _FEW > sum(counts.values())}
    if stated not in _FLOATS or not other:
        return []
    held = ", ".join(f"{count:,} in {dtype}" for dtype, count in counts.items())
    return [f"the config says {stated}, but the tensors are {held}"]


def mismatch_notes(mismatches: Mapping[str, list[str]]) -> list[str]:
    """Return one line for each kind of disagreement between the stored tensors and a config.

    Args:
        mismatches: tensor names under ``"missing"``, ``"unexpected"`` and ``"misshaped"``.
    """
    said = {
        "missing": "in the config but missing",
        "unexpected": "stored but not in the config",
        "misshaped": "of another shape than in the config",
    }
    return [
        f"{_counted(len(names), 'tensor')} {said[kind]}: {'; '.join(names[:3])}" + ("; …" if len(names) > 3 else "")
        for kind, names in mismatches.items()
        if names
    ]


def wrapper_note(prefix: str) -> list[str]:
    """Return a note if every name begins with a training wrapper's prefix."""
    if not any(part in prefix for part in ("module.", "_orig_mod.")):
        return []
    return [
        f"every name begins with {prefix!r}, the prefix of a wrapper: ignored here, but transformers will"
        " not find these tensors"
    ]


def further_note(further: Sequence[Entry], entries: Iterable[Entry]) -> list[str]:
    """Return a note on multi-token prediction layers, with the total without them.

    Args:
        further: the tensors of these layers.
        entries: all stored tensors.
    """
    if not further:
        return []
    apart = sum(entry.unique for entry in further)
    total = total_of(entries)
    return [
        f"{apart:,} parameters in {len(further)} tensors are for multi-token prediction, not part of the"
        f" causal language model (such as {min(entry.name for entry in further)}): {total - apart:,}"
        " without them"
    ]


def claim_notes(index: Path, said: Mapping[str, Any], ledger: Ledger) -> tuple[str, ...]:
    """Return notes if an index's metadata states sizes that differ from its files.

    No loader needs these sums.

    Args:
        index: the path of the index file.
        said: the metadata in the index, with `total_size` in bytes.
        ledger: the ledger of the indexed files.
    """
    notes = []
    size, parameters = said.get("total_size"), said.get("total_parameters")
    held = ledger.totals["stored_bytes"]
    if isinstance(size, int | float) and not isinstance(size, bool) and size != held:
        notes.append(f"{index.name} says total_size {grouped(size)}, but its files hold {held:,} bytes of tensors")
    if type(parameters) is int and parameters != ledger.total:
        twice = parameters == ledger.totals["by_name"]
        how = (
            "if every name is counted"
            if twice
            else f"{grouped(abs(parameters - ledger.total))} {'more' if parameters > ledger.total else 'fewer'}"
        )
        notes.append(f"{index.name} says total_parameters {grouped(parameters)}: {how}")
    return tuple(notes)
