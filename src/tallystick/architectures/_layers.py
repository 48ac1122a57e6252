"""Layers of several kinds: what a config lists for each of them, and equal neighbours as one run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tallystick.blueprint import Config, Group, Node, Stack

FEED_FORWARD = ("dense", "sparse")  # one MLP for all tokens, or experts


def listed(
    c: Config, name: str, kinds: Sequence[str], pattern: Callable[[int], str], *, longer: bool = False
) -> list[str]:
    """The kind of each layer: as the key `name` lists it, or by the type's own pattern; `longer` lists are cut."""
    count, given = int(c.num_hidden_layers), getattr(c, name)
    if given is None:
        return [pattern(layer) for layer in range(count)]
    fits = isinstance(given, list) and (len(given) == count or (longer and len(given) > count))
    if not fits or not all(kind in kinds for kind in given):
        raise c.refuse(f"{name} must list {' or '.join(kinds)} for each of the {count} layers")
    return list(given[:count])


def in_stack(kinds: Iterable[tuple[Any, ...]], block: Callable[..., Group]) -> Stack:
    """A block for each layer, made from its kinds: what the columns of `listed` say of it."""
    return Stack(*((len(list(run)), block(*kind)) for kind, run in groupby(kinds)))


def dense_and_sparse(c: Config, first: int, dense: Group, sparse: Group) -> Stack:
    """Blocks as `mlp_layer_types` lists them, or the `first` dense and the others sparse."""
    if c.mlp_layer_types is None:
        first = min(first, c.num_hidden_layers)
        return Stack((first, dense), (c.num_hidden_layers - first, sparse))
    kinds = listed(c, "mlp_layer_types", FEED_FORWARD, str)
    return in_stack(zip(kinds, strict=True), lambda kind: sparse if kind == "sparse" else dense)


def as_published(c: Config, names: Mapping[str, str], **children: Node | None) -> dict[str, Any]:
    """Children by the names that files hold them under, where those are asked for."""
    return {names.get(name, name) if c.published else name: child for name, child in children.items()}
