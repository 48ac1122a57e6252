"""Small random configs of the types whose config nests that of a language model, and of these language models."""

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
    VOCABULARY,
    Config,
    Kin,
    config,
    divisors,
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
    """As Llama's kin, with delta nets, each layer's kind listed or not."""
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
    """Heads of two sizes, by kind or layer by layer; layers that borrow from one of each kind before them."""
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

KIN = {
    "qwen3_5_text": Kin(qwen3_5("qwen3_5_text", kv=4), {**SMALL, **SMALL_NETS}, others=LISTED, counted=False),
    "qwen3_5_moe_text": Kin(
        qwen3_5_moe("qwen3_5_moe_text"),
        {**SMALL, **SMALL_NETS, **SMALL_EXPERTS},
        others=LISTED,
        experts=True,
        counted=False,
    ),
    "gemma4_text": Kin(
        gemma4("gemma4_text"),
        {**SMALL_GEMMA_4, "vocab_size_per_layer_input": 30, "hidden_size_per_layer_input": 6},
        others=OWN,
        needs={**OWN_NEEDS, **dict.fromkeys(GEMMA_4_EXPERTS, GEMMA_4_EXPERTS)},
        counted=False,
        beside=(
            *(f"model.layers.{n}.{name}" for n in range(30) for name in ("per_layer_", "layer_scalar")),
            "model.per_layer_model_projection.",
        ),
    ),
    "gemma4_unified_text": Kin(
        gemma4("gemma4_unified_text"),
        SMALL_GEMMA_4,
        others=OWN,
        needs=OWN_NEEDS,
        beside=tuple(f"model.layers.{n}.layer_scalar" for n in range(30)),
    ),
}
