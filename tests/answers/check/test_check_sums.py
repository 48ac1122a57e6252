"""The corrections of a total lead to the model's, to the last parameter, whatever a text leaves
out, repeats or gets wrong.
"""

import random
import re
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import derivations
import tallystick
from chats import NAMES, chat
from written_derivations import Written

DRAWN = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
NUMBER = re.compile(r"\d[\d,]{3,}\d")


def adds_up(answer):
    """Exactly: fractions, where a sum of rounded numbers is none."""
    parts = [answer.total_claimed, answer.arithmetic, answer.rounding, answer.unexplained]
    parts += [omission.parameters for omission in answer.omissions]
    return sum(map(Fraction, parts)) == answer.total_true


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_lines_left_out_and_repeated(seed):
    one = Written(seed)
    lines = [line for line in one.lines[:-1] if one.chance.random() < 0.8]
    lines += [one.chance.choice(one.lines[:-1]) for _ in range(one.chance.randrange(3))]
    style = one.chance.choice(sorted({*derivations.STYLES} - {"labelled sum", "sections"}))  # these name what they add
    answer = tallystick.check(one.text([*lines, one.lines[-1]], style), against=one.config)
    assert answer.total_claimed is None or adds_up(answer), answer


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_a_total_of_some_of_the_lines(seed):
    one = Written(seed)
    *lines, total = one.lines
    products = [product for product in total.products if one.chance.random() < 0.7] or total.products
    products += one.chance.sample(total.products, one.chance.randrange(2))
    answer = tallystick.check(one.text([*lines, total._replace(products=products)]), against=one.config)
    if answer.total_claimed is None:
        assert one.style == "equations"  # "35,949,696 = 35,949,696", and no word that it is the total
    else:
        assert adds_up(answer), answer


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_numbers_changed(seed):
    one = Written(seed)
    pieces = derivations.written(one.lines, one.style, one.times)
    for _ in range(one.chance.randint(1, 4)):
        pieces, _ = derivations.spoiled(pieces, one.chance)
    answer = tallystick.check(derivations.text_of(pieces, one.thousands), against=one.config)
    assert answer.total_claimed is None or adds_up(answer), answer


@DRAWN
@given(seed=st.integers(0, 10**9))
def test_numbers_rounded(seed):
    one = Written(seed)

    def rounded(match: re.Match[str]) -> str:
        value = int(match[0].replace(",", ""))
        if value < 10_000 or one.chance.random() < 0.4:
            return match[0]
        return f"{value / 10**6:.{one.chance.randint(1, 3)}f}M"

    text = NUMBER.sub(rounded, one.text(style="bullets", thousands="commas"))
    answer = tallystick.check(text, against=one.config)
    assert answer.total_claimed is None or adds_up(answer), (text, answer)


@pytest.mark.parametrize("described", [True, False], ids=["by its dictionary", "against a preset"])
@pytest.mark.parametrize("name", NAMES)
def test_a_chat_with_a_number_changed_or_a_formula_left_out(name, described):
    against = None if described else NAMES[name]
    text, chance = chat(name), random.Random(1)
    formulas = [*re.finditer(r"\\\[\n(.*)\n\\\]\n", text)]
    assert len(formulas) > 8
    for formula in chance.sample(formulas[:-1], 4):
        answer = tallystick.check(text[: formula.start()] + text[formula.end() :], against=against)
        assert answer.total_claimed is not None
        assert adds_up(answer), formula[1]
    for number in chance.sample([*re.finditer(r"\d[\d,]{4,}\d", text)], 4):
        wrong = f"{int(number[0].replace(',', '')) + 960:,}"
        answer = tallystick.check(text[: number.start()] + wrong + text[number.end() :], against=against)
        assert answer.total_claimed is not None
        assert adds_up(answer), number[0]


