"""Draw a checked derivation as HTML: marks, corrected numbers, and remarks per line.

The text is untrusted: all of it is escaped, and each line keeps its own text direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import dropwhile, groupby

from tallystick.answers.check.check import Check
from tallystick.errors import visible
from tallystick.report.derivation.marks import Mark, Marked, correction, marked, right_number, written
from tallystick.report.derivation.number_spans import spotted

TAB = 4  # spaces
MOST_NARROW = 9999  # lines up to which the margin for line numbers is narrow
_BLANKS = str.maketrans({
    **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "), **dict.fromkeys("\u200b\u2060\ufeff", "")
})  # fmt: skip
_KEPT = {"\u200c", "\u200d"}  # zero-width joiners, which join letters and emoji
_KINDS = {Mark.RIGHT: "right", Mark.WRONG: "wrong", Mark.CARRIED: "carried", Mark.UNJUDGED: "unread"}


def marked_text(answer: Check) -> str:
    """Return the whole text as HTML; lines without remarks are kept together between judged lines.

    Args:
        answer: the checked derivation.
    """
    drawn, after = [], 0
    for block in _blocks(marked(answer)):
        drawn.append(_passed(answer.lines[after : block.first - 1]))
        drawn.append(_judged(block, answer.lines[block.first - 1 : block.last]))
        after = block.last
    drawn.append(_passed(answer.lines[after:]))
    wide = " wide" if len(answer.lines) > MOST_NARROW else ""
    return f'<div class="marked{wide}">{"".join(drawn)}</div>' if answer.lines else ""


class _Block:
    """Lines that are shown together: their statements overlap, or none of them is judged."""

    def __init__(self, line: Marked) -> None:
        self.first, self.last, self.parts = line.first, line.last, [line]
        self.unread = line.mark is Mark.UNJUDGED

    @property
    def mark(self) -> Mark:
        """The worst mark of its parts."""
        marks = {part.mark for part in self.parts}
        return next(mark for mark in (Mark.WRONG, Mark.CARRIED, Mark.RIGHT, Mark.UNJUDGED) if mark in marks)

    def takes(self, line: Marked) -> bool:
        """Return whether a line overlaps the block, or follows it unjudged for the same reason."""
        if line.first <= self.last:
            return True
        unread = self.unread and line.mark is Mark.UNJUDGED and line.first == self.last + 1
        return unread and self.parts[-1].sentences == line.sentences

    def take(self, line: Marked) -> None:
        """Add a line to the block."""
        self.last = max(self.last, line.last)
        self.unread = self.unread and line.mark is Mark.UNJUDGED
        self.parts.append(line)


def _blocks(lines: Iterable[Marked]) -> list[_Block]:
    blocks: list[_Block] = []
    for line in lines:
        if blocks and blocks[-1].takes(line):
            blocks[-1].take(line)
        else:
            blocks.append(_Block(line))
    return blocks


def _passed(lines: Sequence[str]) -> str:
    """Return lines without arithmetic as HTML."""
    text = "\n".join(map(_tidy, dropwhile(_is_blank, lines))).rstrip()
    return f'<div class="passed" dir="auto">{escape(text)}\n</div>' if text else ""


def _is_blank(line: str) -> bool:
    return not line.strip()


def _judged(block: _Block, lines: Sequence[str]) -> str:
    """Return judged lines as HTML with their mark, and the remarks at the side or below."""
    kind = _KINDS[block.mark]
    sentences = dict.fromkeys(sentence for part in block.parts for sentence in part.sentences)
    notes = dict.fromkeys(note for part in block.parts for note in part.notes)
    text = "\n".join(map(_tidy, lines))
    plainly = "; ".join(dict.fromkeys(part.plain for part in block.parts)) if "\\" in text else ""
    title = f' title="{escape(visible(plainly))}"' if plainly else ""  # LaTeX in plain words
    said = [f"<p>{escape(visible(sentence))}</p>" for sentence in sentences]
    said += [f'<p class="note">{escape(visible(note))}</p>' for note in notes]
    mark = f'<span class="mark" role="img" aria-label="{block.mark.words}" title="{block.mark.words}">{block.mark.value}</span>'
    return (
        f'<div class="judged {kind}" id="line-{block.first}"><span class="at">{block.first}</span>{mark}'
        f'<div class="text" dir="auto"{title}>{_corrected(block, text)}</div><div class="said">{"".join(said)}</div></div>'
    )


def _corrected(block: _Block, text: str) -> str:
    """Return the lines as HTML: wrong numbers struck and corrected, carried numbers marked."""
    equations = [
        equation for part in block.parts for equation in part.equations if not equation.correct or equation.carried
    ]
    drawn, after = [], 0
    spans = spotted(text, [equation.right for equation in equations]) if equations else []
    for span, equation in sorted((span, place) for place, span in enumerate(spans) if span is not None):
        one, number = equations[equation], escape(text[slice(*span)])
        drawn.append(escape(text[after : span[0]]))
        if one.correct:
            size = "large" if one.carried > 0 else "small"
            number = f'<span class="carries" title="{written(abs(one.carried))} too {size}">{number}</span>'
        elif one.should_be is not None and one.should_be != one.right:
            number = f'<del title="{escape(visible(correction(one)))}">{number}</del><ins> {right_number(one)}</ins>'
        drawn.append(number)
        after = span[1]
    return "".join([*drawn, escape(text[after:])])


def _tidy(line: str) -> str:
    """Escape invisible characters of a line, such as bidirectional controls; expand tabs."""
    line = line.expandtabs(TAB).translate(_BLANKS)
    if line.isprintable():
        return line
    kept = (("".join(run) if known else visible("".join(run))) for known, run in groupby(line, key=_KEPT.__contains__))
    return "".join(kept)
