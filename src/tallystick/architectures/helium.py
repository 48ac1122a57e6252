"""Helium 1 (Kyutai 2025, "Helium 1: a modular and multilingual LLM")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "helium",
    "HeliumForCausalLM",
    running=kit.HIDDEN_ACT_SILU,
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
def helium(c: Config) -> nn.Model:
    d, norm = c.hidden_size, nn.RMSNorm(c.hidden_size, kind="rms32")
    like = kit.attention(c, kit.heads(c), bias=c.attention_bias)
    # The output projection reads hidden_size. If the heads' output has another width, the model can
    # be built but not run.
    attends = nn.Attention(like.heads, **{**like.children, "o_proj": nn.Linear(d, d, bias=False)})
    return kit.decoder(
        c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), norm), norm
    )
