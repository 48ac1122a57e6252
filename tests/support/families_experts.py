"""Small random configs of the first mixtures of experts, and of decoders that scan."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    ABSENT,
    COMMON,
    EVEN,
    FLAG,
    HEAD,
    HEAD_DIM,
    HEADS,
    INNER,
    NULL_FLAG,
    SIZE_OR_NULL,
    VOCABULARY,
    Config,
    Family,
    config,
    divisors,
    llama_like,
    maybe_flags,
    nullable,
    sometimes,
    with_experts,
)

MIXED = {**COMMON, "moe_intermediate_size": 6, "shared_expert_intermediate_size": 5}
NETS = {"linear_key_head_dim": 4, "linear_value_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4}


@st.composite
def deepseek(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    layers, heads = draw(st.integers(1, 4)), draw(HEADS)
    width = heads * draw(HEAD) if model_type == "deepseek_v2" else draw(st.integers(1, 40))
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=width,
        intermediate_size=draw(sometimes(INNER)),
        moe_intermediate_size=draw(INNER),
        num_hidden_layers=layers,
        first_k_dense_replace=draw(sometimes(st.integers(0, layers + 1))),
        num_attention_heads=heads,
        num_key_value_heads=draw(sometimes(HEADS)),
        q_lora_rank=draw(nullable(st.integers(1, 20))),
        kv_lora_rank=draw(sometimes(st.integers(1, 20))),
        qk_nope_head_dim=draw(sometimes(st.integers(1, 9))),
        qk_rope_head_dim=draw(sometimes(st.sampled_from([2, 4, 6]))),
        v_head_dim=draw(sometimes(st.integers(1, 9))),
        n_shared_experts=draw(sometimes(st.integers(0, 3))),
        attention_bias=draw(sometimes(FLAG)),
        tie_word_embeddings=draw(sometimes(FLAG)),
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def hunyuan_v1_moe(draw: DrawFn) -> Config:
    """How many experts a token uses, for all layers or for each."""
    values = draw(llama_like("hunyuan_v1_moe", head_dim=EVEN, **maybe_flags("attention_bias")))
    count, layers = draw(st.integers(1, 9)), values["num_hidden_layers"]
    one = st.integers(1, count)
    used = draw(st.one_of(one, st.lists(one, min_size=layers, max_size=layers + 1)))
    return {
        **values,
        draw(st.sampled_from(["num_experts", "num_local_experts"])): count,
        draw(st.sampled_from(["moe_topk", "num_experts_per_tok"])): used,
    }


@st.composite
def minimax(draw: DrawFn) -> Config:
    """Attention and scans in turns, or as listed."""
    block = sometimes(st.integers(1, 9))
    values = draw(llama_like("minimax", kv=8, head_dim=SIZE_OR_NULL, block_size=block))
    layers = values["num_hidden_layers"]
    kinds = st.sampled_from(["full_attention", "linear_attention"])
    listed = draw(nullable(st.lists(kinds, min_size=layers, max_size=layers)))
    return values if listed is ABSENT else {**values, "layer_types": listed}


@st.composite
def bamba(draw: DrawFn) -> Config:
    """Widths that the heads of both kinds divide; a few layers attend, some that are listed are no
    layers.
    """
    heads, mamba_heads, expand = draw(HEADS), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    width = heads * mamba_heads * draw(HEAD)
    size = expand * width // mamba_heads
    return config(
        "bamba",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=width,
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=draw(st.integers(1, 6)),
        attn_layer_indices=draw(nullable(st.lists(st.integers(-1, 7), max_size=5))),
        num_attention_heads=heads,
        num_key_value_heads=draw(st.sampled_from([None, *divisors(heads)])),
        head_dim=draw(HEAD_DIM),
        mamba_n_heads=mamba_heads,
        mamba_d_head=draw(sometimes(st.sampled_from(["auto", size]))),
        mamba_n_groups=draw(sometimes(st.sampled_from(divisors(mamba_heads)))),
        mamba_d_state=draw(sometimes(st.integers(1, 9))),
        mamba_d_conv=draw(sometimes(st.integers(1, 5))),
        mamba_expand=expand,
        **{key: draw(value) for key, value in maybe_flags(*BAMBA_FLAGS).items()},
    )


BAMBA_FLAGS = ("mamba_conv_bias", "mamba_proj_bias", "attention_bias", "mlp_bias", "tie_word_embeddings")


@st.composite
def qwen3_next(draw: DrawFn, model_type: str, **more: Any) -> Config:
    """As those like Llama, and each layer's kind, listed or not."""
    values = draw(llama_like(model_type, **more))
    if draw(FLAG):
        kinds = st.sampled_from(["linear_attention", "full_attention"])
        values["layer_types"] = [draw(kinds) for _ in range(values["num_hidden_layers"])]
    return values


