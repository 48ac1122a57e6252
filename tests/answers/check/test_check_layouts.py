"""Layouts of hand counts: rows with equations, web pages, subtotals, and whose total it is."""

import pytest

import tallystick


def check(text, against=None):
    return tallystick.check(f"Sizes: 2 × 3 = 6\n\n{text}\n", against=against)


def judged(text):
    """Each product of 1,000 or more, and whether it is right."""
    return [(equation.right, equation.correct) for equation in check(text).equations if equation.right >= 1000]


PRODUCT = 512 * 2048


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("| Words: V × d = 30000 × 512 | here | {} |", 30000 * 512),
        ("| Positions (256 × 512) + segments (2 × 512) | here | {} |", 258 * 512),
        ("| W_q | 512 | 8 × 64 = 512 | 512 × 2048 | {} |", PRODUCT),
        ("| MLP (d_ff = 2048) | 512 × 2048 | {} |", PRODUCT),
        ("<tr><td>MLP</td> <td>512 × 2048</td><td>{}</td></tr>", PRODUCT),
        ("<M>{{String.raw`512 \\times 2048 = {}`}}</M> of <em>all</em>{{' '}}", PRODUCT),
        ("C × 4C = 512 × 2048\n\nup: C × 4C = {}", PRODUCT),
        ("d_model × d_ff = 512 × 2048\n\nup: d_model × d_ff = {}", PRODUCT),
        ("$T_{{\\max}} = 2048$\n\npositions: T_max × 512 = {}", PRODUCT),
        ("shared × 512 × 2048 = {} weights", PRODUCT),
        ("512 × (1024 wide queries + 1024 wide keys) = {}", PRODUCT),
    ],
)
def test_a_number_is_judged_by_the_product_next_to_it(row, found):
    right, slip = f"{found:,}", str(found)
    swapped = int(slip[:1] + slip[2] + slip[1] + slip[3:])
    assert (found, True) in judged(row.format(right))
    assert (swapped, False) in judged(row.format(f"{swapped:,}"))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Scores: 2048 × 4096 × 4096 = 34M operations", 2048 * 4096 * 4096),
        ("Table: 30,000 × 512 ≈ 15.4B", 30_000 * 512),
        ("Table: 30,000 × 512 ≈ 15.4K", 30_000 * 512),
    ],
)
def test_a_letter_of_the_wrong_size_is_wrong(text, right):
    assert [equation.should_be for equation in check(text).equations if not equation.correct] == [right]


@pytest.mark.parametrize(
    "text",
    [
        "Cost: 1.1 + 5.9 = 7 TFLOPs",
        "Cost: 1.1 + 5.9 = 7T",
        "Table: 30,000 × 512 = 15.4 (in millions)",
        "12 layers × 768 dims ≈ 117M parameters",
        "W × 512 × 512 = 1,048,576",  # W may be 4
        "new × 48 × 100 = 9,999,999",
    ],
)
def test_an_omitted_letter_is_no_slip(text):
    assert all(equation.correct for equation in check(text).equations)


BLOCK = "norms 2 × 2 × 512 = 2,048; attention 4 × 512 × 512 = 1,048,576; MLP 8 × 512 × 512 = 2,097,152"


@pytest.mark.parametrize("word", ["Subtotal", "Sub-total", "小计", "소계", "Zwischensumme", "Sous-total"])
def test_a_subtotal_that_ends_a_line_sums_the_line(word):
    for number, right in (("3{,}147{,}776", True), ("3{,}174{,}776", False)):
        last = check(
            f"Words: $30{{,}}000 \\times 512 = 15{{,}}360{{,}}000$.\n3. Per block: {BLOCK}. {word} ${number}$."
        )
        assert [last.equations[-1].left, last.equations[-1].correct] == [3_147_776, right]


# -- whose total it is ----------------------------------------------------------------------------

WORDS, POSITIONS, BLOCKS = "50257 × 768 = 38,597,376", "1024 × 768 = 786,432", "12 × 7,087,872 = 85,054,464"


