"""Small random configs of dense decoders: the GPTs, Llama and those after it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from drawing import (
    ABSENT,
    COMMON,
    EVEN,
    FLAG,
    HEAD,
    HEADS,
    INNER,
    LAYERS,
    NO_KEY,
    NULL_FLAG,
    SIZE_OR_NULL,
    VOCABULARY,
    Config,
    Family,
    config,
    divisors,
    gpt2_like,
    llama_like,
    maybe_flags,
    nullable,
    sometimes,
)

GPT = {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2}
GPT_NEO = {"vocab_size": 40, "hidden_size": 16, "num_heads": 2, "num_layers": 2}
GEMMA_3N = {
    **COMMON, "num_hidden_layers": 4, "num_kv_shared_layers": 1, "vocab_size_per_layer_input": 30,
    "hidden_size_per_layer_input": 6, "laurel_rank": 3,
}  # fmt: skip
# Heads that do not fill the width do not run.
FILLED = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4}


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


FAMILIES: dict[str, Family] = {
    "gpt2": Family(
        gpt2_like("gpt2", n_positions=sometimes(st.integers(1, 30)), add_cross_attention=sometimes(FLAG)), GPT
    ),
    "gpt_neo": Family(
        gpt_neo(),
        {**GPT_NEO, "attention_types": [[["global"], 2]], "max_position_embeddings": 20},
    ),
    "gpt_neox": Family(gpt_neox()),
    "gpt_bigcode": Family(gpt_bigcode(), GPT, needs={"add_cross_attention": {"multi_query": False}}),
    "codegen": Family(
        gpt2_like("codegen", rotary_dim=sometimes(st.sampled_from([2, 4]))),
        GPT,
        counted=False,
        small_runs={"n_head": 4, "rotary_dim": 4},
    ),
    "mpt": Family(mpt(), {"vocab_size": 40, "d_model": 16, "n_heads": 2, "n_layers": 2}),
    "gptj": Family(
        gpt2_like("gptj", rotary_dim=sometimes(st.sampled_from([2, 4]))),
        GPT,
        runs={"rotary_dim": 2},  # rotated elements go in pairs
    ),
    "opt": Family(
        opt(),
        {"vocab_size": 40, "hidden_size": 16, "ffn_dim": 12, "num_attention_heads": 2, "num_hidden_layers": 2},
        needs={"_remove_final_layer_norm": {"do_layer_norm_before": True}},
    ),
    "bloom": Family(
        bloom(), {"vocab_size": 40, "hidden_size": 16, "n_head": 2, "n_layer": 2}, aliases={"n_embed": "hidden_size"}
    ),
    "falcon": Family(
        falcon(),
        needs={"num_kv_heads": {"new_decoder_architecture": True}},
        aliases={"n_embed": "hidden_size"},
        # Drawn, some of these contradict each other.
        runs={"num_ln_in_parallel_attn": None, "parallel_attn": True, "num_kv_heads": None},
    ),
    "llama": Family(
        llama_like("llama", head_dim=SIZE_OR_NULL, whole=True, **maybe_flags("attention_bias", "mlp_bias"))
    ),
    "mistral": Family(llama_like("mistral", head_dim=SIZE_OR_NULL, kv=8)),
    "qwen2": Family(llama_like("qwen2", kv=32, **maybe_flags("use_sliding_window"))),
    "qwen3": Family(llama_like("qwen3", kv=32, **maybe_flags("attention_bias", "use_sliding_window"))),
    "nanochat": Family(llama_like("nanochat", **maybe_flags("attention_bias"))),
    "gemma": Family(llama_like("gemma", kv=16, **maybe_flags("attention_bias"))),
    "gemma2": Family(llama_like("gemma2", kv=4, whole=True, **maybe_flags("attention_bias"))),
    "gemma3_text": Family(llama_like("gemma3_text", kv=4, whole=True, **maybe_flags("attention_bias"))),
    "gemma3n_text": Family(
        gemma3n(),
        GEMMA_3N,
        needs={"layer_types": {"num_kv_shared_layers": 6}},  # more than there are
        beside=(
            *[f"model.layers.{n}.{name}" for n in range(35) for name in ("altup.", "laurel.", "per_layer_")],
            "model.altup_",
            "model.per_layer_model_projection.",
        ),
    ),
    "phi": Family(
        llama_like("phi", whole=True, **maybe_flags("qk_layernorm")),
        runs={"partial_rotary_factor": 1.0, "qk_layernorm": False},  # it norms heads of one width alone
    ),
    "phi3": Family(llama_like("phi3")),
    "starcoder2": Family(llama_like("starcoder2", kv=2, head_dim=SIZE_OR_NULL, **maybe_flags("use_bias"))),
    "olmo2": Family(llama_like("olmo2", **maybe_flags("attention_bias"))),
    "granite": Family(llama_like("granite", **maybe_flags("attention_bias", "mlp_bias"))),
    "olmo": Family(llama_like("olmo", **maybe_flags("attention_bias"))),
    "olmo3": Family(llama_like("olmo3", **maybe_flags("attention_bias"))),
    "stablelm": Family(
        llama_like(
            "stablelm", kv=32, head_dim=NO_KEY, **maybe_flags("use_qkv_bias", "qk_layernorm", "use_parallel_residual")
        ),
        runs={"partial_rotary_factor": 1.0},
    ),
    "cohere": Family(llama_like("cohere", use_qk_norm=sometimes(NULL_FLAG), **maybe_flags("attention_bias"))),
    "cohere2": Family(llama_like("cohere2", **maybe_flags("attention_bias"))),
    "glm": Family(llama_like("glm", kv=2, **maybe_flags("attention_bias")), runs={"partial_rotary_factor": 1.0}),
    "glm4": Family(llama_like("glm4", kv=2, **maybe_flags("attention_bias")), runs={"partial_rotary_factor": 1.0}),
    "smollm3": Family(llama_like("smollm3", kv=4, null_kv=True, **maybe_flags("attention_bias", "mlp_bias"))),
    "arcee": Family(
        llama_like("arcee", head_dim=SIZE_OR_NULL, whole=True, **maybe_flags("attention_bias", "mlp_bias"))
    ),
    "seed_oss": Family(
        llama_like(
            "seed_oss",
            kv=8,
            null_kv=True,
            head_dim=SIZE_OR_NULL,
            **maybe_flags("attention_bias", "attention_out_bias", "mlp_bias"),
        )
    ),
    "ministral3": Family(llama_like("ministral3", kv=8)),
    "helium": Family(llama_like("helium", kv=20, **maybe_flags("attention_bias", "mlp_bias")), runs=FILLED),
    "exaone4": Family(llama_like("exaone4", kv=32)),
    "apertus": Family(
        llama_like("apertus", hidden_act=sometimes(st.sampled_from(["xielu", "silu"])), **maybe_flags("attention_bias"))
    ),
    "hunyuan_v1_dense": Family(
        llama_like("hunyuan_v1_dense", head_dim=EVEN, **maybe_flags("attention_bias")), lacking={"head_dim": 16}
    ),
    "ernie4_5": Family(
        llama_like("ernie4_5", kv=2, null_kv=True, head_dim=SIZE_OR_NULL, use_bias=sometimes(NULL_FLAG))
    ),
    "bitnet": Family(llama_like("bitnet", kv=5, null_kv=True, **maybe_flags("attention_bias")), runs=FILLED),
    "nemotron": Family(
        llama_like("nemotron", kv=ABSENT, head_dim=SIZE_OR_NULL, **maybe_flags("attention_bias", "mlp_bias")),
        lacking={"num_key_value_heads": 8},
        runs={"partial_rotary_factor": 1.0},
    ),
}
