"""dots.llm1: Qwen3's attention and DeepSeek-V3's experts.

Source: Huo et al. 2025, "dots.llm1 Technical Report".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import dense_first, sigmoid_mixture
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, nonnegative, optional


@architecture(
    "dots1",
    "Dots1ForCausalLM",
    running={
        **kit.HIDDEN_ACT_SILU,
        "sliding_window": nonnegative(4096, nullable=True),
        "max_window_layers": nonnegative(62),
        "layer_types": None,
    },
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=152064,
    hidden_size=4608,
    intermediate_size=10944,
    moe_intermediate_size=1408,
    num_hidden_layers=62,
    first_k_dense_replace=nonnegative(),
    num_attention_heads=32,
    num_key_value_heads=optional(32),
    head_dim=optional(),
    n_shared_experts=nonnegative(None),
    n_routed_experts=REQUIRED,
    num_experts_per_tok=REQUIRED,
    attention_bias=False,
    tie_word_embeddings=False,
)
def dots1(c: Config) -> nn.Model:
    first = min(c.max_window_layers, c.num_hidden_layers)
    runs = kit.heads(c, windows=kit.windows_of(c, ((None, first), (c.sliding_window, c.num_hidden_layers - first))))
    attends = kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs))
    return kit.decoder(c, dense_first(c, sigmoid_mixture(c), attends))
