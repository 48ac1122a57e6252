"""What is written is whole or not there at all."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tallystick import BadInput
from tallystick.files import atomic
from tallystick.models import Decoder, load_pretrained, save_pretrained
from weights import SMALL, same_bits, stored


@pytest.fixture
def decoder():
    return Decoder.of({"model_type": "llama", **SMALL["llama"]})


def test_a_folder_that_exists_is_not_overwritten(decoder, tmp_path):
    save_pretrained(decoder, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(BadInput, match="already exists"):
        save_pretrained(Decoder.of(decoder.config.origin), tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert os.listdir(tmp_path) == ["out"]


def test_overwritten_it_keeps_the_files_that_are_no_weights_and_no_old_shard(decoder, tmp_path):
    out = tmp_path / "out"
    save_pretrained(decoder, out, max_shard_size="20KB")
    (out / "tokenizer.json").write_text("{}")
    (out / "runs").mkdir()
    (out / "runs" / "model.safetensors").write_text("of something else")
    other = Decoder.of(decoder.config.origin)
    save_pretrained(other, out, overwrite=True)
    assert sorted(os.listdir(out)) == ["config.json", "model.safetensors", "runs", "tokenizer.json"]
    assert (out / "runs" / "model.safetensors").read_text() == "of something else"
    same_bits(load_pretrained(out).state_dict(), other.state_dict())
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_is_no_checkpoint_is_never_overwritten(decoder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("all of it")
    with pytest.raises(BadInput, match="is not overwritten"):
        save_pretrained(decoder, tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "all of it"


FULL = """
import resource, signal, sys
from tallystick import BadInput
from tallystick.models import load_pretrained, save_pretrained
decoder = load_pretrained(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
try:
    save_pretrained(decoder, sys.argv[2], overwrite=True)
except BadInput as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_disk_that_takes_no_more_is_one_line_and_the_old_checkpoint_stays(decoder, tmp_path):
    out = tmp_path / "out"
    save_pretrained(decoder, out)
    before = stored(out)
    done = subprocess.run([sys.executable, "-c", FULL, out, out], capture_output=True, text=True, check=False)
    assert done.stdout == f"{out} could not be written: File too large\n", done.stderr
    same_bits(stored(out), before)
    assert os.listdir(tmp_path) == ["out"]


def test_where_the_new_folder_cannot_take_the_name_the_old_one_has_it_again(decoder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    save_pretrained(decoder, out)
    rename = Path.rename
    monkeypatch.setattr(atomic, "_exchanged", lambda *_: False)  # as on a file system that cannot

    def once(self, target):
        if target == out and not self.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", once)
    with pytest.raises(BadInput, match="could not be written: Input/output error"):
        save_pretrained(Decoder.of(decoder.config.origin), out, overwrite=True)
    same_bits(load_pretrained(out).state_dict(), decoder.state_dict())
    assert os.listdir(tmp_path) == ["out"]


def test_the_files_say_their_framework_and_dtype(decoder, tmp_path):
    save_pretrained(decoder.to(torch.bfloat16), tmp_path / "out")
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"


def test_a_place_that_cannot_be_written_is_one_line(decoder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="could not be written: Not a directory"):
        save_pretrained(decoder, tmp_path / "file" / "out")


def test_a_shard_holds_what_fits_and_the_index_says_how_much_there_is(decoder, tmp_path):
    save_pretrained(decoder, tmp_path / "out", max_shard_size=20_000)
    sizes = [
        sum(tensor.nbytes for tensor in load_file(path).values()) for path in (tmp_path / "out").glob("*.safetensors")
    ]
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(sizes)
    assert len(sizes) > 1
    assert max(sizes) <= 20_000


@pytest.mark.parametrize("size", [0, -1, "many"])
def test_a_shard_of_no_size_is_refused(decoder, tmp_path, size):
    with pytest.raises(BadInput):
        save_pretrained(decoder, tmp_path / "out", max_shard_size=size)
    assert not (tmp_path / "out").exists()


def test_a_decoder_with_an_edited_config_is_not_saved_as_what_it_is_not(decoder, tmp_path):
    decoder.config = replace(decoder.config, norm_eps=1e-3)
    with pytest.raises(BadInput, match="was changed in a way that its family cannot express"):
        save_pretrained(decoder, tmp_path / "out")


def test_a_decoder_without_values_is_not_saved(decoder, tmp_path):
    with pytest.raises(BadInput, match="has no values yet"):
        save_pretrained(decoder.to("meta"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_values_on_a_strided_or_transposed_parameter_are_written_as_they_read(decoder, tmp_path):
    weight = decoder.layers[0].attention.o_proj.weight
    weight.data = torch.randn(48, 48).T
    save_pretrained(decoder, tmp_path / "out")
    assert torch.equal(stored(tmp_path / "out")["model.layers.0.self_attn.o_proj.weight"], weight)
