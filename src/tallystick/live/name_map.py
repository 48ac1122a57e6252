"""Names found again where a wrapper put something before them, or took it away."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from tallystick.sources.checkpoint.match import WRAPPERS, best_prefix


def renamed(before: Iterable[str], after: Container[str]) -> Callable[[str], str]:
    """From an old name to the new one, by the one prefix under which most old names are found again.

    >>> renamed(["wte.weight", "head.weight"], {"module.wte.weight", "module.head.weight"})("wte.weight")
    'module.wte.weight'
    """
    candidates = [("", ""), *((wrapper, "") for wrapper in WRAPPERS), *(("", wrapper) for wrapper in WRAPPERS)]
    taken, put = best_prefix(candidates, list(before), after)
    return lambda name: put + name.removeprefix(taken)
