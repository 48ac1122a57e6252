"""Small random configs of latent and sparse attention: DeepSeek's and others like it, and mixtures
of experts of other makes.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    EVEN,
    FLAG,
    HEAD,
    HEADS,
    INNER,
    NO_KEY,
    VOCABULARY,
    Config,
    Family,
    config,
    divisors,
    dotted,
    llama_like,
    maybe_flags,
    nullable,
    sometimes,
    with_experts,
)
from families_nested import small, within

WAIST = st.integers(1, 20)
SIZE = st.integers(1, 9)
TURNED = st.sampled_from([2, 4, 6])  # rotary positions turn pairs
SHARED = sometimes(st.integers(0, 3))


@st.composite
def latent(draw: DrawFn, model_type: str, *, whole: bool = False, **more: SearchStrategy[Any]) -> Config:
    """Keys and values that pass a waist; `whole` says that heads must divide the width."""
    heads = draw(HEADS)
    values = {
        "vocab_size": draw(sometimes(VOCABULARY)),
        "hidden_size": heads * draw(HEAD) if whole else draw(st.integers(1, 40)),
        "intermediate_size": draw(sometimes(INNER)),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,  # so that the model runs
        "q_lora_rank": draw(sometimes(WAIST)),
        "kv_lora_rank": draw(sometimes(WAIST)),
        "qk_nope_head_dim": draw(sometimes(SIZE)),
        "qk_rope_head_dim": draw(sometimes(TURNED)),
        "v_head_dim": draw(sometimes(SIZE)),
        "attention_bias": draw(sometimes(FLAG)),
        "tie_word_embeddings": draw(sometimes(FLAG)),
    }
    return config(model_type, **{**values, **{key: draw(value) for key, value in more.items()}})


@st.composite
def listing(draw: DrawFn, base: SearchStrategy[Config], depth: str = "num_hidden_layers", **lists: Any) -> Config:
    """And lists that hold one of some kinds for each layer, or no such key."""
    values = draw(base)
    for key, kinds in lists.items():
        if draw(FLAG):
            each = st.sampled_from(kinds)
            values[key] = draw(st.lists(each, min_size=values[depth], max_size=values[depth]))
    return values


FEEDS = ("dense", "sparse")
INDEXING = {"index_n_heads": HEADS, "index_head_dim": TURNED}
EXPERTS = ("n_routed_experts", "num_local_experts")
MLA = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "moe_intermediate_size": 6, "num_attention_heads": 4,
    "num_hidden_layers": 4, "n_routed_experts": 8, "q_lora_rank": 10, "kv_lora_rank": 12, "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 2, "v_head_dim": 6,
}  # fmt: skip
ONE_GROUP = {"n_group": 1, "topk_group": 1}
INDEXED = {**MLA, "index_n_heads": 3, "index_head_dim": 4}
ONE_SPARSE = {"mlp_layer_types": [["dense", "dense", "sparse", "dense"]]}

HYPER = ("model.hc_head.", *(f"model.layers.{n}.{part}_hc." for n in range(61) for part in ("attn", "ffn")))
GATES = tuple(f"model.layers.{n}.{norm}_layernorm.mlp." for n in range(48) for norm in ("input", "post_attention"))
MOE = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "moe_intermediate_size": 6, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 4, "v_head_dim": 6, "num_hidden_layers": 4, "n_routed_experts": 8,
    "num_experts": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip


def deepseek_v3_like(model_type: str, **more: SearchStrategy[Any]) -> SearchStrategy[Config]:
    """Experts beside some shared, behind latent attention."""
    sizes = {"moe_intermediate_size": INNER, "n_shared_experts": SHARED, **more}
    return with_experts(latent(model_type, **sizes), *EXPERTS)


FIRST = {"first_k_dense_replace": sometimes(st.integers(0, 5))}
OFTEN = {**FIRST, "moe_layer_freq": sometimes(st.integers(1, 3))}


def deepseek_v4() -> SearchStrategy[Config]:
    """By names of now, or by older ones."""
    base = llama_like(
        "deepseek_v4",
        kv=1,
        head_dim=st.sampled_from([16, 32]),
        moe_intermediate_size=INNER,
        q_lora_rank=WAIST,
        o_groups=sometimes(st.sampled_from([1, 2, 3])),
        o_lora_rank=sometimes(SIZE),
        index_n_heads=sometimes(HEADS),
        index_head_dim=st.sampled_from([16, 32]),
        hc_mult=sometimes(st.integers(1, 5)),
        compress_rates=nullable(st.just({kind: 3 + len(kind) for kind in FAR})),
        compress_rate_csa=nullable(SIZE),
        compress_rate_hca=nullable(SIZE),
        num_hash_layers=nullable(st.integers(0, 3)),
        **maybe_flags("mlp_bias"),
    )
    return listing(
        with_experts(base, *EXPERTS),
        layer_types=("sliding_attention", *FAR),
        compress_ratios=(0, 4, 128),
        mlp_layer_types=("hash_moe", "moe"),
    )


FAR = ("compressed_sparse_attention", "heavily_compressed_attention")


@st.composite
def longcat_flash(draw: DrawFn) -> Config:
    """Some experts that do nothing; layers by their own key or by the cache's."""
    values = draw(
        latent(
            "longcat_flash",
            intermediate_size=NO_KEY,
            ffn_hidden_size=sometimes(INNER),
            moe_intermediate_size=INNER,
            qk_head_dim=nullable(SIZE),
            zero_expert_num=sometimes(st.integers(0, 5)),
            n_routed_experts=st.integers(1, 9),
            **maybe_flags("router_bias"),
        )
    )
    values |= {
        draw(st.sampled_from(["moe_topk", "num_experts_per_tok"])): draw(st.integers(1, values["n_routed_experts"]))
    }
    return {**values, "num_layers": values.pop("num_hidden_layers")} if draw(FLAG) else values


