"""Hunyuan 0.5B to 7B (Tencent Hunyuan 2025), dense."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional


@architecture(
    "hunyuan_v1_dense",
    "HunYuanDenseV1ForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=290943,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=REQUIRED,
    attention_bias=False,
    tie_word_embeddings=False,
)
def hunyuan_v1_dense(c: Config) -> nn.Model:
    d, runs = c.hidden_size, kit.heads(c)
    norms = kit.head_norms(runs, ("query_layernorm", "key_layernorm"), turned=True)
    attends = kit.attention(c, runs, bias=c.attention_bias, **norms)
    return kit.decoder(c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act), nn.RMSNorm(d)))
