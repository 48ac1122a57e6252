"""Persimmon: fused query, key and value projection, squared ReLU.

Source: Elsen et al. 2023, "Releasing Persimmon-8B".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


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
def persimmon(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, count = c.hidden_size, c.intermediate_size, c.num_attention_heads
    size = d / count
    norm = nn.LayerNorm(size, times=count) if c.qk_layernorm else None
    block = nn.Module(
        self_attn=nn.Attention(
            nn.Heads(count, count, size, rotary=kit.rotary_dim(c, size)),
            query_key_value=nn.Linear(d, 3 * d),
            dense=nn.Linear(d, d),
            q_layernorm=norm,
            k_layernorm=norm,
        ),
        # No runtime info: activations are not modelled.
        mlp=nn.MLP(dense_h_to_4h=nn.Linear(d, inner), dense_4h_to_h=nn.Linear(inner, d)),
        input_layernorm=nn.LayerNorm(d),
        post_attention_layernorm=nn.LayerNorm(d),
    )
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            layers=nn.Repeat(c.num_hidden_layers, block),
            final_layernorm=nn.LayerNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
