"""The texts of tests/chats, with numbers replaced."""

from __future__ import annotations

from repository import TESTS

CHATS = TESTS / "chats"
NAMES = {"gpt2_124m": "gpt2", "gpt2_1558m": "gpt2-xl", "llama2_7b": "llama-2-7b"}


def chat(name, changes=()):
    """A text, with each number that is a key of `changes` replaced wherever it stands."""
    text = (CHATS / f"{name}.md").read_text(encoding="utf-8")
    for old, new in dict(changes).items():
        assert f"{old:,}" in text
        text = text.replace(f"{old:,}", f"{new:,}")
    return text