NEAR = ("hybrid", "hybrid_sliding")
INKLING = {
    **MOE, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 6, "sliding_window_size": 7, "d_rel": 3,
    "rel_extent": 5,
}  # fmt: skip
ALL_FAR = {key: {"layer_types": ["hybrid"] * 4} for key in ("num_key_value_heads", "head_dim", "rel_extent")}
QUERIES = (
    "model.final_input.",
    *(f"model.layers.{n}.{part}_input." for n in range(48) for part in ("attention", "mlp")),
)
BLOCKS = {"layer_types": ["full_attention", *["minimax_m3_sparse"] * 3]}
ONE_DENSE = {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}
TURNING = {"rope_type": "default", "rope_theta": 10000.0}


@st.composite
def inkling(draw: DrawFn, model_type: str, lists: dict[str, Any], **more: SearchStrategy[Any]) -> Config:
    """Heads of two kinds, whose sizes have keys of their own."""
    heads = draw(HEADS)
    sizes = {
        "moe_intermediate_size": INNER,
        "swa_num_attention_heads": st.just(heads),
        "swa_num_key_value_heads": st.sampled_from(divisors(heads)),
        "swa_head_dim": sometimes(EVEN),
        "sliding_window_size": sometimes(SIZE),
        "d_rel": sometimes(SIZE),
        "rel_extent": sometimes(SIZE),
        draw(st.sampled_from(["conv_kernel_size", "sconv_kernel_size"])): sometimes(st.integers(1, 5)),
    }
    values = draw(listing(with_experts(llama_like(model_type, kv=8, **sizes, **more), *EXPERTS), **lists))
    if model_type == "inkling2_text":  # by that name too, and then both must say the same
        values.pop("intermediate_size", None)
    return values


SWA = {
    "swa_q_lora_rank": 5, "swa_kv_lora_rank": 7, "swa_head_dim": 6, "swa_qk_nope_head_dim": 2,
    "swa_v_head_dim": 3,
}  # fmt: skip
ALL_NEAR = {"layer_types": ["sliding_attention"] * 4}


@st.composite
def dots3(draw: DrawFn) -> Config:
    """Sizes of layers with a window, by keys of their own or layer by layer."""
    base = latent("dots3_note_text", moe_intermediate_size=INNER, **FIRST, **INDEXING)
    values = draw(
        listing(
            with_experts(base, *EXPERTS),
            layer_types=("indexed_attention", "sliding_attention", "full_attention"),
            mlp_layer_types=FEEDS,
        )
    )
    of = "n_routed_experts" if "n_routed_experts" in values else "num_local_experts"
    heads, turned, rest = draw(HEADS), draw(TURNED), draw(SIZE)
    layers, same = values["num_hidden_layers"], values.get("qk_rope_head_dim", 64)
    sizes = {
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "q_lora_rank": draw(WAIST),
        "kv_lora_rank": draw(WAIST),
        "head_dim": turned + rest,
        "qk_nope_head_dim": rest,
        "v_head_dim": draw(SIZE),
    }
    each = {"qk_rope_head_dim": turned}
    kinds = values.get("layer_types", ["indexed_attention"] * layers)
    near = {str(layer): sizes | each for layer, kind in enumerate(kinds) if kind == "sliding_attention"}
    named = {f"swa_{key}": size for key, size in (sizes | (each if draw(FLAG) else {})).items()}
    marks = st.lists(st.integers(0, 1), min_size=layers, max_size=layers)
    stated = {"layer_types": kinds, "per_layer_config": near}
    return config(
        **{
            **values,
            of: values[of] + 1,  # its router wants two
            "index_head_dim": same + 2,
            **(stated if draw(FLAG) else named),
            "use_dsa": draw(nullable(FLAG)),
            "use_sliding_window": draw(sometimes(FLAG)),
            "moe_layer_freq": draw(sometimes(st.one_of(st.integers(1, 3), marks))),
            "n_shared_experts": draw(sometimes(st.integers(1, 3))),
            draw(st.sampled_from(["shared_experts", "moe_shared_expert"])) + "_intermediate_size": draw(INNER),
        }
    )


