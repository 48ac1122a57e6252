"""Small random configs of the types whose config nests that of a language model, and of these
language models.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    ABSENT,
    EVEN,
    FLAG,
    HEADS,
    INNER,
    LAYERS,
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

NETS = {
    "linear_conv_kernel_dim": sometimes(st.integers(1, 5)),
    "linear_key_head_dim": EVEN,
    "linear_value_head_dim": EVEN,
    "linear_num_key_heads": HEADS,
    "linear_num_value_heads": HEADS,
}


@st.composite
def qwen3_5(draw: DrawFn, model_type: str, **more: Any) -> Config:
    """As those like Llama, with delta nets, each layer's kind listed or not."""
    flags = maybe_flags("attention_bias")
    values = draw(llama_like(model_type, head_dim=sometimes(EVEN), **NETS, **flags, **more))
    if draw(FLAG):
        kinds = st.sampled_from(["linear_attention", "full_attention"])
        values["layer_types"] = [draw(kinds) for _ in range(values["num_hidden_layers"])]
    elif draw(FLAG):
        values["full_attention_interval"] = draw(st.integers(1, 3))
    return values


def qwen3_5_moe(model_type: str) -> SearchStrategy[Config]:
    sizes = {"moe_intermediate_size": INNER, "shared_expert_intermediate_size": INNER}
    return with_experts(qwen3_5(model_type, kv=2, **sizes), "num_experts", "num_experts")


@st.composite
def gemma4(draw: DrawFn, model_type: str) -> Config:
    """Heads of two sizes, by kind or layer by layer; layers that borrow from one of each kind
    before them.
    """
    heads, layers = draw(HEADS), draw(st.integers(1, 8))
    full = draw(st.lists(FLAG, min_size=layers, max_size=layers)) if draw(FLAG) else None
    kinds = [*(full or [(number + 1) % 6 == 0 for number in range(layers)])[:-1], True]
    lent = max(kinds.index(kind) for kind in set(kinds)) + 1
    names = {True: "full_attention", False: "sliding_attention"}
    grouped = st.sampled_from(divisors(heads))
    sizes = {"num_key_value_heads": draw(grouped), "head_dim": draw(EVEN)}
    own: Any = ABSENT
    if draw(FLAG):
        of_kind = {
            kind: draw(st.fixed_dictionaries({}, optional={"num_key_value_heads": grouped, "head_dim": EVEN}))
            for kind in names
        }
        own = draw(st.sampled_from([None, {}, {f"{layer:02}": of_kind[kind] for layer, kind in enumerate(kinds)}]))
    values = config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=draw(st.integers(1, 40)),
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=layers,
        layer_types=[names[kind] for kind in full] if full else ABSENT,
        num_kv_shared_layers=draw(sometimes(st.integers(0, layers - lent))),
        num_attention_heads=heads,
        **sizes,
        num_global_key_value_heads=draw(nullable(grouped)),
        global_head_dim=draw(sometimes(EVEN)),
        per_layer_config=own,
        **{key: draw(value) for key, value in GEMMA_4_FLAGS.items()},
    )
    return {**values, **draw(gemma4_beside())} if model_type == "gemma4_text" else values


GEMMA_4_FLAGS = maybe_flags("use_double_wide_mlp", "attention_k_eq_v", "attention_bias", "tie_word_embeddings")


@st.composite
def gemma4_beside(draw: DrawFn) -> Config:
    """Embeddings for each layer, and experts."""
    count = draw(st.integers(1, 9))
    experts = {
        "enable_moe_block": True,
        "num_experts": count,
        "top_k_experts": draw(st.sampled_from([None, *range(1, count + 1)])),
        "moe_intermediate_size": draw(INNER),
    }
    return {
        "vocab_size_per_layer_input": draw(VOCABULARY),
        "hidden_size_per_layer_input": draw(st.integers(0, 9)),
        **draw(st.sampled_from([{}, {"enable_moe_block": False}, experts])),
    }


SMALL = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 4,
}  # fmt: skip
SMALL_NETS = {
    "head_dim": 4, "linear_key_head_dim": 4, "linear_value_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
}  # fmt: skip
SMALL_EXPERTS = {"moe_intermediate_size": 6, "shared_expert_intermediate_size": 5, "num_experts": 12}
SMALL_GEMMA_4 = {**SMALL, "num_hidden_layers": 14, "head_dim": 4, "global_head_dim": 6, "num_kv_shared_layers": 1}
LISTED = {"layer_types": [["full_attention"] * 4]}
OWN = {"layer_types": [["full_attention"] * 14], "per_layer_config": [{}, {"1": {"head_dim": 4}}]}
GEMMA_4_EXPERTS = {"enable_moe_block": True, "num_experts": 4, "moe_intermediate_size": 3}
OWN_NEEDS: dict[str, Config] = {"num_global_key_value_heads": {"attention_k_eq_v": True}}

