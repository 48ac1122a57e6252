"""What a config says of its quantisation, and the keys in which every quantiser's config says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tallystick.sources.quantized.excluded_modules import Patterns
from tallystick.sources.quantized.layouts import Scheme, Unstated
from tallystick.sources.quantized.packed_weight import is_size


class Quantiser(NamedTuple):
    """What a config says of its quantisation."""

    method: str
    schemes: list[tuple[Patterns | None, Scheme]]  # for which modules, None all; the first that fits
    kept: Patterns  # modules that stay as they are
    head: bool = False  # an LM head of its own is quantised too, where it is not among those
    blocks: bool = False  # nothing outside of the numbered blocks is
    experts: bool = False  # nothing but experts is
    linear: bool = False  # only modules that are nn.Linear, and no experts fused to one tensor
    everything: bool = False  # embeddings and routers are too
    dtype: str = "bfloat16"  # of all else, where the config states none

    def scheme_of(self, names: Iterable[str]) -> Scheme | None:
        """How a module is stored, by any of the names that it goes by; None as it is."""
        names = tuple(names)
        if any(map(self.kept.matches, names)):
            return None
        return next((one for meant, one in self.schemes if meant is None or any(map(meant.matches, names))), None)

    @property
    def unread(self) -> list[str]:
        """What it lists that is not read as a pattern."""
        return [one for listed in (self.kept, *(meant for meant, _ in self.schemes if meant)) for one in listed.unread]

    @property
    def by_layer(self) -> bool:
        """Whether a layer may be stored otherwise than the next."""
        return any(one.by_layer for one in (self.kept, *(meant for meant, _ in self.schemes if meant)))


def kept(told: Mapping[str, Any], *keys: str) -> Patterns:
    """Modules that stay as they are, under any of some keys."""
    return Patterns(one for key in keys or ("modules_to_not_convert",) for one in flat(told.get(key) or []))


def lists(told: Mapping[str, Any], key: str = "modules_to_not_convert") -> bool:
    """Whether modules to leave are listed: then an LM head that is not among them is quantised (`get_modules_to_not_convert`)."""
    return isinstance(told.get(key) or told.get("ignored_layers"), list)


def flat(value: Any) -> Iterator[Any]:
    """The items of a list, and of the lists in it; a word alone is one."""
    for one in value if isinstance(value, list | tuple) else [value]:
        yield from one if isinstance(one, list | tuple) else (one,)


def part_of(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """What stands under a key, where that is an object."""
    found = told.get(key)
    return found if isinstance(found, Mapping) else {}


def bits_of(told: Mapping[str, Any]) -> int:
    """Bits of a value."""
    bits = told.get("bits", told.get("w_bit"))
    if not is_size(bits) or bits > 8:
        raise Unstated(f"bits is {str(bits)[:20]}")
    return bits


def size_of(told: Mapping[str, Any]) -> int:
    """Inputs that share a scale, of which there must be some."""
    group = group_of(told)
    if group is None:
        raise Unstated("it says no group_size")
    return group


def group_of(told: Mapping[str, Any]) -> int | None:
    """Inputs that share a scale; None is all."""
    group = told.get("group_size", told.get("q_group_size", 128))
    if group == -1:
        return None
    if not is_size(group):
        raise Unstated(f"group_size is {str(group)[:20]}")
    return group
