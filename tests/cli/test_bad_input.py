"""What bad names, files and commands get: one line on stderr, exit code 2, nothing else; from
Python, a BadInput with the same line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tallystick
from checkpoints import write, write_raw, write_sharded
from refusals import Refused, refused, says_so
from tallystick import BadInput
from tallystick.cli.main import main

__all__ = ["refused"]  # a fixture


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
