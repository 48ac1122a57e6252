"""The items of a list that a line stands under, by indentation."""

from __future__ import annotations

import re
from typing import NamedTuple

from tallystick.derivations.text.lines import Line

MOST_DEEP = 20  # items, one in another
MOST_ITEM_WORDS = 12  # of an item; a longer one is a sentence

_ITEM = re.compile(
    r"[\s#/;│]*(?:[-*+•]|[├└\u2570]\u2500*|\d{1,2}(?:[.)]|(?:\.\d{1,2}){1,3}\.?))\s+(?P<words>[^:=≈\uff1a|]*[^\W\d][^:=≈\uff1a|]*)"
)
_TITLE = re.compile(r"(?P<words>[^\W\d][^:=≈\uff1a|.]*)")  # "attention / layer" above indented lines


class _Item(NamedTuple):
    margin: int
    words: str


class Outline:
    """The items around the current line, the outermost first.

    An item goes on with the lines that are indented further: "  - 768 × 768" below "- Query".
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []

    def enter(self, line: Line) -> None:
        """Leave the items that end before a line."""
        while self._items and self._items[-1].margin >= line.margin:
            self._items.pop()

    def put(self, line: Line) -> None:
        """Record a line as an item, if it is one."""
        item = (_ITEM.match(line.text) or _TITLE.fullmatch(line.text)) if len(self._items) < MOST_DEEP else None
        if item is not None and len(item["words"].split()) <= MOST_ITEM_WORDS:
            self._items.append(_Item(line.margin, item["words"].strip(" *_`")))

    def above(self) -> tuple[str, ...]:
        """Return the words of the items that the current line stands under, the nearest first."""
        return tuple(item.words for item in reversed(self._items))
