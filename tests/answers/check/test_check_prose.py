"""Counts in sentences and notes: verbs for signs, chains that go on, totals among their words."""

import pytest

import tallystick


def check(text, **against):
    return tallystick.check(f"Sizes: 2 × 768 = 1,536\n\n{text}\n", **against)


def wrong(text):
    return [equation.should_be for equation in check(text).equations if not equation.correct]


@pytest.mark.parametrize(
    "text",
    [
        "| Scale | `d_k = 64`, so `√64 = 8` |",
        "| Scale | `d_k = 128` → `√128 = 11.3` |",
        "Matching rank: r ≈ sqrt(2·1024·16/4) ≈ 90.5",
        "Bits of an id: log2(65,536) = 16",
        "wide = 4 × 4096 = 16384\n# shrunk to 2.7×\nwide = 11008  # about 2.7 × 4096",
        "wide = 4 × 2048 = 8,192\n# the next model\nwide = 5,632",
        "Gate × 3 (1,024 × 24, plus a bias for each expert)   73,800",
        "Gate × 3 (1,024 × 24)   73,728",
        "Encoder: 6 × 3.2M ≈ 19M + word table ≈ 35M",
        "Encoder: 6 × 3.2M ≈ 19.2M + word table ≈ 15.6M ≈ 34.8M",
        "The second head is 3 layers deep, and 4 × 768 is 2.5% more than before",  # no verb of an equation
        r"$200\,704 \times 1000 = 200{,}7\,\text{Mio. Parameter}$",
        r"Anteil: $0{,}25 \times 4096 = 1024$",
        "Block → 6 × (1.18 + 2.10)M ≈ 19.7M\n\nHead: 512 × 30,000 ≈ 15.4M",  # M is a unit, and no variable of 19.7
        "Paths: A, B each (256 × 512) + C (512 × 512) = 2 × 512² = 524,288",  # two of the first
        "Width: d = 512\nThe small run (d = 128, 2 layers) has 2d = 256",
        r"Saldo: 7.077.888; $18{.}432 = 6 \times 3.072$",  # the sign of thousands in braces
        "step = weights / speed = 3.2e10 / 1.6e12 = 20.0 ms",
        "Cost: 6 × 512 × 768 = 2.36 MMAC = 4.72 MFLOP",
        "6 layers × 512 dims ≈ 34M parameters is the usual small size",
        "- Weights: 300 MB\n- States (lr=0.1): ~600 MB\n= ~0.9 GB of memory",
    ],
)
def test_what_is_meant_is_not_wrong(text):
    assert wrong(text) == []


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Gate × 3 (1,024 × 24)   73,700", 1024 * 24),
        ("Encoder: 6 × 3.2M = 20.2M + word table", 19_200_000),
        ("A table of 30,000 × 512 is 15,630,000 parameters", 15_360_000),
        ("Six blocks of 4 × 512 × 512 are about 7.5 million weights", 4 * 512 * 512),
        (r"$200\,704 \times 1000 = 270{,}7\,\text{Mio. Parameter}$", 200_704_000),
        ("Block → 6 × (1.18 + 2.10)M ≈ 17.9M", 19_680_000),
        ("6 layers × 512 dims = 3,172", 3072),
        ("Inputs:\n\nA = 16 × 512 × (12 + 4)\n\n  = 16 × 512 × 16\n\n  = 131,172", 131_072),
    ],
)
def test_a_slip_in_a_sentence_is_found(text, right):
    assert wrong(text) == [right]


TABLE, BLOCKS = 30_000 * 512, 6 * 12 * 512 * 512


