"""What separates a text's total from the model's: each part under its own cause, or rounding."""

import pytest

import tallystick

ROUNDED = """\
Embedding: 32000 × 4096 = 131M
Per layer
- Attention: 4 × 4096² = 67M
- MLP: 3 × 4096 × 11008 = 135M
- Layer total: 202M
32 layers: 32 × 202M = 6.46B
"""
GEMMA = """\
Embedding: 256,000 × 2,048 = 524,288,000
Attention (per layer)
- Query: 2,048 × 2,048 = 4,194,304
- Key and value: 2 × 2,048 × 2,048 = 8,388,608
- Output: 2,048 × 2,048 = 4,194,304
- Sum: 16,777,216
Feed-forward (per layer): 3 × 2,048 × 16,384 = 100,663,296
One layer: 16,777,216 + 100,663,296 = 117,440,512
All 18 layers: 18 × 117,440,512 = 2,113,929,216
Total: 524,288,000 + 2,113,929,216 = 2,638,217,216
"""


def rows(text, model):
    """Return an account as {part: (parameters, cause)}, and what it leaves unexplained."""
    answer = tallystick.check(text, against=model)
    found = {one.what: (one.parameters, one.cause) for one in answer.omissions}
    sums = answer.total_claimed + answer.arithmetic + answer.rounding + answer.unexplained
    assert sums + sum(parameters for parameters, _ in found.values()) == answer.total_true
    return found, answer.unexplained


def test_a_rounded_sum_goes_on_from_rounded_lines():
    found, unexplained = rows(f"{ROUNDED}Total: 6.46B + 0.131B = 6.59B\n", "llama-2-7b")
    assert unexplained == 0
    assert {what: cause for what, (_, cause) in found.items()} == {
        "attention and MLP of 32 layers": "rounded",
        "token embedding": "rounded",
        "norms": "left out",
        "head": "left out",
    }
    assert found["head"][0] == 32000 * 4096


def test_a_rounded_total_of_the_model_needs_no_correction():
    text = f"{ROUNDED}Head: 4096 × 32000 = 131M\nTotal: 0.13B + 6.46B + 0.13B ≈ 6.7B\n"
    assert rows(text, "llama-2-7b") == ({}, 0)
    assert rows("A: 2 × 768 = 1,536\n\nTotal: 124,000,000", "gpt2") == ({}, 0)


@pytest.mark.parametrize(
    ("text", "model", "what", "parameters"),
    [
        (GEMMA, "gemma-2b", "key and value projections of 18 layers", 18 * 2048 * (2 * 256 - 2 * 2048)),
        (
            "Total parameters: 80 × (4 × 8192² + 3 × 8192 × 28672) + 32000 × 8192 = 78,114,717,696",
            "llama-2-70b",
            "attention of 80 layers",
            80 * 8192 * (2 * 8192 + 2 * 1024 - 4 * 8192),
        ),
        (
            "Embedding: 50257 × 768 = 38,597,376\nPositions: 1024 × 768 = 786,432\nBlocks: 12 × 7,287,872 = 87,454,464\n"
            "Total: 126,838,272",
            "gpt2",
            "12 layers",
            -12 * 200_000,
        ),
    ],
)
def test_a_part_of_another_size_is_one_row(text, model, what, parameters):
    found, _ = rows(text, model)
    assert found[what] == (parameters, "another size")
    assert "not in the model" not in {cause for _, cause in found.values()}


def test_the_number_of_all_layers_may_stand_far_below_that_of_one():
    text = (
        "Block: 7,087,872\n\nSummary\nTokens: 38,597,376\nPositions: 786,432\n12 × Layers: 85,054,464\n"
        "Final norm: 1,536\nTotal: = 124,439,808 (~124M)\n"
    )
    answer = tallystick.check(text, against="gpt2")
    assert (answer.total_claimed, answer.omissions, answer.unexplained) == (124_439_808, (), 0)
    wrong = tallystick.check(text.replace("124,439,808", "124,439,908"), against="gpt2")
    assert [equation.should_be for equation in wrong.equations if not equation.correct] == [124_439_808]