FAMILIES: dict[str, Family] = {
    "qwen3_5_text": Family(qwen3_5("qwen3_5_text", kv=4), {**SMALL, **SMALL_NETS}, others=LISTED, counted=False),
    "qwen3_5_moe_text": Family(
        qwen3_5_moe("qwen3_5_moe_text"),
        {**SMALL, **SMALL_NETS, **SMALL_EXPERTS},
        others=LISTED,
        experts=True,
        counted=False,
    ),
    "gemma4_text": Family(
        gemma4("gemma4_text"),
        {**SMALL_GEMMA_4, "vocab_size_per_layer_input": 30, "hidden_size_per_layer_input": 6},
        others=OWN,
        needs={**OWN_NEEDS, **dict.fromkeys(GEMMA_4_EXPERTS, GEMMA_4_EXPERTS)},
        counted=False,
        beside=(
            *(f"model.layers.{n}.{name}" for n in range(30) for name in ("per_layer_", "layer_scalar")),
            "model.per_layer_model_projection.",
        ),
        small_runs={"vocab_size_per_layer_input": 40},
    ),
    "gemma4_unified_text": Family(
        gemma4("gemma4_unified_text"),
        SMALL_GEMMA_4,
        others=OWN,
        needs=OWN_NEEDS,
        beside=tuple(f"model.layers.{n}.layer_scalar" for n in range(30)),
    ),
}


# -- types whose config nests another -------------------------------------------------------------


@st.composite
def around(draw: DrawFn, model_type: str, text: SearchStrategy[Config], **more: SearchStrategy[Any]) -> Config:
    """A config with that of a language model inside, under dotted names."""
    inside = {key: value for key, value in draw(text).items() if key != "model_type"}
    drawn = {key: draw(value) for key, value in more.items()}
    return dotted({**config(model_type, **drawn), "text_config": inside})


def small(text: Config, **more: Any) -> Config:
    """The same of a small one."""
    return dotted({"text_config": {"pad_token_id": None, **text}, **more})


def within(part: str, family: Family) -> dict[str, Any]:
    """What the tests know of a type, where its config is a part of another."""

    def inside(values: Config) -> Config:
        return {f"{part}.{key}": value for key, value in values.items()}

    others = {
        key: [inside(value) if isinstance(value, dict) and key in value else value for value in values]
        for key, values in family.others.items()
    }
    return {
        "needs": inside({key: inside(needs) for key, needs in family.needs.items()}),
        "others": inside(others),
        "counted": family.counted,
    }


@st.composite
def tower(draw: DrawFn, **more: SearchStrategy[Any]) -> Config:
    """The config of an encoder of patches."""
    heads = draw(HEADS)
    drawn = {
        "hidden_size": heads * draw(EVEN),
        "num_attention_heads": heads,
        "num_hidden_layers": draw(LAYERS),
        "intermediate_size": draw(INNER),
        **{key: draw(value) for key, value in more.items()},
    }
    return {key: value for key, value in drawn.items() if value is not ABSENT}


def llama4() -> SearchStrategy[Config]:
    """Llama 4's language model."""
    more = {
        "intermediate_size_mlp": sometimes(INNER),
        "interleave_moe_layer_step": sometimes(st.integers(1, 3)),
        "moe_layers": nullable(st.lists(st.integers(0, 3), max_size=3)),
        **maybe_flags("attention_bias"),
    }
    return with_experts(llama_like("llama4_text", kv=8, **more), "num_local_experts", "num_local_experts")


PATCHES = {
    "image_size": st.integers(8, 20),
    "patch_size": st.integers(2, 8),
    "num_channels": sometimes(st.integers(1, 4)),
}
SMALL_TOWER = {
    "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12, "image_size": 8, "patch_size": 4,
}  # fmt: skip
LLAMA_4 = {**SMALL, "num_local_experts": 4, "intermediate_size_mlp": 14, "head_dim": 4}
TIED = sometimes(FLAG)

FAMILIES |= {
    "qwen3_5": Family(
        around("qwen3_5", FAMILIES["qwen3_5_text"].drawn),
        small(FAMILIES["qwen3_5_text"].small),
        **within("text_config", FAMILIES["qwen3_5_text"]),
    ),
    "qwen3_5_moe": Family(
        around("qwen3_5_moe", FAMILIES["qwen3_5_moe_text"].drawn),
        small(FAMILIES["qwen3_5_moe_text"].small),
        experts=True,
        **within("text_config", FAMILIES["qwen3_5_moe_text"]),
    ),
    "llama4": Family(
        around("llama4", llama4()),
        small(LLAMA_4),
        needs={"text_config.intermediate_size_mlp": {"text_config.moe_layers": [0]}},
        others={"text_config.moe_layers": [[0]]},
        counted=False,
    ),
    "gemma3": Family(
        around(
            "gemma3",
            llama_like("gemma3_text", kv=4, whole=True, **maybe_flags("attention_bias")),
            vision_config=tower(**PATCHES, vision_use_head=sometimes(FLAG)),
            tie_word_embeddings=TIED,
        ),
        small(SMALL, vision_config=SMALL_TOWER, mm_tokens_per_image=4),
        beside=("model.multi_modal_projector.", "model.vision_tower.head.probe"),
    ),
}

