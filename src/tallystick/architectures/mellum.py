"""Mellum 2 (JetBrains 2026): Qwen3 with experts in the listed layers, and windows."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "mellum",
    "MellumForCausalLM",
    running={"sliding_window": nonnegative(1024, nullable=True), "layer_types": None},
    aliases={"num_local_experts": "num_experts"},
    vocab_size=98304,
    hidden_size=2304,
    intermediate_size=7168,
    moe_intermediate_size=896,
    num_hidden_layers=28,
    mlp_layer_types=None,
    num_attention_heads=32,
    num_key_value_heads=4,
    head_dim=128,
    num_experts=64,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def mellum(c: Config) -> nn.Model:
    d = c.hidden_size
    runs = kit.heads(c, windows=kit.windows_of(c, nn.EVERYTHING))
    attends = kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs))
    # Activations are not modelled: each kind of layer has its own RoPE.
    used = kit.experts_used(c, "num_experts")
    moe = kit.mixture(c, c.moe_intermediate_size, used, c.num_experts)
    dense, sparse = (kit.pre_norm(attends, mlp, nn.RMSNorm(d)) for mlp in (kit.gated_mlp(d, c.intermediate_size), moe))
    return kit.decoder(c, kit.dense_and_sparse(c, 0, dense, sparse))
