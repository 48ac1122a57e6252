"""Watching an operation for the ties that it loses."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from tallystick.core.evidence import Compared, worst
from tallystick.errors import BadInput
from tallystick.live.expected_ties import meant_groups
from tallystick.live.name_map import renamed
from tallystick.live.relation import WORSE, compared, meaning, relation_of, sharing
from tallystick.live.tie_problems import cost, remedy
from tallystick.sources.torch_module.named_parameters import places_of, stand_ins

if TYPE_CHECKING:
    from torch import nn

MOST_NAMED = 3  # losses in one message


class TieLost(AssertionError):
    """An operation made the relation of two tensors worse: tied, aliased, copied, untied, in this order."""


class _Memory(NamedTuple):
    """What a model was, without holding any of its tensors."""

    names: tuple[str, ...]
    pairs: dict[tuple[str, str], str]


class Watch:
    """What `watch` yields; tell it the object that the operation returned, where it returns a new one."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def returned(self, model: nn.Module) -> None:
        """Compare with this object, not with the one that went in."""
        self.model = model


@contextmanager
def watch(model: nn.Module, *, warn: bool = False) -> Iterator[Watch]:
    """Fail, or warn, when what happens inside loses a tie.

    Watched are all tensors that share memory when it begins, and those that the model means to be one. An exception
    from inside passes through untouched.

    Args:
        model: a module, wrapped or not.
        warn: warn, where otherwise `TieLost` is raised.
    """
    memory = _remember(model)
    watched = Watch(model)
    yield watched
    _tell(_losses(memory, watched.model), warn=warn, level=4)  # _tell, watch, contextlib, the user


def assert_kept(before: nn.Module, after: nn.Module, *, warn: bool = False) -> None:
    """Fail, or warn, when a new object (wrapped, quantised, merged, reloaded) lost a tie that the old one still has.

    Names are those of the state dicts; the prefixes of wrappers may differ. For an operation that changes the old
    object too, use `watch` and tell it what was `returned`.
    """
    _tell(_losses(_remember(before), after), warn=warn, level=3)


def _remember(model: nn.Module) -> _Memory:
    places = places_of(model)
    pairs = sharing(places)
    with suppress(BadInput):  # a model that does not tell what it means: only what is shared can be lost
        for group in meant_groups(model, places):
            for first, second in combinations(group, 2):
                if (second, first) not in pairs:
                    pairs.setdefault((first, second), relation_of(places[first], places[second]))
    return _Memory(tuple(places), pairs)


def _losses(memory: _Memory, model: nn.Module) -> list[str]:
    places = places_of(model)
    now_called = renamed(memory.names, places)
    losses = []
    for pair, before in memory.pairs.items():
        first, second = map(now_called, pair)
        now = stand_ins(places, first, second)
        pairs = {pair: compared(places[pair[0]], places[pair[1]]) for pair in now}
        found = worst(pairs.values()) if now else Compared("gone")
        after = found.relation
        if after not in WORSE.get(before, ()):
            continue
        what = f"{first} and {second} were {before} and are {after} ({meaning(found)})"
        if not now:
            losses.append(f"{what}; check what the operation made of them")
            continue
        names = next(pair for pair in now if pairs[pair] == found)
        if names != (first, second):
            what += f", now as {' and '.join(names)}"
        losses.append(f"{what}: {cost(places, names, after)}; {remedy(model, places, names, after)}")
    return losses


def _tell(losses: list[str], *, warn: bool, level: int) -> None:
    if not losses:
        return
    more = len(losses) - MOST_NAMED
    message = ". ".join(losses[:MOST_NAMED]) + (f". And {more} pairs more" if more > 0 else "")
    if not warn:
        raise TieLost(message)
    warnings.warn(message, stacklevel=level)
