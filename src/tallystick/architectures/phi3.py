"""Phi-3, Phi-3.5 and Phi-4 (Abdin et al. 2024, "Phi-3 Technical Report")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "phi3",
    "Phi3ForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(None, nullable=True)},
    vocab_size=32064,
    hidden_size=3072,
    intermediate_size=8192,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    tie_word_embeddings=False,
)
def phi3(c: Config) -> nn.Model:
    return kit.decoder(c, layer(c))


def layer(c: Config) -> nn.Module:
    d = c.hidden_size
    runs = kit.heads(c, windows=((c.sliding_window, 1),))
    queries, keys = runs.queries * runs.size, runs.keys * runs.size
    attends = nn.Attention(
        runs,
        o_proj=nn.Linear(queries, d, bias=False),
        qkv_proj=nn.Linear(d, queries + 2 * keys, bias=False),
    )
    return kit.pre_norm(attends, kit.fused_gated_mlp(d, c.intermediate_size, c.hidden_act), nn.RMSNorm(d))
