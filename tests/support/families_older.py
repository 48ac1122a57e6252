"""Small random configs of the first GPTs, and of the decoders of BART's family."""

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
    VOCABULARY,
    Config,
    Family,
    config,
    divisors,
    dotted,
    gpt2_like,
    llama_like,
    maybe_flags,
    nullable,
    sometimes,
)

HEAD_SIZE = st.sampled_from([4, 6, 8])  # transformers computes no sines for a width of 2
POSITIONS = sometimes(st.integers(1, 30))


@st.composite
def headed(draw: DrawFn, model_type: str, **names: Any) -> Config:
    """A width that its heads divide, and how many layers there are, under the `names` of a type;
    what else it has.

    A key that has aliases is named by all of them, one of which is drawn.
    """
    heads = draw(HEADS)
    sizes = {"width": heads * draw(HEAD_SIZE), "heads": heads, "layers": draw(LAYERS)}
    sized = {draw(st.sampled_from(names.pop(what))): size for what, size in sizes.items()}
    return config(model_type, **sized, **{key: draw(value) for key, value in names.items()})


def bart_like(model_type: str, **more: SearchStrategy[Any]) -> SearchStrategy[Config]:
    """Sizes of the decoder, and those of an encoder, which is not there."""
    common = {
        "width": ["d_model", "hidden_size"],
        "heads": ["decoder_attention_heads"],
        "layers": ["decoder_layers"],
        "vocab_size": sometimes(VOCABULARY),
        "decoder_ffn_dim": sometimes(INNER),
        "max_position_embeddings": POSITIONS,
        "encoder_layers": sometimes(LAYERS),
        "scale_embedding": sometimes(FLAG),
        "tie_word_embeddings": sometimes(FLAG),
    }
    return headed(model_type, **{**common, **more})


@st.composite
def transformer(draw: DrawFn, *, width: SearchStrategy[int], **more: SearchStrategy[Any]) -> Config:
    """The config of one of BLT's parts."""
    heads = draw(HEADS)
    drawn = {
        "hidden_size": heads * draw(width),
        "num_attention_heads": heads,
        "num_hidden_layers": draw(LAYERS),
        "num_key_value_heads": draw(nullable(st.sampled_from(divisors(heads)))),
        "intermediate_size": draw(sometimes(st.integers(0, 40))),
        **{key: draw(value) for key, value in more.items()},
    }
    return {key: value for key, value in drawn.items() if value is not ABSENT}


def blt() -> SearchStrategy[Config]:
    """What would be large by default is always there: other tests put these models into memory."""
    crossing = {
        "vocab_size": sometimes(VOCABULARY),
        "cross_attn_k": sometimes(st.integers(1, 3)),
        "cross_attn_all_layers": nullable(FLAG),
    }
    number = sometimes(st.integers(1, 9))
    return st.builds(
        config,
        st.just("blt"),
        vocab_size=sometimes(VOCABULARY),
        cross_attn_k=sometimes(st.integers(1, 3)),
        encoder_hash_byte_group_size=nullable(st.lists(st.integers(1, 9), max_size=3)),
        encoder_hash_byte_group_vocab=st.integers(1, 9),
        encoder_hash_byte_group_nb_functions=number,
        patch_in_forward=nullable(FLAG),
        encoder_config=transformer(width=EVEN, **crossing),
        decoder_config=transformer(width=EVEN, hidden_size_global=number, **crossing),
        global_config=transformer(width=EVEN),
        patcher_config=transformer(width=EVEN, vocab_size=sometimes(VOCABULARY)),
        tie_word_embeddings=sometimes(FLAG),
    ).map(dotted)


