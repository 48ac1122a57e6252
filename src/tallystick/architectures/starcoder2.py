"""StarCoder2: a plain MLP and LayerNorms, optional sliding window.

Source: Lozhkov et al. 2024, "StarCoder 2 and The Stack v2: The Next Generation".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "starcoder2",
    "Starcoder2ForCausalLM",
    running={"hidden_act": "gelu_pytorch_tanh", "sliding_window": nonnegative(None, nullable=True)},
    vocab_size=49152,
    hidden_size=3072,
    intermediate_size=12288,
    num_hidden_layers=30,
    num_attention_heads=24,
    num_key_value_heads=2,
    head_dim=optional(),
    use_bias=True,
    tie_word_embeddings=True,
)
def starcoder2(c: Config) -> nn.Model:
    d, inner, bias = c.hidden_size, c.intermediate_size, c.use_bias
    attends = kit.attention(c, kit.heads(c, windows=((c.sliding_window, 1),)), bias=bias)
    mlp = kit.plain_mlp(d, inner, c.hidden_act, "c_fc", "c_proj", bias=bias)
    return kit.decoder(c, kit.pre_norm(attends, mlp, nn.LayerNorm(d)), norm=nn.LayerNorm(d))
