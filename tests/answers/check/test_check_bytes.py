"""Texts about memory and compute: bytes that a product counts itself, their lists, given counts."""

from __future__ import annotations

import pytest

import tallystick


def slips(text, against=None):
    return [(e.line, e.should_be) for e in tallystick.check(f"{text}\n", against=against).equations if not e.correct]


@pytest.mark.parametrize(
    ("line", "should_be"),
    [
        ("KV cache: 2 × 28 × 2048 × 256 × 4 = 57 MB", 117_440_512),
        ("KV cache: 2 × 28 × 2048 × 256 × 4 = 117 MB", None),
        ("KV cache: 2 × 28 × 2048 × 256 × 4 = 112 MB", None),  # MiB
        ("Weights: 2048 × 5504 × 3 = 68 MB", None),  # two bytes each
        ("At 4k: 16 × 4 × 4096 × 256 × 2B × 2 (K+V) = 268 MB", None),
        ("At 4k: 16 × 4 × 4096 × 256 × 2B × 2 (K+V) = 286 MB", 268_435_456),
        ("KV: 16 warstw × 4 głowice × 4096 seq × 256 dim × 2 × 2 = 268 MB", None),
        ("KV: 16 warstw × 4 głowice × 4096 seq × 256 dim × 2 × 2 = 286 MB", 268_435_456),
        ("KV: 16 warstw × 4 głowice × 4096 squared × 256 dim × 2 × 2 = 286 MB", None),  # not followed
        ("Scales: 4096 × 4B = 16 KB", None),
        ("Scales: 4096 × 4B = 18 KB", 16_384),
        ("KV: 64 KiB (8 × 64 × 2 × 32 × 2 bytes)", None),
        ("KV: 61 KiB (8 × 64 × 2 × 32 × 2 bytes)", 65_536),  # no 61 × 1024 × 1.024²
        ("Poids : 24 × 327,7 Mo = 7,9 Go", None),
        ("Poids : 24 × 327,7 Mo = 7,6 Go", 7_864_800_000),
        ("Веса: 24 × 327,7 МБ = 7,6 ГБ", 7_864_800_000),
        ("FLOPs: 2 × 7168 × 18432 × 1 = 264.24 × 10^9 FLOPs/token", 264_241_152),  # 10^6
        ("FLOPs: 6 × 7 × 10^9 × 4 × 2048 ≈ 344 PFLOPS", 344_064_000_000_000),
        ("Limit: 3350 × 1 ≈ 3.35 TFLOPS", None),  # of 3,350 GB/s
        ("MHA: $2 \\times 80 \\times 64 \\times 128 \\times 4096 \\times 2 = 8.59$ GB", 10_737_418_240),
        # a matrix has the bytes of a format, named or not
        ("Linear: 12288 × 49152 = 1.2 GB", None),
        ("Linear: 12288 × 49152 = ~2.4 GB (fp16)", 1_207_959_552),
        ("Linear: 12288 × 49152 = ~2.4 GB (fp32)", None),
        ("| W1 (gate+up) | 9728 × 896 | 34.6 MB |", 34_865_152),
        ("Weights: 4096 × 14336 = 33 MB (Q4_K)", None),  # 4.5 bits each
        # GB of 1,000 × 1,024 × 1,024 bytes are neither GB nor GiB
        ("Cache: 256 × 2,048 × 32 × 128 × 2 × 2 bytes = 8.4 GB", 8_589_934_592),
        ("Cache: 256 × 2,048 × 32 × 128 × 2 × 2 bytes = 8.6 GB", None),
        ("Cache: 256 × 2,048 × 32 × 128 × 2 × 2 bytes = 8.0 GB", None),
        ("Words: 151936 × 1024 × 2 = ~297 MB", None),
        ("Words: 50,000 × 4,096 × 4 bytes = 800 MB", None),  # rounded
        ("Adam: param (2B) + grad (2B) + m (4B) + v (4B) = 16 bytes/param", 12),
        ("Adam: fp32 (4B) + grad (2B) + states (8B) = 14 bytes per parameter", None),
        ("Cache: 2 × 80 × 8 × 128 × 131072 × 2 octets = ~45 Go", 42_949_672_960),
    ],
)
def test_a_product_with_a_width_has_its_bytes(line, should_be):
    assert slips(line) == ([] if should_be is None else [(1, should_be)])


