"""Small random configs of the classes that see and hear, of types whose causal language model is
their text alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import configs
import families_nested
from drawing import FLAG, HEADS, INNER, LAYERS, Config, sometimes
from nesting import ABSENT, dotted


class Whole(NamedTuple):
    """What the tests know of one class."""

    class_name: str
    towers: SearchStrategy[Config]  # their configs, and what else the whole reads, under dotted names
    small: Config  # the same, of a few thousand parameters
    others: Mapping[str, list[Any]] = {}  # of keys that are no flag and no integer: what else they may be
    needs: Mapping[str, Config] = {}  # keys that matter only where others are set, with those
    bound: tuple[str, ...] = ()  # how keys end that change no tensor, or whose value another key tells
    lacking: Mapping[str, Any] = {}  # what the default lacks: transformers builds no model of it


def drawn(model_type: str) -> SearchStrategy[Config]:
    """Configs of the whole of a type."""
    whole = WHOLES[model_type]

    @st.composite
    def config(draw: DrawFn) -> Config:
        return {**draw(configs.CONFIGS[model_type]), **draw(whole.towers), "architectures": [whole.class_name]}

    return config()


def small(model_type: str, **more: Any) -> Config:
    """A complete config of the whole of a type, of a few thousand parameters."""
    whole = WHOLES[model_type]
    text = {"model_type": model_type, "pad_token_id": None, **configs.FAMILIES[model_type].small}
    return {**text, **whole.small, "architectures": [whole.class_name], **more}


@st.composite
def under(draw: DrawFn, part: str, sizes: dict[str, SearchStrategy[Any]], **beside: SearchStrategy[Any]) -> Config:
    """The config of a tower, and keys beside it."""
    inside = {key: draw(value) for key, value in sizes.items()}
    above = {key: draw(value) for key, value in beside.items()}
    values = {**dotted({part: inside}), **above}
    return {key: value for key, value in values.items() if value is not ABSENT}


@st.composite
def heads_and_width(draw: DrawFn, values: SearchStrategy[Config], part: str, heads: str) -> Config:
    """Heads that divide the width of a tower."""
    count = draw(HEADS)
    return {**draw(values), f"{part}.{heads}": count, f"{part}.hidden_size": count * 4 * draw(st.integers(1, 3))}


WORDS = {"vocabulary_map": families_nested.WORDS}  # which are images, without which transformers builds no model

PATCHES = {
    "image_size": st.integers(8, 20),
    "patch_size": st.integers(2, 8),
    "num_channels": sometimes(st.integers(1, 4)),
}
PAIRS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)).map(list), max_size=4)
TIED = {"tie_word_embeddings": sometimes(FLAG)}

LLAMA_4 = {
    "num_hidden_layers": LAYERS,
    "intermediate_size": INNER,
    **{key: sometimes(INNER) for key in ("vision_output_dim", "projector_input_dim", "projector_output_dim")},
    **PATCHES,
}
SMALL_LLAMA_4 = {
    "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12, "image_size": 8, "patch_size": 4,
    "vision_output_dim": 6, "projector_input_dim": 5, "projector_output_dim": 7,
}  # fmt: skip


@st.composite
def mllama(draw: DrawFn) -> Config:
    """Ratios and tiles: the default ratios are of four tiles."""
    sizes = {
        "num_hidden_layers": LAYERS,
        "num_global_layers": sometimes(LAYERS),
        "intermediate_size": INNER,
        "vision_output_dim": sometimes(INNER),
        **PATCHES,
    }
    if draw(FLAG):
        sizes |= {"supported_aspect_ratios": PAIRS, "max_num_tiles": sometimes(st.integers(1, 5))}
    heads = draw(st.sampled_from(["attention_heads", "num_attention_heads"]))
    return draw(heads_and_width(under("vision_config", sizes, **TIED), "vision_config", heads))


SMALL_MLLAMA = {
    "hidden_size": 8, "attention_heads": 2, "num_hidden_layers": 2, "num_global_layers": 1, "intermediate_size": 12,
    "image_size": 8, "patch_size": 4, "vision_output_dim": 6,
}  # fmt: skip
QWEN_3_5 = under(
    "vision_config",
    {
        "intermediate_size": INNER,
        "in_channels": sometimes(st.integers(1, 4)),
        "patch_size": sometimes(st.integers(1, 8)),
        "temporal_patch_size": sometimes(st.integers(1, 4)),
        "spatial_merge_size": sometimes(st.integers(1, 3)),
        "out_hidden_size": sometimes(INNER),
        "num_position_embeddings": sometimes(INNER),
    },
    **TIED,
)
SMALL_QWEN_3_5 = {
    "hidden_size": 8, "num_heads": 2, "depth": 2, "intermediate_size": 12, "patch_size": 4, "out_hidden_size": 16,
    "num_position_embeddings": 9,
}  # fmt: skip


@st.composite
def qwen3_5(draw: DrawFn) -> Config:
    heads, depth = draw(st.sampled_from([("num_heads", "depth"), ("num_attention_heads", "num_hidden_layers")]))
    return {
        **draw(heads_and_width(QWEN_3_5, "vision_config", heads)),
        f"vision_config.{depth}": draw(LAYERS),
    }


BAD_QWEN_3_5 = {"vision_config.depth": "3", "vision_config.patch_size": [4, 4], "tie_word_embeddings": "yes"}
IMAGES = under(
    "vq_config",
    {
        "codebook_size": sometimes(INNER),
        "embed_dim": sometimes(st.integers(1, 9)),
        "latent_channels": sometimes(st.integers(1, 9)),
        "double_latent": sometimes(FLAG),
        "in_channels": sometimes(st.integers(1, 4)),
        "out_channels": sometimes(st.integers(1, 4)),
        "temporal_downsample_factor": sometimes(st.integers(1, 20)),
        "base_channels": st.integers(1, 3).map(lambda groups: 32 * groups),
        "channel_multiplier": sometimes(st.lists(st.integers(1, 3), min_size=1, max_size=4)),
        "num_res_blocks": sometimes(st.integers(0, 3)),
        "attn_resolutions": sometimes(st.lists(st.integers(-1, 4), max_size=3)),
    },
    **TIED,
)
SMALL_IMAGES = {
    "codebook_size": 7, "base_channels": 32, "channel_multiplier": [1, 2], "attn_resolutions": [1], "num_res_blocks": 1,
    "hidden_size": 64,
}  # fmt: skip


@st.composite
def dots3_eyes(draw: DrawFn) -> Config:
    """Experts of each layer by a pyramid, by a list of which layers have them, or layer by
    layer.
    """
    heads, layers, merged, used = draw(HEADS), draw(LAYERS), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    width = heads * 4 * draw(st.integers(1, 2))
    names = draw(
        st.sampled_from(
            [("hidden_size", "num_attention_heads", "attention_bias"), ("embed_dim", "num_heads", "use_bias")]
        )
    )
    kinds = draw(st.lists(st.sampled_from(["dense", "sparse"]), min_size=layers, max_size=layers + 2))
    experts = st.integers(used, 5)
    own = {f"{layer:02}": {"num_local_experts": draw(experts)} for layer in range(layers) if draw(FLAG)}
    ways = [
        {"pyramid_num_routed": [draw(experts) if kind == "sparse" else -1 for kind in kinds[:layers]]},
        {
            "mlp_layer_types": kinds,
            "num_local_experts": draw(experts),
            "per_layer_config": draw(sometimes(st.just(own))),
        },
    ]
    way = draw(st.sampled_from([*ways, ways[0] | ways[1]]))
    values = {
        **dict(zip(names, (width, heads, draw(sometimes(FLAG))), strict=True)),
        "adapter_in_dim": width,
        "num_hidden_layers": layers,
        "intermediate_size": draw(INNER),
        "moe_intermediate_size": draw(INNER),
        "num_channels": draw(sometimes(st.integers(1, 4))),
        "patch_size": draw(sometimes(st.integers(1, 4))),
        "spatial_merge_size": merged,
        "adapter_merge_size": merged,
        draw(st.sampled_from(["num_experts_per_tok", "capacity_factor"])): used,
        **way,
    }
    if "sparse" not in kinds:
        values["mlp_bias"] = draw(sometimes(FLAG))
    return {f"vision_config.{key}": value for key, value in values.items() if value is not ABSENT}


@st.composite
def dots3_ears(draw: DrawFn) -> Config:
    """Sizes at the top, or in a config of Whisper's names."""
    heads = draw(HEADS)
    width = heads * 4 * draw(st.integers(1, 2))
    given = draw(st.sampled_from(["adapter_input_size", "whisper_adapter_in_dim"]))
    sizes = {
        "hidden_size": ("d_model", width),
        "num_attention_heads": ("encoder_attention_heads", heads),
        "num_hidden_layers": ("encoder_layers", draw(LAYERS)),
        "intermediate_size": ("encoder_ffn_dim", draw(INNER)),
        "feature_size": ("num_mel_bins", draw(st.integers(1, 40))),
    }
    of_whisper = {key for key in sizes if draw(FLAG)}
    inside = {sizes[key][0]: sizes[key][1] for key in of_whisper}
    values = {
        **{key: size for key, (_, size) in sizes.items() if key not in of_whisper},
        **({"whisper_config": inside} if inside or draw(FLAG) else {}),
        "downsample_hidden_size": draw(sometimes(INNER)),
        "conv_output_size": draw(sometimes(INNER)),
        "attention_bias": draw(sometimes(FLAG)),
        given: width,
    }
    return {f"audio_config.{key}": value for key, value in values.items() if value is not ABSENT}


