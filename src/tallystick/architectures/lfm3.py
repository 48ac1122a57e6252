"""LFM3 (Liquid AI): gated short convolutions; gated attention, alternating full and window."""

from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.lfm2 import CONV, block, conv, gated
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

SLIDING = "sliding_attention"


@architecture(
    "lfm3",
    "Lfm3ForCausalLM",
    running={"sliding_window": nonnegative(256, nullable=True)},
    vocab_size=128_000,
    hidden_size=2048,
    intermediate_size=7680,
    num_hidden_layers=24,
    layer_types=None,
    num_attention_heads=16,
    num_key_value_heads=4,
    head_dim=128,
    conv_L_cache=7,
    conv_bias=False,
    use_attention_gate=True,
    use_sandwich_norm=True,
    attention_bias=False,
    tie_word_embeddings=True,
)
def lfm3(c: Config) -> nn.Model:
    kinds = kit.listed(c, "layer_types", (CONV, kit.FULL, SLIDING), _pattern)
    return kit.frame(
        c, kit.in_turns(kinds, lambda kind: _block(c, kind), depth=c.num_hidden_layers), norm="embedding_norm"
    )


def _pattern(layer: int) -> str:
    """Kind of a layer: of four layers, one has full attention and one (not layer 0) a window."""
    return kit.FULL if layer % 4 == 2 else SLIDING if layer and layer % 4 == 0 else CONV


def _block(c: Config, kind: str) -> nn.Module:
    mixer: dict[str, nn.Module] = {"conv": conv(c)} if kind == CONV else {"self_attn": _attention(c, kind)}
    after = ("post_operator_norm", "post_ffn_norm") if c.use_sandwich_norm else ()
    norms = {name: nn.RMSNorm(c.hidden_size, after=True) for name in after}
    return block(c, gated(c, c.intermediate_size), **mixer, **norms)


def _attention(c: Config, kind: str) -> nn.Attention:
    window = c.sliding_window if kind == SLIDING else None
    runs = kit.heads(c, windows=((window, 1),))
    more: dict[str, Any] = kit.head_norms(runs)
    if c.use_attention_gate:
        more["gate_proj" if c.published else "g_proj"] = nn.Linear(c.hidden_size, c.num_attention_heads, bias=False)
    return kit.attention(c, runs, bias=c.attention_bias, **more)
