"""What is printed where the output's encoding lacks characters: ASCII that reads the same, never an
escape.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from repository import ROOT
from tallystick.legible import SPELLINGS, legible

SOURCES = ROOT / "src" / "tallystick"
# Characters that these read or look for, and do not print: GPT-2's alphabet of bytes, trees drawn
# in derivations.
READ = {"models/tokens.py": "¡¬®ÿ", "answers/check/earlier/branches.py": "─━┃┗┣╰"}
# What reads texts in other languages, and prints none of their words.
READS_WORDS = {
    "sources/pooled.py",
    "derivations/text/signs.py",
    "answers/check/claims.py",
    "answers/check/whole/coverage.py",
    "answers/check/chain/doubts.py",
    "answers/check/labels.py",
    "answers/check/roundings.py",
    "answers/check/model/misfit.py",
    "answers/check/model/stacks.py",
    "answers/check/earlier/allowances.py",
    "answers/check/earlier/said.py",
    "answers/check/shares.py",
    "answers/check/whole/prose.py",
    "answers/check/whole/sections.py",
    "answers/check/whole/total.py",
    "answers/check/chain/unread_terms.py",
    "answers/check/chain/wording.py",
    "answers/check/earlier/continued.py",
    "answers/check/earlier/unread_addends.py",
    "derivations/chains.py",
    "derivations/totals.py",
    "derivations/expressions/units.py",
    "derivations/expressions/words.py",
    "derivations/statements.py",
    "derivations/expressions/phrases.py",
    "derivations/reader.py",
    "derivations/text/respelled.py",
    "derivations/expressions/scales.py",
    "derivations/expressions/tokens.py",
    "derivations/text/markup.py",
    "derivations/values.py",
    "derivations/text/browser_math.py",
    "report/derivation/number_spans.py",
}
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
COMMANDS = [
    ["formula", "gpt2", "--steps"],
    ["formula", "gpt2", "--latex"],
    ["compare", "gpt2", "gpt2-medium", "--tensors"],
    ["compute", "gpt2", "--explain"],
    ["memory", "llama-3-8b", "--mode", "training", "--explain"],
    ["count", "llama-3-8b", "--by", "tensor"],
    ["count", "gpt2", "--by", "tensor", "--format", "csv"],
    ["count", "gpt2", "--format", "markdown"],
    ["check", str(ROOT / "examples" / "gpt2_by_hand.md"), "--against", "gpt2"],
    ["reconcile", "deepseek-v3", "671B"],
    *([command, "--help"] for command in ("memory", "compute", "count", "train")),
]
# All in one process; the last line says that none of them failed half-way.
RUN = """
import json, sys
from tallystick.cli.main import main
for words in json.loads(sys.argv[1]):
    main(words)
print("whole")
"""


def _printed_by(path: Path) -> set[str]:
    """The characters beyond ASCII in the strings of a source, docstrings apart."""
    text = path.read_text(encoding="utf-8")
    if text.isascii() and "\\" not in text:  # nor is any escape in it: most files need not be parsed
        return set()
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)
    }  # type: ignore[attr-defined]
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {
        letter for node in strings if id(node) not in docstrings for letter in str(node.value) if not letter.isascii()
    }


def test_every_character_that_is_printed_has_a_spelling_in_ascii() -> None:
    lacking = {}
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if name in READS_WORDS:
            continue
        if left := _printed_by(path) - SPELLINGS.keys() - {*SUPERSCRIPTS, *READ.get(name, "")}:
            lacking[name] = sorted(left)
    assert lacking == {}


def test_the_sources_are_searched_for_what_they_print() -> None:
    assert "→" in _printed_by(SOURCES / "answers" / "compare" / "causes.py")
    assert "·" in _printed_by(SOURCES / "core" / "algebra" / "notations.py")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", "cp932"])
def test_nothing_of_ours_is_escaped(encoding: str) -> None:
    for letter in (*SPELLINGS, *SUPERSCRIPTS):
        assert "\\" not in legible(f"a{letter}b", encoding)
    assert legible("".join(SPELLINGS), "utf-8") == "".join(SPELLINGS)


@pytest.mark.parametrize(
    ("text", "ascii_", "windows"),
    [
        ("6·N, 50,257 × 768", "6*N, 50,257 x 768", "6·N, 50,257 × 768"),
        ("n_layer 12 → 24", "n_layer 12 -> 24", "n_layer 12 -> 24"),
        ("12·d² + n³ − 1", "12*d^2 + n^3 - 1", "12·d² + n³ - 1"),
        ("n⁴⁵", "n^45", "n^45"),
        ("⌈n/8⌉·⌊d/2⌋", "ceil(n/8)*floor(d/2)", "ceil(n/8)·floor(d/2)"),
        ("loss 3.1 ± 0.2…", "loss 3.1 +- 0.2...", "loss 3.1 ± 0.2…"),
        ("größe.重み", "gr\\xf6\\xdfe.\\u91cd\\u307f", "größe.\\u91cd\\u307f"),
    ],
)
def test_how_it_reads(text: str, ascii_: str, windows: str) -> None:
    assert legible(text, "ascii") == ascii_
    assert legible(text, "cp1252") == windows
    assert legible(text, "utf-8") == text


def _printed(words: list[str], **environment: str) -> bytes:
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONUTF8": "0", **environment},
    )
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_no_command_prints_an_escape(encoding: str) -> None:
    printed = _printed(["-c", RUN, json.dumps(COMMANDS)], PYTHONIOENCODING=encoding).decode(encoding)
    assert printed.rstrip().endswith("whole")
    assert not re.findall(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}", printed)
    assert "n_layer 12 -> 24" in printed
    assert ("50,257 × 768" if encoding == "cp1252" else "50,257 x 768") in printed


def test_the_c_locale_has_columns_that_line_up() -> None:
    words = ["-m", "tallystick", "formula", "gpt2", "--steps"]
    printed = _printed(words, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="").decode("ascii")
    assert "n_layer*(12*n_embd^2 + 13*n_embd)" in printed
    head, line, *rows = [row for row in printed.splitlines()[3:-1] if row]
    assert {len(row) for row in rows} <= {len(head), len(line)}
    assert len(line) == len(head) + 1
    assert len(rows) > 10
