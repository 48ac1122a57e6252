"""LFM3 (Liquid AI): short gated convolutions, and gated attention here and there, every other time within a window."""

from typing import Any

from tallystick.architectures._decoder import attention, frame, head_norms, heads
from tallystick.architectures._layers import FULL, in_turns, listed
from tallystick.architectures.lfm2 import CONV, block, conv, gated
from tallystick.blueprint import Attention, Config, Group, Linear, Model, RMSNorm, architecture, natural

SLIDING = "sliding_attention"


@architecture(
    "lfm3",
    "Lfm3ForCausalLM",
    running={"sliding_window": natural(256, nullable=True)},
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
def lfm3(c: Config) -> Model:
    kinds = listed(c, "layer_types", (CONV, FULL, SLIDING), _pattern)
    return frame(c, in_turns(kinds, lambda kind: _block(c, kind), depth=c.num_hidden_layers), norm="embedding_norm")


def _pattern(layer: int) -> str:
    """Of four layers one sees all, and one, but for the very first, a window."""
    return FULL if layer % 4 == 2 else SLIDING if layer and layer % 4 == 0 else CONV


def _block(c: Config, kind: str) -> Group:
    mixer: dict[str, Group] = {"conv": conv(c)} if kind == CONV else {"self_attn": _attention(c, kind)}
    after = ("post_operator_norm", "post_ffn_norm") if c.use_sandwich_norm else ()
    norms = {name: RMSNorm(c.hidden_size, after=True) for name in after}
    return block(c, gated(c, c.intermediate_size), **mixer, **norms)


def _attention(c: Config, kind: str) -> Attention:
    window = c.sliding_window if kind == SLIDING else None
    runs = heads(c, windows=((window, 1),))
    more: dict[str, Any] = head_norms(runs)
    if c.use_attention_gate:
        more["gate_proj" if c.published else "g_proj"] = Linear(c.hidden_size, c.num_attention_heads, bias=False)
    return attention(c, runs, bias=c.attention_bias, **more)
