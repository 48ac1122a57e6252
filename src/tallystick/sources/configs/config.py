"""Turn a config into a ledger: a native family reads it, or transformers builds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick.core.budget import current
from tallystick.core.ledger import Ledger
from tallystick.core.registry import Architecture
from tallystick.errors import BadInput, shown
from tallystick.sources.configs.native import native_ledger, refuse_odd_flag, refuse_too_many
from tallystick.sources.configs.resolve import Resolved, resolve


def ledger_from_config(
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    source: str,
    kind: str = "config",
    published: bool = False,
) -> Ledger:
    """Return the ledger of the model that a config describes.

    Args:
        values: the config as a dictionary.
        overrides: keys to set over the config.
        source: the user's name for the config, for messages.
        kind: ``"config"`` or ``"preset"``.
        published: use the names of published files (one tensor per expert) instead of
            transformers 5's names (fused experts).

    Raises:
        BadInput: if the config cannot be read, or nothing reads one of the overrides.
    """
    if not isinstance(values, Mapping):
        raise BadInput(
            f"{source} holds {shown(values)}, expected a config: an object with a model_type", code="not-a-config"
        )
    return ledger_of(resolve(values, overrides, source), kind=kind, published=published)


def ledger_of(asked: Resolved, *, kind: str = "config", published: bool = False) -> Ledger:
    """Return the ledger of the class that a resolved config names.

    Args:
        asked: the resolved config.
        kind: ``"config"`` or ``"preset"``.
        published: use the names of published files (one tensor per expert).

    Raises:
        BadInput: if a key is unknown or a value is out of range.
    """
    source, family = asked.source, asked.native
    if family is None or _has_class(family, asked.foreign):
        from tallystick.sources.transformers_meta.fallback import ledger_by_transformers

        refuse_odd_flag(asked.stated, source)
        with current().paused():
            return ledger_by_transformers(asked.model_type, asked.values, asked.overrides, source=source)
    return native_ledger(asked, kind=kind, published=published)


def layouts(asked: Resolved) -> tuple[Ledger, ...]:
    """Return the ledgers that files next to a native config may match, one per layout of names.

    If the config's class is not the language model, the language model's layouts come last: some
    configs name a class, and their files hold more than that class has.
    """
    named = (asked, asked.language) if asked.variant else (asked.language,)
    found: list[Ledger] = []
    for one in named:
        for published in (False, True) if one.native else (False,):  # a model built by transformers has one layout
            ledger = ledger_of(one, published=published)
            if all(ledger.rolled != other.rolled for other in found):  # GPT-2's layouts are equal
                found.append(ledger)
    refuse_too_many(found, asked.source)
    return tuple(found)


def _has_class(family: Architecture, name: str) -> bool:
    """Return whether transformers has this non-native class of a native type."""
    if not name:
        return False
    from tallystick.sources.transformers_meta.fallback import has_class

    return has_class(family.name, name)
