"""The decoder beside transformers: the same logits from the same weights, in whole, in pieces and padded."""

import pytest
import torch

from decoders import KINDS, VOCABULARY, ours, theirs


@pytest.fixture(params=KINDS)
def pair(request):
    model = theirs(request.param, **KINDS[request.param])
    return model, ours(model)


@torch.no_grad()
def test_the_logits_are_those_of_transformers(pair):
    model, decoder = pair
    tokens = torch.randint(VOCABULARY, (2, 40))
    torch.testing.assert_close(decoder(tokens), model(tokens).logits, atol=1e-4, rtol=1e-5)


@torch.no_grad()
def test_padding_at_the_left_changes_nothing_that_counts(pair):
    model, decoder = pair
    tokens, padding = torch.randint(VOCABULARY, (2, 40)), torch.tensor([0, 6])
    real = torch.arange(40) >= padding[:, None]
    positions = (real.cumsum(-1) - 1).clamp(min=0)
    expected = model(tokens, attention_mask=real.long(), position_ids=positions).logits
    torch.testing.assert_close(decoder(tokens, padding=padding)[real], expected[real], atol=1e-4, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("padding", [None, torch.tensor([0, 6])])
def test_read_in_pieces_it_says_the_same(pair, padding):
    _, decoder = pair
    tokens = torch.randint(VOCABULARY, (2, 40))
    cache = decoder.cache(2, 64)
    pieces = tokens.split((10, 5, *[1] * 25), dim=1)
    read = torch.cat([decoder(piece, cache=cache, padding=padding) for piece in pieces], dim=1)
    whole = decoder(tokens, padding=padding)
    real = torch.arange(40) >= (torch.zeros(2) if padding is None else padding)[:, None]
    torch.testing.assert_close(read[real], whole[real], atol=1e-4, rtol=1e-5)
