"""Tables whose rows are the parts of a model or of a layer, and the total below them."""

import pytest

import tallystick

LISTED = """\
| Part | Parameters |
|---|---|
| Token embedding | 38,597,376 |
| Position embedding | 786,432 |
| {layers} |
{norm}| **Total** | **124,439,808** |
"""
NORM = "| Final norm | 1,536 |\n"


@pytest.mark.parametrize(
    ("layers", "norm", "wrong"),
    [
        ("Blocks (×12) | 85,054,464", NORM, []),
        ("Blocks (×12) | 85,054,464", "", []),  # a list may leave out the norm
        ("Blocks (×12) | 84,934,656", NORM, [124_320_000]),  # without biases
        ("12 layers | 85,017,600", NORM, [124_402_944]),  # without those of the attention
        ("Attention and MLP | 84,934,656", NORM, []),  # not whole layers
    ],
)
def test_a_total_that_is_copied_from_the_model_is_not_that_of_its_list(layers, norm, wrong):
    answer = tallystick.check(LISTED.format(layers=layers, norm=norm), against="gpt2")
    assert [one.should_be for one in answer.equations if not one.correct] == wrong
    assert answer.total_claimed == 124_439_808


def test_parts_that_are_named_like_sizes_are_added():
    """16,384 + 16,384 + 4,160 + 4,160 = 41,088."""
    parts = "- ffn_up: 16,384\n- ffn_down: 16,384\n- embed_tokens: 4,160\n- head_out: 4,160\n\n"
    assert [one.should_be for one in tallystick.check(f"{parts}Total: 41,098\n").equations] == [41_088]
    assert [one.correct for one in tallystick.check(f"{parts}Total: 41,088\n").equations] == [True]


@pytest.mark.parametrize("letters", [("`E` (embedding, tied)", "`P` (positions)"), ("E (words)", "P (positions)")])
def test_a_row_with_the_letter_of_a_size_is_a_part(letters):
    """28,391,424 + 19,298,688 + 393,216 + 768 = 48,084,096."""
    words, positions = letters
    text = (
        "| Part | Parameters | Share |\n|---|---|---|\n| Blocks (x16) | 28,391,424 | 59.0% |\n"
        f"| {words} | 19,298,688 | 40.1% |\n| {positions} | 393,216 | 0.8% |\n"
        "| Final norm | 768 | 0.0% |\n| **Total** | **{}** | 100% |\n"
    )
    assert [one.should_be for one in tallystick.check(text.format("48,084,096")).equations if not one.correct] == []
    found = tallystick.check(text.format("48,094,096")).equations
    assert [one.should_be for one in found if not one.correct] == [48_084_096]


PER_LAYER = """\
| Part | Shape | Parameters |
|---|---|---|
| Tokens | (50257, 768) | 38,597,376 |
| Attention {one} | 4 x (768, 768) | 2,359,296 |
| MLP {one} | (768, 3072) + (3072, 768) | 4,718,592 |
| Norms {one} | 2 x 768 x 2 | 3,072 |
| Last norm | 768 x 2 | 1,536 |
| **{total}** | | **{value}** |
"""


@pytest.mark.parametrize(
    ("one", "total"),
    [
        ("per block", "Total per block"),
        ("ブロック当たり", "ブロック当たり合計"),
        ("na blok", "Łącznie na blok"),
        ("par bloc", "Total par bloc"),
        ("pro Block", "Summe pro Block"),
        ("mỗi layer", "Tổng mỗi layer"),
        ("por layer", "Total por layer"),
        ("레이어 당", "레이어 당 합계"),
    ],
)
def test_the_total_of_a_layer_adds_only_its_rows(one, total):
    text = PER_LAYER.format(one=one, total=total, value="7,080,960")
    assert all(found.correct for found in tallystick.check(text).equations)
    for value in ("7,080,690", "7,780,960"):
        wrong = tallystick.check(PER_LAYER.format(one=one, total=total, value=value))
        assert [found.should_be for found in wrong.equations if not found.correct] == [7_080_960]


@pytest.mark.parametrize(
    ("note", "wrong"),
    [
        ("not counted, not learned", [19_019_776]),
        ("不计入", [19_019_776]),
        ("nicht mitgezählt", [19_019_776]),
        ("learned", [19_150_848]),
    ],
)
def test_a_part_that_is_not_counted_is_not_added(note, wrong):
    text = (
        f"- Positional embedding: 256 × 512 = 131,072 ({note})\n- Token embedding: 260 × 512 = 133,120\n"
        "- 6 blocks: 3,147,776 × 6 = 18,886,656\n- **Total: {} parameters**\n"
    )
    assert [one.should_be for one in tallystick.check(text.format("19,091,776")).equations if not one.correct] == wrong
    for total in ("19,019,776", "19,150,848"):  # a total may have it or not
        assert all(one.correct for one in tallystick.check(text.format(total)).equations)


