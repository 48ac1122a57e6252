"""Writes right derivations of a config's parameter count as people do, in several styles, and
spoils them.

The sums are made here, from the config alone. A text is a list of words and numbers, so that any
one number can be changed and its line told.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

THOUSANDS = {
    "plain": str,
    "commas": lambda number: f"{number:,}",
    "spaces": lambda number: f"{number:,}".replace(",", " "),
    "underscores": lambda number: f"{number:_}",
    "apostrophes": lambda number: f"{number:,}".replace(",", "'"),
    "latex": lambda number: f"{number:,}".replace(",", "{,}"),
}
TIMES = ("×", "*", "·", "x", r"\times", r"\cdot")


class Line(NamedTuple):
    """``label: (Σ of products) × times = value``; a product is some numbers."""

    label: str
    products: list[tuple[int, ...]]
    times: int = 1

    @property
    def value(self) -> int:
        return self.times * sum(math.prod(product) for product in self.products)


def gpt2(c: dict[str, int]) -> list[Line]:
    """GPT-2: tied head, learned positions, biases everywhere."""
    d, layers = c["n_embd"], c["n_layer"]
    block = [
        Line("LayerNorm 1 of one layer", [(2, d)]),
        Line("Query, key and value of one layer", [(d, 3 * d), (3 * d,)]),
        Line("Attention output projection of one layer", [(d, d), (d,)]),
        Line("LayerNorm 2 of one layer", [(2, d)]),
        Line("MLP up projection of one layer", [(d, 4 * d), (4 * d,)]),
        Line("MLP down projection of one layer", [(4 * d, d), (d,)]),
    ]
    return _whole(
        [
            Line("Token embedding", [(c["vocab_size"], d)]),
            Line("Position embedding", [(c["n_positions"], d)]),
        ],
        block,
        layers,
        [Line("Final LayerNorm", [(2, d)])],
    )


def llama(c: dict[str, int]) -> list[Line]:
    """Llama: a head of its own, no biases, grouped key and value heads."""
    d, inner, layers = c["hidden_size"], c["intermediate_size"], c["num_hidden_layers"]
    keys = d // c["num_attention_heads"] * c["num_key_value_heads"]
    block = [
        Line("Query projection of one layer", [(d, d)]),
        Line("Key and value projections of one layer", [(2, d, keys)]),
        Line("Attention output projection of one layer", [(d, d)]),
        Line("MLP (gate, up, down) of one layer", [(3, d, inner)]),
        Line("RMSNorms of one layer", [(2, d)]),
    ]
    head = [Line("LM head", [(d, c["vocab_size"])])]
    return _whole(
        [Line("Token embedding", [(c["vocab_size"], d)])], block, layers, [Line("Final RMSNorm", [(d,)]), *head]
    )


def book_gpt(c: dict[str, int]) -> list[Line]:
    """The book's GPT with biases everywhere: that of GPT-2, and a head of its own."""
    keys = {"n_embd": "emb_dim", "n_layer": "n_layers", "n_positions": "context_length", "vocab_size": "vocab_size"}
    *parts, total = gpt2({key: c[name] for key, name in keys.items()})
    head = Line("LM head", [(c["emb_dim"], c["vocab_size"])])
    return [*parts, head, Line("Total", [*total.products, (head.value,)])]


def book_llama(c: dict[str, int]) -> list[Line]:
    """The book's Llama: the same sum under other keys."""
    keys = {
        "hidden_size": "emb_dim",
        "intermediate_size": "hidden_dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "num_key_value_heads": "n_heads",
        "vocab_size": "vocab_size",
    }
    return llama({key: c[name] for key, name in keys.items()})


def _whole(before: list[Line], block: list[Line], layers: int, after: list[Line]) -> list[Line]:
    one = Line("One layer", [(line.value,) for line in block])
    stack = Line("All layers", [(one.value,)], layers)
    parts = [*before, stack, *after]
    return [*before, *block, one, stack, *after, Line("Total", [(line.value,) for line in parts])]


def written(lines: list[Line], style: str, times: str) -> list[str | int]:
    """A derivation as words and numbers, in one of `STYLES`."""
    return STYLES[style](lines, times)