SEEN = 5120  # what the vision and the audio config give by default; a text of another width makes no model


@st.composite
def dots3_seen(draw: DrawFn) -> Config:
    """The language model's config inside of another, whose vision and audio are of its width."""
    inside = {key: value for key, value in draw(dots3()).items() if key != "model_type"}
    width = {"adapter_out_dim": inside["hidden_size"]}
    return dotted({**config("dots3_note"), "text_config": inside, "vision_config": width, "audio_config": width})


DOTS3 = Family(
    dots3(),
    {**INDEXED, "num_attention_heads": 128, **SWA},  # heads of keys have no part in it, and must be as many
    needs=dict.fromkeys((*SWA, "swa_qk_rope_head_dim"), ALL_NEAR),
    others={
        **ONE_SPARSE,
        "layer_types": [["sliding_attention"] * 4],
        "use_dsa": [False],
        "moe_layer_freq": [[0, 0, 1, 1], 2],
        "per_layer_config": [{"per_layer_config": {}}],
        "swa_head_dim": [7],
        "swa_qk_nope_head_dim": [4],
        "swa_qk_rope_head_dim": [{"swa_qk_rope_head_dim": 3, "swa_head_dim": 5}],
    },
    experts=True,
    aliases={"moe_shared_expert_intermediate_size": "shared_experts_intermediate_size"},
    any_width=True,
    counted=False,
)


@st.composite
def minimax_m3(draw: DrawFn) -> Config:
    """By names of now, or by older ones in a dictionary of their own."""
    sizes = {key: sometimes(INNER) for key in ("dense_intermediate_size", "shared_intermediate_size")}
    base = llama_like("minimax_m3_vl_text", kv=4, rotary_dim=st.just(2), **sizes, **INDEXING)
    values = draw(
        listing(
            with_experts(base, "num_local_experts", "num_experts"),
            layer_types=("full_attention", "minimax_m3_sparse"),
            mlp_layer_types=FEEDS,
        )
    )
    marks = st.lists(st.integers(0, 1), min_size=values["num_hidden_layers"], max_size=values["num_hidden_layers"])
    options = {"sparse_num_index_heads": HEADS, "sparse_index_dim": TURNED, "sparse_attention_freq": marks}
    older = st.fixed_dictionaries({}, optional=options)
    named = {"moe_layer_freq": sometimes(marks), "sparse_attention_config": nullable(older)}
    return config(**{**values, **{key: draw(value) for key, value in named.items()}})


