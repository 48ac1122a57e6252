"""The percentages of a list are judged by its total; one is wrong only where others are right."""

from __future__ import annotations

import pytest

import tallystick

TABLE = """\
| Part | Parameters | Share |
|---|---|---|
| Token embedding | 38,597,376 | {}% |
| Position embedding | 786,432 | 0.6% |
| Attention | 28,348,416 | {}% |
| MLP | 56,669,184 | 45.5% |
| Norms | 38,400 | 0.03% |
| **Total** | **124,439,808** | **100%** |
"""
LIST = (
    "Embeddings: 39.4M ({}%)\nAttention: 28.3M (22.8%)\nMLP: 56.7M (45.5%)\n"
    "Norms: 38,400 (0.03%)\nTotal: 124.4M parameters\n"
)


def wrong(text, against=None):
    equations = tallystick.check(text, against=against).equations
    return [(one.line, one.right, round(one.should_be, 2)) for one in equations if not one.correct]


def test_the_shares_of_a_total_are_right_as_rounded_or_cut():
    for share in ("31.0", "31", "31.02", "31.01"):
        answer = tallystick.check(TABLE.format(share, "22.8"))
        assert answer.correct
        assert sum(one.percent for one in answer.equations) == 6


@pytest.mark.parametrize(
    ("token", "attention", "found"),
    [("31.0", "27.8", [(5, 27.8, 22.78)]), ("37.0", "22.8", [(3, 37.0, 31.02)]), ("64.4", "22.8", [])],
)
def test_a_digit_wrong_in_a_share_is_found(token, attention, found):
    assert wrong(TABLE.format(token, attention)) == found  # 64.4 may be a share of something else


def test_the_shares_of_a_list_are_of_its_total():
    assert wrong(LIST.format("31.7")) == []
    assert wrong(LIST.format("37.7")) == [(1, 37.7, 31.67)]


@pytest.mark.parametrize("share", ["(17% of 16 layers)", "（占 16 层的 17%）"])
def test_a_share_of_a_part_is_not_of_the_total(share):
    text = (
        "| Part | Parameters | Share |\n|---|---|---|\n| Words | 262,668,288 | 21.3% |\n| 16 blocks | 973,144,064 | 78.7% |\n"
        f"| Total | 1,235,812,352 | 100% |\n\n- Attention: 16 × 10,485,760 = 167,772,160 {share}\n"
    )
    assert wrong(text) == []
    assert wrong(text.replace(share, "(17%)")) == [(7, 17, 13.58)]


def test_a_share_may_be_of_the_models_total():
    text = "Embeddings: 39.4M (31.7%)\nAttention: 28.3M (22.8%)\nMLP: 56.7M (45.5%)\nNorms: 38,400 (0.3%)\n"
    assert [one.percent for one in tallystick.check(text, against="gpt2").equations].count(True) == 3


def test_two_shares_prove_no_third_one_wrong():
    text = "Attention: 28.3M (22.8%)\nMLP: 56.7M (45.5%)\nEmbeddings: 39.4M (37.7%)\nTotal: 124.4M\n"
    assert wrong(text) == []


@pytest.mark.parametrize(("shares", "found"), [(("15.0", "70.1"), []), (("13.0", "70.1"), [(1, 13.0, 14.95)])])
def test_two_shares_of_exact_numbers_prove_a_third_one_wrong(shares, found):
    text = (
        "├── Words: 83,886,080 ({}%)\n├── Blocks: 393,216,000 ({}%)\n└── Head: 83,886,080 (15.0%)\nTotal: 560,988,160\n"
    )
    assert wrong(text.format(*shares)) == found


def test_a_share_of_several_rows_carries_a_wrong_one_on():
    rows = (
        "| Gate | 58,720,256 | 26.97% |\n| Up | 58,720,256 | 26.97% |\n| Down | 58,720,256 | 26.92% |\n"
        "| Query | 16,777,216 | 7.69% |\n| Key | 4,194,304 | 1.92% |\n| Value | 4,194,304 | 1.92% |\n"
        "| Output | 16,777,216 | 7.69% |\n| Norms | 8,192 | 0.00% |\n| **Total** | **218,112,000** | **100%** |\n"
    )
    assert [one[0] for one in wrong(rows)] == [1, 2]
    both = rows.replace("| Down", "| Gate and up | 117,440,512 | 53.94% |\n| Down")
    assert [one[0] for one in wrong(both)] == [1, 2]


def test_a_percentage_is_corrected_in_percent():
    (equation,) = tallystick.check("Share: 38,597,376 / 124,439,808 = 35.0%").equations
    assert (equation.percent, equation.right, round(equation.should_be, 2)) == (True, 35, 31.02)
    (other,) = tallystick.check("P(idle) = 1 - 6/64 = 0.94625").equations
    assert (other.percent, other.right) == (False, 0.94625)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("GPT-2: 50257 × 768 = 38.6M ({}% of 124M total)", 31.13),
        ("v7:  50,257 × 160 = 8.0M  ({}% of 10.6M total)", 75.47),
        ("Blocks: 12 × 7.09M ≈ 85.1M, **{}% of 124.4M**", 68.41),
        ("LLaMA-2: 32000 × 4096 = 131M (~{}% of the 7B)", 1.87),
    ],
)
def test_a_share_with_both_of_its_numbers_is_computed(line, found):
    assert wrong(line.format(round(found, 1))) == []
    assert wrong(line.format("7.7")) == [(1, 7.7, found)]
    assert tallystick.check(line.format("7.7")).total_claimed is None
