"""Llama 4's text model: chunked attention, NoPE layers, routed and shared experts.

Source: Meta 2025, "The Llama 4 herd".
"""

from collections.abc import Container

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative
from tallystick.errors import shown


@architecture(
    "llama4_text",
    "Llama4ForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "attention_chunk_size": nonnegative(8192, nullable=True),
        "no_rope_layers": None,
        "no_rope_layer_interval": 4,
        "layer_types": None,
        "use_qk_norm": True,
        "attn_temperature_tuning": True,
    },
    vocab_size=202048,
    hidden_size=5120,
    intermediate_size=8192,
    intermediate_size_mlp=16384,
    num_hidden_layers=48,
    num_attention_heads=40,
    num_key_value_heads=8,
    head_dim=128,
    num_local_experts=16,
    num_experts_per_tok=1,
    moe_layers=None,
    interleave_moe_layer_step=1,
    attention_bias=False,
    tie_word_embeddings=False,
)
def llama4_text(c: Config) -> nn.Model:
    d, inner, of = c.hidden_size, c.intermediate_size, c.num_local_experts
    used = kit.experts_used(c, "num_local_experts")
    sparse = nn.Module(
        experts=nn.Experts(
            used, of, gate_up_proj=nn.Parameter((of, d, 2 * inner)), down_proj=nn.Parameter((of, inner, d))
        ),
        router=kit.router(
            d, nn.Routing(nn.FeedForward(d, inner, c.hidden_act, gated=True, fused=True), of, used, "scaled"), of
        ),
        shared_expert=kit.gated_mlp(d, inner, c.hidden_act),
    )
    dense = kit.gated_mlp(d, c.intermediate_size_mlp, c.hidden_act)
    return kit.decoder(c, kit.two_kinds(c, _sparse(c), _block(c, sparse), _block(c, dense)))


def _block(c: Config, feed_forward: nn.Module) -> nn.Module:
    d = c.hidden_size
    runs = kit.heads(
        c,
        windows=_windows(c),
        chunked=True,
        rotary=int(c.head_dim) // 2,  # one complex number per pair
        l2_norm=c.use_qk_norm,
        temperature_tuning=c.attn_temperature_tuning,
    )
    return nn.Module(
        self_attn=kit.attention(c, runs, bias=c.attention_bias),
        feed_forward=feed_forward,
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )


def _sparse(c: Config) -> Container[int]:
    """Numbers of the sparse layers: `moe_layers`, or every `interleave_moe_layer_step`-th."""
    if c.moe_layers is None:
        step = int(c.interleave_moe_layer_step)
        return range(step - 1, int(c.num_hidden_layers), step)
    if not isinstance(c.moe_layers, list) or not all(type(layer) is int for layer in c.moe_layers):
        raise c.refuse(f"moe_layers is {shown(c.moe_layers)}, expected a list of layers, or null")
    return frozenset(c.moe_layers)


def _windows(c: Config) -> nn.Windows:
    """Chunked attention in RoPE layers, full attention in NoPE layers."""
    return kit.windows_of(c, kit.rope_windows(c, c.attention_chunk_size, turned=True), "attention_chunk_size")
