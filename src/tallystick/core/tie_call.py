"""The call that ties tensors again, in words that are the same wherever it is advised."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.ledger import Entry

LAZY = "run the model once to give each its shape, then call {}"


def retie_call(names: Sequence[str] = (), keep: str = "") -> str:
    """The call of `tallystick.retie` for some names, none where the model tells which are meant.

    >>> print(retie_call(["wte.weight", "lm_head.weight"], keep="wte.weight"))
    tallystick.retie(model, "wte.weight", "lm_head.weight", keep="wte.weight")
    """
    arguments = ["model", *(f'"{name}"' for name in names), *([f'keep="{keep}"'] if keep else [])]
    return f"tallystick.retie({', '.join(arguments)})"


def one_shape_first(shapes: Sequence[tuple[int, ...]], call: str) -> str:
    """What to do where shapes differ, and the call after that."""
    first, *others = dict.fromkeys(tuple(map(int, shape)) for shape in shapes)
    if all(shape == first[::-1] for shape in others):
        return f"give them one shape, as an nn.Linear head has an embedding's, then call {call}"
    rows = [shape[0] for shape in (first, *others) if shape[1:] == first[1:]]
    if len(rows) == len(others) + 1:
        return f"give them one shape ({' and '.join(f'{row:,}' for row in rows)} rows now), then call {call}"
    return f"give them one shape, then call {call}"


def is_packed_away(entry: Entry) -> bool:
    """Whether a live model keeps a weight in an object that holds no Parameter, as `torch.ao.quantization` does."""
    return entry.called != entry.name


def packed_before(name: str) -> str:
    """What to do where one of a pair is such a weight."""
    return f"{name} is packed and no Parameter: leave its module out of the quantisation to keep the tie"


def tied_before(wrapper: str, call: str) -> str:
    """What to do where a wrapper has listed the Parameters already."""
    return f"tie the model before {wrapper} wraps it, with {call}"
