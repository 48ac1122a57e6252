"""What a user's own code that fails gets: one line that says where it raised."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from refusals import Refused, refused

__all__ = ["refused"]  # a fixture


# -- a user's own code ----------------------------------------------------------------------------

CODE = {
    "raising": "def build():\n    raise KeyError('my key')\n",
    "lines": "def build():\n    raise RuntimeError('one\\n\\ntwo \\x1b[2J')\n",
    "long": "def build():\n    raise RuntimeError('N' * 5000)\n",
    "leaving": "import sys\n\ndef build():\n    sys.exit('enough')\n",
    "script": "raise SystemExit(3)\n",
    "broken": "def build(:\n    pass\n",
    "indented": "def build():\nreturn 1\n",
    "importing": "import no_such_thing_at_all\n",
    "dividing": "x = 1\ny = x / 0\n",
    "word": "build = 'a word'\n",
    "returning": "def build():\n    return {'a': 1}\n",
    "nothing": "def build():\n    pass\n",
    "wanting": "def build(width, depth):\n    pass\n",
    "lazy": "def __getattr__(name):\n    raise ImportError(f'no {name}')\n",
    "module": "from torch import nn\n\nbuild = nn.Linear(2, 3)\n\ndef make_model():\n    return build\n",
}
FACTORIES = [  # the factory, the settings, what the message must say
    ("raising:build", [], ["raising:build raised KeyError: 'my key'", "raising.py, line 2"]),
    ("lines:build", [], ["lines:build raised RuntimeError: one two", "lines.py, line 2"]),
    ("long:build", [], ["long:build raised RuntimeError: NNN", "long.py, line 2"]),
    ("leaving:build", [], ["leaving:build raised SystemExit: enough", "leaving.py, line 4"]),
    ("script:build", [], ["importing script raised SystemExit: 3", "script.py, line 1"]),
    ("broken:build", [], ["importing broken raised SyntaxError: ", "broken.py, line 1"]),
    ("indented:build", [], ["importing indented raised IndentationError: ", "indented.py, line 2"]),
    (
        "importing:build",
        [],
        [
            "importing importing raised ModuleNotFoundError: No module named 'no_such_thing_at_all'",
            "importing.py, line 1",
        ],
    ),
    ("dividing:build", [], ["importing dividing raised ZeroDivisionError: division by zero", "dividing.py, line 2"]),
    ("word:build", [], ["word:build is a str, expected an nn.Module or a function that returns one"]),
    ("returning:build", [], ["returning:build returned a dict, expected an nn.Module"]),
    ("nothing:build", [], ["nothing:build returned a NoneType, expected an nn.Module"]),
    ("wanting:build", [], ["wanting:build raised TypeError: ", "'width' and 'depth'"]),
    ("wanting:build", ["--set", "width=1", "deep=2"], ["wanting:build raised TypeError: ", "'deep'"]),
    ("lazy:build", [], ["lazy:build raised ImportError: no build", "lazy.py, line 2"]),
    ("module:make_modle", [], ["module has no 'make_modle'; nearest: make_model"]),
    ("module:build.wieght", [], ["module has no 'build.wieght'; nearest: weight"]),
    ("module:build", ["--set", "width=1"], ["module:build is already a module, so", "width"]),
    ("no_such_module:build", [], ["no module 'no_such_module'"]),
    ("no.such.module:build", [], ["no module 'no.such.module'"]),
    (
        "module.py:build",
        [],
        ["'module.py:build' is a module of Python: write package.module:factory, such as module:build"],
    ),
    ("json..decoder:build", [], ["no module 'json..decoder'"]),
    ("module:build.", [], ["module has no 'build.'"]),
]


@pytest.mark.parametrize(("factory", "settings", "words"), FACTORIES, ids=lambda value: str(value)[:40])
def test_factories_that_fail(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, factory: str, settings: list[str], words: list[str]
):
    """The user's own error is shown: what it was, and the line of their file that raised it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    for name, code in CODE.items():
        Path(f"{name}.py").write_text(code)
    try:
        line = refused("count", factory, *settings)
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in CODE:
                del sys.modules[name]
    assert all(part in line for part in words), line
    assert "importlib" not in line


def test_a_factory_without_torch(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "pip install 'tallystick[torch]'" in refused("count", "json:loads")