EYES_4 = tower(
    num_key_value_heads=sometimes(HEADS),
    head_dim=EVEN,
    patch_size=sometimes(st.integers(1, 4)),
    position_embedding_size=st.integers(1, 30),
    **maybe_flags("use_clipped_linears", "standardize"),
)
EARS_4 = tower(
    conv_kernel_size=sometimes(st.integers(1, 5)),
    subsampling_conv_channels=sometimes(st.lists(st.integers(4, 20), min_size=2, max_size=2)),
    output_proj_dims=INNER,
    use_clipped_linears=sometimes(FLAG),
).map(lambda values: {key: value for key, value in values.items() if key != "intermediate_size"})
EYES_4_UNIFIED = st.fixed_dictionaries(
    {},
    optional={
        "patch_size": st.integers(1, 4),
        "pooling_kernel_size": st.integers(1, 3),
        "mm_embed_dim": INNER,
        "mm_posemb_size": INNER,
        "output_proj_dims": INNER,
    },
)
SMALL_EYES_4 = {
    "hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12,
    "head_dim": 4, "patch_size": 2, "position_embedding_size": 6,
}  # fmt: skip
SMALL_EARS_4 = {
    "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "subsampling_conv_channels": [4, 4], "output_proj_dims": 6,
}  # fmt: skip
OTHERS_4 = {"vision_config": [None], "audio_config": [None], "audio_config.subsampling_conv_channels": [[8, 4]]}


@st.composite
def mllama(draw: DrawFn) -> Config:
    layers = st.lists(st.integers(0, 4), max_size=3)
    return draw(llama_like("mllama_text_model", kv=8, head_dim=NO_KEY, cross_attention_layers=nullable(layers)))


WORDS = {"<image>": 3}  # the words for images, without which transformers builds no whole


def emu3() -> SearchStrategy[Config]:
    """Whose padding is always a token."""
    drawn = llama_like("emu3_text_model", kv=8, **maybe_flags("attention_bias", "mlp_bias"))
    return drawn.map(lambda values: {**values, "pad_token_id": 0})


def gemma4_family(
    model_type: str, eyes: SearchStrategy[Config], ears: SearchStrategy[Config], **small_towers: Config
) -> Family:
    """Gemma 4, with eyes and ears or without."""
    text = FAMILIES[f"{model_type}_text"]
    told = within("text_config", text)
    return Family(
        around(
            model_type, text.drawn, vision_config=nullable(eyes), audio_config=nullable(ears), tie_word_embeddings=TIED
        ),
        {**small(text.small, **small_towers), **{name: {} for name in small_towers}},
        beside=(
            *(name.replace("model.", "model.language_model.", 1) for name in text.beside),
            "model.embed_vision.",
            "model.embed_audio.",
        ),
        # It looks for its padding token among those that it reads, and none is drawn.
        **{**told, "others": {**told["others"], **OTHERS_4}, "counted": False},
        small_runs={"text_config.pad_token_id": 0},
    )


FAMILIES |= {
    "emu3": Family(
        around("emu3", emu3(), vocabulary_map=st.just(WORDS)),
        small({**SMALL, "pad_token_id": 0}, vocabulary_map=WORDS),
    ),
    "mllama": Family(
        around("mllama", mllama()),
        small({**SMALL, "cross_attention_layers": [1]}),
        others={"text_config.cross_attention_layers": [[0], None]},
        counted=False,  # layers that attend to an image alone do not run without one
    ),
    "gemma4": gemma4_family("gemma4", EYES_4, EARS_4, vision_config=SMALL_EYES_4, audio_config=SMALL_EARS_4),
    "gemma4_unified": gemma4_family(
        "gemma4_unified",
        EYES_4_UNIFIED,
        st.fixed_dictionaries({}, optional={"audio_embed_dim": INNER}),
        vision_config={"patch_size": 2, "mm_embed_dim": 6, "mm_posemb_size": 5},
        audio_config={"audio_embed_dim": 5},
    ),
}


