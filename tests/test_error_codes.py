"""Each refusal has a code that a program can tell from the others: a closed list, in the sources
and in docs/errors.md alike.
"""

from __future__ import annotations

import ast
import json
import pickle
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import tallystick
from repository import ROOT
from syntax import nodes
from tallystick.errors import CODES, BadInput, code_of

pytestmark = pytest.mark.usefixtures("preloaded_module")

PACKAGE = Path(tallystick.__file__).parent
# What ends a rank because another one has failed: that one says why.
WITHOUT_CODE = {"training/ranks.py"}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Where each `BadInput(...)` is made, and each `config.refuse(...)` that has another code than
    most.
    """
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (_is_made(node.func) or _is_refused(node)):
                yield str(path.relative_to(PACKAGE)), node


def _is_made(called: ast.expr) -> bool:
    return isinstance(called, ast.Name) and called.id == "BadInput"


def _is_refused(call: ast.Call) -> bool:
    return getattr(call.func, "attr", "") == "refuse" and any(keyword.arg == "code" for keyword in call.keywords)


def own_codes() -> Iterator[str]:
    """The codes of the classes below `BadInput`."""
    for path in PACKAGE.rglob("*.py"):
        for node in nodes(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "BadInput" in map(ast.unparse, node.bases):
                found = [
                    one for one in node.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "code"
                ]
                assert found, f"{node.name} in {path} has no code"
                yield ast.literal_eval(found[0].value)


def codes_in(expression: ast.expr) -> list[str]:
    """The codes that an expression may give; none where it hands on that of another error."""
    if isinstance(expression, ast.IfExp):
        return codes_in(expression.body) + codes_in(expression.orelse)
    if isinstance(expression, ast.Constant):
        return [str(expression.value)]
    assert re.fullmatch(r"code|\w+\.code|code_of\(\w+\)|reply\['code'\]", ast.unparse(expression)), ast.unparse(
        expression
    )
    return []


def test_every_refusal_has_a_code_of_the_list_and_every_code_is_used():
    used, without = set(own_codes()), set()
    for where, call in calls():
        given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        used.update(*map(codes_in, given))
        without |= set() if given else {where}
    assert without == WITHOUT_CODE
    assert used | {"bad-input", code_of(FileNotFoundError()), code_of(PermissionError())} == set(CODES)
    assert "bad-input" not in used


def test_the_page_lists_the_codes():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([a-z][a-z-]+) \| ", page, re.MULTILINE) == ["code", *CODES]


def code_for(source, **settings):
    with pytest.raises(BadInput) as error:
        tallystick.count(source, **settings)
    copy = pickle.loads(pickle.dumps(error.value))
    assert (type(copy), str(copy), copy.code) == (type(error.value), str(error.value), error.value.code)
    return error.value.code


def test_what_was_named():
    assert code_for("gpt3") == "not-found"
    assert code_for("./nothing-here/config.json") == "not-found"
    assert code_for("gpt2", n_layers=3) == "unknown-key"
    assert code_for("gpt2", n_layer="three") == "bad-value"
    assert code_for("gpt2", n_head=5) == "indivisible"
    assert code_for({"hidden_size": 3}) == "not-a-config"
    assert code_for("https://user:secret@example.org/config.json") == "unsafe"
    assert code_for("ftp://example.org/config.json") == "unsupported"
    with pytest.raises(BadInput) as error:
        tallystick.memory("gpt2", zero=2)
    assert error.value.code == "conflicting-options"
    with pytest.raises(BadInput) as error:
        tallystick.memory("gpt2", device="h1000")
    assert error.value.code == "unknown-name"


def header(**tensors):
    text = json.dumps(
        {
            name: {"dtype": dtype, "shape": shape, "data_offsets": place}
            for name, (dtype, shape, place) in tensors.items()
        }
    ).encode()
    return struct.pack("<Q", len(text)) + text


ONE = header(a=("F32", [2], [0, 8]))
FILES = {
    "model.safetensors": {
        "truncated": ONE + b"1234",
        "overlap": header(a=("F32", [2], [0, 8]), b=("F32", [2], [4, 12])) + bytes(12),
        "unsupported": header(a=("Q32", [2], [0, 8])) + bytes(8),
        "malformed": header(a=("F32", [3], [0, 8])) + bytes(8),
        "too-large": struct.pack("<Q", 2**62) + bytes(8),
        "incomplete": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    },
    "config.json": {
        "malformed": b"{",
        "truncated": b"",
        "too-large": b"[" * 100_000,
        "not-a-config": b"[]",
    },
    "pytorch_model.bin": {"unsafe": b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."},
}


@pytest.mark.parametrize(("name", "code"), [(name, code) for name, files in FILES.items() for code in files])
def test_what_a_file_holds(tmp_path, name, code):
    (tmp_path / name).write_bytes(FILES[name][code])
    assert code_for(str(tmp_path / name)) == code


def test_what_a_folder_lacks_or_holds_twice(tmp_path):
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(ONE + bytes(8))
    assert code_for(str(tmp_path)) == "incomplete"
    (tmp_path / "model.safetensors.index.json").unlink()
    (tmp_path / "other.safetensors").write_bytes(ONE + bytes(8))
    assert code_for(str(tmp_path)) == "ambiguous"
    index["weight_map"]["a"] = "../a.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert code_for(str(tmp_path)) == "unsafe"


def test_a_code_goes_through_the_process_that_builds():
    assert code_for({"model_type": "no-such-type"}) == "unknown-model-type"
    assert code_for({"model_type": "mt5", "d_modle": 3}, d_modle2=4) == "unknown-key"
    assert code_for({"model_type": "mt5", "num_layers": 10**9}) == "too-large"


def test_a_library_that_is_not_installed(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BadInput) as error:
        tallystick.count("gpt2").to_pandas()
    assert error.value.code == "missing-package"
