"""Find the token embedding and the LM head, the pair that is usually tied."""

from __future__ import annotations

from collections.abc import Iterable

from tallystick.core.entries import Entry

_RESIZED = 2  # largest ratio of rows between head and embedding; beyond it the head is a classifier


def tied_pairs(entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """Return (embedding, head) for each head with the embedding's shape, transposed or not.

    The unused copy that PEFT keeps of a replaced module (`original_module`) is excluded.
    """
    matrices = _matrices(entries)
    return [
        (embedding.name, head.name)
        for embedding in matrices
        if embedding.role == "token_embedding"
        for head in matrices
        if head.role == "head" and head.shape in (embedding.shape, embedding.shape[::-1])
    ]


def expected_pairs(entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """Return `tied_pairs`, or else the largest embedding and head if one of them was resized.

    Such a pair has equal width and different rows.
    """
    matrices = _matrices(entries)
    if pairs := tied_pairs(matrices):
        return pairs
    largest = {role: max((e for e in matrices if e.role == role), key=_rows, default=None) for role in _ENDS}
    embedding, head = (largest[role] for role in _ENDS)
    if embedding is None or head is None or min(embedding.shape) != min(head.shape):
        return []
    fewer, more = sorted((_rows(embedding), _rows(head)))
    return [(embedding.name, head.name)] if more <= _RESIZED * fewer else []


_ENDS = ("token_embedding", "head")


def _matrices(entries: Iterable[Entry]) -> list[Entry]:
    matrices = [entry for entry in entries if not entry.buffer and not entry.axes and len(entry.shape) == 2]
    return [entry for entry in matrices if ".original_module." not in entry.name]


def _rows(entry: Entry) -> int:
    return max(entry.shape)
