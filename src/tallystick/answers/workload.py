"""Validate batch size and sequence length, and choose the default sequence length."""

from __future__ import annotations

from tallystick.core.algebra.dims import expression_of
from tallystick.core.algebra.expressions import Expression
from tallystick.core.config import LARGEST
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, shown

SEQUENCE = 4096  # default if neither the user nor learned positions give a length, nor the config a shorter one


def workload(ledger: Ledger, batch: int, sequence: int | None) -> tuple[int, list[str]]:
    """Return the sequence length (tokens), and notes about a default.

    Args:
        ledger: the model.
        batch: sequences per pass.
        sequence: tokens per sequence; None chooses a default.

    Raises:
        BadInput: for a batch or sequence that is not a positive integer, and for a sequence longer
            than the model's learned positions.
    """
    for what, number in (("batch", batch), ("sequence", 1 if sequence is None else sequence)):
        positive(what, number)
    most = positions(ledger)
    if sequence is None:
        if most is not None:
            return most, []
        stated = ledger.model.positions
        if stated is not None and stated < SEQUENCE:
            return stated, [f"assumed {stated:,} tokens (the config's maximum); change it with --sequence"]
        return SEQUENCE, [f"assumed {SEQUENCE:,} tokens; change it with --sequence"]
    if most is not None and sequence > most:
        raise BadInput(
            f"a sequence of {sequence:,} exceeds the {most:,} learned positions of {ledger.source}",
            code="bad-value",
        )
    return sequence, []


def positive(what: str, number: object) -> None:
    """Raise `BadInput` unless `number` is a positive integer up to the largest possible size."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LARGEST:
        limit = " below 2^63" if isinstance(number, int) and number > LARGEST else ""
        raise BadInput(f"{what} is {shown(number)}, expected a positive integer{limit}", code="bad-value")


def positions(ledger: Ledger) -> int | None:
    """Return the maximum number of tokens that learned positions allow; None if there are none."""
    model = ledger.model
    read = [entry for entry in ledger.as_described.parameters if not entry.name.startswith(model.towers)]
    tables = [entry for entry in read if entry.role == "position_embedding"]
    whole = [entry for entry in tables if len(entry.shape) == 2]  # other tables have a row for a part of a position
    counts = [int(entry.shape[0]) for entry in whole]
    # If a config gave the rows, its key counts: OPT has two more rows than positions.
    keys = [key for entry in whole for key in _keys(expression_of(entry.shape[0]))]
    longest = [one.heads.longest for one in model.attending if one.heads.longest is not None]
    symbols = model.symbols
    return min([*counts, *longest, *(symbols[key] for key in keys if key in symbols)], default=None)


def _keys(expression: Expression) -> list[str]:
    """Return the config keys of an expression."""
    if isinstance(expression, tuple):
        return _keys(expression[1]) + _keys(expression[2])
    return [expression] if isinstance(expression, str) else []