@pytest.mark.parametrize(
    "text",
    [
        f"**(1) Tables**\n\n- Words: {WORDS}\n- Positions: {POSITIONS}\n- Total: 39,383,808\n\n12 blocks: {BLOCKS}",
        f"Words: {WORDS}\n\n**All 12 blocks:** {BLOCKS}",
        "| part | formula | weights |\n|-|-|-|\n| attention | 4 × 768² | 2,359,296 |\n| MLP | 8 × 768² | 4,718,592 |\n"
        "| **One block** | | **7,077,888** |\n\n× 12 layers = 84,934,656, as printed.",
        "Plain MLP (two matrices):\n  Parameters: 768 × 3072 + 3072 × 768 = 4.7M",
        "attention / layer\n  q  768 × 768 = 590K\n  k  768 × 768 = 590K\n  total ≈ 1.18M",
        f"Positions: {POSITIONS}\n| Part | Weights |\n|---|---|\n| Total 12 layers | ~85M |",
        "MHA in total = 1.8M + 0.6M ≈ 2.4M",
    ],
)
def test_a_part_of_a_model_is_not_its_total(text):
    assert check(text, "gpt2").total_claimed is None


def test_what_is_counted_so_far_is_not_the_total():
    text = "12 × 7,087,872 = 85,054,464 in the blocks.\n\n| Embeddings | 39,383,808 |\n| 12 blocks | 85,054,464 |\n| **So far** | **124,438,272** |\n\nIt is 1,536 parameters short of the full 124,439,808."
    assert check(text, "gpt2").total_claimed == 124_439_808


def test_layers_next_to_an_embedding_are_not_the_total():
    text = (
        "Embedding: 32000 * 4096 = 131,072,000\nOne expert: 3 * 4096 * 14336 = 176,160,768\nThe router: 4096 * 8 = 32,768\n"
        "The last 31 layers have:\n(176,160,768 * 8 + 32,768) * 31 = 43,688,886,272"
    )
    assert check(text, "mixtral-8x7b").total_claimed is None


def test_half_of_a_total_is_not_the_total():
    text = (
        "# Breakdown:\n#   Embeddings:  ~262M  (3.9%)\n#   Attention:   ~2147M  [32 layers × 4 × 4096 × 4096]\n#   MLP:         ~4329M  [32 layers × 3 × 4096 × 11008]\n"
        "#   Total:       ~6738M\n#\n# To match 20% total param reduction by pruning:\n#   0.20 × 6738M = 1347.6M from MLP → MLP keep = 1 - (1347.6/4329) ≈ 0.69\n"
        "# To match 50% total param reduction by pruning:\n#   0.50 × 6738M = 3369M from MLP → keep = 1 - (3369/4329) ≈ 0.22"
    )
    assert tallystick.check(text, against="llama-2-7b").total_claimed == 6_738_000_000


@pytest.mark.parametrize(
    "total",
    [
        "- Total: ~123M (slightly less than 163M due to tie_weights=1 in it)",
        "### Total parameter count\n\n```\n~123M parameters\n```",
    ],
)
def test_a_total_with_a_setting_or_below_its_heading(total):
    assert check(f"Words: {WORDS}\nPositions: {POSITIONS}\n{total}", "gpt2").total_claimed == 123_000_000


@pytest.mark.parametrize(("total", "wrong"), [("124,439,808", 0), ("124,539,808", 1)])
def test_a_sum_in_lines_with_signs_above_a_drawn_line(total, wrong):
    text = f"```\n85,054,464  (blocks)\n+ 38,597,376  (words)\n+    786,432  (positions)\n+      1,536  (norm)\n──────────\n{total}\n```"
    answer = check(text, "gpt2")
    assert [one.correct for one in answer.equations].count(False) == wrong
    assert answer.total_claimed == int(total.replace(",", ""))


def test_the_whole_of_a_share_is_the_total():
    text = "Each adapter: 12,288 × 24 = 294,912. **Trained: 294,912 / 124,439,808 = 0.24 %.** So it is small."
    assert check(text, "gpt2").total_claimed == 124_439_808


