"""Phi-3, Phi-3.5 and Phi-4 (Abdin et al. 2024, "Phi-3 Technical Report")."""

from tallystick.architectures._decoder import SILU, decoder, fused_gated_mlp, heads, pre_norm
from tallystick.blueprint import (
    Attention,
    Config,
    Group,
    Linear,
    Model,
    RMSNorm,
    architecture,
    maybe,
    natural,
)


@architecture(
    "phi3",
    "Phi3ForCausalLM",
    running={**SILU, "sliding_window": natural(None, nullable=True)},
    vocab_size=32064,
    hidden_size=3072,
    intermediate_size=8192,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    tie_word_embeddings=False,
)
def phi3(c: Config) -> Model:
    return decoder(c, layer(c))


def layer(c: Config) -> Group:
    d = c.hidden_size
    runs = heads(c, windows=((c.sliding_window, 1),), joined=True)
    queries, keys = runs.queries * runs.size, runs.keys * runs.size
    attends = Attention(
        runs,
        o_proj=Linear(queries, d, bias=False),
        qkv_proj=Linear(d, queries + 2 * keys, bias=False),
    )
    return pre_norm(attends, fused_gated_mlp(d, c.intermediate_size, c.hidden_act), RMSNorm(d))
