"""Layers of several kinds: read them from the config, and group equal neighbours into runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tallystick.architectures.kit.frames import listable
from tallystick.core import nodes as nn
from tallystick.core.registry import Config

LINEAR, FULL = "linear_attention", "full_attention"
LEGACY_KINDS = {"mamba": LINEAR, "attention": FULL}  # older names that transformers still reads
FEED_FORWARD = ("dense", "sparse")  # a dense MLP, or experts


def listed(
    c: Config, name: str, kinds: Sequence[str], pattern: Callable[[int], str] | None, *, longer: bool = False
) -> list[str]:
    """Return the kind of each layer: as the config key `name` lists it, or by a pattern.

    Args:
        c: the config.
        name: the config key.
        kinds: the kinds that are allowed.
        pattern: the default kind of a layer, by its number; None: the key is required.
        longer: whether a list may be longer than the model; the rest is ignored.
    """
    given = getattr(c, name)
    if given is not None:
        return checked(c, name, given, kinds, int(c.num_hidden_layers), longer=longer)
    if pattern is None:
        raise c.refuse(f"{name} is missing")
    return [pattern(layer) for layer in range(listable(c))]


def checked(
    c: Config, name: str, given: object, kinds: Sequence[str], count: int | None = None, *, longer: bool = False
) -> list[str]:
    """Return the kinds in a list under the key `name`, after checking them.

    Args:
        c: the config.
        name: the config key, for the error message.
        given: the list.
        kinds: the kinds that are allowed.
        count: the number of layers; None: the length of the list.
        longer: whether the list may be longer than `count`.
    """
    known = (
        [LEGACY_KINDS.get(kind, kind) if isinstance(kind, str) else kind for kind in given]
        if isinstance(given, list)
        else []
    )
    fits = isinstance(given, list) and (len(given) == (count or len(given)) or (longer and len(given) > (count or 0)))
    if not fits or not all(kind in kinds for kind in known):
        of = f" for each of the {count} layers" if count else ""
        raise c.refuse(f"{name} must list {' or '.join(kinds)}{of}")
    return known[:count]


def in_turns(kinds: Iterable[Any], block: Callable[..., nn.Module], *, depth: int | None = None) -> nn.ModuleList:
    """Return a stack with one block per layer, equal neighbours grouped into one run.

    Args:
        kinds: the kind of each layer; a tuple is passed as several arguments.
        block: makes the block of a kind.
        depth: the config's number of layers, shown in the formula of a stack of one kind.
    """
    runs = [(len(list(run)), block(*kind) if isinstance(kind, tuple) else block(kind)) for kind, run in groupby(kinds)]
    return nn.ModuleList((depth or runs[0][0], runs[0][1])) if len(runs) == 1 else nn.ModuleList(*runs)


def dense_and_sparse(c: Config, first: int, dense: nn.Module, sparse: nn.Module) -> nn.ModuleList:
    """Return blocks as `mlp_layer_types` lists them, or the `first` dense and the others sparse."""
    if c.mlp_layer_types is None:
        first = min(first, c.num_hidden_layers)
        return nn.ModuleList((first, dense), (c.num_hidden_layers - first, sparse))
    kinds = listed(c, "mlp_layer_types", FEED_FORWARD, str)
    return in_turns(kinds, lambda kind: sparse if kind == "sparse" else dense)


def as_published(c: Config, names: Mapping[str, str], **children: nn.Node | None) -> dict[str, Any]:
    """Return children under the names of published checkpoints, if the config asks for these."""
    return {names.get(name, name) if c.published else name: child for name, child in children.items()}
