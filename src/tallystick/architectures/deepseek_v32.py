"""DeepSeek-V3.2 (DeepSeek-AI 2025, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models"): an indexer chooses the tokens that latent attention reads."""

from tallystick.architectures._decoder import decoder
from tallystick.architectures.deepseek_v3 import latent_attention, sigmoid_mixture
from tallystick.architectures.glm4_moe_lite import some_dense
from tallystick.blueprint import Config, Group, LayerNorm, Linear, Model, architecture, natural


@architecture(
    "deepseek_v32",
    "DeepseekV32ForCausalLM",
    aliases={"num_local_experts": "n_routed_experts", "num_experts": "n_routed_experts"},
    vocab_size=129280,
    hidden_size=7168,
    intermediate_size=18432,
    moe_intermediate_size=2048,
    num_hidden_layers=61,
    first_k_dense_replace=natural(3),
    mlp_layer_types=None,
    num_attention_heads=128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    index_n_heads=64,
    index_head_dim=128,
    n_shared_experts=natural(1),
    n_routed_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def deepseek_v32(c: Config) -> Model:
    attends = latent_attention(c, told=False, indexer=indexer(c))
    return decoder(c, some_dense(c, c.first_k_dense_replace, attends, sigmoid_mixture(c, scoring=None)))


def indexer(c: Config) -> Group:
    """Scores all tokens before the own by small heads (section 2.1): attention reads those that score highest."""
    d, heads, size = c.hidden_size, c.index_n_heads, c.index_head_dim
    return Group(
        wq_b=Linear(c.q_lora_rank, heads * size, bias=False),
        wk=Linear(d, size, bias=False),
        k_norm=LayerNorm(size),
        weights_proj=Linear(d, heads, bias=False),
    )
