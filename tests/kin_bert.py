"""BERT and what came of it: encoders that transformers also builds as decoders."""

from __future__ import annotations

from typing import Any

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
    Kin,
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


SMALL = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_hidden_layers": 2,
    "max_position_embeddings": 20,
}  # fmt: skip
NEEDS = {"add_cross_attention": {"is_decoder": True}}

CLS, LM_HEAD = ("cls.predictions.transform.dense.",), ("lm_head.dense.",)
PADDED = {"pad_token_id": 1}  # positions are counted from it on
DIVIDED = {"hidden_size": 16, "num_attention_heads": 4}


def like(kinds: tuple[str, ...], **more: Any) -> dict[str, Kin]:
    return {name: Kin(bert_like(name), SMALL, needs=NEEDS, **more) for name in kinds}


KIN: dict[str, Kin] = {
    **like(("bert", "megatron-bert"), beside=CLS),
    **like(
        ("camembert", "roberta", "xlm-roberta", "data2vec-text", "roberta-prelayernorm", "xlm-roberta-xl"),
        beside=LM_HEAD,
        runs=PADDED,
    ),
    "bert-generation": Kin(bert_like("bert-generation", type_vocab_size=NO_KEY), SMALL, needs=NEEDS),
    "ernie": Kin(
        bert_like("ernie", use_task_id=sometimes(FLAG), task_type_vocab_size=ROWS),
        SMALL,
        needs=NEEDS | {"task_type_vocab_size": {"use_task_id": True}},
        beside=CLS,
    ),
    "electra": Kin(
        bert_like("electra", whole=False, embedding_size=WIDTH),
        SMALL,
        needs=NEEDS,
        beside=("electra.embeddings_project.", "generator_predictions.dense."),
        any_width=True,
        runs=DIVIDED,
    ),
    "xmod": Kin(
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
    "rembert": Kin(
        bert_like("rembert", tie_word_embeddings=NO_KEY, input_embedding_size=WIDTH, output_embedding_size=WIDTH),
        {**SMALL, "input_embedding_size": 6, "output_embedding_size": 9},
        needs=NEEDS,
        beside=("rembert.encoder.embedding_hidden_mapping_in.", "cls.predictions.dense."),
    ),
    "roformer": Kin(
        bert_like("roformer", whole=False, embedding_size=nullable(st.integers(1, 20))),
        SMALL,
        needs=NEEDS,
        beside=("roformer.embeddings_project.", *CLS),
        any_width=True,
        runs=DIVIDED,
    ),
    "roc_bert": Kin(
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
    "big_bird": Kin(
        bert_like(
            "big_bird",
            use_bias=sometimes(FLAG),
            attention_type=sometimes(st.sampled_from(["block_sparse", "original_full"])),
        ),
        SMALL,
        needs=NEEDS,
        beside=("bert.pooler.", *CLS),
        attends=False,
    ),
}
