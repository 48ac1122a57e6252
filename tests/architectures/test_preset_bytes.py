"""Bytes of the presets: published files, windows in the KV cache, the longest sequence."""

from __future__ import annotations

import pytest

import tallystick
from published_presets import ABOUT, BYTES


def bytes_of(name: str) -> int:
    totals = tallystick.count(name).totals
    return int(totals.get("stored_bytes") or totals["bytes"] or 0)


@pytest.mark.parametrize("name", BYTES)
def test_weights_take_what_the_published_files_hold(name: str):
    assert bytes_of(name) == BYTES[name]


@pytest.mark.parametrize("name", ABOUT)
def test_weights_take_about_what_people_say_of_the_files(name: str):
    assert bytes_of(name) / 1e9 == pytest.approx(ABOUT[name], abs=0.05)


@pytest.mark.parametrize(
    ("name", "sequence", "cached"),
    [
        ("mistral-nemo-12b", 131_072, 2 * 40 * 131_072 * 8 * 128 * 2),  # no window: 21.5 GB
        ("mistral-7b", 32_768, 2 * 32 * 4_095 * 8 * 128 * 2),  # 4,096, the own position included
        ("mistral-7b-v0.3", 32_768, 2 * 32 * 32_768 * 8 * 128 * 2),
        ("starcoder2-15b", 16_384, 2 * 40 * 4_095 * 4 * 128 * 4),
        ("starcoder2-7b", 16_384, 2 * 32 * 4_095 * 4 * 128 * 2),
        ("phi-3-mini", 4_096, 2 * 32 * 2_046 * 32 * 96 * 2),
        ("phi-4", 16_384, 2 * 40 * 16_384 * 10 * 128 * 2),
    ],
)
def test_windows_are_the_published_ones(name: str, sequence: int, cached: int):
    """A layer that sees a window keeps all of it but the position that comes next."""
    lines = tallystick.memory(tallystick.count(name), sequence=sequence).lines
    assert sum(line.bytes for line in lines if "keys and values" in line.what) == cached


@pytest.mark.parametrize(
    ("name", "trained"), [("pythia-1b", 2048), ("llama-7b", 2048), ("bloom-560m", 2048), ("llama-3.1-8b", 4096)]
)
def test_memory_takes_no_longer_a_sequence_than_the_config_says(name: str, trained: int):
    answer = tallystick.memory(tallystick.count(name))
    assert answer.sequence == trained
