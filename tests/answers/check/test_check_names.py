"""Which quantity of the model a rounded, glued or plainly said number is."""

import pytest

import tallystick
from tallystick.answers.check.labels import tags_of

D, L = 4096, 32


def named(text, against):
    return tallystick.check(f"Sizes: 2 × 3 = 6\n{text}\n", against=against).equations[-1].matches


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Wdown: 11008 × 4096 = 45.1M", "down projection of the MLP of one layer"),
        ("Wgate: 4096 × 11008 = 45.1M", "gate projection of the MLP of one layer"),
        ("### Norms (two a layer)\n32 layers × 202.4M ≈ 6.48B", "32 layers"),
        ("### Stack\nLayers:\n32 × 202.4M = 6.48B", "32 layers"),
        ("total ≈ 6,738,415,616 ≈ 6.74B", "the whole model"),
        ("Rows: 131.1M\nStack: 6,476M\nHead: 131.1M\nTotal: 6.74B", "the whole model"),
        ("activation = 32000 × 4096 = 131,072,000 floats", None),
    ],
)
def test_a_number_of_llama_has_its_name(text, what):
    assert named(text, "llama-2-7b") == what


def test_a_size_is_not_the_bias_of_the_same_size():
    assert named("MLP hidden size: 3,072", "gpt2") is None


def test_the_segment_table_is_not_the_norm_of_the_same_size():
    bert = {"model_type": "bert", "architectures": ["BertModel"]}
    assert named("Segmentation Embedding: 2 × 768 = 1,536", bert) == "segment embedding"


def test_the_shared_expert_has_a_name_of_its_own():
    text = "Shared expert: 3 × 7168 × 2048 = 44.04M params/layer"
    assert named(text, "deepseek-v3") == "shared experts of one layer"


def test_the_exact_number_of_a_total_is_claimed_rather_than_its_rounding():
    answer = tallystick.check("Rows: 2 × 3 = 6\ntotal ≈ 6,738,415,616 ≈ 6.74B\n", against="llama-2-7b")
    assert answer.total_claimed == 6_738_415_616


@pytest.mark.parametrize("word", ["FF", "FFN", "FFNN", "feed-forward"])
def test_each_word_for_the_mlp_is_its_tag(word):
    assert "mlp" in tags_of(f"{word} in total")
