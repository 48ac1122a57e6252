"""Gemma 2: alternating sliding windows, pre- and post-norms, logit soft-capping.

Source: Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

RUNNING = {
    "hidden_activation": "gelu_pytorch_tanh",
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "sliding_window": nonnegative(4096, nullable=True),
    "layer_types": None,
}


@architecture(
    "gemma2",
    "Gemma2ForCausalLM",
    running=RUNNING,
    vocab_size=256000,
    hidden_size=2304,
    intermediate_size=9216,
    num_hidden_layers=26,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=256,
    attention_bias=False,
    tie_word_embeddings=True,
)
def gemma2(c: Config) -> nn.Model:
    d = c.hidden_size
    block = nn.Module(
        self_attn=attends(c),
        mlp=kit.gated_mlp(d, c.intermediate_size, c.hidden_activation),
        input_layernorm=nn.RMSNorm(d, kind="gemma"),
        post_attention_layernorm=nn.RMSNorm(d, kind="gemma", after=True),
        pre_feedforward_layernorm=nn.RMSNorm(d, kind="gemma"),
        post_feedforward_layernorm=nn.RMSNorm(d, kind="gemma", after=True),
    )
    return kit.decoder(c, block, nn.RMSNorm(d, kind="gemma"), capped=bool(c.final_logit_softcapping))


def attends(c: Config) -> nn.Attention:
    """Return attention with a window in every other layer and optional soft-capping."""
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers requires it even if head_dim is stated
    windows = kit.windows_of(c, ((c.sliding_window, 1), (None, 1)))
    return kit.attention(c, kit.heads(c, windows=windows, capped=bool(c.attn_logit_softcapping)), bias=c.attention_bias)
