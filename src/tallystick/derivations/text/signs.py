"""Put signs for words: "12 times 768 squared is 7.1 million", "1024 × 768, i.e. 786,432".

>>> with_signs("12 times 768 squared is 7,077,888")
'12 * 768^2 = 7,077,888'
"""

from __future__ import annotations

import re

MOST_CLAUSE = 120  # characters before a verb that may hold its product

# "12 times 7,087,872", "176M per layer. Times 32 layers": words for the sign
_TIMES = re.compile(
    r"(?<=[\dKMB)])\s*(?:times|multiplied by|mal|fois|multiplié par|(?:multiplicad[oa] )?por|vezes|умножить на|умноженное на"
    r"|乘以|乘|かける|곱하기)\s*(?=[(\d])|(?<=[.;,])\s+times\s+(?=\d)",
    re.IGNORECASE,
)
# "12 × 768² is about 7.1 million": a verb between arithmetic and its result.
_VERB = re.compile(
    r"(?<=[\w)])\s+(?:is|are|gives|makes|equals|yields|comes to|ergibt|ergeben|ist|sind|font|fait|donne|da|dan|es|son|é|fa|dà|daje|равно)\s+"
    r"(about|approximately|roughly|around|nearly|almost|just over|etwa|rund|ca\.|environ|unos|unas|circa|около|примерно)?\s*"
    r"(?=~?\d(?:[\d,._]*\d)?+(?:\s?(?:[KMBT]|[KMGT]i?B)\b|\s+(?:thousand|[mb]illion|param|weights|mil[lh]|mio)|[^\w\s%]|$))",
    re.IGNORECASE,
)
# "768 squared", "768 的平方", "768의 제곱"
_SQUARED = re.compile(
    r"(?<=[\d)])\s+(?:squared|(?:al|ao) (?:cuadrado|quadrado)|au carré|(?:im|zum) quadrat|в квадрате)\b"
    r"|(?<=[\d)])\s*(?:의 ?|の|的)?(?:제곱(?!근)|[二2]乗(?!根)|平方(?!根))",
    re.IGNORECASE,
)
_SQUARES = re.compile(r"squared|quad|carr|квадрат|제곱|乗|平方", re.IGNORECASE)
_PLUS = re.compile(r"(?<=[\dKMB)]),?\s+plus\s+(?=\d[\d,]*\s*\*|\d{1,3}(?:,\d{3})+|\d[\d.]*\s?[KMB]\b)")
_NUMBER = r"\d[\d.,]*(?:\s\d{3})*(?:\s?(?:[KMB](?!\w)|[万萬亿億만억]))?"
# Words that give the result of the only product or sum before them: "1024 × 768, i.e. 786,432"
_MEANS = re.compile(
    rf"(?P<product>\A[^*=≈+]*{_NUMBER}(?:\s*[*^+]\s*\(*{_NUMBER}\)*)+)(?<![,.])"
    r"(?:\s*(?P<open>\()\s*|\s*[,;\uff0c\u2013\u2014→-]?\s*)"
    r"(?:i\.e\.|that'?s|that is|that makes|which (?:is|gives|makes)|giving|soit|c'est-à-dire|ce qui (?:fait|donne)|das (?:ergibt|sind|macht|ist)|macht|es decir|o sea|lo que da|ou seja|isto é|cioè|ossia"
    r"|то есть|это|получаем|即|也就是|共计?|で|となり|즉|이면)\s*[,:]?\s*"
    r"(?P<value>[≈~]?(?:\d[\d,. ]{3,20}\d|\d[\d.,]*\s?(?:[KMB](?!\w)|Mio|Mrd|млн|[万萬亿億만억])))(?![\d*×/+]|\s*(?:param\w*\s)?(?:in total|altogether|insgesamt|en total|au total))",
    re.IGNORECASE,
)
_IS = re.compile(r"(?<=[\d)])\s*(?:等于|等於|得到|得)\s*(?=\d)")
_DENIED = re.compile(r"[^;:=]{0,40}?\b(?:not|never|nicht|pas|nunca)\b", re.IGNORECASE)
_SUMMED = re.compile(r"\d[KMB]?\s*\+\s*\d")
_PRODUCT = re.compile(r"(?:\d|(?<=\d)[KMB]|[万萬亿億만억])\s*[*x×·^²]\s*\(?\d")
_COMPUTED = re.compile(rf"(?:{_PRODUCT.pattern}|{_SUMMED.pattern})[^=≈:;]*$")


def with_signs(line: str) -> str:
    """Return a line with signs for the words between its numbers and before its results.

    A verb stands for "=" only behind a product or a sum.
    """
    line = _TIMES.sub(" * ", line)
    if _SQUARES.search(line):
        line = _SQUARED.sub("^2", line)
    if "plus" in line:
        line = _PLUS.sub(" + ", line)
    if not (_PRODUCT.search(line) or _SUMMED.search(line)):
        return line
    line = _IS.sub(" = ", _MEANS.sub(_meant, line))
    return _VERB.sub(_related, line) if " " in line else line


def _meant(words: re.Match[str]) -> str:
    """Return a product with its result behind a sign instead of words, and a parenthesis there."""
    return f"{words['product']} = ({words['value']}" if words["open"] else f"{words['product']} = {words['value']}"


def _related(verb: re.Match[str]) -> str:
    """Return the sign for a verb, if a product precedes it in its clause, else the verb."""
    if _DENIED.match(verb.string, verb.end()):
        return verb[0]  # "8 × 7B is 46.7B and not 56B"
    if not _COMPUTED.search(verb.string, max(0, verb.start() - MOST_CLAUSE), verb.start()):
        return verb[0]
    return " ≈ " if verb[1] else " = "
