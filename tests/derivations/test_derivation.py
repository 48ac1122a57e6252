"""Arithmetic is read as people write it: every style of number, sign and layout, and no text brings
the reader down.
"""

from fractions import Fraction

import pytest

import tallystick
from tallystick import BadInput
from tallystick.derivations.reader import read_derivation


def equations(text, **against):
    return [
        (equation.left, equation.right, equation.correct) for equation in tallystick.check(text, **against).equations
    ]


def labels(text):
    return [statement.label for statement in read_derivation(text, source="test").statements]


RIGHT = (38_597_376, 38_597_376, True)


@pytest.mark.parametrize(
    "product",
    [
        "50257 × 768", "50257 * 768", "50257*768", "50257 · 768", "50257 ⋅ 768", "50257x768", "50257 x 768", "50257 X 768",
        r"50257 \* 768", r"$50257 \times 768$", r"\(50257 \cdot 768\)", "`50257 * 768`", "**50257** × **768**",
        "50,257 × 768", "50 257 × 768", "50\u202f257 × 768", "50_257 × 768", "50'257 × 768", "50’257 × 768",
        r"$50{,}257 \times 768$", r"$50\,257 \times 768$", "(50257) × (768)", "[50257 × 768]", "50257 × (12 × 64)",
        "50257 × 768 × 1", "50257 tokens × 768 dimensions", "50257 (vocabulary) × 768 (width)", "(50000 + 257) × 768",
        "(50,000 + 257) * (700 + 68)", "50257 × 2⁸ × 3", "50257 × 2^8 × 3", "50257 * 2**8 * 3", r"$50257 \times 2^{8} \times 3$",
        "50257 × 1536 / 2", "50257 × 1536 ÷ 2", r"$\frac{50257 \times 1536}{2}$", "50257 × 800 − 50257 × 32",
        "50257 × 800 - 50257 × 32", "+50257 × 768", "-50257 × -768", "50257(700 + 68)", "50257 &times; 768",
    ],
)  # fmt: skip
def test_products_in_every_spelling(product):
    assert equations(f"Token embedding: {product} = 38,597,376") == [RIGHT]
    assert equations(f"Token embedding: {product} = 38,597,377")[0][2] is False


@pytest.mark.parametrize(
    "value",
    [
        "38597376", "38,597,376", "38 597 376", "38_597_376", "38'597'376", "38.597.376", r"38{,}597{,}376", r"38\,597\,376",
        "38,597,376 parameters", "**38,597,376**", "38,597,376.", "38,597,376 (31% of all)", "38,597,376, that is a third",
        "38,597,376 - the largest part", "38,597,376*", "(38,597,376)",
    ],
)  # fmt: skip
def test_whole_numbers_in_every_style(value):
    assert equations(f"50257 × 768 = {value}") == [RIGHT]


@pytest.mark.parametrize(
    ("claim", "right"),
    [
        ("= 38.6M", True), ("≈ 38.6M", True), ("= 38.6 million", True), ("~ 38.6 M", True), (r"\approx 38.6\text{M}", True),
        ("= 0.0386B", True), ("= 0.0386 billion", True), ("= 38,597K", True), ("≈ 38.6e6", True), ("= 3.86 × 10^7", True),
        (r"\approx 3.86 \times 10^{7}", True), ("≈ 38,600,000", True), ("≈ 40,000,000", True), ("= 39M", True),
        ("= 38,6M", True), ("= 38.5M", True), ("≈ 38.7M", False), ("= 38M", True), ("= 38.4M", False), ("= 38,600,000", False), ("= 3.85e7", True),
        ("≈ 38,500,000", False), ("= 0.0385B", True),
    ],
)  # fmt: skip
def test_a_rounded_result_is_right_if_it_is_rounded_or_cut_to_that(claim, right):
    assert [correct for *_, correct in equations(f"50257 × 768 {claim}")] == [right]


