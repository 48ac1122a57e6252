"""The oldest torch and transformers that this version runs with: those that pyproject.toml asks for and `make matrix` tries.

An older one that is installed is refused where its use begins, in one line; one that is missing is no matter of this file.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

from tallystick.errors import BadInput

OLDEST = {"torch": "2.6", "transformers": "4.57"}


def require(*packages: str, to: str = "") -> None:
    """Refuse to go on with a package that is too old.

    Args:
        packages: keys of `OLDEST`.
        to: what they are needed for, where "here" does not say it.

    Raises:
        BadInput: with the version that is installed, and the command that updates it.
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
    """Whether a package is installed, in a version older than `OLDEST`."""
    release = _numbers(installed(package) or "")
    return release is not None and release < (_numbers(OLDEST[package]) or ())


@cache
def installed(package: str) -> str | None:
    """The version of a package, which is not imported for that; None where it is missing or does not say."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...] | None:
    """The release of a version: ``2.6.0+cu124`` and ``2.6.0a0`` are of 2.6.0. None where it begins with no number."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else None
