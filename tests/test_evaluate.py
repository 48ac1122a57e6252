"""Scores of a text: every token once, as a plain loop over transformers' logits gives them."""

import math

import pytest
import torch
from torch.nn import functional as F

from decoders import KINDS, ours, theirs
from tallystick.errors import BadInput
from tallystick.models.evaluate import evaluate
from tallystick.models.tokens import Tokenizer

TEXT = "Où est le tally stick? It was notched with a count, and split in two. " * 2


@pytest.fixture(scope="module")
def pair():
    model = theirs("gpt2", **{**KINDS["gpt2"], "vocab_size": 300})
    return model, ours(model)


@torch.no_grad()
def plainly(model, ids, context, stride):
    """Each token with what the strides leave before it, one window at a time."""
    losses = {}
    for start in range(0, len(ids), stride):
        logits = model(torch.tensor([ids[start : start + context]])).logits[0].double()
        for place, target in enumerate(ids[start + 1 : start + context + 1], start=1):
            losses.setdefault(start + place, F.cross_entropy(logits[place - 1], torch.tensor(target)).item())
    assert sorted(losses) == list(range(1, len(ids)))
    return sum(losses.values()) / len(losses)


@pytest.mark.parametrize(("context", "stride"), [(64, 32), (64, 64), (16, 1), (50, 7), (1, 1)])
def test_every_token_is_scored_once(pair, context, stride):
    model, decoder = pair
    ids = list(TEXT.encode())
    score = evaluate(decoder, Tokenizer.bytes(), TEXT, context=context, stride=stride)
    assert score.loss == pytest.approx(plainly(model, ids, context, stride), rel=1e-5)
    assert score.tokens == score.bytes == len(ids)
    assert score.bits_per_byte == pytest.approx(score.loss / math.log(2))
    assert score.perplexity == pytest.approx(math.exp(score.loss))


def test_bits_per_byte_count_the_bytes_and_not_the_tokens(pair):
    _, decoder = pair
    tokenizer = Tokenizer.trained([TEXT], 300)
    score = evaluate(decoder, tokenizer, TEXT)
    assert score.tokens < score.bytes == len(TEXT.encode())
    assert score.bits_per_byte == pytest.approx(score.loss * score.tokens / score.bytes / math.log(2))
    assert (score.context, score.stride) == (64, 32)


def test_it_tells_how_far_it_is(pair):
    told = []
    evaluate(pair[1], Tokenizer.bytes(), TEXT, progress=lambda done, count: told.append((done, count)))
    assert told[0] == (64, len(TEXT.encode()) - 1)
    assert told[-1] == (len(TEXT.encode()) - 1,) * 2


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("", {}, "has 0 tokens"),
        ("a", {}, "has 1 tokens"),
        ("abc", {"context": 65}, "context is 65, expected 1 to 64"),
        ("abc", {"context": 8, "stride": 9}, "stride is 9, expected 1 to 8"),
        ("abc", {"stride": 0}, "stride is 0"),
    ],
)
def test_what_cannot_be_scored_is_refused(pair, text, more, message):
    with pytest.raises(BadInput, match=message):
        evaluate(pair[1], Tokenizer.bytes(), text, **more)


def test_ids_without_a_row_are_refused():
    decoder = ours(theirs("gpt2", **KINDS["gpt2"]))
    with pytest.raises(BadInput, match="has the id 195, and the embedding has 97 rows"):
        evaluate(decoder, Tokenizer.bytes(), "é")
