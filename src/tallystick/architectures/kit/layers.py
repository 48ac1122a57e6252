"""Layers of several kinds: what a config lists for each of them, and equal neighbours as one run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tallystick.architectures.kit.frames import listable
from tallystick.core import nodes as nn
from tallystick.core.registry import Config

LINEAR, FULL = "linear_attention", "full_attention"
LEGACY_KINDS = {"mamba": LINEAR, "attention": FULL}  # names of before, which transformers still reads
FEED_FORWARD = ("dense", "sparse")  # one MLP for all tokens, or experts


def listed(
    c: Config, name: str, kinds: Sequence[str], pattern: Callable[[int], str] | None, *, longer: bool = False
) -> list[str]:
    """The kind of each layer: as the key `name` lists it, or by the type's own pattern, if any; `longer` lists are cut."""
    given = getattr(c, name)
    if given is not None:
        return checked(c, name, given, kinds, int(c.num_hidden_layers), longer=longer)
    if pattern is None:
        raise c.refuse(f"{name} is missing")
    return [pattern(layer) for layer in range(listable(c))]


def checked(
    c: Config, name: str, given: object, kinds: Sequence[str], count: int | None = None, *, longer: bool = False
) -> list[str]:
    """The kinds that a list under the key `name` gives for so many layers; None: for as many as it lists."""
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
    """A block for each layer, made from its kind, or from its kinds where they are several; equal neighbours are one run.

    `depth` is how many layers the config says there are, for the formula of a stack of one kind.
    """
    runs = [(len(list(run)), block(*kind) if isinstance(kind, tuple) else block(kind)) for kind, run in groupby(kinds)]
    return nn.ModuleList((depth or runs[0][0], runs[0][1])) if len(runs) == 1 else nn.ModuleList(*runs)


def dense_and_sparse(c: Config, first: int, dense: nn.Module, sparse: nn.Module) -> nn.ModuleList:
    """Blocks as `mlp_layer_types` lists them, or the `first` dense and the others sparse."""
    if c.mlp_layer_types is None:
        first = min(first, c.num_hidden_layers)
        return nn.ModuleList((first, dense), (c.num_hidden_layers - first, sparse))
    kinds = listed(c, "mlp_layer_types", FEED_FORWARD, str)
    return in_turns(kinds, lambda kind: sparse if kind == "sparse" else dense)


def as_published(c: Config, names: Mapping[str, str], **children: nn.Node | None) -> dict[str, Any]:
    """Children by the names that files hold them under, where those are asked for."""
    return {names.get(name, name) if c.published else name: child for name, child in children.items()}
