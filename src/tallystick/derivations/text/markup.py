r"""Convert Markdown and LaTeX to plain characters with ASCII operators, line by line.

>>> plain(r"- **Embedding:** $50{,}257 \times 768$")
'Embedding:  50,257  * 768 '
>>> plain(r"\frac{d_{\text{model}}^{2}}{2} &\approx 295\mathrm{k}")
'((d_model^2)/(2))  ≈ 295k'
"""

from __future__ import annotations

import html
import re
import unicodedata

from tallystick.derivations.text.browser_math import may_repeat, once
from tallystick.derivations.text.signs import with_signs

LONGEST_COMMAND = 20  # characters
MOST_ROUNDS = 20  # levels of nested braces

_URL = re.compile(r"https?://\S+")
_APART = re.compile(r"(?<=\d) , (?=\d{3}(?!\d))")  # 2 , 359 , 296
_BOXED = re.compile(r"\s*[│┃║]([^│┃║├└]*)[│┃║]\s*$")  # a line of a drawn box
_GRID = re.compile(r"\s*[│┃║](?:[^│┃║├└]*[│┃║]){2,20}\s*$")  # a row of a drawn table
_GRID_RULE = re.compile(r"\s*[├┣╠╟][─━═]+(?:[┼╋╬╪][─━═]+)+[┤┫╣╢]\s*$")
_BARS = str.maketrans("│┃║├┣╠╟┼╋╬╪┤┫╣╢─━═", "|||" + "|" * 12 + "---")
# Digits set apart from each other: "7 6 8×5 0 2 5 7"; a list "1 2 4 8" has no operator next to it.
_SPACED = re.compile(r"(?<![\d.,] )(?<![\d.,])(?:\d ){1,9}\d(?=\s?[×*^≈]|\s?\")|(?<=[×≈])(?:\d ){1,9}\d(?![\d.,])")
# Mathematics as recognised in an image, every digit apart: "$3 0 , 5 2 2 \times 7 6 8$"
_MATHEMATICS = re.compile(r"\$[^$]{3,600}\$|\A[^$]{0,600}\\(?:times|cdot|approx)\b[^$]{0,600}\Z")
_TIGHT = re.compile(r"\d\d")
_LOOSE = re.compile(r"(?<=\d) (?:([.,]) )?(?=\d)")
# Signs that an encoding has lost: "8,192 ? 512 = 4,194,304", "Blocks (?6)", "Total:   ? 23M"
_LOST_SIGN = re.compile(r"(?<=\d)( ?)\?\1(?=[\d(][^:]{0,200}$)")
_LOST_COUNT = re.compile(r"(?<=\()\?(?=\d{1,3}\))")
_LOST_ABOUT = re.compile(r"(?<=:\s)\s{0,80}\?\s(?=\d)|(?<==\s)\?\s?(?=\d)")
_ATTRIBUTE = re.compile(r"\b[A-Za-z][\w-]*=\{[^{}]*\}")  # JSX: <line x1={20} y1={40}
# JSX: <InlineMath math="2 \\times 3 = 6" />
_FORMULA = re.compile(
    r"<[A-Z][\w.]{0,40}\s[^<>]{0,80}?\b(?:math|tex|latex|formula|expression)=(?:\{\s*)?(?:String\.raw)?([\"'`])(?P<math>[^\"'`]{1,300})\1"
    r"[^<>]{0,80}>"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_CELL = re.compile(r"</t[dh]>\s*(?=<t[dh]\b)", re.IGNORECASE)  # between two cells of a table in HTML
_RAW = re.compile(r"\{\s*(?:String\.raw)?`([^`]*)`\s*\}")  # JSX: {String.raw`2 \times 3`}
_QUOTED = re.compile(r"""\{\s*(["'])([^"'{}]{0,80})\1\s*\}""")  # JSX: {" "}
LEAST_TABBED = 3  # cells; two may be a number and a comment
_SPACES = re.compile(r"\s{3,}")  # two blanks still separate columns
_LIST = re.compile(
    r"^[\s>]*(?:[-*•‣◦–]\s+|(?:--|;+)\s+|\d{1,3}[.)]\s+(?=\*\*[^\W\d]|[^-+*/×=^≈]|\+\s\d)|#{1,6}\s+|/{2,3}!?\s+|/\*+\s+|\\item\b)*"
)
_BOLD = re.compile(r"(?<![\w)\]*])(\*\*\*|\*\*)(?=[^\s*])(.{1,300}?)(?<=[^\s*])\1(?![\w(*])")
_BOTH = re.compile(r"(?<!\w)_\*\*(?=[^\s*])([^*]{1,300})\*\*_(?!\w)")  # _**262,144,000**_
_OPENED = re.compile(r"([=≈:]\s*)\*\*(?=[~≈]?\d[^*]*$)")  # bold that ends on a later line
_ITALIC = re.compile(r"(?<![\w)\]*])\*(?=[^\s*])([^*\d]{0,200}[^\W\d][^*]{0,200})(?<=[^\s*])\*(?![\w(*])")
_RESULTS = re.compile(r"(?<![\w)\]*])\*(?=[≈~=])([^*]{1,80})(?<=[^\s*])\*(?![\w(*])")  # "× 1 Byte *≈ 8 GB*"
_UNDERSCORED = re.compile(r"(?<!\w)__?(?=[^\W_])(.{1,200}?)(?<=[^\W_])__?(?!\w)")

# In code, a comment may state the result: "wte = vocab * d  # 38,597,376".
_MANY = r"[KMB万萬億亿만억]|Mio\.?|Mrd\.?|Tsd\.?|[mb]illions?|mill(?:ones|iards)|milhões|bilhões|milioni|milyon|milyar|triệu|tỷ|тыс\.?|млн\.?|млрд\.?"
_RESULT = re.compile(
    r"(?<=[\w)])\s*(?:#|//)\s?(?:=\s?(?=[≈~]?\s?\d)"  # "# = ~18.3M params"
    rf"|(?=[≈~]?\s?\d[\d,._ '’{{}}]{{0,30}}(?:{_MANY})?\s?(?:param(?:eter)?s\b\s?)?(?:\([^()]*\)\s?)?$))"
)  # "# 32,83 млн"
# "memory_usage: 50_257 * 768 * 4, // 154MB", "total += 3072 * 3072 * 2;  // Q: 18 MB"
_OF_PRODUCT = re.compile(
    r"(?<=[*×] \d)(?P<rest>[\d_.]*)[;,]?\s*(?:#|//)\s?(?:[^\W\d]\w*:\s?)?(?=[≈~]?\s?\d[\d,._]{0,30}\s?(?:[KMG]i?B|[KMB])?\s?$)"
)
# "embedding_params: 25.2M  # 32768 * 768"
_BY_PRODUCT = re.compile(
    r"^(?P<label>(?:[^=≈#/()\d]|\([^()=\d]{1,40}\)|(?<=[^\W\d])\d|\d(?=_)){1,80}[:=]\s*)(?P<value>[≈~]?\s?(?:\d{3,}|\d{1,3}(?:[,_]\d{3})+|\d[\d.]*\s?[KMB]))(?:\s*[,;])?\s*(?:#|//)\s*"
    r"(?:[^\W\d][^\W\d ]{0,30}[,:]\s)?(?P<product>\(*\d[\d_,]*(?:[²³)]*(?:\s*[*×·+]\s*|\sx\s)\(*[≈~]?\d[\d_,.]*[KMB]?)+[²³)]*)\s*$"
)
_ROUGHLY = re.compile(r"[≈~]\s?")
_QUOTIENT = re.compile(r"[=:(]\s*(\d{1,9})\s?//\s?(\d{1,9})\s?$")  # of Python: "head_dim = 768 // 12"

_GROUPED = re.compile(r"(?<![\d,\uff0c])\d{1,3}(?:\uff0c\d{3})+(?![\d,\uff0c]|\s?[*×/+])")  # "23\uff0c835\uff0c648"
_DASHES = re.compile(r"(?<=\w)-{4,}(?=\w)")  # "vocab_size----50257 × 768"

_PERCENT_FIRST = re.compile(r"(?<=[=≈~(])(\s*)%(\d[\d.,]*\d|\d)")  # of Turkish: "= %0.78"

# print(f"{total:,}") before its result in code stands for the variable.
_PRINTED = re.compile(
    r"\bprint\(\s*(?:f?[\"'][^\"'{}]{0,40}\{\s*)?([A-Za-z_]\w*)\s*(?:(?::[^{}\"']{0,20})?\}[^\"']{0,40}[\"'])?(?:,\s*[\"'][^\"']{0,40}[\"'])?\s*\)(?=\s*(?:#|//|=))"
)

_FORMAT = re.compile(r":[<>^]?\+?[\d,_]{0,4}(?:\.\d{1,2})?[dfe%g]\}")  # of Python: f"{total / 1e6:.1f}M"

# Commands whose argument is text or styled text; nested braces are removed from the inside out.
_STYLE = re.compile(
    r"\\(?:text\w*|math(?:rm|bf|it|sf|tt|cal|normal)|operatorname\*?|boxed|emph|mbox|num|bm|boldsymbol)\s*\{([^{}]*)\}"
)
_ENDS_IN_COMMAND = re.compile(r"\\[A-Za-z]+$")
_BRACE = re.compile(r"\\(?:under|over)brace\s*\{([^{}]*)\}\s*(?:[_^]\s*(?:\{([^{}]*)\}|(\w+)))?")
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
_SUBSCRIPT = re.compile(r"_\s*\{([^{}]*)\}")
_POWER = re.compile(r"\^\s*\{([^{}]*)\}")
_WHOLE_POWER = re.compile(r"\^\s*\{\s*(\d+)\s*\}(?!\s*[\d.,]*\d)")
_COUNTED = re.compile(r"\|(\\[a-z]+\{[^{}|]{1,40}\}|[A-Za-z](?:_\w)?)\|")  # "|\text{head}|", "|V|"
# "\\sum_{l=1}^{12} 7{,}087{,}872" is 12 times that
_SUM = re.compile(r"\\sum\s*_\s*\{\s*\w\s*=\s*([01])\s*\}\s*\^\s*\{?\s*(\d{1,3})\s*\}?(?:\\limits)?\s*(?=[\d(])")
_ANNOTATION = re.compile(r"\\(?:begin|end|label|tag|ref|eqref|cite)\*?\s*\{[^{}]*\}(?:\{[^{}]*\})?")
_AFTER_COMMA = re.compile(r"(?<=[-+*/] )(\d{1,3}), (?=\d{3}\s*[-+*=])")  # "+ 5, 120 + 163,840,000"
_STOP = re.compile(r"(?<=\d)(?<!^\d)(?<!^\d\d)\.(?=\s+\+\s+\d)")  # "= 1 966 233 600.    + 998 400"
_POINT = re.compile(r"(?<=\d)\{\.\}(?=\d)")  # 36{.}864
# Groups of thousands: "38{.}597{.}376", "38~597~376"
_GROUPS = re.compile(r"(?<![\d.,}~])\d{1,3}(?:\{\.\}\d{3}){2,}(?!\d)|(?<![\d.,}~])\d{1,3}(?:~\d{3}){2,}(?!\d)")
_JOINT = re.compile(r"(?<=\d)(?:\{\.\}|~)(?=\d{3}(?!\d))")
_BLANK = re.compile(r"(?<=[\d$}])~(?=[A-Za-z\\])")  # "14~GB", "$56$~MB"
_TIE = re.compile(r"(?<=\d)(?:\{,\}|\{\s*\}|\\[,;:! ]|\\thinspace\s?|~)(?=\d{3})")
_DECIMAL = re.compile(r"(?:(?<=\d)\{,\}(?=\d{1,2}(?!\d)|\d{4})|(?<=(?<![\d.,}])0)\{,\}(?=\d))")  # 150{,}5 and 0{,}786
# "\\\\times" in a string literal. If \\\\ ends a line, the next command has its own backslash.
_DOUBLED = re.compile(
    r"(?<!\\)\\\\(?=(?:times|cdot|div|approx|simeq|sim|text\w*|frac|mathrm|left|right|to|rightarrow|quad|ldots|cdots|dots)(?![a-z]))"
)
_INDENT = re.compile(r"^[\s&]*(?:\\q?quad\s*)+")  # "&\quad + 2 \cdot 1024" goes on from the line above
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?\s?|\\([^A-Za-z])")
_MEANINGS = {
    "times": " * ", "cdot": " * ", "ast": " * ", "div": " / ", "approx": " ≈ ", "simeq": " ≈ ", "sim": " ≈ ",
    "cong": " ≈ ", "equiv": " = ", "triangleq": " = ", "left": "", "right": "", "quad": " ; ", "qquad": " ; ",
    "to": " → ", "rightarrow": " → ", "Rightarrow": " → ", "implies": " → ", "newline": "\n",
    "mu": "µ", "pm": " ± ", "neq": " ≠ ", "leq": " ≤ ", "geq": " ≥ ", "le": " ≤ ", "ge": " ≥ ", "ldots": "…", "dots": "…", "cdots": "…",
    "[": " ", "]": " ", "(": " ", ")": " ", "\\": "\n", ",": " ", ";": " ", ":": " ", "!": "", " ": " ",
}  # fmt: skip
_SILENT = frozenset(
    [
        "big",
        "bigl",
        "bigr",
        "Big",
        "Bigl",
        "Bigr",
        "bigg",
        "biggl",
        "biggr",
        "Bigg",
        "displaystyle",
        "textstyle",
        "nonumber",
        "notag",
        "bf",
        "it",
        "rm",
        "noindent",
        "hline",
        "item",
        "toprule",
        "midrule",
        "bottomrule",
        "centering",
        "Bigm",
        "limits",
    ]
)

_CHARACTERS = str.maketrans({
    "\u066c": ",", "\u066b": ".",  # of Arabic digits
    **dict.fromkeys("×·⋅∙✕✖∗⨯•", "*"), **dict.fromkeys("÷∕⁄", "/"), **dict.fromkeys("−–", "-"), "—": "→", "（": "(", "）": ")", "＝": "=", "＋": "+", "％": "%",
    **{chr(letter): unicodedata.normalize("NFKC", chr(letter)) for letter in range(0x1D400, 0x1D800)},  # 𝑀 is M
    **dict.fromkeys("≃≅∼≐≒", "≈"), "≡": "=", "≔": "=", "⟹": "→", "⇒": "→", "➜": "→", "`": "", "$": " ", "½": " 0.5",
    **dict.fromkeys("✓✔✅☑", ""), "┤": "|", "μ": "µ", **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\t", " "), **dict.fromkeys((0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF), ""),  # invisible characters
})  # fmt: skip
_SCALED_OUTSIDE = re.compile(
    r"(?<=\d)\s*\${1,2}\s*(?=(?:[KMBT]|[KMGT]i?B\b|[万萬만亿億억]|(?i:[mb]illion|миллион|миллиард))(?!\d))"
    r"|(?<=\d)(?<!,\d{3}),(?=[KMBT](?!\w|\s*=))"  # 85,M was 85\\,M; "64, K = 128" sets K
)  # $131$M
# "80 layers × (Q 4096 × 8192 + O 8192 × 4096)"
_LABELLED = re.compile(r"\(\s*[A-Z][\w/]{0,7}:?\s+(?=\d[\d,]*\s?[*×·x]\s?\d[^()]{0,200}\+)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_ASKED = re.compile(r"[=≈]\s*[?\uff1f]")  # "23 + 4 × 6 = ?"
_TICKED = re.compile(r"(?<=[\dKMB])\s*[✓✔✅☑]\s*[^\W\d][^|]{0,80}(?=\|)")  # "| ≈ 294.9 B ✓ matches the official 295B |"
_BORDER = re.compile(r"\s*[│┃]\s*(?=[=≈]\s?[~≈]?\d)")  # of a box: "│ W_O: 2880 × 2880    │ = 8,294,400"
# Text that its author took back, and the number of a footnote behind a result: "= 786,432²"
_STRUCK = re.compile(r"~~(?=\S)[^~]{1,120}(?<=\S)~~|<(del|s|strike)>[^<]{1,120}</\1>")
_FOOTNOTE = re.compile(r"(?<=[=≈] )(\d{1,3}(?:[,.]\d{3})+)[¹²³⁴⁵⁶⁷⁸⁹](?!\w)")
_REFERENCE = re.compile(r"(?<=\d{3})\[\d{1,2}\](?=\s*(?:$|[,.;)+|]))")
# "16.5GBです", "16.5GB显存"
_GLUED = re.compile(r"(?<=\d)(\s?[KMGT]i?B)(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")
_WIDE = re.compile(r"(?<=[\dKMB])\uff08")  # "2,359,296（约 2.36M）" multiplies nothing
_HALF_OF = re.compile(r"½(?=\s?[(\w])")
_SUPERSCRIPT = re.compile(r"[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_CELL_TIMES = re.compile(r"(?<=\| )\*(?=\d)")  # a cell "×126"
_SHOWN_TIMES = re.compile(r"(?<=[\w)]) ?\* ?(?=[\w(])")


def plain(line: str) -> str:
    """Return one line without its markup.

    A LaTeX line break inside the line is returned as a newline.
    """
    if not line.strip():
        return line
    line = _together(_without_box(_with_bars(line) if "\t" in line else line))
    if "&" in line and ";" in line:
        line = html.unescape(line)
    if "~~" in line or "<" in line:
        line = _without_html(line)
    line = _separated(line)
    if may_repeat(line):
        line = once(line)
    if "://" in line:
        line = _URL.sub(" ", line)
    line = _LIST.sub("", _SPACES.sub("  ", line), count=1)
    if "print(" in line:
        line = _PRINTED.sub(r"\1", line)
    if ("#" in line or "//" in line) and not _divides(line):
        line = _BY_PRODUCT.sub(_with_product, line)
        line = _OF_PRODUCT.sub(r"\g<rest> = ", _RESULT.sub(" = ", line))
    if line.count("\\(") != line.count("\\)"):  # Markdown's escaped parentheses, without mathematics between them
        line = line.replace("\\(", "(").replace("\\)", ")")
    if "{" in line and ":" in line:
        line = _FORMAT.sub("}", line)
    if "\\" in line or "{" in line or line.lstrip().startswith("&"):
        line = _without_latex(line)
    line = _LABELLED.sub("(", _with_units(_without_emphasis(line)))
    if not line.isascii():
        line = _GLUED.sub(r"\1 ", _BORDER.sub(" ", _TICKED.sub(" ", _WIDE.sub(" (", line))))
        line = _HALF_OF.sub(" 0.5*", _FOOTNOTE.sub(r"\1", line))
        line = _SUPERSCRIPT.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), line)
    return with_signs(_ASKED.sub(" ; ", line.translate(_CHARACTERS)))


def _together(line: str) -> str:
    """Return a line with the digits of each number together, and a sign where ? replaced it."""
    line = _SPACED.sub(lambda digits: digits[0].replace(" ", ""), line)
    if "?" in line and "?:" not in line:
        line = _LOST_ABOUT.sub("≈", _LOST_COUNT.sub("×", _LOST_SIGN.sub(" * ", line)))
    return _MATHEMATICS.sub(_tightened, line) if "\\" in line or "$" in line else line


def _tightened(mathematics: re.Match[str]) -> str:
    """Return mathematics with its digits together if all of them stand apart."""
    return mathematics[0] if _TIGHT.search(mathematics[0]) else _LOOSE.sub(r"\1", mathematics[0])


def _with_bars(line: str) -> str:
    """Return the row of a table copied from a page or sheet, with bars instead of its tabs."""
    cells = line.strip().split("\t")
    return f"| {' | '.join(cells)} |" if len(cells) >= LEAST_TABBED and "|" not in line else line


def _without_box(line: str) -> str:
    """Return the line of a drawn box without its sides, and the row of a drawn table with bars."""
    if line.isascii():
        return line
    grid = _GRID.match(line) or _GRID_RULE.match(line)
    return line.translate(_BARS) if grid else _BOXED.sub(r"\1", line)


def _with_units(line: str) -> str:
    """Return a line with each unit right behind its number: "$131$M", "= %0.78"."""
    if "~" in line:
        line = _BLANK.sub(" ", line)
    if "$" in line or "," in line:
        line = _SCALED_OUTSIDE.sub("", line)
    return _PERCENT_FIRST.sub(r"\1\2%", line) if "%" in line else line


def _separated(line: str) -> str:
    """Return a line with plain commas in its numbers, and with a colon for a row of dashes."""
    if ". " in line:
        line = _STOP.sub("", line)
    if ", " in line:
        line = _APART.sub(",", _AFTER_COMMA.sub(r"\1,", line))
    if ("{.}" in line or "~" in line) and _GROUPS.search(line):
        line = _JOINT.sub(",", line)
    if "[" in line:
        line = _REFERENCE.sub("", line)
    if "\uff0c" in line:
        line = _GROUPED.sub(lambda digits: digits[0].replace("\uff0c", ","), line)
    return _DASHES.sub(": ", line) if "----" in line else line


def _with_product(row: re.Match[str]) -> str:
    """Return a number, with its product in a comment, as an equation."""
    return f"{row['label']}{_ROUGHLY.sub('', row['product'])} = {row['value']}"


def _divides(line: str) -> bool:
    """Return whether a line ends in a quotient: a smaller number is not what a lone number is."""
    quotient = _QUOTIENT.search(line)
    return quotient is not None and int(quotient[1]) > int(quotient[2])


def _without_html(line: str) -> str:
    """Return a line without tags, and without what is struck out."""
    line = _FORMULA.sub(r" \g<math> ", _STRUCK.sub(" ", line))
    return _without_tags(_ATTRIBUTE.sub(" ", line) if line.lstrip().startswith("<") else line) if "<" in line else line


def _without_tags(line: str) -> str:
    if "{" in line:
        line = _QUOTED.sub(r"\2", _RAW.sub(r"\1", line))
    if _CELL.search(line):
        line = f"| {_CELL.sub(' | ', line)} |"
    return _TAG.sub(" ", line)


def _without_emphasis(line: str) -> str:
    if "_**" in line:
        line = _BOTH.sub(r"\1", line)
    if "**" in line:
        line = _OPENED.sub(r"\1", _BOLD.sub(r"\2", line))
    if line.count("*") > 1:
        line = _ITALIC.sub(r"\1", _RESULTS.sub(r"\1", line))
    return _UNDERSCORED.sub(r"\1", line) if line.count("_") > 1 else line


def readable(line: str) -> str:
    r"""Format a plain line for reading: single blanks between words, and × for a product.

    >>> readable(plain(r"3 \times (\text{emb\_dim} \times 768)  &= 1{,}769{,}472"))
    '3 × (emb_dim × 768) = 1,769,472'
    """
    line = " ".join(line.split()).replace("( ", "(").replace(" )", ")")
    return _SHOWN_TIMES.sub(" × ", _CELL_TIMES.sub("×", line)) if "*" in line else line


def _without_latex(line: str) -> str:
    if "|" in line and not line.lstrip().startswith("|"):
        line = _COUNTED.sub(r"\1", line)
    line = _ANNOTATION.sub(" ", _TIE.sub(",", _DECIMAL.sub(".", _POINT.sub(".", _DOUBLED.sub(r"\\", line)))))
    line = _INDENT.sub("", line, count=1)
    if "\\sum" in line:
        line = _SUM.sub(lambda bounds: f"{int(bounds[2]) + 1 - int(bounds[1])} \\times ", line)
    for _ in range(MOST_ROUNDS):
        before = line
        line = _STYLE.sub(_styled, line)
        line = _BRACE.sub(_labelled, line)
        line = _SUBSCRIPT.sub(_subscript, line)
        line = _POWER.sub(r"^(\1)", _WHOLE_POWER.sub(r"^\1", line))
        line = _FRACTION.sub(_fraction, line)
        if line == before:
            break
    line = re.sub(r"\s*\\(?:left|[bB]igg?l)\s*(?=[(\[])", "", line)  # 12 \left( multiplies 12 by the parentheses
    line = _COMMAND.sub(_meaning, line)
    return re.sub(r"&(?=\s*[=≈])|(?<=[=≈])\s?&|&\s*$|^\s*&", "", line).replace("&", " ")


def _styled(match: re.Match[str]) -> str:
    """Return styled text, apart from a command right before it, such as a Greek letter.

    It begins with no second blank, which would end a column.
    """
    begin = max(0, match.start() - LONGEST_COMMAND)
    text = match[1].lstrip() if match.string[max(0, match.start() - 1) : match.start()] == " " else match[1]
    return (" " if _ENDS_IN_COMMAND.search(match.string, begin, match.start()) else "") + text


def _labelled(match: re.Match[str]) -> str:
    label = match[2] or match[3]
    return f"({match[1]})" + (f" ({label})" if label else "")


def _subscript(match: re.Match[str]) -> str:
    return "_" + re.sub(r"\W+", "_", match[1].strip()).strip("_")


def _fraction(match: re.Match[str]) -> str:
    return f"(({match[1] or match[2]})/({match[3] or match[4]}))"


def _meaning(match: re.Match[str]) -> str:
    name = match[1] or match[2]
    if name in _MEANINGS:
        return _MEANINGS[name]
    if name in _SILENT:
        return ""
    return name if match[2] else f" \\{name} "  # \_ is an underscore; \sqrt stays, but has no value here
