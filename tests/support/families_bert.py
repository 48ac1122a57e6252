"""BERT and what came of it, and other encoders of its time that transformers also builds as
decoders.
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
    LAYERS,
    NO_KEY,
    VOCABULARY,
    Config,
    Family,
    config,
    maybe_flags,
    nullable,
    sometimes,
)

WIDTH = sometimes(st.integers(1, 20))
ROWS = sometimes(st.integers(1, 5))
POSITIONS = sometimes(st.integers(12, 30))
CROSSING = st.sampled_from(
    [{}, {"is_decoder": False}, {"is_decoder": True}, {"is_decoder": True, "add_cross_attention": True}]
)


@st.composite
def bert_like(draw: DrawFn, model_type: str, *, whole: bool = True, **more: SearchStrategy[Any]) -> Config:
    """Types with BERT's keys; `whole` says that heads must divide the width."""
    heads = draw(HEADS)
    spare = 0 if whole else draw(st.integers(0, heads - 1))
    values = {
        "vocab_size": sometimes(VOCABULARY),
        "hidden_size": st.just(heads * draw(HEAD) + spare),
        "intermediate_size": sometimes(INNER),
        "num_hidden_layers": LAYERS,
        "num_attention_heads": st.just(heads),
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": ROWS,
        "tie_word_embeddings": sometimes(FLAG),
        **more,
    }
    return config(model_type, **{key: draw(value) for key, value in values.items()}, **draw(CROSSING))


@st.composite
def xlnet(draw: DrawFn) -> Config:
    names = {"d_model": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers"}
    heads, size = draw(HEADS), draw(EVEN)
    sizes = {"d_model": heads * size, "n_head": heads, "n_layer": draw(LAYERS)}
    named = {(names[key] if draw(FLAG) else key): value for key, value in sizes.items()}
    # Under their other names transformers reads them too late to share the width out itself.
    stated = sometimes(st.none()) if {"d_model", "n_head"} <= named.keys() else st.just(size)
    return config(
        "xlnet",
        **named,
        **{draw(st.sampled_from(["vocab_size", "n_token"])): draw(sometimes(VOCABULARY))},
        d_inner=draw(sometimes(INNER)),
        d_head=draw(stated),
        tie_word_embeddings=draw(sometimes(FLAG)),
    )


@st.composite
def xlm(draw: DrawFn) -> Config:
    names = {"emb_dim": "hidden_size", "n_heads": "num_attention_heads", "n_layers": "num_hidden_layers"}
    heads = draw(HEADS)
    sizes = {"emb_dim": heads * draw(HEAD), "n_heads": heads, "n_layers": draw(LAYERS)}
    return config(
        "xlm",
        **{(names[key] if draw(FLAG) else key): value for key, value in sizes.items()},
        **{draw(st.sampled_from(["vocab_size", "n_words"])): draw(sometimes(VOCABULARY))},
        max_position_embeddings=draw(POSITIONS),
        n_langs=draw(ROWS),
        **{key: draw(value) for key, value in maybe_flags("use_lang_emb", "causal", "tie_word_embeddings").items()},
    )


@st.composite
def reformer(draw: DrawFn) -> Config:
    """Positions on some axes, whose widths sum to that of the model, or in one table."""
    kinds = draw(st.lists(st.sampled_from(["lsh", "local"]), min_size=1, max_size=4))
    widths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axes = len(widths) + draw(st.integers(0, 1))
    more = 2 if len(set(kinds)) == 1 else 0
    return config(
        "reformer",
        is_decoder=True,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=sum(widths),
        num_hidden_layers=draw(sometimes(st.integers(1, len(kinds) + more))),
        num_attention_heads=draw(HEADS),
        attention_head_size=draw(sometimes(HEAD)),
        feed_forward_size=draw(sometimes(INNER)),
        attn_layers=kinds,
        axial_pos_embds=draw(sometimes(FLAG)),
        axial_pos_shape=draw(st.lists(st.integers(1, 5), min_size=axes, max_size=axes)),
        axial_pos_embds_dim=widths,
        max_position_embeddings=draw(POSITIONS),
    )


CPMANT = {
    "num_hidden_layers": LAYERS,
    "num_attention_heads": sometimes(HEADS),
    "prompt_length": sometimes(st.integers(1, 4)),
    "prompt_types": sometimes(st.integers(1, 4)),
    "segment_types": sometimes(st.integers(1, 4)),
    "vocab_size": sometimes(VOCABULARY),
    **dict.fromkeys(("hidden_size", "dim_head", "dim_ff", "position_bias_num_buckets"), INNER),
}


@st.composite
def cpmant(draw: DrawFn) -> Config:
    return config("cpmant", **{key: draw(value) for key, value in CPMANT.items()})


SMALL = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_hidden_layers": 2,
    "max_position_embeddings": 20,
}  # fmt: skip
NEEDS = {"add_cross_attention": {"is_decoder": True}}

CLS, LM_HEAD = ("cls.predictions.transform.dense.",), ("lm_head.dense.",)
PADDED = {"pad_token_id": 1}  # positions are counted from it on
DIVIDED = {"hidden_size": 16, "num_attention_heads": 4}


