"""Memory over the length of sequences: the table, the picture, and lengths as people write them."""

import builtins
import json
import os
import re

import pytest

import tallystick
from tallystick import BadInput
from tallystick.answers.memory.sweep import sweep
from tallystick.cli.main import main
from tallystick.cli.options import length, lengths

OPTIONS = {"mode": "training", "recompute": "full", "loss": "chunked"}  # whose fullest moment changes with the length


def test_each_length_is_what_memory_says_of_it_and_its_parts_sum_to_that():
    answer = sweep(tallystick.count("llama-3-8b"), [1024, 131072], **OPTIONS)
    alone = [tallystick.memory("llama-3-8b", sequence=sequence, **OPTIONS) for sequence in (1024, 131072)]
    assert answer.answers == tuple(alone)
    assert alone[0].peak != alone[1].peak
    for place, one in enumerate(alone):
        assert sum(sizes[place] for sizes in answer.parts_at_peak.values()) == one.total_bytes
    assert "gradients" in answer.parts_at_peak
    assert answer.parts_at_peak["gradients"][1] == 0  # which come when activations have gone


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8192", [8192]),
        ("8k", [8192]),
        ("1K, 3k", [1024, 3072]),
        ("1k:8k", [1024, 2048, 4096, 8192]),
        ("3:10", [3, 6, 10]),
        ("1k:3k:1k", [1024, 2048, 3072]),
        ("2:4:1", [2, 3, 4]),
        ("5:5", [5]),
        ("8k,1k,8192", [1024, 8192]),
    ],
)
def test_lengths_as_people_write_them(text, expected):
    assert lengths(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k",
        "abc",
        "-1",
        "0",
        "1.5k",
        "1e3",
        "8kk",
        "1:2:3:4",
        "5:1",
        ":",
        "1:",
        "1,,2",
        "9" * 5000,
        "1:900000:1",
        "1:2:0",
    ],
)
def test_what_is_no_length_is_one_line(text):
    with pytest.raises(BadInput, match=r"not a sequence length|not a range of lengths|more than 200 lengths"):
        lengths(text)


def test_one_length_where_one_is_asked_for(capsys):
    assert length("2k") == 2048
    assert main(["fit", "gpt2", "--device", "h100", "--sequence", "1,2"]) == 2
    assert "--sequence takes one length here" in capsys.readouterr().err
    assert main(["compute", "gpt2", "--sequence", "1,2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_table_and_the_json(capsys):
    assert main(["memory", "gpt2", "--sequence", "256:1k", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["sequences"] == [256, 512, 1024]
    assert answer["total_bytes"] == [one["total_bytes"] for one in answer["answers"]]
    for style in ("table", "markdown"):
        assert main(["memory", "gpt2", "--sequence", "256:1k", "--format", style]) == 0
        rows = re.findall(r"^\W*(256|512|1,024)\s", capsys.readouterr().out, re.MULTILINE)
        assert rows == ["256", "512", "1,024"]
    assert main(["memory", "gpt2", "--sequence", "256,512", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["sequence", "256", "512"]
    assert [int(line.rpartition(",")[2]) for line in lines[1:]] == answer["total_bytes"][:2]


def test_each_length_is_said_to_fit_or_not(capsys):
    asked = ["memory", "llama-3-8b", "--sequence", "16k:64k", "--device", "24GB", "--format"]
    assert main([*asked, "csv"]) == 0
    head, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert head[-1] == "fits 24GB"
    assert [(row[0], int(row[-2]) <= 24 * 10**9, row[-1]) for row in rows] == [
        ("16384", True, "yes"),
        ("32768", False, "no"),
        ("65536", False, "no"),
    ]


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!doctype html>")])
def test_a_picture_in_each_kind(tmp_path, kind, start, capsys):
    path = tmp_path / f"memory.{kind}"
    for _ in range(2):  # an old one is replaced, by the same
        assert main(["memory", "gpt2", "--sequence", "256:1k", "--device", "24GB", "--plot", str(path)]) == 0
        content = path.read_bytes()
        assert content.startswith(start)
        assert os.listdir(tmp_path) == [path.name]
    assert main(["memory", "gpt2", "--sequence", "256:1k", "--device", "24GB", "--plot", str(path)]) == 0
    assert path.read_bytes() == content
    if kind == "html":  # nothing is loaded from elsewhere
        assert not re.findall(rb"<script|<link|<img|url\(http|src=", content)
        assert b"1,024" in content


def test_a_name_with_dollars_and_markup_stays_what_it_is(tmp_path):
    source = tmp_path / "<b>$\\frac$.json"
    source.write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    page = tmp_path / "x.html"
    assert main(["memory", str(source), "--sequence", "1k,2k", "--plot", str(page)]) == 0
    assert "&lt;b&gt;$\\frac$.json: memory in inference</h1>" in page.read_text(encoding="utf-8")
    assert "<b>" not in page.read_text(encoding="utf-8").replace("&lt;b&gt;", "").partition("<svg")[0]


def test_many_lengths_are_not_all_named_on_the_axis(tmp_path):
    """Each tick is a group of the picture, whatever its words are drawn with."""
    ticks = {}
    for name, sequence in (("few", "128:1k:128"), ("many", "8:1k:8")):
        path = tmp_path / f"{name}.svg"
        assert main(["memory", "gpt2", "--sequence", sequence, "--plot", str(path)]) == 0
        ticks[name] = len(re.findall(r'id="xtick_', path.read_text(encoding="utf-8")))
    assert ticks["few"] == 8
    assert ticks["many"] < 12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sequence", "1,2", "--plot", "x.gif"], "name a file that ends in .png, .svg, .html"),
        (["--plot", "x.svg"], "say them with --sequence"),
        (["--sequence", "8", "--plot", "x.svg"], "say them with --sequence"),
        (["--sequence", "1,2", "--explain"], "--explain shows the formulas at one length"),
        (
            ["--sequence", "1,2", "--plot", "nowhere/x.svg"],
            "nowhere/x.svg could not be written: No such file or directory",
        ),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["memory", "gpt2", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert main(["memory", "gpt2", "--sequence", "1,2", "--plot", str(tmp_path / "x.svg")]) == 2
    assert "pip install 'tallystick[plot]'" in capsys.readouterr().err


def test_nothing_is_left_of_a_picture_that_was_not_finished(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert main(["memory", "gpt2", "--sequence", "1,2", "--plot", str(tmp_path / "x.svg")]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
