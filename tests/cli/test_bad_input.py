"""What bad input gets: one line on stderr, exit code 2, nothing else; from Python, a BadInput with
the same line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config

import tallystick
from checkpoints import write, write_raw, write_sharded
from tallystick import BadInput
from tallystick.cli.main import main
from tallystick.errors import REQUEST
from tallystick.sources.transformers_meta import fallback

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


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("gpt3", "gpt2"),
        ("GPT2-smal", "gpt2"),
        ("llama-2-7b-32k", "llama-2-7b"),
        ("llama-3.1-405", "llama-3.1-405b"),
        ("qwen2.5-0.5", "qwen2.5-0.5b"),
        ("mixtral", "mixtral-8x7b"),
        ("lama-2-7b", "llama-2-7b"),
    ],
)
def test_unknown_presets_name_the_nearest(refused: Refused, word: str, nearest: str):
    line = refused("count", word)
    assert f"there is no preset or file '{word}'" in line
    assert nearest in line.partition("nearest: ")[2].partition(";")[0].split(", ")
    says_so(line, word)
    assert refused("formula", word) == line


@pytest.mark.parametrize("word", ["zzzz", "?", "🦙", "config.jsn", ".safetensors", "-", "a:b:c", "1:2", "a b"])
def test_names_like_nothing_known(refused: Refused, word: str):
    assert f"there is no preset or file '{word}'" in refused("count", "--", word)


def test_no_name_is_not_the_current_folder(refused: Refused, tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert "there is no preset or file ''" in refused("count", "")


@pytest.mark.parametrize(
    "word", ["a\nb", "a\0b", "a\x1b[2Jb", "\udcff", "a/\n/b", "a/\0b.safetensors", "\u202eb"], ids=ascii
)
def test_names_that_cannot_be_shown(refused: Refused, word: str):
    says_so(refused("count", word), word)


@pytest.mark.parametrize("word", ["N" * 5000, "N" * 5000 + ".json", "N" * 5000 + ":x"], ids=["word", "file", "module"])
def test_names_of_thousands_of_characters(refused: Refused, word: str):
    assert "NNN" in refused("count", word)


@pytest.mark.parametrize("path", ["x/" + "N" * 300, "x/" + "N" * 300 + ".safetensors", "/".join("N" * 3000)])
def test_paths_that_are_too_long(refused: Refused, path: str):
    """Long, but the user's own: said whole or cut, on one line."""
    (Path.cwd() / "x").mkdir()
    with pytest.raises(BadInput, match="too long") as error:
        tallystick.count(path)
    assert str(error.value).isprintable()


def test_paths_to_nothing(refused: Refused):
    for path in ("./gpt2", "no/config.json", "no/model.safetensors", "/no/such/model.safetensors.index.json"):
        assert refused("count", path) == f"{path}: No such file or directory"


