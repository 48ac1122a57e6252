"""GGUF file types: sizes that llama.cpp and its users print, file type by file type.

`figures/gguf_sizes.csv`: rows of the set "fit" were at hand as the rules were written, rows of
"judge" were not looked at before; those "apart" are not of today's rules, and say why.
"""

import csv
from functools import cache
from pathlib import Path

import pytest

import tallystick
from tallystick.answers.memory.gguf import as_gguf

with (Path(__file__).parent / "figures" / "gguf_sizes.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))
JUDGED = [row for row in ROWS if row["set"] != "apart"]
FLOATS = {"f32": "float32"}


@cache
def ledger_of(preset):
    name, *sets = preset.split()  # a preset, and its overrides
    return tallystick.count(name, **{key: int(value) for key, value in (one.split("=") for one in sets)})


def printed(preset, file_type):
    """Bytes of the file's tensors and their number: a vision tower is in another file."""
    ledger = ledger_of(preset)
    towers = ledger.model.towers
    held = [
        entry
        for entry in as_gguf(ledger, FLOATS.get(file_type, file_type)).parameters
        if entry.unique and not (towers and entry.name.startswith(towers))
    ]
    return sum(entry.bytes * entry.copies for entry in held), sum(entry.unique * entry.copies for entry in held)


def ours(row):
    size, elements = printed(row["preset"], row["file_type"])
    return {"BPW": 8 * size / elements, "GiB": size / 2**30, "MiB": size / 2**20}[row["unit"]]


def test_there_are_enough_rows_of_enough_models_and_file_types():
    judged = [row for row in ROWS if row["set"] == "judge"]
    assert len(judged) >= 40
    assert len({row["preset"] for row in judged}) >= 25
    assert len({row["file_type"] for row in JUDGED}) >= 25


@pytest.mark.parametrize("row", JUDGED, ids=lambda row: f"{row['preset']} {row['file_type']}")
def test_a_size_is_the_one_printed(row):
    theirs, digits = float(row["theirs"]), len(row["theirs"].partition(".")[2])
    assert ours(row) == pytest.approx(theirs, abs=0.5 * 10**-digits + 0.001 * theirs)


def test_a_row_apart_is_off_and_says_why():
    apart = [row for row in ROWS if row["set"] == "apart"]
    assert all(row["why"] for row in apart)
    assert all(abs(ours(row) / float(row["theirs"]) - 1) > 0.01 for row in apart)
