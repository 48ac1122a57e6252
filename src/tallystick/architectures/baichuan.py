"""Baichuan and Baichuan 2: Llama's block with one fused projection for queries, keys and values.

Source: Yang et al. 2023, "Baichuan 2: Open Large-scale Language Models".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "baichuan",
    "BaichuanForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "max_position_embeddings": optional()},
    vocab_size=64000,
    hidden_size=5120,
    intermediate_size=13696,
    num_hidden_layers=40,
    num_attention_heads=40,
    tie_word_embeddings=False,
)
def baichuan(c: Config) -> nn.Model:
    d, many = c.hidden_size, c.num_attention_heads
    attends = nn.Attention(
        # Configs of 7B have this key, and the models are rotary. Those of 13B have ALiBi.
        nn.Heads(many, many, d / many, rotary=None if c.max_position_embeddings else 0),
        W_pack=nn.Linear(d, 3 * d, bias=False),
        o_proj=nn.Linear(d, d, bias=False),
    )
    # Baichuan 2 scales each row of its LM head to length 1, and keeps the tensor as it is.
    return kit.decoder(c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act), nn.RMSNorm(d)))
