"""Advice on how to tie tensors again, worded the same in every message."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.entries import Entry

LAZY = "run the model once to initialise the shapes, then call {}"


def retie_call(names: Sequence[str] = (), keep: str = "") -> str:
    """Return a call of `tallystick.retie` as text.

    Args:
        names: the tensors to tie; empty if the model itself declares its ties.
        keep: the tensor whose values are kept; "" for the default.

    >>> print(retie_call(["wte.weight", "lm_head.weight"], keep="wte.weight"))
    tallystick.retie(model, "wte.weight", "lm_head.weight", keep="wte.weight")
    """
    arguments = ["model", *(f'"{name}"' for name in names), *([f'keep="{keep}"'] if keep else [])]
    return f"tallystick.retie({', '.join(arguments)})"


def one_shape_first(shapes: Sequence[tuple[int, ...]], call: str) -> str:
    """Return the advice to make the shapes of tensors equal before tying them.

    Args:
        shapes: the shapes.
        call: text of the call that ties them.
    """
    first, *others = dict.fromkeys(tuple(map(int, shape)) for shape in shapes)
    if all(shape == first[::-1] for shape in others):
        return f"give them the same shape (use an nn.Linear head), then call {call}"
    rows = [shape[0] for shape in (first, *others) if shape[1:] == first[1:]]
    if len(rows) == len(others) + 1:
        return f"give them the same shape (now {' and '.join(f'{row:,}' for row in rows)} rows), then call {call}"
    return f"give them the same shape, then call {call}"


def is_packed_away(entry: Entry) -> bool:
    """Return whether a live model keeps a weight in an object without Parameters.

    `torch.ao.quantization` does so.
    """
    return entry.called != entry.name


def packed_before(name: str) -> str:
    """Return the advice for a pair of tensors if `name` is such a weight."""
    return f"{name} is packed, not a Parameter: exclude its module from quantisation to keep the tie"


def tied_before(wrapper: str, call: str) -> str:
    """Return the advice for a model whose wrapper has already collected the Parameters.

    Args:
        wrapper: name of the wrapper.
        call: text of the call that ties them.
    """
    return f"tie the model before {wrapper} wraps it, with {call}"
