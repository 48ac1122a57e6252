"""Weights in and out: transformers' files read, ours read by transformers, and every bit where it
was.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import tallystick
from decoders import VOCABULARY
from rotating import half_by_commit
from tallystick import BadInput
from tallystick.models import Decoder, load_pretrained, save_pretrained
from tallystick.models.checkpoints import lazy_tensors as reading
from weights import SMALL, edit_config, read_strictly, same_bits, small, stored


@pytest.mark.parametrize("shard", [None, 20_000], ids=["one file", "several"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("family", half_by_commit(SMALL, "src/tallystick/models/"))
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


@pytest.mark.parametrize("family", SMALL)
def test_what_was_saved_counts_as_many_parameters_as_the_decoder(tmp_path, family):
    decoder = load_from(small(family), tmp_path)
    save_pretrained(decoder, tmp_path / "ours")
    ledger = tallystick.count(tmp_path / "ours")
    assert ledger.total == decoder.ledger().total == sum(one.numel() for one in set(decoder.parameters()))
    assert not any(ledger.mismatches.values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["gpt2", "llama", "mixtral"])
def test_sixteen_bits_are_kept_too(tmp_path, family, dtype):
    save_pretrained(load_from(small(family).to(dtype), tmp_path), tmp_path / "ours")
    same_bits(stored(tmp_path / "theirs"), stored(tmp_path / "ours"))
    assert read_strictly(tmp_path / "ours").dtype == dtype


@pytest.mark.parametrize("family", SMALL)
def test_converted_in_pieces_it_is_what_it_would_be_whole(tmp_path, family, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 1500)  # a few rows, which end in the middle of a fused tensor's parts
    model = small(family)
    decoder = load_from(model, tmp_path, dtype="bfloat16", check_finite=True)
    save_pretrained(decoder, tmp_path / "ours")
    same_bits(stored(tmp_path / "ours"), {n: t.bfloat16() for n, t in stored(tmp_path / "theirs").items()})


def load_from(model, folder, **settings):
    model.save_pretrained(folder / "theirs")
    return load_pretrained(folder / "theirs", **settings)


def rewrite(folder, change, *, file="model.safetensors"):
    """Replace the tensors of a file by what `change` makes of them."""
    tensors = {name: tensor.clone() for name, tensor in stored(folder).items()}
    save_file(change(tensors), folder / file, metadata={"format": "pt"})


def refused(folder, **settings):
    with pytest.raises(BadInput) as caught:
        load_pretrained(folder, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def tied_llama(tmp_path):
    model = small("llama", tie_word_embeddings=True)
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def untied_llama(tmp_path):
    model = small("llama", tie_word_embeddings=False)
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def with_head(change):
    return lambda tensors: {**tensors, "lm_head.weight": change(tensors["model.embed_tokens.weight"])}


def test_a_duplicate_of_a_tied_head_is_the_embedding(tied_llama):
    rewrite(tied_llama, with_head(torch.clone))
    decoder = load_pretrained(tied_llama)
    assert decoder.head.weight is decoder.embedding.weight


def test_a_tied_head_with_other_values_is_refused_until_somebody_decides(tied_llama, tmp_path):
    rewrite(tied_llama, with_head(lambda table: table + 1))
    message = refused(tied_llama)
    assert "lm_head.weight" in message
    assert "tie=False" in message
    assert "tie=True" in message
    both = load_pretrained(tied_llama, tie=False)
    torch.testing.assert_close(both.head.weight, both.embedding.weight + 1)
    save_pretrained(both, tmp_path / "both")
    same_bits(stored(tmp_path / "both"), stored(tied_llama))
    assert not read_strictly(tmp_path / "both").config.tie_word_embeddings
    one = load_pretrained(tied_llama, tie=True)
    assert one.head.weight is one.embedding.weight
    same_bits({"it": one.embedding.weight}, {"it": both.embedding.weight})


def test_equal_values_of_another_dtype_are_other_values(tied_llama):
    rewrite(tied_llama, with_head(lambda table: table.double()))
    assert "hold different values" in refused(tied_llama)


def test_an_untied_head_that_is_absent_is_refused_until_it_is_tied(untied_llama, tmp_path):
    rewrite(untied_llama, lambda tensors: {n: t for n, t in tensors.items() if n != "lm_head.weight"})
    assert "lm_head.weight" in (message := refused(untied_llama))
    assert "tie=True" in message
    decoder = load_pretrained(untied_llama, tie=True)
    assert decoder.head.weight is decoder.embedding.weight
    save_pretrained(decoder, tmp_path / "tied")
    assert read_strictly(tmp_path / "tied").config.tie_word_embeddings


def test_a_tied_checkpoint_is_untied_by_a_copy(tied_llama):
    decoder = load_pretrained(tied_llama, tie=False)
    assert torch.equal(decoder.head.weight, decoder.embedding.weight)
    with torch.no_grad():
        decoder.head.weight.add_(1)
    assert not torch.equal(decoder.head.weight, decoder.embedding.weight)


def test_a_head_that_stands_for_the_embedding_too_is_read(tied_llama):
    before = load_pretrained(tied_llama).embedding.weight.clone()
    rewrite(tied_llama, lambda tensors: {n.replace("model.embed_tokens", "lm_head"): t for n, t in tensors.items()})
    decoder = load_pretrained(tied_llama)
    assert torch.equal(decoder.embedding.weight, before)
    assert decoder.head.weight is decoder.embedding.weight


def test_a_name_that_was_dropped_on_saving_is_found_in_the_metadata(untied_llama):
    tensors = stored(untied_llama)
    head = tensors.pop("lm_head.weight").clone()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()} | {"model.embed_tokens.weight": head}
    metadata = {"format": "pt", "lm_head.weight": "model.embed_tokens.weight"}
    save_file(tensors, untied_llama / "model.safetensors", metadata=metadata)
    decoder = load_pretrained(untied_llama)
    assert torch.equal(decoder.head.weight, head)
    assert decoder.head.weight.data_ptr() != decoder.embedding.weight.data_ptr()


def test_everything_that_does_not_fit_is_named_at_once(untied_llama):
    def spoil(tensors):
        del tensors["model.norm.weight"], tensors["model.layers.1.mlp.up_proj.weight"]
        tensors["model.layers.0.self_attn.q_proj.weight"] = torch.zeros(48, 31)
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(4)  # a buffer, as old files have it
        return {**tensors, "model.layers.3.mlp.up_proj.weight": torch.zeros(2), "odd": torch.zeros(1)}

    rewrite(untied_llama, spoil)
    assert refused(untied_llama).endswith(
        "does not match its config: missing: model.layers.1.mlp.up_proj.weight, model.norm.weight;"
        " unexpected: model.layers.3.mlp.up_proj.weight, odd; with another shape:"
        " model.layers.0.self_attn.q_proj.weight (48, 31), but (48, 48) in the config"
    )


def test_gpt2_as_openai_published_it_is_read(tmp_path):
    model = small("gpt2")
    model.save_pretrained(tmp_path)

    def bare(tensors):
        mask = torch.ones(1, 1, 64, 64).tril()
        return {n.removeprefix("transformer."): t for n, t in tensors.items()} | {"h.0.attn.bias": mask}

    rewrite(tmp_path, bare)
    same_bits(load_pretrained(tmp_path).state_dict(), load_from(model, tmp_path).state_dict())
    rewrite(tmp_path, lambda tensors: {n: t for n, t in bare(tensors).items() if n != "h.1.ln_1.bias"})
    assert refused(tmp_path).endswith("missing: h.1.ln_1.bias")


def test_dropout_and_dtype_are_overridden_and_saved(tmp_path):
    decoder = load_from(small("gpt2"), tmp_path, dropout=0.3, dtype="bfloat16")
    rates = {module.p for module in decoder.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.3}
    assert {layer.attention.dropout for layer in decoder.layers} == {0.3}
    assert {one.dtype for one in decoder.parameters()} == {torch.bfloat16}
    save_pretrained(decoder, tmp_path / "ours")
    config = read_strictly(tmp_path / "ours").config
    assert (config.embd_pdrop, config.resid_pdrop, config.attn_pdrop, config.dtype) == (0.3, 0.3, 0.3, torch.bfloat16)
    rounded = {n: t.bfloat16() for n, t in stored(tmp_path / "theirs").items()}
    same_bits(stored(tmp_path / "ours"), rounded)


@pytest.mark.parametrize("dropout", [-0.1, 1.5, float("nan")])
def test_a_dropout_that_is_no_rate_is_refused(tied_llama, dropout):
    assert "from 0 to 1" in refused(tied_llama, dropout=dropout)


@pytest.mark.parametrize("dtype", ["bfloat61", "int8", torch.int32, "nn"])
def test_a_dtype_that_is_none_is_refused(tied_llama, dtype):
    assert "expected one such as float32" in refused(tied_llama, dtype=dtype)


def test_mixed_dtypes_are_for_the_user_to_decide(tied_llama):
    rewrite(tied_llama, lambda tensors: {n: t.bfloat16() if "mlp" in n else t for n, t in tensors.items()})
    assert "mixes float32 (model.embed_tokens.weight) and bfloat16 (model.layers.0.mlp." in refused(tied_llama)
    assert {one.dtype for one in load_pretrained(tied_llama, dtype=torch.float32).parameters()} == {torch.float32}


def test_quantised_weights_are_refused(tied_llama):
    rewrite(tied_llama, lambda tensors: {n: t.to(torch.int8) if "mlp" in n else t for n, t in tensors.items()})
    assert "model.layers.0.mlp.gate_proj.weight" in (message := refused(tied_llama))
    assert "int8: quantised" in message
    edit_config(tied_llama, quantization_config={"quant_method": "gptq"})
    assert "quantization_config" in refused(tied_llama)


def test_nan_is_named_on_request(tied_llama):
    def spoil(tensors):
        tensors["model.norm.weight"][3] = float("nan")
        tensors["model.layers.1.mlp.up_proj.weight"][-1, -1] = float("inf")
        return tensors

    assert load_pretrained(tied_llama, check_finite=True)
    rewrite(tied_llama, spoil)
    assert load_pretrained(tied_llama)
    message = refused(tied_llama, check_finite=True)
    assert message.endswith("holds NaN or infinity in 'model.norm.weight', 'model.layers.1.mlp.up_proj.weight'")


def test_a_truncated_shard_is_refused(tmp_path):
    small("llama").save_pretrained(tmp_path, max_shard_size="20KB")
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.write_bytes(shard.read_bytes()[:-10])
    assert f"{shard}: the file is truncated" in refused(tmp_path)


def test_an_unknown_family_is_refused_with_the_nearest(tied_llama):
    edit_config(tied_llama, model_type="lama", architectures=None)
    assert "nearest: llama" in refused(tied_llama)


def test_a_tokenizer_with_more_ids_than_rows_is_refused(tied_llama):
    vocabulary = {str(number): number for number in range(VOCABULARY)}
    tokenizer = {"model": {"vocab": vocabulary}, "added_tokens": []}
    (tied_llama / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert load_pretrained(tied_llama)
    tokenizer["added_tokens"] = [{"id": VOCABULARY, "content": "<pad>"}]
    (tied_llama / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "the ids of tokenizer.json end at 97, but the embedding has 97 rows" in refused(tied_llama)


def test_a_folder_without_weights_or_config_is_refused(tmp_path, tied_llama):
    assert "there is no file or folder" in refused(tmp_path / "none")
    (tied_llama / "model.safetensors").rename(tmp_path / "alone.safetensors")
    assert "holds no weights" in refused(tied_llama)
    assert "has no config.json" in refused(tmp_path / "alone.safetensors")


def test_equal_dtypes_are_mapped_and_writing_to_them_leaves_the_file_alone(tied_llama):
    file = tied_llama / "model.safetensors"
    before = file.read_bytes()
    decoder = load_pretrained(tied_llama)
    storages = {one.untyped_storage().data_ptr() for one in decoder.parameters()}
    assert len(storages) == 1  # the one mapping of the file
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(1)
    assert file.read_bytes() == before
    save_pretrained(decoder, tied_llama, overwrite=True)
    assert load_pretrained(tied_llama).norm.weight.equal(decoder.norm.weight)


PEAK = """
import sys
from pathlib import Path
from tallystick.models import load_pretrained

