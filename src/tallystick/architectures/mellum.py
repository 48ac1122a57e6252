"""Mellum 2 (JetBrains 2026): Qwen3 with experts in the layers that are listed, and windows."""

from tallystick.anatomy import EVERYTHING
from tallystick.architectures._decoder import (
    attention,
    decoder,
    experts_used,
    gated_mlp,
    head_norms,
    heads,
    mixture,
    pre_norm,
    windows_of,
)
from tallystick.architectures._layers import dense_and_sparse
from tallystick.blueprint import Config, Model, RMSNorm, architecture, natural


@architecture(
    "mellum",
    "MellumForCausalLM",
    running={"sliding_window": natural(1024, nullable=True), "layer_types": None},
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
def mellum(c: Config) -> Model:
    d = c.hidden_size
    runs = heads(c, windows=windows_of(c, EVERYTHING))
    attends = attention(c, runs, bias=c.attention_bias, **head_norms(runs))
    # Kinds of layers turn by cosines and sines of their own: what that keeps is not told, nor is the rest.
    used = experts_used(c, "num_experts")
    moe = mixture(c, c.moe_intermediate_size, used, c.num_experts)
    dense, sparse = (pre_norm(attends, mlp, RMSNorm(d)) for mlp in (gated_mlp(d, c.intermediate_size), moe))
    return decoder(c, dense_and_sparse(c, 0, dense, sparse))