@pytest.mark.parametrize(("total", "should_be"), [("124,356,864", []), ("124,089,000", [124_356_864])])
def test_a_layer_is_not_multiplied_again_by_its_heading(total, should_be):
    block = "- Norms: 4 × 768 = 3,072\n- qkv: 768 × 2304 = 1,769,472\n- Output projection: 768 × 768 = 589,824\n- MLP: 2 × 768 × 3072 = 4,718,592"
    text = (
        f"Input:\n- Words: {WORDS}\n- Positions: 1,024 × 768 = 786,432\n\nBlocks (×12):\n{block}\n\n"
        f"Per block total: 7,080,960 × 12 = 84,971,520\n\nOutput:\n- Final norm: 768 × 2 = 1,536\n\nTotal parameters: {total}\n"
    )
    assert [one.should_be for one in tallystick.check(text, against="gpt2").equations if not one.correct] == should_be


@pytest.mark.parametrize(
    "text",
    [
        "a: 512 × 2048 = 1,048,576\nb: 512 × 2048 = 1,048,576\nThat is a + b = 2,097,152 weights; gated it is\n"
        "c: 512 × 512 = 262,144",
        "## Projection\n\nParameters: 768 × 384 = 294,912",
        "Number of them\n\n**LayerNorm (2,048)**\n* before: 1,024 (scale: 512 + shift: 512)\n\n**Last LayerNorm: 1,024**",
    ],
)
def test_a_sum_of_some_matrices_is_no_total_of_a_model(text):
    assert check(text).total_claimed is None


@pytest.mark.parametrize(
    ("text", "total"),
    [
        (
            "| tensors | shape | count |\n|-|-|-|\n| up | 768×3072 | 2,359,296 |\n| down | 3072×768 | 2,359,296 |\n"
            "| **Hidden matrices in total H** | 2 | 4,718,592 |\n| embed | 30000×768 | 23,040,000 |\n"
            "| **All parameters P = H + A** | | ≈27,758,592 |",
            27_758_592,
        ),
        ("**Total per layer = 7M | × 12 layers = 85M + embeddings = 124M (small)**", 124_000_000),
    ],
)
def test_the_whole_is_found_next_to_its_parts(text, total):
    assert check(text, "gpt2" if total == 124_000_000 else None).total_claimed == total


def test_the_total_of_a_sentence_is_its_own_number():
    text = "Words 2 × 30,000 × 512 ≈ 30.7M。一层合计 3.1M，6 层 18.9M，总计约 49.6M。"
    assert check(text).total_claimed == 49_600_000


# -- parts that add up to the model, below them another number ------------------------------------

PARTS = f"- Words: {WORDS}\n- Positions: {POSITIONS}\n- 12 blocks: {BLOCKS}\n- Norm: 2 × 768 = 1,536\n"
INSIDE = "- Attention: 4 × 768² ≈ 2.36M\n- MLP: 8 × 768² ≈ 4.72M\n"


@pytest.mark.parametrize(
    ("text", "should_be"),
    [
        (f"{PARTS}\nTotal: about 224M", 124_439_808),
        (f"{PARTS}\n总计：约 1.6亿", 124_439_808),
        (f"{PARTS}\nTotal: about 124M", None),
        (f"{PARTS}\nTotal: about 120M", None),  # rounded to tens
        (f"{PARTS}\nTotal without the words: about 86M", None),
        (f"{PARTS}- Head, not counted: 768 × 0 = 0\n\nTotal: about 85.8M", None),  # leaves out the words
        (f"{INSIDE}\nTotal per block: ~1.7M parameters", 7_080_000),
        (f"{INSIDE}\nTotal per block: ~7.1M parameters", None),
    ],
)
def test_parts_that_sum_to_the_model_judge_the_total_below(text, should_be):
    wrong = [equation.should_be for equation in check(text, "gpt2").equations if not equation.correct]
    assert wrong == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(
    ("line", "number", "right"),
    [
        ("W_K: (4096, 128) → {}개", "{:,}", 524_288),
        ("出力投影：`nn.Linear(768, 768)` → {}個（bias含む）", "{:,}", 590_592),
        ("Query: `nn.Linear(768, 768, bias=False)` -> {}", "{:,}", 589_824),
        ("self.wte = nn.Embedding(50257, 768)  # {} params", "{:,}", 38_597_376),
        ("transformer.wte.weight torch.Size([50257, 768]) {}", "{}", 38_597_376),
        ("W_q: [768 × 768] → {}", "{:,}", 589_824),
        ("wte  50257×768   {}", "{:,}", 38_597_376),
    ],
)
def test_a_number_behind_a_shape_is_its_product(line, number, right):
    def found(value):
        return [(one.correct, one.should_be) for one in check(line.format(number.format(value))).equations[1:]]

    assert found(right) == [(True, None)]
    assert found(right + 1) == [(False, right)]


