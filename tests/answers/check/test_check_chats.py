r"""Counts in the layout of a chatbot: a config on top, headings, bullets, ``\[ … \]`` on lines of
their own, running sums.

Sizes are multiplied out here; totals of whole models are those of transformers' classes.
"""

import io

import pytest
from rich.console import Console

import tallystick
from chats import NAMES, chat
from tallystick.report.check import show_check


def line_of(text, part):
    """The first line, from 1, with a part of it."""
    return next(number for number, line in enumerate(text.split("\n"), 1) if part in line)


def verdict(answer):
    """What is said first."""
    out = Console(file=io.StringIO(), width=1000)
    show_check(answer, out)
    return out.file.getvalue().partition("\n")[0]


def slips(answer):
    return [(e.line, e.right, e.should_be) for e in answer.equations if not e.correct]


def corrections(answer):
    return {omission.what: omission.parameters for omission in answer.omissions}


def adds_up(answer):
    sums = answer.total_claimed + answer.arithmetic + answer.rounding + answer.unexplained
    return sums + sum(omission.parameters for omission in answer.omissions) == answer.total_true


@pytest.fixture(scope="module")
def true_totals():
    """Parameters of the three models, as transformers builds them."""
    import torch
    import transformers

    configs = {
        "gpt2": transformers.GPT2Config(),
        "gpt2-xl": transformers.GPT2Config(n_embd=1600, n_layer=48, n_head=25),
        "llama-2-7b": transformers.LlamaConfig(),  # its defaults are those of 7B
    }
    with torch.device("meta"):
        models = {name: transformers.AutoModelForCausalLM.from_config(config) for name, config in configs.items()}
    return {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}


def book_gpt(d, layers):
    """Parameters under the book's dictionary: a head of its own, biases of all but queries, keys
    and values.
    """
    layer = 3 * d * d + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d) + 4 * d
    return 2 * 50257 * d + 1024 * d + layers * layer + 2 * d


# -- GPT-2 124M, with a slip and parts left out ---------------------------------------------------

V, D, L = 50257, 768, 12
SLIP = (38_596_416, V * D)
LEFT_OUT = {
    "position embedding": 1024 * D,
    "query, key and value projection biases of 12 layers": 3 * D * L,
    "attention output projection biases of 12 layers": D * L,
    "MLP biases of 12 layers": 5 * D * L,
    "norm shifts": (2 * L + 1) * D,
}


def test_gpt2_124m(true_totals):
    text = chat("gpt2_124m")
    answer = tallystick.check(text, against="gpt2")
    assert slips(answer) == [(line_of(text, r"50257 \times 768"), *SLIP)]
    assert answer.arithmetic == V * D - 38_596_416 == 960
    assert (answer.total_line, answer.total_claimed) == (line_of(text, "123,550,272"), 123_550_272)
    assert answer.total_true == true_totals["gpt2"]
    assert corrections(answer) == LEFT_OUT
    assert {omission.cause for omission in answer.omissions} == {"left out"}
    assert (answer.rounding, answer.unexplained, answer.unread) == (0, 0, ())
    assert adds_up(answer)
    off = true_totals["gpt2"] - 123_550_272
    assert verdict(answer).startswith(f"the text: 1 of 17 equations is wrong; its total is {off:,} less than gpt2's:")
    assert answer.convention == "without learned positions and without biases and norm shifts"


def test_a_text_that_counts_the_embedding_is_not_said_to_leave_it_out():
    """The head of an untied model has as many parameters: the text leaves out the head."""
    answer = tallystick.check(chat("gpt2_124m"))
    assert answer.against.startswith("GPT_CONFIG_124M")
    tied = "as if the output head were tied"
    assert answer.convention == f"{tied}, without learned positions and without biases and norm shifts"
    assert {omission.what for omission in answer.omissions if omission.cause == "left out"} >= {"head"}


