"""Types that transformers lacks: a small config of each, what is published of its size, and how its
configs are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    FLAG,
    HEAD,
    HEADS,
    INNER,
    LAYERS,
    NO_KEY,
    VOCABULARY,
    Config,
    config,
    divisors,
    llama_like,
    maybe_flags,
    nullable,
    sometimes,
)


class Unpackaged(NamedTuple):
    """What the tests know of a type that transformers lacks."""

    small: Config  # a complete config of a few thousand parameters
    published: Sequence[tuple[Config, int]] = ()  # configs, and what their authors or a checkpoint's index count
    # Compared with the model of the same name in skeletons.py; None: there is no such model.
    drawn: SearchStrategy[Config] | None = None
    recognised: bool = False  # by its keys, where a config does not name its type


@st.composite
def book_gpt(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    return {
        "model_type": "book_gpt",
        "vocab_size": draw(VOCABULARY),
        "context_length": draw(st.integers(1, 30)),
        "emb_dim": heads * draw(HEAD),
        "n_heads": heads,
        "n_layers": draw(LAYERS),
        "drop_rate": 0.1,
        **draw(st.fixed_dictionaries({}, optional={"qkv_bias": FLAG, "tie_word_embeddings": FLAG})),
    }


@st.composite
def book_llama(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    options = {
        "n_kv_groups": st.sampled_from([None, *divisors(heads)]),
        "head_dim": st.one_of(st.none(), HEAD),
        "qk_norm": FLAG,
        "qkv_bias": FLAG,
        "tie_word_embeddings": FLAG,
    }
    return {
        "model_type": "book_llama",
        "vocab_size": draw(VOCABULARY),
        "context_length": draw(st.integers(1, 30)),
        "emb_dim": heads * draw(HEAD),
        "n_heads": heads,
        "n_layers": draw(LAYERS),
        "hidden_dim": draw(INNER),
        **draw(st.fixed_dictionaries({}, optional=options)),
    }


@st.composite
def nanogpt(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    return {
        "model_type": "nanogpt",
        "n_embd": heads * draw(HEAD),
        "n_head": heads,
        "n_layer": draw(LAYERS),
        **draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "vocab_size": VOCABULARY,
                    "block_size": st.integers(1, 30),
                    "bias": FLAG,
                    "tie_word_embeddings": FLAG,
                },
            )
        ),
    }


@st.composite
def exaone(draw: DrawFn) -> Config:
    """Layers under one of two names; the width that its MLP has where none is stated."""
    heads = draw(HEADS)
    return config(
        "exaone",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * draw(HEAD),
        intermediate_size=draw(nullable(INNER)),
        **{draw(st.sampled_from(["num_layers", "num_hidden_layers"])): draw(LAYERS)},
        num_attention_heads=heads,
        num_key_value_heads=draw(nullable(st.sampled_from(divisors(heads)))),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def qwen(draw: DrawFn) -> Config:
    """Heads whose size is stated, whatever the width; an MLP whose stated width may be odd."""
    return config(
        "qwen",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=draw(st.integers(1, 40)),
        intermediate_size=draw(sometimes(st.integers(2, 40))),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=draw(HEADS),
        kv_channels=draw(sometimes(HEAD)),
        no_bias=draw(sometimes(FLAG)),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def baichuan(draw: DrawFn) -> Config:
    heads = draw(HEADS)
    return config(
        "baichuan",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * draw(HEAD),
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


BOOK_GPT = {
    "vocab_size": 50257, "context_length": 1024, "emb_dim": 768, "n_heads": 12, "n_layers": 12, "drop_rate": 0.1,
    "qkv_bias": False,
}  # fmt: skip
BOOK_LLAMA = {
    "vocab_size": 32000, "context_length": 4096, "emb_dim": 4096, "n_heads": 32, "n_layers": 32, "hidden_dim": 11008,
}  # fmt: skip
BOOK_QWEN_3 = {
    "vocab_size": 151_936, "context_length": 40_960, "emb_dim": 1024, "n_heads": 16, "n_layers": 28, "hidden_dim": 3072,
    "head_dim": 128, "qk_norm": True, "n_kv_groups": 8,
}  # fmt: skip
SHORT_BOOK = {"vocab_size": 9, "context_length": 4, "emb_dim": 8, "n_layers": 1, "n_heads": 2}
NANO_GPT = {"block_size": 1024, "n_embd": 768}
LLAMA_LIKE = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip
EXAONE_7_8B = {
    "vocab_size": 102_400, "hidden_size": 4096, "intermediate_size": 14_336, "num_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "tie_word_embeddings": False,
}  # fmt: skip
INTERNLM2 = {"vocab_size": 92_544, "num_key_value_heads": 8, "bias": False}
INTERNLM2_1_8B = {
    **INTERNLM2, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 16,
}  # fmt: skip
INTERNLM2_7B = {**INTERNLM2, "intermediate_size": 14_336}
INTERNLM2_20B = {
    **INTERNLM2, "hidden_size": 6144, "intermediate_size": 16_384, "num_hidden_layers": 48, "num_attention_heads": 48,
}  # fmt: skip
SMALL = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
QWEN_72B = {
    "vocab_size": 152_064, "hidden_size": 8192, "intermediate_size": 49_152, "num_hidden_layers": 80,
    "num_attention_heads": 64,
}  # fmt: skip
BAICHUAN_7B = {
    "hidden_size": 4096, "intermediate_size": 11_008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "max_position_embeddings": 4096,
}  # fmt: skip

# A line for each type.
UNPACKAGED: dict[str, Unpackaged] = {
    "palm": Unpackaged({"d_model": 8, "n_layers": 1, "n_heads": 2}),
    "gopher": Unpackaged({"d_model": 8, "n_layers": 1, "n_heads": 2, "kv_size": 4}),
    "book_gpt": Unpackaged(
        SHORT_BOOK,
        [
            (BOOK_GPT, 163_009_536),
            ({**BOOK_GPT, "tie_word_embeddings": True}, 124_412_160),
            ({**BOOK_GPT, "qkv_bias": True, "tie_word_embeddings": True}, 124_439_808),
        ],
        book_gpt(),
        recognised=True,
    ),
    "book_llama": Unpackaged(
        {**SHORT_BOOK, "hidden_dim": 8},
        [
            (BOOK_LLAMA, 6_738_415_616),
            ({**BOOK_LLAMA, "vocab_size": 128_256, "hidden_dim": 14_336, "n_kv_groups": 8}, 8_030_261_248),
            ({**BOOK_QWEN_3, "tie_word_embeddings": True}, 596_049_920),
        ],
        book_llama(),
        recognised=True,
    ),
    "nanogpt": Unpackaged(
        {},
        [  # its README's 124M: GPT-2's count, with the vocabulary padded from 50,257 to 50,304 rows
            (NANO_GPT, 124_439_808 + (50_304 - 50_257) * 768),
            ({**NANO_GPT, "vocab_size": 50_257}, 124_439_808),
        ],
        nanogpt(),
        recognised=True,
    ),
    # Elements that MLX counts in a checkpoint of EXAONE-3.5-7.8B-Instruct.
    "exaone": Unpackaged({**LLAMA_LIKE, "num_layers": 2}, [(EXAONE_7_8B, 7_818_448_896)], exaone()),
    # Elements of the files on the hub; `total_size` of the first two's index is twice that, in
    # bytes.
    "internlm2": Unpackaged(
        {**LLAMA_LIKE, "num_hidden_layers": 2},
        [(INTERNLM2_1_8B, 1_889_110_016), (INTERNLM2_7B, 7_737_708_544), (INTERNLM2_20B, 19_861_149_696)],
        llama_like("internlm2", head_dim=NO_KEY, **maybe_flags("bias")),
    ),
    # Half of `total_size`, in bytes, in the checkpoints' indexes.
    "qwen": Unpackaged({**SMALL, "kv_channels": 4}, [({}, 7_721_324_544), (QWEN_72B, 72_287_920_128)], qwen()),
    # Both stand in the table of Baichuan-13B's model card.
    "baichuan": Unpackaged(SMALL, [(BAICHUAN_7B, 7_000_559_616), ({}, 13_264_901_120)], baichuan()),
}

# Of those that a skeleton is compared with.
DRAWN: dict[str, SearchStrategy[Config]] = {name: of.drawn for name, of in UNPACKAGED.items() if of.drawn is not None}
