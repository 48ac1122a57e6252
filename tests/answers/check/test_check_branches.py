"""Numbers that the lines below them break down, and sums of what is not parameters."""

import pytest

import tallystick

TREE = """\
Embeddings                  {embeddings}
  ├─ tokens                 38,597,376
  └─ positions              786,432
Blocks                      {blocks}
  ├─ attention (12)         28,348,416
  │    ├─ queries, keys, values   21,261,312
  │    └─ output                  7,087,104
  ├─ MLP (12)               56,669,184
  └─ norms (12)             36,864
Final norm                  1,536
Total                       124,439,808
"""
RIGHT = {"embeddings": "39,383,808", "blocks": "85,054,464"}
BULLETS = """\
- Embeddings: {embeddings}
  - tokens: 38,597,376
  - positions: 786,432
- Blocks: {blocks}
  - attention of 12 layers: 28,348,416
  - MLP of 12 layers: 56,669,184
  - norms of 12 layers: 36,864
- Final norm: 1,536
"""
STEPS = TREE.replace("Embeddings  ", "Step 1: words ").replace("Blocks  ", "Step 2: blocks ")


def wrong_in(text, against=None):
    answer = tallystick.check(text, against=against)
    return [(one.line, one.right, one.should_be) for one in answer.equations if not one.correct]


@pytest.mark.parametrize("against", [None, "gpt2"])
@pytest.mark.parametrize("text", [TREE, BULLETS, STEPS], ids=["tree", "bullets", "steps"])
def test_a_right_breakdown_is_accepted(text, against):
    assert wrong_in(text.format(**RIGHT), against) == []


@pytest.mark.parametrize("against", [None, "gpt2"])
@pytest.mark.parametrize("text", [TREE, BULLETS, STEPS], ids=["tree", "bullets", "steps"])
@pytest.mark.parametrize(
    ("name", "written", "should_be"),
    [
        ("embeddings", "39,388,308", 39_383_808),
        ("blocks", "85,045,464", 85_054_464),
        ("blocks", "85,154,464", 85_054_464),
    ],
)
def test_a_mistyped_number_is_found_by_the_lines_below_it(text, name, written, should_be, against):
    text = text.format(**{**RIGHT, name: written})
    line = next(number for number, one in enumerate(text.splitlines(), 1) if written in one)
    assert (line, int(written.replace(",", "")), should_be) in wrong_in(text, against)
    assert {one[0] for one in wrong_in(text, against)} == {line}


@pytest.mark.parametrize("text", [TREE, BULLETS])
def test_a_breakdown_may_leave_something_out(text):
    lines = text.format(**RIGHT).splitlines()
    assert wrong_in("\n".join(line for line in lines if "norms (12)" not in line and "norms of" not in line)) == []


def test_branches_are_added_once():
    """The total adds the lines above the branches, and not the branches again."""
    answer = tallystick.check(TREE.format(**RIGHT))
    (total,) = (one for one in answer.equations if one.line == 11)
    assert (total.left, total.correct, answer.total_line) == (124_439_808, True, 11)


LAYERS = """\
├── embed: (32000, 512)                      ->  16,384,000
├── 8 x Block:                               ->  {layers}
│   ├── input_norm (RMSNorm 512)             ->         512
│   ├── Attention:
│   │   ├── q: (512 -> 8 * 64 = 512)         ->     262,144
│   │   ├── kv: (512 -> 4 * 64 = 256)        ->     131,072
│   │   └── o: (512 -> 512)                  ->     262,144
│   └── MLP: 3 x (512 -> 1408)               ->   2,162,688
└── norm (RMSNorm 512)                       ->         512
"""


@pytest.mark.parametrize("title", ["8 x Block:  ", "Blocks (×8):", "8 layers:   "])
@pytest.mark.parametrize(
    ("layers", "wrong"),
    [
        ("22,548,480", []),
        ("22,545,480", [(2, 22_545_480, 22_548_480)]),
        ("22,544,384", [(2, 22_544_384, 22_548_480)]),  # without a norm
        ("22,558,480", [(2, 22_558_480, 22_548_480)]),
        ("22,556,672", []),  # with two norms more, which the tree may leave out
        ("22.5M", []),
        ("20.5M", [(2, 20_500_000, 22_548_480)]),
    ],
)
def test_the_branches_of_several_layers_are_those_of_each(title, layers, wrong):
    """8 × (512 + 2 × 262,144 + 131,072 + 2,162,688) = 22,548,480."""
    assert wrong_in(LAYERS.replace("8 x Block:  ", title).format(layers=layers)) == wrong


