"""What people write and mean is not called wrong: units left out, shares, rates, shapes, words among numbers."""

import pytest

import tallystick

RIGHT = [
    "Parameters: 64 × 4096 × 71,000 = 18.6",  # in billions
    "Projections: 3 × 2 × 1024 × 1600 × 1600 = 15.7G FLOPs",
    "The table: 196,608 × 1,024 × 2 bytes = 384 MB",  # of 1,048,576 bytes
    "LoRA: 8 × (64 + 64) = 1,024 parameters = 25% of W",
    "Of all modules: 48 × 768 × 16 = 589,824 params = 2,359,296 bytes",
    "Total: 80 × 65,536 ≈ 5.2M params × 4 bytes ≈ 21 MB",
    "Attention (4 matrices) = 0.65M × 4 ≈ 2.6M",
    "A quarter: 470,268,510 / 4 = 117,567,128",
    "q: A(1536 × 8) + B(8 × 1536) = 24,576",
    "Key: 128 -> 32 = 128 × 32 = 4,096",
    "QK = (512 × 64) × (64 × 512) = 512 × 512",
    "k_proj     in=1536  out= 256",
    "67.95 GB / 120.8B weights ≈ 4.5 bpw",
    "Savings: 50257×768 = 38,6 млн параметров",
    "Large: 64 * 4096 * (3*16384 + 2*256*40) + 4096*32128 = 18.4e9.",
    "norms: 16×128 = 2K (Q) + 8×128 = 1K (K)",
]
WRONG = [
    ("Embedding: 50257 × 768 = 38,596,416 params saved", 38_597_376),
    ("All: 12 × 768 × 12 = 110M", 110_592),
    ("Block: 24,576 + 14,336 = 38,912 × 28 blocks = 1,089,537", 1_089_536),
    ("Sizes: 92 × 4 × 4 = 1,473", 1_472),
]


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_meant_is_not_wrong(text):
    answer = tallystick.check(f"Sizes: 2 × 768 = 1,536\n{text}\n")
    assert [equation for equation in answer.equations if not equation.correct] == []


@pytest.mark.parametrize(("text", "right"), WRONG)
def test_a_slip_next_to_units_is_found(text, right):
    answer = tallystick.check(f"Sizes: 2 × 768 = 1,536\n{text}\n")
    assert [equation.should_be for equation in answer.equations if not equation.correct] == [right]


def test_labelled_numbers_that_stand_alone_are_judged_by_the_model():
    text = """\
| Part | Shape | Parameters |
|---|---|---|
| Token embedding | (50257, 768) | 38,597,376 |
| 12 blocks of attention | | 28.3M |
| MLP of one layer | | 4,722,432 |
| Head of a classifier | | 1,234,567 |
"""
    answer = tallystick.check(text, against="gpt2")
    assert [(one.line, one.matches) for one in answer.equations] == [
        (3, "token embedding"), (4, "attention of 12 layers, without biases"), (5, "MLP of one layer"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "number", "what"),
    [
        ("word embeddings", 30522 * 768, "token embedding"),
        ("segment embeddings", 2 * 768, "segment embedding"),
        ("embedding LayerNorm", 2 * 768, "norm of the embeddings"),
        ("FFN in", 768 * 3072 + 3072, "up projection of the MLP of one layer"),
        ("FFN out", 3072 * 768 + 768, "down projection of the MLP of one layer"),
        ("pooler", 768 * 768 + 768, "pooler"),
        ("每层注意力 (W_Q, W_K, W_V, W_O)", 4 * (768 * 768 + 768), "attention of one layer"),
    ],
)
def test_the_parts_of_bert_have_their_names(label, number, what):
    bert = {"model_type": "bert", "architectures": ["BertModel"]}
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n{label}: {number} = {number:,}\n", against=bert)
    assert answer.equations[-1].matches == what


def test_one_expert_has_its_name():
    answer = tallystick.check("One expert: 3 × 4096 × 14336 = 176,160,768\n", against="mixtral-8x7b")
    assert answer.equations[-1].matches == "one expert of one layer"


def test_a_label_that_names_another_size_says_so():
    (equation,) = tallystick.check("Positions: 50257 × 768 = 38,597,376\n", against="gpt2").equations
    assert equation.label_names == "position embedding has 786,432"


COLUMN = """\
Token embedding: 50257 × 768 = 38,597,376
Position embedding: 1024 × 768 = 786,432
12 blocks: 12 × {block} = {blocks}
Final norm: 2 × 768 = 1,536
{more}--------------------------------
Total: {total}
"""
EXACT = {"block": "7,087,872", "blocks": "85,054,464", "more": "", "total": "124,439,808"}


@pytest.mark.parametrize(
    ("change", "should_be"),
    [
        ({"block": "7,084,800", "blocks": "85,017,600"}, 124_402_944),  # and not what is listed, though the model's
        ({"total": "124.0M"}, 124_439_808),
        ({"total": "124.4M"}, None),
        ({}, None),
        ({"block": "7,084,800", "blocks": "85,017,600", "more": "Biases of the attention, 36,864\n"}, None),
        ({"total": "124,402,944", "more": "less the biases: 36,864\n"}, None),
        ({"total": "124,402,944", "more": "Biases: -36,864\n"}, None),
        ({"total": "354,823,168"}, None),  # far from it: another model's
    ],
)
def test_a_total_below_a_drawn_line_is_the_sum_of_the_column(change, should_be):
    answer = tallystick.check(COLUMN.format(**EXACT | change), against="gpt2")
    assert [e.should_be for e in answer.equations if not e.correct] == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(
    ("total", "should_be"), [("~6.7B", 6_573_500_000), ("~6.6B", None), ("~12.9B", None), ("6.57B", None)]
)
def test_a_total_of_a_table_is_the_sum_of_its_rows(total, should_be):
    text = (
        "| Part | Count |\n|---|---|\n| Embedding | 32000 × 4096 = 131M |\n| Attention (32 layers) | 32 × 67M = 2147M |\n"
        "| MLP (32 layers) | 32 × 134.2M = 4295M |\n| Norms | 0.5M |\n| Head | shared |\n"
        + f"| **Total** | {total} |\n"
    )
    answer = tallystick.check(text, against="llama-2-7b")
    assert [e.should_be for e in answer.equations if not e.correct] == ([] if should_be is None else [should_be])


def test_a_table_of_sizes_has_no_sum():
    text = (
        "| | Large | Small |\n|---|---|---|\n| width | 1536 | 1024 |\n| layers | 28 | 20 |\n| inner | 3072 | 1536 |\n"
        "| Parameters in total | ~5,000 | ~2,700 |\n"
    )
    assert all(e.correct for e in tallystick.check(text).equations)


def test_variables_that_get_their_values_together():
    code = "d, n_head, size = 768, 12, 64\na, b = 3, f(4)\n\nattention = 4 * d * n_head * size  # 2,359,297\n"
    answer = tallystick.check(code)
    assert [(e.line, e.should_be) for e in answer.equations] == [(4, 2_359_296)]
