"""A model with an encoder and a decoder: each number is named by the stack that the text counts."""

import pytest

import tallystick

T5 = """\
Shared embedding: 32128 × 512 = 16,449,536

## Encoder (6 layers)
- Self-attention: 4 × 512 × 512 = 1,048,576
- FFN: 2 × 512 × 2048 = 2,097,152
- LayerNorms: 2 × 512 = 1,024
- Per layer: 3,146,752
- 6 layers: 6 × 3,146,752 = 18,880,512

## Decoder (6 layers)
- Self-attention: 4 × 512 × 512 = 1,048,576
- Cross-attention: 4 × 512 × 512 = 1,048,576
- FFN: 2 × 512 × 2048 = 2,097,152
- LayerNorms: 3 × 512 = 1,536
- Per layer: 4,195,840
- 6 layers: 6 × 4,195,840 = 25,175,040
"""
NAMES = {
    1: ("token embedding", {"shared.weight"}),
    4: ("attention of one encoder layer", {f"encoder.block.*.layer.*.SelfAttention.{one}.weight" for one in "qkvo"}),
    5: ("MLP of one encoder layer", {f"encoder.block.*.layer.*.DenseReluDense.{one}.weight" for one in ("wi", "wo")}),
    6: ("norms of one encoder layer", {"encoder.block.*.layer.*.layer_norm.weight"}),
    11: (
        "self-attention of one decoder layer",
        {f"decoder.block.*.layer.*.SelfAttention.{one}.weight" for one in "qkvo"},
    ),
    12: (
        "cross-attention of one decoder layer",
        {f"decoder.block.*.layer.*.EncDecAttention.{one}.weight" for one in "qkvo"},
    ),
    13: ("MLP of one decoder layer", {f"decoder.block.*.layer.*.DenseReluDense.{one}.weight" for one in ("wi", "wo")}),
    14: ("norms of one decoder layer", {"decoder.block.*.layer.*.layer_norm.weight"}),
}
WHAT = {7: "one encoder layer", 8: "6 encoder layers", 15: "one decoder layer", 16: "6 decoder layers"}


def test_each_number_is_of_its_stack():
    answer = tallystick.check(T5, against="t5-small")
    assert answer.correct is not False
    judged = {one.line: one for one in answer.equations}
    assert {line: (judged[line].matches, set(judged[line].names)) for line in NAMES} == NAMES
    assert {line: judged[line].matches for line in WHAT} == WHAT


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("Decoder query: 512 × 512 = 262,144", "query projection of one decoder layer"),
        ("Cross-attention key: 512 × 512 = 262,144", "cross-attention key projection of one decoder layer"),
        ("编码器前馈: 2 × 512 × 2048 = 2,097,152", "MLP of one encoder layer"),
        ("Encoder-decoder attention: 4 × 512 × 512 = 1,048,576", "cross-attention of one decoder layer"),
        ("FFN of both: 2 × 2 × 512 × 2048 = 4,194,304", "MLP of one layer"),
    ],
)
def test_words_for_a_stack(line, what):
    assert tallystick.check(line, against="t5-small").equations[0].matches == what


def test_the_layers_of_one_stack_are_no_total():
    text = T5.partition("## Decoder")[0]
    answer = tallystick.check(text, against="t5-small")
    assert answer.total_line is None


def test_a_total_that_lacks_a_stack():
    text = T5.partition("## Decoder")[0] + "\nTotal: 16,449,536 + 18,880,512 = 35,330,048\n"
    answer = tallystick.check(text, against="t5-small")
    lacks = {one.what: one.parameters for one in answer.omissions}
    assert lacks["attention of 6 decoder layers"] == 6 * 8 * 512**2
    assert lacks["MLP of 6 decoder layers"] == 6 * 2 * 512 * 2048
    assert answer.total_claimed + sum(lacks.values()) + answer.unexplained == 60_506_624


LAYER = """\
LayerNorm: 2 * (768 + 768) = 3072
MHA: 4 * (768*768 + 768) = 2362368
FFN: 768*3072 + 3072 + 3072*768 + 768 = 4722432
Total: 3072 + 2362368 + 4722432 = 7087872

norms = 2 * (768 + 768);
attention = 4 * (768 * 768 + 768);
mlp = 768 * 3072 + 3072 + 3072 * 768 + 768;
expected = norms + attention + mlp;
"""


def test_one_layer_is_no_total_of_a_model():
    answer = tallystick.check(LAYER, against="gpt2")
    assert answer.correct is not False
    assert (answer.total_line, answer.total_claimed) == (None, None)


def test_a_total_that_is_one_layer_is_not_accused_by_its_list():
    text = "Q: 768*768 + 768 = 590592\nK: 768*768 + 768\nV: 768*768 + 768 = 590592\nNorms: 3072\nMLP: 4722432\n"
    assert tallystick.check(f"{text}\nTotal = 7087872", against="gpt2").correct is not False
    assert tallystick.check(f"{text}\nTotal = 7087972", against="gpt2").correct is False
