"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al. 2023, "Textbooks Are All You Need"; Li et al. 2023)."""

from tallystick.architectures._decoder import attention, head_dim
from tallystick.blueprint import (
    MLP,
    Config,
    Embedding,
    Group,
    Head,
    LayerNorm,
    Linear,
    Model,
    Repeat,
    architecture,
    maybe,
)


@architecture(
    "phi",
    "PhiForCausalLM",
    vocab_size=51200,
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=24,
    num_attention_heads=32,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    qk_layernorm=False,
    tie_word_embeddings=False,
)
def phi(c: Config) -> Model:
    d, inner = c.hidden_size, c.intermediate_size
    qk_norm = None
    if c.qk_layernorm:
        c.require_divisible("hidden_size", by="num_attention_heads")
        qk_norm = LayerNorm(d / c.num_attention_heads)  # a stated head_dim does not change it
    block = Group(
        # Attention and MLP run side by side behind one norm.
        self_attn=attention(c, head_dim(c), bias=True, output="dense", q_layernorm=qk_norm, k_layernorm=qk_norm),
        mlp=MLP(fc1=Linear(d, inner), fc2=Linear(inner, d)),
        input_layernorm=LayerNorm(d),
    )
    return Model(
        model=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            layers=Repeat(c.num_hidden_layers, block),
            final_layernorm=LayerNorm(d),
        ),
        lm_head=Head(d, c.vocab_size, bias=True),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
