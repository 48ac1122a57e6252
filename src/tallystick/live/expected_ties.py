"""Which parameters of a live model should be tied, by transformers' declaration or by role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.errors import BadInput
from tallystick.sources.roles.embedding_and_head import expected_pairs, tied_pairs
from tallystick.sources.torch_module.declared_ties import declared_groups
from tallystick.sources.torch_module.module import ledger_from_module
from tallystick.sources.torch_module.named_parameters import NamedParameters

if TYPE_CHECKING:
    from torch import nn


def expected_groups(
    model: nn.Module, places: NamedParameters, keep: str | None = None, *, resized: bool = False
) -> list[tuple[str, ...]]:
    """Return groups of names that should share one Parameter; the default to keep is first.

    Args:
        model: a module, wrapped or not.
        places: its named parameters.
        keep: the name to keep; selects one of several possible embeddings.
        resized: whether an embedding and a head with different numbers of rows are a group too,
            although they cannot be tied as they are.

    Returns:
        The groups; empty if the model's config ties nothing.

    Raises:
        BadInput: if it is unclear which tensors should be tied.
    """
    declared = declared_groups(model, places)
    return [_by_role(model, places, keep, resized=resized)] if declared is None else declared


def _by_role(model: nn.Module, places: NamedParameters, keep: str | None, *, resized: bool) -> tuple[str, ...]:
    """Return the token embedding and the head with its shape, found by role as in the ledger."""
    entries = [entry for entry in ledger_from_module(model).entries if entry.name in places]
    pairs = tied_pairs(entries)
    if resized and not pairs:
        pairs = expected_pairs(entries)
    embeddings = list(dict.fromkeys(embedding for embedding, _ in pairs))
    heads = list(dict.fromkeys(head for _, head in pairs))
    if not pairs:
        raise BadInput(
            f"no token embedding and head with the same shape in {type(model).__name__}: name the tensors to tie",
            code="no-answer",
        )
    if keep in embeddings:
        embeddings = [keep]
    for several in (embeddings, heads):
        if len({id(places[name].tensor) for name in several}) > 1:
            raise BadInput(
                f"several tensors of {type(model).__name__} could be tied ({', '.join(several[:4])}): name those"
                " to tie",
                code="ambiguous",
            )
    return (*embeddings, *heads)