@pytest.mark.parametrize(("positions", "wrong"), [("786.432", False), ("786.532", True)])
def test_counts_in_sentences_of_their_own_are_summed(positions, wrong):
    text = (
        f"Dunque:\n\n38.597.376 per la tabella.\n\n{positions} per le posizioni.\n\n"
        "85.054.464 per i 12 strati.\n\nPiù 1.536 alla fine.\n\nTotale: **124.439.808**.\n"
    )
    (equation,) = tallystick.check(text).equations
    assert (equation.line, equation.correct) == (11, not wrong)


def test_a_total_may_go_on_with_the_right_number_of_a_wrong_line():
    text = (
        "| Embeddings | 32000 × 4096 = 231M |\n| Attention | 32 × 4 × 4096² = 2147M |\n"
        "| FFN | 32 × 3 × 4096 × 11008 = 4329M |\n| **Total** | **≈ 6.6B** |\n"
    )
    wrong = [
        (equation.line, equation.should_be) for equation in tallystick.check(text).equations if not equation.correct
    ]
    assert wrong == [(1, 131_072_000)]


def test_a_remark_with_sizes_leaves_a_row_its_number():
    text = (
        "| Part | Count | Note |\n|---|---|---|\n| encoder | 39,630 | as obs_dim=33, act_dim=12 |\n"
        "| body | 991,616 | three layers |\n| head | 200,460 | as act_dim=12 |\n| **Total** | **2,131,706** | |\n"
    )
    assert [equation.should_be for equation in tallystick.check(text).equations] == [1_231_706]


def test_two_numbers_with_the_same_last_digits_are_one_column_added_wrongly():
    column = "Embedding:   131,072,000\n32 × Layers: 5,670,961,152\nFinal norm:         4,096\nLM head:      131,072,000 (untied)\n"
    for total, right in (
        ("~6,738,109,248  ≈ 6.74B", False),
        ("~5,933,109,248  ≈ 5.93B", True),
        ("6,738,415,616", True),
    ):
        answer = tallystick.check(
            f"Sizes: 2 × 3 = 6\n\n# Total\n\n{column}-----------------\nTotal:  {total} parameters\n"
        )
        assert [one.should_be for one in answer.equations if not one.correct] == ([] if right else [5_933_109_248])


def test_a_size_in_parentheses_is_no_addend():
    text = (
        "W_Q: (4096 × 4096) = 16,777,216\nW_K: (4096 × 1024) = 4,194,304 (GQA: 8 KV heads × 128 = 1024)\n"
        "W_V: (4096 × 1024) = 4,194,304\nW_O: (4096 × 4096) = 16,777,216\nTotal attention per layer: 41,943,040\n"
    )
    answer = tallystick.check(text)
    assert [(one.line, one.left, one.correct) for one in answer.equations][-1] == (5, 41_943_040, True)


def test_the_end_of_a_rows_label_computes_its_number():
    rows = (
        "| `wte` 50304 × 768 (shared with `lm_head`) | 38,633,472 |\n"
        "| per block: `ln_1` 1,536 + `c_attn` 1,771,776 + attn `c_proj` 590,592 | 2,363,904 |\n"
        "| layers 3 × 7 of 12 | 99,999 |\n"
    )
    answer = tallystick.check(rows)
    assert [(one.line, one.right, one.correct) for one in answer.equations] == [
        (1, 38_633_472, True),
        (2, 2_363_904, True),
    ]


def test_the_lines_of_a_drawn_box_are_read():
    box = "┌─────┐\n│ Tokens  50,257 × 768 = 38.6M │\n│ Positions  1,024 × 768 = 0.8M │\n└─────┘\nTOTAL ≈ 39.4M\n"
    answer = tallystick.check(box)
    assert [(one.line, one.plain[0]) for one in answer.equations] == [(2, "T"), (3, "P"), (5, "T")]
    assert answer.total_claimed == 39_400_000


