"""The same derivation written otherwise: what is changed here says nothing about what is counted.

Lines in another order, labels by another name, another layout or notation, prose between lines.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from derivations import Line

WHOLE_LINES = frozenset(
    ["bullets", "prose", "table", "chat", "columns", "code", "labelled sum", "equations"]
)  # one to a line
CAPTIONED = frozenset(["display", "sections"])  # a formula apart from its words


# -- lines, before they are written ---------------------------------------------------------------


class Slipped(Line):
    """A line whose result is wrong."""

    @property
    def value(self) -> int:
        return super().value + 960


def slipped(lines: list[Line], chance: random.Random) -> list[Line]:
    """The lines with one wrong result, and the later ones that go on from it."""
    values = [line.value for line in lines]
    place = chance.choice([place for place, line in enumerate(lines) if _may_slip(line, values)])
    out = [*lines[:place], Slipped(*lines[place])]
    now = {lines[place].value: out[place].value}
    for line in lines[place + 1 :]:
        out.append(line._replace(products=[_with(product, now) for product in line.products]))
        now[line.value] = out[-1].value
    return out


def _may_slip(line: Line, values: list[int]) -> bool:
    """Whether it computes something, and its result is large enough, and no other's, so that what
    goes on from it is plain.
    """
    return (
        line.value >= 1000 and values.count(line.value) == 1 and max(map(len, line.products)) + len(line.products) > 2
    )


def _with(product: tuple[int, ...], now: dict[int, int]) -> tuple[int, ...]:
    return (now.get(product[0], product[0]),) if len(product) == 1 else product


def reordered(lines: list[Line], chance: random.Random) -> list[Line]:
    """Parts of a layer in another order, and so the parts before the layers."""
    one = next(place for place, line in enumerate(lines) if line.label == "One layer")
    begin = next(place for place, line in enumerate(lines) if "of one layer" in line.label)
    before, block = lines[:begin], lines[begin:one]
    return [*chance.sample(before, len(before)), *chance.sample(block, len(block)), *lines[one:]]


SYNONYMS = {
    "Token embedding": ["Token embedding", "Word embedding", "Embedding matrix", "Token embeddings", "Vocabulary embedding"],
    "Position embedding": ["Positional embedding", "Learned positions", "Position embeddings"],
    "LayerNorm 1 of one layer": ["First norm, per layer", "ln_1 of each block", "LayerNorm before attention, per layer"],
    "LayerNorm 2 of one layer": ["Second norm, per layer", "ln_2 of each block", "LayerNorm before the MLP, per layer"],
    "Query, key and value of one layer": ["QKV projection per layer", "Q, K and V per block", "c_attn, one layer"],
    "Query projection of one layer": ["Q per layer", "W_q of each block"],
    "Key and value projections of one layer": ["K and V per layer", "W_k and W_v of each block"],
    "Attention output projection of one layer": ["Output projection per layer", "W_o of each block"],
    "MLP up projection of one layer": ["First linear of the feed-forward network, per layer", "FFN expansion of each block"],
    "MLP down projection of one layer": ["Second linear of the feed-forward network, per layer", "FFN contraction of each block"],
    "MLP (gate, up, down) of one layer": ["SwiGLU feed-forward network per layer", "Gated MLP of each block"],
    "RMSNorms of one layer": ["Two norms per layer", "Norms of each block"],
    "One layer": ["One layer", "Per layer", "Each block", "Sum for one block", "Parameters per layer"],
    "All layers": ["All layers", "All blocks", "The whole stack"],
    "Final LayerNorm": ["Last LayerNorm", "ln_f", "Norm at the end"],
    "Final RMSNorm": ["Last RMSNorm", "Final norm"],
    "LM head": ["LM head", "Output head", "Unembedding"],
    "Total": ["Total", "Grand total", "Total parameters", "Sum of all", "Altogether"],
}  # fmt: skip


def renamed(lines: list[Line], chance: random.Random) -> list[Line]:
    """Each line under another name."""
    out = []
    for line in lines:
        new = line._replace(label=chance.choice(SYNONYMS[line.label]))
        out.append(Slipped(*new) if isinstance(line, Slipped) else new)
    return out


# -- texts ----------------------------------------------------------------------------------------

PROSE = (
    "This is the largest part.",
    "See chapter 4 for why.",
    "(GPT-2 came out in 2019.)",
    "Next come the norms, which are small.",
    "Nothing is rounded here; so far so good!",
    "As in section 2.1 of the paper, dropout has no weights.",
    "Attention has no biases in some models.",
    "I checked that twice.",
    "Figure 3 shows it.",
)
PREFIXES = ("  ", "    ", "> ", "- ", "* ", "• ", "\t", "  - ")
HEADINGS = (
    "# How many parameters does it have?\n\n",
    "## 1. Parameter count\n",
    "Counting parameters\n===================\n\n",
    "**Step by step:**\n\n",
    "On 12 May 2024, 14:05, Ann wrote:\n\n",
)


def with_prose(text: str, style: str, chance: random.Random) -> str:
    """A sentence after some of the lines, where a paragraph may stand."""
    if style in ("table", "aligned", "columns", "code"):
        return f"{chance.choice(PROSE)}\n\n{text}\n{chance.choice(PROSE)}\n"
    ends = "\n" if style in WHOLE_LINES else "\n\n" if style in ("several lines", "display") else "\\]\n"
    pieces = text.split(ends)
    return ends.join(
        [
            f"{piece}{ends.rstrip()}\n{'' if chance.random() < 0.5 else chr(10)}{chance.choice(PROSE)}\n"
            if piece.strip() and place < len(pieces) - 1 and chance.random() < 0.4
            else piece
            for place, piece in enumerate(pieces)
        ]
    )


def indented(text: str, style: str, chance: random.Random) -> str:
    """Each line behind the same bullet or blanks; a table and a block of code stay as they are."""
    choices = PREFIXES if style in ("prose", "equations") else ("  ", "> ", "\t")
    if style in ("columns", "code", "several lines"):
        choices = ("  ", "    ")
    prefix = chance.choice(choices)
    return "".join(prefix + line if line.strip() else line for line in text.splitlines(keepends=True))


def with_blank_lines(text: str, style: str, chance: random.Random) -> str:
    """Two or three line ends for one, not within a table or an equation."""
    if style == "table":
        return f"\n\n{text}\n\n\n"
    if style in ("several lines", "aligned"):  # an equation has none within
        return text.replace("\n\n", "\n\n\n")
    return text.replace("\n", "\n" * chance.choice((2, 3)))


def from_windows(text: str, style: str, chance: random.Random) -> str:
    """Windows' line ends, and now and then a byte order mark."""
    return "\ufeff" * chance.randrange(2) + text.replace("\n", "\r\n")


