"""Parse a claimed parameter count, with the range of counts that round to it.

>>> claim = read_claim("124M")
>>> claim.low, claim.high
(123500000, 124500000)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from tallystick.derivations.arithmetic import trailing_zeros
from tallystick.derivations.expressions.scales import SCALES
from tallystick.errors import BadInput, quoted, shown

LONGEST = 40  # characters; "1.5 billion parameters" has 22
MOST = 10**18  # parameters; a million times the largest model
ROUND = 6  # an integer that ends in this many zeros is rounded: 124000000 is 124M

_NUMBER = re.compile(
    r"[~≈]?\s*(?P<whole>[0-9]{1,3}(?:(?P<comma>[,_' \u00a0\u2009\u202f])[0-9]{3})(?:(?P=comma)[0-9]{3})*|[0-9]+|(?=\.))"
    r"(?:\.(?P<decimals>[0-9]+))?(?:e\+?(?P<exponent>-?[0-9]+))?"
    r"\s*(?P<scale>[a-z]*?)\s*(?:parameters|params)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Claim:
    """A claimed count, and the range of counts that round to it, from `low` to `high` inclusive."""

    text: str  # as written
    value: int
    low: int
    high: int
    unit: int  # the value of the last digit; 1 if every digit is given
    digits: int  # significant digits, without the trailing zeros of an integer
    scale: int  # the power of ten of its suffix: 6 for M; 0 without one


def read_claim(claim: str | int) -> Claim:
    """Parse a claim: ``124M``, ``6.7B``, ``1.5e9``, ``0.5 billion``, ``123,550,272`` or an integer.

    The last digit counts as rounded, and a half as rounded either way. An integer without a suffix
    is exact, unless it ends in six zeros.

    Args:
        claim: the claimed number of parameters.

    Raises:
        BadInput: for text that is not a number of parameters.
    """
    if isinstance(claim, bool) or not isinstance(claim, str | int):
        raise BadInput(f"cannot read {shown(claim)} as a claim: write it as text, or as an integer", code="bad-value")
    if isinstance(claim, int) and abs(claim) > MOST:  # its digits may be too many to print
        raise BadInput(f"the claim {shown(claim)} is not a parameter count up to 10^18", code="bad-value")
    text = str(claim).strip() if isinstance(claim, str) else str(claim)
    match = _NUMBER.fullmatch(text) if len(text) <= LONGEST else None
    scale = {"": 0, **SCALES}.get(match["scale"].lower()) if match else None
    if match is None or scale is None or (scale and match["exponent"]):
        raise BadInput(
            f"the claim {quoted(claim)} is not a parameter count: write it as 124M, 6.7B, 1.5e9 or 123,550,272",
            code="bad-value",
        )
    whole, decimals = re.sub(r"[^0-9]", "", match["whole"]), match["decimals"] or ""
    power = int(match["exponent"] or 0) + scale
    if abs(power) > LONGEST or Fraction(f"{whole or 0}.{decimals or 0}") * Fraction(10) ** power > MOST:
        problem = "more than 10^18 parameters" if power > 0 or not match["exponent"] else "less than one parameter"
        raise BadInput(f"the claim {quoted(text)} is {problem}", code="bad-value")
    unit = Fraction(10) ** (power - len(decimals))
    value = int(whole + decimals) * unit
    if value == 0:
        raise BadInput(f"a claim must be above 0, not {quoted(text)}", code="bad-value")
    if value.denominator > 1:
        raise BadInput(
            f"the claim {quoted(text)} is not a whole number: add K, M, B or T, or drop digits",
            code="bad-value",
        )
    if not (decimals or power) and value % 10**ROUND == 0:
        unit = Fraction(10 ** trailing_zeros(value))
    exact = max(int(unit), 1)
    digits = str(int(value) // exact)
    if exact > 1 and not decimals:
        digits = digits.rstrip("0")  # 350M may be rounded to tens
    half = exact // 2
    return Claim(text, int(value), int(value) - half, int(value) + half, exact, len(digits), scale)
