"""CWM: Llama with sliding windows.

Source: FAIR CodeGen Team 2025, "CWM: An Open-Weights LLM for Research on Code Generation with
World Models".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "cwm",
    "CwmForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, "sliding_window": nonnegative(8192), "layer_types": None},
    vocab_size=128256,
    hidden_size=6144,
    intermediate_size=21504,
    num_hidden_layers=64,
    num_attention_heads=48,
    num_key_value_heads=8,
    head_dim=128,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def cwm(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers requires it even if head_dim is stated
    d = c.hidden_size
    attends = kit.attention(c, kit.heads(c, windows=kit.windows_of(c, ((None, 1), (c.sliding_window, 3)))))
    return kit.decoder(
        c, kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias), nn.RMSNorm(d))
    )
