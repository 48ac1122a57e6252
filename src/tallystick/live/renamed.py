"""Names found again where a wrapper put something before them, or took it away."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from tallystick.sources.matching import WRAPPERS


def renamed(before: Iterable[str], after: Container[str]) -> Callable[[str], str]:
    """From an old name to the new one, by the one prefix under which most old names are found again.

    >>> renamed(["wte.weight", "head.weight"], {"module.wte.weight", "module.head.weight"})("wte.weight")
    'module.wte.weight'
    """
    names = list(before)
    candidates = [("", ""), *((wrapper, "") for wrapper in WRAPPERS), *(("", wrapper) for wrapper in WRAPPERS)]

    def agreeing(candidate: tuple[str, str]) -> int:
        taken, put = candidate
        return sum(name.startswith(taken) and put + name.removeprefix(taken) in after for name in names)

    taken, put = max(candidates, key=agreeing)  # the first of equals: no change, where that is as good
    return lambda name: put + name.removeprefix(taken)
