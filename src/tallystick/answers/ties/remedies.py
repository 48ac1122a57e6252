"""Name the remedy for a lost tie: the call or command that restores it."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.ledger import Ledger
from tallystick.core.tie_call import LAZY, is_packed_away, one_shape_first, packed_before, retie_call, tied_before


def remedy_of(ledger: Ledger, names: Sequence[str], *, choose: bool) -> str:
    """Return how to tie the names in a live model, or how to store them once in a file.

    Args:
        ledger: the model.
        names: the names of one group; the first name's tensor is kept.
        choose: whether the values differ or may differ, so that the user must choose which to keep.
    """
    if ledger.kind != "module":
        return "tie the model before saving it, or set tie_word_embeddings in its config.json"
    entries = [ledger.tensors[name] for name in names if name in ledger.tensors]
    if packed := [entry.name for entry in entries if is_packed_away(entry)]:
        return packed_before(packed[0])
    shapes = [tuple(entry.shape) for entry in entries]
    unlike = len({(entry.dtype, entry.trainable) for entry in entries}) > 1 or len(set(shapes)) > 1
    call = retie_call([] if _is_known(ledger, names) else names, names[0] if choose or unlike else "")
    if len(entries) < len(names):  # a lazy parameter has no entry
        return LAZY.format(call)
    if len(set(shapes)) > 1:
        return one_shape_first(shapes, call)
    if ledger.evidence.values is not None and ledger.evidence.values.registered:
        return tied_before(ledger.evidence.values.registered, call)
    return f"tie them with {call}"


def _is_known(ledger: Ledger, names: Sequence[str]) -> bool:
    """Return whether `retie` finds these names without arguments: they are the only known pair."""
    pairs = ledger.evidence.declared
    if pairs is None:
        pairs = tuple(map(tuple, ledger.evidence.values.duplicates())) if ledger.evidence.values is not None else ()
    return len(pairs) == 1 and set(names) <= set(pairs[0])
