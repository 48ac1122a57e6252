"""llama2.c's files, counted by the seven integers that they begin with."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from checkpoint_models import noted, parameters
from hostile import memory_of, mutations, refusal, refused_at_every_byte, survives
from llama2c_files import TINY, llama2c
from tallystick import count, ties
from weights import small, write_llama2c


@pytest.mark.parametrize("negative", [True, False], ids=["untied", "tied"])
def test_it_has_the_parameters_of_the_llama_that_was_written(tmp_path: Path, negative: bool):
    model = small("llama", tie_word_embeddings=not negative)
    write_llama2c(tmp_path / "stories.bin", model, negative=negative)
    ledger = count(tmp_path / "stories.bin")
    assert (ledger.kind, ledger.architecture) == ("llama2c", "llama")
    assert ledger.total == parameters(model)
    assert ledger.mismatches == {}
    assert bool(ledger.ties) is not negative
    assert ties(ledger).verdict == "consistent"
    config = model.config
    angles = config.max_position_embeddings * (config.hidden_size // config.num_attention_heads)
    assert ledger.totals["buffers"] == angles
    assert ledger.totals["stored_bytes"] == (tmp_path / "stories.bin").stat().st_size - 28
    assert count(tmp_path).total == parameters(model)  # the folder that it alone is in


def test_its_config_is_the_one_in_it(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "a.bin").write_bytes(llama2c())
    ledger = count(tmp_path / "a.bin")
    assert ledger.total == 10 * 8 + 2 * (16 + 2 * 64 + 2 * 8 * 4 + 3 * 96) + 8
    assert not noted(ledger, "gpt2")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (llama2c(d=7), "neither safetensors, torch.save nor llama2.c"),
        (llama2c(kv_heads=3), "neither safetensors, torch.save nor llama2.c"),
        (struct.pack("<7i", 8, 12, 2**24, 4, 2, 10, 6), "neither safetensors"),
        (struct.pack("<7i", 8, 12, 20_000, 4, 2, 10, 6), "neither safetensors"),
        (struct.pack("<7i", 8, -12, 2, 4, 2, 10, 6), "neither safetensors"),
        (
            struct.pack("<7i", 2**23, 2**23, 9_999, 1, 1, 2**23, 2**23),
            "has 28 bytes, but by llama2.c's header it should have 19",
        ),
        (struct.pack("<2i", 0x616B3432, 1) + bytes(300), "a later version"),
        (llama2c() + b"\0", "but by llama2.c's header it should have"),
        (b"ab", "too short"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "is a Git LFS pointer"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "a.bin").write_bytes(content)
    assert message in refusal(tmp_path / "a.bin")
    assert memory_of(tmp_path / "a.bin") < 1_000_000


def test_a_file_cut_off_at_any_byte_is_refused(tmp_path: Path):
    refused_at_every_byte(
        tmp_path / "a.bin", llama2c(d=4, inner=1, layers=1, heads=1, kv_heads=1, vocabulary=2, context=1)
    )


def test_a_changed_file_is_counted_or_refused(tmp_path: Path):
    assert survives(tmp_path / "a.bin", mutations(llama2c(**TINY), most=200))
