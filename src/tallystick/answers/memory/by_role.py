"""Which role the bytes of a memory answer belong to."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tallystick.answers.memory.answer import Memory
from tallystick.answers.memory.gguf_rules import FILE_TYPES
from tallystick.answers.memory.lines import Line
from tallystick.answers.memory.model_states import weights

# Words in a line's name that say which part of a model its bytes are of.
_NAMED = {
    "attention": re.compile(r"\battention\b|\battn\b|keys and values"),
    "ssm": re.compile(r"(convolution|recurrent) states|\bscan"),
    "experts": re.compile(r"\bexperts\b"),
    "mlp": re.compile(r"\bmlp\b"),
    "norm": re.compile(r"\bnorms\b"),
}


def role_of(line: Line) -> str:
    """Return the role of a line's bytes; "" if they are of the whole model.

    >>> role_of(Line("kv_cache", "keys and values in float16", 0, ""))
    'attention'
    """
    if line.part == "logits":
        return "head"
    if line.part not in ("kv_cache", "activations"):
        return ""
    return next((role for role, pattern in _NAMED.items() if pattern.search(line.what.lower())), "")


def weights_by_role(answer: Memory) -> Mapping[str, int]:
    """Return the bytes of an inference's weights by role, as they are counted; none for training.

    Args:
        answer: the memory answer.

    >>> import tallystick
    >>> weights_by_role(tallystick.memory("gpt2", dtype="float16"))["token_embedding"]
    77194752
    """
    form = None if answer.dtype in FILE_TYPES else answer.dtype
    roles: dict[str, list[int]] = {}
    for place, entry in enumerate(answer.held):
        roles.setdefault(entry.role, []).append(place)
    return {
        role: sum(line.bytes for line in weights([answer.held[place] for place in places], form))
        for role, places in roles.items()
    }
