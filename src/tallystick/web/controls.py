"""Describe a model's sliders: config keys that change a tensor, with their possible values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    "inner width": ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim"),
    "expert width": ("moe_intermediate_size",),
    "tying": ("tie_word_embeddings",),
}
_WORD_OF = {key: word for word, keys in WORDS.items() for key in keys}
STOPS = 48  # most values of a slider
REACH = 4  # a slider reaches up to 4 times the config's value, or to 8
_TEXT = ("", "text_config.")  # prefixes of the language model's own keys
Depths = Callable[[str], tuple[int, int | None]]


def any_depth(_: str) -> tuple[int, int | None]:
    """Return the depths of a model whose config lists nothing for each layer."""
    return 1, None


def controls(ledger: Ledger, depths: Depths = any_depth) -> list[dict[str, Any]]:
    """Return the controls in order of `WORDS`: ``key``, ``word``, ``value``, and slider ``stops``.

    A flag has no stops. A model without a config has no controls.

    Args:
        ledger: the model's.
        depths: the fewest and the most layers that a config key may say; None is without limit.
    """
    recipe = ledger.model.recipe
    if recipe is None or ledger.evidence.described is not None:  # a checkpoint's tensors cannot change
        return []
    values = {key: _value(key, recipe.values) for key in recipe.values}
    found = []
    for key, value in values.items():
        if isinstance(value, bool) or (isinstance(value, int) and value > 0):
            stops = [] if isinstance(value, bool) else _stops(key, value, values)
            if _word(key) == "layers" and stops:
                fewest, most = depths(key)
                stops = [stop for stop in stops if stop >= fewest and (most is None or stop <= most)]
            common = _word(key) is not None and _prefix(key) in _TEXT
            found.append({"key": key, "word": _name(key), "value": value, "stops": stops, "common": common})
    order = [*WORDS, *(control["word"] for control in found)]
    return sorted(found, key=lambda control: order.index(control["word"]))


def _prefix(key: str) -> str:
    """Return the part of a dotted key that says which nested config it is in, with its dot."""
    return key[: key.rfind(".") + 1]


def _word(key: str) -> str | None:
    """Return the common word for a key, if it has one."""
    return _WORD_OF.get(key[len(_prefix(key)) :])


def _name(key: str) -> str:
    """Return a key's name on the page."""
    prefix = _prefix(key)
    own = _word(key) or key[len(prefix) :].replace("_", " ")
    return own if prefix in _TEXT else f"{prefix.removesuffix('.').removesuffix('_config').replace('_', ' ')}: {own}"


def _value(key: str, values: Mapping[str, Any]) -> Any:
    """Return a key's value; unset, KV heads are the query heads, and GPT-2's inner width is 4 times
    the width.
    """
    if values[key] is None and _word(key) == "KV heads":
        return _of("heads", key, values)
    if values[key] is None and key == "n_inner" and isinstance(width := _of("width", key, values), int):
        return 4 * width
    return values[key]


def _of(word: str, key: str, values: Mapping[str, Any]) -> Any:
    """Return the value of another key in the same nested config."""
    named = (f"{_prefix(key)}{other}" for other in WORDS[word])
    return next((values[name] for name in named if values.get(name)), None)


def _stops(key: str, value: int, values: Mapping[str, Any]) -> list[int]:
    """Return a slider's values: heads that divide, widths that heads divide, else even steps."""
    word = _word(key)
    width, heads, groups = (_of(name, key, values) for name in ("width", "heads", "KV heads"))
    if heads and (word == "KV heads" or key.endswith("_key_value_heads")):
        return [number for number in range(1, heads + 1) if heads % number == 0]
    if word == "heads" and width and width < STOPS**3:
        whole = [number for number in range(1, min(width, REACH * value) + 1) if width % number == 0]
        return sorted({value, *(number for number in whole if number % (groups or 1) == 0)})
    if word == "experts per token":
        return list(range(1, min(_of("experts", key, values) or value, max(STOPS, value)) + 1))
    least = (_of("experts per token", key, values) or 1) if word == "experts" else 1
    step = 2 * heads if word == "width" and heads else 1
    most = max(REACH * value, 8) // step or 1
    every = 1 << ((most - 1) // STOPS).bit_length()  # steps are powers of two
    return sorted({value, *(step * number for number in range(every, most + 1, every) if step * number >= least)})
