"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al. 2023, "Textbooks Are All You Need"; Li et al. 2023)."""

from tallystick.architectures._decoder import attention, head_dim, heads, key_value_heads, plain_mlp, turned
from tallystick.blueprint import (
    Config,
    Embedding,
    Group,
    Head,
    LayerNorm,
    Model,
    Parallel,
    Repeat,
    architecture,
    maybe,
)


@architecture(
    "phi",
    "PhiForCausalLM",
    running={"hidden_act": "gelu_new", "partial_rotary_factor": 0.5, "rope_parameters": None},
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
    q_norm = k_norm = None
    if c.qk_layernorm:
        c.require_divisible("hidden_size", by="num_attention_heads")
        width = d / c.num_attention_heads  # a stated head_dim does not change it
        q_norm, k_norm = LayerNorm(width, times=c.num_attention_heads), LayerNorm(width, times=key_value_heads(c))
    # Attention and MLP run side by side behind one norm.
    block = Parallel(
        self_attn=attention(
            c,
            heads(c, rotary=turned(c, head_dim(c)), joined=True, parted=True),
            bias=True,
            output="dense",
            q_layernorm=q_norm,
            k_layernorm=k_norm,
        ),
        mlp=plain_mlp(d, inner, c.hidden_act, "fc1", "fc2"),
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
