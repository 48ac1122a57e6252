"""Multi-token prediction: layers that predict tokens beyond the next, which the causal language model leaves out.

They are numbered on after its blocks, as DeepSeek-V3's ``model.layers.61``, or have ``mtp`` in their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tallystick.core.ledger import Entry

LAYERS = "num_nextn_predict_layers"
KEYS = (LAYERS, "num_mtp_layers")  # how configs say how many there are

NAMED = re.compile(r"(^|\.)mtp\w*\.")
JOINS = ".eh_proj."  # what joins hidden state and token: only a block that predicts a token further has it


def stated(values: Mapping[str, Any]) -> int:
    """How many such layers a config states; 0 where none, or no number."""
    counts = [values.get(key) for key in KEYS]
    return max((count for count in counts if type(count) is int), default=0)


def parameters_of_one(entries: Sequence[Entry]) -> int:
    """What one such layer has of its own, beside a model of these entries.

    One more block like the last, what joins hidden state and token (2d × d), and three norms; embedding and head are
    the model's (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.2).
    """
    width = next(int(entry.shape[1]) for entry in entries if entry.role == "token_embedding")
    blocks = [entry for entry in entries if entry.axes and not entry.buffer]
    end = max(entry.axes[0].start + entry.axes[0].length for entry in blocks)
    last = [entry for entry in blocks if entry.axes[0].start + entry.axes[0].length == end]
    each = sum(int(entry.unique) * entry.copies // int(entry.axes[0].length) for entry in last)
    return each + 2 * width**2 + 3 * width


def among(entries: Iterable[Entry]) -> list[Entry]:
    """Those single tensors, of the ones that a model does not have, that are of multi-token prediction."""
    singles = [single for entry in entries for single in entry.unrolled()]
    blocks = tuple(entry.name.partition(JOINS)[0] + "." for entry in singles if JOINS in entry.name)
    return [entry for entry in singles if entry.name.startswith(blocks) or NAMED.search(entry.name)]