def test_a_point_is_a_decimal_one_unless_the_text_settles_it():
    assert equations("0.5 × 8 = 4") == [(4, 4, True)]
    assert equations("1.536 × 2 = 3.072")[0][2] is True
    assert equations("A: 50.257 × 768 = 38.597.376\nB: 1.024 × 768 = 786.432") == [RIGHT, (786_432, 786_432, True)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Qwen 2.5: 9,0 + 0,8 + 1 = 10,8 GB. Danach 9,0 + 3,2 + 1 = 13,2 GB.", 10_800_000_000),
        ("Llama 3.1 hat 8,03 Mrd. und 0,5 Mrd.: 3 × 50.257 = 150.771", 150_771),
    ],
)
def test_decimals_behind_commas_settle_what_points_are(text, value):
    assert value in [equation.right for equation in tallystick.check(text).equations if equation.correct]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("38,6 triệu", 38_600_000),
        ("38,6 miljoen", 38_600_000),
        ("38,6 milionów", 38_600_000),
        ("38,6 мільйонів", 38_600_000),
        ("0,039 mld", 39_000_000),
        ("0.0000386万亿", 38_600_000),
        ("38.6 millions", 38_600_000),
    ],
)
def test_words_for_powers_of_ten(written, value):
    (equation,) = tallystick.check(f"Embedding: 50257 × 768 = {written}").equations
    assert (equation.right, equation.correct) == (value, True)


def test_sums_of_rounded_numbers_are_right_within_their_rounding():
    assert equations("38.6M + 85.1M + 0.79M = 124.5M")[0][2] is True
    assert equations("38.6M + 85.1M + 0.79M = 124.9M")[0][2] is False
    assert equations("38.6M / 124.4M = 31%")[0][2] is True
    assert equations("38.6M / 124.4M = 35%")[0][2] is False


def test_a_chain_is_judged_link_by_link():
    assert equations("N = 4 × 768² = 4 × 589,824 = 2,359,296 ≈ 2.4M") == [
        (2_359_296, 2_359_296, True), (2_359_296, 2_359_296, True), (2_359_296, 2_400_000, True),
    ]  # fmt: skip
    assert [correct for *_, correct in equations("4 × 768² = 4 × 589,823 = 2,359,296")] == [False, False]


@pytest.mark.parametrize(
    "text",
    [
        "d = 768\nL = 12\nBlocks: 12Ld^2 = 84,934,656",
        "Let d = 768 and L = 12.\n\nThen 12 · L · d² = 84,934,656.",
        "With $d = 768$, $L = 12$: $12 L d^2 = 84{,}934{,}656$",
        r"$d_{\text{model}} = 768$"
        + "\n"
        + r"$n_\mathrm{layers} = 12$"
        + "\n"
        + r"$12\, n_{layers} d_{model}^{2} = 84934656$",
        "```python\nd_model = 768  # width\nn_layer = 12\nblocks = n_layer * 12 * d_model**2  # 84,934,656\n```",
        "d=768, L=12, N = L * (4*d**2 + 8*d**2) = 84_934_656",
    ],
)
def test_variables_that_the_text_defines(text):
    assert equations(text) == [(84_934_656, 84_934_656, True)]


def test_a_variable_can_get_a_new_value_but_a_computed_one_cannot_be_misquoted():
    assert equations("d = 768\nd = 1024\nd × 2 = 2048") == [(2048, 2048, True)]
    assert equations("d = 4 × 192\nd = 769")[-1] == (768, 769, False)


def test_keys_of_the_config_have_their_values_under_each_of_their_names():
    assert equations("Embedding: vocab_size × d_model = 38,597,376", against="gpt2") == [RIGHT]
    assert equations("Embedding: config.vocab_size * config.n_embd = 38,597,376", against="gpt2") == [RIGHT]
    assert equations("n_layer = 24", against="gpt2") == [(12, 24, False)]
    assert equations("n_layer = 12, n_head = 12", against="gpt2") == [(12, 12, True), (12, 12, True)]


