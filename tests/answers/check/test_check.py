"""A derivation against a model: what each line is, which errors are new, and how the total becomes
the model's.
"""

import io
import json
import sys

import pytest

import tallystick
from repository import ROOT
from tallystick import BadInput
from tallystick.cli.main import main

BY_HAND = ROOT / "examples" / "gpt2_by_hand.md"


def corrections(answer):
    return {omission.what: omission.parameters for omission in answer.omissions}


def adds_up(answer):
    sums = answer.total_claimed + answer.arithmetic + answer.rounding + answer.unexplained
    return sums + sum(omission.parameters for omission in answer.omissions) == answer.total_true


# -- the model case -------------------------------------------------------------------------------


def test_gpt2_by_hand():
    answer = tallystick.check(BY_HAND, against="gpt2")
    wrong = [equation for equation in answer.equations if not equation.correct]
    assert [(e.line, e.left, e.right, e.should_be) for e in wrong] == [(5, 38_597_376, 38_596_416, 38_597_376)]
    assert (answer.total_claimed, answer.total_true, answer.total_line) == (123_550_272, 124_439_808, 12)
    assert answer.arithmetic == 960
    assert corrections(answer) == {
        "position embedding": 786_432,
        "query, key and value projection biases of 12 layers": 27_648,
        "attention output projection biases of 12 layers": 9_216,
        "MLP biases of 12 layers": 46_080,
        "norm shifts": 19_200,
    }
    assert 27_648 + 9_216 + 46_080 == 82_944
    assert {omission.cause for omission in answer.omissions} == {"left out"}
    assert answer.unexplained == answer.rounding == 0
    assert adds_up(answer)
    assert not answer.correct


def test_an_error_that_is_carried_on_is_told_from_a_new_one():
    answer = tallystick.check(BY_HAND, against="gpt2")
    total = answer.equations[-1]
    assert (total.correct, total.carried) == (True, -960)
    text = BY_HAND.read_text(encoding="utf-8").replace("= 123,550,272", "= 123,550,273")
    total = tallystick.check(text, against="gpt2").equations[-1]
    assert (total.correct, total.should_be) == (False, 123_550_272)
    assert adds_up(tallystick.check(text, against="gpt2"))


def test_each_line_is_matched_with_what_it_is():
    matches = {e.line: e.matches for e in tallystick.check(BY_HAND, against="gpt2").equations}
    assert matches == {
        5: "token embedding",
        6: "attention of one layer, without biases",
        7: "MLP of one layer, without biases",
        8: "attention and MLP of one layer, without biases",
        9: "attention and MLP of 12 layers, without biases",
        10: "norm scales",
        12: "token embedding + 12 layers, without biases and norm shifts + final norm scales",
    }


@pytest.mark.parametrize(
    ("line", "what", "names"),
    [
        ("Output projection: 12 × 768 × 768 = 7,077,888", "attention output projection of 12 layers, without its bias", "attn.c_proj.weight"),
        ("W_o: 768² = 589,824", "attention output projection of one layer, without its bias", "attn.c_proj.weight"),
        ("W_q: 768 × 768 = 589,824", "query projection of one layer, without its bias", "attn.c_attn.weight"),
        ("QKV biases: 3 × 768 × 12 = 27,648", "query, key and value projection biases of 12 layers", "attn.c_attn.bias"),
        ("MLP down: 3072 × 768 + 768 = 2,360,064", "down projection of the MLP of one layer", "mlp.c_proj"),
        ("Second feed-forward matrix: 12 × 3072 × 768 = 28,311,552", "down projection of the MLP of 12 layers, without its bias", "mlp.c_proj.weight"),
        ("Attention: 12 × 4 × 768² = 28,311,552", "attention of 12 layers, without biases", "attn.c_attn.weight"),
        ("LayerNorms: 2 × 2 × 768 = 3,072", "norms of one layer", "ln_1.weight"),
        ("Final LayerNorm: 2 × 768 = 1,536", "final norm", "ln_f.weight"),
        ("Block: 12 × 768² + 13 × 768 = 7,087,872", "one layer", "mlp.c_fc.bias"),
        ("LM head: 50257 × 768 = 38,597,376", "the head, tied to transformer.wte.weight", "lm_head.weight"),
        ("Everything: 124,439,808 = 124,439,808", "the whole model", "wpe"),
    ],
)  # fmt: skip
def test_quantities_of_gpt2(line, what, names):
    equation = tallystick.check(line, against="gpt2").equations[0]
    assert equation.correct
    assert equation.matches == what
    assert any(names in name for name in equation.names)