# -- files ----------------------------------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {  # content of config.json, what the message must say
    "empty": (b"", "is empty"),
    "not JSON": (b"hello", "is not JSON: Expecting value at line 1 column 1"),
    "cut off": (b'{"model_type": "gpt2",\n', "is not JSON: Expecting property name enclosed in double quotes at line 2"),
    "Python": (b"{'model_type': name()}", "is not JSON"),
    "two objects": (b"{} {}", "is not JSON: Extra data"),
    "UTF-16": ('{"model_type": "gpt2"}'.encode("utf-16"), "is not text: byte 0 is not UTF-8"),
    "not UTF-8": (b'{"model_type": "\xff"}', "is not text: byte 16 is not UTF-8"),
    "binary": (bytes(range(256)), "is not text: byte 128 is not UTF-8"),
    "zeros": (bytes(100), "is not JSON"),
    "a Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 665\n", "run `git lfs pull` in its folder"
    ),
    "lists nested": (b"[" * 100_000, "is nested too deeply"),
    "objects nested": (b'{"a":' * 100_000, "is nested too deeply"),
    "a key nested": (b'{"model_type": "gpt2", "n_embd": ' + b"[" * 100_000, "is nested too deeply"),
    "5,000 digits": (b'{"model_type": "gpt2", "n_embd": ' + b"9" * 5000 + b"}", "holds a number too long to be a size"),
    "a list": (b"[1, 2]", "holds the list [1, 2], expected a config"),
    "a string": (b'"gpt2"', "holds the string 'gpt2', expected a config"),
    "a number": (b"124439808", "holds 124439808, expected a config"),
    "null": (b"null", "holds None, expected a config"),
    "nothing in it": (b"{}", "is not a model config: it has neither a model_type nor"),
    "another's keys": (b'{"name": "x", "version": 1}', "is not a model config"),
    "a misspelt key": (b'{"emb_dims": 768, "n_heads": 12}', "'emb_dims'; nearest: emb_dim"),
    "a model type that is no word": (b'{"model_type": 2}', "model_type is 2, expected a name"),
    "an empty model type": (b'{"model_type": ""}', "model_type is the string '', expected a name"),
    "an index": (b'{"metadata": {}, "weight_map": {}}', "is not a model config"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_no_config(refused: Refused, what: str):
    content, words = FILES[what]
    Path("config.json").write_bytes(content)
    line = refused("count", "config.json")
    assert line.startswith("config.json")
    assert words in line
    says_so(line, "config.json")
    says_so(line, Path("config.json"))
    assert words in refused("count", ".")


def test_lists_that_cannot_be_shown():
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for value in (nested, [10**5000]):
        with pytest.raises(BadInput, match=r"n_embd is the list \(too deep or too long to show\), expected a positive"):
            tallystick.count({"model_type": "gpt2", "n_embd": value})


def test_every_depth_is_refused_in_one_line(refused: Refused):
    """A list may be just shallow enough to be parsed, and too deep to be shown."""
    for depth in (10, 100, *range(800, 1000)):
        Path("config.json").write_text('{"model_type": "gpt2", "n_embd": ' + "[" * depth + "]" * depth + "}")
        refused("count", "config.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"x", "is not TOML"),
        (b"n_embd = \n", "is not TOML: Invalid value (at line 1, column 10)"),
        (b"a = 1\na = 2\n", "is not TOML: Cannot overwrite a value (at line 2"),
        (b"a = " + b"[" * 100_000, "is nested too deeply"),
        (b"a = " + b"9" * 5000, "holds a number too long to be a size"),
        (b"\xff", "is not text"),
        (b"a = 1\n", "is not a model config"),
        (b"model_type = 'gpt2'\nn_embd = 768.0\n", "n_embd is 768.0, expected a positive integer"),
        (b"model_type = 'gpt2'\nn_embd = 2020-01-01\n", "n_embd is datetime.date(2020, 1, 1), expected a positive"),
    ],
    ids=lambda value: ascii(value[:20]) if isinstance(value, bytes) else "",
)
def test_files_that_are_no_toml(refused: Refused, content: bytes, words: str):
    Path("model.toml").write_bytes(content)
    line = refused("count", "model.toml")
    assert line.startswith("model.toml")
    assert words in line
    says_so(line, "model.toml")


@pytest.mark.parametrize("name", ["config.json", "model.toml", "model.safetensors", "model.safetensors.index.json"])
def test_a_pipe_is_not_waited_for(refused: Refused, name: str):
    os.mkfifo(name)
    assert refused("count", name) == f"{name} is not a regular file"