@st.composite
def dots3(draw: DrawFn) -> Config:
    tied = {key: draw(value) for key, value in TIED.items()}
    return {
        **draw(dots3_eyes()),
        **draw(dots3_ears()),
        **{key: value for key, value in tied.items() if value is not ABSENT},
    }


SMALL_DOTS_3 = {
    "vision_config": {
        "hidden_size": 8, "adapter_in_dim": 8, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 12,
        "moe_intermediate_size": 5, "patch_size": 4, "mlp_layer_types": ["dense", "sparse", "sparse"], "num_local_experts": 3,
    },
    "audio_config": {
        "hidden_size": 8, "adapter_input_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12,
        "feature_size": 20, "downsample_hidden_size": 6,
    },
}  # fmt: skip

WHOLES: dict[str, Whole] = {
    "llama4": Whole(
        "Llama4ForConditionalGeneration",
        heads_and_width(under("vision_config", LLAMA_4), "vision_config", "num_attention_heads"),
        dotted({"vision_config": SMALL_LLAMA_4}),
    ),
    "mllama": Whole(
        "MllamaForConditionalGeneration",
        mllama(),
        dotted({"vision_config": SMALL_MLLAMA}),
        others={"vision_config.supported_aspect_ratios": [[[1, 1]]]},
        needs={"vision_config.max_num_tiles": {"vision_config.supported_aspect_ratios": [[1, 1]]}},
    ),
    "qwen3_5": Whole("Qwen3_5ForConditionalGeneration", qwen3_5(), dotted({"vision_config": SMALL_QWEN_3_5})),
    "qwen3_5_moe": Whole("Qwen3_5MoeForConditionalGeneration", qwen3_5(), dotted({"vision_config": SMALL_QWEN_3_5})),
    "emu3": Whole(
        "Emu3ForConditionalGeneration",
        heads_and_width(IMAGES, "vq_config", "num_attention_heads"),
        dotted({"vq_config": SMALL_IMAGES}),
        others={"vq_config.channel_multiplier": [[2, 1]], "vq_config.attn_resolutions": [[0]]},
        lacking=WORDS,
    ),
    "dots3_note": Whole(
        "Dots3NoteForConditionalGeneration",
        dots3(),
        dotted(SMALL_DOTS_3),
        others={
            "vision_config.hidden_size": [{"vision_config.hidden_size": 16, "vision_config.adapter_in_dim": 16}],
            "audio_config.hidden_size": [{"audio_config.hidden_size": 16, "audio_config.adapter_input_size": 16}],
            "vision_config.spatial_merge_size": [
                {"vision_config.spatial_merge_size": 3, "vision_config.adapter_merge_size": 3}
            ],
            "vision_config.num_attention_heads": [1],
            "vision_config.num_hidden_layers": [2],
            "vision_config.mlp_layer_types": [["dense"] * 3],
            "vision_config.pyramid_num_routed": [[-1, 2, 3]],
            "vision_config.per_layer_config": [{"1": {"num_local_experts": 2}}],
            "audio_config.whisper_config": [{"encoder_layers": 1}],
            "audio_config.conv_output_size": [5],
        },
        needs={"vision_config.mlp_bias": {"vision_config.mlp_layer_types": ["dense"] * 3}},
        bound=(
            "adapter_in_dim",
            "input_size",
            "adapter_out_dim",
            "adapter_merge_size",
            "experts_per_tok",
            "capacity_factor",
        ),
    ),
}
