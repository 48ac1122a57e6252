"""Multi-token prediction layers, which the causal language model leaves out.

They predict tokens beyond the next one. Their names continue the numbers of the model's blocks,
as DeepSeek-V3's ``model.layers.61``, or contain ``mtp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tallystick.core.entries import Entry

LAYERS = "num_nextn_predict_layers"
KEYS = (LAYERS, "num_mtp_layers")  # config keys that state their number

NAMED = re.compile(r"(^|\.)mtp\w*\.")
JOINS = ".eh_proj."  # projects hidden state and token embedding together; only multi-token prediction has it


def stated(values: Mapping[str, Any]) -> int:
    """Return the number of such layers that a config states; 0 if it states no number."""
    counts = [values.get(key) for key in KEYS]
    return max((count for count in counts if type(count) is int), default=0)


def parameters_of_one(entries: Sequence[Entry]) -> int:
    """Return the parameters that one such layer adds to a model of these entries.

    It has one more block like the last, the projection of hidden state and token (2d × d), and
    three norms. It shares embedding and LM head with the model (DeepSeek-AI 2024, "DeepSeek-V3
    Technical Report", section 2.2).
    """
    width = next(int(entry.shape[1]) for entry in entries if entry.role == "token_embedding")
    blocks = [entry for entry in entries if entry.axes and not entry.buffer]
    end = max(entry.axes[0].start + entry.axes[0].length for entry in blocks)
    last = [entry for entry in blocks if entry.axes[0].start + entry.axes[0].length == end]
    each = sum(int(entry.unique) * entry.copies // int(entry.axes[0].length) for entry in last)
    return each + 2 * width**2 + 3 * width


def among(entries: Iterable[Entry]) -> list[Entry]:
    """Return the tensors of multi-token prediction, as single entries.

    Args:
        entries: entries of a checkpoint that the model itself does not have.
    """
    singles = [single for entry in entries for single in entry.unrolled()]
    blocks = tuple(entry.name.partition(JOINS)[0] + "." for entry in singles if JOINS in entry.name)
    return [entry for entry in singles if entry.name.startswith(blocks) or NAMED.search(entry.name)]