FAMILIES: dict[str, Family] = {
    "bamba": Family(
        bamba(),
        {**COMMON, "num_hidden_layers": 3, "mamba_n_heads": 4, "mamba_d_state": 6, "attn_layer_indices": [1]},
        counted=False,
    ),
    "mixtral": Family(
        with_experts(llama_like("mixtral", head_dim=SIZE_OR_NULL, kv=8), "num_local_experts", "num_experts"),
        experts=True,
        counted=False,
    ),
    "qwen3_moe": Family(
        with_experts(
            llama_like(
                "qwen3_moe",
                kv=4,
                moe_intermediate_size=INNER,
                decoder_sparse_step=sometimes(st.integers(1, 3)),
                mlp_only_layers=nullable(st.lists(st.integers(0, 3), max_size=2)),
                **maybe_flags("attention_bias", "use_sliding_window"),
            ),
            "num_experts",
            "num_local_experts",
        ),
        needs={"intermediate_size": {"mlp_only_layers": [0]}},
        aliases={"num_local_experts": "num_experts"},  # stands in its attribute map the other way round
    ),
    "qwen3_next": Family(
        with_experts(
            qwen3_next(
                "qwen3_next",
                kv=2,
                moe_intermediate_size=INNER,
                shared_expert_intermediate_size=INNER,
                full_attention_interval=sometimes(st.integers(1, 3)),
                linear_conv_kernel_dim=sometimes(st.integers(1, 5)),
                linear_key_head_dim=EVEN,
                linear_value_head_dim=EVEN,
                linear_num_key_heads=HEADS,
                linear_num_value_heads=HEADS,
                decoder_sparse_step=sometimes(st.integers(1, 3)),
                mlp_only_layers=nullable(st.lists(st.integers(0, 3), max_size=2)),
                **maybe_flags("attention_bias"),
            ),
            "num_experts",
            "num_experts",
        ),
        {**MIXED, **NETS, "head_dim": 4, "num_hidden_layers": 4, "num_experts": 12},
        needs={"intermediate_size": {"mlp_only_layers": [0]}},
        experts=True,
        counted=False,
    ),
    "llama4_text": Family(
        with_experts(
            llama_like(
                "llama4_text",
                kv=8,
                intermediate_size_mlp=sometimes(INNER),
                interleave_moe_layer_step=sometimes(st.integers(1, 3)),
                moe_layers=nullable(st.lists(st.integers(0, 3), max_size=3)),
                **maybe_flags("attention_bias"),
            ),
            "num_local_experts",
            "num_local_experts",
        ),
        needs={"intermediate_size_mlp": {"moe_layers": [0]}},
        runs={"moe_layers": []},  # it runs experts that nobody counts
    ),
    "deepseek_v3": Family(
        with_experts(
            deepseek("deepseek_v3", num_mtp_layers=sometimes(st.integers(0, 2))),
            "n_routed_experts",
            "num_local_experts",
        ),
        {**MIXED, "num_attention_heads": 2, "num_hidden_layers": 4, "n_routed_experts": 8},
        experts=True,
        counted=False,
        small_runs={"n_group": 1, "topk_group": 1},
    ),
    "deepseek_v2": Family(
        with_experts(deepseek("deepseek_v2", **maybe_flags("mlp_bias")), "n_routed_experts", "num_experts"),
        {**MIXED, "n_routed_experts": 12, "num_experts_per_tok": 4},
        needs={"intermediate_size": {"first_k_dense_replace": 1}},
        experts=True,
        counted=False,
    ),
    "qwen2_moe": Family(
        with_experts(
            llama_like(
                "qwen2_moe",
                kv=16,
                moe_intermediate_size=INNER,
                shared_expert_intermediate_size=INNER,
                decoder_sparse_step=sometimes(st.integers(1, 3)),
                mlp_only_layers=nullable(st.lists(st.integers(0, 3), max_size=2)),
                **maybe_flags("qkv_bias", "use_sliding_window"),
            ),
            "num_experts",
            "num_experts",
        ),
        {**MIXED, "num_experts": 12},
        needs={"intermediate_size": {"mlp_only_layers": [0]}},
        experts=True,
    ),
    "olmoe": Family(
        with_experts(llama_like("olmoe", **maybe_flags("attention_bias")), "num_experts", "num_local_experts"),
        {**MIXED, "num_experts": 12},
        experts=True,
        runs={
            "hidden_size": 16,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 4,
        },  # heads fill the width
    ),
    "granitemoe": Family(
        with_experts(
            llama_like("granitemoe", **maybe_flags("attention_bias")), "num_local_experts", "num_local_experts"
        ),
        experts=True,
    ),
    "granitemoeshared": Family(
        with_experts(
            llama_like(
                "granitemoeshared",
                shared_intermediate_size=sometimes(st.integers(0, 20)),
                **maybe_flags("attention_bias"),
            ),
            "num_local_experts",
            "num_local_experts",
        ),
        experts=True,
    ),
    "phimoe": Family(
        with_experts(
            llama_like("phimoe", kv=8, **maybe_flags("attention_bias", "lm_head_bias")),
            "num_local_experts",
            "num_local_experts",
        ),
        {**MIXED, "num_local_experts": 4},
        experts=True,
        counted=False,
    ),
    "glm4_moe": Family(
        with_experts(
            llama_like(
                "glm4_moe",
                kv=8,
                moe_intermediate_size=INNER,
                first_k_dense_replace=sometimes(st.integers(0, 4)),
                n_shared_experts=sometimes(st.integers(0, 3)),
                **maybe_flags("attention_bias", "use_qk_norm"),
            ),
            "n_routed_experts",
            "num_local_experts",
        ),
        {**MIXED, "n_routed_experts": 12},
        experts=True,
        counted=False,
    ),
    "ernie4_5_moe": Family(
        with_experts(
            llama_like(
                "ernie4_5_moe",
                kv=4,
                moe_intermediate_size=INNER,
                moe_num_shared_experts=sometimes(st.integers(0, 3)),
                moe_layer_start_index=sometimes(st.integers(0, 3)),
                moe_layer_end_index=sometimes(st.integers(-1, 3)),
                moe_layer_interval=sometimes(st.integers(1, 3)),
                use_bias=sometimes(NULL_FLAG),
            ),
            "moe_num_experts",
            "num_experts",
            ("moe_k", "num_experts_per_tok"),
        ),
        {**MIXED, "moe_num_experts": 12},
        needs={"moe_layer_interval": {"moe_layer_start_index": 0}},
        experts=True,
    ),
    "hunyuan_v1_moe": Family(
        hunyuan_v1_moe(), {**MIXED, "num_experts": 4, "head_dim": 16}, lacking={"head_dim": 16}, experts=True
    ),
    "minimax": Family(
        with_experts(minimax(), "num_local_experts", "num_experts"),
        {**MIXED, "block_size": 3},
        experts=True,
        counted=False,
    ),
    "minimax_m2": Family(
        with_experts(llama_like("minimax_m2", kv=8), "num_local_experts", "num_experts"),
        {**MIXED, "num_local_experts": 12, "head_dim": 4},
        experts=True,
    ),
    "gpt_oss": Family(
        with_experts(
            llama_like("gpt_oss", kv=8, **maybe_flags("attention_bias")),
            "num_local_experts",
            "num_experts",
        ),
        {**COMMON, "num_local_experts": 8},
        counted=False,
    ),
}
