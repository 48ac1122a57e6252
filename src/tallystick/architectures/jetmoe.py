"""JetMoE (Shen et al. 2024, "JetMoE: Reaching Llama2 Performance with 0.1M Dollars"): attention has experts too."""

from tallystick.architectures._decoder import decoder, experts_used, router
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Experts,
    Group,
    Heads,
    Linear,
    Model,
    Node,
    RMSNorm,
    Tensor,
    architecture,
)


@architecture(
    "jetmoe",
    "JetMoeForCausalLM",
    aliases={"head_dim": "kv_channels"},
    vocab_size=32000,
    hidden_size=2048,
    intermediate_size=5632,
    num_hidden_layers=12,
    num_key_value_heads=16,
    kv_channels=128,
    num_local_experts=8,
    num_experts_per_tok=2,
    tie_word_embeddings=True,
)
def jetmoe(c: Config) -> Model:
    d, keys = c.hidden_size, c.num_key_value_heads * c.kv_channels
    # Each expert makes as many queries as there are heads of keys, and projects what they give.
    runs = Heads(c.num_experts_per_tok * c.num_key_value_heads, c.num_key_value_heads, c.kv_channels)
    block = Group(
        mlp=MLP(**_mixture(c, c.intermediate_size, 2 * c.intermediate_size)),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        self_attention=Attention(
            runs, experts=Group(**_mixture(c, keys, keys)), kv_proj=Linear(d, 2 * keys, bias=False)
        ),
    )
    return decoder(c, block)


def _mixture(c: Config, inner: int, first: int) -> dict[str, Node]:
    """Experts of two matrices, the first of which gives `first` elements, and one bias for what all give."""
    d, of = c.hidden_size, c.num_local_experts
    used = experts_used(c, "num_local_experts")
    return {
        "bias": Tensor((d,)),
        "input_linear": Experts(used, of, weight=Tensor((of, first, d))),
        "output_linear": Experts(used, of, weight=Tensor((of, d, inner))),
        "router": Group(layer=router(d, None, of)),
    }