def text_of(pieces: list[str | int], thousands: str) -> str:
    """The text, its numbers written in one of the styles of `THOUSANDS`."""
    return "".join(piece if isinstance(piece, str) else THOUSANDS[thousands](piece) for piece in pieces)


def spoiled(pieces: list[str | int], chance: random.Random) -> tuple[list[str | int], int]:
    """The same with one number changed, and the line that it is in."""
    place = chance.choice([place for place, piece in enumerate(pieces) if isinstance(piece, int)])
    number = pieces[place]
    assert isinstance(number, int)
    wrong = number + chance.choice([step for step in (-100, -10, -3, -1, 1, 2, 9, 90, 960) if number + step > 0])
    line = 1 + sum(piece.count("\n") for piece in pieces[:place] if isinstance(piece, str))
    return [*pieces[:place], wrong, *pieces[place + 1 :]], line


def _sum(line: Line, times: str, plus: str = " + ") -> list[str | int]:
    """The products of a line, without its value."""
    out: list[str | int] = []
    for product in line.products:
        out += [plus] if out else []
        for place, factor in enumerate(product):
            out += [f" {times} ", factor] if place else [factor]
    return [line.times, f" {times} ", *(["(", *out, ")"] if len(line.products) > 1 else out)] if line.times > 1 else out


