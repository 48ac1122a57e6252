"""Map parameter names across a wrapper that adds or removes a prefix."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from tallystick.sources.checkpoint.match import WRAPPERS, best_prefix


def renamed(before: Iterable[str], after: Container[str]) -> Callable[[str], str]:
    """Return a function from old names to new ones, using the prefix that matches most names.

    >>> renamed(["wte", "head"], {"module.wte", "module.head"})("wte")
    'module.wte'
    """
    candidates = [("", ""), *((wrapper, "") for wrapper in WRAPPERS), *(("", wrapper) for wrapper in WRAPPERS)]
    taken, put = best_prefix(candidates, list(before), after)
    return lambda name: put + name.removeprefix(taken)
