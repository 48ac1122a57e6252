"""MiniMax-M2 (MiniMax 2025): sigmoid-routed experts in every layer."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


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
def minimax_m2(c: Config) -> nn.Model:
    d, runs, of = c.hidden_size, kit.heads(c), c.num_local_experts
    moe = kit.mixture(  # no `scoring`: activations of ungrouped sigmoid routing are not modelled
        c,
        c.intermediate_size,
        kit.experts_used(c, "num_local_experts"),
        of,
        names=kit.NUMBERED,
        e_score_correction_bias=nn.Buffer(of, role="router"),  # a rule updates it, not a gradient
    )
    block = nn.Module(
        # QK norm over all heads at once.
        self_attn=kit.attention(
            c, runs, q_norm=nn.RMSNorm(runs.queries * runs.size), k_norm=nn.RMSNorm(runs.keys * runs.size)
        ),
        **{"block_sparse_moe" if c.published else "mlp": moe},
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )
    return kit.decoder(c, block)
