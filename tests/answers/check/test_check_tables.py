"""Tables in which a column multiplies others: sizes by widths, parameters by bytes."""

from __future__ import annotations

import pytest

import tallystick

WIDTHS = (16, 32, 64, 128, 768)
VOCABULARY = 50_257


def table(rows, head=("d", "V", "parameters", "MB in fp32")):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def embeddings(changed=None):
    rows = [
        [width, VOCABULARY, f"{width * VOCABULARY:,}", f"{width * VOCABULARY * 4 / 1e6:.1f} MB"] for width in WIDTHS
    ]
    for row, column, text in changed or ():
        rows[row][column] = text
    return table(rows)


def judged(text):
    return [(e.line, e.correct, e.should_be) for e in tallystick.check(text).equations]


def test_a_column_is_the_product_of_two_others_or_of_one_and_a_number():
    assert judged(embeddings()) == [(line, True, None) for line in range(3, 8) for _ in range(2)]


@pytest.mark.parametrize(
    ("row", "column", "text", "should_be"),
    [
        (4, 2, "38,597,476", 38_597_376),  # 768 × 50,257
        (2, 2, "3,126,448", 3_216_448),  # 64 × 50,257
        (3, 3, "52.7 MB", 25_731_584),  # 4 × 6,432,896
    ],
)
def test_a_digit_wrong_in_one_row_is_found(row, column, text, should_be):
    wrong = [e for e in judged(embeddings([(row, column, text)])) if not e[1]]
    assert wrong == [(row + 3, False, pytest.approx(should_be, rel=1e-2))]


def test_rows_that_have_another_number_are_not_judged():
    """A row with experts has no product, and two such rows make no columns."""
    assert all(correct for _, correct, _ in judged(embeddings([(3, 2, "9,999,999")])))
    assert [e for e in judged(embeddings([(3, 2, "9,999,999"), (1, 2, "7,777,777")])) if e[0] == 3] == [(3, True, None)]


@pytest.mark.parametrize("rows", [3, 4])
def test_a_ratio_needs_a_row_more_than_a_product(rows):
    text = table([[name, size, 2 * size] for name, size in zip("abcd"[:rows], (7, 13, 34, 70), strict=False)], "xyz")
    assert len(judged(f"2 × 768 = 1,536\n\n{text}")) == 1 + (rows if rows > 3 else 0)


def test_a_number_that_multiplies_a_rounded_one_is_right():
    """61 layers of 0.5625 MB are 34.3 MB, and 34.2 MB with the 0.56 MB that the row states."""
    rows = [[1024, "0.56 MB", "34.2 MB"], [4096, "2.25 MB", "137.3 MB"], [8192, "4.5 MB", "274.5 MB"]]
    text = table([*rows, [32768, "18 MB", "1098 MB"]], ("tokens", "a layer", "61 layers"))
    assert len(judged(text)) > len(rows)
    assert all(correct for _, correct, _ in judged(text))


def test_rounded_numbers_have_the_ratio_of_the_most_precise():
    """5.5 bits of a block of 4.9152M weights are 3.3792 MB: rounded, 3.38."""
    text = table(
        [["Q5", "5.5", "3.4 MB"], ["Q8", 8, "4.92 MB"], ["BF16", 16, "9.830400 MB"], ["F32", 32, "19.6608 MB"]], "xyz"
    )
    assert all(correct for _, correct, _ in judged(text))


def test_a_columns_number_may_be_the_result_of_an_equation():
    """And a row without numbers may stand between the others."""
    rows = [
        ["embedding", "32000 × 4096 = 131M", "262 MB"],
        ["attention", "4 × 4096² = 67M", "134 MB"],
        ["dropout", "none", "-"],
        ["MLP", "3 × 4096 × 11008 = 135M", "270 MB"],
        ["query", "4096² = 16.8M", "33.6 MB"],
        ["gate", "4096 × 11008 = 45.1M", "30.2 MB"],
    ]
    wrong = [e for e in judged(table(rows, ("part", "parameters", "bf16"))) if not e[1]]
    assert wrong == [(8, False, pytest.approx(90_200_000))]


def shapes(changed="256"):
    rows = [
        ("wte", "[27, 16]", 432),
        ("wq", "4 x [16, 4]", 256),
        ("wk", "4 x [16, 4]", changed),
        ("up", "[16, 64]", "1,024"),
    ]
    return table(rows, ("weight", "shape", "count"))


def test_a_shape_is_the_count_next_to_it_however_small():
    assert [(line, correct) for line, correct, _ in judged(shapes())] == [(3, True), (4, True), (5, True), (6, True)]
    assert [e for e in judged(shapes("236")) if not e[1]] == [(5, False, 256)]


def test_a_shape_with_a_blank_behind_its_comma_has_thousands():
    assert [one.correct for one in tallystick.check("Sizes: 2 × 3 = 6\nLoops (6, 1,536)     9,216\n").equations] == [
        True,
        True,
    ]
    assert [one.should_be for one in tallystick.check("Sizes: 2 × 3 = 6\nW (64, 64)   4,086\n").equations][1:] == [
        4_096
    ]


