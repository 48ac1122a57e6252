"""A number that a line states twice is the same both times: a result in parentheses, a rounding."""

from __future__ import annotations

import pytest

import tallystick

SUM = "wte 50257×768 ({}) + wpe 1024×768 (786,432) + blocks 12×7,087,872 ({}) + ln_f 2×768 (1,536) = {}"

RIGHT = [
    SUM.format("38,597,376", "85,054,464", "124,439,808"),
    SUM.format("38.6M", "85.1M", "124.4M"),
    "12 × 7,087,872 = 85,054,464 → 85.1M",
    "12 × 7,087,872 = 85,054,464, about 85.1M",
    "参数量 = 12 × 7,087,872 = 85,054,464，约 85.1M",
    "Each: 7,087,872 (~7.1M parameters)",
    "Block: 2 × 768 = 1,536. Without the tie: 163,037,184 → 124.4M",
    "Total: 12 × 7,087,872 = 85,054,464 (~84.9M without biases)",
    "Total: 12 × 7,087,872 = 85,054,464个 ≈ 85.1M（8500万）",
    "| Entries for each query | ~1,152 (1024+128) | ~7,940 (~7.8K+128) |",
    "| Weights | 124,439,808 (497.8 MB) | 85,054,464 ≈ 85.1M |",
    "The model has 73,531,646 total parameters (~73.5M):\n\nBlock: 2 × 768 = 1,536",
    "Block: 2 × 768 = 1,536. With 124,439,808 parameters (~163M with a head of its own) it is small.",
    "Embedding: 128256 × 4096 = 526M",  # raised from 525.3M
]
WRONG = [
    (SUM.format("38,697,376", "85,054,464", "124,439,808"), [38_597_376]),
    (SUM.format("38,697,376", "85,054,464", "124,539,808"), [38_597_376]),  # which the total carries on
    (SUM.format("38.6M", "95.1M", "124,439,808"), [85_054_464]),
    ("# 50257×768 (38,597,376)\n# + 2×768 (1,636) = 38,598,912", [1_536]),
    ("12 × 7,087,872 = 85,054,464 → 95.1M", [85_054_464]),
    ("12 × 7,087,872 = 85,054,464, about 95.1M", [85_054_464]),
    ("12 × 7,087,872 = 85,054,464, i.e. about 85.6M", [85_054_464]),
    ("参数量 = 12 × 7,087,872 = 85,054,464，约 95.1M", [85_054_464]),
    ("Block = 4×640² + 8×640² = 4,915,200 (~4.2M)", [4_915_200]),
    ("Embedding: 38,597,376 (~28.6M params)", [38_597_376]),
    ("Block: QKVO (1,638,400) + feed-forward (3,276,800) + LN (2,590) = 4,917,760 (4.9M)", [4_917_790]),
    ("Each block = 589824 (attn) + 1139648 (MLP) + 1536 (norms) = 1771008", [1_731_008]),
    ("embedding (12288000) + positional (98304) + blocks (14168064) + final norm (768) = 26535136", [26_555_136]),
    ("| Embedding | 2,621,440 (2.92M) | 5,242,880 ≈ 5.24M |", [2_621_440]),
    ("Blöcke: 85.054.464 (≈ 95,1 Mio.)", [85_054_464]),
    ("Norm: 2 × 768 = 1,536. It has 6 blocks, in all `11_586_240` (14.59M) parameters.", [11_586_240]),
    ("Norm: 2 × 768 = 1,536\n\nThe model has **73,531,646** total parameters (~79.5M):", [73_531_646]),
    ("Norm: 2 × 768 = 1,536\n\nIt comes to 108,489,216 parameters — about 178.5M — and no more", [108_489_216]),
    ("| Norm | 2 × 768 | 1,536 |\n| **Total** | | **~10,770,816 (about 20.8M)** |", [10_770_816]),
    ("Norm: 2 × 768 = 1,536\n\nTotal: 10,223M ≈ 17.22B", [10_223_000_000]),
    ("Embedding: 128256 × 4096 = 529M", [525_336_576]),
]


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_stated_alike_is_not_accused(text):
    assert [one.should_be for one in tallystick.check(f"{text}\n").equations if not one.correct] == []


@pytest.mark.parametrize(("text", "should_be"), WRONG)
def test_what_is_stated_in_two_ways_is_accused(text, should_be):
    assert [one.should_be for one in tallystick.check(f"{text}\n").equations if not one.correct] == should_be


def test_a_sum_with_words_for_its_addends_is_read_whole():
    text = "embedding (12288000) + positional (98304) + blocks (14168064) + final norm (768) = 26555136"
    (equation,) = tallystick.check(text).equations
    assert (equation.left, equation.correct) == (26_555_136, True)


def test_the_two_halves_of_a_norm_are_no_other_lines_number():
    rows = (
        "| Patches | 3 × 16 × 16 × 192 + 192 = **147,648** |\n| CLS token | [1, 1, 192] | 192 |\n"
        "| Positions | [1, 197, 192] | 37,824 |\n| Final norm | 192 + 192 | 384 |\n"
        "| Head | 192 × 2 + 2 = **386** |\n| **TOTAL** | | **~{}** |"
    )
    answers = [tallystick.check(rows.format(total)) for total in ("186,434", "186,734")]
    assert [answer.correct for answer in answers] == [True, False]


def test_a_total_in_a_sentence_is_read_with_its_rounding():
    (equation,) = tallystick.check("所以总参数量为 `61,062,144 * 40 = 2,442,485,760`，约 2.4B。").equations[1:]
    assert (equation.left, equation.right, equation.correct) == (2_442_485_760, 2_400_000_000, True)


BLOCK = "Attention      {:>10}\nMLP            {:>10}\nNorms          {:>10}\nPer block      {:>10}\n"


@pytest.mark.parametrize(("attention", "wrong"), [("409,600", []), ("449,600", [1_310_400]), ("451,223", [])])
def test_one_digit_of_one_line_is_wrong_in_a_block(attention, wrong):
    text = BLOCK.format(attention, "860,160", "640", "1,270,400")
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


def test_a_power_of_two_may_be_rounded_too():
    text = "All: 131,072 × 32 layers = 4,194,304 params (~4M)\n"
    assert [one.right for one in tallystick.check(text).equations if one.correct] == [4_194_304, 4_000_000]
