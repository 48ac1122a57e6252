"""Texts as people paste them: which number is the total, and what a label names."""

import pytest

import tallystick

# In the layout of a chatbot: the layers' sum is called a total, and the whole's is not.
CHATBOT = r"""
### 1. Embedding
\[
\text{vocab\_size} \times \text{emb\_dim} = 50257 \times 768 = 38,597,376
\]
### 2. Layers
- **Query, key and value matrices:** each of shape \(\text{emb\_dim} \times \text{emb\_dim}\):
\[
3 \times (\text{emb\_dim} \times \text{emb\_dim}) = 3 \times (768 \times 768) = 1,769,472
\]
- **Output projection:**
\[
768 \times 768 = 589,824
\]
- **Total attention parameters per layer:** without biases:
\[
1,769,472 + 589,824 = 2,359,296
\]
- **Both matrices of the feed-forward network:**
\[
768 \times 3072 + 3072 \times 768 = 4,718,592
\]
#### Total for all layers
With `n_layers` = 12:
\[
(2,359,296 + 4,718,592) \times 12 = 84,934,656
\]
### 3. Adding everything up
\[
38,597,376 \text{ (embedding)} + 84,934,656 \text{ (all layers)} = 123,532,032
\]
"""


def test_the_total_is_what_adds_the_rest_whatever_else_is_called_one():
    answer = tallystick.check(CHATBOT, against="gpt2")
    assert all(equation.correct for equation in answer.equations)
    assert answer.total_claimed == 50257 * 768 + 12 * 12 * 768**2
    assert {o.what: o.parameters for o in answer.omissions} == {
        "position embedding": 1024 * 768,
        "norms": 25 * 2 * 768,
        "query, key and value projection biases of 12 layers": 12 * 3 * 768,
        "attention output projection biases of 12 layers": 12 * 768,
        "MLP biases of 12 layers": 12 * 5 * 768,
    }


SUMS = "38,597,376 + 786,432 + 85,056,000 = 124,439,808"


@pytest.mark.parametrize(
    ("text", "total"),
    [
        (f"Tied: {SUMS}\nWithout tying: 124,439,808 + 38,597,376 = 163,037,184", 124_439_808),
        ("Total (tied): 124,439,808\nTotal (untied): 163,037,184", 124_439_808),
        (f"Total of the layers: 12 × 7,087,872 = 85,054,464\n{SUMS}", 124_439_808),
        ("Total: 48 × 30,740,800 = 1,475,558,400\n\nAnd the small one: 12 × 7,087,872 + 39,385,344 = 124,439,808", 124_439_808),
        (f"{SUMS}\n\nTotal memory: 124,439,808 × 4 = 497,759,232 bytes", 124_439_808),
        (f"{SUMS}, in float32 that are 0.5 GB.", 124_439_808),
        ("A: 2 × 768 = 1,536\nB: 1,024 × 768 = 786,432\nN_all = 787,968 ≈ 0.8M", 787_968),
        ("总计：38,597,376 + 786,432 = 39,383,808", 39_383_808),
        ("38,597,376；总参数 124.4M。层数 = 12", 124_400_000),
        ("Embedding: 38,597,376\nPositionen: 786,432\nInsgesamt: 39,383,808", 39_383_808),
        ("Вложения: 38 597 376\nИтого: 124 439 808\nn = 12", 124_439_808),
        ("임베딩: 38,597,376\n총합:   약 1.24억 → 모델", 124_000_000),
        ("12 × 768² = 7,077,888", None),
    ],
)  # fmt: skip
def test_totals(text, total):
    assert tallystick.check(text, against="gpt2").total_claimed == total


