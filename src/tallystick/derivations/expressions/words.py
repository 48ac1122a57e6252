"""Words and signs that stand among numbers, in the supported languages."""

from __future__ import annotations

# Words that count what follows: "4 个 8×8" is four of them.
COUNTERS = frozenset(["个", "個", "块", "塊", "张", "張", "组", "組", "枚", "개"])

ABOUT = frozenset(  # words for ≈
    [
        "about",
        "approx",
        "approximately",
        "aproximadamente",
        "aprox",
        "approximativement",
        "cerca",
        "roughly",
        "around",
        "nearly",
        "circa",
        "ca",
        "rund",
        "etwa",
        "ungefähr",
        "environ",
        "unos",
        "около",
        "примерно",
        "约",
        "大约",
        "約",
        "およそ",
        "약",
        "대략",
    ]
)

# "W_q, W_k each (768 × 768)" has that product several times.
EACH = frozenset(
    [
        "each",
        "every",
        "je",
        "jeweils",
        "chacun",
        "chacune",
        "cada",
        "ciascuno",
        "ciascuna",
        "каждый",
        "各",
        "每个",
        "각각",
    ]
)

PLUS = frozenset(["plus", "più", "más", "mais", "плюс"])

ADDED = ("加上", "再加")  # what follows is added to what stands before

ARROWS = frozenset(["->", "=>", "-->", "→"])

# Signs and names of functions, which have no value here: √128, sqrt(3072), log2(50257).
FUNCTIONS = frozenset(
    [
        "√",
        "∛",
        "sqrt",
        "binom",
        "log",
        "log2",
        "log10",
        "ln",
        "exp",
        "floor",
        "ceil",
        "round",
        "min",
        "max",
        "mod",
        "softmax",
        "sin",
        "cos",
        "tan",
        "tanh",
        "arcsin",
        "arccos",
        "arctan",
        "sigmoid",
        "sigma",
        "σ",
        "relu",
        "abs",
        "pow",
        "@",  # of matrices
    ]
)

COUNTS = frozenset(["two", "three", "four", "both"])

LETTERS = frozenset("ксвиуоаяàèé")  # words of one letter, in Russian, French and Italian

JOINS = frozenset(
    [
        "and",
        "or",
        "but",
        "with",
        "where",
        "while",
        "so",
        "then",
        "thus",
        "hence",
        "therefore",
        "for",
        "let",
        "if",
        "given",
        "each",
        "per",
        "which",
        "since",
        "that",
        "equals",
    ]
)
