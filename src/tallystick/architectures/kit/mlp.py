"""What each position goes through on its own: with a gate or without."""

from tallystick.core import nodes as nn

HIDDEN_ACT_SILU = {"hidden_act": "silu"}  # what most gates are activated by


def gated_mlp(d: int, inner: int, activation: str | None = None, *, bias: bool = False) -> nn.MLP:
    """SwiGLU and other gated MLPs: the gate's activation scales the up projection."""
    return nn.MLP(
        nn.FeedForward(d, inner, activation, gated=True) if activation else None,
        gate_proj=nn.Linear(d, inner, bias=bias),
        up_proj=nn.Linear(d, inner, bias=bias),
        down_proj=nn.Linear(inner, d, bias=bias),
    )


def fused_gated_mlp(d: int, inner: int, activation: str) -> nn.MLP:
    """The same, gate and up projection in one."""
    return nn.MLP(
        nn.FeedForward(d, inner, activation, gated=True, fused=True),
        gate_up_proj=nn.Linear(d, 2 * inner, bias=False),
        down_proj=nn.Linear(inner, d, bias=False),
    )


def plain_mlp(
    d: int, inner: int, activation: str, up: str = "up_proj", down: str = "down_proj", *, bias: bool = True
) -> nn.MLP:
    """Up, an activation, down, without a gate."""
    return nn.MLP(
        nn.FeedForward(d, inner, activation),
        **{up: nn.Linear(d, inner, bias=bias), down: nn.Linear(inner, d, bias=bias)},
    )
