"""Read the layer and expert numbers in tensor names such as `h.11.ln_1.weight`."""

from __future__ import annotations

import re

# Numbers that torch gives to the modules of a list: whole parts of a dotted name, not the last.
_NUMBERS = re.compile(r"\.([0-9]{1,9})(?=\.)")

MOST_NUMBERS = 8  # most numbers in one name; real ones have two or three
LONGEST_NAME = 500  # longest name that is matched; real ones have 150 characters, and patterns take time


def template_of(name: str) -> tuple[str, tuple[str, ...]]:
    """Return a name with ``{}`` for its numbers, and the numbers as written.

    >>> template_of("h.11.attn.c_attn.weight")
    ('h.{}.attn.c_attn.weight', ('11',))
    """
    if "{" in name or "}" in name:
        return name, ()
    parts = _NUMBERS.split("." + name)  # a leading dot, so that a first number matches too
    if len(parts) > 2 * MOST_NUMBERS:
        return name, ()
    return ".{}".join(parts[::2])[1:], tuple(parts[1::2])


def layer_of(name: str) -> str:
    """Return the numbered block that a tensor belongs to; without one, its module.

    >>> layer_of("transformer.h.0.attn.c_attn.weight"), layer_of("transformer.wte.weight")
    ('transformer.h.0', 'transformer.wte')
    """
    parts = name.split(".")
    for position, part in enumerate(parts[:-1]):
        if part.isdecimal():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:-1]) or name