@pytest.mark.parametrize("text", ["x: (32, 1024) → 4096", "c_attn: 384 × (3×384) + (3×384) = 443_904"])
def test_shapes_that_state_no_number(text):
    answer = check(f"W: 768 × 3072 = 2,359,296\n{text}\n")
    assert [one.correct for one in answer.equations if one.right == 4096] == []
    assert 443_904 not in [one.right for one in answer.equations if one.correct]


@pytest.mark.parametrize(
    ("text", "should_be"),
    [
        ("| **Total Parameters** | 124,539,808 | |", 124_439_808),
        ("| Total | 2VH + … | 124,439,908 ≈ 124M |", 124_439_808),
        ("| Total | | 124,439,808 |", None),
        ("| Token embedding | | 38,597,326 |", 38_597_376),
        ("| Some other total | | 123,550,272 |", None),
    ],
)
def test_a_lone_number_that_is_the_models_but_for_a_digit(text, should_be):
    answer = check(f"W: 768 × 3072 = 2,359,296\n{text}\n", against="gpt2")
    assert [one.should_be for one in answer.equations if not one.correct] == ([] if should_be is None else [should_be])


LLAMA = {
    "model_type": "llama", "vocab_size": 70_000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(("total", "should_be"), [("~6.96B ≈ 7B", 5_957_685_248), ("~5.96B ≈ 6B", None)])
def test_a_total_that_is_rounded_once_more(total, should_be):
    text = (
        "Embedding: 70,000 × 4,096 = 286,720,000\nPer-layer total: 177,217,536\nTotal for 32 layers: 5,670,961,152\n"
        f"Final norm: 4,096\nTotal Parameters: {total}"
    )
    answer = check(text, against=LLAMA)
    assert [one.should_be for one in answer.equations if not one.correct] == ([] if should_be is None else [should_be])
    assert answer.total_claimed in (6_960_000_000, 5_960_000_000)


@pytest.mark.parametrize(("total", "should_be"), [("1542M", 1_554_600_000), ("1555M", None), ("1557.6M", None)])
def test_a_total_below_the_sum_of_its_parts(total, should_be):
    text = f"48 layers: ~1473M\nTokens: 50,257 × 1600 ≈ 80M\nPositions: 1024 × 1600 ≈ 1.6M\nTotal ≈ {total}"
    answer = check(text, against="gpt2-xl")
    assert [one.should_be for one in answer.equations if not one.correct] == ([] if should_be is None else [should_be])


def test_a_total_of_the_layers_is_not_another_models():
    text = (
        "Tokens: 30000 × 64 = 1.92M\nTotal per layer: 49,664\nTotal 4 layers: 4 × 49,664 = 198,656\n"
        "Head: 64 × 30000 = 1.92M\nTotal Model: 1.92M + 198K + 1.92M = 4.04M"
    )
    answer = check(text)
    assert (answer.total_claimed, answer.several_totals) == (4_040_000, ())


ROWS = """\
| W_q (16384×16384) | 268M | ×126 | 33.8B |
| Attention RMSNorm | 16.4K | ×126 | 2.1M |
| W_gate (16384×53248) | 878M | ×126 | 110.6B |
| W_up (16384×53248) | 872M | ×126 | 109.9B |
| W_down (53248×16384) | 872M | ×126 | 109.9B |
| FFN RMSNorm | 16.4K | ×126 | 2.1M |
| **TOTAL** | | | **~405B** |
"""


def test_rows_of_one_layer_and_of_all():
    answer = check(ROWS, against="llama-3.1-405b")
    assert [one.should_be for one in answer.equations if not one.correct] == [
        16384 * 53248
    ]  # the rounded total is right
    matches = [one.matches for one in answer.equations]
    assert "query projection of one layer" in matches
    assert "query projection of 126 layers" in matches
    assert "norm input_layernorm of 126 layers" in matches
    assert "norm post_attention_layernorm of 126 layers" in matches
    wrong = check(ROWS.replace("33.8B", "38.8B"), against="llama-3.1-405b")
    assert 33_768_000_000 in [one.should_be for one in wrong.equations if not one.correct]


def test_a_sum_in_a_sentence_is_not_the_total_of_a_table():
    text = "| Rows | 5.7B |\n| Stack | 12.4B |\n| Model total | ≈ 35B (published) |\n\nThis sum yields 12.4B + 28.2B + 5.7B ≈ 46.3B"
    assert check(text).total_claimed == 35_000_000_000


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("Total: 3 × 1250 × 16 × 4096 = 245M operações", None),
        ("Total: 3 × 1250 × 16 × 4096 = 245M", 245_000_000),
        ("| **合計** | | **~39.3M** | **~25.4M** |\n| FFN | 6 × 2.1M | 12.6M |", None),  # of two models
        ("N_{3B} &= 24 × 118M = 2.85B\n\nN_{11B} &= 24 × 471M = 11.3B", None),
        ("N_{3B} &= 24 × 118M + 32M = 2.86B", 2_860_000_000),
        ("**Parameters in base model**: ~65 million\n- Layer: 4 × 512² = 1M", 65_000_000),
    ],
)
def test_a_total_of_operations_is_no_count(text, total):
    assert check(text).total_claimed == total


