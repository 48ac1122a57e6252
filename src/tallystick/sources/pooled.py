"""Take the class of a BERT-style model that has a pooler, where a text counts one."""

from __future__ import annotations

import re

from tallystick import architectures
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.sources.config_ledger import ledger_of_config
from tallystick.sources.configs.classes import base_of

# "Pooler: 768 × 768 + 768 = 590,592", "池化层(全连接) 590592"
_COUNTED = re.compile(
    r"(?<!without )(?<!no )(?:\bpooler\b|池化层|池化層|풀러|プーラー)(?:\W{0,8}\n\s{0,8})?[^\n]{0,80}?\d{3}",
    re.IGNORECASE,
)


def with_pooler(ledger: Ledger, text: str) -> Ledger:
    """Return the ledger of the class that has a pooler and no head, if a text counts a pooler.

    A preset of BERT is the language model. What most people count is `BertModel`.

    Args:
        ledger: the model that the text is said to count.
        text: the derivation.
    """
    recipe = ledger.model.recipe
    if recipe is None or not _COUNTED.search(text) or _has_pooler(ledger):
        return ledger
    family = architectures.find(recipe.family)
    if family is None or not (name := base_of(family)):
        return ledger
    values = {"model_type": recipe.family, "architectures": [name], **recipe.values}
    try:
        other = ledger_of_config(values, {}, source=f"{ledger.source} ({name})")
    except BadInput:
        return ledger
    return other if _has_pooler(other) else ledger


def _has_pooler(ledger: Ledger) -> bool:
    return any("pooler" in entry.name for entry in ledger.rolled)