def test_a_mistyped_factor_is_told_from_a_wrong_result():
    mistyped = tallystick.check("Token embedding: 50257 × 786 = 38,597,376", against="gpt2").equations[0]
    assert (mistyped.correct, mistyped.left, mistyped.should_be) == (False, 39_502_002, 38_597_376)
    assert mistyped.matches == "token embedding"


# -- what the whole leaves out --------------------------------------------------------------------

WHOLE = {
    "Token embedding": "50257 × 768 = 38,597,376",
    "Position embedding": "1024 × 768 = 786,432",
    "Attention with biases": "12 × (4 × 768² + 4 × 768) = 28,348,416",
    "MLP with biases": "12 × (8 × 768² + 5 × 768) = 56,669,184",
    "LayerNorms": "25 × 2 × 768 = 38,400",
}


def gpt2_text(**changes):
    """The parts of GPT-2 as a list with its sum, `changes` made to it; None leaves a part out."""
    parts = {**WHOLE, **{key.replace("_", " "): value for key, value in changes.items()}}
    lines = {label: value for label, value in parts.items() if value}
    values = [int(value.rpartition("= ")[2].replace(",", "")) for value in lines.values()]
    total = f"Total: {' + '.join(f'{value:,}' for value in values)} = {sum(values):,}"
    return "\n".join([*(f"- {label}: {value}" for label, value in lines.items()), total])


def test_nothing_is_left_out_of_the_whole():
    answer = tallystick.check(gpt2_text(), against="gpt2")
    assert answer.correct
    assert answer.omissions == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"Position_embedding": None}, {"position embedding": 786_432}),
        ({"LayerNorms": None}, {"norms": 38_400}),
        ({"LayerNorms": "24 × 2 × 768 = 36,864"}, {"final norm": 1_536}),
        ({"LayerNorms": "25 × 768 = 19,200"}, {"norm shifts": 19_200}),
        ({"MLP_with_biases": None}, {"MLP of 12 layers": 56_669_184}),
        ({"MLP_with_biases": "12 × 768 × 3072 = 28,311,552", "Attention_with_biases": "12 × 4 × 768² = 28,311,552"},
         {"query, key and value projection biases of 12 layers": 27_648, "attention output projection biases of 12 layers": 9_216,
          "MLP biases of 12 layers": 46_080, "down projection of the MLP of 12 layers, without its bias": 28_311_552}),
        ({"LM_head": "50257 × 768 = 38,597,376"}, {"the head, tied to transformer.wte.weight": -38_597_376}),
        ({"Output_layer": "768 × 50257 = 38,597,376"}, {"the head, tied to transformer.wte.weight": -38_597_376}),
        ({"Positions_again": "1024 × 768 = 786,432"}, {"position embedding": -786_432}),
        ({"Position_embedding": "2048 × 768 = 1,572,864"}, {"position embedding": -786_432}),
        ({"Rotary_tables": "5 × 1111 = 5,555"}, {"Rotary tables": -5_555}),
    ],
)  # fmt: skip
def test_what_is_left_out_counted_twice_or_of_another_size(changes, expected):
    answer = tallystick.check(gpt2_text(**changes), against="gpt2")
    assert all(equation.correct for equation in answer.equations)
    assert corrections(answer) == expected
    assert answer.unexplained == answer.arithmetic == 0
    assert adds_up(answer)
    assert not answer.correct


def test_a_total_that_stands_alone_is_that_of_the_lines_above():
    text = "\n".join(f"- {label}: {value}" for label, value in WHOLE.items()) + "\n\nTotal: 124,439,808 parameters"
    answer = tallystick.check(text, against="gpt2")
    assert answer.correct
    answer = tallystick.check(text.replace("Total: 124,439,808", "Total: 124,439,807"), against="gpt2")
    assert [(e.left, e.right, e.correct) for e in answer.equations][-1] == (124_439_808, 124_439_807, False)
    assert (answer.arithmetic, answer.omissions) == (1, ())


