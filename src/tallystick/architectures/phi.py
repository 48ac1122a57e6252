"""Phi-1, Phi-1.5 and Phi-2: parallel attention and MLP after one norm.

Sources: Gunasekar et al. 2023, "Textbooks Are All You Need"; Li et al. 2023.
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "phi",
    "PhiForCausalLM",
    running={"hidden_act": "gelu_new", "partial_rotary_factor": 0.5, "rope_parameters": None},
    vocab_size=51200,
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=24,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    qk_layernorm=False,
    tie_word_embeddings=False,
)
def phi(c: Config) -> nn.Model:
    d, inner = c.hidden_size, c.intermediate_size
    q_norm = k_norm = None
    if c.qk_layernorm:
        c.require_divisible("hidden_size", by="num_attention_heads")
        width = d / c.num_attention_heads  # independent of head_dim
        q_norm, k_norm = (
            nn.LayerNorm(width, times=c.num_attention_heads),
            nn.LayerNorm(width, times=kit.key_value_heads(c)),
        )
    # Attention and MLP run in parallel after one norm.
    block = nn.ParallelBlock(
        self_attn=kit.attention(
            c,
            kit.heads(c, rotary=kit.rotary_dim(c, kit.head_dim(c))),
            bias=True,
            output="dense",
            q_layernorm=q_norm,
            k_layernorm=k_norm,
        ),
        mlp=kit.plain_mlp(d, inner, c.hidden_act, "fc1", "fc2"),
        input_layernorm=nn.LayerNorm(d),
    )
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            layers=nn.Repeat(c.num_hidden_layers, block),
            final_layernorm=nn.LayerNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size, bias=True),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )
