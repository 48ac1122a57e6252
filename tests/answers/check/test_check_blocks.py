"""A total and the block that it ends: the lines right above it, and no others."""

import pytest

import tallystick

MLP = "FFN:\n  gate: 4096 × 11008 = 45.1M\n  up:   4096 × 11008 = 45.1M\n  down: 11008 × 4096 = 45.1M\n  {}\n"
EXACT = "FFN:\n  up: 1000 × 4000 = 4,000,000\n  down: 4000 × 1000 = 4,000,000\n  {}\n"
SHORT = "FFN:\n  up: 512 × 2048 = 1.05M\n  down: 2048 × 512 = 1.05M\n  {}\n"
MODEL = "```\nWords: 32000 × 1024 = 32.8M\nEach layer: 4 × 1024² = 4.2M\n12 layers: 12 × 4.2M = 50.4M\nMLP: 12 × 8 × 1024² = 100.7M\n{}\n```\n"
TABLE = (
    "| Part | Parameters |\n|---|---|\n| Token embedding | 8,000 × 256 = 2,048,000 |\n| Per block | 786,432 = 12 × 256² |\n"
    "| All 6 blocks | 6 × 786,432 = 4,718,592 |\n| Norms | 2 × 1000 = 2,000 |\n{}\n"
)
TREE = "Embedding ({}, 31%)\n├─ words: 50,257 × 768 = 38.60M\n└─ positions: 1,024 × 768 = 0.79M\n\nLayers: 12 × 7.1M = 85.2M\n"


def slips(text):
    return [one.should_be for one in tallystick.check(text).equations if not one.correct]


@pytest.mark.parametrize(
    ("text", "total", "should_be"),
    [
        (MLP, "소계: 135.3M", None),
        (MLP, "소계: 335.3M", 135_300_000),
        (MLP, "Subtotal: 125.1M", 135_300_000),
        (MLP, "Subtotal: 435.9M", None),  # two digits: it may be more than the block
        (SHORT, "Total FFN: ~2.1M", None),
        (SHORT, "Total FFN: ~9.1M", 2_100_000),
        (SHORT, "레이어당 총: 9.10M", 2_100_000),
        (EXACT, "Total FFN: ~8M", None),
        (EXACT, "Total FFN: ~9M", None),  # there may be biases
        (EXACT, "Total FFN: 11,000,000", 8_000_000),
        (MODEL, "Total: ~184M parameters", None),
        (MODEL, "Total: ~220M parameters", None),
        (MODEL, "Total: ~285M parameters", 183_900_000),
        (MODEL, "Total: ~7B parameters", None),  # of a larger model, perhaps
        (TABLE, "| **Total** | **~6.8M** |", None),
        (TABLE, "| **Total** | **~4.7M** |", 6_768_592),
        (TABLE, "| **Total without embeddings** | **~4.7M** |", None),
        (TREE, "39.4M", None),
        (TREE, "38.7M", 39_390_000),
        (TREE, "49.7M", None),  # it may have a third branch
    ],
)
def test_a_total_and_its_block(text, total, should_be):
    assert slips(f"Sizes: 2 × 3 = 6\n\n{text.format(total)}") == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(
    ("comment", "above", "wrong"),
    [
        ("", "MLP:", True),
        ("", "# MLP", True),
        ("", "The gate has 30M too.", False),
        ("# ", "MLP:", True),
        ("# ", "The gate has 30M too.", False),
    ],
)
def test_a_block_is_closed(comment, above, wrong):
    """A total may also add the line above the block, if that has a number and is indented alike."""
    block = ["up: 4096 × 11008 = 45.1M", "down: 11008 × 4096 = 45.1M", "Total MLP: 150.7M"]
    text = "\n".join(comment + line for line in [above, *block])
    assert slips(f"Sizes: 2 × 3 = 6\n\n{text}") == ([90_200_000] if wrong else [])


def test_the_embedding_of_a_table_may_be_tied():
    assert (
        slips(TABLE.replace("Token embedding", "Token embedding (tied, not counted)").format("| Total | ~4.7M |")) == []
    )


def test_a_total_between_two_trees_ends_the_first_one():
    text = "├── A: 7 × 1000 = 7K\n└── B: 93 × 1000 = 93K\n\nTower total: ~100K\n\n├── C: 4 × 1000 × 40 = 160K\n└── D: 313 × 1000 = 313K\n\nRest: 473K\n"
    assert slips(f"Sizes: 2 × 3 = 6\n\n{text}") == []


