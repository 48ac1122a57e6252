"""Command R (Cohere 2024, "Command R: RAG at Production Scale")."""

from typing import Any

from tallystick import anatomy
from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads
from tallystick.blueprint import Attention, Config, Group, Model, Norm, Parallel, Tensor, architecture, maybe


@architecture(
    "cohere",
    "CohereForCausalLM",
    running=SILU,
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    num_hidden_layers=40,
    num_attention_heads=64,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    use_qk_norm=maybe(False),
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere(c: Config) -> Model:
    runs = heads(c, widened=True)
    norms: dict[str, Any] = {}
    if c.use_qk_norm:  # each head has a scale of its own
        norms = {"q_norm": norm(runs.size, runs.queries), "k_norm": norm(runs.size, runs.keys)}
    return decoder(c, block(c, attention(c, runs, bias=c.attention_bias, **norms)), norm(c.hidden_size))


def block(c: Config, self_attn: Attention) -> Group:
    """Attention and MLP run side by side behind one norm."""
    d = c.hidden_size
    return Parallel(
        self_attn=self_attn,
        mlp=gated_mlp(d, c.intermediate_size, c.hidden_act),
        input_layernorm=norm(d),
    )


def norm(width: int, heads: int | None = None) -> Norm:
    """A LayerNorm without a shift, written by hand; of each of some heads, if it is one of heads."""
    return Norm(
        anatomy.Norm("centred32", width, heads or 1), weight=Tensor((heads, width) if heads else (width,), "norm")
    )
