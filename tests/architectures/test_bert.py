"""What BERT and those like it have that no other decoder has: an encoder's attention, padded
positions, checkpoints without a head.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import load_file, save_file

import tallystick
from families_bert import FAMILIES, SMALL
from native import assert_equal
from tallystick import BadInput, architectures
from tallystick.answers.compute.compute import compute
from tallystick.runtimes.transformers.cache import cached

DECODER = {"is_decoder": True, "pad_token_id": 1, "default_language": "en_XX"}
CACHED = sorted(
    name for name, of in FAMILIES.items() if of.attends and "is_decoder" in of.needs.get("add_cross_attention", ())
)


def model_of(model_type: str, **values: Any) -> Any:
    config = transformers.AutoConfig.for_model(model_type, **values)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("model_type", CACHED)
def test_a_decoder_caches_keys_and_values_and_an_encoder_nothing(model_type: str):
    values = {**FAMILIES[model_type].small, **DECODER}
    held = model_of(model_type, **values)(torch.full((3, 7), 5), use_cache=True).past_key_values
    tensors = [
        tensor for layer in getattr(held, "self_attention_cache", held).layers for tensor in (layer.keys, layer.values)
    ]
    (layers,) = cached(tallystick.count({"model_type": model_type, **values}).attending, 7)
    assert 3 * layers.total == sum(tensor.numel() for tensor in tensors)

    values["is_decoder"] = False
    answer = tallystick.memory({"model_type": model_type, **values}, sequence=7)
    assert model_of(model_type, **values)(torch.full((3, 7), 5), use_cache=True).past_key_values is None
    assert answer.to_dict()["kv_cache_bytes"] == answer.kv_cache_bytes_per_token == 0
    assert any("no KV cache: attention is bidirectional" in note for note in answer.notes)


def test_an_encoder_needs_each_score_that_it_computes():
    encoder, decoder = (
        compute(tallystick.count({"model_type": "bert", **SMALL, "is_decoder": is_decoder}), sequence=9)
        for is_decoder in (False, True)
    )
    assert encoder.forward_flops == encoder.needed_flops == decoder.forward_flops
    scores = encoder.parts["attention_scores"]["needed_flops"]
    assert decoder.parts["attention_scores"]["needed_flops"] == scores * 5 // 9  # 45 pairs of 81


PADDED = sorted(name for name in FAMILIES if "pad_token_id" in architectures.find(name).running)


@pytest.mark.parametrize("model_type", PADDED)
def test_the_longest_sequence_is_what_the_padding_token_leaves(model_type: str):
    values = {**SMALL, "max_position_embeddings": 20, "pad_token_id": 3, "default_language": "en_XX"}
    model, ledger = model_of(model_type, **values), tallystick.count({"model_type": model_type, **values})
    assert compute(ledger).sequence == 16
    assert model(torch.full((1, 16), 5)).logits.shape == (1, 16, 40)
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        model(torch.full((1, 17), 5))
    with pytest.raises(BadInput, match="a sequence of 17 exceeds the 16 learned positions"):
        compute(ledger, sequence=17)


def test_roberta_reads_512_tokens_with_its_514_positions():
    published = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1, "type_vocab_size": 1}
    assert compute(tallystick.count(published)).sequence == 512


@pytest.mark.parametrize("model_type", ["bert", "roberta", "xlm-roberta-xl"])
def test_a_model_may_have_no_token_types(model_type: str):
    """It has an embedding without rows, which cannot be run."""
    values = {"model_type": model_type, **SMALL, "type_vocab_size": 0}
    embedding = next(one for one in assert_equal(values).parameters if "token_type" in one.name)
    assert tuple(map(int, embedding.shape)) == (0, 16)


# -- checkpoints ----------------------------------------------------------------------------------


def saved(name: str, folder: Path) -> Any:
    model = getattr(transformers, name)(transformers.BertConfig(**SMALL))
    model.save_pretrained(folder)
    return model


def elements(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", ["BertModel", "BertForSequenceClassification", "BertForTokenClassification"])
def test_a_checkpoint_without_the_head_lacks_nothing(name: str, tmp_path: Path):
    model = saved(name, tmp_path)
    ledger = tallystick.count(tmp_path)
    assert ledger.total == elements(model)
    assert ledger.mismatches == {}
    assert tallystick.ties(tmp_path).verdict == "consistent"


def test_a_masked_language_model_is_missed_its_head(tmp_path: Path):
    saved("BertForMaskedLM", tmp_path)
    file, lost = tmp_path / "model.safetensors", "cls.predictions.transform.dense.weight"
    save_file({name: t for name, t in load_file(file).items() if name != lost}, file, metadata={"format": "pt"})
    assert tallystick.count(tmp_path).mismatches == {"missing": (lost,)}


@pytest.mark.parametrize("first", [False, True], ids=["weight and bias", "gamma and beta"])
def test_a_checkpoint_with_the_first_names_of_the_norms(first: bool, tmp_path: Path):
    """As Google's own files have them; the head, which is tied, they leave out."""
    model = saved("BertForPreTraining", tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    if first:
        renamed = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for old, new in renamed.items():
            tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    save_file({name: t for name, t in tensors.items() if ".decoder." not in name}, file, metadata={"format": "pt"})
    ledger = tallystick.count(tmp_path)
    assert ledger.total == elements(model)
    assert ledger.mismatches == {}
    assert {entry.role for entry in ledger.entries if "LayerNorm" in entry.name} == {"norm"}
    assert tallystick.ties(tmp_path).verdict == "consistent"


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("cutoffs", "share"), [([10], 4.0), ([1, 7, 20], 2.5), ([39], 1), ([3, 4], 2)])
def test_an_adaptive_softmax_has_narrower_rows_for_seldom_tokens(cutoffs: list[int], share: float, tied: bool):
    adaptive = {"asm": True, "asm_cutoffs": cutoffs, "asm_div_value": share, "tie_word_embeddings": tied}
    assert_equal({"model_type": "xlm", **FAMILIES["xlm"].small, **adaptive})


