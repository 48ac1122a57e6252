"""Names of tensors that hold what a terminal obeys: counted under their own names, and escaped
wherever they are shown.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import tallystick
from checkpoints import write
from gguf_files import F32, gguf
from tallystick.cli.main import main
from tallystick.report.charts.treemap import LAYOUTS, draw_tensors

# Escape, NUL, line breaks, DEL, a control of eight bits, no-break space, right-to-left override, a
# line separator.
NAMES = [
    "lm_head\x1b[2J\x07.weight",
    "wte\0\r\n.weight",
    "h.0.\x7f\x9b31m",
    "h.1.a\xa0b \u202e",
    "\u2028",
    "",
    " ",
    "{}\x1b",
]


def _safetensors(path: Path) -> Path:
    return write(path / "a.safetensors", dict.fromkeys(NAMES, (4, 3)), metadata={"other\x1b[31m": NAMES[0]})


def _torch(path: Path) -> Path:
    shared = torch.zeros(4, 3)
    torch.save({**{name: torch.zeros(4, 3) for name in NAMES}, "tied\x1b[31m": shared, "again": shared}, path / "a.pt")
    return path / "a.pt"


def _gguf(path: Path) -> Path:
    (path / "a.gguf").write_bytes(gguf(dict.fromkeys(NAMES, ((4, 3), F32)), {"general.architecture": "x\x1b[2J"}))
    return path / "a.gguf"


FORMS = pytest.mark.parametrize("written", [_safetensors, _torch, _gguf])
COMMANDS = [
    *(["count", "--by", by, "--format", form] for by in ("tensor", "role", "layer") for form in ("table", "markdown", "csv")),
    ["ties"], ["ties", "--format", "markdown"], ["ties", "--format", "csv"], ["memory"], ["compute"],
    ["compare", "gpt2"], ["compare", "gpt2", "--tensors"], ["compare", "gpt2", "--tensors", "--format", "csv"],
]  # fmt: skip


@FORMS
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_prints_what_a_terminal_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: Callable[[Path], Path], words: list[str]
):
    command, *options = words
    main([command, str(written(tmp_path)), *options])
    printed = capsys.readouterr()
    for line in (printed.out + printed.err).split("\n"):
        assert line.isprintable(), repr(line)


@FORMS
def test_json_has_the_names_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: Callable[[Path], Path]
):
    assert main(["count", str(written(tmp_path)), "--by", "tensor", "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert text.replace("\n", "").isprintable()
    assert set(NAMES) <= {row["tensor"] for row in json.loads(text)["rows"]}


@FORMS
def test_a_row_of_csv_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: Callable[[Path], Path]):
    assert main(["count", str(written(tmp_path)), "--by", "tensor", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(tallystick.count(written(tmp_path)).tensors)
    assert r"lm_head\x1b[2J\x07.weight" in {row["tensor"] for row in rows}


@FORMS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pictures_and_notebooks_are_well_formed(tmp_path: Path, written: Callable[[Path], Path], layout: str):
    ledger = tallystick.count(written(tmp_path))
    assert set(ledger.tensors) >= set(NAMES)
    for by in ("role", "layer", "tensor"):
        ElementTree.fromstring(draw_tensors(ledger, by=by, layout=layout))
    assert ledger._repr_html_().isprintable()


@FORMS
def test_a_page_shows_them_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: Callable[[Path], Path]):
    assert main(["count", str(written(tmp_path)), "--by", "tensor", "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert page.replace("\n", "").isprintable()
    assert not set("\x1b\x9b\u202e") & set(page)
