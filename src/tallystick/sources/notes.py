"""What a reader should know of a count: each a line of the ledger's notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tallystick.ledger import Entry, total_of


def notes_by_name(entries: list[Entry]) -> list[str]:
    """What a reader should know of a count that no config backs."""
    notes = []
    buffers = [entry for entry in entries if entry.buffer]
    if buffers:
        example = next(buffers[0].unrolled()).name
        notes.append(
            f"{sum(entry.copies for entry in buffers)} stored tensors are taken as buffers by their well-known names,"
            f" not as parameters (such as {example}): {sum(e.size * e.copies for e in buffers):,} elements"
        )
    present = {entry.role for entry in entries}
    if "token_embedding" in present and "head" not in present:
        notes.append("no LM head is stored: it is tied to the token embedding, or there is none; a config would tell")
    if "experts" in present:
        notes.append("active parameters are unknown: a config would say how many experts a token uses")
    return notes


def packed_note(entries: Iterable[Entry]) -> list[str]:
    """A word of warning where weights are packed: two values of 4 bits in a byte count as one element."""
    packed = [entry for entry in entries if not entry.buffer and "int" in entry.dtype and len(entry.shape) > 1]
    if not packed:
        return []
    count = sum(entry.copies for entry in packed)
    return [f"{count} tensors hold integers, as packed quantised weights do: they are counted as stored elements"]


def mismatch_notes(mismatches: Mapping[str, list[str]]) -> list[str]:
    """One line for each way in which real tensors and a config disagree."""
    said = {
        "missing": "described by the config and not there",
        "unexpected": "there and not described by the config",
        "misshaped": "of another shape than the config says",
    }
    return [
        f"{len(names)} {'tensor is' if len(names) == 1 else 'tensors are'} {said[kind]}: {'; '.join(names[:3])}"
        + ("; …" if len(names) > 3 else "")
        for kind, names in mismatches.items()
        if names
    ]


def wrapper_note(prefix: str) -> list[str]:
    """What follows from names that a wrapper has put its own before."""
    if not any(part in prefix for part in ("module.", "_orig_mod.")):
        return []
    return [
        f"every name begins with {prefix!r}, which a wrapper put there when the model was saved: read here as if it were"
        " not, but transformers would find none of them"
    ]


def further_note(further: Sequence[Entry], entries: Iterable[Entry]) -> list[str]:
    """What of some entries predicts tokens beyond the next, and what the rest is."""
    if not further:
        return []
    apart = sum(entry.unique for entry in further)
    total = total_of(entries)
    return [
        f"{apart:,} parameters in {len(further)} tensors are of multi-token prediction, which the causal language model"
        f" leaves out (such as {min(entry.name for entry in further)}): {total - apart:,} without them"
    ]
