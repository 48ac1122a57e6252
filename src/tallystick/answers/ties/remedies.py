"""What to do about a tie that a ledger shows to be lost."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.ledger import Ledger
from tallystick.core.tie_call import LAZY, is_packed_away, one_shape_first, packed_before, retie_call, tied_before


def remedy_of(ledger: Ledger, names: Sequence[str], *, choose: bool) -> str:
    """How to make names one Parameter of a live model; of a file, how to store them once.

    Args:
        ledger: the model's.
        names: those of a group, the one that stays first.
        choose: whether their values differ or may differ, so that somebody has to say which stay.
    """
    if ledger.kind != "module":
        return "tie the model before it is saved, or set tie_word_embeddings in the config.json that is saved with it"
    entries = [ledger.tensors[name] for name in names if name in ledger.tensors]
    if packed := [entry.name for entry in entries if is_packed_away(entry)]:
        return packed_before(packed[0])
    shapes = [tuple(entry.shape) for entry in entries]
    unlike = len({(entry.dtype, entry.trainable) for entry in entries}) > 1 or len(set(shapes)) > 1
    call = retie_call([] if _is_told(ledger, names) else names, names[0] if choose or unlike else "")
    if len(entries) < len(names):  # a lazy parameter is no entry
        return LAZY.format(call)
    if len(set(shapes)) > 1:
        return one_shape_first(shapes, call)
    if ledger.evidence.values is not None and ledger.evidence.values.registered:
        return tied_before(ledger.evidence.values.registered, call)
    return f"{call} makes them one Parameter again"


def _is_told(ledger: Ledger, names: Sequence[str]) -> bool:
    """Whether `retie` finds these names itself: the one group that is meant, or else the one pair of embedding and head."""
    pairs = ledger.evidence.declared
    if pairs is None:
        pairs = tuple(map(tuple, ledger.evidence.values.duplicates())) if ledger.evidence.values is not None else ()
    return len(pairs) == 1 and set(names) <= set(pairs[0])
