"""Persimmon (Elsen et al. 2023, "Releasing Persimmon-8B"): queries, keys and values in one, and a squared ReLU."""

from tallystick.architectures._decoder import turned
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Repeat,
    architecture,
)


@architecture(
    "persimmon",
    "PersimmonForCausalLM",
    running={"partial_rotary_factor": 0.5, "rope_parameters": None},
    vocab_size=262144,
    hidden_size=4096,
    intermediate_size=16384,
    num_hidden_layers=36,
    num_attention_heads=64,
    qk_layernorm=True,
    tie_word_embeddings=False,
)
def persimmon(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, count = c.hidden_size, c.intermediate_size, c.num_attention_heads
    size = d / count
    norm = LayerNorm(size, times=count) if c.qk_layernorm else None
    block = Group(
        self_attn=Attention(
            Heads(count, count, size, rotary=turned(c, size)),
            query_key_value=Linear(d, 3 * d),
            dense=Linear(d, d),
            q_layernorm=norm,
            k_layernorm=norm,
        ),
        mlp=MLP(dense_h_to_4h=Linear(d, inner), dense_4h_to_h=Linear(inner, d)),  # how heads are split is not told
        input_layernorm=LayerNorm(d),
        post_attention_layernorm=LayerNorm(d),
    )
    return Model(
        model=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            layers=Repeat(c.num_hidden_layers, block),
            final_layernorm=LayerNorm(d),
        ),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
