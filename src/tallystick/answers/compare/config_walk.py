"""From one config to another of its family, one key at a time: what each key that differs is worth.

Each step lays the model out anew, rolled up, so that it costs as little for 671B parameters as for GPT-2. The steps'
differences sum to the whole one, in whatever order they are taken.
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
from tallystick.core.ledger import Entry, total_of
from tallystick.errors import BadInput

COUNTS_OF_HEADS = ("n_head", "n_heads", "num_attention_heads", "num_heads")
MOST_TOGETHER = 3  # keys that make a model only together: a width and its heads, seldom more


def walk(recipe: Recipe, target: Mapping[str, Any]) -> list[Cause]:
    """A cause for each key by which the values of `target` differ from the recipe's and which changes a tensor.

    A tie that is gained goes first and one that is lost last, so that either is worth what the untied model's head is.
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
    """The next keys to change, all the values then, and what they lay out."""
    for group in _groups(keys):
        changed = {**values, **{key: target[key] for key in group}}
        try:
            return group, changed, recipe.entries(changed)
        except BadInput:  # heads that do not divide the new width: they change with it
            continue
    return tuple(keys), dict(target), recipe.entries(target)


def _groups(keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What to change next, in the order of preference: one key, or a few that make a model only together."""
    # Heads grow in number with the width: one after the other would make heads of a size that neither model has.
    part = keys[0].removesuffix(_bare(keys[0]))
    inside = [key for key in keys if key == part + _bare(key)]
    together = tuple(key for key in inside if kind_of_key(_bare(key)) == "width" or _bare(key) in COUNTS_OF_HEADS)
    if len(together) > 1 and together[0] == keys[0]:
        yield together
    for size in range(1, MOST_TOGETHER + 1):
        yield from combinations(keys, size)


def _bare(key: str) -> str:
    """A key by the name that it has in its own part of the config."""
    return key.rpartition(".")[2]


def _matters(recipe: Recipe, changed: Mapping[str, Any], key: str, old: object, after: Sequence[Entry]) -> bool:
    """Whether a key has a part in what several keys changed together."""
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
    """What `compare` calls a change, in the order of printing."""
    return {(e.name, e.shape, e.axes, e.unique, e.buffer): None for e in entries}


def _said(value: object) -> str:
    """A value as config.json has it, large numbers in groups of three."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value, default=str)
