"""Mixture of experts: the router and the gated experts."""

from collections.abc import Mapping
from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.registry import Config


def router(reads: int, runs: nn.Routing | None, experts: int, *, bias: bool = False, **more: Any) -> nn.Router:
    """Return a router: a linear layer with one score per expert."""
    return nn.Router(runs, **nn.Linear(reads, experts, bias=bias).children, **more)


def experts_used(c: Config, of: str, by: str = "num_experts_per_tok") -> int:
    """Return the experts per token (key `by`); refuse more than there are (key `of`)."""
    used: int = getattr(c, by)
    if used > getattr(c, of):
        raise c.refuse(f"{by} = {int(used)} is more than {of} = {int(getattr(c, of))}")
    return used


SINGLE = ("gate_proj", "up_proj", "down_proj")  # the matrices of one expert, when experts are stored one by one

NUMBERED = ("w1", "w3", "w2")  # Mixtral's names of the three matrices


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
    **extras: nn.Node | None,
) -> nn.Module:
    """Return gated experts without biases, and their router.

    Args:
        c: the config; its width and activation are read.
        inner: hidden width of one expert.
        used: experts that one token is routed to.
        of: number of experts.
        scoring: how experts are scored, as in `Routing`; None: activations are not modelled.
        weights: how chosen experts are weighted, as in `Routing`.
        under: the router's name.
        names: names of gate, up and down in files that store experts one by one. None: files store
            stacked experts too.
        scores: further children of the router, such as a bias.
        extras: further children, such as shared experts.
    """
    d = c.hidden_size
    expert = nn.FeedForward(d, inner, c.hidden_act, gated=True, fused=True) if scoring else None
    runs = nn.Routing(expert, of, used, scoring, weights) if expert and scoring else None
    chooses = nn.Router(runs, **nn.Linear(d, of, bias=False).children, **(scores or {}))
    return nn.Module(**{under: chooses}, experts=_experts(c, d, inner, used, of, names), **extras)


def _experts(c: Config, d: int, inner: int, used: int, of: int, names: tuple[str, str, str] | None) -> nn.Node:
    if c.published and names:
        gate, up, down = names
        projections = {gate: nn.Linear(d, inner, bias=False), up: nn.Linear(d, inner, bias=False)}
        return nn.ExpertList(used, of, nn.Module(**projections, **{down: nn.Linear(inner, d, bias=False)}))
    return nn.Experts(used, of, gate_up_proj=nn.Parameter((of, 2 * inner, d)), down_proj=nn.Parameter((of, d, inner)))
