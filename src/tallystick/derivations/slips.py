"""Tell a slip of typing: one digit changed, or two neighbouring ones swapped.

>>> is_one_slip("7087782", "7087872"), is_one_slip("7087782", "7078872")
(True, False)
"""

from __future__ import annotations


def is_one_slip(written: str, meant: str) -> bool:
    """Return whether two numbers differ in one digit, or in the order of two neighbouring ones."""
    if len(written) != len(meant) or written == meant:
        return False
    off = [place for place, (one, other) in enumerate(zip(written, meant, strict=True)) if one != other]
    first, last = off[0], off[-1]
    swapped = len(off) == 2 and last == first + 1 and written[first : last + 1] == meant[first : last + 1][::-1]
    return len(off) == 1 or swapped
