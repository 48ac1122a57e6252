"""Represent a quantisation config, and read the keys that all quantisers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tallystick.sources.quantized.excluded_modules import Patterns
from tallystick.sources.quantized.layouts import Scheme, Unstated
from tallystick.sources.quantized.packed_weight import is_size


class Quantiser(NamedTuple):
    """A quantisation config: the schemes, the modules that they apply to, and exceptions."""

    method: str
    schemes: list[tuple[Patterns | None, Scheme]]  # (modules, None for all; layout); the first match wins
    kept: Patterns  # modules that are not quantised
    head: bool = False  # an untied LM head is quantised too, unless it is in `kept`
    blocks: bool = False  # only the numbered blocks are quantised
    experts: bool = False  # only experts are quantised
    linear: bool = False  # only nn.Linear modules are quantised, not experts fused to one tensor
    everything: bool = False  # embeddings and routers are quantised too
    dtype: str = "bfloat16"  # of all other tensors, if the config states none

    def scheme_of(self, names: Iterable[str]) -> Scheme | None:
        """Return the layout of a module, given all of its names; None if it is not quantised."""
        names = tuple(names)
        if any(map(self.kept.matches, names)):
            return None
        return next((one for meant, one in self.schemes if meant is None or any(map(meant.matches, names))), None)

    @property
    def unread(self) -> list[str]:
        """The listed modules that cannot be read as a pattern."""
        return [one for listed in (self.kept, *(meant for meant, _ in self.schemes if meant)) for one in listed.unread]

    @property
    def by_layer(self) -> bool:
        """Whether two layers may be stored differently."""
        return any(one.by_layer for one in (self.kept, *(meant for meant, _ in self.schemes if meant)))


def kept(quantization: Mapping[str, Any], *keys: str) -> Patterns:
    """Return the modules that are not quantised, listed under any of the keys.

    Args:
        quantization: the `quantization_config`.
        keys: the keys of the lists; `modules_to_not_convert` by default.
    """
    return Patterns(one for key in keys or ("modules_to_not_convert",) for one in flat(quantization.get(key) or []))


def lists(quantization: Mapping[str, Any], key: str = "modules_to_not_convert") -> bool:
    """Return whether the config lists modules to skip.

    If it does, an LM head that is not listed is quantised (`get_modules_to_not_convert`).

    Args:
        quantization: the `quantization_config`.
        key: the key of the list; `ignored_layers` counts too.
    """
    return isinstance(quantization.get(key) or quantization.get("ignored_layers"), list)


def flat(value: Any) -> Iterator[Any]:
    """Yield the items of a list and of the lists in it; a single value yields itself."""
    for one in value if isinstance(value, list | tuple) else [value]:
        yield from one if isinstance(one, list | tuple) else (one,)


def part_of(quantization: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under a key, or an empty one."""
    found = quantization.get(key)
    return found if isinstance(found, Mapping) else {}


def bits_of(quantization: Mapping[str, Any]) -> int:
    """Return the bits of a value.

    Raises:
        Unstated: if the config states none between 1 and 8.
    """
    bits = quantization.get("bits", quantization.get("w_bit"))
    if not is_size(bits) or bits > 8:
        raise Unstated(f"bits is {str(bits)[:20]}")
    return bits


def size_of(quantization: Mapping[str, Any]) -> int:
    """Return the number of inputs that share a scale.

    Raises:
        Unstated: if the config states no group size.
    """
    group = group_of(quantization)
    if group is None:
        raise Unstated("it lacks group_size")
    return group


def group_of(quantization: Mapping[str, Any]) -> int | None:
    """Return the number of inputs that share a scale; None if all do.

    Raises:
        Unstated: if the config states no valid group size.
    """
    group = quantization.get("group_size", quantization.get("q_group_size", 128))
    if group == -1:
        return None
    if not is_size(group):
        raise Unstated(f"group_size is {str(group)[:20]}")
    return group