@st.composite
def git(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    values = config(
        "git",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * draw(EVEN),
        intermediate_size=draw(INNER),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        max_position_embeddings=draw(sometimes(st.integers(1, 30))),
        num_image_with_embedding=draw(nullable(st.integers(0, 3))),
        tie_word_embeddings=draw(TIED),
        vision_config=draw(tower(**PATCHES)),
    )
    return dotted(values)


EARS = tower(num_mel_bins=sometimes(st.integers(1, 9)), max_source_positions=st.integers(1, 20))
VITDET = tower(
    **PATCHES,
    output_channels=INNER,
    mlp_dim=INNER,
    window_size=sometimes(st.integers(0, 4)),
    global_attn_indexes=sometimes(st.lists(st.integers(0, 3), max_size=3)),
    **maybe_flags("qkv_bias", "use_abs_pos", "use_rel_pos"),
).map(lambda values: {key: value for key, value in values.items() if key != "intermediate_size"})
SMALL_VITDET = {
    "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 3, "image_size": 8, "patch_size": 2, "window_size": 3,
    "output_channels": 6, "mlp_dim": 5, "global_attn_indexes": [1],
}  # fmt: skip
PERSIMMON = llama_like("persimmon", head_dim=NO_KEY, kv=None, **maybe_flags("qk_layernorm"))

FAMILIES |= {
    "git": Family(
        git(),
        {**SMALL, **dotted({"vision_config": SMALL_TOWER}), "max_position_embeddings": 20},
        beside=(
            "git.img_temporal_embedding.",
            "git.image_encoder.vision_model.embeddings.class_embedding",
            "git.visual_projection.",
        ),
    ),
    "moss_transcribe_diarize": Family(
        around(
            "moss_transcribe_diarize",
            llama_like("qwen3", kv=32, **maybe_flags("attention_bias", "use_sliding_window")),
            audio_config=EARS,
            audio_merge_size=sometimes(st.integers(1, 4)),
            projector_bias=sometimes(FLAG),
            tie_word_embeddings=TIED,
        ),
        small(
            {**SMALL, "head_dim": 4},
            audio_config={
                "hidden_size": 8,
                "num_attention_heads": 2,
                "num_hidden_layers": 2,
                "intermediate_size": 12,
                "max_source_positions": 9,
            },
        ),
        beside=("model.multi_modal_projector.",),
    ),
    "got_ocr2": Family(
        around(
            "got_ocr2",
            llama_like("qwen2", kv=32, **maybe_flags("use_sliding_window")),
            vision_config=VITDET,
            tie_word_embeddings=TIED,
        ),
        small(SMALL, vision_config=SMALL_VITDET),
        others={"vision_config.global_attn_indexes": [[0], []]},
        beside=("model.multi_modal_projector.",),
    ),
    "fuyu": Family(
        around(
            "fuyu",
            PERSIMMON,
            patch_size=sometimes(st.integers(1, 9)),
            num_channels=sometimes(st.integers(1, 4)),
            tie_word_embeddings=TIED,
        ),
        small(SMALL),
        beside=("model.vision_embed_tokens.",),
        counted=False,  # of a head of two elements torch counts the angles of one
    ),
}

CONFORMER = st.fixed_dictionaries(
    {
        "hidden_size": st.integers(6, 40),
        "num_attention_heads": HEADS,
        "num_blocks": LAYERS,
        "intermediate_size": INNER,
        "nemo_conv_channels": INNER,
        "bias_max_distance": INNER,
    },
    optional={
        "head_dim": EVEN,
        "ext_pw_out_channel": INNER,
        "depthwise_separable_out_channel": INNER,
        "depthwise_multiplier": st.integers(1, 3),
        "kernel_size": st.integers(1, 5),
        "input_size": INNER,
        "time_reduction": st.integers(1, 20).map(lambda half: 2 * half),
        "nemo_final_size": INNER,
        "bias_symmetric": FLAG,
        "downsample_rate": st.integers(1, 3),
    },
)
SMALL_CONFORMER = {
    "hidden_size": 8, "num_attention_heads": 2, "num_blocks": 2, "intermediate_size": 12, "ext_pw_out_channel": 6,
    "depthwise_separable_out_channel": 6, "nemo_conv_channels": 4, "bias_max_distance": 10,
}  # fmt: skip
SIGHT_AND_SOUND = {"vision_config": tower(**PATCHES), "audio_config": CONFORMER}

FAMILIES["phi4_multimodal"] = Family(
    llama_like("phi4_multimodal", kv=8, null_kv=True, **SIGHT_AND_SOUND).map(dotted),
    {**SMALL, **dotted({"vision_config": SMALL_TOWER, "audio_config": SMALL_CONFORMER})},
    beside=("model.embed_tokens_extend.",),
)

# Whose tokens are to be among those that are read.
FAMILIES = {
    name: family._replace(runs={"text_config.vocab_size": 60}) if "text_config.vocab_size" in family.small else family
    for name, family in FAMILIES.items()
}
