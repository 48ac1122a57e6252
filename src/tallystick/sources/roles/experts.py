"""Find routers and their experts by shape and position.

A router has one row for each expert. Stacked experts are tensors whose first axis has that length.
Listed experts are that number of modules, in the router's module or one below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tallystick.sources.roles.stacks import Stack, above, parent

_ROUTER = re.compile(
    r"(^|[._])(\w*rout(er|ing)|gate|gating|wg|switch)(\.(weight|kernel|layer|gate|linear|classifier|wg|proj|w))*$", re.I
)
_FAR = 8  # maximum number of modules between an expert's tensor and the block
_NO_EXPERT = frozenset({"attention", "norm", "ssm", "conv", "head", "token_embedding", "position_embedding"})


def find_experts(stacks: Sequence[Stack]) -> None:
    """Set the roles of routers and experts.

    Args:
        stacks: all stacks of the model; they are changed in place.
    """
    matrices = Counter(stack.module for stack in stacks if len(stack.shape) > 1)
    routers = _routers(stacks, matrices)
    found: dict[int, Stack] = {}  # routers whose experts were found
    modules: dict[str, int] = {}  # module with stacked experts -> number of experts
    for stack in stacks:
        if stack.role in _NO_EXPERT or is_shared(stack.template):
            continue
        choices = ((count, routers.get((place, count), ())) for place, count in _counts(stack))
        count, router = next(((count, one) for count, all_ in choices for one in all_ if one is not stack), (0, None))
        if router is None:
            continue
        found[id(router)] = router
        stack.role, stack.experts = "experts", count
        if len(stack.shape) > 2 and stack.shape[0] == count:
            modules[stack.module] = count
    for router in found.values():
        router.role = "router"
    _biases(stacks, modules, found.values())
    _demote([stack for stack in stacks if id(stack) not in found], stacks)


def is_shared(name: str) -> bool:
    """Return whether a tensor belongs to shared experts, which every token uses."""
    return "shared" in name.lower()


def _routers(stacks: Iterable[Stack], matrices: Counter[str]) -> dict[tuple[str, int], list[Stack]]:
    """Return possible routers, by the experts' expected module and number."""
    routers: dict[tuple[str, int], list[Stack]] = {}
    for named in (True, False):  # a router by name comes before one by shape only
        for stack in stacks:
            if len(stack.shape) != 2 or is_shared(stack.template) or bool(_ROUTER.search(stack.template)) is not named:
                continue
            if not named and (matrices[stack.module] != 1 or stack.role in _NO_EXPERT):
                continue
            place = stack.module if named else parent(stack.module)
            while _ROUTER.search(place):
                place = parent(place)
            if named or "{}" in place:
                for count in {*stack.shape} - {1}:
                    routers.setdefault((place, count), []).append(stack)
    return routers


def _counts(stack: Stack) -> Iterator[tuple[str, int]]:
    """Yield the module and row count that a router would have if these were experts."""
    if len(stack.shape) > 2:
        for place in above(stack.module):
            yield place, stack.shape[0]
    parts = stack.template.split(".")
    numbered = [position for position, part in enumerate(parts) if part == "{}"]
    if len(numbered) != len(stack.spans):
        return
    for index, position in enumerate(numbered):
        for place in list(above(".".join(parts[: max(position - 1, 0)])))[:2]:
            yield place, stack.length(index)


def _biases(stacks: Iterable[Stack], modules: dict[str, int], routers: Iterable[Stack]) -> None:
    """Set the roles of router biases, and of vectors stacked with the experts."""
    rows = {router.module: router.shape for router in routers}
    for stack in stacks:
        if stack.role == "router" or not stack.shape:
            continue
        if stack.module in rows and len(stack.shape) == 1 and stack.shape[0] in rows[stack.module]:
            if stack.leaf.endswith("bias") and stack.role != "experts":
                stack.role = "router"
        elif len(stack.shape) == 2 and modules.get(stack.module) == stack.shape[0] and stack.role != "norm":
            stack.role, stack.experts = "experts", stack.shape[0]


def _demote(gates: Iterable[Stack], stacks: Iterable[Stack]) -> None:
    """Reset a gate without experts nearby: it is not a router."""
    places = {place for stack in stacks if stack.role == "experts" for place in above(stack.module, _FAR)} - {""}
    for stack in gates:
        gate = stack.role == "router" and "rout" not in stack.template.lower() and not is_shared(stack.template)
        if gate and places.isdisjoint(above(stack.module)):
            stack.role = "other"
