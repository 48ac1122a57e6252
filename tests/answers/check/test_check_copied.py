"""What people write, copy and paste around their numbers accuses nobody, hides no slip, and leaves
the total to be found.
"""

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


# Where the total stands: the text, its line (None: it has none) and its number.
TOTALS = {
    "a bound in code": (
        "# Embedding: 9000 * 512 = 4,608,000\n# Layers: 6 * 2,097,152 = 12,582,912\n# Total: 4,608,000 + 6 * 2,097,152 = 17,190,912 (~17.2M)\n"
        "assert 1.7e7 < param_count < 1.8e7\n",
        3, 17_190_912,
    ),
    "a total of embeddings alone": ("# Words: 30522 × 768 = 23,440,896\n# Places: 512 × 768 = 393,216\n# Total: ~23.8M parameters just for embeddings!\n", None, None),
    "a total with its share": ("| Layers | 10 | 20 |\n|---|---|---|\n| Each | 536B | 536B |\n| Total of tables | 5.36T (~10%) | 10.72T (~10%) |\n", None, None),
    "a total of attention": ("- 한 헤드: 2 × 1.57M + 3.14M = 6.28M\n- 파라미터 수 (멀티-헤드 블록): 96개 헤드를 모두 합하면 6.28M × 96 = 602.88M\n", None, None),
    "a total of what is counted again": ("Total : 1 000 calculs\n\n2 × 768 = 1,536\n", None, None),
    "a total before adapters": ("Adapters: 2 × 768 × 16 = 24,576\n\nBEFORE LoRA:\n  Total parameters: 124,439,808\n", 4, 124_439_808),
    "a total with adapters": (
        "总参数量 = 76.5 亿 (模型+LoRA)\n         + 4.56 亿 (新增)\n         + 2.69 亿 (输出)\n         = 约 83.8 亿参数\n\n83.8 亿 x 2 bytes = 16.76 GB\n",
        1, 8_380_000_000,
    ),
    "a total of a base model among adapters": (
        "#### LoRA:\n1. A: 5 × 3072 × 32 = 491,520\n2. B: 5 × 9216 × 32 = 1,474,560\n\n* **Total of the base model**: ≈ 4.08B parameters\n", 5, 4_080_000_000,
    ),
    "a total of parameters among others": (
        "Weights: 768 × 768 = 589,824\nEmbeddings: 50257 × 768 = 38,597,376\n\nTotal params: 589,824 + 38,597,376 = 39,187,200\n\n"
        "Steps: 3 × 40,000,000 = 120,000,000\nCounted in total: 120,000,000 + 12 = 120,000,012\n",
        4, 39_187_200,
    ),
    "a total dimension": ("Total dimension:\n8 × 64 = 512\nFFN: 512 × 2048 = 1,048,576\n", None, None),
    "all layers of one": (
        "Total per layer: about 2.1M\n12 layers:\n12 × 2.1M = 25.2M\n", 3, 25_200_000,
    ),
    "layers times the line above": ("Attention: 4 × 512² = 1.05M\nFFN: 8 × 512² = 2.1M\nTotal per layer: ~3.15M\n\n× 10 layers ≈ 31.5M\n", 5, 31_500_000),
    "a count before the word": ("单层总参数 = 1.1M + 2.1M ≈ 3.2M\n10层总参数 = 3.2M × 10 ≈ 32M\n", 2, 32_000_000),
    "a sum that is said again": (
        "Blocks:\n\n8 × 512² = 2,097,152    one block\n9000 × 512 = 4,608,000    tokens\n128 × 512 = 65,536    positions\n"
        "-------------\n           6,770,688    about 6.8 million\n",
        7, 6_770_688,
    ),
    "the whole model in Portuguese": ("tabela: 9.000 × 512 = 4.608.000\nmodelo inteiro:   17.190.912\n", 2, 17_190_912),
    "a Turkish total": (
        "| Parça | Hesap | Parametre |\n|---|---|---|\n| Gömme | 40 × 8 | 320 |\n| Blok | 12 × 8 | 96 |\n| **Toplam** | | **416** |\n",
        5, 416,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOTALS)
def test_the_total_is_found_where_it_stands(name):
    text, line, total = TOTALS[name]
    answer = tallystick.check(text)
    assert [equation for equation in answer.equations if not equation.correct] == []
    assert (answer.total_line, answer.total_claimed) == (line, total)


def test_a_stated_total_goes_before_the_value_of_a_formula():
    text = (
        "Total = vocab_size × d_model + num_layers × 12 × d_model²\n\nd_model = 768\nnum_layers = 12\nvocab_size = 50257\n"
        "Embedding = 50257 × 768 = 38.6M\nLayer = 12 × 768² ≈ 7M\nTotal = 38.6M + 12 × 7M ≈ 122.6M\n"
    )
    answer = tallystick.check(text, against="gpt2")
    assert (answer.total_line, answer.total_claimed) == (8, 122_600_000)


@pytest.mark.parametrize(("written", "wrong"), [("270,090", False), ("270,990", True)])
def test_a_displayed_sum_with_each_sign_on_its_own_line_is_one_sum(written, wrong):
    text = f"$$\n(600\\times400+400)\n+\n(400\\times74+74)\n+\n16\n=\n{written}\n$$\n"
    assert [equation.should_be for equation in tallystick.check(text).equations] == [270_090 if wrong else None]


def test_a_quotient_is_not_the_numerator_of_a_fraction():
    answer = tallystick.check(
        "D = 4096, F = 12000\nAttention: 4 × D²/(4 × D² + 3 × D × F) = 1/3\nWidth: 3 × D = 12,288\n"
    )
    assert [(one.line, one.correct) for one in answer.equations] == [(3, True)]


def test_a_format_of_code_relates_no_numbers():
    answer = tallystick.check('print(f"d10: {count(10)/1e6:.0f}M")\nWidth: 3 × 4096 = 12,288\n')
    assert [one.line for one in answer.equations] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "- Embedding table: 12288 × 384 = **4,718,592 params**\n"
        "- Previous spec assumed 8192 × 384 = 3,145,728 params\n"
        "- Net: **+1,572,864 params** (model total ~30M → ~31.5M)\n"
        "- Decision recorded: accept 31.5M total rather than trim the width.\n",
        "| words | 130 × 256 | 33,280 |\n|---|---|---|\n| layers | 2 × 852,480 | 1,704,960 |\n| final | 256 | 256 |\n"
        "| **total** | | **~1.74 M** |\n\nAt d=128 the total is ~440 K parameters.\n",
        "  gate: 2048 × 5888 = 12,058,624\n  up: 2048 × 5888 = 12,058,624\n  down: 5888 × 2048 = 12,058,624\n"
        "  Total per MLP: 3 × 2048 × 5888 = 36,175,872 ≈ 36M params\n\n"
        "Experts (smaller, width 736):\n"
        "  gate: 2048 × 736  =  1,507,328\n  up: 2048 × 736  =  1,507,328\n  down: 736 × 2048 =  1,507,328\n"
        "  Total per expert: 3 × 2048 × 736 = 4,521,984 ≈ 4.5M params\n\n"
        "300 experts × 4,521,984 = 1,356,595,200 ≈ 1.36B params per layer\n"
        "Only 8 active:  8 × 4,521,984 =    36,175,872 ≈ 36M params per token\n\n"
        "Compute per token: 36M (8 experts) vs 36M (dense)\n"
        "  → the same active count at these sizes, but the experts hold 1.36B total\n",
    ],
)
def test_a_sentence_that_repeats_a_number_is_no_sum(text):
    assert [one.line for one in tallystick.check(text).equations if not one.correct] == []


def test_an_addend_copies_no_sum_that_it_is_a_part_of():
    text = "total = wte (10,485,760) +\n    wpe (327,680) + blocks (19,671,040) + final norm (1,280) = 30,485,760\n"
    assert tallystick.check(text).correct
