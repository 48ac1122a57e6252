"""What llama.cpp's options say of a model: parts of a GGUF file, shares of devices, patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tallystick.answers.memory.gguf import layers_of_entry, part_of
from tallystick.answers.memory.number_formats import bytes_of
from tallystick.answers.serve.options import Options
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted

MOST_DEVICES = 128
MOST_PATTERN = 2000  # characters

_ATTENTION = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "qkv": "attn_qkv", "output": "attn_output"}
_GATE_AND_UP = re.compile(r"\.gate_up_proj(\.weight)?$")
_GATE = re.compile(r"\.(gate_proj|w1|gate)(\.weight)?$")
_SHARED = re.compile(r"shared")


def gguf_tensors(ledger: Ledger, form: str | None) -> tuple[tuple[int, str, int], ...]:
    """Return each layer's matrices: its number, the name in a GGUF file, and bytes.

    Names are those of gguf-py's tensor_mapping.py; norms and routers, which stay where their layer
    is, are left out.

    Args:
        ledger: the model.
        form: number format of the weights; None: as stored.
    """
    return tuple(
        (layer, f"blk.{layer}.{name}.weight", size)
        for entry in ledger.parameters
        for name, share in _names(entry)
        for layer, size in _by_layer(entry, bytes_of(entry, form) * share)
    )


def _names(entry: Entry) -> Iterator[tuple[str, float]]:
    """Yield the names of an entry in a GGUF file, and the share of its bytes that each has."""
    if len(entry.shape) < 2:
        return
    part = part_of(entry)
    if part in _ATTENTION and entry.role == "attention":
        yield _ATTENTION[part], 1.0
    if entry.role not in ("mlp", "experts"):
        return
    end = "_exps" if entry.role == "experts" else "_shexp" if _SHARED.search(entry.name) else ""
    if part == "down":
        yield f"ffn_down{end}", 1.0
    elif _GATE_AND_UP.search(entry.name):
        yield from ((f"ffn_{name}{end}", 0.5) for name in ("gate", "up"))
    else:
        yield f"ffn_{'gate' if _GATE.search(entry.name) else 'up'}{end}", 1.0


def _by_layer(entry: Entry, size: float) -> Iterator[tuple[int, int]]:
    if not entry.axes:
        return
    layers = layers_of_entry(entry)
    yield from ((layer, round(size / len(layers))) for layer in layers)


def text_and_towers(ledger: Ledger) -> tuple[Ledger, int]:
    """Return the text model, and the bytes of its towers: they are another file (``--mmproj``)."""
    towers = ledger.model.towers
    if not towers:
        return ledger, 0
    held = [entry for entry in ledger.parameters if entry.name.startswith(towers)]
    text = tuple(entry for entry in ledger.rolled if not entry.name.startswith(towers))
    return replace(ledger, rolled=text), sum(entry.bytes * entry.copies for entry in held)


def shares_of(asked: Options) -> tuple[float, ...]:
    """Return the part of the layers that each device holds; () if there is one device."""
    if asked.tensor_split is None:
        return (1.0,) * asked.pp if asked.pp > 1 else ()
    try:
        shares = tuple(float(part) for part in re.split("[,/]", asked.tensor_split))
    except ValueError:
        shares = ()
    if not shares or min(shares) < 0 or not 0 < sum(shares) < float("inf") or len(shares) > MOST_DEVICES:
        raise BadInput(
            f"tensor_split is {quoted(asked.tensor_split)}, expected each device's part of the layers, such as 3,1",
            code="bad-value",
        )
    return shares


def overrides_of(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return the patterns of ``--override-tensor``, and the buffer type of each."""
    found = []
    for part in filter(None, (text or "").split(",")):
        pattern, equals, where = part.rpartition("=")
        try:
            re.compile(pattern)
        except re.error:
            equals = ""
        if not equals or not where or len(pattern) > MOST_PATTERN:
            raise BadInput(
                f"override_tensor is {quoted(part)}, expected a pattern and a buffer type, such as exps=CPU",
                code="bad-value",
            )
        found.append((pattern, where))
    return tuple(found)
