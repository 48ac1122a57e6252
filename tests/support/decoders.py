"""Small models of transformers, and decoders of ours that hold the same weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
import transformers

from tallystick.models.checkpoints.conversion import pour, stored_by
from tallystick.models.decoder import Decoder

VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
KINDS = {
    "gpt2": {"vocab_size": VOCABULARY, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64},
    "llama": SIZES,
    "mistral": {**SIZES, "sliding_window": 7},
    "qwen2": {**SIZES, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    "qwen3": {**SIZES, "head_dim": 16},
    "gemma": {**SIZES, "head_dim": 16},
    "gemma2": {**SIZES, "head_dim": 16, "sliding_window": 7},
    "phi3": {**SIZES, "pad_token_id": 0},
    "olmo2": SIZES,
    "nanochat": SIZES,
    "mixtral": {**SIZES, "num_local_experts": 4, "sliding_window": 7},
    "qwen3_moe": {**SIZES, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "mlp_only_layers": [1]},
}


def theirs(model_type: str, **settings: Any) -> Any:
    """A model of transformers with weights large enough for a wrong one to show, written-out
    attention, no dropout.
    """
    config = transformers.AutoConfig.for_model(model_type, **copy.deepcopy(settings))  # it writes into what it gets
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    return model


def ours(model: Any) -> Decoder:
    """A decoder with the weights of a model of transformers."""
    decoder = Decoder.of(model.config).eval()
    stored, tensors = stored_by(decoder), dict(decoder.state_dict())
    held = model.state_dict()
    for name, tensor in held.items():
        assert tuple(tensor.shape) == stored[name].shape, name
        pour(stored[name], tensor, tensors)
    filled = {part.ours for name in held for part in stored[name].parts}
    assert filled == tensors.keys(), filled ^ tensors.keys()
    return decoder


def tied() -> Decoder:
    """The smallest decoder whose head is its embedding."""
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return Decoder.of({"model_type": "llama", "vocab_size": 64, **sizes, "tie_word_embeddings": True})
