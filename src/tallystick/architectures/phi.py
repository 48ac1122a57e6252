"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al. 2023, "Textbooks Are All You Need"; Li et al. 2023)."""

from tallystick.architectures._decoder import attention, head_dim, key_value_heads
from tallystick.blueprint import (
    MLP,
    Config,
    Embedding,
    Feed,
    Group,
    Head,
    LayerNorm,
    Linear,
    Model,
    Parallel,
    Repeat,
    architecture,
    maybe,
)


@architecture(
    "phi",
    "PhiForCausalLM",
    running={"hidden_act": "gelu_new", "partial_rotary_factor": 0.5},
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
            head_dim(c),
            bias=True,
            output="dense",
            rotary=int(int(head_dim(c)) * c.partial_rotary_factor),
            joined=True,
            q_layernorm=q_norm,
            k_layernorm=k_norm,
        ),
        mlp=MLP(Feed(d, inner, c.hidden_act), fc1=Linear(d, inner), fc2=Linear(inner, d)),
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
