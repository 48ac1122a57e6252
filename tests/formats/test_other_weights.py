"""Weights of other projects' files and of torch.save: nanoGPT's, llama2.c's, pickles; and the hub's
cache.
"""

import json
import os
import pickle
import struct
import subprocess
import sys

import pytest
import torch

import tallystick
from tallystick import BadInput
from tallystick.models import load_pretrained, save_pretrained
from weights import read_strictly, same_bits, small, write_llama2c, write_nanogpt

TOKENS = torch.arange(24).view(2, 12)


def refused(path, **settings):
    with pytest.raises(BadInput) as caught:
        load_pretrained(path, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def without_biases(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".bias"):
                parameter.zero_()


@torch.no_grad()
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_nanogpt_s_checkpoint_computes_what_nanogpt_does(tmp_path, bias, compiled):
    model = small("gpt2", activation_function="gelu", vocab_size=128)
    if not bias:
        without_biases(model)
    write_nanogpt(tmp_path / "ckpt.pt", model, bias=bias, compiled=compiled)
    decoder = load_pretrained(tmp_path / "ckpt.pt")
    torch.testing.assert_close(decoder(TOKENS), model(TOKENS).logits, atol=1e-4, rtol=1e-5)
    assert decoder.head.weight is decoder.embedding.weight
    assert {decoder.config.dropout, decoder.config.embedding_dropout, decoder.config.attention_dropout} == {0.25}
    save_pretrained(decoder, tmp_path / "ours")
    same_bits(load_pretrained(tmp_path / "ours").state_dict(), decoder.state_dict())
    assert tallystick.count(tmp_path / "ours").total == decoder.ledger().total


def test_an_argument_of_nanogpt_that_its_tensors_contradict_is_refused(tmp_path):
    write_nanogpt(tmp_path / "ckpt.pt", small("gpt2"), bias=False, compiled=False)
    values = torch.load(tmp_path / "ckpt.pt", weights_only=True)
    values["model_args"]["block_size"] = 32
    torch.save(values, tmp_path / "ckpt.pt")
    assert "transformer.wpe.weight (64, 48), but (32, 48) in the config" in refused(tmp_path / "ckpt.pt")


@torch.no_grad()
@pytest.mark.parametrize("negative", [False, True])
def test_llama2c_s_file_computes_what_the_llama_in_it_does(tmp_path, negative):
    model = small("llama", tie_word_embeddings=not negative, rms_norm_eps=1e-5)
    write_llama2c(tmp_path / "stories.bin", model, negative=negative)
    decoder = load_pretrained(tmp_path / "stories.bin")
    torch.testing.assert_close(decoder(TOKENS), model(TOKENS).logits, atol=1e-4, rtol=1e-5)
    assert (decoder.head.weight is decoder.embedding.weight) is not negative
    save_pretrained(decoder, tmp_path / "ours")
    same_bits(read_strictly(tmp_path / "ours").state_dict(), model.state_dict())


def test_a_file_that_is_not_what_its_header_says_is_refused(tmp_path):
    path = tmp_path / "stories.bin"
    write_llama2c(path, small("llama"), negative=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    assert f"has {len(whole) - 4:,} bytes, but by llama2.c's header it should have {len(whole):,}" in refused(path)
    path.write_bytes(struct.pack("<2i", 0x616B3432, 1) + bytes(300))
    assert "a later version" in refused(path)
    path.write_bytes(b"Once upon a time, there was no checkpoint at all.")
    assert "not a known checkpoint" in refused(path)
    path.write_bytes(b"ab")
    assert "too short" in refused(path)


@pytest.mark.parametrize("zipped", [True, False], ids=["today's form", "the old form"])
@pytest.mark.parametrize("shards", [1, 2])
def test_pickled_weights_are_read(tmp_path, shards, zipped):
    model = small("llama")
    model.config.save_pretrained(tmp_path)
    state = model.state_dict()
    names = [f"pytorch_model-{one}.bin" for one in range(shards)] if shards > 1 else ["pytorch_model.bin"]
    placed = {name: names[number % shards] for number, name in enumerate(state)}
    for file in names:
        held = {name: tensor for name, tensor in state.items() if placed[name] == file}
        torch.save(held, tmp_path / file, _use_new_zipfile_serialization=zipped)
    if shards > 1:
        write_index(tmp_path, placed)
    same_bits(load_pretrained(tmp_path).state_dict(), renamed(model, tmp_path))


def write_index(folder, placed):
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": placed}))


def renamed(model, folder):
    model.save_pretrained(folder / "safe")
    return load_pretrained(folder / "safe").state_dict()


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "ckpt.pt"])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path, name, zipped):
    small("llama").config.save_pretrained(tmp_path)
    trap = {"model": Trap(str(tmp_path / "sprung")), "model_args": {}}
    torch.save(trap, tmp_path / name, _use_new_zipfile_serialization=zipped)
    assert "nothing was run" in refused(tmp_path / name)
    (tmp_path / name).write_bytes(pickle.dumps(trap, protocol=2))
    assert "nothing was run" in refused(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_that_is_cut_short_or_holds_something_else_is_refused(tmp_path):
    small("llama").config.save_pretrained(tmp_path)
    path = tmp_path / "pytorch_model.bin"
    torch.save(small("llama").state_dict(), path)
    path.write_bytes(path.read_bytes()[:-300])
    assert str(path) in refused(tmp_path)
    torch.save([1, 2], path)
    assert "holds no state dict" in refused(tmp_path)


OFFLINE = """
import sys
from tallystick import BadInput
from tallystick.sources.locate import locate_weights
try:
    print(locate_weights(sys.argv[1]))
except BadInput as error:
    print(error)
"""


def offline(name, home):
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, name], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_repository_in_the_hub_s_cache_is_found_and_another_is_one_line(tmp_path):
    cache = tmp_path / "hub" / "models--somebody--small"
    snapshot = cache / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("0" * 40)
    small("llama").save_pretrained(snapshot)
    found = offline("somebody/small", tmp_path)
    assert found == str(snapshot)
    said = offline("somebody/else", tmp_path)
    assert said.startswith("there is no folder 'somebody/else', and no hub repository could be fetched: ")
    assert "\n" not in said
    assert offline("no/such/folder", tmp_path) == "there is no file or folder 'no/such/folder'"
