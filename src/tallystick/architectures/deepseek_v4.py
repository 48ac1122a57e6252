"""DeepSeek-V4: compressed sparse attention, hash-routed experts and hyper-connections.

Layers attend to a sliding window and to compressed tokens. The residual has several streams.
Source: DeepSeek-AI 2026, "DeepSeek-V4".
"""

from typing import Any

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative
from tallystick.errors import shown

WINDOW, SPARSE, HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
RATIOS = {0: WINDOW, 4: SPARSE, 128: HEAVY}  # older configs give the compression ratio instead of the kind
ROUTING = ("hash_moe", "moe")
# Names in published checkpoints, by transformers' names.
PUBLISHED = {
    "self_attn": "attn",
    "mlp": "ffn",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "sinks": "attn_sink",
    "q_a_proj": "wq_a",
    "q_a_norm": "q_norm",
    "q_b_proj": "wq_b",
    "kv_proj": "wkv",
    "kv_norm": "norm",
    "gate_proj": "wgate",
    "position_bias": "ape",
    "o_a_proj": "wo_a",
    "o_b_proj": "wo_b",
}


@architecture(
    "deepseek_v4",
    "DeepseekV4ForCausalLM",
    running={"sliding_window": nonnegative(128)},
    aliases={"num_local_experts": "n_routed_experts", "intermediate_size": "moe_intermediate_size"},
    vocab_size=129280,
    hidden_size=4096,
    moe_intermediate_size=2048,
    num_hidden_layers=43,
    layer_types=None,
    compress_ratios=None,
    compress_rates=None,
    compress_rate_csa=nonnegative(None, nullable=True),
    compress_rate_hca=nonnegative(None, nullable=True),
    mlp_layer_types=None,
    num_hash_layers=nonnegative(3, nullable=True),
    num_attention_heads=64,
    head_dim=512,
    q_lora_rank=1024,
    o_groups=8,
    o_lora_rank=1024,
    index_n_heads=64,
    index_head_dim=128,
    hc_mult=4,
    n_routed_experts=256,
    num_experts_per_tok=6,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def deepseek_v4(c: Config) -> nn.Model:
    hashed = 3 if c.num_hash_layers is None else int(c.num_hash_layers)
    routing = kit.listed(c, "mlp_layer_types", ROUTING, lambda layer: ROUTING[layer >= hashed], longer=True)
    layers = kit.in_turns(zip(_kinds(c), routing, strict=True), lambda kind, chosen: _block(c, kind, chosen))
    irregular = "attention to compressed tokens is not counted"
    model = kit.decoder(c, layers, hc_head=stream_head(c)).replace(irregular=irregular)
    if c.published:
        ties = {tied.removeprefix("lm_"): to for tied, to in model.ties.items()}
        return model.with_children(head=model.children["lm_head"], lm_head=None).replace(ties=ties)
    return model


def _kinds(c: Config) -> list[str]:
    """Kind of each layer: from `layer_types`, from `compress_ratios`, or alternating."""
    count, ratios = int(c.num_hidden_layers), c.compress_ratios
    if c.layer_types is not None or ratios is None:
        turns = (HEAVY, SPARSE)
        return kit.listed(
            c, "layer_types", (WINDOW, *turns), lambda layer: turns[layer > 1 and layer % 2 == 1], longer=True
        )
    known = isinstance(ratios, list) and all(type(ratio) is int and ratio in RATIOS for ratio in ratios)
    if not known or len(ratios) < count:
        raise c.refuse(f"compress_ratios must list 0, 4 or 128 for each of the {count} layers")
    return [RATIOS[ratio] for ratio in ratios[:count]]


def _block(c: Config, kind: str, routing: str) -> nn.Module:
    d, streams = c.hidden_size, c.hc_mult
    mixing = {part: hyper_connection(c, (2 + streams) * streams, 3) for part in ("attn", "ffn")}
    children = kit.as_published(
        c,
        PUBLISHED,
        self_attn=_attention(c, kind),
        mlp=_mixture(c, hashed=routing == ROUTING[0]),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )
    if c.published:
        flat = {f"hc_{part}_{name}": tensor for part, each in mixing.items() for name, tensor in each.items()}
        return nn.Module(**children, **flat)
    return nn.Module(**children, **{f"{part}_hc": nn.Module(**each) for part, each in mixing.items()})


def hyper_connection(c: Config, weights: int, scales: int) -> dict[str, nn.Tensor]:
    """Return a hyper-connection: it mixes the streams into a sublayer's input and back.

    Source: Xie et al. 2026.

    Args:
        c: the config.
        weights: mixing weights computed per token.
        scales: learned scales.
    """
    return {
        "fn": nn.Parameter((weights, c.hc_mult * c.hidden_size)),
        "base": nn.Parameter((weights,)),
        "scale": nn.Parameter((scales,)),
    }


def stream_head(c: Config, prefix: str = "hc_") -> nn.Module:
    """Return the module that merges the streams after the last layer."""
    return nn.Module(**{f"{prefix}{name}": tensor for name, tensor in hyper_connection(c, c.hc_mult, 1).items()})


def _attention(c: Config, kind: str) -> nn.Attention:
    """One shared key-value head, over the window and compressed tokens; low-rank queries."""
    d, queries, groups = c.hidden_size, c.num_attention_heads * c.head_dim, c.o_groups
    children = kit.as_published(
        c,
        PUBLISHED,
        sinks=nn.Parameter((c.num_attention_heads,)),
        q_a_proj=nn.Linear(d, c.q_lora_rank, bias=False),
        q_a_norm=nn.RMSNorm(c.q_lora_rank),
        q_b_proj=nn.Linear(c.q_lora_rank, queries, bias=False),
        kv_proj=nn.Linear(d, c.head_dim, bias=False),
        kv_norm=nn.RMSNorm(c.head_dim),
        # One low-rank projection per group of heads.
        o_a_proj=nn.Linear(kit.rounded(queries, groups), groups * c.o_lora_rank, bias=False),
        o_b_proj=nn.Linear(groups * c.o_lora_rank, d, bias=False),
    )
    return nn.Attention(_heads(c, kind), **children, **_compressed(c, kind))


def _heads(c: Config, kind: str) -> nn.Heads:
    """Heads: window-only layers cache key and value, though equal; others cache one vector."""
    size, window = c.head_dim, ((c.sliding_window, 1),)
    if kind == WINDOW:
        return nn.Heads(c.num_attention_heads, 1, size, windows=window)
    sparse = kind == SPARSE
    makes = nn.Compressor(_rate(c, kind), size + c.index_head_dim if sparse else size, overlapping=sparse)
    return nn.Heads(c.num_attention_heads, 1, size, latent=size, windows=window, compressor=makes)


def _compressed(c: Config, kind: str) -> dict[str, nn.Module]:
    """The compressor of distant tokens, and in sparse layers an indexer with its own one."""
    if kind == WINDOW:
        return {}
    rate = _rate(c, kind)
    if kind == HEAVY:
        return {"compressor": nn.Module(**_compressor(c, c.head_dim, rate))}
    d, heads, size = c.hidden_size, c.index_n_heads, c.index_head_dim
    own, scored = (_compressor(c, each, rate, overlapping=True) for each in (c.head_dim, size))
    queries = nn.Linear(c.q_lora_rank, heads * size, bias=False)
    weights = nn.Linear(d, heads, bias=False)
    if c.published:
        indexer = nn.Module(compressor=nn.Module(**scored), wq_b=queries, weights_proj=weights)
        return {"compressor": nn.Module(**own), "indexer": indexer}
    indexer = nn.Module(**scored, q_b_proj=queries, scorer=nn.Module(weights_proj=weights))
    return {"compressor": nn.Module(**own, indexer=indexer)}


def _compressor(c: Config, size: int, rate: int, *, overlapping: bool = False) -> dict[str, Any]:
    """A mean of `rate` tokens, weighted by gates and position biases.

    Overlapping groups read 2 × `rate` tokens.
    """
    width = 2 * size if overlapping else size
    return kit.as_published(
        c,
        PUBLISHED,
        kv_proj=nn.Linear(c.hidden_size, width, bias=False),
        gate_proj=nn.Linear(c.hidden_size, width, bias=False),
        position_bias=nn.Parameter((rate, width)),
        kv_norm=nn.RMSNorm(size),
    )


def _rate(c: Config, kind: str) -> int:
    """Tokens that are compressed into one."""
    stated: int | None = c.compress_rate_csa if kind == SPARSE else c.compress_rate_hca
    if stated is not None:
        return stated
    rates = {SPARSE: 4, HEAVY: 128} if c.compress_rates is None else c.compress_rates
    rate = rates.get(kind) if isinstance(rates, dict) else None
    if type(rate) is not int or rate < 1:
        raise c.refuse(
            f"compress_rates is {shown(rates)}, expected the number of tokens per compressed token under {kind}"
        )
    return rate


def _mixture(c: Config, *, hashed: bool) -> nn.Module:
    """Routed and shared experts; routing by biased scores, or by a hash table of token ids."""
    d, inner, of = c.hidden_size, c.moe_intermediate_size, c.n_routed_experts
    used = kit.experts_used(c, "n_routed_experts")
    table = {"tid2eid": nn.Buffer(c.vocab_size, used)}
    balance = {"bias" if c.published else "e_score_correction_bias": nn.Buffer(of)}
    shared = kit.gated_mlp(d, inner, bias=c.mlp_bias).children
    numbered = dict(zip(kit.SINGLE, kit.NUMBERED, strict=True))
    return kit.mixture(
        c,
        inner,
        used,
        of,
        names=kit.NUMBERED,
        scores=table if hashed else balance,
        shared_experts=nn.MLP(**kit.as_published(c, numbered, **shared)),
    )