def with_trailing_blanks(text: str, style: str, chance: random.Random) -> str:
    return text.replace("\n", "  \n")


def below_a_heading(text: str, style: str, chance: random.Random) -> str:
    return chance.choice(HEADINGS) + text


_FORMULA = re.compile(r"\$\$\n(?P<dollars>.*?)\n\$\$\n|\\\[\n(?P<brackets>.*?)\n\\\]\n", re.DOTALL)


def copied_thrice(text: str, style: str, chance: random.Random) -> str:
    """A formula as a browser copies it: as shown, as written, and as shown, without the signs
    around it.
    """

    def thrice(match: re.Match[str]) -> str:
        source = match["dollars"] or match["brackets"]
        shown = re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", source)
        shown = shown.replace(r"\times", "×").replace(r"\cdot", "⋅").replace("{,}", ",").replace(" ", "")
        return f"{shown}{source}{shown}\n"

    return _FORMULA.sub(thrice, text)


TEXTS: dict[str, Callable[[str, str, random.Random], str]] = {
    "prose between": with_prose,
    "indented": indented,
    "blank lines": with_blank_lines,
    "from Windows": from_windows,
    "trailing blanks": with_trailing_blanks,
    "below a heading": below_a_heading,
    "copied thrice": copied_thrice,
}


def below_its_config(text: str, config: dict[str, Any], chance: random.Random) -> str:
    """The config on top, as JSON or as Python has it."""
    name = chance.choice(("CONFIG", "model_config", "cfg"))
    body = json.dumps(config, indent=chance.choice((None, 4)))
    return f"{name} = {body}\n\n{text}" if chance.random() < 0.5 else f"```json\n{body}\n```\n\n{text}"
