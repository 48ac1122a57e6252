"""The models whose configs a text states, each as its ledger."""

from __future__ import annotations

from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.sources.configs.pasted import dictionaries
from tallystick.sources.quantized.from_config import ledger_of_config


def models(text: str) -> list[Ledger]:
    """The models whose configs a text states, in its order."""
    found = []
    for pasted in dictionaries(text):
        name = f"{pasted.name or 'the dictionary'} (line {pasted.line} of the text)"
        try:
            found.append(ledger_of_config(pasted.values, {}, source=name))
        except BadInput:  # a dictionary of something else
            continue
    return found