@pytest.mark.parametrize(
    "text",
    [
        "The words: 30,000 × 512 = 15.4M\nWith 2 × 17.1M = 34.2M parameters in total",
        "The words: 30,000 × 512 = 15.4M, and blocks of 18.9M. Total:\n**34.2M** parameters.",
        "So 6 blocks of 3,145,728 make 19 million, plus 15 million of the word embedding, for about 34 million in total.",
        "Blocks: 6 × 3,145,728 ≈ 19M + table ≈ 15.4M ≈ 34.4M. Reading it takes 2 × 34.4 ≈ 69 ms",
        f"### Parameters\nP = 30,000 × 512 + 6 × 12 × 512²\n  = {TABLE + BLOCKS:,}\n### Activations\nA = 64 × 512 × 512 × 512 = 8,589,934,592",
        f"Table: 30,000 × 512 = {TABLE:,}\nBlocks: 6 × 3,145,728 = {BLOCKS:,}\nTotal: {TABLE + BLOCKS:,} params (without the ~0.1M of norms)",
        "Encoder (6 layers): 6 × 3.15M ≈ 19M + words ≈ 34M total.",
    ],
)
def test_the_total_is_found(text):
    total = check(text).total_claimed
    assert total == pytest.approx(TABLE + BLOCKS, rel=0.02)


@pytest.mark.parametrize(
    "text",
    [
        "MLP: 3 × 512 × 2048 = 3,145,728\n- **Total**: ~3.1M parameters per layer",
        "Reader: 8 × 512 × 512 = 2,097,152\n**Total memory left: ~56GB**\n- **Total: ~56GB de VRAM**",
        "- Across 32 blocks: $\\approx 100.7$M params — **~70% of the whole 8B model is MLP.**",
        "A unit: 512 × 512 = 262,144. The total of a large one is more than 175 billion.",
        "q: 2 × 1,024 × 512 = 1,048,576\no: 2 × 512 × 512 = 524,288\nAttention: 12 × (1,048,576 + 524,288) = 18,874,368\n"
        "MLP: 12 × (4,194,304 × 3) = 150,994,944\nTotal FLOPs = 18,874,368 + 150,994,944 = 169,869,312",
        "# 512 * 512 + 512 = 262,656",
        "fc1: 512 × 2048 = 1,048,576\nfc2: 2048 × 512 = 1,048,576\nTotal: 2,097,152 ≈ 2.1M params per MLP",
        "查询矩阵:8×512×64=262144\n偏置:8×64×3=1536\n总计:262144×3+1536=787968",
        "- q: 512 × 512 = 262,144\n- k: 512 × 128 = 65,536\n- **Total attention**: 327,680 params/layer",
        "### Size of the word embedding\nOf this one:\nparameters = 30,000 × 512 = 15,360,000",
        "A share: 512 × 8 / 4096 = 1\nof all weights in total about 3~5%",
        "In total: 6 layers × 5.2 GFLOPS ≈ 31 GFLOPS a pass",
    ],
)
def test_another_number_is_not_the_total(text):
    assert tallystick.check(f"{text}\n").total_claimed is None


def test_a_total_of_the_blocks_is_not_the_whole_next_to_embeddings():
    answer = tallystick.check(
        "| words | 50257 × 768 | 38,597,376 |\n| 12 blocks in total | | ≈ 85M |\n", against="gpt2"
    )
    assert answer.total_claimed is None


def test_a_part_taken_from_the_model_is_its_total_without_it():
    text = "Tied, it is smaller: 163,037,184 − 38,597,376 = 124,439,808.\n"
    untied = {"model_type": "gpt2", "tie_word_embeddings": False}
    answer = tallystick.check(text, against=untied)
    assert answer.total_claimed == 124_439_808
    assert answer.total_true - answer.total_claimed == 38_597_376


@pytest.mark.parametrize("text", ["124M = 85M + embeddings", "5 = 2\n+ xy norms", "The whole = 124M = 40M × 2 + head"])
def test_a_sum_with_a_term_in_words_is_not_judged(text):
    answer = tallystick.check(text)
    assert answer.equations == ()
    assert len(answer.unread) == 1


