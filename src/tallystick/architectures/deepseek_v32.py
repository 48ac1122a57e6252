"""DeepSeek-V3.2: MLA over the tokens that an indexer selects (sparse attention).

Source: DeepSeek-AI 2025, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models".
"""

from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention, sigmoid_mixture
from tallystick.architectures.glm4_moe_lite import some_dense
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

CHOSEN = {"index_topk": nonnegative(2048)}


@architecture(
    "deepseek_v32",
    "DeepseekV32ForCausalLM",
    running=CHOSEN,
    aliases={"num_local_experts": "n_routed_experts", "num_experts": "n_routed_experts"},
    vocab_size=129280,
    hidden_size=7168,
    intermediate_size=18432,
    moe_intermediate_size=2048,
    num_hidden_layers=61,
    first_k_dense_replace=nonnegative(3),
    mlp_layer_types=None,
    num_attention_heads=128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    index_n_heads=64,
    index_head_dim=128,
    n_shared_experts=nonnegative(1),
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def deepseek_v32(c: Config) -> nn.Model:
    return kit.decoder(
        c, some_dense(c, c.first_k_dense_replace, indexed_attention(c), sigmoid_mixture(c, scoring=None))
    )


def indexed_attention(c: Config, *, own: bool = True, wide: bool = False, **more: Any) -> nn.Attention:
    """Return latent attention over the tokens that an indexer selects.

    Args:
        c: the config.
        own: whether the layer has an indexer; if not, it uses the last one below it.
        wide: whether the indexer's keys are float32.
        more: further children of the attention.
    """
    heads, size = (c.index_n_heads, c.index_head_dim) if own else (0, 0)
    runs = nn.Indexer(heads, size, c.index_topk, wide=wide)
    return latent_attention(c, how={"indexer": runs}, indexer=_indexer(c) if own else None, **more)


def _indexer(c: Config) -> nn.IndexerModule:
    """The indexer (section 2.1): small heads score previous tokens; the top k are attended."""
    d, heads, size = c.hidden_size, c.index_n_heads, c.index_head_dim
    return nn.IndexerModule(
        wq_b=nn.Linear(c.q_lora_rank, heads * size, bias=False),
        wk=nn.Linear(d, size, bias=False),
        k_norm=nn.LayerNorm(size),
        weights_proj=nn.Linear(d, heads, bias=False),
    )