@pytest.mark.parametrize(
    "text",
    [
        "Total = 38,597,376\n      + 786,432\n      = 39,383,808",
        "38,597,376 + 786,432\n= 39,383,808",
        "Total =\n38,597,376 +\n786,432 = 39,383,808",
        "Total: (38,597,376\n + 786,432) = 39,383,808",
        "\\begin{align*}\nN &= 38{,}597{,}376 + 786{,}432 \\\\\n  &= 39{,}383{,}808\n\\end{align*}",
        "$$\n38597376 + 786432\n$$\n$$\n= 39383808\n$$",
        "\\begin{align}\nN &= 38,597,376 + 786,432 \\\\\n  &= 39,383,808\n\\end{align}",
    ],
)
def test_an_equation_over_several_lines(text):
    assert equations(text) == [(39_383_808, 39_383_808, True)]


def test_lists_are_no_sums():
    text = "- A: 2 × 3 = 6\n- B: 2 × 4 = 8\n\n+ C: 1 × 5 = 5\n+ D: 2 × 5 = 10\n\n* E: 3 * 3 = 9\n\n1. 2 × 2 = 4\n2) 3 × 2 = 6"
    assert [left for left, *_ in equations(text)] == [6, 8, 5, 10, 9, 4, 6]
    assert all(correct for *_, correct in equations(text))


def test_labels_are_the_words_before():
    text = (
        "- **Token embedding:** 50257 × 768 = 38,597,376\n"
        "The output projection has 768 × 768 = 589,824 weights.\n"
        "Query - 768 × 768 = 589,824\n"
        "Attention (d = 768): 4 × 768 × 768 = 2,359,296\n"
        "| final norm | 2 × 768 | 1,536 |\n"
        "Embeddings (50257 × 768): 38,597,376\n"
    )
    assert labels(text) == [
        "Token embedding", "The output projection has", "Query", "d", "Attention (d = 768)", "final norm",
        "Embeddings (50257 * 768)",
    ]  # fmt: skip


def test_tables_by_their_cells():
    table = (
        "| part | how | parameters | share |\n|---|:-:|--:|--:|\n"
        "| tokens | 50257 × 768 | 38,597,376 | 98% |\n| positions | 1024 × 768 | 786,432 | 2% |\n"
        "| norm | 768 | 768 | 0% |\n| **total** | | **39,384,576** | |\n"
    )
    shares = [one for one in equations(table) if one[0] <= 100]
    numbers = [one for one in equations(table) if one not in shares]
    assert numbers == [RIGHT, (786_432, 786_432, True), (768, 768, True), (39_384_576, 39_384_576, True)]
    assert [(round(share), percent) for share, percent, _ in shares] == [(98, 98), (2, 2), (0, 0)]
    assert equations(table.replace("39,384,576", "39,384,577"))[-1] == (39_384_576, 39_384_577, False)
    assert equations(table.replace("| 768 | 768 |", "| 768 | 786 |"))[4] == (768, 786, False)


def test_parentheses_after_a_number_are_a_factor_or_a_remark():
    assert equations("768 (12 × 64) × 2 = 1536") == [(1536, 1536, True)]
    assert equations("12 (4 × 768 + 8 × 768) = 110,592") == [(110_592, 110_592, True)]
    assert equations("50257 × 768 (12 heads of 64) = 38,597,376") == [RIGHT]


def test_prose_is_no_equation():
    text = (
        "GPT-2 came in 2019, and/or v1.2 of it; 3 of 4 said x=y, a != b, 5 >= 3, see https://example.org/?a=5&b=6\n"
        "bias=False, lr = 3e-4, key => value, =====\n\nOne: 2 × 3 = 6"
    )
    assert equations(text) == [(6, 6, True)]


