"""MiniMax-M2 (MiniMax 2025): experts chosen by sigmoids, in every layer."""

from tallystick.architectures._decoder import NUMBERED, attention, decoder, experts_used, heads, mixture
from tallystick.blueprint import Config, Group, Model, RMSNorm, Tensor, architecture


@architecture(
    "minimax_m2",
    "MiniMaxM2ForCausalLM",
    aliases={"num_experts": "num_local_experts"},
    vocab_size=200064,
    hidden_size=3072,
    intermediate_size=1536,
    num_hidden_layers=62,
    num_attention_heads=48,
    num_key_value_heads=8,
    head_dim=128,
    num_local_experts=256,
    num_experts_per_tok=8,
    tie_word_embeddings=False,
)
def minimax_m2(c: Config) -> Model:
    d, runs, of = c.hidden_size, heads(c), c.num_local_experts
    moe = mixture(  # what a choice by sigmoids without groups keeps is not told
        c,
        c.intermediate_size,
        experts_used(c, "num_local_experts"),
        of,
        names=NUMBERED,
        e_score_correction_bias=Tensor((of,), "router", buffer=True),  # a rule sets it, no gradient
    )
    block = Group(
        # Queries and keys are normalised over all heads at once.
        self_attn=attention(c, runs, q_norm=RMSNorm(runs.queries * runs.size), k_norm=RMSNorm(runs.keys * runs.size)),
        **{"block_sparse_moe" if c.published else "mlp": moe},
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )
    return decoder(c, block)
