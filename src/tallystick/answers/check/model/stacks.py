"""The encoder and the decoder of a model that has both, and the words that name one of them.

>>> stack_of(["Cross-Attention", "Per decoder layer"])
'cross'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tallystick.answers.check.model.atoms import Atom

# Words for each stack, and for the attention of a decoder to what the encoder gives.
WORDS = {
    "cross": re.compile(
        r"cross.?att|enc(?:oder)?.?dec(?:oder)?.?att|交叉注意|交差注意|クロス.?(?:アテ|注意)|교차|크로스|atención cruzada|atenção cruzada|attention croisée",
        re.IGNORECASE,
    ),
    "encoder": re.compile(
        r"(?<![a-z])(?:en[ck]oder|encodeur|codificador|source|src)|кодировщик|энкодер|编码器|編碼器|エンコーダ|인코더",
        re.IGNORECASE,
    ),
    "decoder": re.compile(
        r"(?<![a-z])(?:de[ck]oder|décodeur|decodificador|target|tgt)|декодировщик|декодер|解码器|解碼器|デコーダ|디코더",
        re.IGNORECASE,
    ),
}
_CROSS = re.compile(r"cross|encoder_?attn|enc_?dec", re.IGNORECASE)  # in a tensor's name


class Stack(NamedTuple):
    """The atoms of an encoder or a decoder, by their places."""

    name: str
    all: set[int]
    inside: set[int]  # its layers, without what only the first of them has
    cross: set[int]  # attention to the encoder, and its norm


def stacks_of(atoms: Sequence[Atom]) -> list[Stack]:
    """Return the encoder and the decoder of a model, or none if it has not both."""
    found = [_stack(name, atoms) for name in ("encoder", "decoder")]
    return found if all(stack.inside for stack in found) else []


def stack_of(labels: Iterable[str]) -> str:
    """Return the stack that the first label which names any names alone, or ""."""
    for label in labels:
        if label and WORDS["cross"].search(label):
            return "cross"
        named = [name for name in ("encoder", "decoder") if label and WORDS[name].search(label)]
        if named:
            return named[0] if len(named) == 1 else ""
    return ""


def _stack(name: str, atoms: Sequence[Atom]) -> Stack:
    every = {place for place, atom in enumerate(atoms) if name in atom.name.split(".")}
    layers = Counter(atoms[place].layers for place in every if "*" in atoms[place].name)
    usual = layers.most_common(1)[0][0] if layers else 0
    inside = {place for place in every if "*" in atoms[place].name and atoms[place].layers == usual}
    return Stack(name, every, inside, {place for place in inside if _CROSS.search(atoms[place].name)})
