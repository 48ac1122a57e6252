"""What a new user types first: help, typos, models without a command, options before SOURCE."""

import json
import re
import subprocess

import pytest

from tallystick.answers.devices import DEVICES
from tallystick.answers.memory.optimizers import OPTIMIZERS
from tallystick.cli.commands import COMMANDS, GROUPS, SUMMARIES, SYNONYMS
from tallystick.cli.main import main
from tallystick.cli.parser import separated
from tallystick.presets import PRESETS


@pytest.fixture
def run(capsys):
    def call(*words, code=0):
        assert main(words) == code
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return call


@pytest.fixture
def refused(capsys):
    def call(*words):
        assert main(words) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err.strip()

    return call


def test_no_word_is_help(run):
    assert run() == run("--help") == run("-h") == run("help")


def test_the_help_has_each_command_in_its_group(run):
    printed = run()
    places = [printed.index(f"\n{group}\n") for group in GROUPS]
    assert places == sorted(places)
    for name, summary in SUMMARIES.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", printed, re.MULTILINE)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_80_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    printed = run("help", command) if command else run()
    assert [line for line in printed.splitlines() if len(line) > 80] == []
    if command:
        assert printed == run(command, "--help")
        assert printed.startswith(f"usage: tallystick {command}")


def test_each_example_in_a_help_is_a_command_line_that_parses(run, monkeypatch):
    from tallystick.cli.parser import build_parser

    for command in COMMANDS:
        for line in run("help", command).splitlines():
            if line.startswith(f"  tallystick {command}"):
                words = re.split(r" {2,}| [|>] ", line.strip())[0].split()[2:]
                build_parser(command).parse_args(separated([command, *words]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["coutn", "gpt2"], "there is no command 'coutn'; nearest: count"),
        (["memroy"], "there is no command 'memroy'; nearest: memory"),
        (["gpt2"], "'gpt2' is not a command: did you mean tallystick count gpt2"),
        (["GPT2", "--by", "layer"], "did you mean tallystick count GPT2 --by layer"),
        (["hf://org/name"], "did you mean tallystick count hf://org/name"),
        (["my_model:build"], "did you mean tallystick count my_model:build"),
        (["--format", "json", "count", "gpt2"], "'--format' comes before a command"),
        (["--versoin"], "nearest: --version"),
    ],
)
def test_a_first_word_that_is_no_command(refused, words, said):
    assert said in refused(*words)


def test_other_words_for_a_command_name_it(refused):
    assert set(SYNONYMS.values()) <= set(COMMANDS)
    assert not set(SYNONYMS) & set(COMMANDS)
    for word, command in SYNONYMS.items():
        assert f"did you mean tallystick {command}" in refused(word, "gpt2")


def test_a_typo_in_an_option_names_the_nearest_and_the_commands_own_help(refused):
    assert refused("memory", "gpt2", "--batch-size", "4") == (
        "tallystick: there is no option '--batch-size'; nearest: --batch, --optimizer (see tallystick memory --help)"
    )
    assert "nearest: --tensors (see tallystick compare --help)" in refused("compare", "gpt2", "gpt2", "--tensor-s")


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "n_layer=24", "gpt2", "--set", "n_embd=1024", "--set", "n_head=16"],
        ["--set", "n_layer=24", "n_embd=1024", "n_head=16", "gpt2"],
        ["gpt2", "--set", "n_layer=24", "n_embd=1024", "n_head=16"],
        ["--set=n_layer=24", "n_embd=1024", "gpt2", "--set=n_head=16"],
    ],
)
def test_set_may_come_before_the_model(run, words):
    # GPT-2 medium: 24 layers of 1,024 with 16 heads
    assert json.loads(run("count", *words, "--format", "json"))["totals"]["unique"] == 354_823_168


def test_settings_of_one_side_stay_with_it(run):
    answer = json.loads(
        run("compare", "--set-b", "n_layer=24", "n_embd=1024", "gpt2", "gpt2", "--set-b", "n_head=16", "--format=json")
    )
    assert (answer["total_a"], answer["total_b"]) == (124_439_808, 354_823_168)


@pytest.mark.parametrize(
    "words",
    [
        ["gpt2", "--lora", "8", "c_attn", "c_fc"],
        ["--lora", "8", "gpt2", "c_attn", "c_fc"],
        ["--lora", "8", "--lora-target", "c_attn", "gpt2", "--lora-target", "c_fc"],
        ["gpt2", "--lora-target", "c_attn,c_fc", "--lora", "8"],
    ],
)
def test_the_modules_of_lora(run, words):
    answer = json.loads(run("memory", "--mode", "train", *words, "--format", "json"))
    (adapters,) = [line["bytes"] for line in answer["lines"] if line["what"].startswith("LoRA")]
    assert adapters == 4 * 12 * 8 * ((768 + 3 * 768) + (768 + 4 * 768))
    assert answer["mode"] == "training"


def test_a_share_may_be_a_percentage(run):
    given = ["compute", "gpt2", "--device", "h100", "--tokens", "1B", "--format", "json"]
    assert run(*given, "--mfu", "40%") == run(*given, "--mfu", "0.4")


