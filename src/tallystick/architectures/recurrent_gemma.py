"""RecurrentGemma: Griffin's recurrent layers and local attention.

Source: Google DeepMind 2024, "RecurrentGemma: Moving Past Transformers for Efficient Open
Language Models".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import short_conv
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import floor
from tallystick.core.registry import Config, architecture, nonnegative, optional

RECURRENT = "recurrent"
TIMES = 100  # transformers repeats the pattern this often


@architecture(
    "recurrent_gemma",
    "RecurrentGemmaForCausalLM",
    running={"attention_window_size": nonnegative(2048)},
    vocab_size=256000,
    hidden_size=2560,
    intermediate_size=7680,
    num_hidden_layers=26,
    block_types=None,
    num_attention_heads=10,
    head_dim=optional(),
    num_key_value_heads=optional(),
    attention_bias=False,
    lru_width=optional(),
    conv1d_width=4,
    tie_word_embeddings=True,
)
def recurrent_gemma(c: Config) -> nn.Model:
    layers = kit.in_turns(_kinds(c), lambda kind: _block(c, kind), depth=c.num_hidden_layers)
    return kit.frame(c, layers, norm="final_norm")


def _kinds(c: Config) -> list[str]:
    """Mixer of each layer: a repeated pattern."""
    pattern, count = c.block_types or [RECURRENT, RECURRENT, "attention"], kit.listable(c)
    if not isinstance(pattern, list) or TIMES * len(pattern) < count:
        raise c.refuse(f"block_types must list {RECURRENT} or attention, a pattern for the {count} layers")
    return [RECURRENT if pattern[layer % len(pattern)] == RECURRENT else "attention" for layer in range(count)]


def _block(c: Config, kind: str) -> nn.Module:
    d = c.hidden_size
    return nn.Module(
        temporal_pre_norm=nn.RMSNorm(d, kind="gemma"),
        temporal_block=_recurrence(c) if kind == RECURRENT else _attention(c),
        channel_pre_norm=nn.RMSNorm(d, kind="gemma"),
        # No runtime info: activations are not modelled for scan layers.
        mlp_block=kit.gated_mlp(d, floor(c.intermediate_size, 2), bias=True),
    )


def _attention(c: Config) -> nn.Module:
    runs = kit.heads(
        c, c.head_dim or kit.rounded(c.hidden_size, c.num_attention_heads), windows=((c.attention_window_size, 1),)
    )
    return kit.attention(c, runs, bias=c.attention_bias, output_bias=True)


def _recurrence(c: Config) -> nn.Scan:
    """RG-LRU, the real-gated linear recurrent unit, after a short convolution.

    Source: De et al. 2024, "Griffin", section 2.4.
    """
    d, width, heads = c.hidden_size, c.lru_width or c.hidden_size, c.num_attention_heads
    size = kit.rounded(width, heads)
    gates = {
        f"{gate}_gate_{what}": nn.Parameter((heads, *sizes))
        for gate in ("input", "recurrent")
        for what, sizes in (("weight", (size, size)), ("bias", (size,)))
    }
    return nn.Scan(
        nn.Recurrence(
            inputs=width * (c.conv1d_width - 1),
            state=width,
            source="De et al. 2024, Griffin, section 2.4",
            runs=nn.SequentialScan(0),
        ),
        linear_y=nn.Linear(d, width),
        linear_x=nn.Linear(d, width),
        linear_out=nn.Linear(width, d),
        conv_1d=short_conv(width, c.conv1d_width, bias=True),
        rg_lru=nn.Module(recurrent_param=nn.Parameter((width,)), **gates),
    )
