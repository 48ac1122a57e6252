"""Count a config without weights, in the bytes that its files would hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick.core.ledger import Ledger
from tallystick.sources.configs.config import ledger_from_config
from tallystick.sources.configs.native import dtype_note
from tallystick.sources.configs.resolve import TEXT_PARTS
from tallystick.sources.quantized import KEY, KEYS


def ledger_of_config(
    values: Mapping[str, Any], overrides: Mapping[str, Any], *, source: str, kind: str = "config"
) -> Ledger:
    """Return the ledger of a config without weights, packed if the config says so.

    Args:
        values: the config as a dictionary.
        overrides: keys to set over the config; `quantization_config` is allowed, null removes it.
        source: the user's name for the config, for messages.
        kind: ``"config"`` or ``"preset"``.

    Raises:
        BadInput: if the config cannot be read, or nothing reads one of the overrides.
    """
    if isinstance(values, Mapping) and _is_quantised(values, overrides):
        from tallystick.sources.quantized.from_config import ledger_of_quantised

        return ledger_of_quantised(values, overrides, source=source, kind=kind)
    ledger = ledger_from_config(values, overrides, source=source, kind=kind)
    return ledger.with_notes(*dtype_note(values, overrides)) if kind == "config" else ledger


def _is_quantised(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> bool:
    """Return whether a config or its language part states how weights are quantised."""
    parts = [values, *(values[part] for part in TEXT_PARTS if isinstance(values.get(part), Mapping))]
    return KEY in overrides or any(part.get(key) for part in parts for key in KEYS)
