"""The role of every tensor of a native type."""

from __future__ import annotations

from typing import Any

import pytest

import configs
from native import LACKING, NATIVE, count, small
from rotating import MODELS, half_by_commit
from tallystick.core.entries import ROLES
from tallystick.core.ledger import Ledger
from unpackaged import UNPACKAGED


def role_of(ledger: Ledger, ending: str) -> set[str]:
    return {entry.role for entry in ledger.entries if entry.name.endswith(ending)}


# What some types have beside attention, MLP, norms and embeddings.
OTHER = tuple(beginning for family in configs.FAMILIES.values() for beginning in family.beside)


@pytest.mark.parametrize("model_type", half_by_commit([*NATIVE, *sorted(UNPACKAGED)], *MODELS))
def test_every_tensor_has_a_role(model_type: str):
    required = UNPACKAGED[model_type].small if model_type in UNPACKAGED else LACKING.get(model_type, {})
    for entry in count({"model_type": model_type, **required}).entries:
        assert entry.role in ROLES, entry.name
        assert entry.role != "other" or entry.name.startswith(OTHER), entry.name


@pytest.mark.parametrize(
    ("values", "ending", "role"),
    [
        (small("qwen3"), "q_norm.weight", "norm"),
        (small("olmo2"), "k_norm.weight", "norm"),
        (small("phi", qk_layernorm=True), "q_layernorm.bias", "norm"),
        (small("deepseek_v3"), "kv_a_layernorm.weight", "norm"),
        (small("gpt_oss"), "sinks", "attention"),
        (small("gpt_oss"), "router.bias", "router"),
        (small("gpt_oss"), "down_proj_bias", "experts"),
        (small("deepseek_v3"), "shared_experts.up_proj.weight", "mlp"),
        (small("deepseek_v3"), "mlp.gate.weight", "router"),
        (small("gemma3n_text"), "embed_tokens_per_layer.weight", "token_embedding"),
        (small("gemma3n_text"), "laurel.post_laurel_norm.weight", "norm"),
        (small("gemma3n_text"), "altup.modality_router.weight", "other"),
        (small("qwen3_next"), "linear_attn.in_proj_qkvz.weight", "ssm"),
        (small("qwen3_next"), "shared_expert_gate.weight", "router"),
        (small("bamba"), "mamba.A_log", "ssm"),
        (small("bamba"), "mamba.in_proj.weight", "ssm"),
        (small("bamba"), "conv1d.bias", "conv"),
        (small("bamba"), "mamba.norm.weight", "norm"),
        (small("opt", word_embed_proj_dim=4), "project_in.weight", "other"),
        (small("opt", word_embed_proj_dim=4), "project_out.weight", "other"),
        (small("opt"), "fc1.bias", "mlp"),
        (small("opt"), "embed_positions.weight", "position_embedding"),
        (small("phi"), "lm_head.bias", "head"),
        (small("ernie4_5_moe", use_bias=True), "lm_head.bias", "head"),
        (small("ernie4_5_moe"), "moe_statics.e_score_correction_bias", "router"),
        (small("minimax"), "self_attn.output_gate.weight", "ssm"),
        (small("apertus"), "act_fn.alpha_p", "mlp"),
        (small("stablelm", qk_layernorm=True), "q_layernorm.norms.1.weight", "norm"),
        (small("granitemoeshared", shared_intermediate_size=6), "shared_mlp.input_linear.weight", "mlp"),
        (small("hunyuan_v1_moe"), "gate.wg.weight", "router"),
        (small("gptj"), "lm_head.bias", "head"),
        (small("bloom"), "word_embeddings_layernorm.weight", "norm"),
        (small("gpt2", add_cross_attention=True), "crossattention.q_attn.bias", "attention"),
        (small("afmoe"), "mlp.expert_bias", "router"),
        (small("dbrx"), "experts.mlp.w1", "experts"),
        (small("doge", is_moe=True, num_experts=9, num_experts_per_tok=2), "up_embed.weight", "experts"),
        (small("doge", is_moe=True, num_experts=9, num_experts_per_tok=2), "mlp.up_proj.weight", "mlp"),
        (small("flint"), "self_attn.sinks", "attention"),
        (small("laguna"), "self_attn.g_proj.weight", "attention"),
        (small("zaya"), "conv_qk_grouped.weight", "conv"),
        (small("zaya"), "router_mlp.fc1.bias", "router"),
        (small("deepseek_v32"), "indexer.wk.weight", "attention"),
        (small("deepseek_v32"), "indexer.k_norm.bias", "norm"),
        (small("deepseek_v4"), "compressor.position_bias", "attention"),
        (small("deepseek_v4"), "attn_hc.fn", "other"),
        (small("deepseek_v4"), "gate.tid2eid", "router"),
        (small("hy_v3"), "mlp.e_score_correction_bias", "router"),
        (small("axk2"), "input_layernorm.norm.weight", "norm"),
        (small("axk2"), "input_layernorm.mlp.fc1.weight", "other"),
        (small("jetmoe"), "self_attention.experts.input_linear.weight", "experts"),
        (small("jetmoe"), "self_attention.experts.bias", "attention"),
        (small("jetmoe"), "mlp.bias", "mlp"),
        (small("inkling_text"), "k_sconv.conv1d.weight", "conv"),
        (small("inkling_text"), "shared_experts.up_proj", "mlp"),
        (small("inkling_text"), "rel_logits_proj.proj", "attention"),
        (small("bart"), "encoder_attn.k_proj.bias", "attention"),
        (small("pegasus"), "embed_positions.weight", "position_embedding"),
        (small("whisper"), "proj_out.weight", "head"),
        (small("prophetnet"), "ngram_embeddings.weight", "other"),
        (small("blt"), "encoder_hash_tok_embedding.weight", "token_embedding"),
        (small("blt"), "patcher.lm_head.weight", "other"),
    ],
)
def test_roles(values: dict[str, Any], ending: str, role: str):
    assert role_of(count(values), ending) == {role}
