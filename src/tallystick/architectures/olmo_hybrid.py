"""OLMo Hybrid (Ai2): gated delta nets, and attention in every fourth layer."""

from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import short_conv
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import floor
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "olmo_hybrid",
    "OlmoHybridForCausalLM",
    vocab_size=100352,
    hidden_size=3840,
    intermediate_size=11008,
    num_hidden_layers=32,
    layer_types=None,
    num_attention_heads=30,
    num_key_value_heads=optional(),
    head_dim=optional(),
    linear_num_key_heads=optional(),
    linear_num_value_heads=optional(),
    linear_key_head_dim=optional(),
    linear_value_head_dim=optional(),
    linear_conv_kernel_dim=4,
    attention_bias=False,
    tie_word_embeddings=False,
)
def olmo_hybrid(c: Config) -> nn.Model:
    # With fewer than four layers, the last one has attention.
    last = c.num_hidden_layers - 1 if c.num_hidden_layers < 4 else None
    kinds = kit.listed(
        c,
        "layer_types",
        (kit.LINEAR, kit.FULL),
        lambda layer: kit.FULL if layer % 4 == 3 or layer == last else kit.LINEAR,
    )
    for kind in (kit.LINEAR, kit.FULL):
        if kind not in kinds:
            raise c.refuse(f"of the {len(kinds)} layers at least one must be of the kind {kind}")
    return kit.decoder(c, kit.in_turns(kinds, lambda kind: _block(c, kind)))


def _block(c: Config, kind: str) -> nn.Module:
    d = c.hidden_size
    mlp = kit.gated_mlp(d, c.intermediate_size)  # no runtime info: activations are not modelled for scan layers
    if kind == kit.FULL:
        return nn.Module(
            self_attn=_attention(c),
            mlp=mlp,
            **{
                "feedforward_layer_norm" if c.published else "post_attention_layernorm": nn.RMSNorm(d),
                "post_feedforward_layernorm": nn.RMSNorm(d),
            },
        )
    names = ("attention_layer_norm", "feedforward_layer_norm")
    own = ("input_layernorm", "post_attention_layernorm")
    return nn.Module(
        mlp=mlp, **{name: nn.RMSNorm(d) for name in (names if c.published else own)}, linear_attn=_delta_net(c)
    )


def _attention(c: Config) -> nn.Attention:
    """Attention with QK norm over all heads at once."""
    runs = kit.heads(c)
    norms: dict[str, Any] = {
        "q_norm": nn.RMSNorm(runs.queries * runs.size),
        "k_norm": nn.RMSNorm(runs.keys * runs.size),
    }
    return kit.attention(c, runs, bias=c.attention_bias, **norms)


def _delta_net(c: Config) -> nn.Scan:
    """A gated delta net: per value head, a state of keys × values.

    By default the keys together are 3/4 of the width, and a value is twice as large as a key.
    """
    d, of_keys = c.hidden_size, c.linear_num_key_heads or c.num_attention_heads
    of_values, size = c.linear_num_value_heads or c.num_attention_heads, c.linear_key_head_dim
    size = size or floor(3 * d, 4 * of_keys)
    of_value = c.linear_value_head_dim or 2 * size
    keys, values = of_keys * size, of_values * of_value
    return nn.Scan(
        nn.Recurrence(
            inputs=(2 * keys + values) * c.linear_conv_kernel_dim,
            state=values * size,
            source="Yang et al. 2024, Gated Delta Networks, section 3",
            runs=nn.DeltaRule(of_values, size, of_value),
        ),
        q_proj=nn.Linear(d, keys, bias=False),
        k_proj=nn.Linear(d, keys, bias=False),
        v_proj=nn.Linear(d, values, bias=False),
        a_proj=nn.Linear(d, of_values, bias=False),
        b_proj=nn.Linear(d, of_values, bias=False),
        g_proj=nn.Linear(d, values, bias=False),
        o_proj=nn.Linear(values, d, bias=False),
        **short_convs(c, c.linear_conv_kernel_dim, keys, keys, values),
        A_log=nn.Parameter((of_values,)),
        dt_bias=nn.Parameter((of_values,)),
        o_norm=nn.RMSNorm(c.linear_value_head_dim or 2 * size),
    )


def short_convs(c: Config, kernel: int, queries: int, keys: int, values: int) -> dict[str, nn.Module]:
    """Return the short convolutions of q, k and v; checkpoints store them separately."""
    if not c.published:
        return {"conv1d": short_conv(queries + keys + values, kernel, bias=False)}
    widths = {"q_conv1d": queries, "k_conv1d": keys, "v_conv1d": values}
    return {name: short_conv(width, kernel, bias=False) for name, width in widths.items()}