def test_a_total_without_any_term_is_not_explained_by_force():
    answer = tallystick.check("A: 2 × 3 = 6\n\nTotal: 117,000,000", against="gpt2")
    assert (answer.total_claimed, answer.unexplained, answer.omissions) == (117_000_000, 7_439_808, ())
    answer = tallystick.check("Total: 1234 × 5678 + 99 = 7,006,751", against="gpt2")
    assert answer.omissions == ()
    assert adds_up(answer)


def test_a_rounded_total_lacks_its_rounding_alone():
    answer = tallystick.check("Total = 38,597,376 + 786,432 + 85,056,000 ≈ 124.4M", against="gpt2")
    assert (answer.total_claimed, answer.rounding, answer.correct) == (124_400_000, 39_808, True)
    assert adds_up(answer)


def test_rounded_terms_that_reach_the_model_leave_nothing_out():
    answer = tallystick.check("Total: 38.6M + 85.1M + 0.79M = 124.5M", against="gpt2")
    assert (answer.omissions, answer.rounding, answer.correct) == ((), -60_192, True)
    answer = tallystick.check("Total: 38.6M + 85.1M = 123.7M", against="gpt2")
    assert not answer.correct
    assert adds_up(answer)


def test_a_table_with_a_column_for_one_layer_and_one_for_all():
    table = (
        "| tensor | shape | one | all 12 |\n|---|---|--:|--:|\n"
        "| W_q | 768 × 768 | 589,824 | 7,077,888 |\n| W_k | 768 × 768 | 589,824 | 7,077,888 |\n"
        "| total | | | 14,155,776 |\n"
    )
    answer = tallystick.check(table, against="gpt2")
    assert [(e.left, e.right, e.correct) for e in answer.equations][-1] == (14_155_776, 14_155_776, True)
    assert corrections(answer)["token embedding"] == 38_597_376
    assert adds_up(answer)


def test_bytes_are_no_total():
    text = gpt2_text() + "\nTotal memory: 124,439,808 × 4 bytes = 497,759,232 bytes"
    assert tallystick.check(text, against="gpt2").total_claimed == 124_439_808


def test_experts_and_grouped_heads_of_mixtral():
    text = (
        "Embedding and head: 2 × 32000 × 4096 = 262,144,000\n"
        "Attention: 32 × (2 × 4096² + 2 × 4096 × 1024) = 1,342,177,280\n"
        "Experts: 32 × 8 × 3 × 4096 × 14336 = 45,097,156,608\n"
        "RMSNorms: (2 × 32 + 1) × 4096 = 266,240\n"
        "Total: 262,144,000 + 1,342,177,280 + 45,097,156,608 + 266,240 = 46,701,744,128\n"
    )
    answer = tallystick.check(text, against="mixtral-8x7b")
    assert [e.matches for e in answer.equations][1:4] == ["attention of 32 layers", "experts of 32 layers", "norms"]
    assert adds_up(answer)
    assert answer.total_true - answer.total_claimed == 32 * 8 * 4096  # the router


def test_embedding_and_head_in_one_product():
    """Without the norms: 65 × 4,096."""
    text = "embedding and head: 2 × 32000 × 4096 = 262144000\n32 × (4 × 4096² + 3 × 4096 × 11008) = 6476005376\ntotal: 262144000 + 6476005376 = 6738149376"
    answer = tallystick.check(text, against="llama-2-7b")
    assert answer.equations[0].matches == "token embedding and LM head"
    assert corrections(answer) == {"norms": 65 * 4096}


def test_a_checkpoint_and_a_module_are_checked_against_too(tmp_path):
    from torch import nn

    model = nn.Sequential(nn.Linear(300, 40), nn.Linear(40, 30))
    answer = tallystick.check("Total: 300 × 40 + 40 × 30 = 13,200", against=model)
    assert (answer.total_true, adds_up(answer)) == (13_270, True)


# -- doors ----------------------------------------------------------------------------------------


def test_without_a_model_the_arithmetic_alone_is_checked():
    answer = tallystick.check("A: 2 × 3 = 6\nTotal: 6 + 5 = 12")
    assert [e.correct for e in answer.equations] == [True, False]
    assert (answer.against, answer.total_claimed, answer.total_true) == (None, 12, None)
    assert not answer.correct