def test_no_line_of_a_table_ends_in_blanks(run):
    for words in (["count", "gpt2"], ["memory", "gpt2"], ["formula", "gpt2", "--steps"], ["devices"], ["dtypes"]):
        assert [line for line in run(*words).splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize(
    "words",
    [
        ["count", "gpt2"],
        ["formula", "gpt2", "--steps"],
        ["compare", "gpt2", "gpt2-medium", "--tensors"],
        ["reconcile", "gpt2", "163M"],
        ["memory", "gpt2"],
        ["memory", "gpt2", "--sequence", "1k,512"],
        ["fit", "gpt2", "--device", "h100"],
        ["fit", "gpt2", "--dtype", "bf16"],
        ["compute", "gpt2"],
        ["ties", "gpt2"],
        ["presets", "gpt2"],
        ["devices"],
        ["dtypes"],
    ],
    ids=" ".join,
)
def test_each_table_has_each_format(run, words):
    printed = {style: run(*words, "--format", style) for style in ("json", "csv", "markdown", "html")}
    json.loads(printed["json"])
    widths = {line.count(",") for line in printed["csv"].splitlines()[:1]}
    assert widths != {0}
    assert "| ---" in printed["markdown"] or "|---" in printed["markdown"]
    assert printed["html"].startswith("<!doctype html>")
    assert "<table>" in printed["html"]
    assert "<title></title>" not in printed["html"]


@pytest.mark.parametrize(
    ("words", "yes"),
    [
        (["compare", "gpt2", "gpt2-medium"], False),
        (["fit", "llama-3-8b", "--device", "t4"], True),
        (["memory", "llama-3-8b", "--device", "t4"], False),
        (["reconcile", "gpt2", "5B"], False),
        (["check", "-", "--against", "gpt2"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_exit_code_of_a_no(run, monkeypatch, words, yes):
    import io
    import sys

    for option, code in ((None, int(yes)), ("--exit-code", 1), ("--no-exit-code", 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"2 + 2 = 5")))
        run(*words, *([option] if option else []), code=code)


def test_a_device_is_needed_to_fail_on(refused):
    assert "--exit-code asks whether it fits" in refused("memory", "gpt2", "--exit-code")


def test_devices_and_dtypes_are_listed(run):
    assert [one["name"] for one in json.loads(run("devices", "--format", "json"))] == list(DEVICES)
    assert json.loads(run("devices", "4090", "--format", "json"))[0]["flops"] == 165.2e12
    bits = {one["name"]: one["bits"] for one in json.loads(run("dtypes", "--format", "json"))}
    # llama.cpp: Q4_K has 256 weights in 144 bytes, Q8_0 32 in 34
    assert (bits["bfloat16"], bits["q4_k_m"], bits["q8_0"]) == (16, 4.5, 8.5)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (["memory", "gpt2", "--device", "zzz"], "rtx4090"),
        (["memory", "gpt2", "--dtype", "zzz"], "q4_k"),
        (["memory", "gpt2", "--kv-dtype", "int5"], "float32, bfloat16, float16, fp8, int8, int4, int2"),
        (["memory", "gpt2", "--mode", "train", "--optimizer", "zzz"], "adafactor"),
        (["devices", "rtx4091"], "nearest: rtx4090"),
    ],
    ids=" ".join,
)
def test_an_unknown_word_lists_the_choices(refused, words, known):
    assert known in refused(*words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_the_words(run, shell):
    printed = run("--print-completion", shell)
    for word in ("llama-3-8b", "rtx4090", "q4_k", "adam8bit"):
        assert word in printed
    if shell == "bash":
        assert "quiz_pos_0_choices=(embedding bare-bones-lm" in printed  # the models of the quiz
    assert {"llama-3-8b"} <= set(PRESETS)
    assert {"rtx4090"} <= set(DEVICES)
    assert {"adam8bit"} <= set(OPTIMIZERS)


def test_completion_in_bash_completes(run, tmp_path):
    script = tmp_path / "complete"
    script.write_text(run("--print-completion", "bash"), encoding="utf-8")
    ask = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
$(complete -p tallystick | sed -E 's/.*-F ([^ ]+).*/\\1/'); echo "${COMPREPLY[@]}"
"""

    def completed(*words):
        done = subprocess.run(
            ["bash", "-c", ask, "bash", str(script), "tallystick", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        return done.stdout.split()

    assert "gpt2-medium" in completed("count", "gpt2-m")
    assert "rtx4090" in completed("fit", "gpt2", "--device", "rtx40")
    assert "adafactor" in completed("memory", "gpt2", "--optimizer", "ada")
    assert completed("count", "comp") == ["complete"]  # a file


# Gemma 3 4B without its vision encoder, by hand: embedding, 34 layers, last norm. Its report has
# 675M and 3,209M in table 1.
LAYER = 2 * 2560 * 2048 + 2 * 2560 * 1024 + 2 * 256 + 3 * 2560 * 10_240 + 4 * 2560
TEXT = 262_208 * 2560 + 34 * LAYER + 2560


def test_each_command_takes_the_text_part(run):
    def asked(*words, code=0):
        return json.loads(run(*words, "--part", "text", "--format", "json", code=code))

    assert asked("count", "gemma-3-4b")["totals"]["unique"] == TEXT
    assert asked("formula", "gemma-3-4b")["value"] == TEXT
    assert asked("compare", "gemma-3-4b", "gemma-3-4b")["total_a"] == TEXT
    assert asked("reconcile", "gemma-3-4b", f"{TEXT:,}")["explained"]
    assert asked("memory", "gemma-3-4b", "--dtype", "bf16")["weights_bytes"] == 2 * TEXT
    assert asked("fit", "gemma-3-4b", "--device", "h100")["fits"]
    assert asked("compute", "gemma-3-4b")["source"] == "gemma-3-4b"
    assert asked("ties", "gemma-3-4b")["groups"][0]["parameters"] == 262_208 * 2560


def test_a_text_is_checked_against_the_text_part(run, tmp_path):
    text = tmp_path / "notes.md"
    text.write_text(f"Total: {TEXT:,}\n2 + 2 = 4\n")
    answer = json.loads(run("check", str(text), "--against", "gemma-3-4b", "--part", "text", "--format", "json"))
    assert answer["correct"]
