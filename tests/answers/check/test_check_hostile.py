"""Texts that are large, deep or strange: each is judged or ends in one clear line, at a cost that
grows with its length.

Calls of functions are counted, not seconds, as in `test_fuzz_cost`.
"""

import pytest

import tallystick
from fuzz_cost import calls_of
from repository import ROOT, TESTS
from tallystick.cli.main import main

HAND = (ROOT / "examples" / "gpt2_by_hand.md").read_text(encoding="utf-8")
CHAT = (TESTS / "chats" / "gpt2_124m.md").read_text(encoding="utf-8")
RIGHT = "Token embedding: 50257 × 768 = 38,597,376\n"
SIZE = 5_000  # characters of each
CALLS, MEMORY = 200, 1_000  # for each of them


def filled(unit):
    return unit * (SIZE // len(unit))


LARGE = {
    "parentheses": "(" * (SIZE // 2) + "1" + ")" * (SIZE // 2) + " = 1\n",
    "parentheses, not closed": filled("(") + "1 = 1\n",
    "towers of powers": filled("x = 9**9**9**9\n"),
    "digits": "1" * SIZE + " = 1\n",
    "digits alone": "1" * SIZE + "\n",
    "lines of digits": filled("1234567890" * 30 + "\n"),
    "equals signs": "=" * SIZE,
    "lines of equals signs": filled("=\n"),
    "a chain": filled("1=") + "1\n",
    "sums of ones": filled("1 + 1 = 2, and again:\n"),
    "a derivation again and again": filled(HAND),
    "a chat again and again": filled(CHAT),
    "rows of a table": filled("| wte | 50257 × 768 | 38,597,376 |\n"),
    "one row": filled("| 1 × 2 ") + "|\n",
    "bars": filled("|") + "\n",
    "LaTeX": filled("\\[ \\text{a} \\times \\frac{1}{2} = 3 \\]\n"),
    "LaTeX within LaTeX": "\\frac{" * (SIZE // 10) + "1" + "}{2}" * (SIZE // 10) + " = 1\n",
    "formulas copied three times": filled("2×768=15362 \\times 768 = 15362×768=1536\n"),
    "blanks": "1" + " " * SIZE + "= 1\n",
    "stars": filled("**a** *b* __c__ = " * 20 + "\n"),
    "lines that go on": filled("1 +\n"),
    "small sums": filled("1+1=2\n"),
    "totals": filled("Total: 12,345\n"),
    "labelled numbers": filled("a: 12,345\n"),
    "sections": filled("# Part\n\n2 × 3 = 6\n\n"),
    "empty lines": RIGHT + filled("\n"),
    "variables set anew": "".join(f"x = {1000 + number}\ny = x * 3 = 5\n" for number in range(SIZE // 23)),
    "a dictionary that never ends": "x = " + filled('{"a":'),
    "dictionaries": filled('C = {"vocab_size": 9, "emb_dim": 8, "n_heads": 2, "n_layers": 2, "context_length": 4}\n'),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_cost_of_a_text_grows_with_its_length(name):
    said = []

    def work():
        try:
            said.append(tallystick.check(LARGE[name], against="gpt2"))
        except tallystick.BadInput as error:
            said.append(str(error))

    cost = calls_of(work)
    assert cost.time < CALLS * SIZE
    assert cost.memory < MEMORY * SIZE
    assert all(len(one) < 200 and "\n" not in one for one in said if isinstance(one, str))


@pytest.mark.parametrize(
    "line",
    [
        "(" * 100_000 + "1" + ")" * 100_000 + " = 1",
        "x = 10**10**10",
        "9**9**9**9 = 5",
        r"\[ 9^{9^{9^{9}}} = 5 \]",
        "1" * 100_000 + " = 1",
        "=" * 100_000,
        "about " * 8_000 + "5",
        "|" * 100_000,
        "{" * 100_000,
        "\\text{" * 10_000 + " = 1",
        "\u202e\u2066\u200f 2 × x = 5",
        "\x1b[31mred\x1b[0m 2 × x = 5",
    ],
    ids=lambda line: ascii(line[:12]),
)
def test_a_hostile_line_does_not_keep_the_others_from_being_judged(line, tmp_path, capsys):
    """The line itself is left out, or said to be not judged."""
    file = tmp_path / "text.md"
    file.write_text(RIGHT + "\n" + line + "\n\n" + "Positions: 1024 × 768 = 786,433\n", encoding="utf-8")
    answer = tallystick.check(file, against="gpt2")
    judged = [(e.line, e.correct) for e in answer.equations]
    assert judged == [(1, True), (5, False)]
    assert main(["check", str(file), "--against", "gpt2"]) == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RIGHT + "\0", "is binary"),
        (RIGHT + "a" * 1_000_000, "is larger than 1,000,000 bytes"),
    ],
)
def test_what_is_refused_says_why_in_one_line(text, words, tmp_path, capsys):
    file = tmp_path / "text.md"
    file.write_text(text, encoding="utf-8")
    assert main(["check", str(file), "--against", "gpt2"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_long_text_with_one_equation_is_judged():
    """What is limited is the number of equations, up to a million characters."""
    prose = "A chapter on attention, without any sums in it.\n" * 8_000
    (equation,) = tallystick.check(prose + RIGHT, against="gpt2").equations
    assert (equation.line, equation.correct) == (8_001, True)


def test_of_many_equations_the_first_are_judged_and_the_rest_is_not():
    answer = tallystick.check(RIGHT * 3_002, against="gpt2")
    assert len(answer.equations) == 3_000
    (rest,) = answer.unread
    assert (rest.line, rest.why) == (3_001, "is not read: a text is judged up to its first 3,000 equations")


@pytest.mark.parametrize(
    "text",
    [
        "a = 3 × 0 = 5\nb = 10 / a = 2\n",  # 10 / 0, once the first line is right
        "d = 4 / 0 = 2 × 3 = 6, Total: 6,000 + 1 = 6,001\n",
        "x: 10^250 × 10^90 = 5\nTotal: 5 + 1000 = 1005\n",
        "1e270 / 3 × 1e20 / 7 = 5\nTotal: 1e270 million + 10 = 5\n",
        "MLP: 1000 × 4 / 0\n| a | 12 / 0 | 1,000 | 12,000 |\n",
    ],
)
@pytest.mark.parametrize("model", ["gpt2", None])
def test_what_has_no_value_ends_in_no_error_of_python(text, model):
    try:
        answer = tallystick.check(text, against=model)
    except tallystick.BadInput:
        return
    assert answer.to_dict()


def test_a_sum_goes_on_from_the_last_small_results_without_a_search():
    text = "".join(f"{number} + {number + 1} = {2 * number + 1}\n" for number in range(400))
    time, _ = calls_of(lambda: tallystick.check(text))
    assert time < 1_500 * 400
