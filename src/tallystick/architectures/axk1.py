"""A.X-K1 (SK Telecom 2026): DeepSeek-V3's blocks, with an additional norm after the experts."""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention, sigmoid_mixture
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "axk1",
    "AXK1ForCausalLM",
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=163840,
    hidden_size=7168,
    intermediate_size=18432,
    moe_intermediate_size=2048,
    num_hidden_layers=61,
    first_k_dense_replace=nonnegative(1),
    moe_layer_freq=1,
    mlp_layer_types=None,
    num_attention_heads=64,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_shared_experts=nonnegative(1),
    n_routed_experts=192,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def axk1(c: Config) -> nn.Model:
    d, norm = c.hidden_size, nn.RMSNorm(c.hidden_size)
    attends, dense = latent_attention(c), kit.gated_mlp(d, c.intermediate_size)
    behind = {"post_mlp_layernorm": norm}  # in checkpoints it is a sibling of the experts
    inside, extras = ({}, behind) if c.published else (behind, {})
    sparse = kit.pre_norm(attends, sigmoid_mixture(c, scoring=None, **inside), norm).with_children(**extras)
    blocks = {"dense": kit.pre_norm(attends, dense, norm), "sparse": sparse}
    return kit.decoder(c, kit.in_turns(feeds(c), lambda kind: blocks[kind]))


def feeds(c: Config) -> list[str]:
    """Return "dense" or "sparse" per layer: from `mlp_layer_types`, or by `moe_layer_freq`.

    By default every `moe_layer_freq`-th layer after the first dense layers is sparse.
    """
    dense, every = int(c.first_k_dense_replace), int(c.moe_layer_freq)
    return kit.listed(
        c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer >= dense and layer % every == 0]
    )
