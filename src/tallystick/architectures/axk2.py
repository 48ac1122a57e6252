"""A.X-K2 (SK Telecom 2026): DeepSeek-V3.2's attention with an output gate, and gated norms."""

from typing import Any

from tallystick.architectures import kit
from tallystick.architectures.axk1 import feeds
from tallystick.architectures.deepseek_v3 import sigmoid_mixture
from tallystick.architectures.deepseek_v32 import CHOSEN, indexed_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "axk2",
    "AXK2ForCausalLM",
    running=CHOSEN,
    aliases={"num_local_experts": "n_routed_experts"},
    vocab_size=163840,
    hidden_size=2048,
    intermediate_size=5120,
    moe_intermediate_size=512,
    num_hidden_layers=48,
    first_k_dense_replace=nonnegative(1),
    moe_layer_freq=1,
    mlp_layer_types=None,
    num_attention_heads=32,
    q_lora_rank=384,
    kv_lora_rank=128,
    qk_nope_head_dim=64,
    qk_rope_head_dim=32,
    v_head_dim=64,
    index_n_heads=16,
    index_head_dim=128,
    n_shared_experts=nonnegative(1),
    n_routed_experts=128,
    num_experts_per_tok=8,
    gated_norm_rank=16,
    attention_bias=False,
    tie_word_embeddings=False,
)
def axk2(c: Config) -> nn.Model:
    d, attends, norm = c.hidden_size, _attention(c), _gated_norm(c)
    blocks = {
        "dense": nn.Module(
            self_attn=attends,
            mlp=kit.gated_mlp(d, c.intermediate_size),
            input_layernorm=norm,
            post_attention_layernorm=nn.RMSNorm(d),
        ),
        "sparse": nn.Module(
            self_attn=attends,
            mlp=sigmoid_mixture(c, scoring=None),
            input_layernorm=norm,
            post_attention_layernorm=norm,
        ),
    }
    return kit.decoder(c, kit.in_turns(feeds(c), lambda kind: blocks[kind]))


def _gated_norm(c: Config) -> nn.Module:
    """A norm with a low-rank gate on its output."""
    d, rank = c.hidden_size, c.gated_norm_rank
    down, up = nn.Linear(d, rank, bias=False), nn.Linear(rank, d, bias=False)
    if c.published:
        return nn.Module(norm=nn.RMSNorm(d), W_down=down, W_up=up)
    return nn.Module(norm=nn.RMSNorm(d), mlp=nn.Module(fc1=down, fc2=up))


def _attention(c: Config) -> nn.Attention:
    """Attention whose queries and output gate are one projection; it reads 2 × q_lora_rank."""
    size = c.qk_nope_head_dim + c.qk_rope_head_dim + c.v_head_dim
    fused = nn.Linear(2 * c.q_lora_rank, c.num_attention_heads * size, bias=False)
    queries: dict[str, Any] = {"q_b_proj": fused} if c.published else {"q_b_proj": None, "q_gate_proj": fused}
    return indexed_attention(c, **queries)
