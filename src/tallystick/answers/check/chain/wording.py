"""Tell by how a line is written that what looks like a product or its result may be none."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import combinations

from tallystick.answers.check.chain.binary import BILLION
from tallystick.answers.check.chain.sides import numbers_in
from tallystick.derivations.arithmetic import Number, Operation, is_sum
from tallystick.derivations.statements import Side, Statement

# "Mixtral 8x7B", "| Llama 4 Scout | 17B × 16 experts |"
_MIXTURE = re.compile(
    r"\b(?P<experts>\d{1,2})[x×](?P<size>\d{1,3})B\b|\|\s*(?P<each>\d{1,3})B\s?[x×]\s?(?P<of>\d{1,3})\s?(?:experts\b|E\b)"
)
_ADDS_TO = re.compile(r"\w\s?\+=[^=#/;]*=")  # of code: "total += 0.368 + 1.0 = 1.553"
_CLOSED = re.compile(
    r"(?!\W*\w{1,2}[)\]]\s)[^(\[]*(?:\([^()]*\)[^(\[]*)*[)\]]"
)  # "(2,097,152)] = 18,886,656 + 16,384,000"
_EACH = re.compile(r"\d\s?[KMB]?\s+each\s*[=≈]")  # "10 blocks: ~3.1M each = 31M"
# "1024² (= 4,096 tokens)" counts square patches of an image
_TOKENS = re.compile(r"=\s*\d[\d.,]*\s*(?:tokens|image tokens|patches|토큰|패치|トークン|パッチ|个token)")
_REASONS = {
    # "(uint8_t)(187 * 3) = 49", or ^ between numbers; "(INT8): 32 × 150 MB" names a format
    "computes with bits": re.compile(r"(?-i:\(u?int\d{1,2}(?:_t)?\)\s?[\w(])|\bXOR\b|\u5f02\u6216", re.IGNORECASE),
    # "64 columns = 2 tiles"
    "counts groups": re.compile(
        r"=\s*\d+\s+(?:tiles?|pages?|chunks?|batches|blocks|shards|warps)\b|=\s*\d+\s?\u4e2a?\u5757"
    ),
    # "2000 × 1 : 500 × 12.8 = 2000 : 6400", or numbers with an enumeration comma between them
    "states a ratio or a list": re.compile(
        r"\d\s+:\s+\d[^=≈:]*[=≈][^=≈:]*\d\s+:\s+\d|\d\u3001[^=≈]*[=≈]\s*[\d.,]+\u3001\d"
    ),
    # "4096 × 14336 = 33 MB (Q4_K)"
    "is in a format whose blocks have scales": re.compile(r"\bI?Q[2-8]_\w"),
    # "the first draft had 2 × 2 + 2 = 8 instead of 6"
    "names its own slip": re.compile(
        r"=\s*[\d.,]+\s+(?:instead of|rather than)\s+\d|[←✗✘❌]\W*(?:[^\W\d]+\s)?(?:error|wrong|mistake|incorrect)|←\W*\w{0,4}\u9519\u8bef",
        re.IGNORECASE,
    ),
    # "from 311M to ≈ 427M"
    "states a number before and after a change": re.compile(
        r"(?:\bfrom|\bvon|从|從)\s[^=≈]{0,20}\d[^=≈]{0,30}?(?:\bto|\bauf|到|至|为|為)\s*[≈~]", re.IGNORECASE
    ),
    # "7B × 2 → 14B × 2 = 14 GB → 28 GB"
    "states numbers before and after a change": re.compile(
        r"\d\w*\s*→\s*[\d.]+\w*\s*×[^=≈→]*=\s*[\d.]+\s?\w*\s*→\s*\d"
    ),
}


# "four matrices of 768 × 768 = 2,359,296", "two thirds of 7,077,888 = 4,718,592"
_WORDS_FOR = {
    **{
        word: Fraction(number)
        for number, words in {
            2: "two both twice double zwei beide doppelt doppelte zweimal deux dos doble dois duas due два две оба дважды вдвое двойной",
            3: "three thrice triple drei dreimal dreifache trois tres três triplo tre три трижды",
            4: "four vier viermal vierfache quatre quadruple cuatro quatro quattro четыре четырежды",
            5: "five fünf cinq cinco cinque пять",
            6: "six sechs seis sei шесть",
            7: "seven sieben sept siete sete sette семь",
            8: "eight acht huit ocho oito otto восемь",
            9: "nine neun neuf nueve nove девять",
            10: "ten zehn dix diez dez dieci десять",
            12: "twelve zwölf douze doce doze dodici двенадцать",
            16: "sixteen sechzehn seize dieciséis dezesseis sedici",
            24: "twenty-four vierundzwanzig vingt-quatre veinticuatro",
            32: "thirty-two zweiunddreißig trente-deux",
        }.items()
        for word in words.split()
    },
    **{sign: Fraction(number) for number, sign in enumerate("两三四五六七八九十", 2)},
    **{sign: Fraction(number) for number, sign in enumerate("두세네", 2)},
    "half": Fraction(1, 2), "halves": Fraction(1, 2), "third": Fraction(1, 3), "thirds": Fraction(1, 3),
    "quarter": Fraction(1, 4), "quarters": Fraction(1, 4), "drittel": Fraction(1, 3), "viertel": Fraction(1, 4),
    "tiers": Fraction(1, 3), "quart": Fraction(1, 4), "quarts": Fraction(1, 4), "tercios": Fraction(1, 3),
    "分之": Fraction(1, 3),
}  # fmt: skip
_COUNTED = re.compile(r"\d+|[^\W\d_]+(?:-[^\W\d_]+)?")
_SIGNS = re.compile("分之|[两三四五六七八九十]|[두세네](?= ?[개배])")
MOST_COUNTED = 1_000
MOST_WORDS = 6  # for numbers, of a line


def counted(words: str, *, digits: bool) -> set[Fraction]:
    """Return the factors that some words next to a product may mean: 4 of "four matrices of".

    Args:
        words: text of a line.
        digits: whether its numbers in digits count too.
    """
    found = [one.lower() for one in _COUNTED.findall(words)]
    numbers = [Fraction(one) for one in found if digits and one.isdecimal() and len(one) < len(str(MOST_COUNTED))]
    numbers += [_WORDS_FOR[one] for one in (*found, *_SIGNS.findall(words)) if one in _WORDS_FOR]
    # two thirds, "twelve layers times twelve times 768²"
    pairs = {one * other for one, other in combinations(numbers[:MOST_WORDS], 2)} if not digits else set()
    pairs |= {one * other for one in numbers for other in numbers if other < 1}
    return {*numbers, *pairs} - {Fraction(0), Fraction(1)}


def wording(statement: Statement, left: Side) -> str:
    """Return why two sides of a statement may not be meant as equal, or ""."""
    name = _MIXTURE.search(statement.text)
    if name and {number.value for number in numbers_in(left.expression)} == _numbers_of(name):
        return "holds the name of a mixture of experts"
    if isinstance(left.expression, Number) and _EACH.search(statement.plain):
        return "gives one, then several"
    square = isinstance(left.expression, Operation) and left.expression.symbols == ("^",)
    if square and _TOKENS.search(statement.plain):
        return "counts the patches of an image"
    if _ADDS_TO.search(statement.text):
        return "adds to what a variable had before"
    if is_sum(left.expression) and _CLOSED.match(statement.text.partition("=")[0]):
        return "goes on from a line above"
    return next((why for why, pattern in _REASONS.items() if pattern.search(statement.plain)), "")


def _numbers_of(name: re.Match[str]) -> set[int]:
    """Return how many experts a model's name gives, and how many parameters each has."""
    experts, size = (name["experts"], name["size"]) if name["size"] else (name["of"], name["each"])
    return {int(experts), int(size) * BILLION}
