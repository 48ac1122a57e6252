"""Small configs of decoders whose caches and operations are measured: windows that a short sequence
does not fit in, scans, latents.
"""

WIDTHS = {"hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61, "intermediate_size": 12}
GROUPED = {**WIDTHS, "num_key_value_heads": 2}
MIXED = {
    **GROUPED, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
    "intermediate_size": 16,
}  # fmt: skip
GEMMA_3N = {
    **GROUPED, "head_dim": 6, "sliding_window": 7, "vocab_size_per_layer_input": 61, "hidden_size_per_layer_input": 5,
    "laurel_rank": 3,
}  # fmt: skip
BART = {
    "vocab_size": 61, "d_model": 24, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 12,
    "encoder_layers": 2,
}  # fmt: skip
GEMMA_4 = {
    **GROUPED, "head_dim": 6, "global_head_dim": 10, "sliding_window": 7, "vocab_size_per_layer_input": 61,
    "hidden_size_per_layer_input": 5,
}  # fmt: skip
GPT2 = {"n_embd": 24, "n_head": 4, "n_layer": 3, "vocab_size": 61}

SMALL = [
    ("gpt2", {**GPT2, "n_positions": 64}),
    ("gptj", {**GPT2, "rotary_dim": 4}),
    ("bloom", {"hidden_size": 32, "n_head": 4, "n_layer": 2, "vocab_size": 61}),
    ("gpt_neox", {**WIDTHS, "num_hidden_layers": 2}),
    ("opt", {**WIDTHS, "num_hidden_layers": 2, "ffn_dim": 12, "word_embed_proj_dim": 32}),
    ("phi", {**WIDTHS, "num_hidden_layers": 2}),
    ("llama", {**GROUPED, "num_hidden_layers": 3, "head_dim": 6}),
    ("granite", {**GROUPED, "num_hidden_layers": 2}),
    ("olmo2", {**GROUPED, "num_hidden_layers": 2}),
    ("gemma", {**GROUPED, "num_hidden_layers": 3, "head_dim": 6}),
    ("falcon", {**WIDTHS, "num_hidden_layers": 3}),  # multi-query
    ("falcon", {**WIDTHS, "num_hidden_layers": 3, "multi_query": False}),
    ("mistral", {**GROUPED, "num_hidden_layers": 3, "sliding_window": 7}),
    ("mistral", {**GROUPED, "num_hidden_layers": 3, "sliding_window": None}),
    ("mixtral", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("starcoder2", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("phi3", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("gemma2", {**GROUPED, "num_hidden_layers": 5, "head_dim": 6, "sliding_window": 7}),
    ("gemma2", {**GROUPED, "num_hidden_layers": 3, "sliding_window": 7, "layer_types": ["full_attention"] * 3}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 7, "head_dim": 6, "sliding_window": 7}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 7, "sliding_window": 7, "sliding_window_pattern": 2}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 7, "sliding_window": 8, "use_bidirectional_attention": True}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7, "layer_types": ["full_attention"] * 2}),
    ("gemma3n_text", {**GEMMA_3N, "num_hidden_layers": 7, "num_kv_shared_layers": 2}),
    ("gemma4_text", {**GEMMA_4, "num_hidden_layers": 14, "num_kv_shared_layers": 2}),
    ("gemma4_text", {**GEMMA_4, "num_hidden_layers": 6, "attention_k_eq_v": True, "num_global_key_value_heads": 1}),
    ("gemma3n_text", {**GEMMA_3N, "num_hidden_layers": 3, "num_kv_shared_layers": 0}),
    (
        "gemma3n_text",
        {
            **GEMMA_3N, "num_hidden_layers": 4, "num_kv_shared_layers": 1, "intermediate_size": [8, 9, 9, 12],
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
    ),
    ("llama4_text", {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "num_local_experts": 1, "attention_chunk_size": 7}),
    (
        "llama4_text",
        {
            **GROUPED, "num_hidden_layers": 3, "head_dim": 6, "num_local_experts": 2, "num_experts_per_tok": 2,
            "attention_chunk_size": 5, "no_rope_layers": [0, 1, 1], "moe_layers": [1], "intermediate_size_mlp": 20,
        },
    ),
    ("olmo3", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7}),
    ("stablelm", {**GROUPED, "num_hidden_layers": 2, "qk_layernorm": True}),
    ("cohere2", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "sliding_window_pattern": 3}),
    ("glm", {**GROUPED, "num_hidden_layers": 2, "head_dim": 8}),
    ("smollm3", {**GROUPED, "num_hidden_layers": 5, "use_sliding_window": True, "sliding_window": 7}),
    ("ministral3", {**GROUPED, "num_hidden_layers": 2, "head_dim": 8, "sliding_window": 7}),
    ("exaone4", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7}),
    ("gpt_neo", {**WIDTHS, "num_heads": 4, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 7}),
    ("gpt_bigcode", GPT2),
    ("ctrl", {**GPT2, "dff": 12}),
    ("gpt_neox_japanese", {**WIDTHS, "num_hidden_layers": 2}),
    ("biogpt", {**WIDTHS, "num_hidden_layers": 2}),
    ("xglm", {"vocab_size": 61, "d_model": 24, "num_layers": 2, "attention_heads": 4, "ffn_dim": 12}),
    ("bart", BART),
    ("whisper", BART),
    ("moshi", {**GROUPED, "num_hidden_layers": 3, "ffn_dim": 12, "sliding_window": 7}),
    ("moshi", {**GROUPED, "num_hidden_layers": 3, "ffn_dim": 12, "head_dim": 6}),
    ("gpt_bigcode", {**GPT2, "multi_query": False}),
    ("codegen", {**GPT2, "rotary_dim": 4}),
    ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "vocab_size": 61}),
    ("qwen2_moe", {**MIXED, "num_hidden_layers": 5, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 3}),
    ("olmoe", {**MIXED, "num_hidden_layers": 2}),
    ("granitemoeshared", {**MIXED, "num_hidden_layers": 2, "shared_intermediate_size": 6}),
    ("phimoe", {**MIXED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("glm4_moe", {**MIXED, "num_hidden_layers": 2, "n_routed_experts": 8}),
    ("ernie4_5_moe", {**MIXED, "num_hidden_layers": 2, "moe_num_experts": 4, "moe_k": 2}),
    ("hunyuan_v1_moe", {**MIXED, "num_hidden_layers": 2, "head_dim": 8, "moe_topk": [1, 2]}),
    ("minimax_m2", {**MIXED, "num_hidden_layers": 2, "head_dim": 8}),
    (
        "deepseek_v2",
        {
            **MIXED, "num_hidden_layers": 3, "first_k_dense_replace": 1, "num_key_value_heads": 4, "kv_lora_rank": 10,
            "q_lora_rank": 12, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8, "n_routed_experts": 8,
        },
    ),
    ("apertus", {**GROUPED, "num_hidden_layers": 2}),
    ("bitnet", {**GROUPED, "num_hidden_layers": 2}),
    ("gpt_oss", {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "sliding_window": 7, "num_local_experts": 4}),
    ("qwen2", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "use_sliding_window": False}),
    ("qwen2", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "use_sliding_window": True, "max_window_layers": 3}),
    ("qwen3", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "use_sliding_window": True, "max_window_layers": 9}),
    (
        "deepseek_v3",
        {
            **WIDTHS, "num_hidden_layers": 4, "num_key_value_heads": 4, "kv_lora_rank": 10, "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 6, "v_head_dim": 8, "n_routed_experts": 8, "n_group": 2, "topk_group": 1,
            "num_experts_per_tok": 2, "moe_intermediate_size": 8,
        },
    ),
]  # fmt: skip


