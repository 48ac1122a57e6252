"""Find how many experts a token uses, from a live model's modules and configs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from tallystick.sources.roles.stacks import parent
from tallystick.sources.torch_module.named_parameters import unwrapped

if TYPE_CHECKING:
    from torch import nn

# Attribute names of the number, the clearest first. The names in _NEAR count only on modules near
# the experts: a config's top_k may be for sampling.
_USED = (
    re.compile(r"(n|num)?_?((activated|active|selected|used)_)?experts?_per_(tok|token)", re.IGNORECASE),
    re.compile(r"(n|num)_?(activated|active|selected|used)_experts?|experts_(used|active|activated)", re.IGNORECASE),
    re.compile(r"(moe|router|routing|gate|experts?)_?(top_?)?k|(top_?)?k_?experts?", re.IGNORECASE),
)
_NEAR = (*_USED, re.compile(r"(num_?)?(top_?)?k|(num_)?selected", re.IGNORECASE))
_COUNT = (re.compile(r"((n|num|moe_num)_?)?((routed|local)_)?experts?", re.IGNORECASE),)
_CONFIG = re.compile(r"\w*(config|cfg|args|params|hparams|moe)", re.IGNORECASE)


def shares(model: nn.Module, experts: Mapping[str, int]) -> dict[str, Fraction]:
    """Return the share of experts that a token uses, for each expert tensor whose model states it.

    Args:
        model: wrapped or not.
        experts: tensor name -> number of experts; 0 if its shape does not determine it.
    """
    modules = dict(_modules(model, "", ()))

    @cache  # experts have the modules around them in common
    def said(place: str, count: int) -> Fraction | None:
        if place not in modules:
            return None
        near = "." in place  # not the model itself, nor a module directly below it
        return _said(modules[place], _NEAR if near else _USED, count)

    known = cache(lambda place, count: _share(said, place, count))
    found = {}
    for name, count in experts.items():
        if (share := known(parent(name), count)) is not None:
            found[name] = share
    return found


def _modules(module: nn.Module, path: str, around: tuple[int, ...]) -> Iterator[tuple[str, nn.Module]]:
    """Yield every module under the path that its tensors' names have."""
    module = unwrapped(module)
    if id(module) in around:
        return
    yield path, module
    for name, child in module._modules.items():
        if child is not None:
            yield from _modules(child, f"{path}.{name}" if path else name, (*around, id(module)))


def _share(said: Callable[[str, int], Fraction | None], place: str, count: int) -> Fraction | None:
    """Return the share that the nearest module around a place states, or None."""
    while (share := said(place, count)) is None and place:
        place = parent(place)
    return share


def _said(module: nn.Module, names: tuple[re.Pattern[str], ...], count: int) -> Fraction | None:
    """Return the share that a module, its children or their configs state, or None."""
    inside = [unwrapped(child) for child in module._modules.values() if child is not None] if names is _NEAR else []
    for holder in (module, *inside):
        for words, values in ((names, vars(holder)), *((_USED, values) for values in _configs(vars(holder)))):
            of = count or _number(values, _COUNT, 1 << 20)
            used = _number(values, words, of) if of else None
            if used and of:
                return Fraction(used, of)
    return None


def _configs(values: Mapping[str, Any], *, deep: bool = True) -> Iterator[Mapping[str, Any]]:
    """Yield the values of a module's configs, by any usual name, and of configs inside them."""
    for name, value in values.items():
        if not isinstance(name, str) or not _names_config(name):
            continue
        held = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        if isinstance(held, dict) and "_parameters" not in held:
            yield held
            if deep:
                yield from _configs(held, deep=False)


@lru_cache(maxsize=4096)  # every module has the same few attributes
def _names_config(name: str) -> bool:
    return bool(_CONFIG.fullmatch(name))


def _number(values: Mapping[str, Any], names: tuple[re.Pattern[str], ...], most: int) -> int | None:
    """Return the first matching number, by the clearest name, or None."""
    numbers = [
        (name.strip("_"), value) for name, value in values.items() if isinstance(name, str) and type(value) is int
    ]
    matching = (value for pattern in names for name, value in numbers if 0 < value <= most and pattern.fullmatch(name))
    return next(matching, None)
