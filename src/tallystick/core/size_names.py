"""The names that courses, books and papers have for one size: ``emb_dim`` and ``d_model``."""

from __future__ import annotations

from collections.abc import Iterable

# Names of one size. A name may stand in two lines: `hidden_size` is a width of the model in
# transformers, and the hidden layer of an MLP elsewhere.
SAME = (
    ("vocab_size", "n_vocab", "num_vocab", "vocabulary_size", "num_embeddings", "vocab", "V"),
    (
        "d_model", "emb_dim", "n_embd", "hidden_size", "embed_dim", "embedding_dim", "n_embed", "emb_size", "model_dim",
        "dim", "d",
    ),
    ("n_heads", "num_heads", "n_head", "num_attention_heads", "nhead", "heads", "H"),
    ("n_kv_heads", "num_key_value_heads", "num_kv_heads"),
    ("head_dim", "d_head", "head_size", "dim_head", "h"),
    ("n_layers", "num_layers", "n_layer", "num_hidden_layers", "n_blocks", "layers", "L"),
    (
        "context_length", "max_len", "n_positions", "block_size", "context_size", "max_seq_len", "max_length", "n_ctx",
        "seq_len", "max_position_embeddings", "T",
    ),
    (
        "d_ff", "dim_feedforward", "n_hidden", "hidden_dim", "intermediate_size", "n_inner", "ffn_dim", "d_hidden",
        "ff_dim", "mlp_dim",
    ),
    ("width", "n_hidden", "hidden_dim", "d_hidden", "hidden_size", "hidden", "dim_feedforward", "d_ff"),
    ("inputs", "in_features", "input_dim", "input_size", "n_inputs", "n_in", "d_in"),
    ("outputs", "out_features", "output_dim", "output_size", "n_outputs", "n_out", "d_out"),
    ("tie_word_embeddings", "tie_weights", "tie_embeddings", "weight_tying"),
    ("bias", "use_bias"),
)  # fmt: skip


def aliases_of(keys: Iterable[str]) -> dict[str, str]:
    """Return other names of config keys, each with the key that it stands for.

    A name of two keys stands for the first.

    >>> aliases_of(["vocab_size", "bias"])["n_vocab"]
    'vocab_size'
    """
    known = list(keys)
    found: dict[str, str] = {}
    for key in known:
        for name in (name for names in SAME if key in names for name in names):
            if name not in known:
                found.setdefault(name, key)
    return found