COLUMNS = """\
| Part | tiny | small | large |
|---|---|---|---|
| `vocabSize` | 65 | 65 | 50,257 |
| embeddings | 24,704 | 123,264 | 39,383,808 |
| stack | 792,064 | 10,642,176 | 85,036,032 |
{norm}| **total** | **817,024** | **{small}** | **{large}** |
"""
NORM = "| norm | 256 | 768 | 1,536 |\n"


@pytest.mark.parametrize(
    ("norm", "small", "large", "wrong"),
    [
        (NORM, "10,766,208", "124,421,376", []),
        (NORM, "10,966,308", "124,421,376", [10_766_208]),
        (NORM, "10,766,208", "125,551,376", [124_421_376]),
        ("", "10,766,208", "124,421,376", []),  # a row is left out of each column
    ],
)
def test_each_column_of_a_table_has_a_total(norm, small, large, wrong):
    answer = tallystick.check(COLUMNS.format(norm=norm, small=small, large=large))
    assert [one.should_be for one in answer.equations if not one.correct] == wrong


def test_the_columns_of_other_models_are_not_those_of_this_one():
    text = "| Part | small | medium |\n|---|---|---|\n| Token embedding | 38.6M | 58.6M |\n| Head | 38.6M | 31.6M |\n"
    assert all(one.correct for one in tallystick.check(f"Sizes: 2 × 3 = 6\n\n{text}", against="gpt2").equations)


@pytest.mark.parametrize(("first", "wrong"), [("173.9B", []), ("174.5B", [173_946_175_488])])
def test_each_result_of_a_sum_is_that_of_its_addend(first, wrong):
    text = f"Total: 96 × 12 × 12288² + 50000 × 12288 ≈ {first} + 0.6B ≈ 175B\n"
    assert [e.should_be for e in tallystick.check(text).equations if not e.correct] == wrong


ITEMS = """\
1. **One** (d = 768): final norm 1,536.
   Layers 12 × 7,087,872 = 85,054,464, words 50257 × 768 = 38,597,376.
   Total = 123,653,376
2. **Two** (d = 1600): layers 48 × 30,740,800 = 1,475,558,400.
   Words: 50257 × 1600 = 80,411,200
   Total = {}
"""


@pytest.mark.parametrize(
    ("total", "wrong"),
    [
        ("1,555,969,600", []),
        ("1,555,972,800", []),  # with the final norm, 2 × 1600, which is not listed
        ("1,556,969,600", [1_555_969_600]),
    ],
)
def test_an_item_of_a_list_has_its_own_total(total, wrong):
    """1,475,558,400 + 80,411,200 = 1,555,969,600."""
    answer = tallystick.check(ITEMS.format(total))
    assert [e.should_be for e in answer.equations if not e.correct] == wrong


ROWS = """\
| Part | Parameters |
|---|---|
| Embedding | 39.4M |
| MHA / katman | 4 × 768² = 2.4M |
| MHA toplam | 12 × 2.4M = 28.3M |
| MLP / katman | 4.7M |
| MLP toplam | 56.6M |
| **Toplam** | **{}** |
"""


def test_rows_of_one_layer_next_to_those_of_all_are_no_addends():
    """39.4 + 28.3 + 56.6 = 124.3."""
    assert [e.should_be for e in tallystick.check(ROWS.format("~124M")).equations if not e.correct] == []


def test_a_sum_below_lines_with_plus_signs_is_not_the_last_of_them():
    text = "Talker: 48 × 12M = 576M\n   + Experts (48 × 22M) = 1.06B\n   + Predictor (80 × 3M) = 240M\n   = {}\n"
    for total in ("1.87B", "1.88B"):
        assert all(e.correct for e in tallystick.check(text.format(total)).equations)
    drawn = "<text>Layers 202.4M × 32 = 6.48B</text>\n<text>+ words 131M + head 131M = 0.26B</text>\n<text>= 6,738,415,616</text>\n"
    assert all(e.correct for e in tallystick.check(drawn, against="llama-7b").equations)
