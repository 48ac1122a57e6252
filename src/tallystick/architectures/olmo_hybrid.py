"""OLMo Hybrid (Ai2): gated delta nets, and OLMo's attention in every fourth layer."""

from typing import Any

from tallystick.anatomy import Correcting
from tallystick.architectures._decoder import attention, decoder, gated_mlp, heads
from tallystick.architectures._layers import FULL, LINEAR, in_turns, listed
from tallystick.architectures._mamba import short_conv
from tallystick.blueprint import (
    Attention,
    Config,
    Group,
    Linear,
    Model,
    Recurrence,
    RMSNorm,
    Scan,
    Tensor,
    architecture,
    maybe,
)
from tallystick.dims import floor


@architecture(
    "olmo_hybrid",
    "OlmoHybridForCausalLM",
    vocab_size=100352,
    hidden_size=3840,
    intermediate_size=11008,
    num_hidden_layers=32,
    layer_types=None,
    num_attention_heads=30,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    linear_num_key_heads=maybe(),
    linear_num_value_heads=maybe(),
    linear_key_head_dim=maybe(),
    linear_value_head_dim=maybe(),
    linear_conv_kernel_dim=4,
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmo_hybrid(c: Config) -> Model:
    last = c.num_hidden_layers - 1 if c.num_hidden_layers < 4 else None  # of so few, that one attends
    kinds = listed(c, "layer_types", (LINEAR, FULL), lambda layer: FULL if layer % 4 == 3 or layer == last else LINEAR)
    for kind in (LINEAR, FULL):
        if kind not in kinds:
            raise c.refuse(f"of the {len(kinds)} layers at least one must be of the kind {kind}")
    return decoder(c, in_turns(kinds, lambda kind: _block(c, kind)))


def _block(c: Config, kind: str) -> Group:
    d = c.hidden_size
    mlp = gated_mlp(d, c.intermediate_size)  # how a scan runs is not told, so nothing is
    if kind == FULL:
        return Group(
            self_attn=_attention(c),
            mlp=mlp,
            **{
                "feedforward_layer_norm" if c.published else "post_attention_layernorm": RMSNorm(d),
                "post_feedforward_layernorm": RMSNorm(d),
            },
        )
    names = ("attention_layer_norm", "feedforward_layer_norm")
    own = ("input_layernorm", "post_attention_layernorm")
    return Group(mlp=mlp, **{name: RMSNorm(d) for name in (names if c.published else own)}, linear_attn=_delta_net(c))


def _attention(c: Config) -> Attention:
    """Queries and keys are normed over all heads at once."""
    runs = heads(c)
    norms: dict[str, Any] = {"q_norm": RMSNorm(runs.queries * runs.size), "k_norm": RMSNorm(runs.keys * runs.size)}
    return attention(c, runs, bias=c.attention_bias, **norms)


def _delta_net(c: Config) -> Scan:
    """For each head of values a state of keys × values, by default of three quarters of the width and twice that."""
    d, of_keys = c.hidden_size, c.linear_num_key_heads or c.num_attention_heads
    of_values, size = c.linear_num_value_heads or c.num_attention_heads, c.linear_key_head_dim
    size = size or floor(3 * d, 4 * of_keys)
    of_value = c.linear_value_head_dim or 2 * size
    keys, values = of_keys * size, of_values * of_value
    return Scan(
        Recurrence(
            inputs=(2 * keys + values) * c.linear_conv_kernel_dim,
            state=values * size,
            source="Yang et al. 2024, Gated Delta Networks, section 3",
            runs=Correcting(of_values, size, of_value),
        ),
        q_proj=Linear(d, keys, bias=False),
        k_proj=Linear(d, keys, bias=False),
        v_proj=Linear(d, values, bias=False),
        a_proj=Linear(d, of_values, bias=False),
        b_proj=Linear(d, of_values, bias=False),
        g_proj=Linear(d, values, bias=False),
        o_proj=Linear(values, d, bias=False),
        **short_convs(c, c.linear_conv_kernel_dim, keys, keys, values),
        A_log=Tensor((of_values,)),
        dt_bias=Tensor((of_values,)),
        o_norm=RMSNorm(c.linear_value_head_dim or 2 * size),
    )


def short_convs(c: Config, kernel: int, queries: int, keys: int, values: int) -> dict[str, Group]:
    """The convolutions of queries, keys and values, in files one by one."""
    if not c.published:
        return {"conv1d": short_conv(queries + keys + values, kernel, bias=False)}
    widths = {"q_conv1d": queries, "k_conv1d": keys, "v_conv1d": values}
    return {name: short_conv(width, kernel, bias=False) for name, width in widths.items()}
