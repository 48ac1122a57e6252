"""Find the tensors of a multimodal model's language part, and note the others."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.sources.checkpoint.match_config import match_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def names_described(stored: list[Entry], layouts: Sequence[Ledger]) -> frozenset[str]:
    """Return the stored names that `layouts` describe.

    The set is empty if a described tensor is missing.

    Args:
        stored: the checkpoint's entries.
        layouts: ledgers of the language part, one for each layout of tensor names.
    """
    if not layouts:
        return frozenset()
    matched = match_config(stored, layouts)
    if matched.mismatches["missing"]:
        return frozenset()
    return frozenset(single.name for real, one in matched.found.pairs if one for single in real.unrolled())


def names_built(model: PreTrainedModel, source: str) -> frozenset[str]:
    """Return all names of the tensors in a model's decoder and LM head.

    Args:
        model: a transformers model.
        source: the user's name for it, for messages.

    Raises:
        BadInput: if the model is its own decoder, so there is no separate language part.
    """
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    if decoder is model:
        raise BadInput(
            f"{source}: transformers' {type(model).__name__} has no separate language part", code="no-answer"
        )
    parts = [part for part in (decoder, head) if part is not None]
    own = {id(tensor) for part in parts for tensor in (*part.parameters(), *part.buffers())}
    named = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    return frozenset(name for name, tensor in named if id(tensor) in own)


def left_out(stored: Iterable[Entry], names: Container[str]) -> tuple[str, ...]:
    """Return a note on the stored parameters outside the language part, by outermost module.

    Args:
        stored: the checkpoint's entries.
        names: the names in the language part.
    """
    singles = [single for entry in stored if not entry.buffer for single in entry.unrolled()]
    above = {module for single in singles if single.name in names for module in _modules(single.name)}
    others = [single for single in singles if single.name not in names]
    if not others:
        return ()
    roots = dict.fromkeys(next((m for m in _modules(one.name) if m not in above), one.name) for one in others)
    listed = ", ".join([*roots][:5]) + (", …" if len(roots) > 5 else "")
    return (f"left out: {sum(one.unique for one in others):,} parameters of other parts, in {listed}",)


def _modules(name: str) -> list[str]:
    """Return the names of the modules around a tensor, the outermost first."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]
