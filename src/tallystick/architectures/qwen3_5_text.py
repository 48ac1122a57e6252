"""Qwen3.5's dense text model (Qwen Team 2026): gated delta nets, some gated attention."""

from tallystick.architectures import kit
from tallystick.architectures.qwen3_next import delta_decoder, delta_widths
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture(
    "qwen3_5_text",
    "Qwen3_5ForCausalLM",
    vocab_size=248320,
    hidden_size=4096,
    intermediate_size=12288,
    num_hidden_layers=32,
    layer_types=None,
    full_attention_interval=4,
    num_attention_heads=16,
    num_key_value_heads=4,
    head_dim=256,
    linear_conv_kernel_dim=4,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    attention_bias=False,
    tie_word_embeddings=False,
)
def qwen3_5_text(c: Config) -> nn.Model:
    return four_readers(c, kit.gated_mlp(c.hidden_size, c.intermediate_size))


def four_readers(c: Config, mlp: nn.Module) -> nn.Model:
    """Return Qwen3-Next's layers, with four separate input projections in each delta net."""
    d, of_values, (convolved, values) = c.hidden_size, c.linear_num_value_heads, delta_widths(c)
    return delta_decoder(
        c,
        [mlp] * kit.listable(c),
        in_proj_qkv=nn.Linear(d, convolved, bias=False),
        in_proj_z=nn.Linear(d, values, bias=False),
        in_proj_b=nn.Linear(d, of_values, bias=False),
        in_proj_a=nn.Linear(d, of_values, bias=False),
    )
