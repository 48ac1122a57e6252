"""Draw sizes of models, small and large: the same in every run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from tallystick.core.size_names import SAME
from tallystick.course.arguments import kind_of

TRIES = 100
# Half of the tries have sizes up to SMALL, half up to LARGE. Every count stays far below 2⁵³,
# up to which floats are exact.
SMALL, LARGE = 9, 2_000
HEADS = 16  # most heads

# The order in which sizes are drawn, whatever the order of a model's arguments.
_ORDER = (
    "vocab_size", "context_length", "inputs", "d_model", "n_layers", "n_heads", "head_dim", "d_ff", "width", "depth",
    "outputs", "bias", "tie_word_embeddings",
)  # fmt: skip
assert set(_ORDER) - {"depth"} <= {names[0] for names in SAME}  # noqa: S101


def drawn(keys: Mapping[str, Any], names: Collection[str], fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sizes of `TRIES` models.

    Heads divide the width, into even parts for rotary pairs, unless their size is drawn too.

    Args:
        keys: the model's sizes with their defaults; a flag's is True or False.
        names: those to draw.
        fixed: values of others, which all models have.
    """
    random = Random(0)  # noqa: S311  # the same sizes each time: an answer is not judged by luck
    order = sorted(names, key=lambda name: _ORDER.index(kind_of(name)) if kind_of(name) in _ORDER else len(_ORDER))
    kinds = {kind_of(name): name for name in order}
    found = []
    for largest in [SMALL] * (TRIES // 2) + [LARGE] * (TRIES // 2):
        sizes: dict[str, Any] = {}
        for name in order:
            sizes[name] = _drawn(random, kind_of(name), keys[name], largest)
        if "n_heads" in kinds and "head_dim" not in kinds and "d_model" in kinds:
            sizes[kinds["d_model"]] = 2 * sizes[kinds["n_heads"]] * random.randint(1, largest)
        found.append({**sizes, **fixed})
    return found


def _drawn(random: Random, kind: str, default: Any, largest: int) -> Any:
    if isinstance(default, bool):
        return random.random() < 0.5
    if kind == "widths":
        return [random.randint(1, largest) for _ in range(random.randint(2, 5))]
    if kind == "head_dim":
        return 2 * random.randint(1, largest)
    return random.randint(1, min(largest, HEADS) if kind == "n_heads" else largest)
