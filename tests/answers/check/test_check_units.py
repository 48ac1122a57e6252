"""Numbers that are no plain counts: rounded to zeros, in another unit, ratios, sizes called N."""

from __future__ import annotations

import pytest

import tallystick


def slips(text, against=None):
    return [(e.line, e.should_be) for e in tallystick.check(text, against=against).equations if not e.correct]


@pytest.mark.parametrize(
    ("written", "should_be"),
    [("800K", None), ("803K", None), ("805K", 802_816), ("700K", 802_816), ("900K", 802_816), ("0.80M", None)],
)
def test_zeros_before_a_letter_may_be_rounded(written, should_be):
    found = slips(f"memory: 112*112*64={written} params: (3*3*64)*64 = 36,864\n")
    assert found == ([] if should_be is None else [(1, should_be)])


def test_zeros_behind_a_point_are_written_digits():
    assert slips("Embedding: 50257 × 768 = 38.0M") == [(1, 38_597_376)]


def test_zeros_of_a_number_far_away_are_no_rounding():
    assert slips("Blocks: 12 × 9.7M = 120M") == [(1, 116_400_000)]


def test_parameters_in_bytes_are_a_conversion():
    text = "expert = 3·4096·14336 = 176,160,768\nWeights 93.4 GB; one expert (one layer) = 352 MB in bf16.\n"
    assert slips(text) == []


def test_a_ratio_to_the_total_is_not_the_total():
    text = "Layers: 48 × 623.1M = 29.91B\nTotal: 29.91B + 622.3M = 30.53B\ntotal/active = 9.1\n"
    assert tallystick.check(text, against="qwen3-30b-a3b").total_claimed == 30_530_000_000


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("With d = 12288 and N = 96 layers: 12 × 12288² × 96 = 173,946,175,488.", None),
        ("For N=128K, each layer has 86K + 4K + 21K + 2K = 113K.", None),
        ("N = 12 × 12 × 768² = 84,934,656", 84_934_656),
        ("Total ≈ 2|V|d + N × 12 d²\nIn total: 77M + 85M = 162M", 162_000_000),
        ("Total: 4 × [d(x + d) + d] = 4d(x + d + 1)\nExample: 4 × 512 × 769 = 1,574,912", None),
    ],
)
def test_sizes_and_coefficients_are_not_the_total(text, total):
    assert tallystick.check(text).total_claimed == total


def test_a_rounded_total_of_the_model_is_rounded_not_wrong():
    rows = "| Embedding | 131M |\n| Attention | 2147M |\n| MLP | 4295M |\n| Total | ~6.7B |\n"
    answer = tallystick.check(rows, against="llama-2-7b")
    assert (slips(rows, "llama-2-7b"), answer.rounding, answer.unexplained) == ([], 38_415_616, 0)


@pytest.mark.parametrize(
    ("written", "right"), [("≈ 617M", True), ("≈ 618M", True), ("≈ 616M", False), ("≈ 619M", False), ("= 617M", False)]
)
def test_an_approximate_number_may_be_cut_instead_of_rounded(written, right):
    assert slips(f"Embedding: 50257 × 12288 {written}") == ([] if right else [(1, 617_558_016)])
