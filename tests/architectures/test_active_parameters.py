"""Active parameters of the presets: by hand, and as they were published."""

from __future__ import annotations

from fractions import Fraction

import pytest

from published_presets import PUBLISHED, count


def test_active_parameters_of_mixtral():
    """12.9B: two of eight experts, and all the rest."""
    d, inner, layers, vocabulary = 4096, 14_336, 32, 32_000
    attention = 2 * d * d + 2 * d * 1024
    router, norms = 8 * d, 2 * d
    by_hand = 2 * vocabulary * d + d + layers * (attention + router + norms + 2 * 3 * d * inner)
    assert by_hand == 12_879_925_248
    assert count("mixtral-8x7b").totals["active"] == by_hand


def test_active_parameters_of_deepseek_v3():
    """Eight of 256 experts and the shared one in 58 layers; its report says 37B."""
    d, heads, vocabulary = 7168, 128, 129_280
    query, key_value = d * 1536 + 1536 * heads * 192, d * (512 + 64) + 512 * heads * 256
    attention = query + key_value + heads * 128 * d + 1536 + 512
    dense, sparse = 3 * d * 18_432, (8 + 1) * 3 * d * 2048 + 256 * d
    by_hand = 2 * vocabulary * d + d + 61 * (attention + 2 * d) + 3 * dense + 58 * sparse
    assert count("deepseek-v3").totals["active"] == by_hand == 37_552_282_624


@pytest.mark.parametrize(
    ("name", "billions", "without_embedding"),
    [
        ("mixtral-8x22b", "39", False),
        ("phi-3.5-moe", "6.6", False),
        ("qwen1.5-moe-a2.7b", "2.7", False),
        ("olmoe-1b-7b", "1.3", False),
        # The model card of gpt-oss counts the head and leaves the token embedding out.
        ("gpt-oss-20b", "3.61", True),
        ("gpt-oss-120b", "5.13", True),
    ],
)
def test_published_active_parameters(name: str, billions: str, without_embedding: bool):
    ledger = count(name)
    active = ledger.totals["active"] - without_embedding * ledger.by("role")["token_embedding"]
    digits = len(billions.partition(".")[2])
    assert f"{active / 1e9:.{digits}f}" == billions


def test_all_of_a_dense_model_is_active():
    assert count("llama-2-7b").totals["active"] == PUBLISHED["llama-2-7b"]


def test_shared_experts_are_always_active():
    entries = count("deepseek-v3").rolled
    assert {entry.active for entry in entries if "shared_experts" in entry.name} == {None}
    assert {entry.active for entry in entries if ".experts." in entry.name} == {Fraction(8, 256)}
