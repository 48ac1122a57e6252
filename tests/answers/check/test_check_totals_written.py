"""Totals of several columns, in words, between bars and behind arrows."""

import pytest

import tallystick

TABLE = """\
| | Llama 2 7B | Llama 3 8B |
|---|---|---|
| Embedding | 131,072,000 | 525,336,576 |
| Attention | 2,147,483,648 | 1,342,177,280 |
| MLP | 4,328,521,728 | 5,637,144,576 |
| Norms | 266,240 | 266,240 |
| Head | 131,072,000 | 525,336,576 |
| Total | {} | {} |
"""


@pytest.mark.parametrize("against", [None, "llama-2-7b", "llama-3-8b"])
@pytest.mark.parametrize(
    ("totals", "meant"),
    [
        (("6,738,415,616", "8,030,261,248"), []),
        (("6,738,445,616", "8,030,261,248"), [6_738_415_616]),
        (("6,738,415,616", "8,030,291,248"), [8_030_261_248]),
    ],
)
def test_the_totals_of_two_models(totals, meant, against):
    answer = tallystick.check(TABLE.format(*totals), against=against)
    assert [one.should_be for one in answer.equations if not one.correct] == meant


@pytest.mark.parametrize(
    ("text", "model", "total"),
    [
        ("Embeddings: 525,3 millones\n32 capas: 6,98 mil millones\nLM head: 525,3 millones\nTotal: 8,03 mil millones", "llama-3-8b", 8_030_000_000),
        ("词嵌入:1亿3107万2000\n32 层:64亿7626万7520\nLM Head:1亿3107万2000\n合计:67亿3841万1520", "llama-2-7b", 6_738_411_520),
        ("Params: emb 39.38M | attn 28.35M | mlp 56.67M | total 124.4M", "gpt2", 124_400_000),
        ("Embeddings 39.4M + blocks 85.1M → 124.5M", "gpt2", 124_500_000),
    ],
)  # fmt: skip
def test_a_total_in_words(text, model, total):
    assert tallystick.check(text + "\n", against=model).total_claimed == total


def test_a_total_between_bars():
    line = "emb 39,383,808 | attn 28,348,416 | mlp 56,669,184 | ln 38,400 | total 125,439,808\n"
    assert [one.should_be for one in tallystick.check(line, against="gpt2").equations if not one.correct] == [
        124_439_808
    ]


def test_a_share_that_is_not_its_fraction():
    line = "Share: 38,597,376 / 124,439,808 = 0.3102 = {}"
    assert [one.correct for one in tallystick.check(line.format("31.02%")).equations] == [True, True]
    assert [one.correct for one in tallystick.check(line.format("34.02%")).equations] == [True, False]


def test_a_product_that_goes_on_from_a_slip_is_right():
    answer = tallystick.check("Fusion: 2 × 64 × 64 = 8,152 × 8 = 65,536")
    assert [one.should_be for one in answer.equations if not one.correct] == [8_192]


@pytest.mark.parametrize("total", ["67.384.156.160", "673.841.561"])
def test_a_zero_too_many_below_a_column(total):
    text = (
        "| Componente | Fórmula | Parâmetros |\n|---|---|---:|\n| Embedding | 32.000 × 4.096 | 131.072.000 |\n"
        "| 32 camadas | 32 × 202.383.360 | 6.476.267.520 |\n| Norma final | 4.096 | 4.096 |\n"
        "| LM head | 4.096 × 32.000 | 131.072.000 |\n| **Total** | | **{}** |\n"
    )
    assert tallystick.check(text.format("6.738.415.616")).correct
    (slip,) = (one for one in tallystick.check(text.format(total)).equations if not one.correct)
    assert slip.should_be == 6_738_415_616
