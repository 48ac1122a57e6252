"""Phi-3, Phi-3.5 and Phi-4 (Abdin et al. 2024, "Phi-3 Technical Report")."""

from tallystick.architectures._decoder import SILU, decoder, head_dim, heads, key_value_heads
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Feed,
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
    d, inner = c.hidden_size, c.intermediate_size
    queries, keys = c.num_attention_heads * head_dim(c), key_value_heads(c) * head_dim(c)
    block = Group(
        self_attn=Attention(
            heads(c, head_dim(c), windows=((c.sliding_window, 1),))._replace(joined=True),
            o_proj=Linear(queries, d, bias=False),
            qkv_proj=Linear(d, queries + 2 * keys, bias=False),
        ),
        mlp=MLP(
            Feed(d, inner, c.hidden_act, gated=True, fused=True),
            gate_up_proj=Linear(d, 2 * inner, bias=False),
            down_proj=Linear(inner, d, bias=False),
        ),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
    )
    return decoder(c, block)
