"""HyperCLOVA X SEED (NAVER Cloud 2025, "HyperCLOVA X THINK Technical Report"): Granite, whose sublayers can have a second norm."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads
from tallystick.blueprint import Config, Group, Model, RMSNorm, architecture, maybe


@architecture(
    "hyperclovax",
    "HyperCLOVAXForCausalLM",
    running=SILU,
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    use_post_norm=True,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def hyperclovax(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d = c.hidden_size
    after = RMSNorm(d, after=True) if c.use_post_norm else None
    block = Group(
        self_attn=attention(c, heads(c), bias=c.attention_bias),
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        post_norm1=after,
        post_norm2=after,
    )
    return decoder(c, block)