@pytest.mark.parametrize(("total", "should_be"), [("~113M", None), ("~115M", None), ("~117M", 151_800_000)])
def test_a_tied_table_may_be_left_out_of_a_list(total, should_be):
    text = (
        "- Words: 50257 × 768 = 38.6M (tied with the head)\n- Attention: 12 × 4 × 768² = 28.3M\n"
        f"- MLP: 12 × 3 × 768 × 3072 = 84.9M\n- Total: {total}\n"
    )
    assert slips(f"Sizes: 2 × 3 = 6\n\n{text}") == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(("total", "wrong"), [("302,319,872", []), ("300,124,416", [302_319_872]), ("250,856,704", [])])
def test_an_exact_total_of_a_list_with_a_tied_table_leaves_out_nothing_else(total, wrong):
    """It has the table twice, or once."""
    text = (
        "Word table            51,463,168\nPositions              2,097,152\nBlocks (×24):\n  Attention          100,663,296\n"
        f"  MLP                 96,534,784\n  Norms                   98,304\nOutput head (tied)    51,463,168\nTOTAL                {total}\n"
    )
    assert slips(text) == wrong


@pytest.mark.parametrize(("block", "wrong"), [("7.09M", []), ("7.08M", []), ("8.09M", [7_087_872])])
def test_a_rounded_block_is_the_sum_of_the_rounded_lines_or_of_what_these_round(block, wrong):
    text = (
        "1. Layers:\n   - Attention: 3 × (768 × 768 + 768) + 768 × 768 + 768 ≈ 2.36M\n   - MLP: 768 × 3072 + 3072 + 3072 × 768 + 768 ≈ 4.72M\n"
        f"   - Norms: 3,072\n   - Per block: {block}, 48 blocks: 340.22M\n2. Pooler: 0.59M\n"
    )
    assert slips(text) == wrong


def test_a_total_far_below_its_list_is_of_something_else():
    rows = "| Words | 50257 × 768 = 38.6M |\n| Layers (tied) | 12 × 7.1M = 85.2M |\n| Norms (38 total) | 0.4 | ~0.01M × 38 |\n"
    assert slips(f"Sizes: 2 × 3 = 6\n\n{rows}") == []


NORMS = """\
Per layer:
- Attention: 4 × 192² = 147,456
- Attention norm: 2 × 192 = 384
- MLP: 2 × 192 × 768 = 294,912
- MLP norm: 2 × 192 = 384
- Total per layer: {total} params
"""


@pytest.mark.parametrize(("total", "wrong"), [("443,136", []), ("442,752", [443_136]), ("443K", [])])
def test_an_exact_total_leaves_out_no_norm_of_its_list(total, wrong):
    """147,456 + 384 + 294,912 + 384 = 443,136."""
    answer = tallystick.check(NORMS.format(total=total))
    assert [one.should_be for one in answer.equations if not one.correct] == wrong


@pytest.mark.parametrize(("layers", "wrong"), [("503,464,344", []), ("503,425,041", [503_464_344])])
def test_all_layers_have_the_subtotal_of_one_as_often_as_there_are_layers(layers, wrong):
    text = (
        "QKV projection            1,024 x 3,072       3,145,728\nOutput projection         1,024 x 1,024       1,048,576\n"
        "Experts (4 matrices)      8 x (1,024 x 2,048)      16,777,216\nNorms, router and scalars                 6,161\n"
        f"Subtotal per Layer                           20,977,681\nTotal for 24 Layers                         {layers}\n"
    )
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(("layers", "wrong"), [("85.2M", []), ("85.0M", []), ("84.9M", []), ("85.3M", [85_200_000])])
def test_layers_go_on_from_one_that_is_rounded_or_from_what_it_rounds(layers, wrong):
    """12 × 7.1M = 85.2M, and 12 × 7,079,424 = 84.95M."""
    text = (
        "Per block:\n  QKV: 3×768×768 = 1,769,472\n  Proj: 768×768 = 589,824\n  Norms: 2×768 = 1,536\n"
        f"  FFN: 2×(768×3072) = 4,718,592\n  Total: ~7.1M per block\n\n12 blocks: {layers}\n"
    )
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong
