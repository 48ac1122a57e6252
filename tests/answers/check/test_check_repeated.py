"""Totals that take the lines of one layer as often as there are layers, and totals of one layer."""

import pytest

import tallystick

LAYER = "  attention: 4 × 512 × 512 = 1,048,576\n  MLP: 2 × 512 × 2048 = 2,097,152\n"
WORDS = "Words: 50257 × 512 = 25,731,584\n"
ROWS = "| Part | How | Count |\n|---|---|---|\n"

# A text, and its last judged line: its number, and what it should be.
RIGHT = {
    "below a count of blocks": (f"{WORDS}6 × Transformer Block:\n{LAYER}\nTotal: 44,605,952\n", 44_605_952),
    "below a count behind": (f"{WORDS}Block ×6:\n{LAYER}\nTotal: 44,605,952\n", 44_605_952),
    "below a count in Portuguese": (f"{WORDS}ENCODER (6 camadas, cada uma com):\n{LAYER}\nTotal: 44,605,952\n", 44_605_952),
    "of one layer, with the number of layers": (
        f"n_layers = 6\n{WORDS}Per layer attention: 4 × 512 × 512 = 1,048,576\n"
        "Per layer MLP: 2 × 512 × 2048 = 2,097,152\nTotal: 44,605,952\n",
        44_605_952,
    ),
    "rounded": (f"{WORDS}Block (×6):\n{LAYER}\nTotal: ~44.6M\n", 44_600_000),
    "a count in a label": ("Block 1 つ: 7,168 + 4,096 = 11,264\nBlock 6 つ: 67,584\n", 67_584),
    "all layers in Chinese": ("每层: 7,168 + 4,096 = 11,264\n8层合计: 90,112\n", 90_112),
    "all blocks, called a total": ("One block: 7,168 + 4,096 = 11,264\n6 Blocks total: 67,584\n", 67_584),
    "all blocks, called a subtotal": ("One block: 7,168 + 4,096 = 11,264\n4 blocks subtotal: 45,056\n", 45_056),
    "layers on a line of their own": ("Per-layer total: 70.5K\n× 80 layers: ~5.64M\n", 5_640_000),
    "a rounded subtotal": ("Q: 512 × 512 = 262,144\nK: 512 × 512 = 262,144\nAttention subtotal ≈ 0.52M\n", 520_000),
    "a bias that sets a size": ("Q: 64 × 640 = 40,960\nbias = 64\nSubtotal: 41,024\n", 41_024),
    "a formula and its number in one row": (
        f"{ROWS}| Words | $V × D = 50257 × 512$ | 25,731,584 |\n| Places | $T × D = 1024 × 512$ | 524,288 |\n"
        "| **Total** | | **26,255,872** |\n",
        26_255_872,
    ),
    "a rank behind the number": (
        f"{ROWS}| Q | 2048 × 2048 | 4.2M | 2048 |\n| K | 2048 × 1024 | 2.1M | 1024 |\n| MLP | 2048 × 16384 | 33.6M | 2048 |\n"
        "| **Total per layer** | | **39.9M** | |\n",
        39_900_000,
    ),
    "numbers in columns": (
        "gate: 4096 × 14336 = 58,720,256  up: 58,720,256  down: 58,720,256\nTotal: 176,160,768\n", 176_160_768,
    ),
    "the total that is multiplied": (f"Block:\n{LAYER}Total per layer: 3,145,728 × 6 = 18,874,368\n", 18_874_368),
}  # fmt: skip


@pytest.mark.parametrize("text", RIGHT)
def test_a_right_total(text):
    derivation, number = RIGHT[text]
    answer = tallystick.check(derivation)
    assert (answer.equations[-1].correct, answer.equations[-1].right) == (True, number)
    assert answer.correct


