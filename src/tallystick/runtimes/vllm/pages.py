"""vLLM's pool of KV cache pages: layers in groups with equal pages, and what a request needs.

Rules are those of vLLM's `vllm/v1/core/kv_cache_utils.py` (`get_kv_cache_groups`,
`_get_kv_cache_groups_uniform_page_size`, `unify_kv_cache_spec_page_size`,
`get_max_concurrency_for_kv_cache_config`, `_report_kv_cache_config`) and
`vllm/v1/kv_cache_interface.py` (`page_size_bytes`, `max_memory_usage_bytes`), read at 001cabc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from tallystick.core.anatomy import Attending, Recurring

BLOCK = 16  # tokens of a page: CacheConfig.DEFAULT_BLOCK_SIZE
FEW_MORE = 1.5  # groups are as long as the longest kind of layer if that has fewer than 1.5 times the shortest's
UTILS = "vllm/v1/core/kv_cache_utils.py"


class Kind(NamedTuple):
    """Layers with equal pages and equal windows."""

    layers: int
    token: int  # bytes of one token in one layer; of a recurrent layer, 0
    state: int = 0  # bytes of a sequence's state in one recurrent layer
    states: int = 1  # that a request keeps
    window: int | None = None
    chunked: bool = False  # the window is a chunk
    block: int = BLOCK  # tokens of a page

    @property
    def page(self) -> int:
        """Bytes of a page in one layer."""
        return self.state or self.token * self.block


class Pool(NamedTuple):
    """Groups of layers that share pages."""

    groups: tuple[Kind, ...]  # `layers` of each is at most `size`
    size: int  # layers of a group, padded
    page: int  # bytes of a page in one layer
    uniform: bool  # one group, whose layers may differ in their bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a page in all layers of a group."""
        return sum(one.layers * one.page for one in self.groups) if self.uniform else self.size * self.page

    @property
    def padding(self) -> int:
        """Layers that exist only as padding."""
        return 0 if self.uniform else sum(self.size - one.layers for one in self.groups)

    def blocks(self, available: int) -> int:
        """Return the pages in the pool.

        Args:
            available: bytes.
        """
        if self.uniform:
            return max(available // self.block_bytes, 0) if self.block_bytes else 0
        return max(available // self.page // self.size, 0)

    def needed(self, tokens: int, batched: int) -> int:
        """Return the pages of one request.

        Args:
            tokens: of the request.
            batched: tokens of a step, which a window keeps in addition.
        """
        kinds = self.groups[:1] if self.uniform else self.groups
        return sum(_pages(kind, tokens, batched) for kind in kinds)

    def tokens(self, blocks: int, longest: int, batched: int, *, by_concurrency: bool) -> int:
        """Return the tokens of the line "GPU KV cache size".

        Args:
            blocks: pages in the pool.
            longest: tokens of the longest request.
            batched: as for `needed`.
            by_concurrency: as newer releases compute it.
        """
        if by_concurrency:
            return int(longest * blocks / self.needed(longest, batched))
        groups = 1 if self.uniform else len(self.groups)
        return blocks // groups * min(one.block for one in self.groups)


def _pages(kind: Kind, tokens: int, batched: int) -> int:
    if kind.state:
        return kind.states
    if kind.window is None:
        return ceil(tokens / kind.block)
    if kind.chunked:
        return ceil(min(kind.window + batched, tokens) / kind.block)
    # One page more: a window need not begin with a page.
    return ceil(min(kind.window - 1 + batched, tokens) / kind.block) + 1


def kinds_of(
    attending: Iterable[Attending],
    recurring: Iterable[Recurring],
    *,
    width: float,
    states: Sequence[int] = (),
    states_of_request: int = 1,
    block: int = BLOCK,
    hybrid: bool = True,
) -> list[Kind]:
    """Return the kinds of layers of one device that have a cache.

    Args:
        attending: attention layers, with the heads of this device.
        recurring: recurrent layers, whole.
        width: bytes of a cached element.
        states: bytes of a sequence's state in each of the recurrent layers.
        states_of_request: states that a request keeps.
        block: tokens of a page.
        hybrid: whether windows free their pages; otherwise they count as full attention.
    """
    found: dict[Kind, int] = {}
    for one in attending:
        if not one.heads.kept:
            continue
        token = round(int(one.heads.kept) * width)
        for window, layers in one.windows().items():
            kept = int(window) if window is not None and hybrid else None
            kind = Kind(0, token, window=kept, chunked=kept is not None and one.heads.chunked, block=block)
            found[kind] = found.get(kind, 0) + int(layers)
    for run, state in zip(recurring, states, strict=True):
        kind = Kind(0, 0, state=state, states=states_of_request)
        found[kind] = found.get(kind, 0) + int(run.layers)
    return [kind._replace(layers=layers) for kind, layers in found.items()]


def pool_of(kinds: Sequence[Kind]) -> Pool | None:
    """Group a device's layers as vLLM does; None if no layer has a cache."""
    if not kinds:
        return None
    kinds = _with_states(kinds)
    if len({(kind.window, kind.chunked, bool(kind.state)) for kind in kinds}) == 1:
        return Pool(tuple(kinds), sum(kind.layers for kind in kinds), kinds[0].page, uniform=True)
    page = max(kind.page for kind in kinds)
    equal = [_to_page(kind, page) for kind in kinds]
    merged: dict[Kind, int] = {}
    for kind in equal:
        key = kind._replace(layers=0)
        merged[key] = merged.get(key, 0) + kind.layers
    fewest, most = min(merged.values()), max(merged.values())
    size = most if most < fewest * FEW_MORE else fewest
    groups = []
    for kind, layers in merged.items():
        number = ceil(layers / size)
        groups += [kind._replace(layers=len(range(first, layers, number))) for first in range(number)]
    return Pool(tuple(groups), size, page, uniform=False)


def _to_page(kind: Kind, page: int) -> Kind:
    """Return layers with longer pages, or with padded ones if no whole number of tokens fits."""
    if kind.state:
        return kind._replace(state=page)
    ratio, rest = divmod(page, kind.page)
    return kind._replace(block=kind.block * ratio) if not rest else kind._replace(block=kind.block * max(ratio, 1))


def _with_states(kinds: Sequence[Kind]) -> list[Kind]:
    """Return layers whose attention pages are at least as large as a recurrent state.

    The pages grow by multiples of the block, and the states are padded to them
    (`vllm/model_executor/models/config.py`, `HybridAttentionMambaModelConfig`).
    """
    states = [kind.state for kind in kinds if kind.state]
    full = [kind.token for kind in kinds if kind.token]
    if not states or not full:
        return list(kinds)
    token, state = max(full), max(states)
    block = max(ceil(state / token / BLOCK) * BLOCK, *(kind.block for kind in kinds if kind.token))
    return [kind._replace(state=token * block if kind.state else 0, block=block) for kind in kinds]
