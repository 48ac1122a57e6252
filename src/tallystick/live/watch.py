"""Detect ties that an operation on a model loses."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from tallystick.arguments import named, naming
from tallystick.core.evidence import Compared, worst
from tallystick.errors import BadInput
from tallystick.live.expected_ties import expected_groups
from tallystick.live.name_map import renamed
from tallystick.live.relation import WORSE, compared, meaning, relation_of, sharing
from tallystick.live.tie_problems import cost, remedy
from tallystick.sources.torch_module.named_parameters import places_of, stand_ins

if TYPE_CHECKING:
    from torch import nn

MOST_NAMED = 3  # losses in one message


class TieLost(AssertionError):
    """An operation weakened a relation, in the order tied, aliased, copied, untied."""


class _Memory(NamedTuple):
    """A model's parameter names and relations, without references to its tensors."""

    names: tuple[str, ...]
    pairs: dict[tuple[str, str], str]


class Watch:
    """What `watch` yields. Pass it the object that the operation returned, if that is a new one."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def returned(self, model: nn.Module) -> None:
        """Compare with this object instead of the original model."""
        self.model = model


@contextmanager
def watch(model: nn.Module, *, warn: bool = False) -> Iterator[Watch]:
    """Fail, or warn, if the block loses a tie.

    Watched are all tensors that share memory at the start, and those that the model declares as
    tied. An exception raised in the block passes through.

    Args:
        model: a module, wrapped or not.
        warn: whether to warn instead of raising `TieLost`.

    Yields:
        A `Watch`. Pass it the result if the operation returns a new object.

    Raises:
        TieLost: if a tie was lost and `warn` is false.

    >>> import torch
    >>> from tallystick.models.teaching import BareBonesLM
    >>> model = BareBonesLM(50, 4, tie_word_embeddings=True)
    >>> with watch(model):
    ...     model = model.to(torch.float64)  # keeps the tie
    >>> with watch(model):  # doctest: +ELLIPSIS
    ...     model.head.weight = torch.nn.Parameter(model.head.weight.clone())
    Traceback (most recent call last):
    tallystick.live.watch.TieLost: embedding.weight and head.weight were tied and are copied ...
    """
    with naming("watch"):
        memory = _remember(model)
    watched = Watch(model)
    yield watched
    _tell(_losses(memory, watched.model), warn=warn, level=4)  # stack levels: _tell, watch, contextlib, the user's code


@named
def assert_kept(before: nn.Module, after: nn.Module, *, warn: bool = False) -> None:
    """Fail, or warn, if a new object (wrapped, quantised, merged, reloaded) lost a tie.

    Tensors are matched by state dict name; prefixes of wrappers may differ. If the operation
    changes the old object too, use `watch` and its `returned`.

    Args:
        before: the model before the operation, unchanged.
        after: the operation's result.
        warn: whether to warn instead of raising `TieLost`.

    Raises:
        TieLost: if a tie was lost and `warn` is false.

    >>> import copy
    >>> import torch
    >>> from tallystick.models.teaching import BareBonesLM
    >>> model = BareBonesLM(50, 4, tie_word_embeddings=True)
    >>> other = copy.deepcopy(model)
    >>> assert_kept(model, other)  # a deep copy keeps the tie
    >>> other.head.weight = torch.nn.Parameter(other.head.weight.clone())
    >>> assert_kept(model, other)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tallystick.live.watch.TieLost: embedding.weight and head.weight were tied and are copied ...
    """
    _tell(_losses(_remember(before), after), warn=warn, level=4)  # `named` adds a frame


def _remember(model: nn.Module) -> _Memory:
    places = places_of(model)
    pairs = sharing(places)
    with suppress(BadInput):  # a model that declares nothing can lose only what it shares
        for group in expected_groups(model, places):
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
            losses.append(f"{what}; check how the operation changed them")
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
    message = ". ".join(losses[:MOST_NAMED]) + (f". And {more} more pairs" if more > 0 else "")
    if not warn:
        raise TieLost(message)
    warnings.warn(message, stacklevel=level)
