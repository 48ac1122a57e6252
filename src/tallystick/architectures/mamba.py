"""Mamba: selective state space layers, without attention and MLP.

Source: Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces".
"""

from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.kit.mamba import mamba as mixer
from tallystick.architectures.kit.mamba import rank
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, int_or, optional

KEYS: dict[str, Any] = {
    "vocab_size": 50280,
    "hidden_size": 768,
    "num_hidden_layers": 32,
    "state_size": 16,
    "expand": 2,
    "intermediate_size": optional(),  # transformers saves it; overrides expand
    "conv_kernel": 4,
    "time_step_rank": int_or("auto"),
    "use_bias": False,
    "use_conv_bias": True,
    "tie_word_embeddings": True,
}


@architecture("mamba", "MambaForCausalLM", **KEYS)
def mamba(c: Config) -> nn.Model:
    scan = mixer(
        c.hidden_size,
        c.intermediate_size or c.expand * c.hidden_size,
        rows=c.state_size,
        kernel=c.conv_kernel,
        rank=rank(c, "time_step_rank"),
        conv_bias=c.use_conv_bias,
        bias=c.use_bias,
    )
    return backbone(c, scan)


def backbone(c: Config, scan: nn.Scan) -> nn.Model:
    """Return equal layers of a norm and a mixer, in Mamba's frame."""
    layers = nn.Repeat(c.num_hidden_layers, nn.Module(norm=nn.RMSNorm(c.hidden_size), mixer=scan))
    return kit.frame(c, layers, under="backbone", embedding="embeddings", norm="norm_f")
