"""Small random configs of types like Llama, Granite, Gemma, OLMo and Qwen, most of them with
experts or windows.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    ABSENT,
    COMMON,
    EVEN,
    FLAG,
    HEAD,
    HEADS,
    INNER,
    LAYERS,
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

STATED = {**COMMON, "head_dim": 4}
MIXED = {**COMMON, "moe_intermediate_size": 6}
BOS = {"bos_token_id": 1}  # which must be stated
SHARED = sometimes(st.integers(0, 3))
ROUTED = ("n_routed_experts", "num_local_experts")
LOCAL = ("num_experts", "num_local_experts")


@st.composite
def internlm3(draw: DrawFn) -> Config:
    """Two flags that must be alike, each under one of two names."""
    flag = draw(sometimes(FLAG))
    names = (("attention_bias", "qkv_bias"), ("mlp_bias", "bias"))
    flags = {draw(st.sampled_from(pair)): flag for pair in names}
    return draw(llama_like("internlm3", kv=2, whole=True, **{name: st.just(value) for name, value in flags.items()}))


@st.composite
def listing_mlps(draw: DrawFn, base: SearchStrategy[Config]) -> Config:
    """A config that lists for each layer, sometimes, whether it has experts."""
    values = draw(base)
    layers = values["num_hidden_layers"]
    kinds = st.lists(st.sampled_from(["dense", "sparse"]), min_size=layers, max_size=layers)
    return with_present(values, mlp_layer_types=draw(nullable(kinds)))


def with_present(values: Config, **more: Any) -> Config:
    """Values and more of them, without those that were drawn to be absent."""
    return {**values, **{key: value for key, value in more.items() if value is not ABSENT}}


@st.composite
def diffllama(draw: DrawFn) -> Config:
    """Twice as many heads, so that those of keys and values are even."""
    values = draw(llama_like("diffllama", **maybe_flags("attention_bias")))
    heads = 2 * values["num_attention_heads"]
    keys = values.get("num_key_value_heads") and 2 * values["num_key_value_heads"]
    of_keys = {"num_key_value_heads": keys} if "num_key_value_heads" in values else {}
    return {**values, "hidden_size": 2 * values["hidden_size"], "num_attention_heads": heads, **of_keys}


@st.composite
def without_groups(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """Types whose keys and values have as many heads as the queries."""
    heads = draw(HEADS)
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * draw(HEAD),
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        tie_word_embeddings=draw(sometimes(FLAG)),
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def laguna(draw: DrawFn) -> Config:
    """As many heads as each layer asks for."""
    base = llama_like(
        "laguna",
        kv=8,
        head_dim=sometimes(EVEN),
        moe_intermediate_size=INNER,
        shared_expert_intermediate_size=sometimes(INNER),
        gating=sometimes(st.sampled_from([True, False, "per-head", "per-element"])),
        **maybe_flags("attention_bias"),
    )
    values = draw(with_experts(listing_mlps(base), "num_experts", "num_experts"))
    layers, keys = values["num_hidden_layers"], values.get("num_key_value_heads", 8)
    each = st.integers(1, 3).map(lambda groups: groups * keys)
    listed = draw(nullable(st.lists(each, min_size=layers, max_size=layers)))
    return with_present(values, num_attention_heads_per_layer=listed)


@st.composite
def dbrx(draw: DrawFn) -> Config:
    """Heads of keys and values, and experts, are each in a part of the config."""
    heads, count = draw(HEADS), draw(st.integers(1, 9))
    names = {"n_heads": "num_attention_heads", "n_layers": "num_hidden_layers"}
    sizes = {"n_heads": heads, "n_layers": draw(LAYERS)}
    keys = draw(sometimes(st.sampled_from(divisors(heads))))
    experts = {"moe_num_experts": count, "moe_top_k": draw(st.integers(1, count)), "ffn_hidden_size": draw(INNER)}
    values = config(
        "dbrx",
        vocab_size=draw(sometimes(VOCABULARY)),
        d_model=heads * draw(EVEN),
        **{draw(st.sampled_from([key, alias])): sizes[key] for key, alias in names.items()},
        attn_config=with_present({"rope_theta": 10000.0, "clip_qkv": 8.0}, kv_n_heads=keys),
        ffn_config=draw(nullable(st.just(experts))),
    )
    return dotted(values)


@st.composite
def zaya(draw: DrawFn) -> Config:
    """Layers that see a window only where there is one."""
    values = draw(
        llama_like(
            "zaya",
            kv=2,
            moe_intermediate_size=sometimes(INNER),
            num_experts=sometimes(st.integers(1, 9)),
            router_hidden_size=sometimes(INNER),
            cca_time0=sometimes(st.integers(1, 4)),
            cca_time1=sometimes(st.integers(1, 4)),
            **maybe_flags("attention_bias", "lm_head_bias"),
        )
    )
    layers = values["num_hidden_layers"]
    kinds = st.lists(st.sampled_from(["hybrid", "hybrid_sliding"]), min_size=layers, max_size=layers)
    windows = st.fixed_dictionaries({"layer_types": kinds, "sliding_window": st.integers(1, 9)})
    values.pop("intermediate_size", None)  # which the type has not
    return {**values, **draw(st.one_of(st.just({}), windows))}


def reachable(values: Config) -> Config:
    """A token goes through no more of Doge's experts than its keys find: a square of them."""
    found = math.isqrt(values["num_experts"]) ** 2
    return {**values, "num_experts_per_tok": min(values["num_experts_per_tok"], found)}