@pytest.mark.parametrize("name", ["config.json", "model.toml", "model.safetensors", "model.safetensors.index.json"])
def test_a_file_without_permission(refused: Refused, name: str, monkeypatch: pytest.MonkeyPatch):
    """As root every file can be read, so the system's refusal is made here."""
    Path(name).write_text("{}")
    opened = os.open

    def forbidden(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", forbidden)
    assert refused("count", name) == f"{name}: Permission denied"


def test_a_folder_without_permission(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    Path("model").mkdir()

    def forbidden(path: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert refused("count", "./model") == "model: Permission denied"


def test_a_folder_with_nothing_to_count(refused: Refused):
    Path("model").mkdir()
    assert refused("count", "model") == "model holds neither a config.json nor weights"
    Path("model/config.json").mkdir()
    assert refused("count", "model") == "model/config.json is a folder, expected a file"


@pytest.mark.parametrize("name", ["tf_model.h5", "flax_model.msgpack", "model.onnx"])
def test_other_weights_are_not_read(refused: Refused, name: str):
    Path(name).write_bytes(b"PK\3\4" + bytes(range(256)))
    line = refused("count", name)
    assert line.startswith(f"{name}: {Path(name).suffix} files are not supported")
    assert "config.json" in line


# -- values of a config ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("768", "the string '768'"),
        ("x" * 5000, "the string 'xxx"),
        ("a\nb", r"the string 'a\nb'"),
        (-1, "-1"),
        (0, "0"),
        (768.0, "768.0"),
        (True, "True"),
        (False, "False"),
        (None, "None"),
        (10**30, "1000000000000000000000000000000"),
        (2**63, "9223372036854775808"),
        (10**4000, "an integer of 13288 bits"),
        ([], "the list []"),
        ([768], "the list [768]"),
        ({"a": 1}, "the object {'a': 1}"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
    ids=lambda value: ascii(str(value)[:12]),
)
def test_sizes_that_are_none(refused: Refused, value: Any, shown: str):
    for config, key in [({"model_type": "llama"}, "hidden_size"), ({"model_type": "gpt2"}, "n_embd")]:
        Path("config.json").write_text(json.dumps({**config, key: value}))
        line = refused("count", "config.json")
        assert line.startswith(f"config.json: {key} is {shown}")
        assert "expected a positive integer" in line
        says_so(line, "config.json")
        says_so(line.replace("config.json", "the dictionary"), {**config, key: value})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model_type": "gpt2", "n_head": 5}, ["n_embd", "768", "n_head", "5"]),
        ({"model_type": "gpt_neox", "num_attention_heads": 5}, ["hidden_size", "6144", "num_attention_heads", "5"]),
        ({"model_type": "gpt2", "n_layer": -1}, ["n_layer", "-1"]),
        ({"model_type": "gpt2", "tie_word_embeddings": "yes"}, ["tie_word_embeddings", "'yes'", "true or false"]),
        ({"model_type": "gpt2", "tie_word_embeddings": 1}, ["tie_word_embeddings is 1", "true or false"]),
        ({"model_type": "gpt2", "dtype": "float33"}, ["float33", "nearest: float32"]),
        ({"model_type": "gpt2", "torch_dtype": 32}, ["dtype", "32"]),
        ({"model_type": "gpt2", "hidden_size": "x"}, ["hidden_size", "'x'"]),
        (
            {"model_type": "gpt2", "attn_pdrop": 10**400},
            ["attn_pdrop is an integer of 1329 bits", "a number of 0 or more"],
        ),
        ({"model_type": "glm", "partial_rotary_factor": 1e308}, ["partial_rotary_factor is 1e+308", "from 0 to 1"]),
        ({"model_type": "glm", "rope_parameters": {"partial_rotary_factor": float("nan")}}, ["is nan", "from 0 to 1"]),
        ({"model_type": "gpt_neox", "rotary_pct": 2}, ["rotary_pct is 2.0, expected a number from 0 to 1"]),
        (
            {"model_type": "lfm2", "block_ffn_dim_multiplier": 1e308},
            ["block_ffn_dim_multiplier is 1e+308, which gives an impossible width (8192 times it)"],
        ),
        (
            {"model_type": "xlstm", "ffn_proj_factor": 1e308},
            ["ffn_proj_factor is 1e+308, which gives an impossible width (4096 times it)"],
        ),
        (
            {"model_type": "llama4_text", "moe_layers": [[1]]},
            ["moe_layers is the list [[1]], expected a list of layers"],
        ),
        (
            {"model_type": "llama4_text", "moe_layers": "N" * 5000},
            ["moe_layers is the string 'NNN", "a list of layers"],
        ),
        (
            {"model_type": "bailing_hybrid", "num_hidden_layers": 2001},
            ["num_hidden_layers is 2001: with several kinds of layers at most 2,000 are counted"],
        ),
        (
            {"model_type": "cohere2_moe", "first_k_dense_replace": 2**31, "layer_types": ["full_attention"]},
            ["layer_types must list the kind of each of the"],
        ),
        ({"emb_dim": 768, "n_heads": 12}, ["missing"]),
        (
            {"emb_dim": 768, "n_heads": 7, "n_layers": 1, "context_length": 4, "vocab_size": 9},
            ["768", "7", "divisible"],
        ),
    ],
    ids=str,
)
def test_values_that_make_no_sense(refused: Refused, values: dict[str, Any], words: list[str]):
    Path("config.json").write_text(json.dumps(values))
    line = refused("count", "config.json")
    assert line.startswith("config.json: ")
    assert all(word in line for word in words), line
    says_so(line.replace("config.json", "the dictionary", 1), values)


def test_lists_for_thousands_of_layers():
    """Each could be of another kind, with a block of its own."""
    kinds = ["sliding_attention", "full_attention"] * 1500
    with pytest.raises(BadInput, match="layer_types lists 3,000 values, more than the 2,000 allowed"):
        tallystick.count({"model_type": "gemma3_text", "num_hidden_layers": 3000, "layer_types": kinds})


@pytest.mark.parametrize(
    "source", [None, 1, 1.5, True, [], ("gpt2",), {"gpt2"}, b"gpt2", object, print, [1] * 5000, GPT2Config], ids=ascii
)
def test_objects_that_are_no_source(source: Any):
    with pytest.raises(
        BadInput, match=r"^count\(\): cannot count .*: expected a name, a path, a dictionary, a config or an nn.Mod"
    ):
        tallystick.count(source)


@pytest.mark.parametrize("value", [torch.tensor(768.0), torch.zeros(2, 2), 768j], ids=str)
def test_sizes_that_other_libraries_make(value: Any):
    with pytest.raises(
        BadInput, match=r"^count\(\): the dictionary: n_embd is .*, expected a positive integer$"
    ) as error:
        tallystick.count({"model_type": "gpt2", "n_embd": value})
    assert str(error.value).isprintable()


def test_keys_that_are_no_words():
    with pytest.raises(BadInput, match=r"^count\(\): the dictionary has no key 'n_layers' to set; nearest: n_layer"):
        tallystick.count({"model_type": "gpt2", 5: 1, None: 2}, n_layers=1)


@pytest.mark.parametrize("source", [{}, {1: 2}, {None: None}, {"model_type": None}, {"model_type": ["gpt2"]}], ids=str)
def test_dictionaries_that_are_no_config(source: Any):
    with pytest.raises(BadInput) as error:
        tallystick.count(source)
    assert error.value.line.startswith("the dictionary")


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("n_layers=2", "gpt2 has no key 'n_layers' to set; nearest: n_layer"),
        ("zzz=2", "gpt2 has no key 'zzz' to set"),
        ("n_layer", "--set: 'n_layer' is not KEY=VALUE"),
        ("=2", "--set: '=2' is not KEY=VALUE"),
        ("", "--set: '' is not KEY=VALUE"),
        ("n_layer=", "gpt2: n_layer is the string ''"),
        ("n_layer=two", "gpt2: n_layer is the string 'two'"),
        ("n_layer=-2", "gpt2: n_layer is -2"),
        ("n_layer=2.0", "gpt2: n_layer is 2.0"),
        ("n_layer=true", "gpt2: n_layer is True"),
        ("n_layer=null", "gpt2: n_layer is None"),
        ("n_layer=[2]", "gpt2: n_layer is the list [2]"),
        ("n_layer=" + "9" * 5000, "gpt2: n_layer is the string '999"),
        ("n_layer=" + "[" * 100_000, "gpt2: n_layer is the string '[[["),
        ("n_layer=1000000000000000000000000000000", "gpt2: n_layer is 1000000000000000000000000000000"),
        ("n_head=7", "n_embd = 768 is not divisible by n_head = 7"),
        ("tie_word_embeddings=no", "gpt2: tie_word_embeddings is the string 'no', expected true or false"),
        ("model_type=gpt3", "gpt3"),
        ("N" * 5000 + "=1", "NNN"),
        ("a\nb=1", r"'a\nb'"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_settings_that_make_no_sense(refused: Refused, setting: str, words: str):
    assert words in refused("count", "gpt2", "--set", setting)
    assert words in refused("formula", "gpt2", "--set", setting)


def test_a_breakdown_that_nobody_could_read(refused: Refused):
    line = refused("count", "gpt2", "--set", "n_layer=1000000000000", "--by", "tensor")
    assert line == "gpt2 has more than 20,000,000 tensors, too many to list individually"


# -- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cuont", "gpt2"], "there is no command 'cuont'; nearest: count"),
        (["vram", "gpt2"], "there is no command 'vram': did you mean tallystick memory"),
        (["gpt3"], "there is no command 'gpt3'; for the model: tallystick count gpt2"),
        (["help", "conut"], "there is no command 'conut'; nearest: count"),
        (["count"], "required: SOURCE"),
        (["count", "gpt2", "gpt2"], "unexpected argument 'gpt2' (see tallystick count --help)"),
        (["count", "gpt2", "n_layer=3"], "unexpected argument 'n_layer=3'; say --set n_layer=3"),
        (
            ["count", "gpt2", "--verbose"],
            "there is no option '--verbose'; nearest: --set, --real (see tallystick count --help)",
        ),
        (["memory", "gpt2", "--batch-size=4"], "no option '--batch-size'; nearest: --batch"),
        (["fit", "gpt2", "--devise", "h100"], "--device"),
        (["count", "gpt2", "--by", "colour"], "invalid choice: 'colour'"),
        (["count", "gpt2", "--format", "yaml"], "invalid choice: 'yaml'"),
        (["count", "gpt2", "--by"], "--by: expected one argument"),
        (["count", "gpt2", "--set"], "--set: expected one argument"),
        (["formula", "gpt2", "--format", "yaml"], "invalid choice: 'yaml'"),
        (["fit", "gpt2", "--by", "role"], "there is no option '--by'"),
        (["presets", "--gpt2"], "there is no option '--gpt2'"),
        (["compute", "gpt2", "--mfu", "forty"], "'forty' is not a share: write 0.4 or 40%"),
        (["compute", "gpt2", "--device", "h100", "--mfu", "40"], "40 is more than the peak: write 40% or 0.4"),
        (["memory", "--lora", "gpt2"], "--lora: 'gpt2' is not a rank"),
        (["--print-completion", "perl"], "invalid choice: 'perl'"),
    ],
    ids=" ".join,
)
def test_commands_that_there_are_not(refused: Refused, arguments: list[str], words: str):
    line = refused(*arguments)
    assert words in line
    assert "--help)" in line


