"""A question, and answers as people write them, in Python and on the command line."""

from __future__ import annotations

import io
import json

import pytest

from tallystick.architectures import TEACHING
from tallystick.cli.main import main
from tallystick.course import quiz
from tallystick.course.quiz import MODELS
from tallystick.course.written import Written
from tallystick.errors import BadInput

# For each model the expression in the sizes of its question, by hand.
RIGHT = {
    "embedding": "V·d",
    "bare-bones-lm": "2*vocab_size*d_model + vocab_size",
    "mlp": "inputs*width + width + (depth-1)*(width^2 + width) + width*outputs + outputs",
    "feed-forward-lm": "V*d + T*d*width + width + (depth-1)*(width² + width) + width*V + V",
    "position-wise-lm": "n_vocab*emb_dim + 2*emb_dim*n_hidden + n_hidden + emb_dim",
    "single-head-attention": "3 × d_model × d_head",
    "multi-head-attention": "4·d_model²",
    "transformer-layer": "4*d**2 + 2*d*d_ff + d_ff + 5*d",
    "transformer-lm": "(2*V + T)*d + L*(4*d*d + 2*d*d_ff + d_ff + 5*d)",
    "rotary-transformer-lm": "2*V*d + L*(4*d*d + 2*d*d_ff + d_ff + 5*d)",
}


def test_the_quiz_asks_about_each_teaching_model():
    assert tuple(name.replace("_", "-") for name in TEACHING) == MODELS == tuple(RIGHT)


@pytest.mark.parametrize("model", RIGHT)
def test_a_question_names_its_sizes_and_takes_the_right_expression(model):
    question = quiz(model)
    for size, value in question.sizes.items():
        assert size in question.words
        assert f"{size} = {value:,}" in question.text
    assert "{" not in question.text
    assert question.judge(RIGHT[model]).right
    assert not question.judge(f"{RIGHT[model]} + 1").right


def test_a_number_is_judged_at_the_sizes_of_the_question():
    question = quiz("bare-bones-lm", vocab_size=256, d_model=5)
    assert question.judge(2 * 256 * 5 + 256).right
    assert question.judge("2,816").right
    wrong = question.judge(2 * 256 * 5)
    assert wrong.sentence == "wrong: 2,560 is 256 too few"
    assert wrong.hints[2] == "head.bias is left out: vocab_size too few"


def test_flags_change_the_words_and_the_answer():
    tied = quiz("bare-bones-lm", bias=False, tie_weights=True)
    assert "without a bias, and its matrix is the embedding's" in tied.words
    assert tied.judge("vocab_size*d_model").right
    assert quiz("multi-head-attention", d_model=5, head_dim=256, n_heads=2).judge("4·d_model·n_heads·head_dim").right
    assert quiz("multi-head-attention", d_model=5, head_dim=256, n_heads=2).judge(10_240).right


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50257 × 768", 38_597_376),
        ("38,597,376", 38_597_376),
        ("2^3 - 1", 7),
        ("-(3·4) + 12 / 4 * 5", 3),
        ("7 // 2", 3),
    ],
)
def test_what_is_written_has_its_value(text, value):
    assert Written(text)() == value


@pytest.mark.parametrize(
    "text",
    ["", "about 3", "__import__('os')", "a.b", "x if y else z", "1.5", "[1]", "2 ** 999", "(" * 3000, "1 = 1"],
)
def test_what_is_no_count_is_refused_in_one_line(text):
    with pytest.raises(BadInput) as error:
        quiz("embedding").judge(text)
    assert "\n" not in str(error.value)


def test_a_number_too_large_ends_soon():
    with pytest.raises(BadInput, match="16777216 is not a power from 0 to 8"):
        Written("((9**8)**8)**8*9**8**8")()


def test_unknown_models_and_sizes():
    with pytest.raises(BadInput, match="nearest: mlp"):
        quiz("mpl")
    with pytest.raises(BadInput, match="has no key 'hods'"):
        quiz("mlp", hods=3)


# -- the command line -----------------------------------------------------------------------------


def run(capsys, *words):
    code = main(["quiz", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_a_model_it_lists_them(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(MODELS)


def test_without_an_answer_it_asks_and_waits_for_nothing(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert run(capsys, "embedding") == (0, f"{quiz('embedding').text}\n", "")


@pytest.mark.parametrize(
    ("answer", "code", "first"),
    [
        ("1280", 0, "right"),
        ("n_vocab*emb_dim", 0, "right at each of 100 sizes"),
        ("1281", 1, "wrong: 1,281 is 1 too many"),
    ],
)
def test_an_answer_has_an_exit_code(capsys, answer, code, first):
    found, out, _ = run(capsys, "embedding", answer)
    assert (found, out.splitlines()[0]) == (code, first)


def test_hints_are_shown_as_many_as_one_asks_for(capsys):
    for many in (0, 1, 3):
        _, out, _ = run(capsys, "bare-bones-lm", "2*V*d", "--hints", str(many))
        assert out.count("hint ") == many
    assert out.splitlines()[-1] == "hint 3 of 3: head.bias is left out: V too few"


def test_answers_come_from_stdin_until_one_is_right(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("1279\n\nV*d\nnever read\n"))
    code, out, err = run(capsys, "embedding", "-")
    assert (code, err) == (0, "")
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith("hint")] == [
        "wrong",
        "right at each of 100 sizes",
    ]


def test_json(capsys):
    code, out, _ = run(capsys, "embedding", "1279", "--format", "json", "--no-exit-code")
    assert code == 0
    found = json.loads(out)
    assert found["sizes"] == {"vocab_size": 256, "d_model": 5}
    assert found["answers"][0]["sentence"] == "wrong: 1,279 is 1 too few"


@pytest.mark.parametrize("words", [("gpt9",), ("embedding", "about 3"), ("embedding", "--set", "d_model=x")])
def test_bad_input_is_one_line(capsys, words):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("tallystick: ")
    assert err.count("\n") == 1
