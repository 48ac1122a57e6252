"""Change one config into another of its family, key by key, and count what each key changes.

Each step describes the changed model, rolled up, so that 671B parameters cost no more than GPT-2.
The steps' differences sum to the whole difference, in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from tallystick.answers.compare.causes import Cause, padded, tie_cause
from tallystick.answers.compare.key_categories import kind_of_key
from tallystick.core.config import TIE
from tallystick.core.description import Recipe
from tallystick.core.entries import Entry, total_of
from tallystick.errors import BadInput

COUNTS_OF_HEADS = ("n_head", "n_heads", "num_attention_heads", "num_heads")
MOST_TOGETHER = 3  # keys that are valid only together: a width and its heads, seldom more


def walk(recipe: Recipe, target: Mapping[str, Any]) -> list[Cause]:
    """Return a cause for each key that differs in `target` and changes a tensor.

    A tie that is gained comes first and a lost tie last. So either is worth the untied model's
    head.

    Args:
        recipe: the first model's config.
        target: the second model's config values.
    """
    values = dict(recipe.values)
    entries = recipe.entries(values)
    keys = [key for key in values if values[key] != target[key]]
    keys.sort(key=lambda key: 0 if _bare(key) != TIE else -1 if target[key] else 1)
    causes = []
    while keys:
        group, changed, after = _step(recipe, values, target, keys)
        named = tuple(key for key in group if len(group) == 1 or _matters(recipe, changed, key, values[key], after))
        cause = _cause(named or group, values, target, entries, after)
        if cause is not None:
            causes.append(cause)
        values, entries = changed, after
        keys = [key for key in keys if key not in group]
    return causes


def _step(
    recipe: Recipe, values: Mapping[str, Any], target: Mapping[str, Any], keys: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, Any], tuple[Entry, ...]]:
    """Return the next keys to change, all values after that, and the described tensors."""
    for group in _groups(keys):
        changed = {**values, **{key: target[key] for key in group}}
        try:
            return group, changed, recipe.entries(changed)
        except BadInput:  # heads that do not divide the new width: the two keys must change together
            continue
    return tuple(keys), dict(target), recipe.entries(target)


def _groups(keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the keys to try next, in order of preference: single keys, then few keys together."""
    # The number of heads grows with the width. Changed separately, they would give a head size that
    # neither model has.
    part = keys[0].removesuffix(_bare(keys[0]))
    inside = [key for key in keys if key == part + _bare(key)]
    together = tuple(key for key in inside if kind_of_key(_bare(key)) == "width" or _bare(key) in COUNTS_OF_HEADS)
    if len(together) > 1 and together[0] == keys[0]:
        yield together
    for size in range(1, MOST_TOGETHER + 1):
        yield from combinations(keys, size)


def _bare(key: str) -> str:
    """Return a key's name in its own part of the config."""
    return key.rpartition(".")[2]


def _matters(recipe: Recipe, changed: Mapping[str, Any], key: str, old: object, after: Sequence[Entry]) -> bool:
    """Return whether a key contributes to what several keys changed together."""
    try:
        return _facts(recipe.entries({**changed, key: old})) != _facts(after)
    except BadInput:
        return True


def _cause(
    keys: tuple[str, ...],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    old: Sequence[Entry],
    new: Sequence[Entry],
) -> Cause | None:
    had, has = _facts(old), _facts(new)
    names = tuple(dict.fromkeys(fact[0].replace("{}", "*") for fact in (*had, *has) if (fact in had) != (fact in has)))
    if not names:
        return None
    parameters = total_of(new) - total_of(old)
    if len(keys) == 1 and _bare(keys[0]) == TIE:
        lost = not after[keys[0]]
        tied, untied = (old, new) if lost else (new, old)
        apart = {entry.name for entry in untied if entry.storage == entry.name}
        ties = {entry.name: entry.storage for entry in tied if entry.storage != entry.name and entry.name in apart}
        return tie_cause(ties, parameters, lost=lost, keys=keys)
    what = ", ".join(f"{key} {_said(before[key])} → {_said(after[key])}" for key in keys)
    kind = kind_of_key(_bare(keys[0]))
    if kind == "vocabulary":
        what += padded(before[keys[0]] or 0, after[keys[0]] or 0)
    return Cause(kind, what, parameters, names, keys)


def _facts(entries: Sequence[Entry]) -> dict[tuple[str, *tuple[object, ...]], None]:
    """Return the facts whose change counts for `compare`, in print order."""
    return {(e.name, e.shape, e.axes, e.unique, e.buffer): None for e in entries}


def _said(value: object) -> str:
    """Return a value as in config.json, with thousands separators."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value, default=str)
