"""GLM-4-0414 (GLM Team 2025): GLM-4 with post-norms in addition to pre-norms."""

from tallystick.architectures import kit
from tallystick.architectures.glm import half_turned
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "glm4",
    "Glm4ForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "partial_rotary_factor": 0.5, "rope_parameters": None},
    vocab_size=151552,
    hidden_size=4096,
    intermediate_size=13696,
    num_hidden_layers=40,
    num_attention_heads=32,
    num_key_value_heads=2,
    head_dim=128,
    attention_bias=True,
    tie_word_embeddings=False,
)
def glm4(c: Config) -> nn.Model:
    d = c.hidden_size
    block = nn.Module(
        self_attn=half_turned(c),
        mlp=kit.fused_gated_mlp(d, c.intermediate_size, c.hidden_act),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        post_self_attn_layernorm=nn.RMSNorm(d, after=True),
        post_mlp_layernorm=nn.RMSNorm(d, after=True),
    )
    return kit.decoder(c, block)
