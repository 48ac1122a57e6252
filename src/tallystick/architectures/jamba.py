"""Jamba (AI21 Labs 2024, "Jamba: A Hybrid Transformer-Mamba Language Model"): Mamba, attention and experts here and there."""

from collections.abc import Callable

from tallystick.architectures._decoder import SILU, attention, experts_used, frame, gated_mlp, heads, listable, mixture
from tallystick.architectures._layers import in_turns
from tallystick.architectures._mamba import mamba, rank
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe, natural, or_word


@architecture(
    "jamba",
    "JambaForCausalLM",
    running=SILU,
    aliases={"num_local_experts": "num_experts"},
    vocab_size=65536,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    attn_layer_period=8,
    attn_layer_offset=natural(4),
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=maybe(),
    mamba_d_state=16,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_dt_rank=or_word("auto"),
    mamba_conv_bias=True,
    mamba_proj_bias=False,
    expert_layer_period=2,
    expert_layer_offset=natural(1),
    num_experts=natural(16),
    num_experts_per_tok=2,
    tie_word_embeddings=False,
)
def jamba(c: Config) -> Model:
    attends, sparse = _period(c, "attn_layer"), _period(c, "expert_layer")
    several = c.num_experts > 1
    kinds = ((attends(layer), several and sparse(layer)) for layer in range(listable(c)))
    return frame(
        c, in_turns(kinds, lambda attends, sparse: _block(c, attends=attends, sparse=sparse), depth=c.num_hidden_layers)
    )


def _period(c: Config, name: str) -> Callable[[int], bool]:
    """Which layers are of a kind: one in each period."""
    period, offset = int(getattr(c, f"{name}_period")), int(getattr(c, f"{name}_offset"))
    if offset >= period:
        raise c.refuse(f"{name}_offset = {offset} is not smaller than {name}_period = {period}")
    return lambda layer: layer % period == offset


def _block(c: Config, *, attends: bool, sparse: bool) -> Group:
    d, inner = c.hidden_size, c.intermediate_size
    return Group(
        **{"self_attn": attention(c, heads(c))} if attends else {"mamba": _mamba(c)},
        feed_forward=mixture(c, inner, experts_used(c, "num_experts"), c.num_experts, under="router")
        if sparse
        else gated_mlp(d, inner),  # how a scan runs is not told, so nothing is
        input_layernorm=RMSNorm(d),
        pre_ff_layernorm=RMSNorm(d),
    )


def _mamba(c: Config) -> Group:
    """Mamba, with norms of what it takes from the token."""
    steps, rows = rank(c, "mamba_dt_rank"), c.mamba_d_state
    return mamba(
        c.hidden_size,
        c.mamba_expand * c.hidden_size,
        rows=rows,
        kernel=c.mamba_d_conv,
        rank=steps,
        conv_bias=c.mamba_conv_bias,
        bias=c.mamba_proj_bias,
        dt_layernorm=RMSNorm(steps),
        b_layernorm=RMSNorm(rows),
        c_layernorm=RMSNorm(rows),
    )
