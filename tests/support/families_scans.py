"""Small random configs of the types that read token after token, in each layer or in some."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    ABSENT,
    EVEN,
    FLAG,
    HEAD,
    HEAD_DIM,
    HEADS,
    INNER,
    LAYERS,
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

FEW = st.integers(1, 5)
STATE = sometimes(st.integers(1, 9))
KERNEL = sometimes(FEW)
EXPAND = sometimes(st.integers(1, 3))


@st.composite
def mamba(draw: DrawFn, model_type: str) -> Config:
    flags = maybe_flags("use_bias", "use_conv_bias", "tie_word_embeddings")
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=draw(st.integers(1, 40)),
        num_hidden_layers=draw(LAYERS),
        state_size=draw(STATE),
        expand=draw(EXPAND),
        intermediate_size=draw(sometimes(INNER)),
        conv_kernel=draw(KERNEL),
        time_step_rank=draw(sometimes(st.one_of(st.integers(1, 9), st.just("auto")))),
        **{key: draw(value) for key, value in flags.items()},
    )


@st.composite
def mamba2(draw: DrawFn) -> Config:
    heads, size, expand = draw(HEADS), draw(HEAD), draw(st.integers(1, 3))
    flags = maybe_flags("use_bias", "use_conv_bias", "tie_word_embeddings")
    return config(
        "mamba2",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * size,
        num_hidden_layers=draw(LAYERS),
        num_heads=heads * expand,
        head_dim=size,
        n_groups=draw(sometimes(FEW)),
        state_size=draw(STATE),
        expand=expand,
        conv_kernel=draw(KERNEL),
        **{key: draw(value) for key, value in flags.items()},
    )


@st.composite
def beside_mamba2(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """Widths that the heads of attention and those of Mamba 2 divide."""
    heads, mamba_heads, expand = draw(HEADS), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    width = heads * mamba_heads * draw(HEAD)
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=width,
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=draw(st.sampled_from([None, *divisors(heads)])),
        head_dim=draw(HEAD_DIM),
        mamba_n_heads=mamba_heads,
        mamba_d_head=draw(sometimes(st.just("auto"))),
        mamba_n_groups=draw(sometimes(FEW)),
        mamba_d_state=draw(STATE),
        mamba_d_conv=draw(KERNEL),
        mamba_expand=expand,
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def falcon_h1(draw: DrawFn) -> Config:
    flags = ("mamba_conv_bias", "mamba_proj_bias", "mamba_rms_norm", "projectors_bias", "attention_bias", "mlp_bias")
    values = draw(beside_mamba2("falcon_h1", **maybe_flags(*flags, "tie_word_embeddings")))
    widths = st.sampled_from([None, *(values["mamba_n_heads"] * size for size in (1, 2, 6))])
    return {**values, "mamba_d_ssm": draw(widths)}


@st.composite
def jamba(draw: DrawFn) -> Config:
    values = draw(llama_like("jamba", kv=8))
    periods, offsets = {}, {}
    for kind in ("attn", "expert"):
        period = draw(st.integers(1, 4))
        periods[f"{kind}_layer_period"] = period
        offsets[f"{kind}_layer_offset"] = draw(st.integers(0, period - 1))
    used = draw(st.integers(1, 9))
    experts = draw(st.one_of(st.integers(used, 9), st.integers(0, 1)))
    more = {
        "mamba_d_state": STATE,
        "mamba_d_conv": KERNEL,
        "mamba_expand": EXPAND,
        "mamba_dt_rank": sometimes(st.one_of(st.integers(1, 9), st.just("auto"))),
        **maybe_flags("mamba_conv_bias", "mamba_proj_bias"),
    }
    drawn = {key: draw(value) for key, value in more.items()}
    return config(
        **{**values, **periods, **offsets, **drawn},
        **{draw(st.sampled_from(["num_experts", "num_local_experts"])): experts, "num_experts_per_tok": used},
    )


@st.composite
def nemotron_h(draw: DrawFn) -> Config:
    kinds = {"M": ["linear_attention", "mamba"], "*": ["full_attention", "attention"], "E": ["moe"], "-": ["mlp"]}
    letters = draw(st.lists(st.sampled_from(sorted(kinds)), max_size=5))
    listed = {
        draw(st.sampled_from(["layers_block_type", "layer_types"])): [
            draw(st.sampled_from(kinds[one])) for one in letters
        ]
    }
    heads, used = draw(HEADS), draw(st.integers(1, 4))
    more = {
        "vocab_size": sometimes(VOCABULARY),
        "hidden_size": st.integers(1, 40),
        "intermediate_size": INNER,
        "num_key_value_heads": st.sampled_from(divisors(heads)),
        "head_dim": EVEN,
        "mamba_num_heads": FEW,
        "mamba_head_dim": HEAD,
        draw(st.sampled_from(["n_groups", "mamba_n_groups"])): sometimes(FEW),
        "ssm_state_size": STATE,
        draw(st.sampled_from(["conv_kernel", "mamba_d_conv"])): KERNEL,
        draw(st.sampled_from(["n_routed_experts", "num_local_experts"])): st.integers(used, 5),
        "moe_intermediate_size": INNER,
        "moe_shared_expert_intermediate_size": INNER,
        "moe_latent_size": nullable(INNER),
        draw(st.sampled_from(["use_conv_bias", "mamba_conv_bias"])): sometimes(FLAG),
        **maybe_flags("use_bias", "mlp_bias", "tie_word_embeddings"),
    }
    layers = draw(st.sampled_from([listed, {"hybrid_override_pattern": "".join(letters)}, {}]))
    drawn = {key: draw(value) for key, value in more.items()}
    return config("nemotron_h", num_attention_heads=heads, num_experts_per_tok=used, **layers, **drawn)


@st.composite
def granitemoehybrid(draw: DrawFn) -> Config:
    flags = maybe_flags("mamba_conv_bias", "mamba_proj_bias", "attention_bias", "tie_word_embeddings")
    values = draw(beside_mamba2("granitemoehybrid", shared_intermediate_size=sometimes(INNER), **flags))
    layers, used = values["num_hidden_layers"], draw(st.integers(1, 4))
    kinds = st.sampled_from(["linear_attention", "mamba", "full_attention", "attention"])
    listed = st.lists(kinds, min_size=layers, max_size=layers)
    named = draw(st.sampled_from([{}, {"layer_types": draw(listed)}, {"layers_block_type": draw(listed)}]))
    experts = draw(st.one_of(st.just(0), st.integers(used, 5)))
    return {**values, **named, "num_local_experts": experts, "num_experts_per_tok": used}


@st.composite
def shared_blocks(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """Layers of which some hold a block that is shared; with one alone transformers finds none to
    tie it to.
    """
    heads, mamba_heads = draw(HEADS), draw(st.integers(1, 3))
    kinds = st.lists(st.sampled_from(["linear_attention", "mamba", "hybrid"]), min_size=1, max_size=6)
    listed = draw(kinds.filter(lambda kinds: kinds.count("hybrid") != 1 or model_type == "zamba2"))
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * mamba_heads * draw(HEAD),
        num_hidden_layers=len(listed),
        num_attention_heads=heads,
        num_key_value_heads=draw(st.sampled_from(divisors(heads))),
        n_mamba_heads=mamba_heads,
        mamba_d_state=draw(STATE),
        mamba_d_conv=draw(KERNEL),
        mamba_expand=draw(EXPAND),
        tie_word_embeddings=draw(sometimes(FLAG)),
        layers_block_type=listed,
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def zamba(draw: DrawFn) -> Config:
    values = draw(
        shared_blocks(
            "zamba",
            intermediate_size=sometimes(INNER),
            attention_hidden_size=nullable(INNER),
            attention_head_dim=nullable(EVEN),
            mamba_dt_rank=sometimes(st.one_of(st.integers(1, 9), st.just("auto"))),
            **maybe_flags("mamba_conv_bias", "mamba_proj_bias"),
        )
    )
    if draw(FLAG):  # the other name of the list
        return {{"layers_block_type": "layer_types"}.get(key, key): value for key, value in values.items()}
    if draw(FLAG):  # the type's own pattern, with at least two layers that share
        period = draw(st.integers(1, 4))
        del values["layers_block_type"]
        values["num_hidden_layers"] = draw(st.integers(8, 11))
        values |= {"attn_layer_period": period, "attn_layer_offset": draw(st.integers(0, period - 1))}
    return values


def zamba2() -> SearchStrategy[Config]:
    return shared_blocks(
        "zamba2",
        intermediate_size=nullable(INNER),
        mamba_ngroups=KERNEL,
        hybrid_layer_ids=sometimes(st.lists(st.integers(0, 5), max_size=4)),
        num_mem_blocks=sometimes(st.integers(1, 3)),
        adapter_rank=FEW,
        **maybe_flags("use_shared_attention_adapter", "add_bias_linear"),
    )


@st.composite
def lfm2(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """Layers that are listed; the flag of the tie by its former name too."""
    values = draw(llama_like(model_type, kv=8, **more))
    layers = values["num_hidden_layers"]
    kinds = ["conv", "full_attention", "attention", *(["sliding_attention"] if model_type == "lfm3" else [])]
    listed = draw(st.lists(st.sampled_from(kinds), min_size=layers, max_size=layers))
    if model_type == "lfm3" or draw(FLAG):
        return values | draw(
            st.sampled_from([{"layer_types": listed}, {} if model_type != "lfm2_moe" else {"layer_types": listed}])
        )
    former = {"tie_word_embeddings": "tie_embedding", "intermediate_size": "block_ff_dim"}
    if model_type == "lfm2_moe":
        former.pop("intermediate_size")
    values = {former.get(key, key): value for key, value in values.items()}
    if model_type == "lfm2":
        attending = draw(nullable(st.lists(st.integers(-1, 4), max_size=3)))
        return values if attending is ABSENT else {**values, "full_attn_idxs": attending}
    return {**values, "layer_types": listed}


CONV = {"conv_L_cache": KERNEL, **maybe_flags("conv_bias")}


@st.composite
def rwkv(draw: DrawFn) -> Config:
    return config(
        "rwkv",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=draw(st.integers(1, 40)),
        attention_hidden_size=draw(nullable(INNER)),
        intermediate_size=draw(nullable(INNER)),
        num_hidden_layers=draw(LAYERS),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def recurrent_gemma(draw: DrawFn) -> Config:
    values = draw(llama_like("recurrent_gemma", **maybe_flags("attention_bias")))
    heads = values["num_attention_heads"]
    kinds = st.lists(st.sampled_from(["recurrent", "attention"]), min_size=1, max_size=4)
    more = {
        "intermediate_size": st.integers(2, 40),
        "lru_width": nullable(st.integers(heads, 40)),
        "conv1d_width": KERNEL,
        "block_types": sometimes(kinds),
    }
    drawn = {key: draw(value) for key, value in more.items()}
    return config(**{**values, **drawn})


@st.composite
def olmo_hybrid(draw: DrawFn) -> Config:
    """At least one layer of each kind."""
    values = draw(llama_like("olmo_hybrid", **maybe_flags("attention_bias")))
    layers = draw(st.integers(2, 6))
    kinds = st.lists(st.sampled_from(["linear_attention", "full_attention"]), min_size=layers, max_size=layers)
    more = {
        "layer_types": nullable(kinds.filter(lambda listed: len(set(listed)) == 2)),
        "hidden_size": st.integers(3, 6).map(lambda size: 4 * size * values["num_attention_heads"]),
        "linear_num_key_heads": nullable(HEADS),
        "linear_num_value_heads": nullable(HEADS),
        "linear_key_head_dim": nullable(FEW),
        "linear_value_head_dim": nullable(FEW),
        "linear_conv_kernel_dim": KERNEL,
    }
    return config(**{**values, "num_hidden_layers": layers, **{key: draw(value) for key, value in more.items()}})


LATENT: dict[str, SearchStrategy[Any]] = {
    "kv_lora_rank": sometimes(INNER),
    "qk_nope_head_dim": sometimes(st.integers(1, 9)),
    "qk_rope_head_dim": sometimes(EVEN),
    "v_head_dim": sometimes(st.integers(1, 9)),
}


@st.composite
def delta_attention(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """Layers of two kinds and MLPs of two kinds, listed or not; experts by one name of their number
    or the other.
    """
    layers, heads, used = draw(st.integers(1, 6)), draw(HEADS), draw(st.integers(1, 4))
    kinds = st.sampled_from(["linear_attention", "full_attention"])
    mlps = st.sampled_from(["dense", "sparse"])
    values = {
        "vocab_size": sometimes(VOCABULARY),
        "hidden_size": st.integers(1, 40),
        "intermediate_size": INNER,
        "moe_intermediate_size": INNER,
        "layer_types": nullable(st.lists(kinds, min_size=layers, max_size=layers)),
        "mlp_layer_types": nullable(st.lists(mlps, min_size=layers, max_size=layers)),
        "first_k_dense_replace": sometimes(st.integers(0, 7)),
        draw(st.sampled_from(["n_shared_experts", "num_shared_experts"])): st.integers(1, 3),
        draw(st.sampled_from(["num_experts", "num_local_experts"])): st.integers(used, 5),
        draw(st.sampled_from(["num_experts_per_tok", "num_experts_per_token"])): st.just(used),
        **LATENT,
        **maybe_flags("attention_bias", "tie_word_embeddings"),
        **more,
    }
    drawn = {key: draw(value) for key, value in values.items()}
    return config(model_type, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads, **drawn)


@st.composite
def kimi_linear(draw: DrawFn) -> Config:
    sizes = {
        "q_lora_rank": nullable(INNER),
        "linear_num_heads": FEW,
        "linear_head_dim": FEW,
        "linear_conv_kernel_dim": KERNEL,
    }
    values = draw(delta_attention("kimi_linear", **sizes))
    layers = list(range(1, values["num_hidden_layers"] + 1))
    attending = draw(st.lists(st.sampled_from(layers), unique=True))
    others = [number for number in layers if number not in attending]
    of_part = {"head_dim": FEW, "num_heads": FEW, "short_conv_kernel_size": FEW}
    part = {key: draw(sometimes(value)) for key, value in of_part.items()}
    lists = draw(st.sampled_from([{}, {"full_attn_layers": attending, "kda_layers": others}]))
    stated = {key: value for key, value in part.items() if value is not ABSENT} | lists
    return values if draw(FLAG) else {**values, "linear_attn_config": stated}


@st.composite
def xlstm(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    factors = sometimes(st.sampled_from([0.5, 1.0, 2.0, 0.75, 0.3]))
    width = heads * draw(st.sampled_from([4, 8, 12]))
    values = {
        "vocab_size": sometimes(VOCABULARY),
        "embedding_dim": nullable(INNER),
        "num_blocks": nullable(LAYERS),
        "qk_dim_factor": factors,
        "v_dim_factor": factors,
        "ffn_proj_factor": sometimes(st.sampled_from([2.667, 1.3, 4.0])),
        "ffn_round_up_to_multiple_of": KERNEL,
        "weight_mode": sometimes(st.sampled_from(["single", "fused"])),
        **maybe_flags("use_bias", "tie_word_embeddings"),
    }
    drawn = {key: draw(value) for key, value in values.items()}
    return config("xlstm", hidden_size=width, num_heads=heads, num_hidden_layers=draw(LAYERS), **drawn)


WIDTHS = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2}
HEADED = {**WIDTHS, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2}
MAMBA = {**WIDTHS, "state_size": 6, "time_step_rank": 3}
MAMBA2 = {**HEADED, "mamba_n_heads": 4, "mamba_d_state": 6}

PERIODS = {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1}

OTHER_LAYERS = {
    "num_hidden_layers": [{"num_hidden_layers": 2, "layers_block_type": ["hybrid"] * 2}],
    "layers_block_type": [["hybrid"] * 4],
}

TWO = {"layer_types": ["conv", "full_attention"]}
OTHER_TWO = {
    "layer_types": [["conv"] * 2],
    "num_hidden_layers": [{"num_hidden_layers": 1, "layer_types": ["conv"]}],
}

KEYS = {"linear_key_head_dim": 4, "linear_value_head_dim": 4}  # of one width: transformers saves thirds

DELTA = {
    **HEADED, "num_key_value_heads": 4, "kv_lora_rank": 6, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 4,
    "moe_intermediate_size": 6, "num_local_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
}  # fmt: skip
NUMBERED = {
    "layer_types": None,
    "linear_attn_config.full_attn_layers": [1],
    "linear_attn_config.kda_layers": [2],
}
EXPERTS = {
    "num_experts": "num_local_experts",
    "num_experts_per_token": "num_experts_per_tok",
    "num_shared_experts": "n_shared_experts",
}

TYPES = {
    "mamba": Family(mamba("mamba"), MAMBA, others={"time_step_rank": ["auto"]}),
    "falcon_mamba": Family(mamba("falcon_mamba"), MAMBA, others={"time_step_rank": ["auto"]}),
    "mamba2": Family(
        mamba2(),
        {**WIDTHS, "num_heads": 4, "head_dim": 8, "n_groups": 2, "state_size": 6},
        others={
            "hidden_size": [{"hidden_size": 32, "head_dim": 16}],
            "head_dim": [{"head_dim": 4, "num_heads": 8}],
            "expand": [{"expand": 1, "head_dim": 4}],
        },
    ),
    "falcon_h1": Family(falcon_h1(), {**MAMBA2, "mamba_d_ssm": 24}, needs={"mamba_expand": {"mamba_d_ssm": None}}),
    "jamba": Family(
        jamba(),
        {**HEADED, **PERIODS, "num_hidden_layers": 4, "num_experts": 4, "mamba_d_state": 6, "mamba_dt_rank": 3},
        others={
            "mamba_dt_rank": ["auto"],
            **{
                f"{kind}_layer_{what}": [value]
                for kind in ("attn", "expert")
                for what, value in (("period", 3), ("offset", 0))
            },
        },
        experts=True,
    ),
    "nemotron_h": Family(
        nemotron_h(),
        {
            **HEADED,
            "head_dim": 4,
            "mamba_num_heads": 4,
            "mamba_head_dim": 6,
            "n_groups": 2,
            "ssm_state_size": 6,
            "n_routed_experts": 4,
            "moe_intermediate_size": 6,
            "moe_shared_expert_intermediate_size": 5,
        },
        others={
            "layers_block_type": [["mlp", "moe", "attention", "mamba"]],
            "hybrid_override_pattern": ["M-*E"],
        },
        aliases={
            "mamba_n_groups": "n_groups",
            "mamba_d_conv": "conv_kernel",
            "mamba_conv_bias": "use_conv_bias",
            "mamba_chunk_size": "chunk_size",
        },
        experts=True,
    ),
    "granitemoehybrid": Family(
        granitemoehybrid(),
        {
            **MAMBA2,
            "layer_types": ["full_attention", "linear_attention"],
            "num_local_experts": 4,
            "shared_intermediate_size": 5,
        },
        others={
            "layer_types": [["linear_attention"] * 2],
            "num_hidden_layers": [{"num_hidden_layers": 1, "layer_types": ["linear_attention"]}],
        },
        experts=True,
    ),
    "zamba": Family(
        zamba(),
        {
            **HEADED,
            "num_hidden_layers": 4,
            "layers_block_type": ["hybrid", "hybrid", "mamba", "hybrid"],
            "mamba_d_state": 6,
            "mamba_dt_rank": 3,
        },
        needs={
            f"attn_layer_{what}": {"num_hidden_layers": 15, "layers_block_type": None} for what in ("period", "offset")
        },
        others={"mamba_dt_rank": ["auto"], "attn_layer_period": [5], "attn_layer_offset": [0], **OTHER_LAYERS},
        beside=tuple(f"model.layers.{number}.linear." for number in range(76)),  # of Zamba2 too
        any_width=True,
    ),
    "zamba2": Family(
        zamba2(),
        {
            **HEADED,
            "num_hidden_layers": 4,
            "layers_block_type": ["hybrid", "hybrid", "mamba", "hybrid"],
            "mamba_d_state": 6,
            "adapter_rank": 3,
            "n_mamba_heads": 4,
        },
        others={**OTHER_LAYERS, "hybrid_layer_ids": [[0]]},
        any_width=True,
    ),
    "lfm2": Family(
        lfm2(
            "lfm2",
            block_auto_adjust_ff_dim=sometimes(FLAG),
            block_ffn_dim_multiplier=sometimes(st.sampled_from([1.0, 1, 0.7, 1.5])),
            block_multiple_of=sometimes(st.integers(1, 9)),
            **CONV,
        ),
        {**HEADED, "block_multiple_of": 4, "full_attn_idxs": [1]},
        others={
            "block_ffn_dim_multiplier": [2.5],
            "block_multiple_of": [5],
            "layer_types": [["conv"] * 2],
            "full_attn_idxs": [[0, 1], None],
        },
        aliases={"block_ff_dim": "intermediate_size", "tie_embedding": "tie_word_embeddings"},
    ),
    "lfm2_moe": Family(
        with_experts(
            lfm2(
                "lfm2_moe",
                moe_intermediate_size=INNER,
                num_dense_layers=sometimes(st.integers(0, 3)),
                **maybe_flags("use_expert_bias"),
                **CONV,
            ),
            "num_experts",
            "num_experts",
        ),
        {**HEADED, **TWO, "moe_intermediate_size": 6, "num_experts": 4, "num_dense_layers": 1},
        lacking={"layer_types": ["conv", "full_attention"] * 16},
        others=OTHER_TWO,
        aliases={"tie_embedding": "tie_word_embeddings"},
        experts=True,
    ),
    "lfm3": Family(
        lfm2("lfm3", **maybe_flags("use_attention_gate", "use_sandwich_norm", "attention_bias"), **CONV),
        {**HEADED, **TWO, "head_dim": 4},
        others=OTHER_TWO,
        experts=True,
    ),
    "rwkv": Family(
        rwkv(),
        {**WIDTHS, "attention_hidden_size": 6, "intermediate_size": 12},
        small_runs={"attention_hidden_size": 16},
    ),
    "recurrent_gemma": Family(
        recurrent_gemma(),
        {**HEADED, "lru_width": 12, "block_types": ["recurrent", "attention"]},
        others={"block_types": [["attention"]]},
        any_width=True,
    ),
    "olmo_hybrid": Family(
        olmo_hybrid(),
        {**HEADED, **KEYS, "layer_types": ["linear_attention", "full_attention"]},
        others={
            "layer_types": [["full_attention", "linear_attention"]],
            "num_hidden_layers": [{"num_hidden_layers": 3, "layer_types": None}],
        },
        experts=True,
    ),
    "kimi_linear": Family(
        kimi_linear(),
        {
            **DELTA,
            "linear_num_heads": 2,
            "linear_head_dim": 4,
            "layer_types": ["linear_attention", "full_attention"],
            "mlp_layer_types": ["sparse", "sparse"],
        },
        needs={
            "intermediate_size": {"mlp_layer_types": None},
            "first_k_dense_replace": {"mlp_layer_types": None},
        },
        others={
            "layer_types": [["linear_attention"] * 2],
            "mlp_layer_types": [["dense", "sparse"]],
            "linear_attn_config": [{"linear_attn_config": {"head_dim": 6}}],
            **{f"linear_attn_config.{kind}_layers": [NUMBERED] for kind in ("full_attn", "kda")},
            "num_hidden_layers": [{"num_hidden_layers": 3, "layer_types": None, "mlp_layer_types": None}],
        },
        any_width=True,
        aliases=EXPERTS,
        experts=True,
    ),
    "bailing_hybrid": Family(
        delta_attention("bailing_hybrid", head_dim=EVEN, layer_group_size=KERNEL, short_conv_kernel_size=KERNEL),
        {**DELTA, "head_dim": 4, "layer_group_size": 2, "first_k_dense_replace": 1},
        others={
            "layer_types": [["linear_attention"] * 2],
            "mlp_layer_types": [["dense"] * 2],
        },
        aliases=EXPERTS,
        experts=True,
        small_runs={"n_group": 1, "topk_group": 1, "num_key_value_heads": 4},
    ),
    "xlstm": Family(
        xlstm(),
        {**WIDTHS, "num_heads": 4},
        others={
            "qk_dim_factor": [1.0],
            "v_dim_factor": [0.5],
            "ffn_proj_factor": [8.0],
            "ffn_round_up_to_multiple_of": [5],
            "weight_mode": ["fused"],
        },
        small_runs={"hidden_size": 128, "num_heads": 2},
    ),
}

# A scan runs in loops and products of which torch counts some; test_compute.py has those whose
# products are known.
FAMILIES = {model_type: family._replace(counted=False) for model_type, family in TYPES.items()}
