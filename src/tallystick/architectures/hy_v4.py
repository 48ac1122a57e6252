"""Hy4 (Tencent Hunyuan 2026): DeepSeek-V3.2's attention with sinks, hyper-connections."""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import sigmoid_mixture
from tallystick.architectures.deepseek_v4 import hyper_connection, stream_head
from tallystick.architectures.deepseek_v32 import CHOSEN, indexed_attention
from tallystick.architectures.glm_moe_dsa import INDEXERS
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

PUBLISHED = {"sinks": "learnable_sink_param", "gate_proj": "linear_gate"}


@architecture(
    "hy_v4",
    "HYV4ForCausalLM",
    running=CHOSEN,
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=120832,
    hidden_size=2816,
    intermediate_size=6912,
    moe_intermediate_size=768,
    num_hidden_layers=34,
    mlp_layer_types=None,
    indexer_types=None,
    num_attention_heads=32,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=192,
    qk_rope_head_dim=64,
    v_head_dim=256,
    index_n_heads=16,
    index_head_dim=128,
    hc_mult=4,
    n_shared_experts=nonnegative(1),
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def hy_v4(c: Config) -> nn.Model:
    feeds = kit.listed(c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer > 0])
    own = kit.listed(c, "indexer_types", INDEXERS, lambda layer: INDEXERS[layer > 0 and layer % 4 != 1], longer=True)
    layers = kit.in_turns(zip(feeds, own, strict=True), lambda feeding, indexing: _block(c, feeding, indexing))
    if c.published:
        return kit.decoder(c, layers, hc_pre=nn.Module(hc_head=stream_head(c, "hc_head_")))
    return kit.decoder(c, layers, hc_head=stream_head(c))


def _block(c: Config, feeding: str, indexing: str) -> nn.Module:
    d, each = c.hidden_size, hyper_connection(c, 2 * c.hc_mult, 2)
    streams = {"attn_hc": nn.Module(**each), "ffn_hc": nn.Module(**each)}
    if c.published:
        part = nn.Module(**{f"hc_{name}": tensor for name, tensor in each.items()})
        streams = {"hc_pre": nn.Module(hc_attn_layer=part, hc_mlp_layer=part)}
    return nn.Module(
        self_attn=_attention(c, indexing),
        mlp=_mixture(c) if feeding == "sparse" else _mlp(c, c.intermediate_size),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        **streams,
    )


def _mlp(c: Config, inner: int) -> nn.MLP:
    """A gated MLP; checkpoints name every gate `linear_gate`."""
    return nn.MLP(**kit.as_published(c, PUBLISHED, **kit.gated_mlp(c.hidden_size, inner).children))


def _mixture(c: Config) -> nn.Module:
    shared = _mlp(c, c.moe_intermediate_size * c.n_shared_experts)
    return sigmoid_mixture(c, scoring=None, names=None).with_children(shared_experts=shared)


def _attention(c: Config, indexing: str) -> nn.Attention:
    """Indexed attention with a sink per head and an output gate."""
    heads = c.num_attention_heads
    more = kit.as_published(
        c,
        PUBLISHED,
        sinks=nn.Parameter((heads,)),
        gate_proj=nn.Linear(c.hidden_size, heads * c.v_head_dim, bias=False),
    )
    return indexed_attention(c, own=indexing == "full", **more)
