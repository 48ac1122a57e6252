"""Heads and projections of attention, and how far each layer sees."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, TypeVar

from tallystick.core import nodes as nn
from tallystick.core.config import LARGEST
from tallystick.core.registry import Config, nonnegative
from tallystick.errors import shown

T = TypeVar("T")


def head_dim(c: Config) -> int:
    """The size of one head: stated, or the width shared out among the heads."""
    if not c.head_dim:
        c.require_divisible("hidden_size", by="num_attention_heads")
    size: int = c.head_dim or c.hidden_size / c.num_attention_heads
    return size


def rounded(width: int, heads: int) -> int:
    """The width shared out among the heads, rounded down where they do not divide it: some types are built so."""
    return int(width) // int(heads) if int(width) % int(heads) else width / heads  # type: ignore[return-value]


def key_value_heads(c: Config) -> int:
    """Grouped-query attention's key and value heads; null means one for each query head."""
    if c.num_key_value_heads:
        c.require_divisible("num_attention_heads", by="num_key_value_heads")
    heads: int = c.num_key_value_heads or c.num_attention_heads
    return heads


def heads(c: Config, size: int | None = None, **how: Any) -> nn.Heads:
    """Query heads and grouped key and value heads, all of one size, which run as `how` says: fields of `Heads`."""
    return nn.Heads(c.num_attention_heads, key_value_heads(c), head_dim(c) if size is None else size, **how)


def attention(
    c: Config,
    runs: nn.Heads,
    *,
    bias: bool = False,
    output_bias: bool | None = None,
    output: str = "o_proj",
    **more: Any,
) -> nn.Attention:
    """Separate query, key, value and output projections of these heads, and `more` that is in it, such as norms."""
    d, queries, keys = c.hidden_size, runs.queries * runs.size, runs.keys * runs.size
    return nn.Attention(
        runs,
        q_proj=nn.Linear(d, queries, bias=bias),
        k_proj=nn.Linear(d, keys, bias=bias),
        v_proj=nn.Linear(d, keys, bias=bias),
        **{output: nn.Linear(queries, d, bias=bias if output_bias is None else output_bias)},
        **more,
    )


SLIDING = {
    "use_sliding_window": False,
    "sliding_window": nonnegative(4096, nullable=True),
    "max_window_layers": nonnegative(28),
    "layer_types": None,
}


def windows_of(c: Config, pattern: nn.Windows, window: str = "sliding_window") -> nn.Windows:
    """How far each layer sees: as `layer_types` lists it, or else by the type's own pattern; `window` is its key."""
    if c.layer_types is None:
        return pattern
    if not isinstance(c.layer_types, list) or len(c.layer_types) < c.num_hidden_layers:
        raise c.refuse(f"layer_types must list the kind of each of the {int(c.num_hidden_layers)} layers")
    near = [kind in ("sliding_attention", "chunked_attention") for kind in c.layer_types]
    return in_runs(near, getattr(c, window), None)


def in_runs(kinds: Iterable[object], where: T, elsewhere: T) -> list[tuple[T, int]]:
    """One of two for each layer, equal neighbours as one run: `where` its kind is truthy, or `elsewhere`."""
    return [(where if kind else elsewhere, len(list(run))) for kind, run in groupby(map(bool, kinds))]


def late_windows(c: Config) -> nn.Windows:
    """Qwen's windows, where they are on at all: every layer from `max_window_layers` on."""
    if not c.use_sliding_window:
        return nn.EVERYTHING
    first = min(c.max_window_layers, c.num_hidden_layers)
    return windows_of(c, ((None, first), (c.sliding_window, c.num_hidden_layers - first)))


def head_norms(
    runs: nn.Heads, names: tuple[str, str] = ("q_norm", "k_norm"), *, kind: str = "rms", turned: bool = False
) -> dict[str, Any]:
    """The norms of queries and of keys, each head on its own; `kind` and `turned` as in `anatomy.Norm`."""
    return {
        name: nn.RMSNorm(runs.size, kind=kind, times=times, turned=turned)
        for name, times in zip(names, (runs.queries, runs.keys), strict=True)
    }


def rotary_dim(c: Config, size: int) -> int:
    """Elements of a head that positions turn: a share of them, which `rope_parameters` or the config itself states."""
    stated = c.rope_parameters.get("partial_rotary_factor") if isinstance(c.rope_parameters, dict) else None
    return share_of(c, size, "partial_rotary_factor", stated if isinstance(stated, int | float) else None)


def share_of(c: Config, size: int, name: str, stated: float | None = None) -> int:
    """The whole part of a share of a size, which is stated or stands under a key: not more than all of it."""
    share = getattr(c, name) if stated is None else stated
    if not 0 <= share <= 1:
        raise c.refuse(f"{name} is {shown(share)}, expected a number from 0 to 1")
    return int(int(size) * share)


def times(c: Config, size: int, name: str) -> float:
    """A size times the number under a key, where that is a size too."""
    product = int(size) * float(getattr(c, name))
    if not product <= LARGEST:
        raise c.refuse(f"{name} is {shown(getattr(c, name))}, and a width of that many times {int(size)} cannot be")
    return product


def rope_windows(c: Config, near: int | None, turned: bool) -> nn.Windows:
    """Layers that see `near`, and others that see all: those that positions turn, or those that they do not.

    `no_rope_layers` lists a 1 or 0 for each layer, where it is stated; else every `no_rope_layer_interval`-th is not turned.
    """
    of_turned, of_others = (near, None) if turned else (None, near)
    listed = c.no_rope_layers
    if not listed:
        return (of_turned, int(c.no_rope_layer_interval) - 1), (of_others, 1)
    if not isinstance(listed, list) or len(listed) < c.num_hidden_layers:
        raise c.refuse(f"no_rope_layers must hold a 1 or 0 for each of the {int(c.num_hidden_layers)} layers")
    return in_runs(listed, of_turned, of_others)
