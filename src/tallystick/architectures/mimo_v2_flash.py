"""MiMo-V2-Flash (Xiaomi 2026, "MiMo-V2-Flash Technical Report"): most layers see a window, by more heads and with sinks."""

from tallystick.architectures._decoder import decoder, experts_used, gated_mlp, mixture, pre_norm
from tallystick.architectures._layers import FEED_FORWARD, in_turns, listed
from tallystick.blueprint import (
    Attention,
    Buffer,
    Config,
    Group,
    Heads,
    Linear,
    Model,
    RMSNorm,
    Tensor,
    architecture,
    natural,
)

KINDS = ("full_attention", "sliding_attention")


@architecture(
    "mimo_v2_flash",
    "MiMoV2FlashForCausalLM",
    running={"sliding_window": natural(129), "sliding_window_size": natural(None, nullable=True)},
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
def mimo_v2_flash(c: Config) -> Model:
    d = c.hidden_size
    # Every sixth layer sees all, and the first, which is the one without experts.
    attends = listed(c, "layer_types", KINDS, lambda layer: KINDS[layer > 0 and (layer + 1) % 6 != 0])
    feeds = listed(c, "mlp_layer_types", FEED_FORWARD, lambda layer: FEED_FORWARD[layer > 0])
    dense, sparse = gated_mlp(d, c.intermediate_size), _mixture(c)

    def block(attending: str, feeding: str) -> Group:
        return pre_norm(_attention(c, attending), sparse if feeding == "sparse" else dense, RMSNorm(d))

    return decoder(c, in_turns(zip(attends, feeds, strict=True), block))


def _mixture(c: Config) -> Group:
    of = c.n_routed_experts
    bias = {"e_score_correction_bias": Buffer(of)}
    return mixture(c, c.moe_intermediate_size, experts_used(c, "n_routed_experts"), of, scores=bias)


def _attention(c: Config, kind: str) -> Attention:
    """Where a window is seen, twice as many heads of keys, and one more score for each head of queries."""
    c.require_divisible("num_attention_heads", by="num_key_value_heads")
    d, near, bias = c.hidden_size, kind == KINDS[1], c.attention_bias
    queries, keys = c.num_attention_heads, c.num_key_value_heads * (2 if near else 1)
    before = c.sliding_window_size
    window = c.sliding_window if before is None else before + 1  # the older key leaves the own position out
    runs = Heads(queries, keys, c.head_dim, c.v_head_dim, windows=((window if near else None, 1),), sinks=near)
    sinks = "attention_sink_bias" if c.published else "sinks"
    return Attention(
        runs,
        q_proj=Linear(d, queries * c.head_dim, bias=bias),
        k_proj=Linear(d, keys * c.head_dim, bias=bias),
        v_proj=Linear(d, keys * c.v_head_dim, bias=bias),
        o_proj=Linear(queries * c.v_head_dim, d, bias=False),
        **({sinks: Tensor((queries,))} if near else {}),
    )
