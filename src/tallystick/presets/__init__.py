"""Published models by name: the keys of their config.json that tallystick reads.

Values are from the main branch of each repository as of August 2026. Comments such as "by litgpt's
config.py" name the sources that they were checked against.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.presets import (
    bert,
    deepmind,
    deepseek,
    eleuther,
    gemma,
    gpt,
    llama,
    mistral,
    more,
    olmo,
    opt_bloom_falcon,
    phi,
    qwen,
    t5,
    teaching,
)


class Release(NamedTuple):
    """The family and release month of a preset."""

    family: str
    month: str  # of the release; "" if unpublished


_FAMILIES = (
    gpt, bert, t5, deepmind, llama, mistral, qwen, gemma, phi, eleuther, opt_bloom_falcon, olmo, more, deepseek, teaching,
)  # fmt: skip

PRESETS: dict[str, dict[str, Any]] = {}
RELEASES: dict[str, Release] = {}
for _family in _FAMILIES:
    for _word, _models in _family.FAMILIES.items():
        for _name, (_month, _values) in _models.items():
            PRESETS[_name], RELEASES[_name] = _values, Release(_word, _month)


def found(words: list[str]) -> list[str]:
    """Return the presets that match all words, in order; a word matches a name or a family.

    Args:
        words: parts of names or families, in any case.
    """
    wanted = [word.lower() for word in words]
    return [
        name
        for name, release in RELEASES.items()
        if all(word in name or word in release.family.lower() for word in wanted)
    ]
