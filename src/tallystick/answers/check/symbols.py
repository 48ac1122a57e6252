"""Sizes of a model under each name that texts and configs use for them."""

from __future__ import annotations

from tallystick.core.ledger import Ledger

_SAME = (
    ("n_embd", "hidden_size", "emb_dim", "d_model", "n_embed"),
    ("n_layer", "n_layers", "num_hidden_layers", "num_layers"),
    ("n_head", "n_heads", "num_attention_heads", "num_heads"),
    ("num_key_value_heads", "n_kv_heads", "num_kv_heads"),
    ("vocab_size", "n_vocab"),
    ("n_positions", "n_ctx", "block_size", "context_length", "max_position_embeddings"),
    ("intermediate_size", "n_inner", "d_ff", "ffn_dim"),
)
TEXT = "text_config_"  # prefix of the symbols of a nested language model


def sizes(ledger: Ledger) -> dict[str, int]:
    """Return the config keys used in the shapes, with their values, and their aliases.

    >>> from tallystick import count
    >>> sizes(count("gpt2"))["d_model"]
    768
    """
    symbols = ledger.model.symbols
    found = {name: int(value) for name, value in symbols.items()}
    # For a multimodal model, the plain names mean the sizes of its language model.
    found |= {name.removeprefix(TEXT): value for name, value in found.items() if name.startswith(TEXT)} | found
    for names in _SAME:
        for value in [found[name] for name in names if name in found][:1]:
            found |= {name: value for name in names if name not in found}
    return found
