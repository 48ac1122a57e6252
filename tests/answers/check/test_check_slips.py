"""Slips in totals and subtotals that only the lines around them show, and what is no slip there."""

from __future__ import annotations

import pytest

import tallystick


def slips(text, against=None):
    return [(e.line, e.should_be) for e in tallystick.check(text, against=against).equations if not e.correct]


SHARES = """\
| Part | Parameters | Share |
|---|---|---|
| Tokens | 38.6M | 23.7% |
| Positions | 0.8M | {positions}% |
| 12 blocks | 85.0M | 52.1% |
| Head | 38.6M | 23.7% |
| **Total** | **{total}M** | **100%** |
"""


@pytest.mark.parametrize(
    ("total", "positions", "should_be"),
    [
        ("169.0", "0.5", 163_000_000),
        ("163.0", "0.5", None),
        ("169.0", "0.1", 163_000_000),  # shares are rounded
        ("169.0", "2.5", None),  # the shares do not say that the rows are all
    ],
)
def test_rows_whose_shares_are_a_hundred_percent_are_the_total(total, positions, should_be):
    found = slips(SHARES.format(total=total, positions=positions))
    assert found == ([] if should_be is None else [(7, should_be)])


@pytest.mark.parametrize(("total", "should_be"), [("178B", 174_617_000_000), ("175B", None), ("174.6B", None)])
def test_a_rounded_total_near_the_model_has_a_digit_wrong(total, should_be):
    gpt3 = {"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96, "n_positions": 2048}
    text = f"Embedding: 50257 × 12288 ≈ 617M\nLayers: 96 × 12 × 12288² ≈ 174B\nTotal: ≈ {total}\n"
    assert slips(text, gpt3) == ([] if should_be is None else [(3, should_be)])


@pytest.mark.parametrize(
    ("total", "should_be"),
    [("76.8M", None), ("78.6M", 76_800_000), ("77.8M", None)],  # one digit more may be another part
)
def test_two_swapped_digits_of_a_rounded_total(total, should_be):
    text = f"Input: 50000 × 768 = 38.4M\nOutput: 768 × 50000 = 38.4M\nTotal = {total}\n"
    assert slips(text) == ([] if should_be is None else [(3, should_be)])


@pytest.mark.parametrize(
    ("total", "should_be"), [("33,920", None), ("43,920", 33_920), ("45,000", 33_920), ("95,000", None)]
)
def test_a_short_exact_total_with_a_digit_wrong(total, should_be):
    text = f"Before: 3×3×128×256 = 294,912\n\nDepth: 3×3×128×1 = 1,152\nPoint: 1×1×128×256 = 32,768\nTotal: {total}\n"
    assert slips(text) == ([] if should_be is None else [(5, should_be)])


@pytest.mark.parametrize(("subtotal", "should_be"), [("7,087,872", None), ("7,087,782", 7_087_872)])
def test_the_bias_of_a_projection_is_not_the_norms_of_that_size(subtotal, should_be):
    text = (
        "Per block: norms 2 × 2 × 768 = 3,072; QKV 768 × 2304 + 2304 = 1,771,776; output 768² + 768 = 590,592; "
        f"up 768 × 3072 + 3072 = 2,362,368; down 3072 × 768 + 768 = 2,360,064. Subtotal {subtotal}.\n"
        "All: 12 × 7,087,872 = 85,054,464\n"
    )
    answer = tallystick.check(text, against="gpt2")
    assert [e.should_be for e in answer.equations if not e.correct] == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(("total", "should_be"), [("336.5B", None), ("326.5B", 336_500_000_000)])
def test_a_total_that_its_own_rounding_contradicts(total, should_be):
    parts = "a = 45.5B\nb = 38.7B\nc = 173.2B\nd = 79.1B\n".replace(" =", ":")
    assert slips(f"{parts}Total: {total} ≈ 0.34T\n") == ([] if should_be is None else [(5, should_be)])


@pytest.mark.parametrize(
    ("total", "should_be"),
    [("63,700,992", None), ("63,708,992", 63_700_992), ("77,865,984", None)],  # the layer's total
)
def test_each_and_in_total(total, should_be):
    text = f"Sizes: 9216 × 2304 = 21,233,664\n- gate、up、down 各 21,233,664，合計 {total}。\n"
    assert slips(text) == ([] if should_be is None else [(2, should_be)])


@pytest.mark.parametrize(("layers", "should_be"), [("84,934,656", None), ("74,934,656", 84_934_656)])
def test_a_count_of_layers_in_parentheses(layers, should_be):
    text = f"Attention: 2,359,296\nMLP: 4,718,592\nLayer total = 7,077,888\nLayers total (12) = {layers}\n"
    assert slips(text) == ([] if should_be is None else [(4, should_be)])


@pytest.mark.parametrize(("total", "should_be"), [("30.72M", None), ("30.76M", 30_720_000), ("10.24M", None)])
def test_parts_that_one_line_calls_equal(total, should_be):
    text = f"FFN:\n    w1=w2=w3: h * d_ff = 1600 * 6400 = 10.24M\n    total: {total}\n"
    assert slips(text) == ([] if should_be is None else [(3, should_be)])


@pytest.mark.parametrize(
    ("total", "should_be"),
    [("69,632", None), ("96,632", 69_632), ("70,000", None), ("16,384", None)],
)
def test_a_sum_in_a_korean_sentence(total, should_be):
    text = (
        "먼저 채널을 줄인다(1·1·256·64 = 16,384개). 다음은 여기서만 한다(3·3·64·64 = 36,864개). "
        f"마지막에 되돌린다(16,384개). 합쳐서 {total}개, 아까의 8분의 1이다."
    )
    assert slips(text) == ([] if should_be is None else [(1, should_be)])


@pytest.mark.parametrize(("number", "should_be"), [("14,495,914,624", 14_495_514_624), ("14,495,514,624", None)])
def test_a_line_that_multiplies_the_one_above_by_several_counts(number, should_be):
    text = f"d_query (128) * d_embed (12,288) = 1,572,864 per head\nx 96 heads * 96 layers = {number}\n"
    assert slips(text) == ([] if should_be is None else [(2, should_be)])
    if should_be is None:
        assert tallystick.check(text).unread == ()


@pytest.mark.parametrize(("number", "should_be"), [("1,489,286,144", 1_409_286_144), ("1,409,286,144", None)])
def test_words_before_a_count_of_the_line_above(number, should_be):
    text = f"one expert          3 × 4096 × 14336 = 176,160,768\nexperts per layer   × 8              = {number}\n"
    assert slips(text) == ([] if should_be is None else [(2, should_be)])


PARTS = """\
{tokens} per la tabella dei pezzi.

786.432 per le posizioni.

85.054.464 per i 12 strati.

Più {norm} di rifinitura.

Totale: {total}
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, []),
        ({"tokens": "38.297.376"}, [(1, 38_597_376)]),  # the total is the model's: the part has a digit wrong
        ({"tokens": "38.297.377"}, []),  # two digits
        ({"tokens": "38.297.376", "norm": "301.536"}, []),  # the parts add up
    ],
)
def test_a_part_with_a_digit_wrong_below_which_the_total_is_the_models(change, found):
    text = PARTS.format(**{"tokens": "38.597.376", "norm": "1.536", "total": "124.439.808"} | change)
    assert slips(text, "gpt2") == found
    wrong = [one.matches for one in tallystick.check(text, against="gpt2").equations if not one.correct]
    assert wrong == ["token embedding"] * len(found)


def test_a_total_of_rows_with_a_line_without_a_number_between():
    text = (
        "├── Tokens: 50,257 × 768 = 38,597,376 params\n└── Positions: 1,024 × 768 = 786,432 params\n\n"
        "Blocks: 7,080,960 params × 12 = 84,971,520 params\n\n└── Final norm: 768 × 2 = 1,536 params\n"
        "└── LM head: tied with the tokens (0 more)\n\nTotal parameters: 124,089,000\n"
    )
    assert slips(text, "gpt2") == [(9, 124_356_864)]


@pytest.mark.parametrize(("total", "should_be"), [("約49,400", 49_280), ("約49,300", None)])
def test_the_first_layer_is_not_a_number_for_each_layer(total, should_be):
    text = (
        f"QKV: 64×64×3 = 12,288\n出力: 64×64 = 4,096\n第1層: 64×256 = 16,384\n第2層: 256×64 = 16,384\nNorm: 64×2 = 128\n"
        f"────────────\nBlock合計:     {total}\n"
    )
    assert slips(text) == ([] if should_be is None else [(7, should_be)])


@pytest.mark.parametrize(("subtotal", "should_be"), [("1,183,488", 1_182_720), ("1,182,720", None)])
def test_a_subtotal_is_the_sum_of_the_lines_of_its_block(subtotal, should_be):
    text = (
        "Embedding: 50257 × 768 = 38,597,376\n\nAttention:\n  Q: Linear(768 → 768) = 590,592 params\n"
        f"  K: Linear(768 → 768) = 590,592 params\n  Norm: 768 × 2 = 1,536 params\n  Subtotal: {subtotal} params\n"
    )
    assert slips(text) == ([] if should_be is None else [(7, should_be)])


@pytest.mark.parametrize(("total", "should_be"), [("401,227,776", 401_240_160), ("401,240,160", None)])
def test_an_exact_total_is_not_less_than_its_parts(total, should_be):
    """A table has this total too, for blocks with another number."""
    table = "| Tokens | 57,950,208 |\n| Blocks (20×) | 285,327,360 |\n| Head | 57,950,208 |\n| **Total** | **401,227,776** |\n"
    text = (
        f"| Part | Parameters |\n|---|---|\n{table}\n20 Blocks:     285,337,440 params\nEmbeddings:    57,950,208 params\n"
        f"Output:        57,950,208 params\nNorms:         2,304 params\n\nGrand Total:   {total} params\n"
    )
    assert slips(text) == ([] if should_be is None else [(13, should_be)])


@pytest.mark.parametrize(("number", "should_be"), [("~90M", 135_266_304), ("~135M", None)])
def test_a_formula_in_the_models_own_sizes_far_from_its_number(number, should_be):
    text = f"| Part | Formula | Llama (d=4096, L=32) |\n|---|---|---|\n| FFN (per layer) | $2 \\times d \\times d_{{ff}} + d \\times d_{{ff}}$ | {number} |\n"
    assert slips(text, "llama-7b") == ([] if should_be is None else [(3, should_be)])


TREE = """\
├── Patches: 768 × 768 = 590K
├── Positions: 1024 × 768 = 786K
├── 12 layers:
│   ├── Attention (per layer):
│   │   ├── Q: 768 × 768 = 590K
│   │   └── Subtotal: 2.36M × 12 = 28.3M
│   └── MLP (per layer):
│       ├── Up: 768 × 3072 = 2.36M
│       ├── Down: 3072 × 768 = 2.36M
│       └── Subtotal: 4.72M × 12 = 56.6M
└── Head: 768 × 768 = 590K

Encoder total: {total}
"""
LIST = """\
#   - Embeddings: 151936 × 1024 = 155.6M
#   - Attention per layer: Q(1M) + K(0.5M) + V(0.5M) + O(1M) = 3M
#   - FFN per layer: 3 × 1024 × 3072 = 9.4M
#   - 28 layers × 12.4M = 347M
#   - Output layer: 1024 × 151936 = 155.6M
#   - Total: {total}
"""


@pytest.mark.parametrize(
    ("text", "total", "should_be"),
    [
        (TREE, "~93M", 86_866_000),
        (TREE, "~87M", None),
        (TREE, "~93M with norms", None),  # which are not listed
        (TREE, "~88M", None),  # norms and biases may make it
        (LIST, "~621M", 658_200_000),
        (LIST, "~658M", None),
    ],
)
def test_a_rounded_total_is_the_sum_of_the_list_above_it(text, total, should_be):
    found = [one for one in slips(text.format(total=total)) if one[1] == should_be]
    assert len(found) == (should_be is not None)
    assert should_be is not None or slips(text.format(total=total)) == []


@pytest.mark.parametrize(
    ("line", "should_be"),
    [
        ("Position embeddings : 386,432 (0.79M)", 786_432),
        ("Position embeddings : 786,432 (0.79M)", None),
        ("Token embedding: 33.6M", 38_597_376),
        ("Token embedding: 38.6M", None),
        ("Each layer: 7.1M", None),  # without biases
        ("Attention of one layer: 2.46M", 2_362_368),
        ("Attention of one layer: 2.37M", None),  # off by less than conventions are
    ],
)
def test_a_number_that_its_label_names_in_the_model_has_a_digit_wrong(line, should_be):
    assert slips(f"Sizes: 2 × 3 = 6\n{line}\n", "gpt2") == ([] if should_be is None else [(2, should_be)])


def test_a_sum_that_goes_on_from_a_wrong_product_is_not_judged():
    answer = tallystick.check("Table: 201088 × 2880 = 578,813,440\nNorm and head: 2880 + 2880 × 201088 = 578,816,320\n")
    assert [(one.line, one.correct) for one in answer.equations] == [(1, False)]
    assert [one.why for one in answer.unread] == ["goes on from a wrong product above it"]


@pytest.mark.parametrize("behind", ["", "  n_embd", "  n_embd (width)"])
def test_a_variable_with_a_size_of_the_model_counts_its_parts(behind):
    """The name behind a number says which size it is; the number is not multiplied by it."""
    answer = tallystick.check(f"C = 768{behind}\nLayerNorm(C)     params: 2*C = 7,536\n", against="gpt2")
    assert [(one.line, one.should_be) for one in answer.equations if not one.correct] == [(2, 1_536)]


@pytest.mark.parametrize(
    ("text", "should_be"),
    [
        ("Attention:\n- Q: 16.8M\n- K: 4.2M\n- V: 4.2M\n- O: 16.8M\n- **Total: 82M**\n", 42_000_000),
        ("Parts:\n- Per layer total: ~1.77M\n- 4 layers: 7.1M\n- Embeddings: ~2.3M\n- **Total: ~9.1M**\n", 9_400_000),
        ("Layers: 2 × 49,664 = 99,328\nHead: 64×64 + 64 = 4,160\n\nTOTAL ≈ 173,000 parameters\n", 103_488),
        ("Parts:\n- 4 layers: 7.1M\n- Embeddings: ~0.3M\n- **Total: ~7.2M**\n", None),  # it may leave these out
        ("Parts:\n- 4 layers: 7.1M\n- Embeddings: ~2.3M\n- **Total: ~9.7M**\n", None),  # and these may be more
    ],
)
def test_a_digit_wrong_in_the_total_of_a_list_without_formulas(text, should_be):
    wrong = [one.should_be for one in tallystick.check(text).equations if not one.correct]
    assert wrong == ([] if should_be is None else [should_be])


@pytest.mark.parametrize("share", ["", "   (78.1%)"])
@pytest.mark.parametrize(("block", "should_be"), [("4,724,736", None), ("4,754,736", 4_724_736)])
def test_a_digit_wrong_in_a_block_that_its_layers_multiply(share, block, should_be):
    text = (
        "per layer:\n  attention  4 × (768² + 768)    =   2,362,368\n  FFN in     768 × 3072 + 3072   =   2,362,368\n"
        f"                                    ──────────\n                                     {block}\n"
        f"× 12 layers                      =  56,696,832{share}\n"
    )
    wrong = [(one.line, one.should_be) for one in tallystick.check(text).equations if not one.correct]
    assert wrong == ([] if should_be is None else [(5, should_be)])


@pytest.mark.parametrize(("against", "wrong"), [("llama-7b", [8_192]), (None, [])])
def test_a_letter_wrong_is_found_if_the_model_has_the_number(against, wrong):
    """Without the model, the variable may have another value here."""
    answer = tallystick.check("d_model = 4096\nBoth norms sum to 2 × d_model = 8M\n", against=against)
    assert [one.should_be for one in answer.equations if not one.correct] == wrong


def test_two_equal_products_with_the_same_wrong_result():
    text = "FFN: 256 × 512 + 512 × 256 = 262,144 + 262,144 = 524,288\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == [131_072]


@pytest.mark.parametrize("above", ["", "61 layers: 61 × 0.19 ≈ 11.6B\n"])
def test_a_number_that_is_computed_above_is_not_the_models_with_a_digit_wrong(above):
    """The model has 11,413,422,080 in the attention of its layers."""
    answer = tallystick.check(f"{above}\n| Part | Size |\n|---|---|\n| Attention | ~11.6B |\n", against="deepseek-v3")
    assert [one.should_be for one in answer.equations if not one.correct] == ([] if above else [11_413_422_080])


@pytest.mark.parametrize(("layers", "wrong"), [("6.47B", []), ("6.48B", []), ("6.74B", [6_464_000_000])])
def test_a_product_goes_on_from_what_a_rounded_sum_rounds(layers, wrong):
    """32 × 202,375,168 = 6,476,005,376."""
    text = (
        "Attention: 4 × 4096² = 67,108,864\nFFN: 3 × 4096 × 11008 = 135,266,304\n"
        f"One layer: 67M + 135M ≈ 202M\n32 layers: 32 × 202M ≈ {layers}\n"
    )
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(("total", "wrong"), [("~7.1M", []), ("~7.6M", [7_090_000])])
def test_the_number_of_one_layer_adds_no_embedding(total, wrong):
    """0.4M + 7.09M would be about 7.5M."""
    text = (
        "Position embedding: 512 × 768 = 0.4M\n\nPer block:\n  - QKV: 768 × 2,304 = 1.77M\n  - Projection: 768 × 768 = 0.59M\n"
        f"  - FFN up: 768 × 3,072 = 2.36M\n  - FFN down: 3,072 × 768 = 2.36M\n  - Norms: ~0.01M\n  Total per block:   {total}\n"
    )
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(("total", "wrong"), [("1,797,996,800", 0), ("1,637,174,400", 1)])
def test_a_sum_that_forgets_its_first_number(total, wrong):
    numbers = "160,822,400 + 160,822,400 + 1,638,400 + 1,474,713,600"
    text = f"total = tokens + head + positions + layers\n= {numbers}\n= {total}\n"
    assert [should_be for _, should_be in slips(text)] == [1_797_996_800] * wrong


@pytest.mark.parametrize(("total", "should_be"), [("7,080,960", None), ("6,080,960", 7_080_960)])
def test_a_total_of_one_block_adds_its_rows_and_no_others(total, should_be):
    text = (
        "| Bileşen | Şekil | Parametre |\n|---|---|---|\n| Token | (50257, 768) | 38,597,376 |\n| Pozisyon | (1024, 768) | 786,432 |\n"
        "| Blok başına attention | 4 x (768, 768) | 2,359,296 |\n| Blok başına FFN | (768, 3072) + (3072, 768) | 4,718,592 |\n"
        "| Blok başına LayerNorm'lar | 2 x 768 x 2 | 3,072 |\n"
        f"| Son LayerNorm | 768 x 2 | 1,536 |\n| Blok başına toplam | | {total} |\n"
    )
    assert slips(text, "gpt2") == ([] if should_be is None else [(9, should_be)])


@pytest.mark.parametrize(("norms", "should_be"), [("224,256", None), ("233,472", 224_256)])
def test_a_sum_behind_its_symbols_in_a_cell(norms, should_be):
    text = f"| Part | Derivation | Parameters |\n|---|---|---|\n| Norms | `L × 2·D + D = 36 × 6144 + 3072` | {norms} | 0.006% |\n"
    assert slips(text) == ([] if should_be is None else [(3, should_be)])


@pytest.mark.parametrize(("total", "should_be"), [("162M", None), ("160M", None), ("200M", 162_160_000)])
def test_a_total_takes_a_layer_as_often_as_the_model_has_layers(total, should_be):
    model = {"model_type": "llama", "vocab_size": 50257, "hidden_size": 768, "intermediate_size": 2048}
    model |= {"num_hidden_layers": 12, "num_attention_heads": 12, "tie_word_embeddings": False}
    text = (
        "- Tokens: 50257 * 768 ≈ 38.6M\n- Attention (per layer): 4 * 768 * 768 ≈ 2.36M\n"
        f"- MLP (per layer): 3 * 768 * 2048 ≈ 4.72M\n- Head: 768 * 50257 ≈ 38.6M\n- Total with 12 layers: ≈ {total}\n"
    )
    assert slips(text, model) == ([] if should_be is None else [(5, should_be)])


@pytest.mark.parametrize(("mlp", "wrong"), [("2 × 4096 × 11008 ≈ 90M", 1), ("3 × 4096 × 11008 ≈ 135M", 0)])
def test_a_list_that_lacks_a_matrix_of_each_layer_is_not_the_models_total(mlp, wrong):
    text = f"| Tokens | 32000 × 4096 ≈ 131M |\n| Attention per layer | 4 × 4096² ≈ 67M |\n| MLP per layer | {mlp} |\n"
    found = slips(f"| Part | Count |\n|---|---|\n{text}| Total (32 layers) | ≈ 7B |\n", "llama-7b")
    assert found == [(6, 5_155_000_000)] * wrong


@pytest.mark.parametrize(("total", "should_be"), [("10.9M", None), ("22.0M", 10_912_512)])
def test_a_total_twice_as_large_as_all_that_it_adds(total, should_be):
    text = (
        "Small (vocabulary of 256):\n├── Tokens:    256 × 384 =     98,304\n├── Positions: 256 × 384 =     98,304\n"
        "├── Layers: 6 × 12 × 384² = 10,616,832\n├── Final norm: 2 × 384 = 768\n└── Head:      384 × 256 =     98,304\n"
        f"    Total:                 ~{total} parameters\n"
    )
    assert slips(text) == ([] if should_be is None else [(7, should_be)])


@pytest.mark.parametrize(
    ("total", "wrong"),
    [
        ("124,439,808 (~124M)", []),
        ("134,439,808 (~124M)", [(134_439_808, 124_439_808)]),
        ("134,439,808 ≈ 124.4M", [(134_439_808, 124_439_808)]),
        ("124,439,808 (~134M)", [(134_000_000, 124_439_808)]),
    ],
)
def test_the_rounded_number_shows_the_digit_that_is_wrong_in_the_models_total(total, wrong):
    found = tallystick.check(f"d_model: 768\n| Total params | {total} |\nHead: 2 × 3 = 6\n", against="gpt2").equations
    assert [(one.right, one.should_be) for one in found if not one.correct] == wrong


@pytest.mark.parametrize(("number", "wrong"), [("16.8M", 0), ("15.8M", 1), ("33.6M", 0)])
def test_a_digit_wrong_in_the_rounded_number_of_a_shape(number, wrong):
    text = f"q_proj.weight  [4096, 4096]   # {number} params\nk_proj.weight  [4096, 4096]   # 16.8M params\n"
    assert slips(text) == [(1, 16_777_216)] * wrong


@pytest.mark.parametrize(("layers", "wrong"), [("10086M", 0), ("10486M", 1), ("10.5B", 0)])
def test_a_digit_wrong_in_a_precise_number_of_layers(layers, wrong):
    text = f"Per layer total = 10.48M + 830M + 0.05M (router) = 840.5M\n12 layers      = {layers}\n"
    assert slips(text) == [(2, 10_086_000_000)] * wrong


@pytest.mark.parametrize(("width", "wrong"), [("16.8M", []), ("86.8M", [61_865_984])])
def test_a_formula_with_its_numbers_wrong_before_the_right_result(width, wrong):
    text = f"d = 4096, d_ff = 11008\nper block: 2·(d² + d·d_ff) ≈ 2·({width} + 45.1M) ≈ 124M\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == wrong


@pytest.mark.parametrize(("number", "wrong"), [("4,328,521,728", []), ("4,328,821,728", [4_328_521_728])])
def test_a_sentence_that_mentions_adapters_makes_no_table_of_them(number, wrong):
    text = (
        "Words: 32000 × 4096 = 131,072,000\n\nNow the distribution, which is the number that matters for training and for LoRA:\n\n"
        f"| Part | Parameters | Why |\n|---|---|---|\n| FFN (all layers) | {number} | It holds what is known. LoRA alone touches ~2 % of this |\n"
    )
    answer = tallystick.check(text, against="llama-2-7b")
    assert [one.should_be for one in answer.equations if not one.correct] == wrong


def test_a_sum_of_results_is_not_accused_for_a_slip_in_one_of_them():
    text = "c_attn (768 x 2304 = 1,769,476) + c_proj (768 x 768 = 589,824) = 2,359,296\n"
    assert [one.should_be for one in tallystick.check(text).equations if not one.correct] == [1_769_472]


def test_what_is_right_behind_a_wrong_sum_is_not_accused():
    """1,300,000 stands for 1,200,000; 1,205,000 is what the first sum makes."""
    answer = tallystick.check("a: 12 × 100,000 + 5 × 1,000 = 1,300,000 + 5,000 = 1,205,000\n")
    assert [(one.right, one.should_be) for one in answer.equations if not one.correct] == [(1_300_000, 1_200_000)]