@pytest.mark.parametrize(
    ("total", "wrong"), [("Total", [50_900_000]), ("Total (non-embedding)", []), ("Total without embeddings", [])]
)
def test_a_rounded_total_does_not_leave_out_the_embedding(total, wrong):
    text = (
        "- **Embedding**: 50,257 × 512 = 25.7M\n- **8 Attention Layers**: 8 × (4 × 512²) = 8.4M\n"
        f"- **8 FFN Layers**: 8 × (3 × 512 × 1,365) = 16.8M\n- **{total}**: ~25M parameters\n"
    )
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ("32 blocks: 6.44 billion\nEmbedding: 32,000 × 4096 = 131 million", [6_571_000_000]),
        ("32 blocks: 6.98 billion\nEmbedding: 128,256 × 4096 = 525 million", []),  # the head is left out
        ("32 blocks: 6.44 billion", []),  # no list of the model
    ],
)
def test_a_total_that_rounds_the_models_is_not_the_sum_of_another_list(rows, wrong):
    answer = tallystick.check(f"{rows}\nTotal: ≈ 8 billion parameters\n", against="llama-3-8b")
    assert [one.should_be for one in answer.equations if not one.correct] == wrong
    assert answer.total_claimed == 8_000_000_000


@pytest.mark.parametrize(
    ("qkv", "wrong"), [("2304 = 1,769,472", []), ("2560 = 1,966,080", []), ("9216 = 7,077,888", [188_056_320])]
)
def test_a_list_of_one_layer_adds_up_to_the_models_total(qkv, wrong):
    """38,597,376 + 786,432 + 12 × (7,077,888 + 589,824 + 4,718,592 + 3,072) = 188,056,320."""
    text = (
        "Parameters:\n- Embeddings: 50257 × 768 = 38,597,376\n- Positions: 1024 × 768 = 786,432\n- Attention (per layer):\n"
        f"  - QKV: 768 × {qkv}\n  - Output: 768 × 768 = 589,824\n- MLP (per layer):\n  - Up: 768 × 3072 = 2,359,296\n"
        "  - Down: 3072 × 768 = 2,359,296\n- Norms (per layer): 4 × 768 = 3,072\n\nTotal: ~124.4M\n"
    )
    answer = tallystick.check(text, against="gpt2")
    assert [one.should_be for one in answer.equations if not one.correct] == wrong


BOX = """\
┌─────────────────────┬───────────────────┐
│  Component          │  Parameters       │
├─────────────────────┼───────────────────┤
│  Token Embedding    │  8192 × 512 = 4M  │
│  Attention (×6)     │  6 × 1M = 6M      │
│  FFN (×6)           │  6 × 2M = 12M     │
│  Output Projection  │  512 × 8192 = 4M  │
├─────────────────────┼───────────────────┤
│  TOTAL              │  ~{total}M parameters │
│  FP16 size          │  ~30 MB           │
└─────────────────────┴───────────────────┘
"""


@pytest.mark.parametrize(("total", "wrong"), [("26", []), ("15", [26_000_000])])
def test_a_drawn_table_has_rows_and_a_total(total, wrong):
    answer = tallystick.check(BOX.format(total=total))
    assert [one.should_be for one in answer.equations if not one.correct] == wrong
    assert answer.total_line == 9


@pytest.mark.parametrize(("total", "wrong"), [("~1.3B", []), ("~1.2B", [1_285_800_000])])
def test_a_title_with_the_total_is_no_item_of_its_list(total, wrong):
    text = f"# Count: {total} total parameters\n# Embedding: 50257 × 2048 = 102.9M\n# Layers: 24 × 45.1M = 1.08B\n# Head: 50257 × 2048 = 102.9M\n# Total: {total} parameters\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(("total", "wrong"), [("~353K", []), ("~223K", [352_640]), ("~1.2M", [])])
def test_a_total_is_no_less_than_its_list_whatever_a_small_item_is(total, wrong):
    text = (
        "- Token embeddings: 65 × 128 = 8,320\n- Position embeddings: 64 × 128 = 8,192\n"
        "- Attention weights: 4 × (128 × 128 × 3) = 196,608\n- Feed-forward: 128 × 512 + 512 × 128 = 131,072\n"
        f"- Layer norms: ~128 parameters each\n- Output: 128 × 65 = 8,320\n\nTotal: {total} parameters\n"
    )
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


# Layers and embeddings, and one layer whose norms stand in parentheses.
STACK = "One layer: 12 × 768² ≈ 7M\n\n**12 layers:** ≈ 84M\n**Embeddings:** 50,257 × 768 ≈ 38.6M\n**Total:** ≈ {}\n"
ASIDES = (
    "Words: 1000 * 512 = 512,000.\nPer layer: attention (4 * 512 * 512 = 1,048,576), router (512 * 8 = 4,096), "
    "norms (2 * 512 = 1,024), in total 1,053,696.\n24 layers: 25,288,704. That is all.\nTotal: {}.\n"
)


@pytest.mark.parametrize(
    ("text", "total", "wrong"),
    [
        (STACK, "117M", [122_600_000]),
        (STACK, "122.6M", []),
        (STACK, "123M", []),
        (STACK, "124M", []),
        (ASIDES, "25,800,704", []),
        (ASIDES, "25,807,704", [25_800_704]),
    ],
)
def test_a_total_is_no_less_than_all_that_is_above_it(text, total, wrong):
    assert [one.should_be for one in tallystick.check(text.format(total)).equations if not one.correct] == wrong