def test_gpt2_124m_line_by_line():
    text = chat("gpt2_124m")
    answer = tallystick.check(text, against="gpt2")
    judged = {e.line: (e.right, e.matches) for e in answer.equations if e.matches}
    assert [(text.split("\n")[line - 1], *found) for line, found in judged.items()] == [
        (r"\text{vocab\_size} \times \text{emb\_dim} = 50257 \times 768 = 38,596,416", 38_596_416, "token embedding"),
        (
            r"3 \times (\text{emb\_dim} \times \text{emb\_dim}) = 3 \times (768 \times 768) = 1,769,472",
            3 * D * D, "query, key and value projections of one layer, without its bias",
        ),
        (
            r"\text{emb\_dim} \times \text{emb\_dim} = 768 \times 768 = 589,824",
            D * D, "attention output projection of one layer, without its bias",
        ),
        ("1,769,472 + 589,824 = 2,359,296", 4 * D * D, "attention of one layer, without biases"),
        (r"768 \times 3072 = 2,359,296", 4 * D * D, "up projection of the MLP of one layer, without its bias"),
        (r"3072 \times 768 = 2,359,296", 4 * D * D, "down projection of the MLP of one layer, without its bias"),
        ("2,359,296 + 2,359,296 = 4,718,592", 8 * D * D, "MLP of one layer, without biases"),
        (r"2 \times \text{emb\_dim} = 2 \times 768 = 1,536", 2 * D, "norm scales of one layer"),
        (
            "2,359,296 + 4,718,592 + 1,536 = 7,079,424",
            12 * D * D + 2 * D, "one layer, without biases and norm shifts",
        ),
        (r"7,079,424 \times 12 = 84,953,088", L * (12 * D * D + 2 * D), "12 layers, without biases and norm shifts"),
        (
            r"38,596,416 \text{ (embedding)} + 84,953,088 \text{ (transformer layers)} + 768 \text{ (final layer norm)} = 123,550,272",
            123_550_272, "token embedding + 12 layers, without biases and norm shifts + final norm scales",
        ),
    ]  # fmt: skip


def test_the_slip_is_carried_to_the_total_and_nowhere_else():
    text = chat("gpt2_124m")
    answer = tallystick.check(text, against="gpt2")
    assert {e.line: e.carried for e in answer.equations if e.carried} == {line_of(text, "123,550,272"): -960}


def test_gpt2_124m_by_the_dictionary_on_top():
    """Three dictionaries, and the total says which is meant; the book's model has a head of its
    own.
    """
    text = chat("gpt2_124m")
    answer = tallystick.check(text)
    assert answer.against == f"GPT_CONFIG_124M (line {line_of(text, 'GPT_CONFIG_124M')} of the text)"
    assert answer.total_true == book_gpt(D, L) == 163_009_536
    assert [slip[1:] for slip in slips(answer)] == [SLIP]
    assert (answer.arithmetic, answer.unexplained) == (960, 0)
    assert adds_up(answer)
    assert sum(corrections(answer).values()) == book_gpt(D, L) - 123_550_272 - 960
    assert corrections(answer)["position embedding"] == 1024 * D


def test_gpt2_124m_without_the_slip():
    text = chat("gpt2_124m", {38_596_416: V * D, 123_550_272: 123_550_272 + 960})
    answer = tallystick.check(text, against="gpt2")
    assert (slips(answer), answer.arithmetic, corrections(answer)) == ([], 0, LEFT_OUT)
    assert "all 17 equations are right" in verdict(answer)


def test_gpt2_124m_with_a_total_that_hides_the_slip():
    """The total of the right numbers, and the slip on its own line: the sum as it stands is wrong
    too.
    """
    text = chat("gpt2_124m", {123_550_272: 123_551_232})
    answer = tallystick.check(text, against="gpt2")
    assert (line_of(text, "123,551,232"), 123_551_232) in [slip[:2] for slip in slips(answer)]
    assert adds_up(answer)


# -- right ones -----------------------------------------------------------------------------------

HEAD_TWICE = 50257 * 1600


def test_gpt2_1558m(true_totals):
    text = chat("gpt2_1558m")
    answer = tallystick.check(text)
    assert answer.against == "GPT_CONFIG_1558M (line 3 of the text)"
    assert answer.correct
    assert answer.total_claimed == answer.total_true == book_gpt(1600, 48) == 1_637_792_000
    assert answer.total_line == line_of(text, "1,637,792,000")
    assert verdict(answer) == "the text: all 22 equations are right; its total matches " + answer.against

    answer = tallystick.check(text, against="gpt2-xl")
    assert slips(answer) == []
    assert answer.total_true == true_totals["gpt2-xl"]
    assert corrections(answer) == {
        "the head, tied to transformer.wte.weight": -HEAD_TWICE,
        "query, key and value projection biases of 48 layers": 48 * 3 * 1600,
    }
    assert adds_up(answer)
    more = 1_637_792_000 - true_totals["gpt2-xl"]
    assert verdict(answer).startswith(f"the text: all 22 equations are right; its total is {more:,} more than gpt2-xl")


@pytest.mark.parametrize("against", [None, "llama-2-7b"])
def test_llama2_7b(against, true_totals):
    text = chat("llama2_7b")
    answer = tallystick.check(text, against=against)
    assert answer.against == (against or "LLAMA2_CONFIG_7B (line 3 of the text)")
    assert answer.correct
    assert answer.total_claimed == answer.total_true == true_totals["llama-2-7b"]
    assert answer.total_line == line_of(text, "6,738,415,616")
    assert answer.convention is None
    assert (answer.omissions, answer.arithmetic, answer.unread) == ((), 0, ())
    assert verdict(answer) == f"the text: all 17 equations are right; its total matches {answer.against}"


# -- one slip, carried on or not ------------------------------------------------------------------

LLAMA_LAYER = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
LLAMA = 2 * 32000 * 4096 + 32 * LLAMA_LAYER + 4096
XL_LAYER = 4 * 1600**2 + 1600 + 8 * 1600**2 + 5 * 1600 + 4 * 1600
XL = 2 * 50257 * 1600 + 1024 * 1600 + 48 * XL_LAYER + 3200

CARRIED = [  # a result, by how much it is wrong, and how often that is in each later result
    ("llama2_7b", 32000 * 4096, 900, {LLAMA: 2}, 16),
    ("llama2_7b", 3 * 4096**2, -1_000, {4 * 4096**2: 1, LLAMA_LAYER: 1, 32 * LLAMA_LAYER: 32, LLAMA: 32}, 23),
    ("llama2_7b", 3 * 4096 * 11008, 99, {LLAMA_LAYER: 1, 32 * LLAMA_LAYER: 32, LLAMA: 32}, 36),
    ("llama2_7b", 32 * LLAMA_LAYER, -10_000, {LLAMA: 1}, 51),
    ("llama2_7b", LLAMA, 9, {}, 66),
    ("gpt2_1558m", 1024 * 1600, 9_000, {XL: 1}, 20),
    ("gpt2_1558m", 1600**2 + 1600, -1_600, {4 * 1600**2 + 1600: 1, XL_LAYER: 1, 48 * XL_LAYER: 48, XL: 48}, 31),
    ("gpt2_1558m", XL_LAYER, 360, {48 * XL_LAYER: 48, XL: 48}, 59),
    ("gpt2_1558m", 48 * XL_LAYER, 1, {XL: 1}, 64),
    ("gpt2_1558m", XL, -27, {}, 79),
]


@pytest.mark.parametrize("described", [True, False], ids=["by its dictionary", "against a preset"])
@pytest.mark.parametrize(("name", "number", "off", "later", "line"), CARRIED)
def test_a_slip_that_is_carried_on(name, number, off, later, line, described):
    if name == "llama2_7b" and number == 32000 * 4096:
        later, first = {LLAMA: 1}, f"32000 \\times 4096 = {number + off:,}"
        text = chat(name, {LLAMA: LLAMA + off}).replace(f"32000 \\times 4096 = {number:,}", first)
        text = text.replace(f"\n{number:,} \\text{{ (embedding)}}", f"\n{number + off:,} \\text{{ (embedding)}}")
    elif name == "gpt2_1558m" and number == 1600**2 + 1600:
        text = chat(name, {number: number + off})
        old, new = 4 * 1600**2 + 1600, 4 * 1600**2 + 1600 + off
        text = text.replace(f"{number + off:,} = {old:,}", f"{number + off:,} = {new:,}")
        text = text.replace(f"{old:,} + 20,488,000", f"{new:,} + 20,488,000")
        for result, times in list(later.items())[1:]:
            text = text.replace(f"{result:,}", f"{result + times * off:,}")
    else:
        text = chat(name, {number: number + off, **{result: result + times * off for result, times in later.items()}})
    answer = tallystick.check(text, against=None if described else NAMES[name])
    assert slips(answer) == [(line, number + off, number)]
    whole, times = (LLAMA, later.get(LLAMA, 1)) if name == "llama2_7b" else (XL, later.get(XL, 1))
    assert answer.total_claimed == whole + times * off
    assert answer.arithmetic == -times * off
    assert answer.total_line == line_of(text, f"= {whole + times * off:,}")
    assert adds_up(answer)
    known = {} if described or name == "llama2_7b" else {"the head, tied to transformer.wte.weight": -HEAD_TWICE}
    assert sum(corrections(answer).values()) == sum(known.values()) + (230_400 if known else 0)


