"""Texts with totals of several models, of which none is the text's."""

import pytest

import tallystick


def test_totals_of_several_models_are_named_and_none_is_taken():
    text = (
        "Two models:\n\nTotal ~ 80 x (4 x 8192 x 8192 + 3 x 8192 x 28672) + 32000 x 8192 ~ 78B\n\nand this:\n\n"
        "Total ~ 40 x (4 x 5120 x 5120 + 3 x 5120 x 13824) + 32000 x 5120 ~ 12.85B\n"
    )
    answer = tallystick.check(text)
    assert (answer.total_claimed, answer.several_totals) == (None, (3, 7))
    assert answer.to_dict()["several_totals"] == [3, 7]
    assert "its totals on lines 3 and 7 are of different models" in str(answer)
    with_model = tallystick.check(text, against="llama-2-70b")
    assert (with_model.total_line, with_model.several_totals) == (3, ())


@pytest.mark.parametrize(
    "text",
    [
        "embed: 8000 × 256 = 2,048,000\nlayers: 6 × 12 × 256² = 4,718,592\n---------\ntotal ≈ 6.77 M\n\n"
        "With D = 320:\n\nembed: 8000 × 320 = 2,560,000\nlayers: 6 × 12 × 320² = 7,372,800\n---------\ntotal ≈ 9.93 M\n",
        "| | tiny | medium | small |\n|---|---|---|---|\n| stack | 792,064 | 10,642,176 | 85,036,032 |\n"
        "| **total** | **817,024** | **10,766,208** | **124,421,376** |\n",
    ],
    ids=["the same parts, with other sizes", "columns"],
)
def test_the_totals_of_several_sizes_of_one_model(text):
    answer = tallystick.check(text)
    assert answer.total_claimed is None
    assert all(equation.correct for equation in answer.equations)


def test_a_total_with_and_without_its_head_is_of_one_model():
    text = "Total: 85,054,464 + 39,385,344 = 124,439,808\nTotal untied: 124,439,808 + 38,597,376 = 163,037,184\n"
    assert tallystick.check(text).several_totals == ()


MODELS = {
    "options of a program's print": (
        'print("  Option A (wider):")\nprint("    Embedding: 32000 × 1024 = 32.8M")\nprint("    Per block: ~8M")\nprint("    Total: ~129M")\n'
        'print("  Option B (narrower):")\nprint("    Embedding: 32000 × 768 = 24.6M")\nprint("    Per block: ~4.5M")\nprint("    Total: ~133M")\n',
        (4, 8),
    ),
    "models of a docstring": (
        "BERT-like (~110M):\n  Embedding: 8000 × 768 = 6.14M\n  LM head: 768 × 8000 = 6.14M\n  Total ≈ 110M\n"
        "GPT-like (~154M):\n  Embedding: 8000 × 768 = 6.14M\n  LM head: 768 × 8000 = 6.14M\n  Total ≈ 154M\n",
        (4, 8),
    ),
    "headings with sizes": (
        "### Fluid (d=768, L=12)\n\n| Part | Count |\n|---|---|\n| MLP / layer | 4 × 768² × 2 = 4.7M |\n| MLP | 12 × 4.7M = 56.4M |\n"
        "| **Total** | **~96M** |\n\n### GPT (d=768, L=12)\n\n| Part | Count |\n|---|---|\n| MLP / layer | 4.7M |\n| MLP | 56.4M |\n"
        "| **Total** | **~124M** |\n",
        (7, 15),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_totals_whose_parts_are_listed_again(name):
    text, lines = MODELS[name]
    answer = tallystick.check(text)
    assert (answer.total_claimed, answer.several_totals) == (None, lines)


def test_a_total_whose_parts_are_said_again_is_one():
    text = (
        "First:\nWords: 32.8M\nLayers: 96.2M\nTotal: ~129M\nOnce more:\nWords: 32.8M\nLayers: 96.2M\nTotal: ~129.0M\n"
    )
    answer = tallystick.check(text + "2 × 3 = 6\n")
    assert (answer.total_claimed, answer.several_totals) == (129_000_000, ())


NAMED = {
    "a table": "| LLaMA-7B | 12×32×4096² ≈ 6.4B | 6.7B |\n| LLaMA-13B | 12×40×5120² ≈ 12.6B | 13B |\n",
    "headings": "BERT-base:\n  Blocks: 12 × 12 × 768² ≈ 85M\n  Words: 30k × 768 ≈ 23M\n  Total ≈ 108M\n\n"
    "GPT-3:\n  Blocks: 96 × 12 × 12288² ≈ 174B\n  Total ≈ 175B\n",
    "lines": "Llama-3-8B: d=4096, L=32 → 32 × 12 × 4096² ≈ 6.4B\nGPT-3 175B: d=12288, L=96 → 96 × 12 × 12288² ≈ 174B\n",
}


@pytest.mark.parametrize("name", NAMED)
def test_models_that_a_text_names_have_totals_of_their_own(name):
    answer = tallystick.check(NAMED[name])
    assert (answer.total_claimed, len(answer.several_totals)) == (None, 2)


def test_a_model_that_is_only_cited_leaves_the_total():
    text = "GPT-2 small:\nWords: 50257 × 768 = 38,597,376\nBlocks: 12 × 7,087,872 = 85,054,464\nTotal: 123,651,840\n\nGPT-3 has 175B.\n"
    assert tallystick.check(text).total_claimed == 123_651_840


PARTS = """\
- embedding：(30522 + 512 + 2) * 768
  - 总参数量为 23,835,648
- multi_head：768 * 768 * 3 + 768 * 768 一共12个
  - 总参数量为28,311,552
- FFN：768 * 3072 + 3072 * 768 一共12个
  - 总参数量为 56,623,104
"""
BLOCK = """\
words                2000 × 64       =   128,000
per layer:
  attention          4 × (64² + 64)  =    16,640
  MLP                2 × 64 × 256    =    32,768
                                     -----------
                                          49,408
× 12 layers                          =   592,896
TOTAL                                =   720,896
"""


@pytest.mark.parametrize(
    ("text", "against", "line", "total"),
    [
        (PARTS, "bert-base-uncased", None, None),  # each is of its item
        (BLOCK, None, 8, 720_896),  # the layers end where their indentation does
        ("Adapters:\n- Words: 64 × 64 = 4,096\n- Total: 4,096\nTOTAL (stage 1, full=False):\n4,096 + 8,192 = 12,288\n", None, 5, 12_288),
        ("| Tokenizer | 4.000 pieces |\n|---|---|\n| Parâmetros | ~8M |\n", None, 3, 8_000_000),
        ("| Type | 12 layers |\n|---|---|\n| Parameters | 28M |\n", None, 3, 28_000_000),
        ("Total: 2 × 64 × 1000 = 128,000\n\n| Parameters | 28M |\n|---|---|\n", None, 1, 128_000),
        ("Sizes: 2 × 3 = 6\n총 파라미터: ~81M | Mac MPS 메모리: ~3-4 GB\n", None, 2, 81_000_000),  # two labelled numbers
        ("MLP: 3 × 4096 × 16000 = 196,608,000\nHead: 131,072,000\nTotal: 327,680,000\nCompute: 1.5e15 × 3600 = 5.4e18\n", None, 3, 327_680_000),
    ],
)  # fmt: skip
def test_a_total_is_of_the_whole_and_not_of_the_part_above_it(text, against, line, total):
    answer = tallystick.check(text, against=against)
    assert (answer.total_line, answer.total_claimed) == (line, total)
    assert all(equation.correct for equation in answer.equations)