def like(kinds: tuple[str, ...], **more: Any) -> dict[str, Family]:
    return {name: Family(bert_like(name), SMALL, needs=NEEDS, **more) for name in kinds}


FAMILIES: dict[str, Family] = {
    **like(("bert", "megatron-bert"), beside=CLS),
    **like(
        ("camembert", "roberta", "xlm-roberta", "data2vec-text", "roberta-prelayernorm", "xlm-roberta-xl"),
        beside=LM_HEAD,
        runs=PADDED,
    ),
    "bert-generation": Family(bert_like("bert-generation", type_vocab_size=NO_KEY), SMALL, needs=NEEDS),
    "ernie": Family(
        bert_like("ernie", use_task_id=sometimes(FLAG), task_type_vocab_size=ROWS),
        SMALL,
        needs=NEEDS | {"task_type_vocab_size": {"use_task_id": True}},
        beside=CLS,
    ),
    "electra": Family(
        bert_like("electra", whole=False, embedding_size=WIDTH),
        SMALL,
        needs=NEEDS,
        beside=("electra.embeddings_project.", "generator_predictions.dense."),
        any_width=True,
        runs=DIVIDED,
    ),
    "xmod": Family(
        bert_like(
            "xmod",
            adapter_reduction_factor=sometimes(st.integers(1, 3)),
            **maybe_flags("pre_norm", "adapter_layer_norm"),
            languages=sometimes(st.lists(st.sampled_from(["en_XX", "de-DE", "x1", "7"]), max_size=3)),
        ),
        SMALL,
        needs=NEEDS,
        others={"languages": [["de_DE"]]},
        beside=LM_HEAD,
        runs=PADDED | {"languages": ["en_XX"], "default_language": "en_XX"},
    ),
    "rembert": Family(
        bert_like("rembert", tie_word_embeddings=NO_KEY, input_embedding_size=WIDTH, output_embedding_size=WIDTH),
        {**SMALL, "input_embedding_size": 6, "output_embedding_size": 9},
        needs=NEEDS,
        beside=("rembert.encoder.embedding_hidden_mapping_in.", "cls.predictions.dense."),
    ),
    "roformer": Family(
        bert_like("roformer", whole=False, embedding_size=nullable(st.integers(1, 20))),
        SMALL,
        needs=NEEDS,
        beside=("roformer.embeddings_project.", *CLS),
        any_width=True,
        runs=DIVIDED,
    ),
    "roc_bert": Family(
        bert_like(
            "roc_bert",
            pronunciation_embed_dim=WIDTH,
            pronunciation_vocab_size=ROWS,
            shape_embed_dim=WIDTH,
            shape_vocab_size=ROWS,
            **maybe_flags("enable_pronunciation", "enable_shape", "concat_input"),
        ),
        {
            **SMALL,
            "pronunciation_embed_dim": 6,
            "shape_embed_dim": 5,
            "pronunciation_vocab_size": 8,
            "shape_vocab_size": 9,
        },
        needs=NEEDS,
        beside=("roc_bert.embeddings.map_inputs_layer.", *CLS),
    ),
    "big_bird": Family(
        bert_like(
            "big_bird",
            use_bias=sometimes(FLAG),
            attention_type=sometimes(st.sampled_from(["block_sparse", "original_full"])),
        ),
        SMALL,
        needs=NEEDS,
        beside=("bert.pooler.", *CLS),
        counted=False,
    ),
    "xlnet": Family(
        xlnet(), {"vocab_size": 40, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 12}, attends=False
    ),
    "xlm": Family(
        xlm(),
        {"vocab_size": 40, "emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 20},
        needs={
            "asm": {"asm_cutoffs": [10], "asm_div_value": 4},
            "asm_cutoffs": {"asm": True, "asm_cutoffs": [10], "asm_div_value": 4},
            "asm_div_value": {"asm": True, "asm_cutoffs": [10], "asm_div_value": 4},
            "use_lang_emb": {"n_langs": 3},
        },
        others={"asm_cutoffs": [[9]]},
        runs={"pad_token_id": 2},
    ),
    "reformer": Family(
        reformer(),
        {
            "vocab_size": 40,
            "hidden_size": 16,
            "num_attention_heads": 2,
            "attention_head_size": 4,
            "feed_forward_size": 12,
            "axial_pos_shape": [3, 5],
            "axial_pos_embds_dim": [4, 12],
            "attn_layers": ["lsh", "local"],
            "axial_pos_embds": False,
            "max_position_embeddings": 20,
        },
        lacking={"is_decoder": True},
        needs={key: {"axial_pos_embds": True} for key in ("axial_pos_shape", "axial_pos_embds_dim")},
        others={
            "attn_layers": [["lsh", "lsh"]],
            "axial_pos_shape": [[4, 5]],
            "axial_pos_embds_dim": [[5, 11]],
            "num_hidden_layers": [1],
        },
        attends=False,
        any_width=True,
    ),
    "cpmant": Family(
        cpmant(),
        {
            "vocab_size": 40,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "dim_head": 3,
            "dim_ff": 12,
            "prompt_types": 2,
            "prompt_length": 3,
            "segment_types": 4,
        },
        counted=False,
        runs={"prompt_types": 3},
        any_width=True,
    ),
}
