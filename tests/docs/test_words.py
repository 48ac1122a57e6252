"""What a person reads is in the field's words: messages, tables, pages, the explorer, and for those
who read the code its docstrings and comments.

A phrase is listed once somebody stumbled over it. A new one is a line in `ARCHAIC` or `VAGUE`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from repository import ROOT
from syntax import nodes

ARCHAIC = ("anew", "beside", "gibberish", "laid", "mend", "mended", "mends", "told", "whoever")
VAGUE = (
    r"(?<!there )is no (?!longer)",
    "a head of its own",
    "at the fullest",
    "computed again",
    "counting every name",
    "moves? them apart",
    "no convention gives",
    "so many",
    "that of",
    "the model that it is about",
    "what it computes",
    "what it takes",
    "what mends it",
    "what would make it fit",
    "which way of counting",
    "who counts so",
    "with nothing but",
)
EXPLORER = (
    "as the config has them",
    "by which formula",
    "point at a tile",
    "sizes to move",
    "take it away",
    "this one as it is",
    "whose count",
)
BANNED = re.compile(rf"\b(?:{'|'.join((*ARCHAIC, *VAGUE, *EXPLORER))})\b", re.IGNORECASE)
ALLOWED = (
    "src/tallystick/answers/check/labels.py",  # recognises the words of people's own texts
)


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a Python file with their lines: no docstrings, no single words."""
    known = {id(node.value) for node in parsed(path) if isinstance(node, ast.Expr)}
    for node in parsed(path):
        if isinstance(node, ast.JoinedStr):
            known.update(id(part) for part in node.values)
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if id(node) not in known and " " in text:
            yield node.lineno, text


@lru_cache(maxsize=1)
def parsed(path: Path) -> list[ast.AST]:
    return nodes(ast.parse(path.read_text(encoding="utf-8")))


def notes(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Python file's docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    for node in parsed(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from enumerate(node.value.value.split("\n"), node.lineno)
    for number, line in enumerate(text.split("\n"), 1):
        if "#" in line and (comment := re.search(r"(?:^|\s)#\s.*", line)):
            yield number, comment[0]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page or of the explorer's files, without code blocks and comments."""
    text = path.read_text(encoding="utf-8").replace("`mended`", "")  # a key of JSON
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    for number, line in enumerate(text.split("\n"), 1):
        yield number, re.sub(r"(?:^|\s)//.*", "", line) if path.suffix == ".js" else line


def read() -> Iterator[tuple[str, int, str]]:
    for place in (ROOT / "src").rglob("*.py"):
        yield from ((str(place.relative_to(ROOT)), *found) for found in (*literals(place), *notes(place)))
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src/tallystick/web/static").glob("*.[hj]*")]
    for place in pages:
        yield from ((str(place.relative_to(ROOT)), *found) for found in prose(place))


def test_nobody_reads_a_phrase_that_people_stumbled_over():
    found = [f"{name}:{line}: {text.strip()}" for name, line, text in read() if BANNED.search(text)]
    assert [line for line in found if not line.startswith(ALLOWED)] == []


@pytest.mark.parametrize("words", ["to mend it", "{} is no file", "what it takes", "the count is that of gpt2"])
def test_a_phrase_of_the_list_is_found(words):
    assert BANNED.search(words)


@pytest.mark.parametrize("words", ["is no longer tied", "there is no file", "recommended", "besides"])
def test_plain_words_are_not(words):
    assert BANNED.search(words) is None
