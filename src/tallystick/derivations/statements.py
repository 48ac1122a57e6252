"""A derivation as plain data: statements with labels, sides and values, and what was not read."""

from __future__ import annotations

import re
from typing import NamedTuple

from tallystick.derivations.arithmetic import Expression

# How people call a total, in the languages in which they count.
TOTAL = re.compile(
    r"\b(?:totals?|totale[sn]?|totaux|totalit\w*|totales|totais|altogether|in all|overall|sum|(?:ins)?gesamt\w*|summe|zusammen|en tout|somme|au total|suma|en total|toplam\w*|jumlah|totaal|łącznie|celkem|tổng)\b"
    r"|\b(?:(?:whole|entire) (?:model|network)|modelo (?:inteiro|completo|entero)|modèle (?:entier|complet)|ganzes? modell|вся модель)\b|整个模型|モデル全体"
    r"|(?<![^\W_])(?:n|num|number)_(?:of_)?param(?:eter)?s?\b|param(?:eter)?s?_(?:count|quantity|num(?:ber)?)\b"
    r"|^\W*(?:#\s*)?(?:model )?param(?:eter)?s?(?: count)?\W*$|总的参数"
    r"|^\W*(?:参数量|参数总?数|参数个数|參數量|パラメータ数?|파라미터 ?수|параметр(?:ов|ы)|число параметров|parameteranzahl|anzahl (?:der )?parameter|nombre de paramètres|número de par[âá]metros)\W*$"
    r"|\b(?:итого|всего|сумма|в сумме)\b|总计|总共|总和|总数|总参数|总量|合计|共计|總計|總共|總和|總數|總參數|總量|合計|総計|総数|総和|総パラメータ"
    r"|총합|총계|합계|전체|총\s|加起来|加在一起|全部相加|足し合わせ|합하면|더하면",
    re.IGNORECASE,
)

# "Total dimension: 96 × 128 = 12,288" is a size.
SIZE = re.compile(r"\b(?:dimensi|width\b|размерност)|维度|次元", re.IGNORECASE)

# What a number is compared with is a bound, and no number of the model.
BOUND = re.compile(r"(?<![-=<>:])[<>](?![-=<>])|[<>]=(?!=)|[≤≥]")

# How a column of addends looks above its sum.
DRAWN = re.compile(r"\W*[-=_─━═]{3,}\W*")  # as people draw it between addends and their sum
SECTION = re.compile(r"\s*(?:#|```|~~~)")
HUNDREDS = re.compile(r"\d{3}|\d\s?[KMB万亿억만億]")  # such a number is an addend
TAKEN = re.compile(r"[:|=]\s*[-−–]\s?\d|\b(?:minus|less|saves?|saved|of which|davon|dont)\b", re.IGNORECASE)
MARGIN = " \t#/;│"  # before an addend, the signs of a comment among it
BRANCH = re.compile(r"[\s|]*[└├│╰]")


class Side(NamedTuple):
    """One side of a chain "a = b ≈ c"."""

    expression: Expression
    loose: bool = False  # ``≈`` or ``~`` stands before it
    sure: bool = True  # no word or operator stands next to it, or in it, that may change what it says
    unit: str = ""  # what it counts, where it says so: "parameters", "bytes" or "operations"


class Statement(NamedTuple):
    """One chain "label: a = b ≈ c", or a labelled number with no relation at all.

    `sides` that could not be read as arithmetic are left out.
    """

    line: int  # where it starts, the first line of the text being 1
    last: int  # where it ends
    text: str  # as written
    plain: str  # without its markup: "3 × (emb_dim × emb_dim) = 1,769,472"
    label: str  # the words before it
    heading: str  # the words of the heading, or of the line that ends in a colon, above it
    name: str  # the variable that it defines or restates, or ""
    sides: tuple[Side, ...]
    clause: str = ""  # the words among its numbers, and those right behind them: its unit, where it has one
    section: str = ""  # the words of the last heading, where `heading` is a line that ends in a colon

    @property
    def labels(self) -> tuple[str, str, str]:
        """What it may be called by, nearest first."""
        return self.label, self.heading, self.section


class Unread(NamedTuple):
    """A line with arithmetic in it that is part of no statement, and why, where it is known."""

    line: int
    text: str
    why: str = ""


class Derivation(NamedTuple):
    """All statements of a text, in its order."""

    source: str
    statements: tuple[Statement, ...]
    unread: tuple[Unread, ...]
    lines: tuple[str, ...] = ()  # all of the text, as written
    prose: tuple[Statement, ...] = ()  # large numbers, each with its line alone


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, the first of which is line 1."""
    return tuple(re.split(r"\r\n|\r|\n", text))
