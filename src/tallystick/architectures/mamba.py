"""Mamba (Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces"): no attention and no MLP."""

from typing import Any

from tallystick.architectures._decoder import frame
from tallystick.architectures._mamba import mamba as mixer
from tallystick.architectures._mamba import rank
from tallystick.blueprint import Config, Group, Model, Repeat, RMSNorm, Scan, architecture, maybe, or_word

KEYS: dict[str, Any] = {
    "vocab_size": 50280,
    "hidden_size": 768,
    "num_hidden_layers": 32,
    "state_size": 16,
    "expand": 2,
    "intermediate_size": maybe(),  # stated in files that transformers saved, where it wins
    "conv_kernel": 4,
    "time_step_rank": or_word("auto"),
    "use_bias": False,
    "use_conv_bias": True,
    "tie_word_embeddings": True,
}


@architecture("mamba", "MambaForCausalLM", **KEYS)
def mamba(c: Config) -> Model:
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


def backbone(c: Config, scan: Scan) -> Model:
    """Equal layers, each a norm and a mixer."""
    layers = Repeat(c.num_hidden_layers, Group(norm=RMSNorm(c.hidden_size), mixer=scan))
    return frame(c, layers, under="backbone", embedding="embeddings", norm="norm_f")
