"""Google's BERT, with its masked language model's head."""

from __future__ import annotations

from tallystick.presets._shape import Models, Values


def _bert(vocabulary: int, d: int, layers: int, heads: int) -> Values:
    return {
        "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": vocabulary, "hidden_size": d,
        "intermediate_size": 4 * d, "num_hidden_layers": layers, "num_attention_heads": heads,
        "max_position_embeddings": 512, "type_vocab_size": 2, "tie_word_embeddings": True, "dtype": "float32",
    }  # fmt: skip


# google-bert/bert-…: Devlin et al. 2018, "BERT", section 3, and the vocabularies of its release.
# The paper's 110M and 340M have a pooler too: ``BertModel``.
_BERT: Models = {
    "bert-base-uncased": ("2018-10", _bert(30522, 768, 12, 12)),
    "bert-base-cased": ("2018-10", _bert(28996, 768, 12, 12)),
    "bert-large-uncased": ("2018-10", _bert(30522, 1024, 24, 16)),
    "bert-large-cased": ("2018-10", _bert(28996, 1024, 24, 16)),
}

FAMILIES = {"BERT": _BERT}
