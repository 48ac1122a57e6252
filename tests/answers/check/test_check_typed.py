"""A number without a formula that is the sum of the lines above it, but for a mistyped digit."""

import pytest

import tallystick

WORDS, BLOCK = 30_000 * 512, 12 * 512 * 512
BLOCKS = 6 * BLOCK
LINES = f"Words: 30,000 × 512 = {WORDS:,}\nOne block: 12 × 512 × 512 = {BLOCK:,}\n"


def wrong(text):
    return [equation.should_be for equation in tallystick.check(text).equations if not equation.correct]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (f"{LINES}6 blocks: 6 × {BLOCK:,} = {BLOCKS:,}\nTotal: 34,234,386", WORDS + BLOCKS),
        (f"{LINES}6 blocks: 6 × {BLOCK:,} = {BLOCKS:,}\nTotal: ~34,834,368", WORDS + BLOCKS),
        (f"{LINES}6 blocks: 18,874,668", BLOCKS),
        (f"{LINES}6 layers: 81,874,368", BLOCKS),
        ("| Part | Count |\n|---|---|\n| Words | 15.4M |\n| Blocks | 18.9M |\n| Total | 43.3M |", 34_300_000),
        ("Words: ≈ 15.4M\nBlocks: 6 × 3.15M ≈ 18.9M\nTotal: ≈ 64.3M", 34_300_000),
        (
            f"| Words | 30,000 × 512 | {WORDS:,} |\n| Places | 512 × 512 | 262,144 |\n| Both | | 15,662,144 |",
            15_622_144,
        ),
    ],
)
def test_a_mistyped_digit_is_found(text, right):
    assert wrong(f"{text}\n") == [right]


@pytest.mark.parametrize(
    "text",
    [
        "Words: ≈ 15.4M\nBlocks: 6 × 3.15M ≈ 18.9M\nTotal: ≈ 35.3M",  # with norms and biases
        "Words: ≈ 15.4M\nBlocks: 6 × 3.15M = 81.9M\nTotal: ≈ 34.3M",  # right, whatever the line above
        f"{LINES}Saved by tying: -{WORDS:,}\nTotal: 18,505,728",
        "Words: 15.4M\nBlocks: 18.9M\nThe usual size: 43.3M",
    ],
)
def test_another_total_is_not_accused(text):
    blocks = 6 * 3_150_000
    assert [one for one in wrong(f"{text}\n") if one != blocks] == []


def test_a_number_that_the_model_has_is_not_mistyped():
    text = "Words: 50257 × 768 = 38,597,376\nPlaces: 1024 × 768 = 786,432\nBoth: 39,383,808\n"
    assert [one.correct for one in tallystick.check(text, against="gpt2").equations] == [True] * 3


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("15,360,000 word table + 6 × 3,145,728 blocks = 34,243,368", WORDS + BLOCKS),
        ("Blocks: 6 × 3,145,728 = 18,874,368,   + words (30,000 + 512) × 512 = 15.9M", 15_622_144),
        ("The table is `30,000 × 512` = **~16.4M\nparameters**, of all", WORDS),
        ("| Words (30,000 × 512) | in words.py | 16.3M |", WORDS),
        ("In single precision `15,360,000 × 4 B = 64.1 MB`", 4 * WORDS),
    ],
)
def test_a_slip_among_words_is_found(text, right):
    assert wrong(f"Sizes: 2 × 768 = 1,536\n\n{text}\n") == [right]


@pytest.mark.parametrize(
    "text",
    [
        "3,145,728 each + 15,360,000 = 34,234,368",  # six of them
        "In single precision `15,360,000 × 4 B = 61.4 MB`",
        "| Words (30,000 × 512) | in words.py | 15.4M |",
        "A table of 15,360,000 + words behind + 18,874,368 = 34,234,368",
    ],
)
def test_words_that_change_a_number_are_not_judged(text):
    assert wrong(f"Sizes: 2 × 768 = 1,536\n\n{text}\n") == []


@pytest.mark.parametrize(
    ("text", "should_be"),
    [
        ("The table is large.\nIt has 38,579,376 numbers of 4 bytes each, and the head shares them.", 38_597_376),
        ("The table is large.\nIt has 38,597,876 numbers of 4 bytes each, and the head shares them.", 38_597_376),
        ("A scalar more makes that 38,597,377 in all of this text.", None),
        ("One model has 38,597,876 of them.\n\nAnother one has 38,597,876 too, on purpose.", None),
        ("The gradient has 38,597,876 bytes and is not the table that is counted here.", None),
    ],
)
def test_a_number_copied_with_a_digit_wrong(text, should_be):
    answer = tallystick.check(f"Token embedding: 50257 × 768 = 38,597,376\n\n{text}\n")
    assert [one.should_be for one in answer.equations if not one.correct] == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(
    ("line", "should_be"),
    [
        ("Final norm: 1,526", 1_536),
        ("Norms per layer: 3,062", 3_072),
        ("Final norm: 768", None),  # of the scales alone
        ("Norm of the embedding: 1,600", None),  # no digit of one that the model has
        ("Width of the norm: 758", None),
    ],
)
def test_a_digit_wrong_in_a_norm(line, should_be):
    equations = tallystick.check(f"Embedding: 50257 × 768 = 38,597,376\n{line}\n", against="gpt2").equations
    assert [one.should_be for one in equations if not one.correct] == ([] if should_be is None else [should_be])
