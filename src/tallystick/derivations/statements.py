"""A derivation as plain data: statements with labels, sides and values, and what was not read."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import NamedTuple

from tallystick.derivations.arithmetic import Expression

# Labels that say what is counted, not of what: "Parameters: 12 × 7,087,872".
_COUNT_OF = (
    r"^\W*(?:#\s*|(?:the )?number of )?(?:model )?param(?:eter)?s?(?: count)?\W*$|^\W*par(?:amètres|âmetros|ámetros)\W*$"
    r"|^\W*(?:参数量|参数总?数|参数个数|參數量|パラメータ数?|파라미터 ?수|параметр(?:ов|ы)|число параметров|parameteranzahl|anzahl (?:der )?parameter|nombre de paramètres|número de par[âá]metros)\W*$"
)
COUNT_OF = re.compile(_COUNT_OF, re.IGNORECASE)

# Words for a total, in the supported languages.
TOTAL = re.compile(
    r"\b(?:totals?|totale[sn]?|totaux|totalit\w*|totales|totais|altogether|together|in all|overall|sum|(?:ins)?gesamt\w*|summe|zusammen|en tout|somm[ae]|soma|au total|suma|en total|toplam\w*|jumlah|totaal|łącznie|celkem|tổng)\b"
    r"|\b(?:(?:whole|entire) (?:model|network)|modelo (?:inteiro|completo|entero)|modèle (?:entier|complet)|ganzes? modell|вся модель)\b|整个模型|モデル全体"
    r"|\ball (?:the )?(?:model )?param(?:eter)?s?\b|\bparam(?:eter)?s? (?:in|of) (?:the )?(?:\w+ )?model\b"
    r"|(?<![^\W_])total_(?:model_)?param(?:eter)?s?\b|(?<![^\W_])(?:n|num|number)_(?:of_)?param(?:eter)?s?\b|param(?:eter)?s?_(?:count|quantity|num(?:ber)?)\b"
    r"|总的参数|"
    + _COUNT_OF
    + r"|\b(?:итого|всего|сумма|в сумме)\b|总计|总共|总和|总数|总参数|总量|合计|共计|總計|總共|總和|總數|總參數|總量|合計|総計|総数|総和|総パラメータ"
    r"|총합|총계|합계|전체|총(?!\w)|加起来|加在一起|全部相加|足し合わせ|합하면|합쳐서|합치면|합해|더하면",
    re.IGNORECASE,
)

# "Subtotal: 7,087,872" sums the last lines above it. It is not the model's total.
SUBTOTAL = re.compile(
    r"\b(?:sub-?totale?s?|sub-?total[ei]s|sous-total|zwischensumme|teilsumme|suma parcial|подытог|промежуточн\w+)\b|小计|小計|소계",
    re.IGNORECASE,
)

# "Total dimension: 96 × 128 = 12,288" is a size, not a parameter total.
SIZE = re.compile(
    r"\b(?:dimensi|width\b|размерност|(?:hidden|vocab(?:ulary)?|context|intermediate|inner|head|batch|embedding|block) size\b)"
    r"|维度|次元",
    re.IGNORECASE,
)

# A number after < or ≤ is a bound, not a count of the model.
BOUND = re.compile(
    r"(?<![-=<>:])[<>](?![-=<>])|[<>]=(?!=)|[≤≥]"
    r"|\b(?:(?:more|less|fewer) than|at (?:least|most)|lebih dari|(?:más|mais|menos) de|(?:plus|moins) de|(?:mehr|weniger) als"
    r"|(?:più|meno) di|более|больше|менее|меньше)\s+(?=[~$]?\d)|超过|超過|不到",
    re.IGNORECASE,
)

_COUNTED = re.compile(
    r"\s*\d{1,3} ?(?:[^\W\d_]+ )?(?:layers|blocks|schichten|couches|capas|camadas|сло[её]в|层|層|층)(?=\W)",
    re.IGNORECASE,
)

# Patterns that describe a column of addends above its sum.
DRAWN = re.compile(r"\W*[-=_─━═]{3,}\W*")  # a line drawn between addends and their sum
SECTION = re.compile(r"\s*(?:#|```|~~~)")
HUNDREDS = re.compile(r"\d{3}|\d\s?[KMB万亿억만億]")  # three digits or a unit: large enough for an addend
TAKEN = re.compile(r"[:|=]\s*[-−–]\s?\d|\b(?:minus|less|saves?|saved|of which|davon|dont)\b", re.IGNORECASE)
# "Positional embedding: 256 × 512 = 131,072 (not counted in parameters())"
UNCOUNTED = re.compile(
    r"\b(?:not (?:counted|included)|uncounted|excluded|nicht (?:mit)?(?:gezählt|gerechnet)|non compt\w+|n[oã]o? (?:se )?(?:cuenta|conta)\w*"
    r"|не (?:учит\w+|входит))\b|不计入|不计算?在|不算|不計入|제외|除外|含まない|含めない",
    re.IGNORECASE,
)
MARGIN = " \t#/;│>"  # indentation before an addend, signs of comments and quotes included
BRANCH = re.compile(r"[\s|]*[└├│╰]")


class Side(NamedTuple):
    """One side of a chain "a = b ≈ c"."""

    expression: Expression
    loose: bool = False  # preceded by ``≈`` or ``~``
    sure: bool = True  # no adjacent or inner word or operator may change its meaning
    unit: str = ""  # "parameters", "bytes", "seconds", "operations", "multiplications", or "" if unstated


class Statement(NamedTuple):
    """A chain "label: a = b ≈ c", or a labelled number without a relation.

    `sides` omits each side that could not be read as arithmetic.
    """

    line: int  # first line, counted from 1
    last: int  # last line
    text: str  # as written
    plain: str  # without markup: "3 × (emb_dim × emb_dim) = 1,769,472"
    label: str  # the words before its first side
    heading: str  # text of the heading, or of the line ending in a colon, above it
    name: str  # the variable it defines or restates, or ""
    sides: tuple[Side, ...]
    clause: str = ""  # words among its numbers and right after them, such as a unit
    section: str = ""  # text of the last heading, also when `heading` is a line ending in a colon
    aside: bool = False  # whether it stands in parentheses
    titles: bool = False  # whether it is a heading with its number: "Attention (2,362,368)", whose parts follow
    column: int = 0  # of a row with several numbers: 1 for the last, 2 for the one before it
    items: tuple[str, ...] = ()  # words of the list items that it stands under, the nearest first

    @property
    def labels(self) -> tuple[str, ...]:
        """Texts that may name the number, nearest first: label, items of a list, heading, section.

        A statement without a label may begin with its layers: "32 layers × 202M".
        """
        counted = None if self.label else _COUNTED.match(self.clause)
        return counted[0] if counted else self.label, *self.items, self.heading, self.section


class Unread(NamedTuple):
    """A line with arithmetic that belongs to no statement, with the reason if known."""

    line: int
    text: str
    why: str = ""


class Row(NamedTuple):
    """The row of a table: its line, and each cell that is one number, or the product of a shape."""

    line: int
    text: str  # as written
    plain: str
    cells: tuple[Side | None, ...]


class Derivation(NamedTuple):
    """All statements of a text, in text order."""

    source: str
    statements: tuple[Statement, ...]
    unread: tuple[Unread, ...]
    lines: tuple[str, ...] = ()  # all lines of the text, as written
    prose: tuple[Statement, ...] = ()  # large numbers in sentences, each as its own statement
    rows: tuple[Row, ...] = ()  # of tables, each with two numbers or more
    dots: bool = False  # whether it separates thousands by dots

    def within(self, first: int, last: int) -> range:
        """Return the places of the statements that begin in the lines from `first` to `last`."""
        line = attrgetter("line")
        return range(bisect_left(self.statements, first, key=line), bisect_right(self.statements, last, key=line))


def names_sum(words: str) -> bool:
    """Return whether some words name a total or a subtotal."""
    return TOTAL.search(words) is not None or SUBTOTAL.search(words) is not None


def margin_of(line: str) -> int:
    """Return the indentation of a line, comment signs included."""
    return len(line) - len(line.lstrip(MARGIN))


def lines_of(text: str) -> tuple[str, ...]:
    """Split a text into its lines; the first element is line 1."""
    return tuple(re.split(r"\r\n|\r|\n", text))
