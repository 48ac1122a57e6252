"""Jamba: Mamba layers, periodic attention and periodic experts.

Source: AI21 Labs 2024, "Jamba: A Hybrid Transformer-Mamba Language Model".
"""

from collections.abc import Callable

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import mamba, rank
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, int_or, nonnegative, optional


@architecture(
    "jamba",
    "JambaForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    aliases={"num_local_experts": "num_experts"},
    vocab_size=65536,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    attn_layer_period=8,
    attn_layer_offset=nonnegative(4),
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=optional(),
    mamba_d_state=16,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_dt_rank=int_or("auto"),
    mamba_conv_bias=True,
    mamba_proj_bias=False,
    expert_layer_period=2,
    expert_layer_offset=nonnegative(1),
    num_experts=nonnegative(16),
    num_experts_per_tok=2,
    tie_word_embeddings=False,
)
def jamba(c: Config) -> nn.Model:
    attends, sparse = _period(c, "attn_layer"), _period(c, "expert_layer")
    several = c.num_experts > 1
    kinds = ((attends(layer), several and sparse(layer)) for layer in range(kit.listable(c)))
    return kit.frame(
        c,
        kit.in_turns(
            kinds, lambda attends, sparse: _block(c, attends=attends, sparse=sparse), depth=c.num_hidden_layers
        ),
    )


def _period(c: Config, name: str) -> Callable[[int], bool]:
    """Test for the layers of a kind: one per period."""
    period, offset = int(getattr(c, f"{name}_period")), int(getattr(c, f"{name}_offset"))
    if offset >= period:
        raise c.refuse(f"{name}_offset = {offset} is not smaller than {name}_period = {period}")
    return lambda layer: layer % period == offset


def _block(c: Config, *, attends: bool, sparse: bool) -> nn.Module:
    d, inner = c.hidden_size, c.intermediate_size
    return nn.Module(
        **{"self_attn": kit.attention(c, kit.heads(c))} if attends else {"mamba": _mamba(c)},
        feed_forward=kit.mixture(c, inner, kit.experts_used(c, "num_experts"), c.num_experts, under="router")
        if sparse
        else kit.gated_mlp(d, inner),  # no runtime info: activations are not modelled for scan layers
        input_layernorm=nn.RMSNorm(d),
        pre_ff_layernorm=nn.RMSNorm(d),
    )


def _mamba(c: Config) -> nn.Module:
    """Mamba with norms on the steps, B and C."""
    steps, rows = rank(c, "mamba_dt_rank"), c.mamba_d_state
    return mamba(
        c.hidden_size,
        c.mamba_expand * c.hidden_size,
        rows=rows,
        kernel=c.mamba_d_conv,
        rank=steps,
        conv_bias=c.mamba_conv_bias,
        bias=c.mamba_proj_bias,
        dt_layernorm=nn.RMSNorm(steps),
        b_layernorm=nn.RMSNorm(rows),
        c_layernorm=nn.RMSNorm(rows),
    )
