"""The language part of a model that also sees or hears: which of its tensors, and what lies beside them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from tallystick.core.ledger import Entry, Ledger
from tallystick.errors import BadInput
from tallystick.sources.checkpoint.match_config import match_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def names_described(stored: list[Entry], layouts: Sequence[Ledger]) -> frozenset[str]:
    """The stored tensors that `layouts` describe, each under other names; none where one of them is not found."""
    if not layouts:
        return frozenset()
    told = match_config(stored, layouts)
    if told.mismatches["missing"]:
        return frozenset()
    return frozenset(single.name for real, one in told.found.pairs if one for single in real.unrolled())


def names_built(model: PreTrainedModel, source: str) -> frozenset[str]:
    """The tensors of a model's decoder and of its head, by all their names in the model.

    Raises:
        BadInput: where it is its own decoder.
    """
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    if decoder is model:
        raise BadInput(
            f"{source}: transformers' {type(model).__name__} has no part for its language alone", code="no-answer"
        )
    parts = [part for part in (decoder, head) if part is not None]
    own = {id(tensor) for part in parts for tensor in (*part.parameters(), *part.buffers())}
    named = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    return frozenset(name for name, tensor in named if id(tensor) in own)


def left_out(stored: Iterable[Entry], names: Container[str]) -> tuple[str, ...]:
    """A note on the stored parameters that are not of the part, by the outermost modules that are not."""
    singles = [single for entry in stored if not entry.buffer for single in entry.unrolled()]
    above = {module for single in singles if single.name in names for module in _modules(single.name)}
    others = [single for single in singles if single.name not in names]
    if not others:
        return ()
    roots = dict.fromkeys(next((m for m in _modules(one.name) if m not in above), one.name) for one in others)
    listed = ", ".join([*roots][:5]) + (", …" if len(roots) > 5 else "")
    return (f"left out: {sum(one.unique for one in others):,} parameters stored beside it, in {listed}",)


def _modules(name: str) -> list[str]:
    """The modules around a tensor, the outermost first."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]
