"""Bamba: Mamba 2 layers, and attention in the listed layers.

Source: IBM, Princeton, CMU and UIUC 2024, "Bamba: Inference-Efficient Hybrid Mamba2 Model".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import MAMBA2, MAMBA2_RUNS, mamba2_of
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "bamba",
    "BambaForCausalLM",
    running={**kit.HIDDEN_ACT_SILU, **MAMBA2_RUNS},
    vocab_size=128000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(8),
    head_dim=optional(),
    attn_layer_indices=None,
    **MAMBA2,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def bamba(c: Config) -> nn.Model:
    reads = kit.heads(c, rotary=int(kit.head_dim(c)) // 2)
    attends = _block(c, self_attn=kit.attention(c, reads, bias=c.attention_bias))
    scans = _block(c, mamba=mamba2_of(c, c.mamba_expand * c.hidden_size))
    runs: list[tuple[int, nn.Module]] = []
    first = 0  # first layer of the next run
    for number in _attending(c):
        runs += [(number - first, scans), (1, attends)]
        first = number + 1
    runs.append((c.num_hidden_layers - first if first else c.num_hidden_layers, scans))
    return kit.frame(c, nn.ModuleList(*runs))


def _attending(c: Config) -> list[int]:
    """Sorted numbers of the attention layers; transformers ignores numbers out of range."""
    listed = c.attn_layer_indices or []
    if not isinstance(listed, list) or not all(type(number) is int for number in listed):
        raise c.refuse("attn_layer_indices must list the numbers of the layers that attend, or be null")
    return sorted({number for number in listed if 0 <= number < c.num_hidden_layers})


def _block(c: Config, **mixer: nn.Module) -> nn.Module:
    d = c.hidden_size
    return nn.Module(
        feed_forward=kit.gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias),
        input_layernorm=nn.RMSNorm(d),
        pre_ff_layernorm=nn.RMSNorm(d),
        **mixer,
    )
