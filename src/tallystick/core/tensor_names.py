"""The numbers in tensors' names, as torch gives them to the modules of a list: `h.11.ln_1.weight` is one of a stack."""

from __future__ import annotations

import re

# The numbers that torch gives to the modules of a list: whole parts of a dotted name before its last.
_NUMBERS = re.compile(r"\.([0-9]{1,9})(?=\.)")

MOST_NUMBERS = 8  # in one name; real ones have two or three
LONGEST_TOLD = 500  # characters of a name that tells something; real ones have 150, and patterns take time


def template_of(name: str) -> tuple[str, tuple[str, ...]]:
    """A name with ``{}`` for its numbers, and the numbers as written.

    >>> template_of("h.11.attn.c_attn.weight")
    ('h.{}.attn.c_attn.weight', ('11',))
    """
    if "{" in name or "}" in name:
        return name, ()
    parts = _NUMBERS.split("." + name)  # with a dot before it, a first number is a part as any other
    if len(parts) > 2 * MOST_NUMBERS:
        return name, ()
    return ".{}".join(parts[::2])[1:], tuple(parts[1::2])


def layer_of(name: str) -> str:
    """The numbered block that a tensor belongs to, or its own module where there is none.

    >>> layer_of("transformer.h.0.attn.c_attn.weight"), layer_of("transformer.wte.weight")
    ('transformer.h.0', 'transformer.wte')
    """
    parts = name.split(".")
    for position, part in enumerate(parts[:-1]):
        if part.isdecimal():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:-1]) or name
