"""Versions of an engine as people write them, and the release whose rules they follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from tallystick.errors import BadInput, quoted

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[.\w+-]{0,60})")
_NEWEST = 9999  # 0.5 alone is the newest of its line


class _Numbered(Protocol):
    @property
    def number(self) -> tuple[int, ...]:
        """Its version."""


R = TypeVar("R", bound=_Numbered)


def release_before(engine: str, given: str, releases: Sequence[R], newest: str) -> R:
    """Return the last release that is not after a version: ``"0.19"``, ``"v0.4.6.post2"``.

    Args:
        engine: its name, for an error.
        given: the version.
        releases: in order.
        newest: the version that an error gives as an example.

    Raises:
        BadInput: if it is not a version, or one before the first release.
    """
    match = _VERSION.fullmatch(given.strip())
    if match is None:
        raise BadInput(f"{quoted(given)} is not a version: give one such as {newest}", code="bad-value")
    number = (int(match[1]), int(match[2]), int(match[3]) if match[3] else _NEWEST)
    found = [one for one in releases if one.number <= number]
    if not found:
        begin = ".".join(map(str, releases[0].number[:2]))
        raise BadInput(
            f"{engine} {given} is not known: rules begin with {begin}; give --engine-version", code="unknown-name"
        )
    return found[-1]