# -- safetensors ----------------------------------------------------------------------------------

U8 = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
HEADERS: dict[str, tuple[Any, int, str]] = {  # header, bytes of data, what the message must say
    "truncated": ({"w": U8}, 2, "the file is truncated"),
    "negative offsets": ({"w": {**U8, "data_offsets": [-4, 0]}}, 4, "malformed at character 5"),
    "reversed offsets": ({"w": {**U8, "data_offsets": [4, 0]}}, 4, "'w'"),
    "overlapping offsets": ({"w": U8, "v": {**U8, "data_offsets": [2, 6]}}, 6, "'v' starts at byte 2 of the data and overl"),
    "a shape of other bytes": ({"w": {**U8, "shape": [5]}}, 4, "tensor 'w' of shape (5,) and dtype uint8 needs 5 bytes"),
    "an unknown dtype": ({"w": {**U8, "dtype": "U9"}}, 4, "tensor 'w' has the unknown dtype 'U9'; nearest: "),
    "a product beyond 2^63": ({"w": {**U8, "shape": [2**62, 2]}}, 4, "tensor 'w' has the shape (4611686018427387904, 2)"),
    "deep JSON": ('{"w":' * 100_000, 0, "nests more than 127"),
    "not JSON": ("w" * 100, 0, "malformed at character 0"),
    "not UTF-8": (b"{\xff}", 0, "not UTF-8 at its byte 1"),
    "5,000 characters": ({"N" * 5000: {**U8, "shape": [5]}}, 4, "NNN… of shape (5,)"),
    "line breaks in a name": ({"w\n\0": {**U8, "shape": [5]}}, 4, r"tensor 'w\n\x00' of shape (5,)"),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADERS)