def _bullets(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = ["# A count\n\nWhere do they go?\n\n"]
    for line in lines:
        out += [f"- **{line.label}**: ", *_sum(line, times), " = ", line.value, " parameters\n"]
    return out


def _prose(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = []
    for line in lines:
        out += [f"{line.label}, that is ", *_sum(line, times), " = ", line.value, " of them.\n\n"]
    return out


def _several_lines(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = []
    for line in lines:
        out += [f"{line.label} = ", *_sum(line, times, "\n    + "), "\n    = ", line.value, "\n\n"]
    return out


def _table(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = ["| part | how | parameters |\n|:--|:-:|--:|\n"]
    for line in lines:
        out += [f"| {line.label} | ", *_sum(line, times), " | ", line.value, " |\n"]
    return out


def _aligned(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = ["\\begin{align*}\n"]
    for line in lines:
        out += [f"\\text{{{line.label}}} &= ", *_sum(line, times), " \\\\\n  &= ", line.value, " \\\\\n"]
    return [*out, "\\end{align*}\n"]


def _display(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = []
    for line in lines:
        out += [f"**{line.label}:**\n\n$$\n", *_sum(line, times), " = ", line.value, "\n$$\n\n"]
    return out


def _chat(lines: list[Line], times: str) -> list[str | int]:
    out: list[str | int] = ["User: how many parameters does it have?\n\nAssistant: Sure! Step by step:\n\n"]
    for number, line in enumerate(lines, 1):
        out += [f"{number}. {line.label} → ", *_sum(line, times), " = **", line.value, "**\n"]
    return out


def _columns(lines: list[Line], times: str) -> list[str | int]:
    """As in a block of code: labels, products and values under one another, the total without its
    sum.
    """
    out: list[str | int] = ["```text\n"]
    for line in lines:
        if line.label in ("One layer", "Total"):
            out += [f"{line.label:<45}  ", line.value, "\n"]
        else:
            out += [f"{line.label:<45}  ", *_sum(line, times), "  =  ", line.value, "\n"]
    return [*out, "```\n"]


def _code(lines: list[Line], times: str) -> list[str | int]:
    """Python that computes, with what each line comes to behind it."""
    out: list[str | int] = ["```python\n"]
    for line in lines:
        name = "_".join(word.strip(",()").lower() for word in line.label.split())
        out += [f"{name} = ", *_sum(line, "*"), "  # ", line.value, "\n"]
    return [*out, "```\n"]


def _labelled_sum(lines: list[Line], times: str) -> list[str | int]:
    """Its last line names what it adds: "embedding 38,597,376 + layers 85,054,464 + … =
    124,439,808".
    """
    *parts, total = lines
    named = {line.value: line.label for line in parts}
    out: list[str | int] = []
    for line in parts:
        out += [f"- {line.label}: ", *_sum(line, times), " = ", line.value, "\n"]
    out += ["\n"]
    for place, (value,) in enumerate(total.products):
        out += [" + " if place else "", f"{named[value].lower()} ", value]
    return [*out, " = ", total.value, "\n"]


def _sections(lines: list[Line], times: str) -> list[str | int]:
    """A chatbot's: sections, the layers' sum called a total, and at the end all that it adds with
    words behind the numbers.
    """
    *parts, total = lines
    named = {line.value: line.label for line in parts}
    out: list[str | int] = ["To count them, let's go through each component.\n"]
    for number, line in enumerate(parts, 1):
        label = {"One layer": "Total Parameters per Layer", "All layers": "Total for All Layers"}.get(
            line.label, line.label
        )
        out += [f"### {number}. {label}\nIt has:\n\\[\n", *_sum(line, r"\times"), " = ", line.value, "\n\\]\n"]
    out += ["### Total Parameters\nAdding up all the components:\n\\[\n"]
    for place, (value,) in enumerate(total.products):
        out += [" + " if place else "", value, f" \\text{{ ({named[value].lower()})}}"]
    return [*out, " = ", total.value, "\n\\]\nThat is what was expected.\n"]


def _equations(lines: list[Line], times: str) -> list[str | int]:
    """Equations alone, one to a line, without any words: structure has to do."""
    out: list[str | int] = []
    for line in lines:
        out += [*_sum(line, times), " = ", line.value, "\n"]
    return out


# What the labels say in other languages: the parts of each, the longer before the shorter.
LANGUAGES: dict[str, tuple[tuple[str, str], ...]] = {
    "English": (),
    "German": (
        ("Token embedding", "Token-Einbettung"), ("Position embedding", "Positions-Einbettung"), ("of one layer", "je Schicht"),
        ("One layer", "Eine Schicht zusammen"), ("All layers", "Alle Schichten"), ("Total", "Insgesamt"), ("Final", "Letzte"),
    ),
    "Chinese": (
        ("Token embedding", "词嵌入"), ("Position embedding", "位置嵌入"), ("of one layer", "每层"), ("One layer", "每层合计"),
        ("All layers", "全部层"), ("Total", "总计"), ("Final", "最终"), ("Attention", "注意力"),
    ),
    "Korean": (
        ("Token embedding", "토큰 임베딩"), ("Position embedding", "위치 임베딩"), ("of one layer", "레이어당"),
        ("One layer", "레이어 하나 합계"), ("All layers", "전체 레이어"), ("Total", "총합"), ("Final", "최종"),
    ),
    "French": (
        ("Token embedding", "Plongement des mots"), ("Position embedding", "Plongement des positions"),
        ("of one layer", "par couche"), ("One layer", "Une couche"), ("All layers", "Toutes les couches"), ("Total", "Au total"),
        ("Final", "Dernière"),
    ),
    "Russian": (
        ("Token embedding", "Эмбеддинг токенов"), ("Position embedding", "Эмбеддинг позиций"), ("of one layer", "на слой"),
        ("One layer", "Один слой"), ("All layers", "Все слои"), ("Total", "Итого"), ("Final", "Последний"),
    ),
    "Spanish": (
        ("Token embedding", "Embedding de tokens"), ("Position embedding", "Embedding de posiciones"), ("of one layer", "por capa"),
        ("One layer", "Una capa"), ("All layers", "Todas las capas"), ("Total", "En total"), ("Final", "Última"),
    ),
    "Japanese": (
        ("Token embedding", "トークン埋め込み"), ("Position embedding", "位置埋め込み"), ("of one layer", "層あたり"),
        ("One layer", "一層の合計"), ("All layers", "全層"), ("Total", "総計"), ("Final", "最終"),
    ),
}  # fmt: skip


def translated(pieces: list[str | int], language: str) -> list[str | int]:
    """A derivation with its labels in another language."""
    out = list(pieces)
    for english, other in LANGUAGES[language]:
        out = [piece.replace(english, other) if isinstance(piece, str) else piece for piece in out]
    return out


STYLES = {
    "bullets": _bullets,
    "prose": _prose,
    "several lines": _several_lines,
    "table": _table,
    "aligned": _aligned,
    "display": _display,
    "chat": _chat,
    "columns": _columns,
    "code": _code,
    "labelled sum": _labelled_sum,
    "sections": _sections,
    "equations": _equations,
}