def found_in(text, against=None):
    answer = tallystick.check(text, against=against)
    return [one.should_be for one in answer.equations if not one.correct], answer.total_claimed


MEMORY = """\
Component          Parameters      Memory
─────────────────────────────────────────
Embeddings         16,384,000      32 MB
Layers (×12)       35,401,728      68 MB
Final norm         512             1 KB
Head               16,384,000      32 MB
─────────────────────────────────────────
TOTAL              {total}     ~133 MB
"""


@pytest.mark.parametrize(("total", "wrong"), [("68,170,240", []), ("68,170,242", [68_170_240]), ("~68.2M", [])])
def test_a_column_of_bytes_next_to_the_parameters_is_not_theirs(total, wrong):
    """16,384,000 + 35,401,728 + 512 + 16,384,000 = 68,170,240."""
    stated = int(total.replace(",", "")) if "," in total else 68_200_000
    for section in ("", "### Memory layout\n\n"):
        assert found_in(section + MEMORY.format(total=total)) == (wrong, stated)


STEPS = """\
x 8 layers:                        2,048,000
+ embedding and head (1000 x 32, x2):    64,000
                                   ---------
                                   {total}
"""


@pytest.mark.parametrize(("total", "wrong"), [("2,112,000", []), ("2,212,000", [2_112_000])])
def test_the_addends_of_a_sum_may_have_labels(total, wrong):
    assert found_in(STEPS.format(total=total))[0] == wrong


CODE = """\
Total Parameters = Token_Embeddings
                 + All_Layers
                 + Output

                 = 525,336,576      # words
                 + 7,011,584,000    # 32 layers
                 + 525,336,576      # output

                 = {total} parameters
                 ≈ 8.06 billion
"""


