"""CONTRIBUTING's file tree is the real one, and its example of an architecture works by being saved."""

import re
import runpy
import sys

import tallystick
from repository import ROOT
from tallystick import architectures
from tallystick.core.registry import REGISTRY

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_tree_is_that_of_now():
    """`make tree` writes it."""
    tree = runpy.run_path(str(ROOT / "docs" / "site" / "tree.py"))
    assert tree["with_tree"](TEXT) == TEXT
    assert "ledger.py" in TEXT
    undescribed = [
        path for path in (*tree["PACKAGE"].rglob("*.py"), *tree["SUPPORT"].glob("*.py")) if not tree["first_line"](path)
    ]
    assert not undescribed


def test_the_example_architecture_needs_one_file_and_no_other_edit(tmp_path, monkeypatch):
    example = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert example
    (tmp_path / "toy.py").write_text(example[1])
    monkeypatch.setattr(architectures, "__path__", [*architectures.__path__, str(tmp_path)])
    try:
        ledger = tallystick.count({"model_type": "toy"})
    finally:
        REGISTRY.pop("toy", None)
        sys.modules.pop("tallystick.architectures.toy", None)
    layer = 4 * 512 * 512 + 3 * 512 * 2048 + 2 * 512
    assert ledger.total == 32000 * 512 + 8 * layer + 512
