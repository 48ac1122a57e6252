"""MiniMax-M3's text model (MiniMax 2026): block-sparse attention layers, a shared expert."""

from typing import Any

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture
from tallystick.errors import shown

LAYER_KINDS = ("full_attention", "minimax_m3_sparse")
OLDER = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
}


@architecture(
    "minimax_m3_vl_text",
    "MiniMaxM3VLForCausalLM",
    aliases={"num_experts": "num_local_experts"},
    running={"index_block_size": 128, "index_topk_blocks": 16},
    vocab_size=200064,
    hidden_size=6144,
    intermediate_size=3072,
    dense_intermediate_size=12288,
    shared_intermediate_size=3072,
    num_hidden_layers=60,
    layer_types=None,
    mlp_layer_types=None,
    moe_layer_freq=None,
    num_attention_heads=64,
    num_key_value_heads=4,
    head_dim=128,
    index_n_heads=4,
    index_head_dim=128,
    sparse_attention_config=None,
    num_local_experts=128,
    num_experts_per_tok=4,
    tie_word_embeddings=False,
)
def minimax_m3_vl_text(c: Config) -> nn.Model:
    d = c.hidden_size
    attends = _marked(c, _older(c).get("sparse_attention_freq"), "layer_types", LAYER_KINDS)
    feeds = _marked(c, c.moe_layer_freq, "mlp_layer_types", kit.FEED_FORWARD, otherwise=1)
    dense, sparse = _fused_mlp(d, c.dense_intermediate_size), _mixture(c)

    def block(attending: str, feeding: str) -> nn.Module:
        return kit.pre_norm(
            _attention(c, attending), sparse if feeding == "sparse" else dense, nn.RMSNorm(d, kind="gemma")
        )

    return kit.decoder(c, kit.in_turns(zip(attends, feeds, strict=True), block), nn.RMSNorm(d, kind="gemma"))


def _older(c: Config) -> dict[str, Any]:
    """The older `sparse_attention_config` dictionary, or {}."""
    stated = c.sparse_attention_config
    if stated is not None and not isinstance(stated, dict):
        raise c.refuse(f"sparse_attention_config is {shown(stated)}, expected a dictionary")
    return stated or {}


def _marked(c: Config, marks: object, name: str, kinds: tuple[str, str], otherwise: int = 0) -> list[str]:
    """Kind of each layer: from the key `name`, or from 0/1 marks of older configs.

    Without either, all layers are of the kind `otherwise`.
    """
    count = int(c.num_hidden_layers)
    if marks is None or getattr(c, name) is not None:
        return kit.listed(c, name, kinds, lambda _: kinds[otherwise])
    if not isinstance(marks, list) or len(marks) != count:
        raise c.refuse(f"the mask for {name} is {shown(marks)}, expected a 0 or 1 for each of the {count} layers")
    return [kinds[bool(mark)] for mark in marks]


def _fused_mlp(d: int, inner: int) -> nn.MLP:
    return nn.MLP(gate_up_proj=nn.Linear(d, 2 * inner, bias=False), down_proj=nn.Linear(inner, d, bias=False))


def _mixture(c: Config) -> nn.Module:
    of = c.num_local_experts
    return kit.mixture(
        c,
        c.intermediate_size,
        kit.experts_used(c, "num_local_experts"),
        of,
        names=None,
        scores={"e_score_correction_bias": nn.Buffer(of)},
        shared_experts=_fused_mlp(c.hidden_size, c.shared_intermediate_size),
    )


def _attention(c: Config, kind: str) -> nn.Attention:
    """Grouped-query attention; in sparse layers an indexer selects blocks by their top score."""
    if kind == LAYER_KINDS[0]:
        runs = kit.heads(c)
        return kit.attention(c, runs, **kit.head_norms(runs, kind="gemma"))
    d, (count, size, block, blocks) = c.hidden_size, (_size(c, key, _older(c)) for key in OLDER)
    runs = kit.heads(c, indexer=nn.Indexer(count, size, block * blocks, weighed=False))
    chooses = nn.IndexerModule(
        q_proj=nn.Linear(d, count * size, bias=False),
        k_proj=nn.Linear(d, size, bias=False),
        q_norm=nn.RMSNorm(size, kind="gemma"),
        k_norm=nn.RMSNorm(size, kind="gemma"),
    )
    return kit.attention(c, runs, **kit.head_norms(runs, kind="gemma"), indexer=chooses)


def _size(c: Config, key: str, older: dict[str, Any]) -> int:
    stated = older.get(OLDER[key])
    if OLDER[key] not in older:
        return getattr(c, key)  # type: ignore[no-any-return]
    if type(stated) is not int or stated < 1:
        raise c.refuse(f"{OLDER[key]} is {shown(stated)}, expected a positive integer")
    return stated