MAMBA = {**GROUPED, "mamba_n_heads": 4, "mamba_d_state": 6}
DELTA = {
    **GROUPED, "head_dim": 6, "num_experts": 4, "num_experts_per_tok": 2, "linear_key_head_dim": 4,
    "linear_value_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
}  # fmt: skip
SCAN = {"hidden_size": 32, "vocab_size": 61, "num_hidden_layers": 2, "state_size": 6}
CCA = {**MIXED, "num_experts_per_tok": 1, "num_hidden_layers": 2, "head_dim": 6, "router_hidden_size": 5}
LATENT = {
    **MIXED, "num_hidden_layers": 5, "num_key_value_heads": 4, "kv_lora_rank": 10, "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4, "v_head_dim": 8,
}  # fmt: skip
SHARED = ["hybrid", "hybrid", "mamba", "hybrid"]
HYBRID = [
    ("zaya", {**CCA, "cca_time1": 3}),
    ("zaya", {**CCA, "sliding_window": 7, "layer_types": ["hybrid_sliding", "hybrid"]}),
    ("qwen3_next", {**DELTA, "num_hidden_layers": 5}),
    ("qwen3_5_text", {**DELTA, "num_hidden_layers": 5}),
    ("qwen3_next", {**DELTA, "num_hidden_layers": 3, "full_attention_interval": 2, "linear_conv_kernel_dim": 3}),
    ("minimax", {**MIXED, "num_hidden_layers": 5, "block_size": 4}),
    ("minimax", {**MIXED, "num_hidden_layers": 2, "layer_types": ["linear_attention"] * 2, "head_dim": 6}),
    ("bamba", {**MAMBA, "num_hidden_layers": 5, "attn_layer_indices": [1, 4]}),
    ("bamba", {**MAMBA, "num_hidden_layers": 2, "attn_layer_indices": [0], "mamba_n_groups": 2, "mamba_d_conv": 3}),
    ("bamba", {**MAMBA, "num_hidden_layers": 2, "attn_layer_indices": [1], "mamba_expand": 3}),
    ("mamba", SCAN),
    ("falcon_mamba", {**SCAN, "conv_kernel": 3}),
    ("mamba2", {**SCAN, "num_heads": 4, "head_dim": 16, "n_groups": 2}),
    ("falcon_h1", {**MAMBA, "num_hidden_layers": 2, "mamba_d_ssm": 24, "mamba_rms_norm": True}),
    ("jamba", {**MIXED, "num_hidden_layers": 5, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 6}),
    (
        "nemotron_h",
        {**MIXED, "head_dim": 6, "mamba_num_heads": 4, "mamba_head_dim": 6, "n_groups": 2, "n_routed_experts": 4},
    ),
    (
        "granitemoehybrid",
        {**MAMBA, **MIXED, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]},
    ),
    ("lfm2", {**GROUPED, "num_hidden_layers": 5, "full_attn_idxs": [1, 4]}),
    ("lfm2_moe", {**MIXED, "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]}),
    ("lfm3", {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "sliding_window": 7}),
    ("olmo_hybrid", {**GROUPED, "num_hidden_layers": 5, "linear_conv_kernel_dim": 3}),
    ("kimi_linear", {**LATENT, "linear_num_heads": 4, "linear_head_dim": 6}),
    ("bailing_hybrid", {**LATENT, "layer_group_size": 2, "head_dim": 6, "n_group": 2, "topk_group": 1}),
    ("zamba", {**GROUPED, "num_hidden_layers": 4, "layers_block_type": SHARED, "mamba_d_state": 6}),
    ("zamba2", {**GROUPED, "num_hidden_layers": 4, "layers_block_type": SHARED, "n_mamba_heads": 4, "adapter_rank": 2}),
]
# Not run for their operations too: drawn configs of these are.
CACHED = [
    ("cwm", {**GROUPED, "num_hidden_layers": 5, "head_dim": 6, "sliding_window": 7}),
    ("granite_swa", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7}),
    ("afmoe", {**MIXED, "num_hidden_layers": 5, "sliding_window": 7, "global_attn_every_n_layers": 2}),
    ("diffllama", {**GROUPED, "num_hidden_layers": 2}),
    (
        "laguna",
        {
            **MIXED, "num_hidden_layers": 3, "sliding_window": 7, "num_attention_heads_per_layer": [4, 2, 6],
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    ("flint", {**MIXED, "num_hidden_layers": 8, "sliding_window": 7}),
    ("hrm_text", {**WIDTHS, "num_hidden_layers": 2, "head_dim": 6, "H_cycles": 3, "L_cycles": 2}),
    ("kolibri1", {**MIXED, "num_hidden_layers": 6, "sliding_window": 7}),
]  # fmt: skip
