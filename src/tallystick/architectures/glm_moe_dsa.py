"""GLM-5: DeepSeek-V3.2's blocks; some layers share an earlier layer's indexer selection.

Source: GLM Team 2026, "GLM-5: from Vibe Coding to Agentic Engineering".
"""

from collections.abc import Callable

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import sigmoid_mixture
from tallystick.architectures.deepseek_v32 import CHOSEN, indexed_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

INDEXERS = ("full", "shared")  # has its own indexer, or uses the previous selection


@architecture(
    "glm_moe_dsa",
    "GlmMoeDsaForCausalLM",
    running=CHOSEN,
    aliases={"num_local_experts": "n_routed_experts", "num_experts": "n_routed_experts"},
    vocab_size=154880,
    hidden_size=6144,
    intermediate_size=12288,
    moe_intermediate_size=2048,
    num_hidden_layers=78,
    first_k_dense_replace=nonnegative(3),
    mlp_layer_types=None,
    indexer_types=None,
    index_topk_pattern=None,
    index_topk_freq=nonnegative(1),
    index_skip_topk_offset=nonnegative(2),
    num_attention_heads=64,
    q_lora_rank=2048,
    kv_lora_rank=512,
    qk_nope_head_dim=192,
    qk_rope_head_dim=64,
    v_head_dim=256,
    index_n_heads=32,
    index_head_dim=128,
    n_shared_experts=nonnegative(1),
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def glm_moe_dsa(c: Config) -> nn.Model:
    dense, every, skipped = int(c.first_k_dense_replace), max(int(c.index_topk_freq), 1), int(c.index_skip_topk_offset)
    feeds = kit.listed(c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer >= dense])
    own = _spelled(c) or kit.listed(
        c, "indexer_types", INDEXERS, lambda layer: INDEXERS[max(layer - skipped + 1, 0) % every != 0], longer=True
    )
    return kit.decoder(c, kit.in_turns(zip(feeds, own, strict=True), _block(c)))


def _spelled(c: Config) -> list[str] | None:
    """Indexer types from the older key `index_topk_pattern`: a list, or letters (``FSSF``)."""
    stated, count = c.index_topk_pattern, int(c.num_hidden_layers)
    if c.indexer_types is not None or stated is None:
        return None
    letters = {kind[0].upper(): kind for kind in INDEXERS}
    kinds = [letters.get(letter) for letter in stated] if isinstance(stated, str) else stated
    if not isinstance(kinds, list) or len(kinds) < count or not all(kind in INDEXERS for kind in kinds):
        raise c.refuse(f"index_topk_pattern must spell an F or S for each of the {count} layers")
    return kinds[:count]


def _block(c: Config) -> Callable[[str, str], nn.Module]:
    """Return a function that builds the block of a layer from its MLP kind and indexer type."""
    d = c.hidden_size
    feed = {"dense": kit.gated_mlp(d, c.intermediate_size), "sparse": sigmoid_mixture(c, scoring=None)}
    attends = {kind: indexed_attention(c, own=kind == "full") for kind in INDEXERS}
    return lambda feeds, own: kit.pre_norm(attends[own], feed[feeds], nn.RMSNorm(d))
