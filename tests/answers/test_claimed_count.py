"""Claims as people write them, and what is no claim."""

import pytest

import tallystick
from tallystick import BadInput
from tallystick.answers.reconcile.claimed_count import read_claim
from tallystick.cli.main import main


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("124M", 123_500_000, 124_500_000),  # a half rounds up for some and to even for others: both are in
        ("117m", 116_500_000, 117_500_000),
        ("6.7B", 6_650_000_000, 6_750_000_000),
        (".5B", 450_000_000, 550_000_000),
        ("0.5 billion", 450_000_000, 550_000_000),
        ("1.50bn", 1_495_000_000, 1_505_000_000),
        ("~7B parameters", 6_500_000_000, 7_500_000_000),
        ("1.5e9", 1_450_000_000, 1_550_000_000),
        ("1.24E+08", 123_500_000, 124_500_000),
        ("2T", 1_500_000_000_000, 2_500_000_000_000),
        ("12K", 11_500, 12_500),
        ("123550272", 123_550_272, 123_550_272),
        ("123,550,272", 123_550_272, 123_550_272),
        ("123_550_272", 123_550_272, 123_550_272),
        ("123 550 272", 123_550_272, 123_550_272),
        ("123.550272M", 123_550_272, 123_550_272),
        ("85,056,000", 85_056_000, 85_056_000),
        ("124000000", 123_500_000, 124_500_000),  # six zeros: nobody counted these
        (124_439_808, 124_439_808, 124_439_808),
    ],
)
def test_a_claim_stands_for_what_rounds_to_it(text, low, high):
    claim = read_claim(text)
    assert (claim.low, claim.high) == (low, high)


REFUSED = [
    ("abc", "is not a parameter count"), ("12Q", "is not a parameter count"), ("", "is not a parameter count"), ("-5", "is not a parameter count"), ("nan", "is not a parameter count"), ("inf", "is not a parameter count"),
    ("8x7B", "is not a parameter count"), ("6,7B", "is not a parameter count"), ("1,24M", "is not a parameter count"), ("1e9B", "is not a parameter count"), ("１２M", "is not a parameter count"),
    ("9" * 10_000, "is not a parameter count"), ("M" * 10_000, "is not a parameter count"), ("1\n2M", "is not a parameter count"), (".", "is not a parameter count"), ("e5", "is not a parameter count"),
    ("1e999", "more than 10^18"), ("1e19", "more than 10^18"), ("9999999T", "more than 10^18"), ("1e-999", "less than one"),
    ("124.4", "is not a whole number"), ("1.23456789012B", "is not a whole number"), ("0", "a claim must be above 0"), ("0.0M", "a claim must be above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[text[:12] for text, _ in REFUSED])
def test_what_is_no_count_is_refused_in_one_line(text, why, capsys):
    assert main(["reconcile", "gpt2", text]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert why in captured.err
    assert len(captured.err) < 250
    with pytest.raises(BadInput) as error:
        tallystick.reconcile("gpt2", text)
    assert captured.err == f"tallystick: {error.value.line}\n"


@pytest.mark.parametrize("claim", [10**5000, -(10**5000), -5, True, 1.5e9, None, b"7B"], ids=range(7))
def test_what_is_no_claim_in_python_is_refused(claim):
    with pytest.raises(BadInput):
        tallystick.reconcile("gpt2", claim)
