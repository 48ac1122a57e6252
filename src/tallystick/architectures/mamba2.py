"""Mamba 2 (Dao and Gu 2024, "Transformers are SSMs"): a state per head, no attention."""

from tallystick.architectures.kit.mamba import mamba2 as mixer
from tallystick.architectures.kit.mamba import refuse_other_heads
from tallystick.architectures.mamba import backbone
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "mamba2",
    "Mamba2ForCausalLM",
    running={"chunk_size": nonnegative(256)},
    vocab_size=32768,
    hidden_size=4096,
    num_hidden_layers=64,
    num_heads=128,
    head_dim=64,
    n_groups=8,
    state_size=128,
    expand=2,
    conv_kernel=4,
    use_bias=False,
    use_conv_bias=True,
    tie_word_embeddings=False,
)
def mamba2(c: Config) -> nn.Model:
    inner = c.expand * c.hidden_size
    refuse_other_heads(c, inner, "num_heads", "head_dim")
    scan = mixer(
        c.hidden_size,
        inner,
        c.num_heads,
        groups=c.n_groups,
        rows=c.state_size,
        kernel=c.conv_kernel,
        chunk=c.chunk_size,
        conv_bias=c.use_conv_bias,
        bias=c.use_bias,
    )
    return backbone(c, scan)
