"""Tell a slip of typing: one digit changed, or two neighbouring ones swapped.

>>> is_one_slip("7087782", "7087872"), is_one_slip("7087782", "7078872")
(True, False)
"""

from __future__ import annotations


def is_one_slip(written: str, meant: str) -> bool:
    """Return whether two numbers differ in one digit, or in the order of two neighbouring ones."""
    if len(written) != len(meant) or written == meant:
        return False
    first = 0
    while written[first] == meant[first]:  # much faster than comparing all digits
        first += 1
    changed = written[first + 1 :] == meant[first + 1 :]
    pair, behind = slice(first, first + 2), slice(first + 2, None)
    return changed or (written[pair] == meant[pair][::-1] and written[behind] == meant[behind])
