r"""Replace characters that an output's encoding lacks by ASCII: ``n_embd²`` by ``n_embd^2``.

Every character that this project prints has a spelling here; a test looks for missing ones.
Letters of the user's own names are escaped, so that two different names never look the same.

>>> legible("12·n_embd² + 11,008 → 14,336", "ascii")
'12*n_embd^2 + 11,008 -> 14,336'
>>> legible("12·n_embd² + 11,008 → 14,336", "cp1252")
'12·n_embd² + 11,008 -> 14,336'
>>> legible("größe → ⌈n/8⌉", "ascii")
'gr\\xf6\\xdfe -> ceil(n/8)'
"""

from __future__ import annotations

import codecs

ERRORS = "tallystick.legible"  # name of this error handler for `open` and `TextIOWrapper.reconfigure`

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-", strict=True))
SPELLINGS = {
    **dict.fromkeys("·⋅∙∗•‣◦", "*"), **dict.fromkeys("×✕✖⨯", "x"), **dict.fromkeys("÷∕⁄", "/"), "√": "sqrt ", **dict.fromkeys("−–—", "-"),
    "→": "->", "➜": "->", "⇄": "<->", "⇒": "=>", "⟹": "=>", "±": "+-", **dict.fromkeys("≈≃≅∼≐", "~"),
    "≠": "!=", "≤": "<=", "≥": ">=", "≡": "==", "≔": ":=", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")",
    **dict.fromkeys("‘’", "'"), **dict.fromkeys("“”", '"'), "…": "...", "�": "?",
    **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "), **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
    "：": ":",
    "✓": "ok", "✗": "x", "▸": ">", "▾": "v", "█": "#", "░": ".", "├": "+", "└": "+", "│": ":", **dict.fromkeys("▉▊▋", "="), **dict.fromkeys("▌▍▎▏", "-"),
}  # fmt: skip


def legible(text: str, encoding: str) -> str:
    """Return the text as it looks when written in an encoding.

    Args:
        text: the text.
        encoding: the output's encoding; one that Python lacks leaves the text unchanged.
    """
    try:
        return text.encode(encoding, ERRORS).decode(encoding)
    except LookupError:
        return text


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the replacement of unencodable characters, for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    before, spelled = error.object[error.start - 1 : error.start], ""
    for character in error.object[error.start : error.end]:
        if power := _SUPERSCRIPTS.get(character):
            spelled += power if before in _SUPERSCRIPTS else f"^{power}"
        else:
            spelled += SPELLINGS.get(character) or _escaped(character)
        before = character
    return spelled, error.end


def _escaped(character: str) -> str:
    return "" if character in SPELLINGS else character.encode("ascii", "backslashreplace").decode()


codecs.register_error(ERRORS, _spelled)