FAMILIES: dict[str, Family] = {
    "cwm": Family(llama_like("cwm", kv=8, whole=True, **maybe_flags("mlp_bias")), STATED, runs=BOS),
    "hyperclovax": Family(
        llama_like("hyperclovax", whole=True, **maybe_flags("attention_bias", "mlp_bias", "use_post_norm"))
    ),
    "internlm3": Family(
        internlm3(),
        STATED,
        others={name: [{"attention_bias": True, "mlp_bias": True}] for name in ("attention_bias", "mlp_bias")},
    ),
    "iquestcoder": Family(
        llama_like("iquestcoder", kv=8, whole=True, **maybe_flags("attention_bias", "mlp_bias")), STATED
    ),
    "jais2": Family(llama_like("jais2", whole=True, **maybe_flags("attention_bias", "mlp_bias"))),
    "vaultgemma": Family(llama_like("vaultgemma", kv=4, whole=True, **maybe_flags("attention_bias")), STATED),
    "granite_swa": Family(llama_like("granite_swa", kv=4, null_kv=True, **maybe_flags("attention_bias", "mlp_bias"))),
    "granitemoe_swa": Family(
        with_experts(
            llama_like(
                "granitemoe_swa",
                shared_intermediate_size=sometimes(st.integers(0, 20)),
                **maybe_flags("attention_bias"),
            ),
            "num_local_experts",
            "num_local_experts",
        ),
        experts=True,
    ),
    "flex_olmo": Family(with_experts(llama_like("flex_olmo", **maybe_flags("attention_bias")), *LOCAL), experts=True),
    "exaone_moe": Family(
        with_experts(
            listing_mlps(
                llama_like(
                    "exaone_moe",
                    kv=32,
                    moe_intermediate_size=INNER,
                    first_k_dense_replace=sometimes(st.integers(0, 4)),
                    num_shared_experts=SHARED,
                )
            ),
            "num_experts",
            "num_experts",
        ),
        MIXED,
        others={"mlp_layer_types": [["sparse", "dense"]]},
        experts=True,
        counted=False,
    ),
    "solar_open": Family(
        with_experts(
            llama_like(
                "solar_open",
                kv=8,
                moe_intermediate_size=sometimes(INNER),
                n_shared_experts=SHARED,
                **maybe_flags("attention_bias"),
            ),
            *ROUTED,
        ),
        {**MIXED, "head_dim": 4},
        experts=True,
        counted=False,
    ),
    "dots1": Family(
        with_experts(
            llama_like(
                "dots1",
                kv=32,
                null_kv=True,
                moe_intermediate_size=sometimes(INNER),
                first_k_dense_replace=sometimes(st.integers(0, 4)),
                n_shared_experts=st.integers(0, 3),
                **maybe_flags("attention_bias"),
            ),
            *ROUTED,
        ),
        {**MIXED, "n_routed_experts": 12, "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1},
        lacking={"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1},
        experts=True,
        counted=False,
    ),
    "afmoe": Family(
        with_experts(
            llama_like(
                "afmoe",
                moe_intermediate_size=sometimes(INNER),
                num_dense_layers=sometimes(st.integers(0, 4)),
                num_shared_experts=SHARED,
                **maybe_flags("attention_bias"),
            ),
            "num_experts",
            "num_experts",
        ),
        {**MIXED, "head_dim": 4},
        experts=True,
    ),
    "mellum": Family(
        with_experts(
            listing_mlps(
                llama_like("mellum", kv=4, moe_intermediate_size=sometimes(INNER), **maybe_flags("attention_bias"))
            ),
            *LOCAL,
        ),
        {**MIXED, "head_dim": 4},
        needs={"intermediate_size": {"mlp_layer_types": ["dense", "sparse"]}},
        others={"mlp_layer_types": [["sparse", "dense"]]},
        aliases={"num_local_experts": "num_experts"},
        experts=True,
    ),
    "aria_text": Family(
        with_experts(
            llama_like(
                "aria_text", whole=True, moe_num_shared_experts=SHARED, **maybe_flags("attention_bias", "mlp_bias")
            ),
            "moe_num_experts",
            "moe_num_experts",
            ("moe_topk",),
        ),
        experts=True,
    ),
    "diffllama": Family(diffllama()),
    "doge": Family(
        with_experts(
            llama_like("doge", **maybe_flags("attention_bias", "mlp_bias", "is_moe")), "num_experts", "num_experts"
        ).map(reachable),
        needs={"num_experts": {"is_moe": True, "num_experts": 9, "num_experts_per_tok": 1}},
        beside=tuple(
            f"model.layers.{layer}.{name}_residual" for layer in range(32) for name in ("input", "post_attention")
        ),
    ),
    "persimmon": Family(
        without_groups("persimmon", **maybe_flags("qk_layernorm")), runs={"partial_rotary_factor": 1.0}
    ),
    "modernbert-decoder": Family(
        without_groups(
            "modernbert-decoder",
            pad_token_id=st.just(0),
            **maybe_flags("norm_bias", "attention_bias", "mlp_bias", "classifier_bias", "decoder_bias"),
        ),
        {**COMMON, "pad_token_id": 0},
        beside=("lm_head.dense.",),
        runs=BOS,
    ),
    "ministral": Family(llama_like("ministral", kv=8, head_dim=EVEN), STATED, lacking={"head_dim": 16}),
    "laguna": Family(
        laguna(),
        {**MIXED, "head_dim": 4, "shared_expert_intermediate_size": 5},
        needs={"intermediate_size": {"mlp_layer_types": ["dense", "sparse"]}},
        others={
            "mlp_layer_types": [["sparse", "dense"]],
            "num_attention_heads_per_layer": [[4, 6]],
            "gating": [False],
        },
        experts=True,
    ),
    "flint": Family(
        with_experts(
            llama_like(
                "flint",
                kv=4,
                moe_intermediate_size=sometimes(INNER),
                shared_expert_intermediate_size=sometimes(INNER),
                decoder_sparse_step=sometimes(st.integers(1, 3)),
                mlp_only_layers=nullable(st.lists(st.integers(0, 3), max_size=3)),
                **maybe_flags("attention_bias"),
            ),
            "num_experts",
            "num_experts",
        ),
        {**MIXED, "head_dim": 4, "shared_expert_intermediate_size": 5, "mlp_only_layers": [0]},
        needs={"decoder_sparse_step": {"mlp_only_layers": []}},
        others={"mlp_only_layers": [[]]},
        experts=True,
    ),
    "hrm_text": Family(
        without_groups(
            "hrm_text",
            head_dim=sometimes(EVEN),
            num_layers_per_stack=nullable(st.integers(1, 3)),
            **maybe_flags("attention_bias", "mlp_bias"),
        ),
        STATED,
        counted=False,
        experts=True,
        beside=("model.z_L_init",),
    ),
    "zaya": Family(
        zaya(),
        {**MIXED, "head_dim": 4, "router_hidden_size": 5},
        experts=True,
        counted=False,
        beside=("model.input_hidden_states_", *(f"model.layers.{n}.post_" for n in range(40))),
    ),
    "dbrx": Family(
        dbrx(),
        {"vocab_size": 40, "d_model": 16, "n_heads": 4, "n_layers": 2, "ffn_config.ffn_hidden_size": 12},
        lacking={"attn_config.rope_theta": 10000.0},
        experts=True,
        small_runs={"attn_config.clip_qkv": 8.0},
    ),
    "kolibri1": Family(
        with_experts(
            llama_like(
                "kolibri1",
                kv=4,
                moe_intermediate_size=sometimes(INNER),
                shared_expert_intermediate_size=sometimes(INNER),
            ),
            *LOCAL,
        ),
        {**MIXED, "head_dim": 4, "shared_expert_intermediate_size": 5},
        aliases={"num_local_experts": "num_experts"},
        experts=True,
    ),
}