FAMILIES: dict[str, Family] = {
    "deepseek_v4": Family(
        deepseek_v4(),
        {
            "vocab_size": 40, "hidden_size": 16, "moe_intermediate_size": 6, "num_attention_heads": 4, "head_dim": 16,
            "num_hidden_layers": 4, "n_routed_experts": 8, "num_experts_per_tok": 2, "q_lora_rank": 10, "o_groups": 2,
            "o_lora_rank": 3, "index_n_heads": 3, "index_head_dim": 16, "hc_mult": 2,
        },
        others={
            "layer_types": [["sliding_attention"] * 4],
            "compress_ratios": [[0, 4, 128, 0]],
            "compress_rates": [{"compress_rates": dict.fromkeys(FAR, 5)}],
            "mlp_layer_types": [["moe"] * 4],
        },
        experts=True,
        beside=HYPER,
        attends=False,
        small_runs={"compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 5}},
    ),
    "deepseek_v32": Family(
        listing(
            with_experts(
                latent("deepseek_v32", moe_intermediate_size=INNER, n_shared_experts=SHARED, **FIRST, **INDEXING),
                "n_routed_experts",
                "num_experts",
            ),
            mlp_layer_types=FEEDS,
        ),
        INDEXED,
        others=ONE_SPARSE,
        experts=True,
        aliases={"num_experts": "n_routed_experts"},
        any_width=True,
        counted=False,
        runs=ONE_GROUP,
        small_runs={"num_key_value_heads": 4},
    ),
    "youtu": Family(latent("youtu", q_lora_rank=nullable(WAIST)), MLA, any_width=True),
    "minicpm3": Family(
        latent("minicpm3", whole=True, q_lora_rank=nullable(WAIST), v_head_dim=nullable(SIZE), **maybe_flags("mlp_bias")),
        MLA,
    ),
    "glm4_moe_lite": Family(
        listing(deepseek_v3_like("glm4_moe_lite", q_lora_rank=nullable(WAIST)), mlp_layer_types=FEEDS),
        MLA,
        others=ONE_SPARSE,
        experts=True,
        any_width=True,
        counted=False,
    ),
    "glm_moe_dsa": Family(
        listing(
            deepseek_v3_like(
                "glm_moe_dsa",
                index_topk_freq=sometimes(st.integers(0, 3)),
                index_skip_topk_offset=sometimes(st.integers(0, 3)),
                index_topk_pattern=nullable(
                    st.one_of(
                        st.text("FS", min_size=4, max_size=5),
                        st.lists(st.sampled_from(["full", "shared"]), min_size=4, max_size=5),
                    )
                ),
                **FIRST,
                **INDEXING,
            ),
            mlp_layer_types=FEEDS,
            indexer_types=("full", "shared"),
        ),
        INDEXED,
        needs={"index_skip_topk_offset": {"index_topk_freq": 3}},
        others={
            **ONE_SPARSE,
            "indexer_types": [["full", "shared", "full", "shared"]],
            "index_topk_pattern": ["FSFS", ["full", "shared", "full", "shared"]],
        },
        experts=True,
        aliases={"num_experts": "n_routed_experts"},
        any_width=True,
        counted=False,
        runs=ONE_GROUP,
        small_runs={"num_key_value_heads": 4},
    ),
    "longcat_flash": Family(
        longcat_flash(),
        {
            **{key: size for key, size in MLA.items() if key != "num_hidden_layers"},
            "num_layers": 2,
            "ffn_hidden_size": 12,
            "expert_ffn_hidden_size": 6,
            "zero_expert_num": 3,
            "moe_topk": 2,
        },
        experts=True,
        any_width=True,
        counted=False,
        runs={"head_dim": 2},  # elements that are turned
    ),
    "cohere2_moe": Family(
        listing(
            with_experts(
                llama_like(
                    "cohere2_moe",
                    prefix_dense_intermediate_size=nullable(INNER),
                    first_k_dense_replace=sometimes(st.just(1)),
                    num_shared_experts=sometimes(st.integers(0, 3)),
                    rms_norm_eps=nullable(st.just(1e-6)),
                    sliding_window_pattern=sometimes(st.integers(1, 3)),
                    prefix_dense_sliding_window_pattern=sometimes(st.integers(1, 3)),
                    **maybe_flags("attention_bias"),
                ),
                "num_experts",
                "num_experts",
            ),
            mlp_layer_types=FEEDS,
        ),
        MOE,
        needs={"prefix_dense_intermediate_size": {"first_k_dense_replace": 1}},
        others=ONE_SPARSE,
        experts=True,
        counted=False,
    ),
    "mimo_v2_flash": Family(
        listing(
            with_experts(
                llama_like("mimo_v2_flash", kv=4, moe_intermediate_size=INNER, v_head_dim=SIZE, **maybe_flags("attention_bias")),
                *EXPERTS,
            ),
            mlp_layer_types=FEEDS,
            layer_types=("full_attention", "sliding_attention"),
        ),
        MOE,
        others={**ONE_SPARSE, "layer_types": [["full_attention"] * 4]},
        experts=True,
        counted=False,
    ),
    "hy_v3": Family(
        listing(
            with_experts(
                llama_like(
                    "hy_v3",
                    kv=8,
                    moe_intermediate_size=INNER,
                    num_shared_experts=SHARED,
                    **maybe_flags("attention_bias", "mlp_bias"),
                ),
                "num_experts",
                "num_local_experts",
            ),
            mlp_layer_types=FEEDS,
        ),
        MOE,
        others=ONE_SPARSE,
        experts=True,
        counted=False,
    ),
    "hy_v4": Family(
        listing(
            deepseek_v3_like("hy_v4", hc_mult=sometimes(st.integers(1, 5)), **INDEXING),
            mlp_layer_types=FEEDS,
            indexer_types=("full", "shared"),
        ),
        INDEXED,
        others={**ONE_SPARSE, "indexer_types": [["full", "shared", "full", "shared"]]},
        experts=True,
        beside=HYPER,
        any_width=True,
        counted=False,
        runs=ONE_GROUP,
    ),
    "axk1": Family(
        listing(deepseek_v3_like("axk1", **OFTEN), mlp_layer_types=FEEDS),
        MLA,
        others=ONE_SPARSE,
        experts=True,
        any_width=True,
        counted=False,
        runs=ONE_GROUP,
    ),
    "axk2": Family(
        listing(
            deepseek_v3_like("axk2", gated_norm_rank=sometimes(WAIST), **OFTEN, **INDEXING), mlp_layer_types=FEEDS
        ),
        INDEXED,
        others=ONE_SPARSE,
        experts=True,
        beside=GATES,
        any_width=True,
        counted=False,
        small_runs={"num_key_value_heads": 4},
    ),
    "jetmoe": Family(
        with_experts(
            llama_like("jetmoe", kv=16, kv_channels=sometimes(EVEN), head_dim=NO_KEY), "num_local_experts", "num_local_experts"
        ),
        {**MOE, "kv_channels": 4},
    ),
    "beam": Family(
        listing(
            with_experts(
                llama_like("beam", kv=8, moe_intermediate_size=INNER, **maybe_flags("attention_bias")),
                "num_experts",
                "num_experts",
            ),
            mlp_layer_types=FEEDS,
            layer_types=("full_attention", "sliding_attention"),
        ),
        MOE,
        others=ONE_SPARSE,
        experts=True,
        counted=False,
        runs=ONE_GROUP,
    ),
    "minimax_m3_vl_text": Family(
        minimax_m3(),
        {**MOE, "dense_intermediate_size": 10, "shared_intermediate_size": 8, "index_n_heads": 3, "index_head_dim": 4},
        needs={
            "dense_intermediate_size": ONE_DENSE,
            "index_n_heads": BLOCKS,
            "index_head_dim": BLOCKS,
        },
        others={
            **ONE_SPARSE,
            "layer_types": [["minimax_m3_sparse"] * 4],
            "moe_layer_freq": [[0, 1, 1, 1]],
            "sparse_attention_config": [{"sparse_attention_config": {"sparse_attention_freq": [0, 0, 1, 1]}}],
        },
        experts=True,
        counted=False,
        runs={"layer_types": ["full_attention", "minimax_m3_sparse"] * 2, "index_n_heads": 2},
    ),
    "cohere_compass_text": Family(
        llama_like(
            "cohere_compass_text",
            null_kv=True,
            rope_parameters=st.sampled_from([{"full_attention": None}, {"full_attention": TURNING}]),
            **maybe_flags("attention_bias"),
        ),
        {**MOE, "hidden_size": 16},
        lacking={"rope_parameters": {"full_attention": TURNING}},
        any_width=True,
        counted=False,
    ),
    "inkling_text": Family(
        inkling(
            "inkling_text",
            {"layer_types": NEAR, "mlp_layer_types": FEEDS},
            dense_intermediate_size=nullable(INNER),
            dense_mlp_idx=sometimes(st.integers(0, 3)),
            local_layer_ids=nullable(st.lists(st.integers(0, 4), max_size=3)),
            n_shared_experts=SHARED,
        ),
        INKLING,
        needs={
            "intermediate_size": ONE_DENSE,
            "dense_intermediate_size": ONE_DENSE,
            **ALL_FAR,
        },
        others={**ONE_SPARSE, "layer_types": [["hybrid"] * 4], "local_layer_ids": [[0]]},
        experts=True,
        counted=False,
    ),
    "inkling2_text": Family(
        inkling("inkling2_text", {"layer_types": NEAR}),
        INKLING,
        needs=ALL_FAR,
        others={"layer_types": [["hybrid"] * 4]},
        experts=True,
        beside=QUERIES,
        counted=False,
    ),
    "dots3_note_text": DOTS3,
    "dots3_note": Family(
        dots3_seen(),
        small({**DOTS3.small, "hidden_size": SEEN, "shared_experts_intermediate_size": 5}),
        experts=True,
        aliases={f"text_config.{alias}": f"text_config.{key}" for alias, key in DOTS3.aliases.items()},
        **within("text_config", DOTS3),
    ),
}  # fmt: skip