PART = {"hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 12}
BLT = ("encoder_config", "decoder_config", "global_config", "patcher_config")
GPT = {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2}
SIZES = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
BART = {
    "vocab_size": 40, "d_model": 16, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 12,
    "max_position_embeddings": 20,
}  # fmt: skip

FAMILIES: dict[str, Family] = {
    "openai-gpt": Family(
        headed(
            "openai-gpt",
            width=["n_embd", "hidden_size"],
            heads=["n_head", "num_attention_heads"],
            layers=["n_layer", "num_hidden_layers"],
            vocab_size=sometimes(VOCABULARY),
            n_positions=POSITIONS,
            tie_word_embeddings=sometimes(FLAG),
        ),
        GPT,
    ),
    "gpt-sw3": Family(gpt2_like("gpt-sw3", n_positions=POSITIONS, add_cross_attention=sometimes(FLAG)), GPT),
    "ctrl": Family(
        headed(
            "ctrl",
            width=["n_embd", "hidden_size"],
            heads=["n_head", "num_attention_heads"],
            layers=["n_layer", "num_hidden_layers"],
            vocab_size=sometimes(VOCABULARY),
            dff=sometimes(INNER),
            tie_word_embeddings=sometimes(FLAG),
        ),
        {**GPT, "dff": 12},
    ),
    "gpt_neox_japanese": Family(
        headed(
            "gpt_neox_japanese",
            width=["hidden_size"],
            heads=["num_attention_heads"],
            layers=["num_hidden_layers"],
            vocab_size=sometimes(VOCABULARY),
            intermediate_multiple_size=sometimes(st.integers(1, 5)),
            tie_word_embeddings=sometimes(FLAG),
        ),
        SIZES,
    ),
    "biogpt": Family(
        headed(
            "biogpt",
            width=["hidden_size"],
            heads=["num_attention_heads"],
            layers=["num_hidden_layers"],
            vocab_size=sometimes(VOCABULARY),
            intermediate_size=sometimes(INNER),
            max_position_embeddings=POSITIONS,
            tie_word_embeddings=sometimes(FLAG),
        ),
        {**SIZES, "intermediate_size": 12, "max_position_embeddings": 20},
    ),
    "xglm": Family(
        headed(
            "xglm",
            width=["d_model", "hidden_size"],
            heads=["attention_heads", "num_attention_heads"],
            layers=["num_layers", "num_hidden_layers"],
            vocab_size=sometimes(VOCABULARY),
            ffn_dim=sometimes(INNER),
            add_cross_attention=sometimes(FLAG),
            tie_word_embeddings=sometimes(FLAG),
        ),
        {"vocab_size": 40, "d_model": 16, "num_layers": 2, "attention_heads": 4, "ffn_dim": 12},
    ),
    **{
        model_type: Family(bart_like(model_type), BART)
        for model_type in ("bart", "mbart", "plbart", "mvp", "pegasus", "blenderbot", "blenderbot-small")
    },
    "marian": Family(
        bart_like("marian", decoder_vocab_size=nullable(VOCABULARY)), BART, runs={"decoder_vocab_size": None}
    ),
    "bigbird_pegasus": Family(bart_like("bigbird_pegasus", use_bias=sometimes(FLAG)), BART),
    "trocr": Family(
        bart_like(
            "trocr",
            heads=["decoder_attention_heads", "num_attention_heads"],
            layers=["decoder_layers", "num_hidden_layers"],
            pad_token_id=st.just(1),  # with which its sines begin
            cross_attention_hidden_size=nullable(st.integers(1, 20)),
            **maybe_flags("use_learned_position_embeddings", "layernorm_embedding"),
        ),
        BART,
    ),
    "whisper": Family(
        bart_like("whisper", max_target_positions=POSITIONS),
        {**BART, "max_target_positions": 20},
    ),
    "prophetnet": Family(
        headed(
            "prophetnet",
            width=["hidden_size"],
            heads=["num_decoder_attention_heads"],
            layers=["num_decoder_layers"],
            vocab_size=sometimes(VOCABULARY),
            decoder_ffn_dim=sometimes(INNER),
            max_position_embeddings=POSITIONS,
            ngram=sometimes(st.integers(1, 4)),
            num_buckets=sometimes(st.integers(1, 9)),
            add_cross_attention=sometimes(FLAG),
            tie_word_embeddings=sometimes(FLAG),
        ),
        {
            "vocab_size": 40, "hidden_size": 16, "num_decoder_layers": 2, "num_decoder_attention_heads": 4,
            "decoder_ffn_dim": 12, "max_position_embeddings": 20,
        },
        beside=("prophetnet.decoder.ngram_embeddings.",),
        counted=False,
        runs={"pad_token_id": 0},
    ),
    "moshi": Family(
        llama_like("moshi", whole=True, ffn_dim=sometimes(INNER.map(lambda half: 2 * half))),
        {**SIZES, "num_key_value_heads": 2, "ffn_dim": 12},
    ),
    "blt": Family(
        blt(),
        {
            "vocab_size": 40, "encoder_hash_byte_group_vocab": 9,
            **dotted({f"{name}_config": PART for name in ("encoder", "decoder", "global", "patcher")}),
        },
        others={"encoder_hash_byte_group_size": [[2, 3]]},
        beside=(
            "model.local_encoder.patch_embedding_projection.",
            "model.local_decoder.patch_embedding_projection.",
            "model.global_transformer.token_embedding_projection.",
            "model.patcher.lm_head.",
        ),
        attends=False,
    ),
}  # fmt: skip
