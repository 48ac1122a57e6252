"""Mixture of experts: the router, and the experts that it chooses among."""

from collections.abc import Mapping
from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.registry import Config


def router(reads: int, runs: nn.Routing | None, experts: int, *, bias: bool = False, **more: Any) -> nn.Router:
    """One score for each expert."""
    return nn.Router(runs, **nn.Linear(reads, experts, bias=bias).children, **more)


def experts_used(c: Config, of: str, by: str = "num_experts_per_tok") -> int:
    """How many experts a token goes through, as the key `by` says; it cannot be more than there are, as `of` says."""
    used: int = getattr(c, by)
    if used > getattr(c, of):
        raise c.refuse(f"{by} = {int(used)} is more than {of} = {int(getattr(c, of))}")
    return used


SINGLE = ("gate_proj", "up_proj", "down_proj")  # the matrices of an expert that is held on its own

NUMBERED = ("w1", "w3", "w2")  # as Mixtral calls them


def mixture(
    c: Config,
    inner: int,
    used: int,
    of: int,
    *,
    scoring: str | None = None,
    weights: str = "float32",
    under: str = "gate",
    names: tuple[str, str, str] | None = SINGLE,
    scores: Mapping[str, Any] | None = None,
    **beside: nn.Node | None,
) -> nn.Module:
    """Gated experts without biases, and the router that chooses among them.

    Args:
        c: the config, of which the width and the activation are read.
        inner: the width inside of an expert.
        used: how many a token goes through.
        of: how many there are.
        scoring: how they are chosen, as in `Routing`; None: that is not told.
        weights: how they are weighted, as in `Routing`.
        under: the router's name.
        names: of gate, up and down where experts are published one by one; None: all of them are in one tensor there too.
        scores: what the router holds beside its matrix.
        beside: what all tokens go through beside them.
    """
    d = c.hidden_size
    expert = nn.FeedForward(d, inner, c.hidden_act, gated=True, fused=True) if scoring else None
    runs = nn.Routing(expert, of, used, scoring, weights) if expert and scoring else None
    chooses = nn.Router(runs, **nn.Linear(d, of, bias=False).children, **(scores or {}))
    return nn.Module(**{under: chooses}, experts=_experts(c, d, inner, used, of, names), **beside)


def _experts(c: Config, d: int, inner: int, used: int, of: int, names: tuple[str, str, str] | None) -> nn.Node:
    if c.published and names:
        gate, up, down = names
        projections = {gate: nn.Linear(d, inner, bias=False), up: nn.Linear(d, inner, bias=False)}
        return nn.ExpertList(used, of, nn.Module(**projections, **{down: nn.Linear(inner, d, bias=False)}))
    return nn.Experts(used, of, gate_up_proj=nn.Parameter((of, 2 * inner, d)), down_proj=nn.Parameter((of, d, inner)))
