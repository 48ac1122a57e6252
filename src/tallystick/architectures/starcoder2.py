"""StarCoder2 (Lozhkov et al. 2024, "StarCoder 2 and The Stack v2: The Next Generation")."""

from tallystick.architectures._decoder import attention, decoder, heads, plain_mlp, pre_norm
from tallystick.blueprint import Config, LayerNorm, Model, architecture, maybe, natural


@architecture(
    "starcoder2",
    "Starcoder2ForCausalLM",
    running={"hidden_act": "gelu_pytorch_tanh", "sliding_window": natural(None, nullable=True)},
    vocab_size=49152,
    hidden_size=3072,
    intermediate_size=12288,
    num_hidden_layers=30,
    num_attention_heads=24,
    num_key_value_heads=2,
    head_dim=maybe(),
    use_bias=True,
    tie_word_embeddings=True,
)
def starcoder2(c: Config) -> Model:
    d, inner, bias = c.hidden_size, c.intermediate_size, c.use_bias
    attends = attention(c, heads(c, windows=((c.sliding_window, 1),)), bias=bias)
    mlp = plain_mlp(d, inner, c.hidden_act, "c_fc", "c_proj", bias=bias)
    return decoder(c, pre_norm(attends, mlp, LayerNorm(d)), norm=LayerNorm(d))
