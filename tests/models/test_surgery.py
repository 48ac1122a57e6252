"""What is done to a model that is there: other rows, fewer positions; ties and old values stay."""

import pytest
import torch

import tallystick
from decoders import VOCABULARY
from tallystick import BadInput
from tallystick.models import (
    Decoder,
    DecoderConfig,
    crop_positions,
    grow_vocabulary,
    load_pretrained,
    save_pretrained,
    set_dropout,
)
from weights import SMALL, read_strictly, small

TOKENS = torch.arange(24).view(2, 12)


def decoder_of(family, **settings):
    return Decoder.of({"model_type": family, **SMALL[family], **settings}).eval()


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_vocabulary_grows_and_what_was_there_stays(tmp_path, family, tied):
    decoder = decoder_of(family, tie_word_embeddings=tied)
    before, old = decoder(TOKENS), [decoder.embedding.weight.clone(), decoder.head.weight.clone()]
    grow_vocabulary(decoder, multiple_of=64)
    assert decoder.config.vocab_size == decoder.embedding.num_embeddings == decoder.head.out_features == 128
    assert (decoder.head.weight is decoder.embedding.weight) is tied
    for weight, rows in zip((decoder.embedding.weight, decoder.head.weight), old, strict=True):
        assert torch.equal(weight[:VOCABULARY], rows)
        assert weight[VOCABULARY:].std().item() == pytest.approx(0.02, rel=0.2)
    torch.testing.assert_close(decoder(TOKENS)[..., :VOCABULARY], before)
    save_pretrained(decoder, tmp_path / "grown")
    model = read_strictly(tmp_path / "grown")
    assert model.config.vocab_size == 128
    torch.testing.assert_close(model(TOKENS).logits, decoder(TOKENS), atol=1e-4, rtol=1e-5)


@torch.no_grad()
def test_positions_are_cropped_as_the_config_says_afterwards(tmp_path):
    decoder = decoder_of("gpt2")
    before = decoder(TOKENS)
    crop_positions(decoder, 12)
    torch.testing.assert_close(decoder(TOKENS), before)
    save_pretrained(decoder, tmp_path / "cropped")
    assert read_strictly(tmp_path / "cropped").config.n_positions == 12
    assert tallystick.count(tmp_path / "cropped").total == decoder.ledger().total


def test_rotary_positions_are_cropped_unless_their_angles_depend_on_them(tmp_path):
    decoder = decoder_of("llama")
    crop_positions(decoder, 12)
    save_pretrained(decoder, tmp_path / "cropped")
    assert read_strictly(tmp_path / "cropped").config.max_position_embeddings == 12
    stretched = decoder_of("llama", rope_scaling={"rope_type": "dynamic", "factor": 2.0})
    with pytest.raises(BadInput, match="dynamic rotary angles depend on the number of positions"):
        crop_positions(stretched, 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda decoder: crop_positions(decoder, 65), "of 64 positions"),
        (lambda decoder: crop_positions(decoder, 0), "of 64 positions"),
        (lambda decoder: grow_vocabulary(decoder, 96), "cannot grow to 96"),
        (lambda decoder: grow_vocabulary(decoder, multiple_of=0), "cannot grow"),
        (lambda decoder: set_dropout(decoder, 2), "from 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(BadInput, match=message):
        change(decoder_of("gpt2"))


def test_surgery_works_on_a_decoder_without_a_family():
    decoder = Decoder(DecoderConfig(vocab_size=10, width=8, layers=1, heads=2, inner=16, context=8, tied=True))
    grow_vocabulary(decoder, 12)
    assert decoder.head.weight.shape == (12, 8)
    with pytest.raises(BadInput, match="has no family"):
        save_pretrained(decoder, "nowhere")


def test_gradients_stay_off_where_they_were_off(tmp_path):
    small("gpt2").save_pretrained(tmp_path)
    decoder = load_pretrained(tmp_path)
    decoder.embedding.weight.requires_grad_(False)
    grow_vocabulary(decoder, 100)
    assert not decoder.embedding.weight.requires_grad
    assert not decoder.head.weight.requires_grad
