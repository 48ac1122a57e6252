"""Letters and words that multiply the number before them by a power of ten, in many languages."""

from __future__ import annotations

from collections.abc import Mapping

_WORDS = {
    3: "thousand thousands tausend tsd тыс ribu nghìn",
    6: "million millionen millions mio mln milioni milione millón millones milhão milhões milion miliony milionów milyon miljoen miljon miljoner"
    " juta triệu млн миллион миллиона миллионов мільйон мільйони мільйонів milión milióny miliónov millió milioane",
    9: "billion billions mrd mld bn milliard milliards milliarde milliarden miliardo miliardi bilhão bilhões miliard miliardy miliardów milyar"
    " mil_millones mil_milhões md mds miljard miljarder miliar tỷ млрд миллиард миллиарда миллиардов мільярд мільярди мільярдів miliárd miliardov milliárd miliarde",
    12: "trillion trillions triliun trilhão trilhões трлн триллион триллиона триллионов",
}
_MYRIADS = {
    4: "万 萬 만", 6: "百万 百萬 백만", 7: "千万 千萬 천만", 8: "亿 億 억", 9: "十亿 十億 십억", 12: "万亿 萬億 兆 조"
}  # fmt: skip
_LETTERS = {"k": 3, "к": 3, "m": 6, "м": 6, "mn": 6, "b": 9, "g": 9, "bn": 9, "t": 12}

# Power of ten for the letter or word after a number.
SCALES = _LETTERS | {
    word.replace("_", " "): power
    for scales in (_WORDS, _MYRIADS)
    for power, words in scales.items()
    for word in words.split()
}


def _pattern(scales: Mapping[int, str]) -> str:
    """Return a pattern of the words, the longest first: "milliarden" begins with "milliard"."""
    return "|".join(sorted(" ".join(scales.values()).split(), key=len, reverse=True)).replace("_", r"\s")


WORDS, MYRIADS = _pattern(_WORDS), _pattern(_MYRIADS)