def test_arithmetic_outside_of_equations_is_named_as_not_judged():
    answer = tallystick.check("There are 50257 × 768 of them.\n2 + 3 = 5\n5 / 0 = 3\nN = 768 × foo + 3 = bar")
    assert [line for line, *_ in answer.unread] == [1, 3, 4]
    assert [equation.line for equation in answer.equations] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "x = 9**9**9", "2^10000000 = 5", "a: 10^600 × 10^600 = 5", "1e9999 = 1", "1.5 × 10^99999 = 3", "9" * 700 + " = 1",
        "(" * 10_000 + "1" + ")" * 10_000 + " = 1", "(" * 101 + "1" + ")" * 101 + " = 1", "1 = " + "-" * 150 + "1",
        "1 = " + "2^" * 150 + "2", "a = 10^500\n" + "a = a × a\n" * 3, "a = 2\n" + "a = a^9 + a × 1\n" * 30,
    ],
)  # fmt: skip
def test_what_would_explode_is_refused_with_its_line(text):
    with pytest.raises(BadInput) as error:
        tallystick.check(text + "\n")
    assert str(error.value).startswith("the text, line ")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "text",
    ["\n", "nothing here\n", "50257 × 768\n", "a = b\n", "=\n", "≈ ≈ ≈\n", "\\[ = \\]\n", "| a | b |\n", "=" * 500],
)
def test_a_text_without_an_equation_says_so(text):
    with pytest.raises(BadInput, match="has no equation in it"):
        tallystick.check(text)


def test_a_hundred_parentheses_and_a_long_sum_are_read():
    assert equations("(" * 90 + "1" + ")" * 90 + " = 1") == [(1, 1, True)]
    assert equations(" + ".join(["7"] * 900) + " = 6,300") == [(6300, 6300, True)]


def test_sums_of_sums_of_sums_stay_bounded():
    lines = ["a0 = 1000 + 1000", *(f"a{n} = a{n - 1} + a{n - 1}" for n in range(1, 300)), "total = a299"]
    assert tallystick.check("\n".join(lines), against="gpt2").total_claimed == 2000 * 2**299


def test_the_values_are_exact():
    answer = tallystick.check("A: 10^30 + 1 = 1000000000000000000000000000001\nB: 1/3 + 1/6 = 0.5")
    assert [equation.correct for equation in answer.equations] == [True, True]
    assert Fraction(answer.equations[0].left) == 10**30 + 1


def test_a_number_of_something_at_the_start_of_a_row_is_its_label():
    row = "| 32 layers | 32 × (67,108,864 + 135,266,304 + 8,192) | 6,476,267,520 |\n"
    assert (labels(row), equations(row)) == (["32 layers"], [(6_476_267_520, 6_476_267_520, True)])
    assert equations(row.replace("7,520", "7,521")) == [(6_476_267_520, 6_476_267_521, False)]


@pytest.mark.parametrize("term", ["589,824", r"768 \times 768", "589{,}824"])
def test_a_sum_of_equal_terms_is_no_formula_copied_three_times(term):
    """Queries, keys, values and output; and with a fifth term."""
    four = " + ".join([term] * 4)
    assert equations(rf"\[ {four} = 2,359,296 \]") == [(4 * 768**2, 2_359_296, True)]
    assert equations(rf"\[ 768 + {four} = 2,360,064 \]") == [(4 * 768**2 + 768, 2_360_064, True)]
    assert equations(rf"\( {four} = 2,359,297 \)") == [(4 * 768**2, 2_359_297, False)]


@pytest.mark.parametrize("comma", ["{,}", r"\,", " "])
def test_a_term_that_begins_as_three_equal_ones_before_it(comma):
    numbers = [1152**2, 1152**2, 1152**2, 15_579_648]
    terms = " + ".join(f"{number:,}".replace(",", comma) for number in numbers)
    assert equations(rf"\text{{One layer}} = {terms} = 19560960") == [(sum(numbers), 19_560_960, True)]


def test_a_short_formula_copied_three_times():
    text = "With L=12L = 12L=12 layers of width d=768d = 768d=768:\n\n"
    assert equations(text + "L × d = 9,216") == [(9_216, 9_216, True)]


@pytest.mark.parametrize("unseen", "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202c\u202e\u2060\u2066\u2069\ufeff")
def test_characters_that_are_not_seen(unseen):
    """Soft hyphens, zero-width joiners, marks of the direction of writing: a page has them, and who
    copies it does not know.
    """
    line = unseen.join(["Token embedding:", " 50", "257 ×", " 768", " = ", "38,", "597,376", ""])
    assert equations(line) == [RIGHT]
