"""LFM2 with experts (Liquid AI 2025, "LFM2 Technical Report"); the first layers are dense."""

from tallystick.architectures import kit
from tallystick.architectures.lfm2 import CONV, block, gated, mixer
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "lfm2_moe",
    "Lfm2MoeForCausalLM",
    running={"hidden_act": "silu"},
    aliases={"tie_embedding": "tie_word_embeddings"},
    vocab_size=65536,
    hidden_size=2048,
    intermediate_size=7168,
    moe_intermediate_size=1792,
    num_hidden_layers=32,
    layer_types=None,
    num_dense_layers=nonnegative(2),
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=optional(),
    conv_L_cache=3,
    conv_bias=False,
    num_experts=32,
    num_experts_per_tok=4,
    use_expert_bias=True,
    tie_word_embeddings=True,
)
def lfm2_moe(c: Config) -> nn.Model:
    kinds = enumerate(kit.listed(c, "layer_types", (CONV, kit.FULL), None))
    dense = gated(c, c.intermediate_size)
    layers = kit.in_turns(
        ((kind, number < c.num_dense_layers) for number, kind in kinds),
        lambda kind, first: block(c, dense if first else _mixture(c), **mixer(c, kind)),
        depth=c.num_hidden_layers,
    )
    return kit.frame(c, layers, norm="embedding_norm")


def _mixture(c: Config) -> nn.Module:
    of = c.num_experts
    return kit.mixture(
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "num_experts"),
        of,
        names=("w1", "w3", "w2"),
        expert_bias=nn.Buffer(of, role="router") if c.use_expert_bias else None,
    )
