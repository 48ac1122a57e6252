"""Attention: heads, projections, head norms, rotary size and sliding windows."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, TypeVar

from tallystick.core import nodes as nn
from tallystick.core.config import LARGEST
from tallystick.core.registry import Config, nonnegative
from tallystick.errors import shown

T = TypeVar("T")


def head_dim(c: Config) -> int:
    """Return the elements of one head: `head_dim`, or hidden_size / num_attention_heads."""
    if not c.head_dim:
        c.require_divisible("hidden_size", by="num_attention_heads")
    size: int = c.head_dim or c.hidden_size / c.num_attention_heads
    return size


def rounded(width: int, heads: int) -> int:
    """Return width / heads, rounded down if they do not divide, as some types build it."""
    return int(width) // int(heads) if int(width) % int(heads) else width / heads  # type: ignore[return-value]


def key_value_heads(c: Config) -> int:
    """Return the number of key/value heads; null means one per query head."""
    if c.num_key_value_heads:
        c.require_divisible("num_attention_heads", by="num_key_value_heads")
    heads: int = c.num_key_value_heads or c.num_attention_heads
    return heads


def heads(c: Config, size: int | None = None, **how: Any) -> nn.Heads:
    """Return query heads and grouped key/value heads of one size.

    Args:
        c: the config.
        size: elements of one head; None: `head_dim(c)`.
        how: further fields of `Heads`.
    """
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
    """Return attention with separate query, key, value and output projections.

    Args:
        c: the config.
        runs: the heads.
        bias: whether the projections have a bias.
        output_bias: whether the output projection has one; None: as `bias`.
        output: the name of the output projection.
        more: further children, such as norms.
    """
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
    """Return the window of each layer, in runs: from `layer_types`, or else `pattern`.

    Args:
        c: the config.
        pattern: the windows of the type if `layer_types` is null.
        window: the config key of the window size.

    Raises:
        BadInput: `layer_types` is not a list or lists too few layers.
    """
    if c.layer_types is None:
        return pattern
    if not isinstance(c.layer_types, list) or len(c.layer_types) < c.num_hidden_layers:
        raise c.refuse(f"layer_types must list the kind of each of the {int(c.num_hidden_layers)} layers")
    near = [kind in ("sliding_attention", "chunked_attention") for kind in c.layer_types]
    return in_runs(near, getattr(c, window), None)


def in_runs(kinds: Iterable[object], where: T, elsewhere: T) -> list[tuple[T, int]]:
    """Return one value per layer, in runs of equal values: `where` if its kind is truthy.

    All other layers get `elsewhere`.
    """
    return [(where if kind else elsewhere, len(list(run))) for kind, run in groupby(map(bool, kinds))]


def late_windows(c: Config) -> nn.Windows:
    """Return Qwen's windows: layers from `max_window_layers` on, if `use_sliding_window` is set."""
    if not c.use_sliding_window:
        return nn.EVERYTHING
    first = min(c.max_window_layers, c.num_hidden_layers)
    return windows_of(c, ((None, first), (c.sliding_window, c.num_hidden_layers - first)))


def head_norms(
    runs: nn.Heads, names: tuple[str, str] = ("q_norm", "k_norm"), *, kind: str = "rms", turned: bool = False
) -> dict[str, Any]:
    """Return the norms of queries and keys, applied to each head separately.

    Args:
        runs: the heads.
        names: the names of the two norms.
        kind: as in `anatomy.Norm`.
        turned: as in `anatomy.Norm`: whether the norms come after the rotary embedding.
    """
    return {
        name: nn.RMSNorm(runs.size, kind=kind, times=times, turned=turned)
        for name, times in zip(names, (runs.queries, runs.keys), strict=True)
    }


def rotary_dim(c: Config, size: int) -> int:
    """Return the rotary elements of a head: `partial_rotary_factor` of its `size`.

    `rope_parameters` overrides the key of the config itself.
    """
    stated = c.rope_parameters.get("partial_rotary_factor") if isinstance(c.rope_parameters, dict) else None
    return share_of(c, size, "partial_rotary_factor", stated if isinstance(stated, int | float) else None)


def share_of(c: Config, size: int, name: str, stated: float | None = None) -> int:
    """Return `size` times a share, rounded down; the share is `stated` or the config key `name`.

    Raises:
        BadInput: the share is not between 0 and 1.
    """
    share = getattr(c, name) if stated is None else stated
    if not 0 <= share <= 1:
        raise c.refuse(f"{name} is {shown(share)}, expected a number from 0 to 1")
    return int(int(size) * share)


def times(c: Config, size: int, name: str) -> float:
    """Return a size times the number under a config key; refuse a product that is too large."""
    product = int(size) * float(getattr(c, name))
    if not product <= LARGEST:
        raise c.refuse(f"{name} is {shown(getattr(c, name))}, which gives an impossible width ({int(size)} times it)")
    return product


def rope_windows(c: Config, near: int | None, turned: bool) -> nn.Windows:
    """Return windows of `near` for one group of layers and full attention for the others.

    Args:
        c: the config. `no_rope_layers` lists 1 (RoPE) or 0 (NoPE) per layer. If it is empty, every
            `no_rope_layer_interval`-th layer is NoPE.
        near: the window, in tokens.
        turned: whether RoPE layers have the window, or NoPE layers.
    """
    of_turned, of_others = (near, None) if turned else (None, near)
    listed = c.no_rope_layers
    if not listed:
        return (of_turned, int(c.no_rope_layer_interval) - 1), (of_others, 1)
    if not isinstance(listed, list) or len(listed) < c.num_hidden_layers:
        raise c.refuse(f"no_rope_layers must hold a 1 or 0 for each of the {int(c.num_hidden_layers)} layers")
    return in_runs(listed, of_turned, of_others)