@pytest.mark.parametrize(("layers", "wrong"), [("5.6B", []), ("5.2B", [5_632_000_000])])
@pytest.mark.parametrize("end", [" per layer. ", ". ", ", "])
def test_a_product_goes_on_in_the_next_sentence(layers, wrong, end):
    text = f"FFN: 3 × 4096 × 14336 ≈ 176M{end}× 32 layers = {layers}."
    assert [e.should_be for e in tallystick.check(text).equations if not e.correct] == wrong


@pytest.mark.parametrize(
    "text",
    [
        "12 times 7,087,872 is {}.",
        "12 multiplied by 7,087,872 equals {}",
        "12乘以7,087,872等于{}",
        "12 multiplicado por 7,087,872 es {}",
        "Per layer: 7,087,872. Times 12 layers = {}.",
    ],
)
def test_words_for_signs(text):
    assert wrong(text.format("85,054,464")) == []
    assert wrong(text.format("85,954,464")) == [85_054_464]


ACTIVE = (
    "- MLA attention: 187M\n- 9 x 44M expert: 396M\n- Router + norms: ~2M\n- **Active per block: ~585M**\n\n"
    "58 MoE blocks x 585M = 33.9B. Add the 3 dense blocks (~583M each = 1.75B), and the embedding (927M)."
)


@pytest.mark.parametrize(
    ("text", "model", "total"),
    [
        ("So 8 experts and attention, times 32, plus two tables, give 46,701,477,888.", "mixtral-8x7b", 46_701_477_888),
        ("With L=32 and d_ff=11008. Add the final norm to get **6,738,415,616**.", "llama-2-7b", 6_738_415_616),
        ("So 8 experts, times 32, give 45,701,477,888.", "mixtral-8x7b", None),
        (ACTIVE, "deepseek-v3", None),
        (ACTIVE, None, None),
    ],
    ids=["without a router", "next to sizes", "far off", "active", "active, of no model"],
)
def test_a_total_in_a_sentence_next_to_a_model(text, model, total):
    assert tallystick.check(f"An MLP: 3 × 4096 × 14336 = 176,160,768\n\n{text}\n", against=model).total_claimed == total


SAID = (
    "Attention has {} weights; the FFN has {} and the two norms 8192. Each layer has 202,383,360.\n"
    "The stack has 6,476,267,520. At two bytes each that is 12,952,535,040 bytes of memory.\n"
)


@pytest.mark.parametrize(
    ("attention", "mlp", "wrong"),
    [
        ("67,108,864", "135,266,304", []),
        ("67,108,864", "135,266,804", [135_266_304]),
        ("67,180,864", "135,266,304", [67_108_864]),
        ("67,108,864", "135,299,999", []),  # of another model, perhaps
    ],
)
def test_exact_numbers_in_sentences_are_judged_by_the_model(attention, mlp, wrong):
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{SAID.format(attention, mlp)}", against="llama-2-7b")
    assert [one.should_be for one in answer.equations if not one.correct] == wrong
    found = {one.right: one.matches for one in answer.equations if one.correct}
    assert found[202_383_360] == "one layer"
    assert found[6_476_267_520] == "32 layers"
    assert found.get(67_108_864) == ("attention of one layer" if attention == "67,108,864" else None)
    assert 12_952_535_040 not in found


@pytest.mark.parametrize(
    ("line", "should_be"),
    [
        ("Add the final norm's gains to get **6,768,415,616**.", 6_738_415_616),
        ("| Everything | 6,738,475,616 |", 6_738_415_616),
        ("- It comes to: 6,738,419,999", None),
        ("Add the final norm's gains to get 4,096.", None),
    ],
)
def test_eight_digits_are_the_models_but_for_one_whatever_is_said_of_them(line, should_be):
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{line}\n", against="llama-2-7b")
    assert [one.should_be for one in answer.equations if not one.correct] == ([should_be] if should_be else [])
