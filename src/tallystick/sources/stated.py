"""Read the model configs that a text contains, each as a ledger."""

from __future__ import annotations

from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.sources.config_ledger import ledger_of_config
from tallystick.sources.configs.pasted import dictionaries


def models(text: str) -> list[Ledger]:
    """Return a ledger for each model config in a text, in order of appearance."""
    found = []
    for pasted in dictionaries(text):
        name = f"{pasted.name or 'the dictionary'} (line {pasted.line} of the text)"
        try:
            found.append(ledger_of_config(pasted.values, {}, source=name))
        except BadInput:  # a dictionary of something else
            continue
    return found