SUMS = [
    ("8K", "2.8 GB", "21.8 GB"),
    ("16K", "5.6 GB", "24.6 GB"),
    ("32K", "11.5 GB", "30.5 GB"),
    ("64K", "23.0 GB", "42.0 GB"),
    ("128K", "46.0 GB", "65.0 GB"),
]
PARTS = [("3M", "34M", "37M"), ("25M", "67M", "92M"), ("85M", "101M", "186M"), ("393M", "168M", "561M")]


@pytest.mark.parametrize(
    ("rows", "row", "column", "changed", "should_be"),
    [
        (SUMS, 2, 1, "51.5 GB", 11_500_000_000),  # the same weights are added to each cache
        (SUMS, 2, 2, "30.9 GB", 30_500_000_000),
        (PARTS, 2, 2, "136M", 186_000_000),  # two columns are added
        (PARTS, 3, 2, "567M", 561_000_000),
    ],
)
def test_a_column_is_the_sum_of_others(rows, row, column, changed, should_be):
    assert all(correct for _, correct, _ in judged(table(rows, "abc")))
    cells = [list(line) for line in rows]
    cells[row][column] = changed
    assert [e for e in judged(table(cells, "abc")) if not e[1]] == [
        (row + 3, False, pytest.approx(should_be, rel=1e-2))
    ]


def test_a_ratio_of_wide_columns_needs_no_further_row():
    rows = [("128", "7 MB"), ("1,024", "56 MB"), ("4,096", "824 MB"), ("16,384", "896 MB")]
    text = f"Width: 2 × 768 = 1,536\n\n{table(rows, ('tokens', 'cache'))}"
    assert [e for e in judged(text) if not e[1]] == [(7, False, 224_000_000)]


@pytest.mark.parametrize("behind", [" | 0.3% |", " |"])
@pytest.mark.parametrize(("number", "wrong"), [("394,752", 0), ("0.39M", 0), ("395,752", 1), ("1,536", 1)])
def test_a_sum_in_a_label_is_the_number_of_the_row(number, wrong, behind):
    text = f"| Part | Parameters |\n|---|---|\n| Positions (512 × 768) + segments (2 × 768) | {number}{behind}\n"
    found = tallystick.check(f"{text}\nWords: 30522 × 768 = 23,440,896\n").equations
    assert [one.should_be for one in found if not one.correct] == [394_752] * wrong


COUNTED = """\
| Component | Per layer | Count | Total |
|---|---|---|---|
| Token embedding | 3840000 | 1 | 3840000 |
| Attention | 2359296 | 12 | 28311552 |
| FFN | {} | 12 | 63700992 |
| Norms | 1536 | 12 | 18432 |
| **Total** | | | **95870976** |
"""


@pytest.mark.parametrize(("one", "wrong"), [("5308416", []), ("5378416", [5_308_416]), ("5178316", [])])
def test_a_digit_wrong_in_a_factor_is_found_by_the_product(one, wrong):
    answer = tallystick.check(COUNTED.format(one))
    assert [each.should_be for each in answer.equations if not each.correct] == wrong


def test_rows_of_one_layer_and_of_all_are_added_once():
    rows = """\
| Component | Per layer | Count | Total |
|---|---|---|---|
| Token embedding | 3,200,000 (3.20M) | 1 | 3,200,000 (~3.20M) |
| Attention | 1,638,400 ≈ 1.64M | 4 | 6,553,600 ≈ 6.55M |
| MoE | 39,326,720 (~39.33M) | 4 | 157,306,880 ≈ 157.31M |
| Norms | 1,280 | 4 | 5,120 |
| **Total** | | | **167,065,600 ≈ 167.07M** |
"""
    assert all(each.correct for each in tallystick.check(rows).equations)


LETTERS = """\
| Part | Formula | Value |
|---|---|---|
| Words | V d | 38.6 M |
| Positions | T d | 0.79 M |
| Attention | 12 · 4 d² | 28.3 M |
| MLP | 12 · 8 d² | {} M |
"""


@pytest.mark.parametrize(("mlp", "wrong"), [("56.6", []), ("53.6", [56_623_104])])
def test_letters_without_a_size_are_the_models_where_rows_show_it(mlp, wrong):
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{LETTERS.format(mlp)}", against="gpt2")
    assert [one.should_be for one in answer.equations if not one.correct] == wrong
    assert len(answer.equations) == 5


def test_letters_with_another_size_are_not_the_models():
    other = tallystick.check(f"Sizes: 2 × 3 = 6\n\nd = 1024\n\n{LETTERS.format('56.6')}", against="gpt2")
    larger = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{LETTERS.format('53.6')}", against="gpt2-medium")
    assert all(one.correct for answer in (other, larger) for one in answer.equations)
