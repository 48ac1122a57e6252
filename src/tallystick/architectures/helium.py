"""Helium 1 (Kyutai 2025, "Helium 1: a modular and multilingual LLM")."""

from tallystick.architectures._decoder import SILU, attention, decoder, gated_mlp, heads, pre_norm
from tallystick.blueprint import Attention, Config, Linear, Model, RMSNorm, architecture


@architecture(
    "helium",
    "HeliumForCausalLM",
    running=SILU,
    vocab_size=48000,
    hidden_size=2560,
    intermediate_size=7040,
    num_hidden_layers=24,
    num_attention_heads=20,
    num_key_value_heads=20,
    head_dim=128,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def helium(c: Config) -> Model:
    d, norm = c.hidden_size, RMSNorm(c.hidden_size, kind="rms32")
    like = attention(c, heads(c, repeating=True), bias=c.attention_bias)
    # Whatever the heads give, the output projection reads the width: where these differ it can be built, but does not run.
    attends = Attention(like.heads, **{**like.children, "o_proj": Linear(d, d, bias=False)})
    return decoder(c, pre_norm(attends, gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), norm), norm)
