"""Command R (Cohere 2024, "Command R: RAG at Production Scale")."""

from typing import Any

from tallystick.architectures import kit
from tallystick.core import anatomy
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "cohere",
    "CohereForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    num_hidden_layers=40,
    num_attention_heads=64,
    num_key_value_heads=optional(),
    head_dim=optional(),
    use_qk_norm=optional(False),
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere(c: Config) -> nn.Model:
    runs = kit.heads(c)
    norms: dict[str, Any] = {}
    if c.use_qk_norm:  # one scale per head
        norms = {"q_norm": norm(runs.size, runs.queries), "k_norm": norm(runs.size, runs.keys)}
    return kit.decoder(c, block(c, kit.attention(c, runs, bias=c.attention_bias, **norms)), norm(c.hidden_size))


def block(c: Config, self_attn: nn.Attention) -> nn.Module:
    """Return a parallel block: attention and MLP after one norm."""
    d = c.hidden_size
    return nn.ParallelBlock(
        self_attn=self_attn,
        mlp=kit.gated_mlp(d, c.intermediate_size, c.hidden_act),
        input_layernorm=norm(d),
    )


def norm(width: int, heads: int | None = None) -> nn.Norm:
    """Return a LayerNorm without bias: scale (width), or (heads, width) if per head."""
    return nn.Norm(
        anatomy.Norm("centred32", width, heads or 1), weight=nn.Parameter((heads, width) if heads else (width,), "norm")
    )
