"""T5, whose models are no causal language models: compared with the classes of transformers."""

from __future__ import annotations

import pytest
import torch
import transformers

from reference import read
from tallystick import BadInput, compute, count, memory, serve
from tallystick.core.ledger import Ledger
from tallystick.sources.roles.from_names import role_of

CONFIGS = [
    {},
    {"num_layers": 1},
    {"num_layers": 3, "num_decoder_layers": 2, "num_heads": 3, "d_kv": 5, "d_model": 24, "d_ff": 40},
    {"feed_forward_proj": "gated-gelu", "vocab_size": 99, "relative_attention_num_buckets": 7},
    {"hidden_size": 48, "num_hidden_layers": 2, "num_decoder_layers": 2, "num_attention_heads": 4, "head_dim": 6},
]
CLASSES = ["T5ForConditionalGeneration", "T5Model", "T5EncoderModel"]


def built(name: str, **values: object) -> torch.nn.Module:
    with torch.device("meta"):
        return getattr(transformers, name)(transformers.T5Config(**values))


def held(ledger: Ledger) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((entry.name, tuple(map(int, entry.shape))) for entry in ledger.entries)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("values", CONFIGS, ids=str)
def test_each_class_is_that_of_transformers(values, name):
    ledger = count({"model_type": "t5", "architectures": [name], **values})
    model = built(name, **values)
    assert held(ledger) == sorted((key, tuple(value.shape)) for key, value in model.state_dict().items())
    assert ledger.total == sum(one.numel() for one in model.parameters())
    assert {frozenset(tie.names) for tie in ledger.ties} == read(model).ties


def test_a_head_that_the_config_unties_is_a_tensor_of_its_own():
    """As in the weights of T5 v1.1; transformers 5 builds it tied, whatever the config says."""
    values = {"model_type": "t5", "d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12}
    gated = {**values, "feed_forward_proj": "gated-gelu"}
    assert count({**gated, "tie_word_embeddings": False}).total == 247_577_856  # google/t5-v1_1-base
    assert count(gated).total == 247_577_856 - 32_128 * 768


@pytest.mark.parametrize("name", ["layer.1.DenseReluDense.wi_0.weight", "layer.2.DenseReluDense.wo.weight"])
def test_the_mlp_of_its_kin_is_known_by_name(name):
    """mT5, UMT5 and LongT5 are built by transformers, and their roles come from names."""
    assert role_of(f"decoder.block.0.{name}") == "mlp"


def test_what_is_not_counted_of_an_encoder_decoder_is_said():
    why = "the encoder processes its own input tokens"
    assert f"no KV cache is counted: {why}" in memory("t5-small").notes
    assert f"attention scores and recurrent scans are not counted: {why}" in compute("t5-small").notes
    with pytest.raises(BadInput, match=f"^t5-small cannot be planned: {why}$"):
        serve("t5-small", engine="vllm", device="h100")
