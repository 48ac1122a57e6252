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
        ("With d = 12288 and N = 96 layers: 4 × 12288² × 96 = 57,982,058,496.", None),
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
    ("written", "right"),
    [("≈ 617M", True), ("≈ 618M", True), ("≈ 616M", False), ("≈ 619M", False), ("= 617M", True), ("= 616M", False)],
)
def test_an_approximate_number_may_be_cut_instead_of_rounded(written, right):
    assert slips(f"Embedding: 50257 × 12288 {written}") == ([] if right else [(1, 617_558_016)])


@pytest.mark.parametrize(
    "text",
    [
        r"$$t = \frac{41.6 \times 10^6}{2 \times 10^{12}} \approx 20.8\ \mu\text{s}$$",
        r"t = \frac{41.6 \times 10^6}{2 \times 10^{12}} \approx 20.8 µs",
        r"t = \frac{41.6 \times 10^6}{2 \times 10^{12}} \approx 0.0208 ms",
        "KV cache: 24 × 4 × 64 × 2 × 2 = 24,576 B = 24.0 KiB per token",
        r"All-to-all: $2 \times 5 \times 4 \times 2 = 80\ \text{B}$",
    ],
)
def test_times_and_bytes_are_read_in_their_unit(text):
    equations = tallystick.check(text).equations
    assert equations
    assert all(equation.correct for equation in equations)


def test_a_time_that_is_off_is_not_judged():
    answer = tallystick.check("t = 41.6e6 × 2e3 ≈ 93.1 s\nWeights: 2 × 768 = 1,536\n")
    assert [equation.correct for equation in answer.equations] == [True]
    assert [(rest.line, rest.why) for rest in answer.unread] == [(1, "gives a time: its unit is not followed")]


@pytest.mark.parametrize(("word", "should_be"), [("9千万", None), ("9천만", None), ("8千万", 90_177_536)])
def test_myriads_take_a_thousand_before_them(word, should_be):
    found = slips(f"FFN: 4096 × 11008 × 2 ≈ {word}")
    assert found == ([] if should_be is None else [(1, should_be)])


@pytest.mark.parametrize(("text", "letter"), [("400 × 1024", "KB"), ("384 × 1024 × 1024", "MB"), ("3 × 1024³", "GB")])
def test_a_letter_of_bytes_may_count_1024(text, letter):
    written = text.split()[0]
    (only,) = tallystick.check(f"Cache: {text} = {written} {letter}\n").equations
    assert only.correct


@pytest.mark.parametrize(
    ("written", "should_be"), [("1.5B", None), ("1.6B", None), ("1.4B", 1_557_611_200), ("1.7B", 1_557_611_200)]
)
def test_a_number_after_about_may_be_cut(written, should_be):
    assert slips(f"Total = 1,557,611,200 ≈ {written}") == ([] if should_be is None else [(1, should_be)])


def test_thousands_after_about_may_be_cut():
    assert slips("LSTM: 4 × 256 × (64 + 256) ≈ 327,000\n") == []
    assert slips("LSTM: 4 × 256 × (64 + 256) ≈ 326,000\n") == [(1, 327_680)]


def test_a_number_with_a_power_of_ten_is_one_number():
    """32 × 4 × 4096² + 32 × 3 × 4096 × 11008 + 32000 × 4096 = 6,607,077,376."""
    text = (
        "- Attention: $32 \\times 4 \\times 4096^2 = 2.147 \\times 10^9$\n"
        "- MLP: $32 \\times 3 \\times 4096 \\times 11008 = 4.328 \\times 10^9$\n"
        "- Embedding: $32000 \\times 4096 = 0.131 \\times 10^9$\n"
        "- Total: ${} \\times 10^9$ parameters.\n"
    )
    assert tallystick.check(text.replace("{}", "6.61")).total_claimed == 6_610_000_000
    assert slips(text.replace("{}", "6.61")) == []
    assert slips(text.replace("2.147", "2.417").replace("{}", "6.61"))[:1] == [(1, 2_147_483_648)]


def test_a_name_set_behind_the_number_of_its_line_is_no_product():
    text = "Embedding: 30522 × 768 = 23,440,896\n2 # tokens\n3 vocab_size=30522,\n5 hidden_size=768,\n"
    assert slips(text) == []


@pytest.mark.parametrize(("flops", "wrong"), [("8.4", []), ("8.7", [(1, 84 * 10**21)])])
def test_factors_with_a_power_of_ten_are_exact(flops, wrong):
    assert slips(f"6 × 7×10⁹ × 2×10¹² = {flops}×10²²") == wrong
