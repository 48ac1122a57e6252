"""Readers beside the libraries of their formats, on files drawn at random; `differential.py` draws
as many as are asked for.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from differential import compared, pairs
from hostile import MUTATIONS
from rotating import some_by_commit

FILES = {"safetensors": 1500, "gguf": 400, "torch": 250, "pickles": 600}


@pytest.mark.parametrize("name", some_by_commit([*FILES], 2))
def test_what_the_library_accepts_we_accept_and_nothing_else(tmp_path: Path, name: str):
    if name == "gguf":
        pytest.importorskip("gguf")
    files, seed = int(MUTATIONS or FILES[name]), random.randrange(10**9) if MUTATIONS else 0
    tally = compared(pairs()[name](), files, seed, tmp_path)
    assert tally.both > files // 10  # else nothing is compared
    assert tally.neither > 0 or name == "torch"
