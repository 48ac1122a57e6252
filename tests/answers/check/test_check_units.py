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


WRONG = [
    ("Per layer: 1024×1024×4 + 1024×4096×2 = 12.6M\n6 layers: 73.5M params", 75_600_000),
    ("Total per block: ~786K\n\n6 blocks: ~4.3M", 4_716_000),
    ("Total per block: 789,760\n6 blocks = 2,738,560", 4_738_560),
    ("Per layer: 49,664\n2 layers: 89,328", 99_328),
    ("Block 1 つ:      ≈ 1,181,184\nBlock 6 つ:      ≈ 7,987,104", 7_087_104),
    ("Weights: 140GB ÷ 8 = 67.5GB per GPU", 17_500_000_000),
    ("GB/s by GB of memory: 546 / 136.5 = 4.7 tok/s", 4),
    ("One request: 17 GB ÷ 2.5 MB = ~9,800 tokens", 6_800),
    ("Memory left: 640 GB HBM - 140 GB weights = 900 GB", 500_000_000_000),
    ("70B parameters + FP16 precision = 70B × 2 = 170 GB", 140_000_000_000),
    ("Experts: 3 × 2048 × 1000 × 64 = ~393M/layer × 58 = 29.8B", 22_794_000_000),
    ("Cache: 800 KB/token × 8192 tokens × 10 requests = 69.5 GB", 65_536_000_000),
    ("d = 320\nNorm: 2 × d = 649", 640),
    ("States: (4+4+4) × 6.7B = ~50.4GB", 80_400_000_000),
    ("Router: 2 × 128 × 2048 × 300 = 157,286,400 ≈ 757M FLOPs", 157_286_400),
    ("KV: 2 × 28 × 4 × 128 × 2 = 57,644 bytes/token", 57_344),
    ("Norms: 2 × (gamma 128 + beta 128) = 612", 512),
    ("| Final norm | `gamma 128 + beta 128` | 156 |", 256),
    ("MLP\n- Up: 768 × (4 × 768) = 2.36M\n- Down: (4 × 768) × 768 = 2.36M\n\n> **Total MLP = 2.72M**", 4_720_000),
    ("Embedding: 50257 × 768 = 38,596,416 params saved", 38_597_376),
    ("All: 12 × 768 × 12 = 110M", 110_592),
    ("Block: 24,576 + 14,336 = 38,912 × 28 blocks = 1,089,537", 1_089_536),
    ("Sizes: 92 × 4 × 4 = 1,473", 1_472),
    ("# K cache: [32, 12, 2048, 64] × 2 bytes = 48 MB per layer", 100_663_296),
    ("Optimizer: ~24 GB (8 bytes per param × 3B × 2 states)", 48_000_000_000),
    ("Block:  2 × (4×512² + 2×512×1408) = 4.2M   [attention + MLP]", 4_980_736),
    ("All ≈ 10K × 768 + (4 × 768² + 2 × 768) × 12 ≈ 7.68M + 28M × 12", 36_009_984),
    ("LayerNorm     2 x 768  (gain + bias)       =       4,536", 1_536),
    ("Memory (float32): 1.64B × 4 ≈ 6.26 GB", 6_560_000_000),  # no GB of 1,000 × 1,024 × 1,024 bytes
    ("Total per layer: ~3.15M\n\nEncoder stack (6 layers): ~13.9M", 18_900_000),
    ("text_model: 904,626,880 = 47,308,800 + 16 × 9,832,320 + 960", 204_626_880),
    ("| FFN | gate+up+down = 3 × 4096 × 11008 = 139M | 270 MB |", 135_266_304),
    ("N = 135,266,304 weights (115.3M)", 135_266_304),
    ("# 12 * 4096^2 * 32 + 32000 * 4096 ≈ 6.44B params * 2 bytes ≈ 12.0 GB", 6_573_522_944),
    ("3 × 5120 × 13824 = 202,336,640 ≈ 0.212B", 212_336_640),  # the rounded number is right
    ("W_Q: [1024, 1024] + b_Q: [1024] = 1,048,576", 1_049_600),
    ("layer = 4 × 640 × 640 = 1,638,400\n      + 2 × 640 × 2560 = 3,276,800\n      = 4,951,200", 4_915_200),
    ("Norms: 12 × (2 × 768) -> 19,432", 18_432),
    ("Слова: 50257 * 768  # 39,60 млн", 38_597_376),
    ("Wörter: 50257 * 768  # 39,60 Mio.", 38_597_376),
    (
        "| Part | Parameters | % | FP16 |\n|---|---|---|---|\n| Words | 2560000 | 3% | 5.1 MB |\n"
        "| Layers | 75657216 | 97% | 151.3 MB |\n| **Total** | **48217216** | 100% | 156.4 MB |",
        78_217_216,
    ),
    ("Bloco: 3·2,6·4096² = 150,9M", 130_862_284.8),
    ("Pair: 64 × (5 + 7) M = 786M", 768_000_000),
    ("MLP: (768 × 3072 + 3072) + (3072 × 768 + 768) = 4,722,432 + 2,360,064 = ~7.1M", 2_362_368),
    ("Attention: Q(384→384) + K(384→128) + V(384→128) + O(384→384) ≈ 295K × 10 = 2.95M", 393_216),
    ("| d_inner (expanded) | 2560 |\n| d_state | 16 |\n\nIn: (d_inner + d_state) × 5000 = 11.88M", 12_880_000),
    ("Router: 4096 × 8 × 2 = 35,536 bytes", 65_536),
    ("A: 4096² + 4096×1024 + 4096×1024 + 4096² = 16,777,216 + 4,194,304 + 4,894,304 + 16,777,216", 4_194_304),
    ("Active: 4B + 32B + attention ≈ 12B", 36_000_000_000),
    ("attn 2·12288² + 2·(12288·1024) = 327.2M; MLP 3·12288·28672 = 1,056.9M; × 88 = 124.8B", 121_800_800_000),
    ("GPT-3: 96 layers × ~37M/layer = 175B total parameters", 3_552_000_000),
    ("KV: 2 (K,V) × 8 KV heads × 128 head_dim × 32 layers = **131,072 elements/token**", 65_536),
    ("Layers: 12 × 96 × 12288² ≈ 170.0B", 173_946_175_488),  # 170B would be right
    ("Each: 8 × 16 × 4096 × 4100 ≈ 2.0B", 2_149_580_800),
    ("| MLP | 131,584 | (128 × 512 + 512) + (512 × 128 + 128) per layer |", 131_712),
    ("LSTM: 4 × [(78+128)×128 + 128] × 2 (ways) × 2 (layers) ≈ 530 K", 423_936),
    ("Attention (INT8):   32 × 150 MB = 4.1 GB", 4_800_000_000),
    ("Norms (FP16):   32 × 8 MB     = 236 MB", 256_000_000),
    ("Layers: 24 × 3.5 MB = 86 MB", 84_000_000),
    ("Levels: 5 levels * 256 = 1,260", 1_280),
    ("Capa: 768 input × 42 output + 42 sesgos = 32,508 parámetros", 32_298),
    ("Mixtral 8x7B: 32 × 1.44B = 48B", 46_080_000_000),
    ("Each layer: 2.36M parameters (768×3072 + 3072×768)", 4_718_592),
    ("Each: [1, 576, 256] × 4 bytes × 2 (q/k) = 589,824 bytes", 1_179_648),
    ("- ≈ 4B + 32B + attention ≈ 12B active", 36_000_000_000),
]


@pytest.mark.parametrize(("text", "right"), WRONG)
def test_a_slip_next_to_units_is_found(text, right):
    answer = tallystick.check(f"Sizes: 2 × 768 = 1,536\n{text}\n")
    assert [equation.should_be for equation in answer.equations if not equation.correct] == [right]


@pytest.mark.parametrize(
    ("written", "should_be"),
    [
        ("16 × 2 × 2048 × 2048 / 1e9 ≈ 0.13B", None),
        ("16 × 2 × 2048 × 2048 / 1e9 ≈ 0.22B", 134_217_728),
        ("16 × 2 × 2048 × 2048 / 10^6 = 134M", None),
        ("16 × 2 × 2048 × 2048 / 10^6 = 154M", 134_217_728),
        ("16 × 2 × 2048 × 2048 / 1e6 = 134.2", None),
        ("16 × 2 × 2048 × 2048 / 1e6 = 143.2", 134.217_728),
    ],
)
def test_a_divisor_may_be_what_the_letter_means(written, should_be):
    answer = tallystick.check(f"Shared expert: {written}\n")
    assert [one.should_be for one in answer.equations if not one.correct] == ([] if should_be is None else [should_be])
    assert len(answer.equations) == 1
