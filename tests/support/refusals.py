"""What refuses bad input: a command in a folder of its own, and the same call from Python"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tallystick
from tallystick import BadInput
from tallystick.cli.main import main
from tallystick.errors import REQUEST

Refused = Callable[..., str]


@pytest.fixture
def refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preloaded: None
) -> Refused:
    """Runs a command in a folder of its own, and gives the one line that it must be refused
    with. Where it asks transformers, a fork answers.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        assert main(list(arguments)) == 2, arguments
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("tallystick: ")
        assert captured.err.endswith("\n")
        line = captured.err.removeprefix("tallystick: ").removesuffix("\n")
        assert line.isprintable()
        assert "Traceback" not in line
        assert len(line) < 700
        return line

    return run


def says_so(line: str, source: Any, **overrides: Any) -> None:
    """`tallystick.count` refuses the same input with the same line, after the function's name if
    the arguments themselves are wrong.
    """
    with pytest.raises(BadInput) as error:
        tallystick.count(source, **overrides)
    assert isinstance(error.value, ValueError)
    assert error.value.line == line
    assert str(error.value) == (f"count(): {line}" if error.value.code in REQUEST else line)
