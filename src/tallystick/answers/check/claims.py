"""The value of each statement, stated and true, and the verdict on each equation: plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from tallystick.answers.check.model.quantity import Quantity
from tallystick.answers.check.terms import Term
from tallystick.derivations.arithmetic import ONE, Expression, Number, Value, alone, exactly
from tallystick.derivations.statements import SIZE, TOTAL, Statement
from tallystick.derivations.text.lines import DIGIT

_NAMES_ADAPTERS = r"(?:q?lora|adapt(?:er|ador|ateur)\w*)(?![^\W_])"
_ADAPTERS = re.compile(rf"(?<![^\W_]){_NAMES_ADAPTERS}", re.IGNORECASE)
# A model with or without adapters, not the adapters: "76.5B (VLA + LoRA)", "before LoRA"
_BESIDES_ADAPTERS = re.compile(
    rf"(?:[^\W\d_]\s?\+\s?|\b(?:before|without|w/o|including) (?:the |any )?){_NAMES_ADAPTERS}", re.IGNORECASE
)
_MEASURES = re.compile(
    r"(?<![^\W_])(?:bytes?|memory|octets?|speicher\w*|m[ée]moire|memori[ae]|bellek|v?ram)(?![^\W_])|памят|байт|[显顯]存|内存|記憶體|メモリ|메모리|字节|バイト|바이트"
    r"|\b(?:[kmgtp]?(?:flops?|macs?)|cache|gradients?|optimi[sz]er|activations?|seconds|[mnµμ]s|tok(?:en)?s?/s|gpus?)\b"
    r"|\d\s?[KMGTB]?\s+(?:operations?|operationen|opérations?|operaciones|operaç(?:ão|ões)|operazioni|операци\w+|işlem\w*)\b"
    r"|\d\s?[KMGTB万亿억만]?\s?(?:次)?(?:运算|運算|演算|연산)"
    r"|(?<![^\W\d_])[KMG]i?B\b|\d\s?(?-i:(?:[KG]i?|M)o)\b|[КМГТ]Б\b|(?<![^\W_])[kmgtp]?(?:flops?|macs?)(?![^\W_])",  # also FLOPs_attention
    re.IGNORECASE,
)

_IN_BYTES = re.compile(r"(?<=\d{3})\s\([≈~]?\s?\d[\d.,]{0,9}\s?[KMGT]i?B\)")  # behind a count
_OPERATIONS = re.compile(r"\b[KMGTP]?(?:FLOPs?|MACs?)\b")
_ACTIVATIONS = re.compile(r"\b(?:activations?|caches?|gradients?|logits|[kmgtp]?(?:flops?|macs?))\b", re.IGNORECASE)
_SENTENCES = re.compile(r"[;；。，]|[.,]\s")
PARAMETERS = re.compile(r"param|weight|gewicht|poids|pesos|параметр|参数|參數|パラメータ|파라미터", re.IGNORECASE)

OF_MODEL = re.compile(r"\bmod(?:el[lo]?|èle)\b|模型|モデル|모델|\bмодел|\bmô hình", re.IGNORECASE)

_UNREAD = exactly(0)
_RATIO = re.compile(r"\btotal\s*/\s*\w+|\w+\s*/\s*total\b", re.IGNORECASE)  # "total/active = 9.1"
_TAKES = re.compile(r"\W*\d{1,4}\s*[*×x]\s*[^\W\d]")  # "61 × MLA"
_P_TOTAL = re.compile(r"\W*[A-Za-z]_?total\W*", re.IGNORECASE)  # P_{total}, N_total
_N = re.compile(r"N(?:_(?:\d+(?:_\d+)?[BM]|total|params|model))?", re.IGNORECASE)  # also N_{3B}
_RUNNING = re.compile(r"\W*(?:running|cumul|accum|so far|kumul|acumul|累[计積计加]|누적)", re.IGNORECASE)
COLUMN = "column"  # begins the kind of what a further column counts
LEAST_N = 1_000_000  # a smaller N is the number of layers or of tokens
LEAST_COUNT = 100_000  # a smaller number may be a size
MOST_KEPT = 1_000  # statements whose words stay in a cache: each is asked about several times
MOST_HEADING = 10  # words of a heading; of a longer one, a sentence, its first half names what it is about
MOST_BEHIND = 2  # words after "Total:" that keep its number the total


@dataclass(frozen=True)
class Equation:
    """Two neighbouring sides of a chain.

    Whole numbers are integers, so they are exact. An equation that uses a wrong number from an
    earlier line but is right in itself is `correct`. `carried` is the excess due to that earlier
    error.
    """

    line: int
    last_line: int  # last line of an equation that spans several
    text: str
    left: int | float
    right: int | float
    correct: bool
    should_be: int | float | None  # the right value of both sides; None if the equation is correct
    carried: int | float
    matches: str | None  # the quantity of the model with that number of parameters
    names: tuple[str, ...]  # tensor names, with * for the layer index
    label_names: str | None = None  # the number of what its label names, if different, and why
    plain: str = ""  # the text without markup
    percent: bool = False  # whether its numbers are in percent: 31.0 of "= 31.0%"


@dataclass
class Claim:
    """The value of a statement: as written, and with earlier errors and its own corrected."""

    stated: Fraction
    true: Fraction
    expression: Expression | None  # its first side with an operation
    side: Expression  # the side whose value is `stated`
    asides: bool = False
    term: Term | None = None
    users: list[int] = field(default_factory=list)  # later statements that use it
    rounded: bool = False  # its number follows ≈
    defines: bool = False  # it assigns a plain number to a variable
    right: bool = True  # each of its sides agrees with the next
    match: Quantity | None = None
    carried: Fraction = Fraction(0)  # excess due to errors of earlier lines
    written: Value = _UNREAD  # its number, with the bounds of its rounding
    adds: bool = False  # whether it may be an addend of a later sum
    kind: str = ""  # what it counts, as `kind_of` says

    @property
    def is_rounded(self) -> bool:
        """Whether its number is rounded, or marked as approximate."""
        return self.rounded or not is_whole(self.side)

    @property
    def is_vague(self) -> bool:
        """Whether its number is rounded; "≈ 24,383,616" is written to its last digit."""
        return not is_whole(self.side) or (self.rounded and self.stated % 10 == 0)

    @property
    def error(self) -> Fraction:
        """Excess due to arithmetic errors, its own and earlier ones."""
        return self.carried if self.right else self.stated - self.true

    @property
    def meant(self) -> Fraction:
        """Its value as written, or the corrected value of a wrong equation."""
        return self.stated if self.right else self.true

    @property
    def used(self) -> bool:
        """Whether a later statement uses it."""
        return bool(self.users)


def lone(number: Number, *, rounded: bool = False) -> Claim:
    """Return the claim of a number without a formula.

    Args:
        number: the number.
        rounded: whether it follows ≈.
    """
    written = alone(number, loose=True) or exactly(number.value)
    return Claim(number.value, number.value, None, number, rounded=rounded, written=written)


def is_total(statement: Statement) -> bool:
    """Return whether a statement calls itself a total of parameters."""
    words = statement.label or statement.name or statement.heading
    if words is statement.heading and words and _TAKES.match(statement.plain):
        return False  # "61 × MLA = 11.4B" is an item below "Sum"
    total = _names_total(words) or (_N.fullmatch(statement.name) is not None and _is_large(statement))
    return total and not measures(statement)


@lru_cache(MOST_KEPT)
def _names_total(words: str) -> bool:
    behind = words.rpartition(":")[2]
    if len(behind.split()) > MOST_BEHIND and not re.search(r"[-+*/=]", behind):
        words = behind  # "Total: of these the matrix of the layer (64 × 10" is of the matrix
    words = _RATIO.sub("", words)
    return TOTAL.search(words) is not None or _P_TOTAL.fullmatch(words) is not None


def _is_large(statement: Statement) -> bool:
    """Return whether N is large enough to be the number of parameters; N = 96 is of layers."""
    values = (side.expression for side in statement.sides)
    return any(not isinstance(one, Number) or one.value >= LEAST_N for one in values)


def is_running(statement: Statement) -> bool:
    """Return whether a cell of a table has the sum of its rows so far: "| … | Running total |"."""
    return _RUNNING.match(statement.clause) is not None


def measures(statement: Statement) -> bool:
    """Return whether a statement is about bytes, operations or adapters, not the model."""
    return is_in_bytes(statement) or is_of_adapters(statement)


def kind_of(statement: Statement) -> str:
    """Return what a statement counts: "adapters", "measured" for bytes and operations, or "".

    Each further column of a table is of a kind of its own: of another model, or of one layer.
    """
    if statement.column > 1:
        return f"{COLUMN} {statement.column}"
    return "adapters" if is_of_adapters(statement) else "measured" if is_in_bytes(statement) else ""


def is_in_bytes(statement: Statement) -> bool:
    """Return whether a statement is about bytes or operations.

    If its heading is about them, so is the statement, unless one of the two names parameters.
    """
    if statement.sides and statement.sides[-1].unit == "parameters":
        return False  # "~213M params (leaving room for memory)"
    return _is_in_bytes(statement.section, statement.heading, statement.label, statement.clause)


def counts_operations(statement: Statement) -> bool:
    """Return whether a section is about operations: all that is counted there.

    Under "Parameters and FLOPs" a line says which.
    """
    if not _OPERATIONS.search(statement.section):
        return False
    return not PARAMETERS.search(statement.section) or _OPERATIONS.search(statement.plain) is not None


@lru_cache(MOST_KEPT)
def _is_in_bytes(section: str, heading: str, label: str, clause: str) -> bool:
    behind = DIGIT.split(label)[-1]  # "FC: [1x1x1000]  memory: 1000 weights"
    words = f"{behind if PARAMETERS.search(behind) else label} {clause}"
    if "B)" in words:
        words = _IN_BYTES.sub(" ", words)  # "One layer | 14,912,384 (≈ 30 MB)"
    heading = section if _OPERATIONS.search(section) else heading
    under = _MEASURES.search(heading) and not PARAMETERS.search(f"{heading} {words}")
    return bool(under) or _MEASURES.search(words) is not None


def counts_no_parameters(statement: Statement, number: Fraction) -> bool:
    """Return whether a label names a size or activations: "hidden size", "activation"."""
    size = number < LEAST_COUNT and SIZE.search(statement.label)
    return bool(size or _ACTIVATIONS.search(_SENTENCES.split(statement.label)[-1]))


def is_of_adapters(statement: Statement) -> bool:
    """Return whether a statement or its heading mentions adapters."""
    heading, label = statement.heading, statement.label
    if not mentions_adapters(heading, label, statement.clause):
        return False
    of_model = TOTAL.search(label) and OF_MODEL.search(label) and not mentions_adapters(label)
    number = statement.sides[-1].expression
    if of_model and isinstance(number, Number) and number.value >= LEAST_N:
        return False  # "Total of the base model: 4.08B", under a heading about LoRA
    if len(words := heading.split()) > MOST_HEADING:
        heading = " ".join(words[: MOST_HEADING // 2])  # "Now the distribution, which matters for LoRA:"
    return mentions_adapters(heading, label, statement.clause)


@lru_cache(MOST_KEPT)
def mentions_adapters(*words: str) -> bool:
    """Return whether some words mention adapters."""
    said = " ".join(words)
    return _ADAPTERS.search(said) is not None and _ADAPTERS.search(_BESIDES_ADAPTERS.sub(" ", said)) is not None


def is_whole(expression: Expression) -> bool:
    """Return whether a side is one number, written to its last digit."""
    return (
        isinstance(expression, Number) and not expression.rounded and (expression.unit is ONE or expression.unit == ONE)
    )


def of_line(
    line: int, text: str, plain: str, meant: Fraction, stated: Fraction, *, right: bool, percent: bool = False
) -> Equation:
    """Return an equation of two numbers on a line, whatever else its statement has."""
    one, other = as_number(meant), as_number(stated)
    should_be = None if right else one
    return Equation(line, line, text, one, other, right, should_be, 0, None, (), plain=plain, percent=percent)


def as_number(value: Fraction) -> int | float:
    """Return an integer if the value is whole, else a float."""
    return int(value) if value.denominator == 1 else float(value)
