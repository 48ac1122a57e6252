"""Weights in and out: transformers' files read, ours read by transformers, and every bit where it was."""

import json

import pytest
import torch

import tallystick
from tallystick.models import families, load_pretrained, save_pretrained
from weights import NO_TWIN, SMALL, read_strictly, same_bits, small, stored

FAMILIES = [name for name in families.known() if name not in NO_TWIN]


def test_every_family_of_transformers_is_tried_here():
    assert set(FAMILIES) <= SMALL.keys()


@pytest.mark.parametrize("shard", [None, 20_000], ids=["one file", "several"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("family", FAMILIES)
def test_from_transformers_and_back_nothing_changes_and_nobody_warns(tmp_path, family, tied, shard):
    model = small(family, tie_word_embeddings=tied)
    model.save_pretrained(tmp_path / "theirs", **({"max_shard_size": "20KB"} if shard else {}))
    decoder = load_pretrained(tmp_path / "theirs")
    tokens = torch.arange(24).view(2, 12)
    with torch.no_grad():
        torch.testing.assert_close(decoder(tokens), model(tokens).logits, atol=1e-4, rtol=1e-5)
    save_pretrained(decoder, tmp_path / "ours", max_shard_size=shard)
    assert len(list((tmp_path / "ours").glob("*.safetensors"))) > (1 if shard else 0)
    same_bits(stored(tmp_path / "theirs"), stored(tmp_path / "ours"))
    again = read_strictly(tmp_path / "ours")
    assert type(again) is type(model)
    same_bits(model.state_dict(), again.state_dict())
    ignored = {"transformers_version", "dtype", "architectures"}
    theirs, ours = (json.loads((tmp_path / one / "config.json").read_text()) for one in ("theirs", "ours"))
    assert {key for key in theirs if theirs[key] != ours.get(key)} <= ignored


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_saved_counts_as_many_parameters_as_the_decoder(tmp_path, family):
    decoder = load_from(small(family), tmp_path)
    save_pretrained(decoder, tmp_path / "ours")
    ledger = tallystick.count(tmp_path / "ours")
    assert ledger.total == decoder.ledger().total == sum(one.numel() for one in set(decoder.parameters()))
    assert not any(ledger.mismatches.values())


def load_from(model, folder, **settings):
    model.save_pretrained(folder / "theirs")
    return load_pretrained(folder / "theirs", **settings)
