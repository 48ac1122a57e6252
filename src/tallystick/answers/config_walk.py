"""From one config to another of its family, one key at a time: what each key that differs is worth.

Each step lays the model out anew, rolled up, so that it costs as little for 671B parameters as for GPT-2. The steps'
differences sum to the whole one, in whatever order they are taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from tallystick.answers.causes import Cause, padded, tie_cause
from tallystick.config import Recipe
from tallystick.errors import BadInput
from tallystick.ledger import Entry, total_of

# The kind of change that a key makes; one that stands nowhere here is a "config-key".
KINDS = {
    "vocabulary": ("decoder_vocab_size", "vocab_size", "vocab_size_per_layer_input"),
    "layers": (
        "decoder_layers", "depth", "n_layer", "n_layers", "num_decoder_layers", "num_hidden_layers", "num_layers",
        "num_layers_per_stack",
    ),
    "width": ("d_model", "emb_dim", "hidden_size", "n_embd"),
    "embedding-width": (
        "embedding_size", "hidden_size_per_layer_input", "input_embedding_size", "output_embedding_size", "pronunciation_embed_dim",
        "shape_embed_dim", "word_embed_proj_dim",
    ),
    "mlp-width": (
        "d_ff", "d_inner", "decoder_ffn_dim", "dff", "dim_ff", "feed_forward_size", "ffn_dim", "ffn_hidden_size", "hidden_dim", "intermediate_multiple_size",
        "intermediate_size", "intermediate_size_mlp", "n_inner", "width", "widths",
        "block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of",
    ),
    "heads": (
        "attention_head_size", "attention_heads", "d_head", "dim_head", "decoder_attention_heads", "head_dim", "n_head", "n_heads", "num_attention_heads",
        "num_decoder_attention_heads", "num_heads", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "num_attention_heads_per_layer", "qk_head_dim",
        "attention_head_dim", "attention_hidden_size",
    ),
    "kv-heads": ("attn_config", "multi_query", "n_kv_groups", "num_key_value_heads", "num_kv_heads"),
    "block-sharing": ("adapter_rank", "hybrid_layer_ids", "num_mem_blocks", "use_shared_attention_adapter"),
    "kv-sharing": ("num_kv_shared_layers",),
    "residuals": ("altup_num_inputs", "hc_mult", "laurel_rank"),
    "gates": ("gating", "use_attention_gate"),
    "convolutions": ("cca_time0", "cca_time1"),
    "latent-attention": ("kv_lora_rank", "o_groups", "o_lora_rank", "q_lora_rank"),
    "convolutions": ("conv_kernel_size",),
    "distances": ("d_rel", "local_layer_ids", "rel_extent", "sliding_window_size"),
    "compressed-attention": ("compress_rate_csa", "compress_rate_hca", "compress_rates", "compress_ratios"),
    "indexers": (
        "index_head_dim", "index_n_heads", "index_skip_topk_offset", "index_topk_freq", "index_topk_pattern", "indexer_types",
        "sparse_attention_config",
    ),
    "scans": (
        "attn_layer_indices", "full_attention_interval", "layer_types", "linear_conv_kernel_dim", "linear_key_head_dim",
        "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim", "mamba_d_conv", "mamba_d_state",
        "mamba_expand", "mamba_n_groups", "mamba_n_heads", "conv_kernel", "expand", "mamba_d_ssm", "n_groups", "state_size",
        "time_step_rank", "attn_layer_offset", "attn_layer_period", "hybrid_override_pattern", "layers_block_type",
        "mamba_dt_rank", "mamba_head_dim", "mamba_num_heads", "ssm_state_size",
        "mamba_ngroups", "n_mamba_heads", "block_types", "conv1d_width", "conv_L_cache", "full_attn_idxs", "lru_width",
    ),
    "token-types": (
        "concat_input", "enable_pronunciation", "enable_shape", "n_langs", "pronunciation_vocab_size", "segment_types",
        "shape_vocab_size", "task_type_vocab_size", "type_vocab_size", "use_lang_emb", "use_task_id",
    ),
    "prompts": ("prompt_length", "prompt_types"),
    "adaptive-softmax": ("asm", "asm_cutoffs", "asm_div_value"),
    "attention-kinds": ("attn_layers",),
    "adapters": ("adapter_reduction_factor", "languages"),
    "cross-attention": ("add_cross_attention", "cross_attention_hidden_size", "cross_attn_k"),
    "parts": ("decoder_config", "encoder_config", "global_config", "patch_in_forward", "patcher_config"),
    "hashes": (
        "encoder_hash_byte_group_nb_functions", "encoder_hash_byte_group_size", "encoder_hash_byte_group_vocab",
    ),
    "activation": ("hidden_act",),
    "biases": (
        "lm_head_bias", "attention_bias", "attention_out_bias", "bias", "enable_bias", "mamba_conv_bias", "mamba_proj_bias", "mlp_bias",
        "classifier_bias", "decoder_bias", "norm_bias",
        "projectors_bias", "qkv_bias", "router_bias", "use_bias", "use_conv_bias", "use_qkv_bias",
        "add_bias_linear", "conv_bias",
    ),
    "norms": (
        "_remove_final_layer_norm", "do_layer_norm_before", "gated_norm_rank", "mamba_rms_norm", "layernorm_embedding", "layer_norm_elementwise_affine", "norm_scale",
        "adapter_layer_norm", "num_ln_in_parallel_attn", "parallel_attn", "pre_norm", "qk_layernorm", "qk_norm",
        "use_parallel_residual", "use_post_norm", "use_qk_norm",
        "use_sandwich_norm",
    ),
    "positions": (
        "block_size", "context_length", "max_position_embeddings", "max_target_positions", "n_positions", "ngram", "num_buckets",
        "axial_pos_embds", "axial_pos_embds_dim", "axial_pos_shape", "position_bias_num_buckets", "use_learned_position_embeddings",
    ),
    "experts": (
        "decoder_sparse_step", "first_k_dense_replace", "interleave_moe_layer_step", "mlp_only_layers",
        "moe_intermediate_size", "moe_layers", "n_routed_experts", "n_shared_experts", "num_experts", "num_local_experts",
        "shared_expert_intermediate_size", "shared_intermediate_size", "moe_num_experts", "moe_num_shared_experts",
        "expert_layer_offset", "expert_layer_period", "moe_latent_size", "moe_shared_expert_intermediate_size",
        "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval",
        "expert_ffn_hidden_size", "mlp_layer_types", "moe_layer_freq", "num_hash_layers", "num_shared_experts",
        "is_moe", "num_dense_layers", "prefix_dense_intermediate_size", "router_hidden_size", "ffn_config", "zero_expert_num",
        "use_expert_bias",
    ),
}  # fmt: skip
_KIND_OF = {key: kind for kind, keys in KINDS.items() for key in keys}

TIE = "tie_word_embeddings"
COUNTS_OF_HEADS = ("n_head", "n_heads", "num_attention_heads", "num_heads")
MOST_TOGETHER = 3  # keys that make a model only together: a width and its heads, seldom more


def walk(recipe: Recipe, target: Mapping[str, Any]) -> list[Cause]:
    """A cause for each key by which the values of `target` differ from the recipe's and which changes a tensor.

    A tie that is gained goes first and one that is lost last, so that either is worth what the untied model's head is.
    """
    values = dict(recipe.values)
    entries = recipe.entries(values)
    keys = [key for key in values if values[key] != target[key]]
    keys.sort(key=lambda key: 0 if key != TIE else -1 if target[key] else 1)
    causes = []
    while keys:
        group, changed, after = _step(recipe, values, target, keys)
        named = tuple(key for key in group if len(group) == 1 or _matters(recipe, changed, key, values[key], after))
        cause = _cause(named or group, values, target, entries, after)
        if cause is not None:
            causes.append(cause)
        values, entries = changed, after
        keys = [key for key in keys if key not in group]
    return causes


def _step(
    recipe: Recipe, values: Mapping[str, Any], target: Mapping[str, Any], keys: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, Any], tuple[Entry, ...]]:
    """The next keys to change, all the values then, and what they lay out."""
    for group in _groups(keys):
        changed = {**values, **{key: target[key] for key in group}}
        try:
            return group, changed, recipe.entries(changed)
        except BadInput:  # heads that do not divide the new width: they change with it
            continue
    return tuple(keys), dict(target), recipe.entries(target)


def _groups(keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What to change next, in the order of preference: one key, or a few that make a model only together."""
    # Heads grow in number with the width: one after the other would make heads of a size that neither model has.
    together = tuple(key for key in keys if key in KINDS["width"] or key in COUNTS_OF_HEADS)
    if len(together) > 1 and together[0] == keys[0]:
        yield together
    for size in range(1, MOST_TOGETHER + 1):
        yield from combinations(keys, size)


