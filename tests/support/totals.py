"""How many parameters others' models of a config have."""

from __future__ import annotations

from typing import Any


def total(values: dict[str, Any]) -> int | None:
    """What the model of a config has; None of a config of which none can be built, for any
    reason.
    """
    from reference import truth

    try:
        return truth(values).total
    except Exception:
        return None