def test_safetensors_files_that_are_broken(refused: Refused, what: str):
    header, data, words = HEADERS[what]
    write_raw(Path("model.safetensors"), header, data)
    line = refused("count", "model.safetensors")
    assert line.startswith("model.safetensors")
    assert words in line
    says_so(line, "model.safetensors")
    assert words in refused("formula", ".")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"1234567", "too short for the header length"),
        ((3).to_bytes(8, "little") + b"{}", "is truncated: its header claims 3 bytes, the file has 10"),
        ((100_000_001).to_bytes(8, "little") + b"{}", "claims 100,000,001 bytes, more than the format's 100,000,000"),
        (b"\xff" * 8 + b"{}", "claims 18,446,744,073,709,551,615 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "is a Git LFS pointer"),
        (b'{"not": "safetensors, but JSON"}', "more than the format's"),
    ],
    ids=lambda value: ascii(value[:10]) if isinstance(value, bytes) else "",
)
def test_files_that_are_no_safetensors(refused: Refused, content: bytes, words: str):
    Path("model.safetensors").write_bytes(content)
    line = refused("count", "model.safetensors")
    assert line.startswith("model.safetensors")
    assert words in line
    says_so(line, "model.safetensors")


def test_names_of_thousands_of_characters_are_no_fault(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = write(tmp_path / "model.safetensors", {"N" * 5000: (2,)})
    assert main(["count", str(path), "--format", "json", "--by", "tensor"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["tensor"] == "N" * 5000


@pytest.mark.parametrize(
    ("weight_map", "words"),
    [
        ({"a.weight": "gone.safetensors"}, "'gone.safetensors'"),
        ({"a.weight": "../up.safetensors"}, "'../up.safetensors', which is not a file name in its own folder"),
        ({"a.weight": "/etc/passwd"}, "'/etc/passwd', which is not a file name in its own folder"),
        (
            {"x.weight": "model-00001-of-00001.safetensors"},
            "'x.weight' in 'model-00001-of-00001.safetensors', which does",
        ),
    ],
    ids=str,
)
def test_an_index_that_is_wrong(refused: Refused, weight_map: dict[str, str], words: str):
    write_sharded(Path.cwd(), {"a.weight": (2,)}, weight_map=weight_map)
    line = refused("count", ".")
    assert line.startswith("model.safetensors.index.json")
    assert words in line


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


# -- model types that are not known natively ------------------------------------------------------


@pytest.mark.usefixtures("preloaded")
def test_a_model_type_that_nobody_knows(refused: Refused):
    Path("config.json").write_text('{"model_type": "mistrl"}')
    line = refused("count", "config.json")
    assert "neither tallystick nor transformers" in line
    assert "'mistrl'" in line
    assert "mistral" in line.partition("nearest: ")[2].split(", ")


def test_a_model_type_without_transformers(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    Path("config.json").write_text('{"model_type": "openai-gpt2"}')
    line = refused("count", "config.json")
    assert "'openai-gpt2' is not known natively; nearest: " in line
    assert "gpt2" in line.partition("nearest: ")[2].partition(";")[0].split(", ")
    assert "pip install 'tallystick[hf]'" in line


def test_a_setting_that_transformers_would_not_read(refused: Refused):
    Path("config.json").write_text('{"model_type": "mt5"}')
    line = refused("count", "config.json", "--set", "num_layer=2")
    assert line.startswith("config.json has no key 'num_layer' to set; nearest: num_layers")


def test_many_keys_that_look_misspelt(refused: Refused):
    Path("config.json").write_text(json.dumps({f"{number}n_embd": 1 for number in range(10_000)}))
    assert refused("count", "config.json").count("nearest") == 3


def test_a_config_that_transformers_refuses(refused: Refused):
    Path("config.json").write_text('{"model_type": "mt5", "d_model": "wide"}')
    assert "config.json: transformers cannot build it: " in refused("count", "config.json")


def test_a_config_of_which_transformers_would_build_without_end(refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fallback, "MOST_BUILT", 1000)
    for config, words in (
        ({"model_type": "switch_transformers", "num_experts": 10**9}, "more than 1,000 modules and parameters"),
        ({"model_type": "mt5", "num_layers": 1001}, "num_layers is 1001, too many for transformers"),
    ):
        Path("config.json").write_text(json.dumps(config))
        assert words in refused("count", "config.json")
    monkeypatch.undo()
    assert tallystick.count({"model_type": "mt5", "num_layers": 1, "vocab_size": 10}).total


@pytest.mark.parametrize(
    "model_type",
    ["../gpt2", "gpt2.py", "kit", "aliases", "teaching", "_decoder", "__init__", "os", "a\nb", "N" * 5000, "é"],
    ids=ascii,
)
def test_a_model_type_is_no_path(refused: Refused, model_type: str):
    Path("config.json").write_text(json.dumps({"model_type": model_type}))
    refused("count", "config.json")


# -- as a process ---------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
@pytest.mark.parametrize("options", [[], ["--format", "json"], ["--format", "csv", "--by", "tensor"]], ids=" ".join)
def test_names_that_the_terminal_has_no_letters_for(tmp_path: Path, encoding: str, options: list[str]):
    write(tmp_path / "ж.safetensors", {"größe.重み.weight": (2,)})
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", "count", "ж.safetensors", *options],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if "json" in options:
        assert json.loads(done.stdout.decode(encoding))["source"] == "ж.safetensors"


@pytest.mark.parametrize(
    "command", [["-m", "tallystick"], ["-c", "from tallystick.cli.main import main; exit(main())"]]
)
def test_the_process_itself(tmp_path: Path, command: list[str]):
    write_raw(tmp_path / "model.safetensors", {"w": U8}, 3)
    done = subprocess.run(
        [sys.executable, *command, "count", "model.safetensors"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tallystick: model.safetensors: the file is truncated: the tensors end at byte 4 of the data, which has 3\n"
    )
