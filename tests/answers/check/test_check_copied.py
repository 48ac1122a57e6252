"""What people write, copy and paste around their numbers accuses nobody, hides no slip, and leaves the total to be found."""

import pytest

import tallystick

# What was once read as a slip: the text, and how many equations are right.
RIGHT = {
    "which heads are counted": ("q: 1024 = 16 heads × 64; k: 256 = 4 KV heads × 64.", 1),
    "heads that no rule knows": ("q: 1024 = 16 heads × 64; k: 1024 = 4 k-v heads × 256.", 1),
    "an addend in parentheses": ("Head: 512 × 9,000 = 4,608,000 (+9,000 biases) ≈ 4,617,000 parameters", 2),
    "an addend that is left out": ("Head: 512 × 9,000 = 4,608,000 (+9,000 biases)", 1),
    "parentheses added to a product": ("Projection: 512 × 512 (+ 512 biases) = 262,656", 1),
    "parentheses that only remark": ("Projection: 512 × 512 (+ 512 biases) = 262,144", 1),
    "a decimal comma before a Turkish million": ("Gömme: 30.522 × 512 ≈ 15,6 milyon parametre", 1),
    "a decimal comma before an Indonesian million": ("Matriks: 2048 × 2048 ≈ 4,2 juta parameter", 1),
    "three matrices": ("Let d = 512. FFN: 3 matrices d × 2048 = 3.1M in a layer", 0),
    "commands whose backslashes are doubled": (r"- Types: $2 \\times W = 2 \\times 640 = 1,280$" + "\n", 1),
    "a token a line": ("Attention\n4\n×\n1,024\n2\n≈\n4.2\n𝑀\nFFN\n1,024\n×\n4,096\n×\n2\n≈\n8.4\n𝑀\n", 2),
    "comments in a call": (
        "test('counts the parameters of a 1.5-3B model', () => {\n  // wte  = 2 × 1000 × 64 = 128,000\n"
        "  // attn = 4 × 64²       =  16,384\n  // ffn  = 3 × 64 × 256 =    49,152\n  // total = 128,000 + 2 × 65,536 = 259,072\n});\n",
        4,
    ),
    "rows with names as of memory and adapters": (
        "| Part | Parameters |\n|---|---|\n| Embedding | 640,000 |\n| Layers | 5,120,000 |\n| Key memory (1,000 slots × 64) | 64,000 |\n"
        "| LoRA adapters (rank 4) | 8,192 |\n| Norms | 2,048 |\n| **Total** | **5,834,240** |\n",
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_stands_around_numbers_accuses_nobody(name):
    text, right = RIGHT[name]
    equations = tallystick.check(text).equations
    assert [equation for equation in equations if not equation.correct] == []
    assert len(equations) >= right


WRONG = {
    "an addend in parentheses": ("Head: 512 × 9,000 = 4,608,000 (+9,000 biases) = 4,671,000 parameters", 4_617_000),
    "parentheses added to a product": ("Projection: 512 × 512 (+ 512 biases) = 263,656", 262_656),
    "commands whose backslashes are doubled": (r"- Types: $2 \\times 640 = 1,820$" + "\n", 1_280),
    "a token a line": ("FFN\n1,024\n×\n4,096\n×\n2\n≈\n9.4\n𝑀\n", 8_388_608),
    "comments in a call": ("check('of 12', () => {\n  // attn = 4 × 64² = 16,834\n});\n", 16_384),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_slip_among_them_is_found(name):
    text, should_be = WRONG[name]
    wrong = [equation for equation in tallystick.check(text).equations if not equation.correct]
    assert [equation.should_be for equation in wrong] == [should_be]