@pytest.mark.parametrize(
    ("line", "should_be"),
    [
        ("activations: 12.6 MB ← 8 × 256 × 512 × 6 × 2 (fp16)", None),
        ("activations: 200 MB ← 8 × 256 × 512 × 6 × 2 (fp16)", 12_582_912),
        ("activations: 200 MB ← far below 2,000 MB", None),
    ],
)
def test_a_product_behind_an_arrow_gives_the_number_before_it(line, should_be):
    text = f"3 × 1024 = 3,072\n# {line}\n"
    assert slips(text) == ([] if should_be is None else [(2, should_be)])


LIST = "**Budget**: 90 GB\n- Weights: 7B × 2 = 14 GB\n- Gradients: 14 GB\n- Adam: 7B × 8 = 56 GB\n- Total: {}\n"


@pytest.mark.parametrize(
    ("total", "should_be"),
    [("84 GB", None), ("40 GB", 84 * 10**9), ("79 GB", None), ("97 GB", None)],  # 79 GiB; 13 GB of others
)
def test_bytes_are_no_less_than_their_parts(total, should_be):
    assert slips(LIST.format(total)) == ([] if should_be is None else [(5, should_be)])


def test_rates_have_no_sum():
    assert slips(LIST.format("40 GB").replace("14 GB\n- Adam", "14 GB per GPU\n- Adam")) == []


GIVEN = "GPT-3 training:\n  N = 175B parameters\n  D = 300B tokens\n  FLOPs = 6 × N × D = 3.15 × 10^23 FLOPs\n"


@pytest.mark.parametrize(
    ("text", "total"),
    [
        (GIVEN, None),
        (f"{GIVEN}Layers: 96 × 1,812,099,072 = 173,961,510,912\n", 175 * 10**9),
        (GIVEN.replace("N =", "Total: N ="), 175 * 10**9),
    ],
)
def test_a_count_that_is_only_used_is_no_total(text, total):
    assert tallystick.check(text, against="gpt3-175b").total_claimed == total


TABLE = """\
| Part | Params | Format | Memory |
|---|---|---|---|
| Attention | 4.77B | BF16 | 9.54 GB |
| Experts | 1014.69B | INT4 | 570.76 GB |
| Shared | 2.64B | BF16 | 5.28 GB |
| **Total** | {} | Mixed | **585.58 GB** |
"""


def test_a_column_counts_what_is_above_it():
    """4.77 + 1014.69 + 2.64 = 1022.1, and 9.54 + 570.76 + 5.28 = 585.58."""
    answer = tallystick.check(TABLE.format("1022.1B"))
    assert answer.total_claimed == 1_022_100_000_000
    assert [(e.right, e.correct) for e in answer.equations] == [(1_022_100_000_000, True), (585_580_000_000, True)]


def test_the_last_row_of_one_layer_is_no_total():
    text = "\n".join(f"| {part} | 2048 × {size} | {size * 2048 / 1e6:.1f}M |" for part, size in PARTS)
    assert tallystick.check(f"{text}\n| **Total per layer** | | ~113M |\nTotal layers: 46\n").total_claimed is None


PARTS = [("Q", 2048), ("K", 1024), ("V", 1024), ("O", 2048), ("gate", 16384), ("up", 16384), ("down", 16384)]


def test_the_trained_and_the_frozen_half_are_no_whole():
    text = "Layer: 3 × 256 = 768\nTotal trainable: 768 × 4 = 3,072\nTotal frozen: 2,304 × 4 + 1,120 = 10,336\n"
    assert tallystick.check(text).total_claimed is None


def test_cited_counts_of_several_models_are_no_total():
    cards = "".join(f"### {name}\n- Total params: {count}\n- KV: 2 × 8 × 128 = 2,048\n" for name, count in CARDS)
    assert tallystick.check(cards).total_claimed is None


CARDS = [("Mixtral 8x7B", "46.7B"), ("Mixtral 8x22B", "141B"), ("Qwen3", "235B")]


def test_adapters_are_not_the_model_that_is_named():
    text = "## LoRA parameters\n\nc_attn: 4 × (768 + 2304) = 12,288\n\nTotal for 12 blocks:\n\n12,288 × 12 = 147,456\n"
    assert tallystick.check(text, against="gpt2").total_claimed is None


def test_the_word_to_is_no_unit():
    text = "2 × 768 = 1,536\nTotal, from 12 to 24 layers: 24 × 7,087,872 = 170,108,928\n"
    assert tallystick.check(text).total_claimed == 170_108_928
