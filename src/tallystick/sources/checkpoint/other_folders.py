"""Read the checkpoint folders of Meta, Mistral and litgpt, which have their own configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallystick.core.config import LITGPT_CONFIG, OTHER_CONFIGS
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, quoted
from tallystick.files.flat_yaml import read_flat_yaml
from tallystick.files.remote import Location
from tallystick.files.texts import read_json
from tallystick.formats.folder import find_weights
from tallystick.sources.checkpoint.checkpoint import ledger_from_checkpoint
from tallystick.sources.configs.config import ledger_from_config
from tallystick.sources.configs.resolve import other_kind

_SLICES = "consolidated."  # prefix of Meta's files; each holds a slice of every tensor


def ledger_from_own_folder(
    folder: Location, names: list[str], overrides: Mapping[str, Any], *, source: str
) -> Ledger | None:
    """Return the ledger of a folder of Meta, Mistral or litgpt; None for any other folder.

    One file of weights is counted, and compared with the config. The config is counted if several
    files hold slices of every tensor, or if there are overrides.

    Args:
        folder: the folder.
        names: the names of the folder's files.
        overrides: keys to set over the config.
        source: the user's name for the folder, for messages.

    Raises:
        BadInput: if neither weights nor config can be read.
    """
    config = next((name for name in sorted(OTHER_CONFIGS) if name in names), None)
    values = _values(folder, config)
    if config is None or values is None:
        return None
    slices = [name for name in names if name.startswith(_SLICES) and name.endswith(".pth")]
    weights = find_weights(folder, names) if len(slices) < 2 else None
    if weights is not None and not overrides:
        ledger = ledger_from_checkpoint(weights, {}, source=source)
        return ledger.with_notes(_held_against(ledger, values, config))
    ledger = ledger_from_config(values, overrides, source=str(folder / config))
    if len(slices) > 1:
        unread = f"{quoted(slices[0])} and {len(slices) - 1} more files hold slices of tensors and were not read"
        return ledger.with_notes(f"counted from {config}: {unread}")
    if weights is not None:
        return ledger.with_notes(f"counted from {config}: {quoted(weights.name)} was not read")
    return ledger


def _values(folder: Location, config: str | None) -> Mapping[str, Any] | None:
    """Return the values of a config of these kinds, or None."""
    if config is None:
        return None
    try:
        values = read_flat_yaml(folder / config) if config == LITGPT_CONFIG else read_json(folder / config)
    except BadInput:  # another program's file may have that name
        return None
    return values if isinstance(values, Mapping) and other_kind(values) else None


def _held_against(ledger: Ledger, values: Mapping[str, Any], config: str) -> str:
    """Return a note that compares the config's parameter count with the weights' count."""
    rows = [int(e.shape[0]) for e in ledger.parameters if e.role == "token_embedding" and e.shape]
    if values.get("vocab_size") == -1 and rows:
        values = {**values, "vocab_size": rows[0]}
    try:
        described = ledger_from_config(values, {}, source=config).total
    except BadInput as error:
        return f"the checkpoint's config was not used: {error}"
    if described == ledger.total:
        return f"{config} describes the same number of parameters"
    return f"{config} describes {described:,} parameters, but the weights hold {ledger.total:,}"
