"""MLPs: gated (SwiGLU), gated with one fused projection, and plain."""

from tallystick.core import nodes as nn

HIDDEN_ACT_SILU = {"hidden_act": "silu"}  # the activation of most gates


def gated_mlp(d: int, inner: int, activation: str | None = None, *, bias: bool = False) -> nn.MLP:
    """Return a gated MLP such as SwiGLU; without `activation`, activations are not modelled."""
    return nn.MLP(
        nn.FeedForward(d, inner, activation, gated=True) if activation else None,
        gate_proj=nn.Linear(d, inner, bias=bias),
        up_proj=nn.Linear(d, inner, bias=bias),
        down_proj=nn.Linear(inner, d, bias=bias),
    )


def fused_gated_mlp(d: int, inner: int, activation: str) -> nn.MLP:
    """Return a gated MLP whose gate and up projections are one matrix."""
    return nn.MLP(
        nn.FeedForward(d, inner, activation, gated=True, fused=True),
        gate_up_proj=nn.Linear(d, 2 * inner, bias=False),
        down_proj=nn.Linear(inner, d, bias=False),
    )


def plain_mlp(
    d: int, inner: int, activation: str, up: str = "up_proj", down: str = "down_proj", *, bias: bool = True
) -> nn.MLP:
    """Return an MLP without a gate: up projection, activation, down projection."""
    return nn.MLP(
        nn.FeedForward(d, inner, activation),
        **{up: nn.Linear(d, inner, bias=bias), down: nn.Linear(inner, d, bias=bias)},
    )
