"""Published models by name: the keys of each config.json that an answer reads, as data by family.

Facts are those of the repository's main branch as of August 2026; a preset's comment says where they were checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallystick.presets import (
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
    teaching,
)


class Release(NamedTuple):
    """What is known of a preset beside its config."""

    family: str
    month: str  # of its release, "" for what was never published


_FAMILIES = (
    gpt, llama, mistral, qwen, gemma, phi, eleuther, opt_bloom_falcon, olmo, more, deepseek, teaching,
)  # fmt: skip

PRESETS: dict[str, dict[str, Any]] = {}
RELEASES: dict[str, Release] = {}
for _family in _FAMILIES:
    for _word, _models in _family.FAMILIES.items():
        for _name, (_month, _values) in _models.items():
            PRESETS[_name], RELEASES[_name] = _values, Release(_word, _month)


def found(words: list[str]) -> list[str]:
    """The presets in whose name or family each of some words stands, in order."""
    wanted = [word.lower() for word in words]
    return [
        name
        for name, release in RELEASES.items()
        if all(word in name or word in release.family.lower() for word in wanted)
    ]
