"""The command line as its users meet it."""

import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tallystick
from checkpoints import write
from tallystick.cli.main import main
from tallystick.presets import PRESETS


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        assert captured.err == ""
        assert code == 0
        return captured.out

    return call


def process(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


def test_json_is_what_to_dict_gives(run):
    assert json.loads(run("count", "gpt2", "--format", "json")) == tallystick.count("gpt2").to_dict()
    assert json.loads(run("count", "gpt2", "--by", "layer", "--format", "json")) == tallystick.count("gpt2").to_dict(
        by="layer"
    )
    assert json.loads(run("formula", "gpt2", "--format", "json")) == json.loads(
        json.dumps(tallystick.formula("gpt2").to_dict())
    )


def test_the_table_says_the_number_the_parts_and_the_tie(run):
    out = run("count", "gpt2")
    assert "124,439,808 parameters" in out
    assert "163,037,184 if tied weights are counted twice" in out
    assert "tied: transformer.wte.weight = lm_head.weight (38,597,376 shared, counted once)" in out
    assert "\x1b" not in out
    assert "█" not in out


def test_a_terminal_gets_bars_and_colours(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = run("count", "gpt2")
    assert "█" in out
    assert "\x1b[" in out


def test_a_pipe_cuts_no_name(run):
    out = run("count", "deepseek-v3", "--by", "tensor")
    assert "model.layers.60.mlp.shared_experts.down_proj.weight" in out
    assert "7168 × 2048" in out


@pytest.mark.parametrize("by", ["role", "layer", "tensor", "dtype"])
def test_csv_adds_up(run, by):
    rows = list(csv.DictReader(io.StringIO(run("count", "gpt2", "--by", by, "--format", "csv"))))
    assert sum(int(row["parameters"]) for row in rows) == 124_439_808


def test_a_checkpoint_of_two_dtypes_by_dtype(run, tmp_path):
    write(
        tmp_path / "model.safetensors",
        {"wte.weight": (10, 4), "h.0.attn.bias": (1, 1, 4, 4), "h.0.mlp.c_fc.weight": (4, 16)},
        dtypes={"wte.weight": "F16"},
    )
    lines = [line.split() for line in run("count", str(tmp_path), "--by", "dtype").splitlines()]
    assert ["float16", "40", "38.5%", "80", "bytes"] in lines
    assert ["float32", "64", "61.5%", "256", "bytes"] in lines
    assert ["total", "104", "100.0%", "336", "bytes"] in lines
    assert "buffer" in run("count", str(tmp_path), "--by", "tensor")


def test_the_formula_of_a_file_that_its_config_does_not_describe(run, tmp_path):
    write(tmp_path / "model.safetensors", {"wte.weight": (10, 4)})
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_embd": 4, "n_head": 2, "n_layer": 1}')
    assert f"{tmp_path} has" in run("formula", str(tmp_path))


def test_markdown_is_a_table(run):
    lines = run("count", "gpt2", "--format", "markdown").splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "| total " in table[-1]
    assert "**124,439,808** parameters" in lines[0]


def test_set_takes_json_values_and_several_at_once(run):
    out = json.loads(
        run("count", "gpt2", "--set", "n_layer=24", "n_embd=1024", "--set", "n_head=16", "--format", "json")
    )
    assert out["totals"]["unique"] == 354_823_168
    out = json.loads(run("count", "gpt2", "--set", "tie_word_embeddings=false", "--format", "json"))
    assert out["totals"]["unique"] == 163_037_184
    out = json.loads(run("count", "gpt2", "--set", "dtype=bfloat16", "--format", "json"))
    assert out["totals"]["bytes"] == 2 * 124_439_808


def test_set_by_an_alias(run):
    out = json.loads(
        run("count", "gpt2", "--set", "num_hidden_layers=24", "hidden_size=1024", "n_head=16", "--format", "json")
    )
    assert out["totals"]["unique"] == 354_823_168


def test_a_set_key_wins_over_an_alias_in_the_config():
    aliased = {"model_type": "gpt2", "hidden_size": 1024, "n_head": 16}
    assert tallystick.count(aliased, n_embd=768).total == 124_439_808
    assert tallystick.count(aliased).total == tallystick.count("gpt2", n_embd=1024, n_head=16).total


def test_presets_lists_every_name_with_its_count(run):
    rows = json.loads(run("presets", "--format", "json"))
    assert [row["name"] for row in rows] == list(PRESETS)
    assert {row["name"]: row["parameters"] for row in rows}["llama-3-8b"] == 8_030_261_248
    assert "8,030,261,248" in run("presets")


def test_presets_are_searched_and_say_family_month_and_bytes(run):
    (row,) = json.loads(run("presets", "gpt-oss-20b", "--format", "json"))
    assert (row["family"], row["released"], row["bytes"]) == ("gpt-oss", "2025-08", 13_761_264_768)
    listed = run("presets", "qwen3.5")
    assert "qwen3.5-27b" in listed
    assert "llama" not in listed


def test_a_search_that_finds_no_preset_names_the_nearest(capsys):
    assert main(["presets", "qwn"]) == 2
    assert "no preset has 'qwn' in its name or family; nearest: Qwen" in capsys.readouterr().err


def test_formula_in_text_steps_and_latex(run):
    assert "= vocab_size·n_embd + n_positions·n_embd + n_layer·(12·n_embd² + 13·n_embd)" in run("formula", "gpt2")
    assert "12 × 768 × 3 × 768" in run("formula", "gpt2", "--steps")
    assert run("formula", "gpt2", "--latex").startswith(r"\mathrm{vocab\_size}")


@pytest.mark.parametrize(
    ("name", "text", "parameters"),
    [
        (
            "book.json",
            '{"vocab_size": 50257, "context_length": 1024, "emb_dim": 1600, "n_heads": 25, "n_layers": 48,'
            ' "drop_rate": 0.1, "qkv_bias": true}',
            1_638_022_400,
        ),
        (
            "llama.toml",
            "vocab_size = 32000\ncontext_length = 4096\nemb_dim = 4096\nn_heads = 32\nn_layers = 32\n"
            'hidden_dim = 11008\ndtype = "bfloat16"\n',
            6_738_415_616,
        ),
        ("nano.toml", "block_size = 1024\nn_embd = 768\nn_layer = 12\nn_head = 12\nvocab_size = 50257\n", 124_439_808),
        ("config.json", '{"architectures": ["GPT2LMHeadModel"], "n_embd": 768}', 124_439_808),
    ],
)
def test_files_of_every_dialect(run, tmp_path, name, text, parameters):
    (tmp_path / name).write_text(text)
    assert json.loads(run("count", str(tmp_path / name), "--format", "json"))["totals"]["unique"] == parameters


def test_the_book_counts_as_the_book_builds_and_names_the_tied_count(run):
    book = {
        "vocab_size": 50257,
        "context_length": 1024,
        "emb_dim": 768,
        "n_heads": 12,
        "n_layers": 12,
        "qkv_bias": False,
    }
    ledger = tallystick.count(book)
    assert ledger.total == 163_009_536
    assert any("124,412,160" in note for note in ledger.notes)
    assert tallystick.count({**book, "tie_word_embeddings": True}).total == 124_412_160
    assert tallystick.count(book, tie_word_embeddings=True).notes == ()


def test_the_books_dtype_object():
    import torch

    book = {"vocab_size": 100, "context_length": 8, "emb_dim": 8, "n_heads": 2, "n_layers": 1, "hidden_dim": 16}
    ledger = tallystick.count({**book, "dtype": torch.bfloat16})
    assert ledger.totals["bytes"] == 2 * ledger.total


def test_weights_that_are_not_read_are_said(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "dtype": "float32"}')
    (tmp_path / "training_args.bin").touch()
    assert tallystick.count(tmp_path).notes == ()
    (tmp_path / "tf_model.h5").touch()
    assert "tf_model.h5" in tallystick.count(tmp_path).notes[0]
    (tmp_path / "tf_model.h5").unlink()
    for name in ("one.pt", "two.pt"):  # either could be it
        (tmp_path / name).touch()
    assert "one.pt" in tallystick.count(tmp_path).notes[0]


def test_numpy_integers_are_integers():
    import numpy as np

    assert tallystick.count({"model_type": "gpt2", "n_layer": np.int64(24)}, n_head=np.int32(12)).total == 209_494_272


def test_a_class_that_is_not_the_one_counted_is_said():
    ledger = tallystick.count({"model_type": "gpt2", "architectures": ["GPT2ForSequenceClassification"]})
    assert any("GPT2ForSequenceClassification" in note for note in ledger.notes)


@pytest.mark.usefixtures("preloaded")
def test_a_factory_from_the_current_directory(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def build(width=3):\n    return nn.Linear(width, 2)\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(1, 1)\n"
        "model = nn.Linear(5, 5)\n"
    )
    for source, parameters in (("mine:build", 8), ("mine:Net", 2), ("mine:model", 30)):
        done = process("-m", "tallystick", "count", source, "--format", "json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["totals"]["unique"] == parameters
        assert json.loads(done.stdout)["kind"] == "module"
    done = process("-m", "tallystick", "count", "mine:build", "--set", "width=7", "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["totals"]["unique"] == 16


@pytest.mark.usefixtures("preloaded")
def test_what_a_factory_prints_does_not_run_into_the_answer(tmp_path):
    (tmp_path / "loud.py").write_text(
        "from torch import nn\nprint('imported')\ndef build():\n    print('built')\n    return nn.Linear(1, 1)\n"
    )
    done = process("-m", "tallystick", "count", "loud:build", "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["totals"]["unique"] == 2
    assert done.stderr.split() == ["imported", "built"]


@pytest.mark.usefixtures("preloaded")
def test_the_error_of_a_factory_points_at_its_own_line(tmp_path):
    (tmp_path / "wrong.py").write_text("from torch import nn\ndef build():\n    return nn.Linear(2, -1)\n")
    done = process("-m", "tallystick", "count", "wrong:build", cwd=tmp_path)
    assert done.returncode == 2
    assert "RuntimeError" in done.stderr
    assert "wrong.py, line 3)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_transformers_is_left_as_talkative_as_it_was():
    import transformers

    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_info()
    try:
        tallystick.count({"model_type": "mt5", "num_layers": 2})
        assert transformers.logging.get_verbosity() == transformers.logging.INFO
    finally:
        transformers.logging.set_verbosity(before)


def test_a_million_layers_are_not_built_one_by_one():
    with pytest.raises(tallystick.BadInput, match="num_layers is 1000000, too many"):
        tallystick.count({"model_type": "mt5", "num_layers": 10**6})


def test_a_type_that_is_not_native_is_built_by_transformers():
    ledger = tallystick.count({"model_type": "mt5", "num_layers": 2, "vocab_size": 90})
    from transformers import MT5Config, MT5ForConditionalGeneration

    truth = MT5ForConditionalGeneration(MT5Config(num_layers=2, vocab_size=90))
    assert ledger.total == sum(parameter.numel() for parameter in truth.parameters())
    assert (ledger.kind, ledger.architecture) == ("config", "mt5")
    assert "built by transformers" in ledger.notes[0]
    assert [tie.relation for tie in ledger.ties] == ["tied"]


def test_a_model_of_sound_is_built_whole_where_its_decoder_cannot_be():
    """transformers' causal language model of MusicGen takes the config of the decoder, not that of
    the whole.
    """
    ledger = tallystick.count({"model_type": "musicgen"})
    assert "MusicgenForConditionalGeneration was built by transformers" in ledger.notes[0]
    assert ledger.total == 470_291_938  # what the parameters() of that class add up to


@pytest.mark.parametrize(
    ("model_type", "values"), [("mt5", {"layer_norm_epsilon": math.inf}), ("mamba2", {}), ("falcon_h1", {})]
)
def test_the_infinities_of_a_saved_config_are_read(model_type, values, tmp_path):
    """By the fallback, which builds the one, and where a type is native."""
    import transformers

    transformers.AutoConfig.for_model(model_type, **values).save_pretrained(tmp_path)
    assert "__float__" in (tmp_path / "config.json").read_text()
    assert tallystick.count(tmp_path).architecture == model_type


def test_importing_counting_and_formulas_load_neither_torch_nor_transformers():
    code = (
        "import sys, tallystick; tallystick.count('gpt2').to_dict(by='tensor'); tallystick.formula('gpt2')\n"
        "heavy = {'torch', 'transformers', 'numpy', 'rich', 'sympy', 'pandas', 'shtab'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = process("-c", code)
    assert done.returncode == 0, done.stderr


def test_help_shows_examples_and_version_says_it():
    done = process("-m", "tallystick", "--help")
    assert done.returncode == 0
    assert "tallystick count gpt2" in done.stdout
    assert process("-m", "tallystick", "--version").stdout.strip() == f"tallystick {tallystick.__version__}"


def test_completion_for_shells():
    for shell in ("bash", "zsh", "tcsh"):
        done = process("-m", "tallystick", "--print-completion", shell)
        assert done.returncode == 0, done.stderr
        assert "count" in done.stdout


def test_a_reader_that_has_had_enough():
    source = Path(tallystick.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(
        [sys.executable, "-m", "tallystick", "count", "deepseek-v3", "--by", "tensor", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""


def test_a_preset_wins_over_a_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text('{"model_type": "gpt2", "n_layer": 1}')
    assert tallystick.count("gpt2").total == 124_439_808
    assert "./gpt2" in tallystick.count("gpt2").notes[0]
    assert tallystick.count("./gpt2").total == 124_439_808 - 11 * 7_087_872
    assert tallystick.count(Path("gpt2")).total == 124_439_808 - 11 * 7_087_872