@pytest.mark.parametrize(
    "text",
    [
        "12 blocks = 12 * 7,087,872 = 85,054,464",
        "38.6 + 0.8 + 85.1 = 124.5M",
        "wte 38,597,376 + wpe 786,432 + 12×7,087,872 per-block + ln_f 1,536 = 124,439,808",
        "7,087,872 per layer × 12 = 85,054,464",
        "With V = 50304 it has more.\nV * C = 50257 * 768 = 38,597,376",
        "train.py says GPTConfig(vocab_size=50304), which is padded\n50257 × 768 = 38,597,376",
        "Gesamt: 38,6 Mio. + 0,8 Mio. + 85,1 Mio. = 124,5 Mio.",
        "2 个专家 352.3M：41.94M + 2 个专家 352.3M = 394.3M",
        "BODY                  = 123,653,376   (99%)\n  + positions  1024 × 768   =     786,432\nTOTAL                 = 124,439,808",
        "embeddings    39,383,808\n× 12 layers   12 × 7,087,872 = 85,054,464\nnorm   1,536\n            124,439,808",
        "$$32000 \\times 4096 = 131$$M",
        "| part | formula | size |\n|---|---|--:|\n| tokens | V d | 38.6 M |\n| positions | T d | 0.79 M |\n| Total | | ≈ 39.4 M |",
    ],
)  # fmt: skip
def test_what_is_right_is_not_accused(text):
    answer = tallystick.check(text, against="gpt2")
    assert [equation for equation in answer.equations if not equation.correct] == []


@pytest.mark.parametrize(
    "line",
    ["(" * 150 + "1" + ")" * 150 + " = 1", "x = 9**9**9", "y = " + "2^" * 150 + "2", "z = 10^500 × 10^500 × 10^500"],
)
def test_a_line_that_cannot_be_followed_ends_nothing(line):
    answer = tallystick.check(f"50257 × 768 = 38,597,376\n{line}\n1024 × 768 = 786,433", against="gpt2")
    assert [equation.correct for equation in answer.equations] == [True, False]
    assert [unread.line for unread in answer.unread if unread.why] == [2]


@pytest.mark.parametrize(
    ("line", "model", "sentence"),
    [
        ("Attention per layer: 4 × 4096 × 4096 = 67,108,864", "llama-3-8b",
         "attention of one layer has 41,943,040: keys and values are counted as wide as queries, and have fewer heads"),
        ("Attention per layer: 4 × 18432² = 1,358,954,496", "palm-540b",
         "attention of one layer has 462,422,016: 4 × 18,432² is counted, but the query heads together are 12,288 wide"),
        ("W_k per layer: 4096 × 4096 = 16,777,216", "llama-3-8b",
         "key projection of one layer has 4,194,304: keys and values are counted as wide as queries, and have fewer heads"),
        ("MLP per layer: 2 × 4096 × 11008 = 90,177,536", "llama-2-7b",
         "MLP of one layer has 135,266,304: two matrices are counted, and there are three (gate, up, down)"),
        ("Attention of all layers: 4 × 4096 × 4096 = 67,108,864", "llama-2-7b",
         "attention of 32 layers has 2,147,483,648: that is one layer"),
        ("Position embedding: 2048 × 768 = 1,572,864", "gpt2", "position embedding has 786,432"),
        ("Attention per layer: 4 × 768² = 2,359,296", "gpt2", None),
        ("Key and value projections: 2 × 768² = 1,179,648", "gpt2", None),
        ("Something else: 2 × 999 = 1,998", "gpt2", None),
    ],
)  # fmt: skip
def test_what_a_label_names_where_its_number_is_another(line, model, sentence):
    (equation,) = tallystick.check(line, against=model).equations
    assert equation.correct
    assert equation.label_names == sentence
    assert equation.matches is None or sentence is None or "has" in sentence


def test_an_equation_is_shown_without_its_markup():
    answer = tallystick.check(
        r"$$3 \times (\text{emb\_dim} \times 768) = 1{,}769{,}472$$" + "\nemb_dim = 768", against="gpt2"
    )
    assert answer.equations[0].plain == "3 × (emb_dim × 768) = 1,769,472"