def test_json_is_what_to_dict_gives(capsys):
    assert main(["check", str(BY_HAND), "--against", "gpt2", "--format", "json"]) == 1
    out = json.loads(capsys.readouterr().out)
    assert out == tallystick.check(BY_HAND, against="gpt2").to_dict()
    assert {"equations", "omissions", "total_claimed", "total_true"} <= out.keys()
    assert {"line", "text", "left", "right", "correct", "matches"} <= out["equations"][0].keys()
    assert {"what", "parameters", "names"} <= out["omissions"][0].keys()


def test_the_exit_code_and_the_sentence(capsys, tmp_path):
    file = tmp_path / "right.md"
    file.write_text(gpt2_text(), encoding="utf-8")
    assert main(["check", str(file), "--against", "gpt2"]) == 0
    assert "all 6 equations are right; its total matches gpt2" in capsys.readouterr().out
    assert main(["check", str(file), "--against", "gpt2", "--set", "n_positions=2048"]) == 1
    out = capsys.readouterr().out
    assert "its total is 786,432 less than gpt2's" in out
    assert "another size" in out
    assert main(["check", str(file)]) == 0
    assert main(["check", str(file), "--against", "gpt2", "--format", "markdown"]) == 0
    assert "| line | equation" in capsys.readouterr().out


def test_a_text_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"2 x 3 = 7\n")))
    assert main(["check", "-"]) == 1
    assert capsys.readouterr().out.startswith("standard input: its equation is wrong")


def refused(capsys, *arguments):
    assert main(["check", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tallystick: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"no equation\n", "has no equation in it"),
        (b"\x89PNG\r\n\x1a\n\x00\x00 = 1", "is binary"),
        (b"caf\xe9 = 1\n", "byte 3 is not UTF-8"),
        (b"x = 9**9**9\n", "line 1: gives a number of over 300 digits"),
    ],
)
def test_files_that_are_no_derivation(capsys, tmp_path, content, words):
    file = tmp_path / "text.md"
    file.write_bytes(content)
    assert words in refused(capsys, str(file), "--against", "gpt2")


def test_a_hundred_megabytes_are_not_read(capsys, tmp_path):
    file = tmp_path / "text.md"
    with file.open("wb") as out:
        out.truncate(100_000_000)
    assert "is larger than 1,000,000 bytes" in refused(capsys, str(file))


def test_files_and_models_that_are_not_there(capsys, tmp_path):
    assert "No such file" in refused(capsys, str(tmp_path / "none.md"))
    assert "is a folder" in refused(capsys, str(tmp_path))
    assert "no preset or file 'gpt3'" in refused(capsys, str(BY_HAND), "--against", "gpt3")
    assert "name it with --against" in refused(capsys, str(BY_HAND), "--set", "n_layer=3")
    with pytest.raises(BadInput, match="No such file"):
        tallystick.check("none.md")


def test_a_part_under_the_name_of_an_equal_one_is_not_counted_twice():
    """The head is as large as the embedding; the total lacks the last norm alone."""
    text = (
        "Token embedding: 32000 × 4096 = 131,072,000\n"
        "All layers: 32 × (4 × 4096² + 3 × 4096 × 11008 + 2 × 4096) = 6,476,267,520\n"
        "A map back to the vocabulary: 4096 × 32000 = 131,072,000\n"
        "Total: 131,072,000 + 6,476,267,520 + 131,072,000 = 6,738,411,520\n"
    )
    assert corrections(tallystick.check(text, against="llama-2-7b")) == {"final norm": 4096}


def test_a_slip_above_a_total_that_stands_alone_is_carried_and_not_rounded():
    text = "\n".join(f"- {label}: {value}" for label, value in WHOLE.items())
    text = text.replace("= 786,432", "= 787,392") + "\n\nTotal: 124,440,768 parameters"
    answer = tallystick.check(text, against="gpt2")
    assert [(e.right, e.should_be) for e in answer.equations if not e.correct] == [(787_392, 786_432)]
    assert (answer.arithmetic, answer.rounding, answer.omissions) == (-960, 0, ())
    assert answer.equations[-1].carried == 960