ALONE = [  # what stands in the text, what is put there, and its line; later lines use the right number
    ("llama2_7b", r"32000 \times 4096 = 131,072,000", "131,072,960", 16),
    ("llama2_7b", r"(4096 \times 4096) = 50,331,648", "50,331,684", 23),
    ("llama2_7b", r"11008 = 135,266,304", "135,266,305", 36),
    ("llama2_7b", "8,192 = 202,383,360", "202,338,360", 46),
    ("llama2_7b", r"\times 32 = 6,476,267,520", "6,476,267,530", 51),
    ("gpt2_1558m", "6400 + 6400 = 10,246,400", "10,246,300", 41),
    ("gpt2_1558m", r"\times 1600 + 1600 = 10,241,600", "10,241,601", 45),
    ("gpt2_1558m", "10,241,600 = 20,488,000", "20,488,010", 49),
    ("gpt2_1558m", r"\times 48 = 1,475,328,000", "1,475,382,000", 64),
]


@pytest.mark.parametrize(("name", "part", "wrong", "line"), ALONE)
def test_a_slip_that_stays_on_its_line(name, part, wrong, line):
    text = chat(name)
    assert text.count(part) == 1
    text = text.replace(part, part.rpartition(" = ")[0] + " = " + wrong)
    answer = tallystick.check(text)
    right = int(part.rpartition(" = ")[2].replace(",", ""))
    assert slips(answer) == [(line, int(wrong.replace(",", "")), right)]
    assert answer.total_claimed == answer.total_true
    assert (answer.arithmetic, answer.omissions, answer.unexplained) == (0, (), 0)
    assert not answer.correct


# -- parts left out -------------------------------------------------------------------------------


def test_a_gate_left_out():
    """Two matrices in the MLP, and each later result with them."""
    one = 4096 * 11008
    text = chat("llama2_7b", {LLAMA_LAYER: LLAMA_LAYER - one, 32 * LLAMA_LAYER: 32 * (LLAMA_LAYER - one)})
    text = text.replace(f"{3 * one:,}", f"{2 * one:,}").replace(
        "3 \\times 4096 \\times 11008", "2 \\times 4096 \\times 11008"
    )
    text = text.replace(f"{LLAMA:,}", f"{LLAMA - 32 * one:,}")
    answer = tallystick.check(text)
    assert slips(answer) == []
    assert list(corrections(answer).values()) == [32 * one]
    assert answer.unexplained == 0
    assert adds_up(answer)
    (mlp,) = [e for e in answer.equations if e.line == 36]
    assert "two matrices are counted, and there are three" in mlp.label_names


@pytest.mark.parametrize(
    ("name", "part", "missing", "what"),
    [
        ("llama2_7b", r" + 131,072,000 \text{ (output head)}", 32000 * 4096, "head"),
        ("llama2_7b", r" + 4,096 \text{ (final norm)}", 4096, "final norm"),
        ("gpt2_1558m", r" + 1,638,400 \text{ (position embedding)}", 1024 * 1600, "position embedding"),
        ("gpt2_1558m", r" + 3,200 \text{ (final layer norm)}", 3200, "final norm"),
        ("gpt2_1558m", r" + 80,411,200 \text{ (output head)}", 50257 * 1600, "head"),
    ],
)
def test_a_term_left_out_of_the_total(name, part, missing, what):
    whole = LLAMA if name == "llama2_7b" else XL
    text = chat(name, {whole: whole - missing})
    assert part in text
    answer = tallystick.check(text.replace(part, ""))
    assert slips(answer) == []
    assert answer.total_claimed == whole - missing
    assert sum(corrections(answer).values()) == missing
    assert len(answer.omissions) == 1
    assert what in answer.omissions[0].what.replace("LM head", "head")
    assert answer.omissions[0].cause == "left out"
    assert adds_up(answer)