def test_a_convention_of_counting_is_a_row():
    found, unexplained = rows("N_all = 70,552,387,584 in total", "llama-3-70b")
    assert (found, unexplained) == ({"norms": (1_318_912, "left out")}, 0)
    found, unexplained = rows("A: 2 × 768 = 1,536\n\nTotal: 163,037,184", "gpt2")
    assert ([*found.values()], unexplained) == ([(-38_597_376, "counted twice")], 0)


def test_a_sentence_or_code_names_no_row():
    text = "The flat order is given by the layout, with wte, wpe and `b_q` first. For the model that is 124,439,808 + 7 = 124,439,815 in total"
    assert rows(text, "gpt2")[0] == {"a term": (-7, "not in the model")}
    text = "assert model.num_params(non_embedding == 124,439,808 + 36,096 == 124,475,904)\nTotal: 124,475,904"
    assert "assert" not in "".join(rows(text, "gpt2")[0])


@pytest.mark.parametrize(
    "text",
    [
        "Tokens: 50257 × 768 = 38,597,376\n\nattention\n\n- QKV: 3 × 768² + 3 × 768 = 1,771,776\n- Output: 768² + 768 = 590,592\n"
        "- total parameters: 1,771,776 + 590,592 = 2,362,368",
        "FFN:\ntotal parameters = n_layer × 2 × d × d_ff = 12 × 2 × 768 × 3072 ≈ 56.6M",
    ],
)
def test_the_total_of_a_section_is_not_the_model(text):
    answer = tallystick.check(text, against="gpt2")
    assert (answer.total_claimed, answer.omissions) == (None, ())


def test_a_right_result_of_mistyped_addends_is_the_total():
    text = "Blocks: 12 × 7,087,872 = 85,054,464\nTotal: 39,383,808 + 7,087,872 + 1,536 = 124,439,808"
    answer = tallystick.check(text, against="gpt2")
    assert [equation.correct for equation in answer.equations] == [True, False]
    assert (answer.total_claimed, answer.arithmetic, answer.unexplained) == (124_439_808, 0, 0)
    text = text.replace("124,439,808", "124,438,272").replace(" + 1,536", "")
    answer = tallystick.check(text, against="gpt2")
    assert [(one.what, one.parameters) for one in answer.omissions] == [("final norm", 1536)]


def test_keys_and_values_sized_as_queries_are_another_size():
    rows_of = "".join(f"| {name} | 4096 × 4096 = 16,777,216 |\n" for name in ("W_q", "W_k", "W_v", "W_o"))
    text = (
        f"Attention:\n\n| matrix | parameters |\n|---|---|\n{rows_of}\nAttention: 32 × 67,108,864 = 2,147,483,648\n"
        "MLP: 32 × 3 × 4096 × 14336 = 5,637,144,576\nEmbeddings: 2 × 128256 × 4096 = 1,050,673,152\n"
        "Total: 2,147,483,648 + 5,637,144,576 + 1,050,673,152 = 8,835,301,376"
    )
    found, unexplained = rows(text, "llama-3-8b")
    wide = (-32 * 4096 * (4096 - 1024), "another size")
    assert found == {
        "key projection of 32 layers": wide,
        "value projection of 32 layers": wide,
        "norms": (65 * 4096, "left out"),
    }
    assert unexplained == 0


def test_a_number_with_many_zeros_is_not_called_rounded_by_a_fifth():
    sizes = {"model_type": "gpt2", "n_layer": 24, "n_positions": 8192}
    answer = tallystick.check("Total parameters: 200,000,000\nTokens: 50,257 × 768 = 38.6M\n", against=sizes)
    assert (answer.omissions, answer.rounding) == ((), 0)
    assert answer.unexplained == answer.total_true - 200_000_000
