"""Classify a config key by the words in it: the first matching rule decides.

A key without a matching rule is a "config-key", so that a new architecture needs no line here.
"""

from __future__ import annotations

import re
from functools import lru_cache

_RULES = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("biases", r"(^|_)bias(_linear)?$"),
        ("norms", r"norm|(^|_)parallel_"),
        ("indexers", r"^index|^sparse_attention_config$|^use_dsa$"),
        ("experts", r"expert|moe|_sparse_|dense_|mlp_only_layers|mlp_layer_types|hash_layers|shared_intermediate|router"),
        ("compressed-attention", r"^compress"),
        ("latent-attention", r"lora_rank|^o_groups$|^per_layer_config$"),
        ("positions", r"position|context_length|block_size|ngram|buckets|^axial|^d_rel$|^rel_|^local_layer_ids$|sliding_window"),
        ("token-types", r"type_vocab|pronunciation|(^|_)shape(_|$)|task_id|concat_input|segment_types|lang(s|_emb)$"),
        ("hashes", r"hash"),
        ("vocabulary", r"vocab"),
        ("adaptive-softmax", r"^asm"),
        ("kv-sharing", r"kv_shared|k_eq_v"),
        ("block-sharing", r"^adapter_rank$|^hybrid_layer_ids$|^num_mem_blocks$|shared_attention"),
        ("kv-heads", r"(^|_)(kv|key_value)_(n_)?(heads|groups)$|multi_query"),
        ("convolutions", r"^conv_kernel_size$|^cca_"),
        ("scans", r"mamba|ssm|^linear_|conv|(^|_)state_size$|expand$|time_step|attn_layer_|full_att\w*_(interval|idxs)|^lru_|^block_types$|layer_types"
                  r"|layers_block_type|hybrid|^n_?groups$"),
        ("attention-kinds", r"^attn_layers$"),
        ("cross-attention", r"cross_att"),
        ("parts", r"_config$|patch"),
        ("heads", r"(^|_)heads?(_(dim|size|per_layer))?$|(^|_)(head_dim|dim_head)$|kv_channels|^(qk|v)_dim_factor$|^attention_hidden_size$"),
        ("layers", r"(^|_)layers?(_per_stack)?$|depth$|^num_blocks$"),
        ("embedding-width", r"embed_|embedding_size|per_layer_input"),
        ("residuals", r"^altup|^hc_|^laurel"),
        ("gates", r"^gating$|_gate$"),
        ("prompts", r"^prompt"),
        ("adapters", r"^adapter|^languages$"),
        ("mlp-width", r"intermediate|(^|_)d?ffn?(_|$)|^dff$|_inner$|feed_forward|^hidden_dim$|^widths?$|wide_mlp$"),
        ("width", r"^(d_model|emb_dim|embedding_dim|hidden_size|n_embd)$"),
        ("activation", r"^hidden_act"),
    )
)  # fmt: skip


@lru_cache(maxsize=1024)
def kind_of_key(key: str) -> str:
    """Return the kind of change that a key makes.

    >>> kind_of_key("num_hidden_layers"), kind_of_key("moe_intermediate_size")
    ('layers', 'experts')
    >>> kind_of_key("unheard_of")
    'config-key'
    """
    return next((kind for kind, pattern in _RULES if pattern.search(key)), "config-key")
