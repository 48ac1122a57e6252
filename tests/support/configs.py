"""Small random configs of every native type: those of the decoders here, those of others in ``families_*.py``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
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
    NO_KEY,
    NULL_FLAG,
    SIZE_OR_NULL,
    VOCABULARY,
    Config,
    Kin,
    config,
    divisors,
    gpt2_like,
    llama_like,
    maybe_flags,
    nullable,
    sometimes,
    with_experts,
)


@st.composite
def gpt_neo(draw: DrawFn) -> Config:
    heads, layers = draw(HEADS), draw(LAYERS)
    kinds = st.sampled_from(["global", "local"])
    listed = draw(st.lists(kinds, min_size=layers, max_size=layers))
    counts = {"num_heads": "num_attention_heads", "num_layers": "num_hidden_layers"}
    named = {
        (alias if draw(FLAG) else key): count
        for (key, alias), count in zip(counts.items(), (heads, layers), strict=True)
    }
    return config(
        "gpt_neo",
        **named,
        vocab_size=draw(sometimes(VOCABULARY)),
        max_position_embeddings=draw(sometimes(st.integers(1, 30))),
        hidden_size=heads * draw(HEAD),
        intermediate_size=draw(nullable(INNER)),
        attention_types=draw(st.sampled_from([[[[kind], 1] for kind in listed], [[["global"], layers]]])),
        window_size=draw(sometimes(st.integers(1, 9))),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def gpt_bigcode(draw: DrawFn) -> Config:
    """One key for all queries, or cross-attention."""
    values = draw(gpt2_like("gpt_bigcode", n_positions=sometimes(st.integers(1, 30))))
    flags = st.sampled_from([{}, {"multi_query": True}, {"multi_query": False}])
    crossing = {"multi_query": False, "add_cross_attention": True}
    return {**values, **draw(st.one_of(flags, st.just(crossing)))}


@st.composite
def mpt(draw: DrawFn) -> Config:
    names = {"d_model": "hidden_size", "n_heads": "num_attention_heads", "n_layers": "num_hidden_layers"}
    heads = draw(HEADS)
    sizes = {"d_model": heads * draw(HEAD), "n_heads": heads, "n_layers": draw(LAYERS)}
    return config(
        "mpt",
        **{(names[key] if draw(FLAG) else key): size for key, size in sizes.items()},
        vocab_size=draw(sometimes(VOCABULARY)),
        expansion_ratio=draw(sometimes(st.integers(1, 5))),
        no_bias=draw(sometimes(FLAG)),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def gpt_neox(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    return config(
        "gpt_neox",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * draw(HEAD),
        num_attention_heads=heads,
        num_hidden_layers=draw(LAYERS),
        intermediate_size=draw(sometimes(INNER)),
        attention_bias=draw(sometimes(FLAG)),
        use_parallel_residual=draw(sometimes(FLAG)),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def opt(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    width = heads * draw(HEAD)
    return config(
        "opt",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=width,
        word_embed_proj_dim=draw(nullable(st.sampled_from([width, 1, 5, 2 * width]))),
        ffn_dim=draw(sometimes(INNER)),
        max_position_embeddings=draw(sometimes(st.integers(1, 30))),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        enable_bias=draw(sometimes(FLAG)),
        layer_norm_elementwise_affine=draw(sometimes(FLAG)),
        do_layer_norm_before=draw(sometimes(FLAG)),
        _remove_final_layer_norm=draw(sometimes(FLAG)),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def bloom(draw: DrawFn) -> Config:
    heads = draw(st.sampled_from([1, 2, 4, 8]))
    width = heads * draw(HEAD)
    # Published files say n_embed; with both, it wins.
    widths = draw(st.sampled_from([{"hidden_size": width}, {"n_embed": width}, {"hidden_size": 1, "n_embed": width}]))
    layers = draw(st.sampled_from(["n_layer", "num_hidden_layers"]))
    count = draw(st.sampled_from(["n_head", "num_attention_heads"]))
    return config(
        "bloom",
        vocab_size=draw(sometimes(VOCABULARY)),
        **widths,
        **{layers: draw(LAYERS), count: heads},
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def falcon(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    width = heads * draw(HEAD)
    return config(
        "falcon",
        vocab_size=draw(sometimes(VOCABULARY)),
        **draw(st.sampled_from([{"hidden_size": width}, {"n_embed": width}, {"hidden_size": 1, "n_embed": width}])),
        ffn_hidden_size=draw(nullable(INNER)),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        num_kv_heads=draw(nullable(st.sampled_from(divisors(heads)))),
        num_ln_in_parallel_attn=draw(nullable(st.integers(0, 3))),
        new_decoder_architecture=draw(sometimes(NULL_FLAG)),
        multi_query=draw(sometimes(NULL_FLAG)),
        parallel_attn=draw(sometimes(NULL_FLAG)),
        bias=draw(sometimes(NULL_FLAG)),
        alibi=draw(sometimes(NULL_FLAG)),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


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
    """Widths that the heads of both kinds divide; a few layers attend, some that are listed are no layers."""
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
    """As Llama's kin, and each layer's kind, listed or not."""
    values = draw(llama_like(model_type, **more))
    if draw(FLAG):
        kinds = st.sampled_from(["linear_attention", "full_attention"])
        values["layer_types"] = [draw(kinds) for _ in range(values["num_hidden_layers"])]
    return values


@st.composite
def gemma3n(draw: DrawFn) -> Config:
    """Layers of one kind, or of two where both are among those that lend their keys and values."""
    heads, layers = draw(HEADS), draw(st.integers(1, 8))
    full = draw(st.lists(FLAG, min_size=layers, max_size=layers)) if draw(FLAG) else None
    kinds = full or [(number + 1) % 5 == 0 for number in range(layers)]
    lent = max(kinds.index(kind) for kind in set(kinds)) + 1
    widths = st.lists(INNER, min_size=layers, max_size=layers)
    same = draw(INNER)
    names = {True: "full_attention", False: "sliding_attention"}
    return config(
        "gemma3n_text",
        vocab_size=draw(sometimes(VOCABULARY)),
        vocab_size_per_layer_input=draw(VOCABULARY),
        hidden_size=heads * draw(HEAD),
        hidden_size_per_layer_input=draw(st.integers(1, 9)),
        intermediate_size=draw(st.one_of(st.just(same), st.just([same] * layers), widths)),
        num_hidden_layers=layers,
        layer_types=[names[kind] for kind in full] if full else ABSENT,
        num_kv_shared_layers=draw(st.integers(0, layers - lent)),
        num_attention_heads=heads,
        num_key_value_heads=draw(st.sampled_from(divisors(heads))),
        head_dim=draw(EVEN),
        altup_num_inputs=draw(sometimes(st.integers(1, 5))),
        laurel_rank=draw(sometimes(st.integers(1, 9))),
        **{key: draw(value) for key, value in maybe_flags("attention_bias", "tie_word_embeddings").items()},
    )


# A file of each further kind of types, found by its name.
KIN: dict[str, Kin] = {}
for path in Path(__file__).parent.glob("families_*.py"):
    KIN |= import_module(path.stem).KIN

CONFIGS: dict[str, SearchStrategy[Config]] = {
    **{model_type: kin.drawn for model_type, kin in KIN.items()},
    "gpt2": gpt2_like("gpt2", n_positions=sometimes(st.integers(1, 30)), add_cross_attention=sometimes(FLAG)),
    "gpt_neo": gpt_neo(),
    "gpt_neox": gpt_neox(),
    "gpt_bigcode": gpt_bigcode(),
    "codegen": gpt2_like("codegen", rotary_dim=sometimes(st.sampled_from([2, 4]))),
    "mpt": mpt(),
    "gptj": gpt2_like("gptj", rotary_dim=sometimes(st.sampled_from([2, 4]))),
    "opt": opt(),
    "bloom": bloom(),
    "falcon": falcon(),
    "bamba": bamba(),
    "llama": llama_like("llama", head_dim=SIZE_OR_NULL, whole=True, **maybe_flags("attention_bias", "mlp_bias")),
    "mistral": llama_like("mistral", head_dim=SIZE_OR_NULL, kv=8),
    "mixtral": with_experts(llama_like("mixtral", head_dim=SIZE_OR_NULL, kv=8), "num_local_experts", "num_experts"),
    "qwen2": llama_like("qwen2", kv=32, **maybe_flags("use_sliding_window")),
    "qwen3": llama_like("qwen3", kv=32, **maybe_flags("attention_bias", "use_sliding_window")),
    "qwen3_moe": with_experts(
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
    "nanochat": llama_like("nanochat", **maybe_flags("attention_bias")),
    "gemma": llama_like("gemma", kv=16, **maybe_flags("attention_bias")),
    "gemma2": llama_like("gemma2", kv=4, whole=True, **maybe_flags("attention_bias")),
    "gemma3_text": llama_like("gemma3_text", kv=4, whole=True, **maybe_flags("attention_bias")),
    "gemma3n_text": gemma3n(),
    "phi": llama_like("phi", whole=True, **maybe_flags("qk_layernorm")),
    "phi3": llama_like("phi3"),
    "starcoder2": llama_like("starcoder2", kv=2, head_dim=SIZE_OR_NULL, **maybe_flags("use_bias")),
    "olmo2": llama_like("olmo2", **maybe_flags("attention_bias")),
    "granite": llama_like("granite", **maybe_flags("attention_bias", "mlp_bias")),
    "olmo": llama_like("olmo", **maybe_flags("attention_bias")),
    "olmo3": llama_like("olmo3", **maybe_flags("attention_bias")),
    "stablelm": llama_like(
        "stablelm", kv=32, head_dim=NO_KEY, **maybe_flags("use_qkv_bias", "qk_layernorm", "use_parallel_residual")
    ),
    "cohere": llama_like("cohere", use_qk_norm=sometimes(NULL_FLAG), **maybe_flags("attention_bias")),
    "cohere2": llama_like("cohere2", **maybe_flags("attention_bias")),
    "glm": llama_like("glm", kv=2, **maybe_flags("attention_bias")),
    "glm4": llama_like("glm4", kv=2, **maybe_flags("attention_bias")),
    "smollm3": llama_like("smollm3", kv=4, null_kv=True, **maybe_flags("attention_bias", "mlp_bias")),
    "arcee": llama_like("arcee", head_dim=SIZE_OR_NULL, whole=True, **maybe_flags("attention_bias", "mlp_bias")),
    "seed_oss": llama_like(
        "seed_oss",
        kv=8,
        null_kv=True,
        head_dim=SIZE_OR_NULL,
        **maybe_flags("attention_bias", "attention_out_bias", "mlp_bias"),
    ),
    "ministral3": llama_like("ministral3", kv=8),
    "helium": llama_like("helium", kv=20, **maybe_flags("attention_bias", "mlp_bias")),
    "exaone4": llama_like("exaone4", kv=32),
    "apertus": llama_like(
        "apertus", hidden_act=sometimes(st.sampled_from(["xielu", "silu"])), **maybe_flags("attention_bias")
    ),
    "hunyuan_v1_dense": llama_like("hunyuan_v1_dense", head_dim=EVEN, **maybe_flags("attention_bias")),
    "ernie4_5": llama_like("ernie4_5", kv=2, null_kv=True, head_dim=SIZE_OR_NULL, use_bias=sometimes(NULL_FLAG)),
    "bitnet": llama_like("bitnet", kv=5, null_kv=True, **maybe_flags("attention_bias")),
    "nemotron": llama_like("nemotron", kv=ABSENT, head_dim=SIZE_OR_NULL, **maybe_flags("attention_bias", "mlp_bias")),
    "qwen3_next": with_experts(
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
    "llama4_text": with_experts(
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
    "deepseek_v3": with_experts(
        deepseek("deepseek_v3", num_mtp_layers=sometimes(st.integers(0, 2))), "n_routed_experts", "num_local_experts"
    ),
    "deepseek_v2": with_experts(deepseek("deepseek_v2", **maybe_flags("mlp_bias")), "n_routed_experts", "num_experts"),
    "qwen2_moe": with_experts(
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
    "olmoe": with_experts(llama_like("olmoe", **maybe_flags("attention_bias")), "num_experts", "num_local_experts"),
    "granitemoe": with_experts(
        llama_like("granitemoe", **maybe_flags("attention_bias")), "num_local_experts", "num_local_experts"
    ),
    "granitemoeshared": with_experts(
        llama_like(
            "granitemoeshared",
            shared_intermediate_size=sometimes(st.integers(0, 20)),
            **maybe_flags("attention_bias"),
        ),
        "num_local_experts",
        "num_local_experts",
    ),
    "phimoe": with_experts(
        llama_like("phimoe", kv=8, **maybe_flags("attention_bias", "lm_head_bias")),
        "num_local_experts",
        "num_local_experts",
    ),
    "glm4_moe": with_experts(
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
    "ernie4_5_moe": with_experts(
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
    "hunyuan_v1_moe": hunyuan_v1_moe(),
    "minimax": with_experts(minimax(), "num_local_experts", "num_experts"),
    "minimax_m2": with_experts(llama_like("minimax_m2", kv=8), "num_local_experts", "num_experts"),
    "gpt_oss": with_experts(
        llama_like("gpt_oss", kv=8, **maybe_flags("attention_bias")),
        "num_local_experts",
        "num_experts",
    ),
}
