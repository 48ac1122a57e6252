"""The other estimators of memory: bytes of weights, of the cache and of what training keeps, all in
16 bits.

Each is asked in the way that its own source has it done, and as kindly as its options allow. What a
tool does not estimate is left out; what it cannot is raised, in its own words.
"""

from __future__ import annotations

import logging
import math
from typing import Any, NamedTuple

from transformers import PreTrainedConfig

import peers

WEIGHTS, CACHE, TRAINING = "weights", "cache", "training"
WIDTH = 2  # bytes of a number in 16 bits
MOST_AT_ONCE = 8 * 2**30  # bytes of one tensor that this is willing to make in real memory


class Asked(NamedTuple):
    """One model, and one sequence that it reads."""

    name: str
    values: dict[str, Any]  # what its published config.json says of its sizes
    config: PreTrainedConfig
    tensors: dict[str, tuple[int, ...]]  # as a checkpoint stores them: a tied one once
    sequence: int

    def number(self, *keys: str, otherwise: int = 0) -> int:
        """The first of these keys that the config has."""
        return next((self.values[key] for key in keys if key in self.values), otherwise)


def hf_mem(asked: Asked) -> dict[str, int]:
    """hf-mem 0.5.6: its own sums over a checkpoint's header and a config, without fetching them
    from the hub.
    """
    from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size
    from hf_mem.safetensors.metadata import parse_safetensors_metadata

    header = {name: {"dtype": "BF16", "shape": list(shape)} for name, shape in asked.tensors.items()}
    found = {WEIGHTS: parse_safetensors_metadata({"Transformer": header}).bytes_count}
    if "hidden_size" in asked.values:  # without this key, which GPT-2's config has not, hf-mem leaves the cache out
        found[CACHE] = compute_safetensors_kv_cache_size(asked.values, "BF16", asked.sequence)
    return found


# The configs that llm-analysis brings itself. What it reads of others with transformers lacks their
# MLP and experts.
BUNDLED = {"gpt2": "gpt2", "llama-2-7b": "NousResearch_Llama-2-7b-hf"}


def llm_analysis(asked: Asked) -> dict[str, int]:
    """llm-analysis 0.2.2: its own methods, what training keeps with attention that is not fused."""
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import ModelConfig, get_model_config_by_name, gpu_configs
    from llm_analysis.logger import logger

    logger.setLevel(logging.ERROR)
    if asked.name in BUNDLED:
        config = get_model_config_by_name(BUNDLED[asked.name])
    else:  # as a user would write one: half as wide again, since it knows no gate, which is how it writes Llama 2 itself
        d, inner = asked.number("hidden_size"), asked.number("moe_intermediate_size", "intermediate_size") * 3 // 2
        config = ModelConfig(
            name=asked.name,
            num_layers=asked.number("num_hidden_layers"),
            n_head=asked.number("num_attention_heads"),
            num_key_value_heads=asked.values.get("num_key_value_heads"),
            hidden_dim=d,
            vocab_size=asked.number("vocab_size"),
            ffn_embed_dim=inner,
            expansion_ratio=inner / d,
            moe_num_experts=asked.number("num_local_experts", "n_routed_experts", otherwise=1),
            moe_top_k=asked.number("num_experts_per_tok", otherwise=1),
        )
    analysis = LLMAnalysis(config, gpu_configs["a100-sxm-80gb"])
    layers = config.num_layers
    kept = analysis.get_activation_memory_per_layer(
        1,
        asked.sequence,
        is_inference=False,
        flash_attn=False,
        softmax_dropout=asked.name == "gpt2",
    )
    return {
        WEIGHTS: round(
            layers * analysis.get_weight_memory_per_layer()
            + analysis.get_memory_embedding()
            + analysis.get_weight_memory_last_layernorm()
        ),
        CACHE: round(layers * analysis.get_memory_kv_cache_per_layer(1, asked.sequence)),
        TRAINING: round(layers * kept + analysis.get_activation_memory_output_embedding(1, asked.sequence)),
    }


def cookbook(asked: Asked) -> dict[str, int]:
    """The formulas of EleutherAI's cookbook, calc/calc_transformer_mem.py at 827ee3b: a script, and
    no package.

    As its options have them: the share of heads that have keys of their own, three matrices in a
    gated MLP, experts, and no token to generate.
    """
    d = asked.number("hidden_size", "n_embd")
    layers = asked.number("num_hidden_layers", "n_layer")
    heads = asked.number("num_attention_heads", "n_head")
    inner = asked.number("moe_intermediate_size", "intermediate_size", otherwise=4 * d)
    experts = asked.number("num_local_experts", "n_routed_experts", otherwise=1)
    matrices = 2 if asked.name == "gpt2" else 3
    share = asked.number("num_key_value_heads", otherwise=heads) / heads
    parameters = (
        2 * asked.number("vocab_size") * d  # an embedding and a head, tied or not
        + d * asked.sequence  # learned positions, had or not
        + 8 * d * layers
        + 2 * d
        + 2 * (1 + share) * layers * d * d
        + experts * matrices * layers * d * inner
    )
    each = 16 * WIDTH + 2 + (2 * WIDTH + 1) * heads * asked.sequence / d
    return {
        WEIGHTS: round(WIDTH * parameters),
        CACHE: WIDTH * d * layers * asked.sequence,  # one vector of all heads for each token
        TRAINING: round(asked.sequence * d * layers * each),
    }


def accelerate(asked: Asked) -> dict[str, int]:
    """The steps of `accelerate estimate-memory` 1.15.0, as peers.py takes them; it speaks of
    weights alone.
    """
    largest = max(4 * math.prod(shape) for shape in asked.tensors.values())
    if largest > MOST_AT_ONCE:
        raise MemoryError(f"it makes each tensor in real memory, one of {largest / 1e9:.0f} GB")
    return {WEIGHTS: WIDTH * peers.accelerate_estimate(asked.config).total}


PEERS = {"hf-mem": hf_mem, "llm-analysis": llm_analysis, "cookbook": cookbook, "accelerate": accelerate}
