"""Parse sizes in bytes as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """Return the bytes of a size as people write it; None for any other text.

    >>> parse_size("24GB"), parse_size("24GiB"), parse_size("1.5t"), parse_size("a100")
    (24000000000, 25769803776, 1500000000000, None)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match or (match[3] and not match[2]):
        return None
    step = 1024 if match[3] else 1000
    return round(float(match[1]) * int(step ** " kmgt".index(match[2].lower() or " ")))
