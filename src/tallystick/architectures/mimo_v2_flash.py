"""MiMo-V2-Flash: most layers use a window, more key/value heads and sinks.

Source: Xiaomi 2026, "MiMo-V2-Flash Technical Report".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

LAYER_KINDS = ("full_attention", "sliding_attention")


@architecture(
    "mimo_v2_flash",
    "MiMoV2FlashForCausalLM",
    running={"sliding_window": nonnegative(129), "sliding_window_size": nonnegative(None, nullable=True)},
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=152576,
    hidden_size=4096,
    intermediate_size=16384,
    moe_intermediate_size=2048,
    num_hidden_layers=48,
    layer_types=None,
    mlp_layer_types=None,
    num_attention_heads=64,
    num_key_value_heads=4,
    head_dim=192,
    v_head_dim=128,
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def mimo_v2_flash(c: Config) -> nn.Model:
    d = c.hidden_size
    # Full attention in every sixth layer and in the first, which alone is dense.
    attends = kit.listed(c, "layer_types", LAYER_KINDS, lambda layer: LAYER_KINDS[layer > 0 and (layer + 1) % 6 != 0])
    feeds = kit.listed(c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer > 0])
    dense, sparse = kit.gated_mlp(d, c.intermediate_size), _mixture(c)

    def block(attending: str, feeding: str) -> nn.Module:
        return kit.pre_norm(_attention(c, attending), sparse if feeding == "sparse" else dense, nn.RMSNorm(d))

    return kit.decoder(c, kit.in_turns(zip(attends, feeds, strict=True), block))


def _mixture(c: Config) -> nn.Module:
    of = c.n_routed_experts
    bias = {"e_score_correction_bias": nn.Buffer(of)}
    return kit.mixture(c, c.moe_intermediate_size, kit.experts_used(c, "n_routed_experts"), of, scores=bias)


def _attention(c: Config, kind: str) -> nn.Attention:
    """Attention; window layers have twice the key/value heads and a sink per query head."""
    c.require_divisible("num_attention_heads", by="num_key_value_heads")
    d, near, bias = c.hidden_size, kind == LAYER_KINDS[1], c.attention_bias
    queries, keys = c.num_attention_heads, c.num_key_value_heads * (2 if near else 1)
    before = c.sliding_window_size
    window = c.sliding_window if before is None else before + 1  # the older key does not count the current position
    runs = nn.Heads(queries, keys, c.head_dim, c.v_head_dim, windows=((window if near else None, 1),), sinks=near)
    sinks = "attention_sink_bias" if c.published else "sinks"
    return nn.Attention(
        runs,
        q_proj=nn.Linear(d, queries * c.head_dim, bias=bias),
        k_proj=nn.Linear(d, keys * c.head_dim, bias=bias),
        v_proj=nn.Linear(d, keys * c.v_head_dim, bias=bias),
        o_proj=nn.Linear(queries * c.v_head_dim, d, bias=False),
        **({sinks: nn.Parameter((queries,))} if near else {}),
    )
