"""The oldest torch and transformers that are supported, and the check for them.

They are those of pyproject.toml and `make matrix`. An older package is refused in one line when it
is first used. A missing package is reported elsewhere (`extras`).
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

from tallystick.errors import BadInput

OLDEST = {"torch": "2.6", "transformers": "4.57"}


def require(*packages: str, to: str = "") -> None:
    """Raise `BadInput` if a package is too old.

    Args:
        packages: keys of `OLDEST`.
        to: the purpose, if "here" does not say it.

    Raises:
        BadInput: with the installed version and the command that updates it.
    """
    for package in packages:
        version = installed(package)
        if is_too_old(package):
            oldest = OLDEST[package]
            raise BadInput(
                f"tallystick needs {package} {oldest} or newer {to or 'here'}; this is {version}:"
                f" pip install -U '{package}>={oldest}'",
                code="missing-package",
            )


def is_too_old(package: str) -> bool:
    """Return whether a package is installed in a version older than `OLDEST`."""
    release = _numbers(installed(package) or "")
    return release is not None and release < (_numbers(OLDEST[package]) or ())


@cache
def installed(package: str) -> str | None:
    """Return a package's version without importing it; None if missing or not stated."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...] | None:
    """Return the release numbers of a version; None if it does not begin with a number.

    ``2.6.0+cu124`` and ``2.6.0a0`` are releases of 2.6.0.
    """
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else None
