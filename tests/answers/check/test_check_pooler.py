"""A text that counts BERT's pooler counts `BertModel`, and its language model has none."""

import pytest

import tallystick

BASE = """\
Words: 30522 × 768 = 23,440,896
Positions: 512 × 768 = 393,216
Segments: 2 × 768 = 1,536
Embedding LayerNorm: 2 × 768 = 1,536
Encoder: 12 × 7,087,872 = 85,054,464
{}: 768 × 768 + 768 = 590,592
Total: 109,482,240
"""


@pytest.mark.parametrize("name", ["Pooler", "池化层", "풀러"])
@pytest.mark.parametrize("against", ["bert-base-uncased", tallystick.count("bert-base-uncased")])
def test_the_pooler_is_the_models(name, against):
    answer = tallystick.check(BASE.format(name), against=against)
    assert answer.correct
    assert answer.against == "bert-base-uncased (BertModel)"
    assert answer.total_true == tallystick.count("bert-base-uncased", architectures=["BertModel"]).total == 109_482_240
    pooler = answer.equations[-2]
    assert (pooler.matches, pooler.names) == ("pooler", ("pooler.dense.weight", "pooler.dense.bias"))


def test_the_pooler_may_be_a_heading():
    text = BASE.replace("{}: 768", "\n**Pooler**\n\n768")
    assert tallystick.check(text, against="bert-base-uncased").against == "bert-base-uncased (BertModel)"


@pytest.mark.parametrize(
    ("text", "against", "total"),
    [
        (BASE.format("Transform"), "bert-base-uncased", 109_514_298),  # the head's
        ("Without pooler: 30522 × 768 = 23,440,896\n", "bert-base-uncased", 109_514_298),
        (BASE.format("Pooler"), "gpt2", 124_439_808),  # has no such class
    ],
)
def test_any_other_text_is_of_the_model_itself(text, against, total):
    answer = tallystick.check(text, against=against)
    assert (answer.against, answer.total_true) == (against, total)
