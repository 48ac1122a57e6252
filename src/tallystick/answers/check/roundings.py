"""Find a rounding that differs from the number before it: "38,597,376 (~28.6M)"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from tallystick.answers.check.chain.binary import in_binary
from tallystick.answers.check.claims import of_line
from tallystick.answers.check.equations import Judge
from tallystick.derivations.arithmetic import decimal
from tallystick.derivations.expressions.scales import MYRIADS, SCALES, WORDS
from tallystick.derivations.expressions.tokens import times
from tallystick.derivations.slips import is_typed_for, misrounds

SHORT = 2  # digits of a rounding behind a sign or word for "about"
MOST_LINE = 10_000  # characters
_WORDS_FOR = r"(?:about|roughly|approximately|approx\.?|around|circa|ca\.|rund|etwa|environ|cerca de|около|примерно)\s"
_ABOUT = (
    rf"[~≈→]|[-=]>|(?:[,;]\s|(?<=[(\uff08])|[—–]\s)(?:or\s|i\.e\.,?\s|so\s)?{_WORDS_FOR}"
    r"|\s(?:or about|or roughly|i\.e\.)\s|[,，、]?\s?(?:约|即约|約|약)"
)
# "73,531,646 parameters in all (~73.5M)"
_COUNTED = r"(?:\s[^\W\d]{2,20}){0,3}\s(?:param(?:eter)?s|weights)(?:\s[^\W\d]{2,20}){0,3}|(?:\s[^\W\d]{2,20}){1,3}(?=\s?[(\uff08])"
_ROUNDED = re.compile(
    r"(?<![\d.,_])(?P<number>\d{1,3}(?:[,_]\d{3}){1,4}|\d{1,3}(?:[. ]\d{3}){2,4}|\d{4,15})"
    rf"[*`$]*(?P<counted>{_COUNTED})?(?:\s?|\s{{2,40}}(?=[(\uff08]))"
    rf"[(\uff08]?(?P<about>(?:{_ABOUT})\s?[~≈]?|(?<=[(\uff08]))\s?"
    rf"(?P<digits>\d{{1,4}}(?:\.\d{{1,4}}|,\d\d?)?)\s?(?P<letter>(?:[KMB]|{WORDS})(?!\w)|{MYRIADS})(?!\s?[-+*/×·])",
    re.IGNORECASE,
)

_ENDS = re.compile(r"[*`~\s]*(?:param\w*|weights)?[*`\s]*(?:[)\uff09,.;:|]|[—–]|$)")


def judge_roundings(judge: Judge) -> None:
    """Record the roundings that no equation has yet, if they are right or a digit off."""
    judged = judge.numbers()
    known = {(one.line, Fraction(one.right)): one for one in judge.equations}
    for line, text in enumerate(judge.derivation.lines, 1):
        for number, rounded, right in _rounded(text) if len(text) <= MOST_LINE else ():
            same = known.get((line, number))
            if (line, rounded) not in judged and (same is None or same.correct):
                one = of_line(line, text.strip(), text.strip(), number, rounded, right=right)
                if same is not None:
                    one = replace(one, matches=same.matches, names=same.names)
                judge.equations.append(one)


def _rounded(text: str) -> Iterator[tuple[Fraction, Fraction, bool]]:
    """Yield each number with its rounding, and whether that is right."""
    for both in _ROUNDED.finditer(text):
        number = Fraction(re.sub(r"\D", "", both["number"]))
        rounded = times(decimal(both["digits"]), Fraction(10 ** SCALES[both["letter"].lower()]))
        right = abs(rounded.value - number) <= rounded.unit
        if not right and in_binary(rounded) == number:
            continue  # "4,718,592 ≈ 4.5M" of 1,048,576
        said = both["counted"] or both["about"].lstrip()[:1].isalpha() or both["about"][:1] in "—–"
        if not right and said and _ENDS.match(text, both.end()) is None:
            continue  # "85,054,464 params (around 58M of them in the MLP)"
        short = both["about"] and is_typed_for(rounded, number, least=SHORT)
        if right or short or misrounds(rounded, number):
            yield number, rounded.value, right
