"""StarCoder2 (Lozhkov et al. 2024, "StarCoder 2 and The Stack v2: The Next Generation")."""

from tallystick.architectures._decoder import attention, decoder, head_dim
from tallystick.blueprint import MLP, Config, Feed, Group, LayerNorm, Linear, Model, architecture, maybe, natural


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
    block = Group(
        self_attn=attention(c, head_dim(c), bias=bias, windows=((c.sliding_window, 1),)),
        mlp=MLP(Feed(d, inner, c.hidden_act), c_fc=Linear(d, inner, bias=bias), c_proj=Linear(inner, d, bias=bias)),
        input_layernorm=LayerNorm(d),
        post_attention_layernorm=LayerNorm(d),
    )
    return decoder(c, block, norm=LayerNorm(d))