WRONG = {
    "a digit of all blocks": (f"{WORDS}6 × Transformer Block:\n{LAYER}\nTotal: 44,505,952\n", 44_605_952),
    "a digit of a total that is multiplied": (
        f"Block:\n{LAYER}Total per layer: 3,145,738 × 6 = 18,874,428\n", 3_145_728,
    ),
    "a digit of it behind ≈": (
        "// Q: 4096×4096=16 777 216   K: 4096×1024=4 194 304\n// norms (×3 × 4096) ≈ 12 288\n"
        "// Layer total ≈ 20 993 808  × 36 ≈ 755 777 088\n",
        20_983_808,
    ),
    "less than its column": (
        "Words:  50,257 × 512  = 25.7M\nPlaces: 256 × 512     = 0.1M\n6 blocks:  = 24.2M\nOutput: 512 × 50,257  = 25.7M\n"
        "                       ________\n               Total:  ≈ 52M parameters\n",
        75_700_000,
    ),
    "a multiple of a rounded number": (
        "Attention: 4 × 768² = 2.36M\nMLP: 8 × 768² = 4.72M\nTotal per block: 2.36M + 4.72M = 7.08M\n"
        "12 blocks: 12 × 7.08M = 85.02M\n",
        84_960_000,
    ),
    "a whole number behind a sum of rounded ones": (
        "Attention: 4 × 4096² = 67,108,864\nMLP: 3 × 4096 × 11008 = 135,266,304\nnorms: 2 × 4096 = 8,192\n"
        "Per layer: 67M + 135M + 8K ≈ 202,375,168\n32 layers × 202M = 6,476M\n",
        202_008_000,
    ),
    "a part of a sum of rounded numbers": (
        "Attention: 4 × 1024² = 4.19M\nMLP: 8 × 1024² = 8.39M\nTotal: 31.3M + 24 × (4.19M + 8.39M) = 31.3M + 302.3M\n",
        301_920_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_total(text):
    derivation, should_be = WRONG[text]
    assert [one.should_be for one in tallystick.check(derivation).equations if not one.correct] == [should_be]


@pytest.mark.parametrize(
    "text",
    [
        f"{WORDS}6 × Transformer Block:\n{LAYER}LayerNorm & biases\n\nTotal parameters: 44,896,768\n",  # more than is listed
        "| Places (1024 × 1024) | 1M | 1M (variant A) / 545 × 1024 = 0.56M (variant C) |\n",
        "Words: 23.0M\nLayers: 3 × 28.3M = 85.0M\nHead (tied): 30k × 768 = 23.0M\nTotal: 108M\n",
        "Attention: 4 × 4096² ≈ 67.1M\nFour experts: 4 × (90M / 4) = 90M\nAll: 64 × (90M / 4) = 1440M\nTotal: 1530M\n",
        "A (H=768):\n  dense: H × H + H = 768² + 768 = 590,592\n  norm: 2 × H = 2 × 768 = 1,536\n  ----------\n  Total: H² + 3H = 592,128\n\n"
        "B (input_size=I=3072):\n  dense: I × H + H = 3072 × 768 + 768 = 2,360,064\n  norm: 2 × H = 2 × 768 = 1,536\n  ----------\n"
        "  Total: I × H + H + 2H = 2,361,600\n",
        "Attention: 4 × 4096² = 67M\nMLP: 3 × 4096 × 11008 = 135M\nPer layer: 67M + 135M = 202,375,168\n",
        "A: 2 × 68,719,476,736 = 137,438,953,472\nB: 201,326,592 bytes\nRatio: 1.37e11 / 2.01e8 ≈ 683\n",
        # 7.1M is rounded from 7.0779M: what is multiplied may be either.
        "Attention: 4 × 768² = 2.36M\nMLP: 8 × 768² = 4.72M\nTotal per block: 7.1M\n12 blocks: 12 × 7.1M = 85.0M\n",
    ],
    ids=["more than is listed", "variants", "tied", "parts", "two columns", "unrounded", "a ratio", "rounded"],
)  # fmt: skip
def test_a_text_that_is_not_accused(text):
    answer = tallystick.check(text)
    assert all(one.correct for one in answer.equations)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("- 嵌入层：词表大小 `vocab_size=128256` 与隐藏维度 `dim=4096` 的乘积：$128256 * 4096 = 525,336,576$\n", "llama-3-8b"),
        (
            f"{ROWS}| Words | 30,000 × 768 | 23.04M |\n| Segments | 2 × 768 | 1.5K |\n| One layer: attention | 4 × 768² | 2.36M |\n"
            "| One layer: MLP | 2 × 768 × 3072 | 4.72M |\n\nTotal per layer ≈ 7.1M, 12 layers ≈ 85.2M\n",
            "bert-base-uncased",
        ),
    ],
    ids=["settings in a sentence", "two totals on a line"],
)  # fmt: skip
def test_a_model_whose_text_is_not_accused(text, model):
    assert all(one.correct for one in tallystick.check(text, against=model).equations)


@pytest.mark.parametrize(
    ("comment", "number"),
    [("= 98,304 params", 98_304), ("~98K params", 98_000), ("= ~98K params of q", 98_000), ("98,304 (of q)", 98_304)],
)
def test_a_result_in_a_comment_of_code(comment, number):
    (equation,) = tallystick.check(f"r = 32\nlora = 3072 * r  # {comment}\n").equations
    assert (equation.correct, equation.right) == (True, number)


def test_the_active_parameters_are_not_the_total():
    text = "One expert: 3 × 4096 × 14336 = 176M\nActive params: 131M + 32 × (42M + 2 × 176M) + 131M = 12.9B\n"
    assert tallystick.check(text, against="mixtral-8x7b").total_claimed is None


ANNOUNCED = """\
2. **Each layer**: {value}
   - Attention: 884,736
   - MLP: 2,654,208
   - Norms: 1,152
   - Total per layer: 884,736 + 2,654,208 + 1,152 = {value}
   - All layers (×30): {value} × 30 = {all}
"""


@pytest.mark.parametrize(
    ("value", "all_", "lines"), [("3,540,096", "106,202,880", []), ("3,540,672", "106,220,160", [1, 5])]
)
def test_a_number_above_the_sum_that_is_wrong_is_wrong_too(value, all_, lines):
    answer = tallystick.check(ANNOUNCED.format(value=value, all=all_))
    assert [(one.line, one.should_be) for one in answer.equations if not one.correct] == [
        (line, 3_540_096) for line in lines
    ]


def test_a_number_of_the_model_is_not_wrong_as_the_sum_below_it():
    text = (
        "Each layer has 7,087,872 parameters.\n\n- Attention: 2,362,368\n- MLP: 4,722,432\n"
        "- Total per layer: 2,362,368 + 4,722,432 = 7,087,872\n"
    )
    wrong = [one.line for one in tallystick.check(text, against="gpt2").equations if not one.correct]
    assert wrong == [5]
