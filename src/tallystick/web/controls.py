"""Describe a model's sliders: config keys that change a tensor, with their possible values."""

from __future__ import annotations

from typing import Any

from tallystick.core.ledger import Ledger

# Common words for config keys. Other keys get a slider too, under their own name.
WORDS = {
    "layers": ("n_layer", "n_layers", "num_hidden_layers", "num_layers"),
    "width": ("n_embd", "hidden_size", "emb_dim", "d_model", "n_embed"),
    "heads": ("n_head", "n_heads", "num_attention_heads", "num_heads"),
    "KV heads": ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_kv_groups"),
    "vocabulary": ("vocab_size", "n_vocab"),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts"),
    "experts per token": ("num_experts_per_tok", "num_experts_per_token"),
    "positions": ("n_positions", "n_ctx", "block_size", "context_length"),
    "inner width": ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim", "moe_intermediate_size"),
    "tying": ("tie_word_embeddings",),
}
_WORD_OF = {key: word for word, keys in WORDS.items() for key in keys}
STOPS = 48  # most values of a slider
REACH = 4  # a slider reaches up to 4 times the config's value, or to 8


def controls(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the controls in order of `WORDS`: ``key``, ``word``, ``value``, and slider ``stops``.

    A flag has no stops. A model without a config has no controls.
    """
    recipe = ledger.model.recipe
    if recipe is None or ledger.evidence.described is not None:  # a checkpoint's tensors cannot change
        return []
    values = {key: _value(key, recipe.values) for key in recipe.values}
    found = [
        {
            "key": key,
            "word": _WORD_OF.get(key, key.replace("_", " ").replace(".", ": ")),
            "value": value,
            "stops": [] if isinstance(value, bool) else _stops(key, value, values),
        }
        for key, value in values.items()
        if isinstance(value, bool) or (isinstance(value, int) and value > 0)
    ]
    order = [*WORDS, *(control["word"] for control in found)]
    return sorted(found, key=lambda control: order.index(control["word"]))


def _value(key: str, values: Any) -> Any:
    """Return a key's value; an unset number of KV heads is the number of query heads."""
    if values[key] is None and _WORD_OF.get(key) == "KV heads":
        return _of("heads", values)
    return values[key]


def _of(word: str, values: Any) -> Any:
    return next((values[key] for key in WORDS[word] if values.get(key)), None)


def _stops(key: str, value: int, values: Any) -> list[int]:
    """Return a slider's values: heads that divide, widths that heads divide, else even steps."""
    word = _WORD_OF.get(key)
    width, heads, groups = (_of(name, values) for name in ("width", "heads", "KV heads"))
    if word == "KV heads" and heads:
        return [number for number in range(1, heads + 1) if heads % number == 0]
    if word == "heads" and width and width < STOPS**3:
        whole = [number for number in range(1, min(width, REACH * value) + 1) if width % number == 0]
        return [number for number in whole if number % (groups or 1) == 0 or number == value]
    if word == "experts per token":
        return list(range(1, min(_of("experts", values) or value, max(STOPS, value)) + 1))
    least = (_of("experts per token", values) or 1) if word == "experts" else 1
    step = 2 * heads if word == "width" and heads else 1
    most = max(REACH * value, 8) // step or 1
    every = 1 << ((most - 1) // STOPS).bit_length()  # steps are powers of two
    return sorted({value, *(step * number for number in range(every, most + 1, every) if step * number >= least)})
