"""Letters in a table's formulas for sizes of the model that it does not give: "| V d | 38.6M |"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tallystick.derivations.arithmetic import Number, Undefined, Value, alone, evaluate, exactly
from tallystick.derivations.expressions.parser import prefix
from tallystick.derivations.expressions.tokens import tokens
from tallystick.derivations.text.markup import plain

LEAST_ROWS = 2  # that a letter's size makes right, with those of the others
MOST_ROWS = 200  # of a text that are tried
LEAST_COUNT = 1_000  # a smaller number is another size by chance
LONGEST = 60  # characters of a cell
# The letters in use for each size, by the names that configs have for it.
_LETTERS = {
    "V": ("vocab_size",),
    **dict.fromkeys("dDCHEh", ("n_embd", "hidden_size", "d_model")),
    **dict.fromkeys("TSP", ("n_positions", "max_position_embeddings")),
    **dict.fromkeys("fFI", ("n_inner", "intermediate_size", "d_ff")),
}
_FORMULA = re.compile(r"(?=.*[A-Za-z])(?:[\d\s*+()^]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])){1,60}")
# Such a letter in a line with its markup; other alphabets are for `plain` to spell
_ALONE = re.compile(rf"(?<![A-Za-z])[{''.join(_LETTERS)}](?![A-Za-z])|[^\x00-\x7f]")
_SET = re.compile(r"(?<![^\W\d_])([A-Za-z])\s*(?:=|:|\()")  # "d = 768" has a size of its own


def letters(text: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the letters of a text's formulas that rows of its tables show to be the model's sizes.

    Args:
        text: a derivation.
        sizes: the model's sizes, under each name.
    """
    if "|" not in text or not sizes:
        return {}
    own = set(_SET.findall(text))
    meant = {
        letter: sizes[name]
        for letter, names in _LETTERS.items()
        for name in [name for name in names if name in sizes][:1]
        if letter not in own | sizes.keys()
    }
    rows = [used for used, right in _rows(text, meant) if right]
    return {letter: meant[letter] for used in rows for letter in used} if len(rows) >= LEAST_ROWS else {}


def _rows(text: str, meant: Mapping[str, int]) -> Iterator[tuple[frozenset[str], bool]]:
    """Yield the letters of each row's formula, and whether its number is what they make."""
    values = {letter: exactly(size) for letter, size in meant.items()}
    tried = 0
    for line in text.splitlines():
        if line.count("|") < 2 or tried == MOST_ROWS or _ALONE.search(line) is None:
            continue
        cells = [cell.strip() for cell in plain(line).strip().strip("|").split("|")]
        formula = next((cell for cell in cells if _FORMULA.fullmatch(cell)), None)
        used = frozenset(re.findall(r"[A-Za-z]", formula or ""))
        number = next((one for cell in cells if (one := _number(cell)) is not None), None)
        if formula is None or number is None or not used or not used <= meant.keys():
            continue
        tried += 1
        yield used, _is(formula, number, values)


def _is(formula: str, number: Number, values: Mapping[str, Value]) -> bool:
    """Return whether a formula has a number as its value, as that is rounded."""
    pieces = tokens(formula, values.keys())
    found = prefix(pieces, values.keys())
    if found is None or found[1] < len(pieces):
        return False
    try:
        return evaluate(found[0], values).meets(alone(number, loose=True) or exactly(number.value))
    except Undefined:  # it divides by 0
        return False


def _number(cell: str) -> Number | None:
    """Return the number that a cell begins with, if that counts parameters."""
    pieces = tokens(cell)[:1] if cell[:1].isdigit() and len(cell) <= LONGEST else []
    number = pieces[0].number if pieces else None
    return number if number is not None and number.value >= LEAST_COUNT else None
