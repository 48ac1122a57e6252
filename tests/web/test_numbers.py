"""The explorer's numbers are the command line's: of all presets, and of 200 drawn configs.

Both are asked as they are used: a request of the page as JSON, and the command's words. What a
browser shows is compared in ``test_explore_page*.py`` and ``test_static_page.py``.
"""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs import CONFIGS
from drawing import some
from rotating import drawn_by_commit
from tallystick.cli.main import main
from tallystick.presets import PRESETS
from tallystick.report.numbers import exact, in_flops, in_giga
from tallystick.web.reply import reply_to

CHEAP = ("count", "formula", "memory", "compute", "ties", "reconcile")
DRAWN = [name for name in sorted(CONFIGS) if name != "deepseek_v4"]


def page(model, *wanted, **more):
    """The page's reply, as a browser gets it."""
    return json.loads(reply_to(json.dumps({"model": model, "wanted": wanted, "claim": "1B", **more})))


def command(line, capsys):
    """What a command line prints, as JSON; None if it refuses."""
    words = shlex.split(line)[1:]
    if "--by" in words:  # adds rows
        del words[words.index("--by") : words.index("--by") + 2]
    if words[0] == "reconcile":
        words += ["--most", "99"]
    code = main([*words, "--format", "json"])
    printed = capsys.readouterr().out
    return None if code == 2 else json.loads(printed)


def test_of_all_presets_the_numbers_are_the_command_lines(capsys):
    for name in PRESETS:
        given = page({"name": name}, "json", of="memory")
        assert json.loads(given["json"]["text"]) == command(f"tallystick memory {name}", capsys), name


@pytest.mark.parametrize("name", some(list(PRESETS), 8))
@pytest.mark.parametrize("question", CHEAP)
def test_each_answer_of_a_preset_is_the_command_lines(name, question, capsys):
    given = page({"name": name}, question)[question]
    words = given.get("command", f"tallystick {question} {name}")  # a refusal has none: "embedding" multiplies nothing
    assert given.get("answer") == command(words, capsys)


def test_of_drawn_configs_the_numbers_are_the_command_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    @drawn_by_commit(50)  # others in each commit; TALLYSTICK_EXAMPLES=200 for more
    @given(st.sampled_from(DRAWN).flatmap(CONFIGS.get))
    def compared(config):
        text = json.dumps(config)
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        given = page({"config": text}, "count", "memory", "compute")
        for question in ("count", "memory", "compute"):
            expected = command(f"tallystick {question} config.json", capsys)
            if expected is None:
                assert given[question]["error"], config
                continue
            assert given[question]["answer"] == expected, config
        count, memory, compute = (given[question] for question in ("count", "memory", "compute"))
        assert exact(count["answer"]["totals"]["unique"]) in count["html"]
        if "answer" in memory:
            assert in_giga(memory["answer"]["total_bytes"]) in memory["html"]
        if "answer" in compute:
            assert in_flops(compute["answer"]["forward_flops"]) in compute["html"]

    compared()