@pytest.mark.parametrize(("total", "wrong"), [("8,062,257,152", []), ("8,062,557,152", [8_062_257_152])])
def test_a_sum_in_code_has_comments_behind_its_addends(total, wrong):
    """525,336,576 + 7,011,584,000 + 525,336,576 = 8,062,257,152."""
    assert found_in(CODE.format(total=total)) == (wrong, int(total.replace(",", "")))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("MLP (FC): `384 × 1536 + bias = 591,360`", []),
        ("MLP (Proj): `1536 × 384 + bias = 590,208`", []),
        ("MLP (Proj): `1536 × 384 + bias = 590,228`", [590_208]),
        ("MLP (Proj): `1536 × 384 + bias = 540,208`", [590_208]),
        ("MLP: 768 × 3072 + bias = 2,359,296", []),  # without it
        ("| **One block** | **7,687,872** |", [7_087_872]),
        ("| Transformer blocks | 85,054,494 |", [85_054_464]),
        ("| One block | 7,077,888 |", []),  # without biases and norms
        ("| Blocks | 12,345,678 |", []),
        ("MLP: 768 × 3072 + bias ≈ 2.36M", []),
        ("(a) 49,536 · (b) 198,272 · (c) 4 × 198,272 + 8,320 = 801,408", []),
        ("(a) 49,536 · (b) 198,272 · (c) 4 × 198,272 + 8,320 = 801,508", [801_408]),
        ("# ViT  D = 1536  heads = 24  → dim/head = 64", []),
        ("The file has 497759232 = 124439808 float values, exactly.", []),
        ("| Pooler | 768 × 768 + 768 | 7,087,104 |", [590_592]),  # no layer has it
        ("| Query | 768 × 768 + 768 | 7,087,104 |", []),  # of 12 layers
        ("Q, K and V: 3 × (768 × 64) × 12 = 147,456", [1_769_472]),  # 12 is no power of 1
    ],
)
def test_a_line_is_read_as_it_is_meant(line, wrong):
    assert found_in(f"Norm: 2 × 768 = 1,536\n\n{line}\n", "gpt2")[0] == wrong


TABLES = """\
**Embeddings**
| Part | Parameters |
|---|---|
| Token embedding (54 × 64) | 3,456 |
| Position embedding (128 × 64) | 8,192 |

**One transformer block**, 12·d² + 13·d
| Part | Parameters |
|---|---|
| Norms | 256 |
| Attention in | 12,480 |
| Attention out | 4,160 |
| MLP | 33,088 |
| **Per block total** | **{total}** |
"""


@pytest.mark.parametrize(("total", "wrong"), [("49,984", []), ("49,948", [49_984])])
def test_the_rows_of_a_table_before_it_are_no_addends(total, wrong):
    """256 + 12,480 + 4,160 + 33,088 = 49,984."""
    assert found_in(TABLES.format(total=total))[0] in ([], wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        # a list of the whole model, and a total that is far from both
        (
            "- Words: 50,000 × 768 = 38M\n- 12 layers: 12 × 7.1M = 85.2M\n\nGrand Total: ~1.5 billion parameters!",
            [123_200_000],
        ),
        # lines of 1/5 less than the total, in sections of their own
        (
            "### Words\n- Words: 50257 × 640 = 32.16M\n### Layers\nAll 24 layers: 118.22M\n### Total\n190.38M parameters",
            [150_380_000],
        ),
        (
            "### Words\n- Words: 50257 × 640 = 32.16M\n### Layers\nAll 24 layers: 118.22M\n### Total\n150.38M parameters",
            [],
        ),
        # "all blocks" of a number per block
        ("per block: 1,622,784\nall blocks: 48,683,520\nhead: 1000 × 384 = 384,000\nTotal: 49,067,520", []),
        # the embedding is not in a range
        (
            "- Embedding: 64K × 1280 = 82M\n- Attention per layer: 3.6M × 28 = 100M\n- MLP per layer: 17.2M × 28 = 481M\n- Total: ~580-600M",
            [663_000_000],
        ),
        # a column whose total is less than its rows
        (
            "Tokens:    50257 × 768 = 38.6M\nPositions:   256 × 768 =  0.2M\n12 blocks:              85.0M   (7.08M × 12)\n"
            "Head:      768 × 50257 = 38.6M\n──────────────────────\nTOTAL:                 162.0M",
            [162_400_000],
        ),
    ],
)
def test_a_total_is_judged_by_the_lines_that_it_adds(text, wrong):
    assert found_in(f"{text}\n", "gpt2" if "Grand" in text else None)[0] == wrong


@pytest.mark.parametrize(("total", "wrong"), [("92,160", []), ("92,180", [92_160])])
def test_a_string_of_code_holds_lines_of_its_own(total, wrong):
    text = f'"per block\\n  W1  64 x 256   16,384\\n  W2  256 x 64   16,384\\nhead  64 x 928   59,392\\n\\nTOTAL   {total}",\n'
    answer = tallystick.check(text)
    assert [one.should_be for one in answer.equations if not one.correct] == wrong
    assert answer.total_claimed == int(total.replace(",", ""))
