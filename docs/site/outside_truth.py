"""Figures that others published, with ours: a page of all, the largest differences first.

PYTHONPATH=tests/support python docs/site/outside_truth.py docs/outside-truth.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import median

from outside_figures import ENGINES, KINDS, Figure, engine_figures, figures, write

TOP = """\
---
search:
  boost: 0.5
---

# Outside truth

How far is tallystick from what others measured and published? {all} figures of {projects} projects, on their GPUs and in their papers; none was
measured by us.

- **Equal** means that ours rounds to the figure as it was printed. *Within* counts these too.
- An error is (ours − theirs) / theirs. Each figure links to its source; *stored file N* is a public log without a known address.
- The command is ours, without `tallystick`. Run it to see the figure.
- The rows are in `tests/outside` and, for the engines' logs, in `tests/runtimes`. A test fails if a release moves one.
- Constants of [serve](commands/serve.md) were read from some of the engines' logs. The logs name which: `fit` in their first column.

`make outputs` writes this page. [Accuracy](accuracy.md) compares with what runs here; [memory estimates compared](memory-peers.md) has other tools.

"""
SUMMARY = """\
| {of} | figures | equal | within 0.5% | within 1% | within 3% | median error |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
WORST = """
## The largest differences

All figures that are off by more than {limit:.0%}, and why: {apart} of {all}.

| figure | of | theirs | ours | error | why |
| --- | --- | ---: | ---: | ---: | --- |
"""
LIMIT, NEGLIGIBLE = 0.03, 0.0005
ROWS = "| figure | command | theirs | ours | error | note |\n| --- | --- | ---: | ---: | ---: | --- |\n"


def page() -> str:
    """The page, in Markdown."""
    own, logged = figures(), engine_figures()
    both = [*own, *logged]
    top = TOP.format(all=f"{len(both):,}", projects=len({one.project for one in both}))
    return "".join([top, *_summaries(both), *_worst(both), *_all(own), *_engines(logged), *_addresses()])


def _summaries(both: list[Figure]) -> Iterable[str]:
    yield SUMMARY.format(of="kind")
    for kind, title in KINDS.items():
        yield _counts(title, [one for one in both if one.kind == kind])
    yield _counts("**all**", both)
    yield "\n" + SUMMARY.format(of="project")
    for project in sorted({one.project for one in both}, key=str.casefold):
        yield _counts(project, [one for one in both if one.project == project])


def _counts(title: str, those: Sequence[Figure]) -> str:
    within = [sum(one.agrees or abs(one.error) <= limit for one in those) for limit in (0.005, 0.01, 0.03)]
    numbers = [len(those), sum(one.agrees for one in those), *within]
    return f"| {title} | {' | '.join(f'{n:,}' for n in numbers)} | {median(abs(one.error) for one in those):.2%} |\n"


def _worst(both: list[Figure]) -> Iterable[str]:
    apart = sorted((one for one in both if not one.agrees and abs(one.error) > LIMIT), key=lambda one: -abs(one.error))
    yield WORST.format(limit=LIMIT, apart=len(apart), all=f"{len(both):,}")
    for one in apart:
        yield _row(_linked(one), f"{one.project}, {KINDS[one.kind].lower()}", *_numbers(one), one.why)


def _all(own: Sequence[Figure]) -> Iterable[str]:
    for kind, title in KINDS.items():
        of_kind = [one for one in own if one.kind == kind]
        yield f"\n## {title}\n" if of_kind else ""
        for project, those in sorted(_grouped(of_kind, lambda one: one.project), key=lambda named: named[0].casefold()):
            yield f"\n### {title}: {project}\n\n"
            yield from _table(those)


def _table(those: list[Figure]) -> Iterable[str]:
    """The rows of one kind and project; what all of them share stands above."""
    notes = {_note(one) for one in those if _note(one)}
    alike, noted = len({one.source for one in those}) == 1 < len(those), len(notes) > 1
    above = [f"From {_linked(those[0]._replace(model=those[0].project))}."] if alike else []
    above += [] if noted else [f"Where ours differs: {note}." for note in notes]
    yield " ".join(above) + "\n\n" if above else ""
    yield ROWS if noted else ROWS.replace(" note |", "").replace(" --- |\n", "\n")
    for one in those:
        cells = [one.model if alike else _linked(one), f"`{one.command}`", *_numbers(one)]
        yield _row(*cells, *([_note(one)] if noted else []))


def _note(one: Figure) -> str:
    """Why ours differs, if it does."""
    return "" if one.agrees or abs(one.error) < NEGLIGIBLE else one.why


def _engines(logged: Sequence[Figure]) -> Iterable[str]:
    """One row for each run: what its log says, with our error."""
    for project in ENGINES.values():
        runs = _grouped([one for one in logged if one.project == project], lambda one: one.place)
        if not runs:
            continue
        yield f"\n## Logs of {project}\n\nWhat each log says, and in parentheses our error.\n\n"
        yield "| run | command | in the log (error of ours) |\n| --- | --- | --- |\n"
        for _, those in runs:
            first = those[0]
            said = "; ".join(f"{_what(one)} {_printed(one.theirs)} {_unit(one)}({_error(one)})" for one in those)
            run = first._replace(model=first.model.rpartition(": ")[0])
            yield _row(_linked(run), f"`{first.command}`", said)


def _grouped(those: Sequence[Figure], key: Callable[[Figure], str]) -> list[tuple[str, list[Figure]]]:
    """Those with the same key together, in the order in which the keys come first."""
    order = list(dict.fromkeys(map(key, those)))
    return [(name, list(found)) for name, found in groupby(sorted(those, key=lambda one: order.index(key(one))), key)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _what(one: Figure) -> str:
    return one.model.rpartition(": ")[2].replace(" buffer size", "").replace("  ", " ")


def _unit(one: Figure) -> str:
    return "" if one.unit in ("tokens", "x") else f"{one.unit} "


def _linked(one: Figure) -> str:
    """What the figure is of, with a link to its source."""
    address, more = _source(one)
    said = f"[{one.model}][{_numbered()[address]}]" if address else one.model
    return said + (f" ({more})" if more else "")


def _source(one: Figure) -> tuple[str, str]:
    """The address of a source, if it has one, and what else is said of it."""
    address = "".join(re.findall(r"https?://\S+?(?=[,;)]?(?:\s|$))", one.source)[:1])
    return address, one.source.replace(address, "").strip(" ,;()") if address else one.source


@cache
def _numbered() -> dict[str, int]:
    """The addresses of the sources, with numbers."""
    addresses = dict.fromkeys(_source(one)[0] for one in [*figures(), *engine_figures()])
    return {address: number for number, address in enumerate(filter(None, addresses), 1)}


def _addresses() -> Iterable[str]:
    yield "\n"
    for address, number in _numbered().items():
        yield f"[{number}]: {address}\n"


def _numbers(one: Figure) -> tuple[str, str, str]:
    whole = not one.decimals and one.ours == int(one.ours)
    ours = f"{one.ours:,.0f}" if whole else f"{one.ours:,.{one.decimals + 1}f}"
    return f"{_printed(one.theirs)} {one.unit}", ours, _error(one)


def _printed(number: str) -> str:
    whole, point, rest = number.partition(".")
    return f"{int(whole):,}{point}{rest}"


def _error(one: Figure) -> str:
    return "0" if one.error == 0 else f"{one.error:+.2%}"


def main() -> None:
    """Record the ratios of now in the rows, and write the page that is named."""
    write()
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