@pytest.mark.parametrize(("layers", "wrong"), [("85,054,464", []), ("85,045,464", [85_054_464])])
def test_the_branches_of_several_layers_may_be_those_of_all(layers, wrong):
    text = f"- 12 blocks: {layers}\n  - attention: 28,348,416\n  - MLP: 56,669,184\n  - norms: 36,864\n- Final norm: 1,536\n"
    assert [one[2] for one in wrong_in(text)] == wrong


FLOPS = """\
FLOPs_attention = 12 × 603,979,776 = 7,247,757,312
FLOPs_mlp       = 12 × 1,207,959,552 = 14,495,514,624
Total FLOPs     =                   {total}\n                ≈ 21.7 GFLOPs
"""


@pytest.mark.parametrize(
    ("total", "wrong"), [("21,743,271,936", []), ("21,743,272,936", [(3, 21_743_272_936, 21_743_271_936)])]
)
def test_a_sum_of_operations_adds_operations(total, wrong):
    assert wrong_in(FLOPS.format(total=total)) == wrong


def test_operations_and_parameters_are_not_added_to_each_other():
    text = (
        "Attention: 2,359,296 parameters\nMLP: 4,718,592 parameters\nForward pass: 14,155,776 FLOPs\nTotal: 7,077,888\n"
    )
    assert wrong_in(text) == []
    assert tallystick.check(text).total_claimed == 7_077_888


@pytest.mark.parametrize(("written", "wrong"), [("1.8M", []), ("8.1M", [(3, 8_100_000, 1_835_008)])])
def test_a_product_may_have_its_result_below_a_blank_line(written, wrong):
    found = wrong_in(f"Router\n\n7168 × 256\n\n≈ {written}\n".replace("Router\n\n", ""))
    assert [(line + 2, *rest) for line, *rest in found] == wrong


def test_a_wrong_product_is_not_the_total_because_it_is_large():
    text = "One table: 50257 × 768 ≈ 38M\n\nall layers:  12 × 38M = 456M\nevery other:  6 × 38M = 528M\n"
    assert wrong_in(text) == [(4, 528_000_000, 228_000_000)]
    assert tallystick.check(text).total_claimed is None


def test_a_sum_in_millions_that_is_cut_is_corrected_in_its_unit():
    text = "Total: 48 × 40.96 + 2 × 80.41 = 2.12B\n"
    assert wrong_in(text) in ([], [(1, 2_120_000_000, 2_126_900_000)])


@pytest.mark.parametrize(
    ("layers", "wrong"),
    [
        ("12x Decoder Blocks: ~115M", [225_600_000]),
        ("12x Decoder Blocks: ~226M", []),
        ("12x Decoder Blocks: ~18.8M", []),
        ("12x Decoder Blocks: ~19.2M", []),  # of each, with its biases
        ("Decoder Blocks: ~115M", []),
    ],
)
def test_layers_have_no_less_than_what_is_listed_per_layer(layers, wrong):
    text = f"- Embedding: 50257 * 768 = 38.6M\n- {layers}\n  - Attention (per layer): ~9.4M\n  - FFN (per layer): ~9.4M\n- Output: 50257 * 768 = 38.6M\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(
    ("title", "wrong"),
    [
        ("**MoE (393M per layer)**", [603_140_000]),
        ("**MoE (603.1M per layer)**", []),
        ("**MoE (~600M per layer)**", []),
        ("**MoE (28.9B)**", []),  # of all layers
        ("**Block (393M per layer)**", []),  # may have more
        ("**MoE (393 GB per layer)**", []),
    ],
)
def test_a_title_has_the_total_below_it(title, wrong):
    text = f"- {title}\n  - Gate: 2048 × 128 = 0.26M\n  - Experts: 128 × 4.71M = 602.88M\n  - Total MoE per layer: 0.26M + 602.88M = 603.14M\n\nThen the head.\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        ("83.6M", [33_565_000]),
        ("33.6M", []),
        ("33.9M", []),  # may have more, such as its norm
        ("66.8M", []),
    ],
)
def test_a_rounded_number_has_what_its_branches_have(stated, wrong):
    text = f"├── MLP: {stated}\n│   ├── Up: 2048 × 8192 + 8192 = 16.785M\n│   └── Down: 8192 × 2048 + 2048 = 16.78M\n└── Head: 4.20M\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong
