"""Hunyuan 0.5B to 7B (Tencent Hunyuan 2025), dense."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, head_norms, heads, pre_norm
from tallystick.blueprint import REQUIRED, Config, Model, RMSNorm, architecture, maybe


@architecture(
    "hunyuan_v1_dense",
    "HunYuanDenseV1ForCausalLM",
    running=SILU,
    vocab_size=290943,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=REQUIRED,
    attention_bias=False,
    tie_word_embeddings=False,
)
def hunyuan_v1_dense(c: Config) -> Model:
    d, runs = c.hidden_size, heads(c)
    norms = head_norms(runs, ("query_layernorm", "key_layernorm"), turned=True)
    attends = attention(c, runs, bias=c.attention_bias, **norms)
    return decoder(c, pre_norm(attends, gated_mlp(d, c.intermediate_size, c.hidden_act), RMSNorm(d)))