# -- what makes no model --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_type", "more", "why"),
    [
        ("bert", {"add_cross_attention": True}, "add_cross_attention needs is_decoder = true"),
        ("big_bird", {"attention_type": "sparse"}, "attention_type is the string 'sparse', expected block_sparse or"),
        ("xlm", {"is_encoder": False}, "is_encoder is false, which this type does not support"),
        ("xlm", {"asm": True}, "asm = true needs asm_cutoffs"),
        ("xlm", {"asm": True, "asm_cutoffs": [5, 5], "asm_div_value": 4.0}, "a list of numbers that grow"),
        (
            "reformer",
            {"is_decoder": True, "attn_layers": []},
            r"attn_layers is the list \[\], expected a list of lsh and local",
        ),
        ("reformer", {"is_decoder": True, "num_hidden_layers": 9}, "attn_layers lists 6 layers of 9"),
        ("reformer", {"is_decoder": True, "lsh_num_chunks_after": 1}, "lsh_num_chunks_after must be 0"),
        (
            "reformer",
            {"is_decoder": True, "axial_pos_embds_dim": [3]},
            "axial_pos_embds_dim must sum to hidden_size = 16",
        ),
        (
            "xlnet",
            {"d_head": 5},
            "d_head is 5, but d_model divided by the heads is 4",
        ),
        ("xmod", {"languages": "en_XX"}, "languages is the string 'en_XX', expected a list of names such as en_XX"),
        ("xmod", {"languages": ["en.XX"]}, "languages is .*, expected a list"),
        ("xmod", {"languages": [3]}, "languages is .*, expected a list"),
    ],
)
def test_what_makes_no_model_is_refused(model_type: str, more: dict[str, Any], why: str):
    with pytest.raises(BadInput, match=why):
        tallystick.count({"model_type": model_type, **SMALL, **more})
    refusals = (
        ValueError,
        KeyError,
        AttributeError,
        IndexError,
        AssertionError,
        NotImplementedError,
        StrictDataclassError,
    )
    with pytest.raises(refusals):
        model_of(model_type, **{**SMALL, **more})


def test_a_token_goes_through_the_adapter_of_its_language():
    """Of width 16, halved: 16·8 + 8 and 8·16 + 16 in each of two layers, and a language more is
    idle.
    """
    one, two = (
        tallystick.count({"model_type": "xmod", **SMALL, "languages": names})
        for names in (["en_XX"], ["en_XX", "de_DE"])
    )
    assert two.total - one.total == 2 * (16 * 8 + 8 + 8 * 16 + 16)
    assert two.totals["active"] == one.totals["active"] == one.total
    assert compute(one, sequence=5).forward_flops == compute(two, sequence=5).forward_flops