def _matters(recipe: Recipe, changed: Mapping[str, Any], key: str, old: object, after: Sequence[Entry]) -> bool:
    """Whether a key has a part in what several keys changed together."""
    try:
        return _facts(recipe.entries({**changed, key: old})) != _facts(after)
    except BadInput:
        return True


def _cause(
    keys: tuple[str, ...],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    old: Sequence[Entry],
    new: Sequence[Entry],
) -> Cause | None:
    had, has = _facts(old), _facts(new)
    names = tuple(dict.fromkeys(fact[0].replace("{}", "*") for fact in (*had, *has) if (fact in had) != (fact in has)))
    if not names:
        return None
    parameters = total_of(new) - total_of(old)
    if keys == (TIE,):
        lost = not after[TIE]
        tied, untied = (old, new) if lost else (new, old)
        apart = {entry.name for entry in untied if entry.storage == entry.name}
        ties = {entry.name: entry.storage for entry in tied if entry.storage != entry.name and entry.name in apart}
        return tie_cause(ties, parameters, lost=lost, keys=keys)
    what = ", ".join(f"{key} {_said(before[key])} → {_said(after[key])}" for key in keys)
    kind = _KIND_OF.get(keys[0], "config-key")
    if kind == "vocabulary":
        what += padded(before[keys[0]] or 0, after[keys[0]] or 0)
    return Cause(kind, what, parameters, names, keys)


def _facts(entries: Sequence[Entry]) -> dict[tuple[str, *tuple[object, ...]], None]:
    """What `compare` calls a change, in the order of printing."""
    return {(e.name, e.shape, e.axes, e.unique, e.buffer): None for e in entries}


def _said(value: object) -> str:
    """A value as config.json has it, large numbers in groups of three."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value, default=str)
