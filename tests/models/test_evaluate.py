"""Scores beside a loop over transformers' logits, and beside what can be worked out by hand."""

import math

import pytest
import tokenizers
import torch

from decoders import KINDS, VOCABULARY, ours, theirs
from tallystick.errors import BadInput
from tallystick.models import Decoder, evaluate
from tallystick.models.evaluate import token_losses
from tallystick.models.tokens import Tokenizer

KNOWN = {kind: KINDS[kind] for kind in ("gpt2", "llama", "mistral")}


@torch.no_grad()
def plainly(model, ids, context, stride):
    """Window after window: what each token's probability is in transformers' model."""
    losses, end, last = [], 0, len(ids) - 1
    while end < last:
        before, end = end, min(last, end + (stride if end else context))
        start = max(0, end - context)
        logits = model(torch.tensor([ids[start:end]])).logits[0].double().log_softmax(-1)
        losses += [-logits[place - 1 - start, ids[place]] for place in range(before + 1, end + 1)]
    return torch.stack(losses)


@pytest.mark.parametrize("kind", KNOWN)
@pytest.mark.parametrize(
    ("count", "context", "stride"),
    [(50, 8, 8), (20, 8, 1), (51, 16, 5), (9, 16, 8), (17, 16, 16), (18, 16, 16), (2, 4, 2)],
)
def test_every_token_is_scored_once_as_a_plain_loop_does(kind, count, context, stride, monkeypatch):
    monkeypatch.setattr(evaluate, "AT_ONCE", 3 * context)  # several groups of windows
    monkeypatch.setattr(evaluate, "LOGITS_AT_ONCE", 7 * VOCABULARY)  # several blocks of logits
    model = theirs(kind, **KNOWN[kind])
    ids = torch.randint(VOCABULARY, (count,), generator=torch.Generator().manual_seed(1)).tolist()
    found = torch.cat(list(token_losses(ours(model), ids, context=context, stride=stride)))
    torch.testing.assert_close(found.double(), plainly(model, ids, context, stride), atol=1e-4, rtol=1e-5)


def indifferent(rows, tokenizer):
    """A model that finds every token as probable as any other."""
    decoder = Decoder.of("gpt2", vocab_size=rows, n_embd=8, n_layer=1, n_head=2, n_positions=16)
    with torch.no_grad():
        decoder.embedding.weight.zero_()
    return decoder, tokenizer


@pytest.mark.parametrize(("text", "scored"), [("né ✓", 6), ("é", 1), ("é".encode() + b"\xff", 2)])
def test_without_preference_each_byte_costs_as_many_bits_as_there_are_rows(text, scored):
    score = evaluate.evaluate(*indifferent(256, Tokenizer.bytes(end=False)), text)
    assert (score.tokens, score.bytes) == (scored, scored)
    assert score.loss == pytest.approx(math.log(256), rel=1e-6)
    assert score.perplexity == pytest.approx(256, rel=1e-6)
    assert score.bits_per_byte == pytest.approx(8, rel=1e-6)


def test_bits_are_shared_out_over_the_bytes_that_are_scored():
    tokenizer = Tokenizer.trained(["hello world " * 9], 264)
    first, *rest = tokenizer.encode("hello é world")
    size = len("hello é world".encode()) - len(tokenizer.decode([first]))
    score = evaluate.evaluate(*indifferent(264, tokenizer), "hello é world")
    assert (score.tokens, score.bytes) == (len(rest), size)
    assert score.bits_per_byte == pytest.approx(len(rest) * math.log2(264) / size, rel=1e-6)


def test_the_first_of_tokens_that_are_words_is_as_long_as_its_characters():
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"né": 0, "a": 1, "?": 2}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    assert evaluate.evaluate(*indifferent(3, Tokenizer(words)), "né a a").bytes == len(" a a")


def test_after_a_token_that_begins_a_text_its_first_is_scored_too():
    tokenizer = Tokenizer.bytes()
    tokenizer.begin = (256,)
    score = evaluate.evaluate(*indifferent(257, tokenizer), "ab")
    assert (score.tokens, score.bytes) == (2, 2)


def test_progress_ends_at_the_last_token(monkeypatch):
    monkeypatch.setattr(evaluate, "AT_ONCE", 1)
    told = []
    evaluate.evaluate(*indifferent(257, Tokenizer.bytes()), "a" * 40, progress=lambda *so_far: told.append(so_far))
    assert told == [(16, 39), (24, 39), (32, 39), (39, 39)]


def test_dropout_is_off_while_a_text_is_scored():
    decoder, tokenizer = indifferent(257, Tokenizer.bytes())
    torch.nn.init.normal_(decoder.embedding.weight)
    still = evaluate.evaluate(decoder, tokenizer, "some text")
    decoder.train()
    assert evaluate.evaluate(decoder, tokenizer, "some text") == still
    assert decoder.training


def test_a_perplexity_beyond_floats_is_null():
    decoder, tokenizer = indifferent(257, Tokenizer.bytes())
    with torch.no_grad():
        decoder.embedding.weight[:, 0] = 1e4 * torch.arange(257)
        decoder.norm.bias.fill_(1.0)
    score = evaluate.evaluate(decoder, tokenizer, "ab")
    assert score.perplexity == math.inf
    assert score.to_dict()["perplexity"] is None


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {}, "the text has 0 tokens"),
        ("a", {}, "the text has 1 tokens"),
        ("abc", {"context": 17}, "context is 17, expected 1 to 16, the model's number of positions"),
        ("abc", {"context": 0}, "context is 0"),
        ("abc", {"context": 8, "stride": 9}, "stride is 9, expected 1 to 8: tokens between"),
        ("abc", {"stride": 0}, "stride is 0"),
    ],
)
def test_what_cannot_be_scored_is_refused(text, settings, message):
    with pytest.raises(BadInput, match=message):
        evaluate.evaluate(*indifferent(257, Tokenizer.bytes()), text, **settings)


def test_bytes_that_are_no_text_need_a_tokenizer_of_bytes():
    with pytest.raises(BadInput, match="not UTF-8 at byte 1: use a byte tokenizer"):
        evaluate.evaluate(*indifferent(264, Tokenizer.trained(["hello"], 260)), b"a\xffb")


def test_ids_without_a_row_are_refused():
    with pytest.raises(BadInput, match="the id 195, but the embedding has rows for 0 to 99"):
        evaluate.evaluate(*indifferent(100, Tokenizer.bytes()), "aé")


def test_a_text_that_spells_a_special_token_out_is_a_text():
    assert evaluate.evaluate(*indifferent(257, Tokenizer.bytes()), "a<|endoftext|>").tokens == 13


def test_weights_that_are_no_numbers_are_said():
    decoder, tokenizer = indifferent(257, Tokenizer.bytes())
    torch.nn.init.constant_(decoder.norm.weight, torch.nan)
    with pytest.raises(BadInput, match="are NaN"):
        evaluate.evaluate(decoder, tokenizer, "abc")
