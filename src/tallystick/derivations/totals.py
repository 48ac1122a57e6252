"""Read the totals that a sentence states next to its equations: "in total 46.7B"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from tallystick.derivations.arithmetic import Number, Operation, Undefined, alone, evaluate, exactly
from tallystick.derivations.expressions.parser import suffix
from tallystick.derivations.expressions.phrases import computes
from tallystick.derivations.expressions.tokens import Token
from tallystick.derivations.reading import LEAST_SUM
from tallystick.derivations.shapes import LEAST_TYPED, meant_by
from tallystick.derivations.statements import BOUND, SUBTOTAL, TOTAL, Side
from tallystick.derivations.text.lines import RELATION, Line
from tallystick.derivations.text.respelled import sum_of_results
from tallystick.derivations.text.worded import count_of_bytes
from tallystick.derivations.values import Values, alone_in, said_in

_SENTENCES = re.compile(r"[.;]\s(?!\s*[-+*/=≈])|[。；]")
_CLAUSE = re.compile(r",\s(?!\s*[-+*/=≈])|，")
_SHARE_OF = re.compile(
    r"(?:\b(?:fraction|share|part|percent)|%) of (?:the |its )?[~≈]?\d[\d.,]*\s?[KMB]?\s*$", re.IGNORECASE
)
# Between a number and its word: "124 million parameters in total", "8 billion parameters total"
_IN = re.compile(
    r"(?<=\S)(?:\s+(?:param\w*|paramètres|parámetros|parâmetros))?(?:\s+(?:in|au|en|no))?\s*$", re.IGNORECASE
)
_NAMES_MODEL = re.compile(r"\s?(?:的模型|のモデル|모델)")
_SCOPE = re.compile(r"\s*(?:across|over|for|of)\b", re.IGNORECASE)  # "~47B total across 32 layers"


class Totals(Values):
    """Reads the totals of sentences."""

    def _totals(self, line: Line) -> None:
        """Add the totals that a sentence states next to its equations: "in total 46.7B"."""
        if ") + " in line.plain:
            self._sum_of_results(line)
        counted = count_of_bytes(line.plain)
        if counted is not None and TOTAL.search(counted[0]):
            self._value(line, ": ".join(counted))
        for sentence in _SENTENCES.split(line.plain):
            said = ""
            for clause in _CLAUSE.split(sentence):
                before, said = said, f"{said}, {clause}"
                word = TOTAL.search(clause) or SUBTOTAL.search(clause)
                if word is None or RELATION.search(clause) or BOUND.search(clause):
                    continue
                if _SHARE_OF.search(clause[: word.start()]) or _NAMES_MODEL.match(clause, word.end()):
                    continue  # "as a fraction of 7B total parameters", "0.8M 总参数的模型"
                pieces = _without_tokens(self._tokens(clause[word.end() :]))
                # "54,525,952 total", "124 million parameters in total"
                # "~47B total across 32 layers" has only a count behind the word.
                behind = [one for one in said_in(pieces) if one.value >= LEAST_SUM]
                numbers = behind or said_in(self._tokens(_IN.sub("", clause[: word.start()]))[-1:])
                if len(numbers) == 1 and numbers[0].value >= LEAST_SUM and not computes(pieces):
                    if len(products := self._products(before)) > 1:
                        self._sum_of(line, f"{before} {clause[: word.end()]}", products, numbers[0])
                        continue
                    earlier = self._tokens(before)
                    own = _adds_up(earlier, numbers[0]) or _states(earlier)
                    about = "" if own or _SCOPE.match(clause, word.end()) else before
                    self._add(line, f"{about} {clause[: word.end()]}", [Side(numbers[0])], clause=clause)

    def _sum_of_results(self, line: Line) -> None:
        """Add the sum of results in parentheses, if all of these are right."""
        added, products = sum_of_results(line.plain)
        if products and all(self._gives(*one) for one in products):
            self._chains(line, added, line.plain.partition(":")[0])

    def _gives(self, product: str, result: str) -> bool:
        """Return whether a product without variables has a result."""
        how, number = self._whole(product.strip()), alone_in(self._tokens(result.strip()))
        if not isinstance(how, Operation) or number is None:
            return False
        try:
            return evaluate(how, {}).meets(alone(number, loose=True) or exactly(number.value))
        except Undefined:
            return False

    def _products(self, text: str) -> list[Operation]:
        """Return the products that clauses end in: "Q `4 × 512²`, MLP `2 × 512 × 2048`"."""
        found = (suffix(self._tokens(clause), self.known) for clause in _CLAUSE.split(text) if "*" in clause)
        return [one[0] for one in found if one is not None and isinstance(one[0], Operation)]

    def _sum_of(self, line: Line, label: str, products: Sequence[Operation], total: Number) -> None:
        """Add the sum of products that a sentence states, if it is that but for a digit."""
        added = Operation(("+",) * (len(products) - 1), tuple(products))
        try:
            meant = meant_by([added], total, least=LEAST_TYPED)
        except Undefined:  # it holds variables
            return
        if meant is not None:
            self._add(line, label, [Side(added), Side(total)])


def _without_tokens(pieces: Sequence[Token]) -> list[Token]:
    """Return some tokens without the numbers of tokens that a model read: "3.3B tokens"."""
    counted = {place - 1 for place, piece in enumerate(pieces) if piece.text.lower() == "tokens"}
    return [piece for place, piece in enumerate(pieces) if piece.number is None or place not in counted]


def _states(pieces: Sequence[Token]) -> bool:
    """Return whether some tokens end in a large number: "36 layers 9.91B, in total"."""
    return bool(pieces) and pieces[-1].number is not None and pieces[-1].number.value >= LEAST_SUM


def _adds_up(pieces: Sequence[Token], number: Number) -> bool:
    """Return whether a number is the sum of the last numbers of some tokens.

    Example: "about 85 million, plus about 39 million of the embeddings, in total 124 million".
    """
    numbers = [piece.number for piece in pieces if piece.number is not None and piece.number.value >= LEAST_SUM]
    sums = list(
        accumulate(reversed(numbers), lambda one, other: Number(one.value + other.value, one.unit + other.unit))
    )
    return any(abs(one.value - number.value) <= (one.unit + number.unit) / 2 for one in sums[1:])
