"""JetMoE: experts in attention and in the MLP.

Source: Shen et al. 2024, "JetMoE: Reaching Llama2 Performance with 0.1M Dollars".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


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
def jetmoe(c: Config) -> nn.Model:
    d, keys = c.hidden_size, c.num_key_value_heads * c.kv_channels
    # Each attention expert has one query per key head, and its own output projection.
    runs = nn.Heads(c.num_experts_per_tok * c.num_key_value_heads, c.num_key_value_heads, c.kv_channels)
    block = nn.Module(
        mlp=nn.MLP(**_mixture(c, c.intermediate_size, 2 * c.intermediate_size)),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        self_attention=nn.Attention(
            runs, experts=nn.Module(**_mixture(c, keys, keys)), kv_proj=nn.Linear(d, 2 * keys, bias=False)
        ),
    )
    return kit.decoder(c, block)


def _mixture(c: Config, inner: int, first: int) -> dict[str, nn.Node]:
    """Experts of two matrices, the first with `first` outputs; a router; one shared bias."""
    d, of = c.hidden_size, c.num_local_experts
    used = kit.experts_used(c, "num_local_experts")
    return {
        "bias": nn.Parameter((d,)),
        "input_linear": nn.Experts(used, of, weight=nn.Parameter((of, first, d))),
        "output_linear": nn.Experts(used, of, weight=nn.Parameter((of, d, inner))),
        "router": nn.Module(layer=kit.router(d, None, of)),
    }
