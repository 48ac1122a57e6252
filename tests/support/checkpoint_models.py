"""Checkpoints as the tests write them: a tiny GPT-2, Llama in its layouts, and what is said of
them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkpoints import gpt2_published, write_config, write_sharded
from tallystick import Ledger
from tallystick.cli.main import main

# A GPT-2 small enough to name each of its tensors; what is left out has the type's own default.
TINY = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 20, "n_positions": 6}


TINY_SHAPES = gpt2_published(layers=2, width=8, vocabulary=20, positions=6)


TINY_UNIQUE = 20 * 8 + 6 * 8 + 2 * (12 * 8 * 8 + 13 * 8) + 2 * 8


LLAMA = {
    "model_type": "llama", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 20,
}  # fmt: skip
LLAMA_SIZES = {key: value for key, value in LLAMA.items() if key != "model_type"}
FLOAT32 = {**LLAMA, "dtype": "float32"}


def llama_shapes(*, head: bool = True, embedding: bool = True, prefix: str = "model.") -> dict[str, tuple[int, ...]]:
    """The tensors of `LLAMA`, by hand."""
    block = {
        "self_attn.q_proj.weight": (8, 8), "self_attn.k_proj.weight": (4, 8), "self_attn.v_proj.weight": (4, 8),
        "self_attn.o_proj.weight": (8, 8), "mlp.gate_proj.weight": (12, 8), "mlp.up_proj.weight": (12, 8),
        "mlp.down_proj.weight": (8, 12), "input_layernorm.weight": (8,), "post_attention_layernorm.weight": (8,),
    }  # fmt: skip
    return {
        **({f"{prefix}embed_tokens.weight": (20, 8)} if embedding else {}),
        **{f"{prefix}layers.{layer}.{name}": shape for layer in range(3) for name, shape in block.items()},
        f"{prefix}norm.weight": (8,),
        **({"lm_head.weight": (20, 8)} if head else {}),
    }


LLAMA_BODY = 3 * (2 * 64 + 2 * 32 + 3 * 96 + 16) + 8


LLAMA_UNTIED = LLAMA_BODY + 2 * 160


def noted(ledger: Ledger, words: str) -> bool:
    return any(words in note for note in ledger.notes)


def names(ledger: Ledger) -> set[str]:
    return {entry.name for entry in ledger.entries}


SMALL = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "ffn_dim": 12, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "max_position_embeddings": 10,
}  # fmt: skip


MORE: dict[str, dict[str, Any]] = {
    "deepseek_v3": {
        "num_hidden_layers": 4, "moe_intermediate_size": 6, "num_key_value_heads": 4, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "q_lora_rank": 6, "kv_lora_rank": 6, "qk_rope_head_dim": 4, "v_head_dim": 4, "qk_nope_head_dim": 4,
    },
    "mixtral": {"num_local_experts": 4},
    "gpt_oss": {"num_local_experts": 4},
    "llama4_text": {"num_local_experts": 4, "head_dim": 4, "moe_layers": [1], "intermediate_size_mlp": 20},
    "gptj": {"rotary_dim": 4},
    "bloom": {"n_head": 4},
    "gemma3n_text": {
        "num_kv_shared_layers": 1, "vocab_size_per_layer_input": 40, "hidden_size_per_layer_input": 4, "head_dim": 4,
    },
    "qwen3_next": {
        "num_hidden_layers": 4, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 4, "moe_intermediate_size": 6,
        "shared_expert_intermediate_size": 6, "linear_key_head_dim": 4, "linear_value_head_dim": 4,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    },
    "bamba": {"mamba_n_heads": 4, "mamba_d_state": 6, "attn_layer_indices": [1]},
    "opt": {"word_embed_proj_dim": 16},
}  # fmt: skip


def small_model(model_type: str, **more: Any) -> Any:
    """A model of a few thousand parameters, with random weights."""
    import torch
    import transformers

    known = transformers.AutoConfig.for_model(model_type)
    values = {key: value for key, value in {**SMALL, **MORE.get(model_type, {})}.items() if hasattr(known, key)}
    values = {**values, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2, **more}
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(model_type, **values))


def parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def tie_of(ledger: Ledger) -> tuple[tuple[str, ...], str, int]:
    """The names of the one tie that there is, what it is, and its parameters."""
    (tie,) = ledger.ties
    return tie.names, tie.relation, tie.parameters


def sharded(folder: Path, **metadata: Any) -> Path:
    """Write `LLAMA` in two shards, with more metadata in their index; the index."""
    shapes = list(llama_shapes().items())
    write_config(folder, FLOAT32)
    index = write_sharded(folder, dict(shapes[:15]), dict(shapes[15:]))
    told = json.loads(index.read_text())
    told["metadata"].update(metadata)
    index.write_text(json.dumps(told))
    return index


def refused(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """The one line with which a command refuses."""
    assert main(list(command)) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    return told.err
