"""Where an expression ends among words, and which chain a number of a line belongs to."""

import pytest

import tallystick
from tallystick.derivations.arithmetic import Undefined, evaluate
from tallystick.derivations.expressions.parser import prefix
from tallystick.derivations.expressions.tokens import tokens
from tallystick.derivations.reader import read_derivation


def first(text):
    """Return the value of the expression at the start of a text, and its number of tokens."""
    found = prefix(tokens(text), ())
    try:
        return None if found is None else (int(evaluate(found[0], {}).exact), found[1])
    except Undefined:
        return None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4 KV heads * 256", (1024, 5)),
        ("4 KV", (4, 1)),  # the capitals qualify nothing
        ("4 KV * 256", (4, 1)),
        ("4 kv heads * 256", (1024, 5)),
        ("4 xv heads * 256", (4, 1)),  # a word, for all that is known
        ("12 layers blocks heads tokens experts * 3", (36, 8)),
        ("12 layers blocks heads tokens experts dims * 3", (12, 1)),  # too many words are a sentence
        ("0.6B-Base 152,064 * 1,024", (600_000_000, 1)),  # a name
        ("0.6B - base 152,064 * 1,024", (600_000_000 - 152_064 * 1_024, 6)),
    ],
)
def test_an_expression_ends_where_its_words_do(text, value):
    assert first(text) == value


def test_arithmetic_behind_a_call_begins_a_chain_only_before_a_relation():
    found = read_derivation("w = Table(rows, cols) # of 512 * 256\nSize: 2 × 3 = 6\n", source="a text")
    assert [statement.line for statement in found.statements] == [2]
    found = read_derivation("w = Table(rows, cols) # 512 * 256 = 131,072\n", source="a text")
    assert len(found.statements[-1].sides) == 2


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("wide, deep = 768, 12\nwide × 2 = 1,546", [1536]),
        ("wide, deep = 768, 12, 4\nwide × 2 = 1,546", []),  # which is which?
        ("Layer: 256 × 256 = 65,536 (+256 biases) = 65,792", []),
        ("Layer: 256 × 256 = 65,536 (+256 biases) = 65,892", [65_792]),
        ("Layer: 256 × 256 = 65,536 (+256 biases)", []),
        ("Layer: 256 × 256 = 65,636 (+256 biases)", [65_536]),
        ("Rows: 512 × 2 = 3 very wide rows × 256", []),  # the words may be a factor
        ("Rows: 512 × 512 = 4,096 of them × 64", []),
    ],
)
def test_a_link_is_judged_where_its_names_and_asides_are_clear(text, right):
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n{text}\n")
    assert [one.should_be for one in answer.equations if not one.correct] == right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Query - 768 × 768 = 589,834", [768 * 768]),
        ("d - 768 × 768 = 589,834", []),  # a difference
        ("Up of layer 3  (768, 3072)   2,359,396", [768 * 3072]),
        ("| Words | 50257 × 768 | 38,597,386 (38.6M) |", [50257 * 768]),
    ],
)
def test_what_stands_beside_a_product_and_its_number_is_no_part_of_them(text, right):
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n{text}\n")
    assert [one.should_be for one in answer.equations if not one.correct] == right