def kilobytes(key):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith(key))

before = kilobytes("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
decoder = load_pretrained(sys.argv[1], dtype=sys.argv[2] or None)
print((kilobytes("VmHWM:") - before) * 1024 / sum(one.nbytes for one in decoder.parameters()))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The folder of a large decoder of these settings, saved once."""

    @cache
    def saved(**settings):
        sizes = {"vocab_size": 32000, "hidden_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 16}
        more = {"intermediate_size": 4096, "tie_word_embeddings": True} if settings["model_type"] == "llama" else {}
        folder = tmp_path_factory.mktemp("large")
        save_pretrained(Decoder.of({**settings, **sizes, **more}), folder / "model")
        return folder / "model"

    return saved


@pytest.mark.usefixtures("preloaded")
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a peak that starts anew")
@pytest.mark.parametrize(
    ("settings", "dtype", "most"),
    [
        ({"model_type": "llama", "num_key_value_heads": 16}, "", 0.2),  # mapped: nothing is read
        ({"model_type": "llama", "num_key_value_heads": 16}, "bfloat16", 1.2),
        ({"model_type": "gpt2"}, "", 1.2),  # transposed
    ],
)
def test_loading_takes_hardly_more_than_the_weights(large, settings, dtype, most):
    done = subprocess.run(
        [sys.executable, "-c", PEAK, large(**settings), dtype], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < most


def test_the_configs_key_ties_as_tie_does(tied_llama):
    decoder = load_pretrained(tied_llama, tie_word_embeddings=False)
    assert decoder.head.weight is not decoder.embedding.weight
    assert load_pretrained(tied_llama, tie=False, tie_word_embeddings=False).config.tied is False
    with pytest.raises(BadInput, match="tie is True, but tie_word_embeddings is False: give one of them"):
        load_pretrained(tied_llama, tie=True, tie_word_embeddings=False)
