"""What training real models keeps: each tensor that autograd saves, and the most bytes that are alive at once."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import transformers
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

transformers.logging.set_verbosity_error()

WIDTHS = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 211, "intermediate_size": 176}
GROUPED = {**WIDTHS, "num_key_value_heads": 2, "num_hidden_layers": 2}
GPT2 = {"n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 211, "n_positions": 128}

# A small model of every type whose layers say how they run.
SMALL: dict[str, dict[str, Any]] = {
    "gpt2": {**GPT2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "gptj": {**GPT2, "rotary_dim": 8},
    "bloom": {"hidden_size": 64, "n_head": 4, "n_layer": 2, "vocab_size": 211},
    "gpt_neox": {**WIDTHS, "num_hidden_layers": 2},
    "opt": {**WIDTHS, "num_hidden_layers": 2, "ffn_dim": 176, "word_embed_proj_dim": 64, "dropout": 0.0},
    "phi": {**WIDTHS, "num_hidden_layers": 2},
    "falcon": {**WIDTHS, "num_hidden_layers": 2},
    "starcoder2": {**GROUPED, "residual_dropout": 0.0, "embedding_dropout": 0.0},
    "llama": GROUPED,
    "granite": GROUPED,
    "olmo2": GROUPED,
    "mistral": GROUPED,
    "phi3": GROUPED,
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 16},
    "gemma": {**GROUPED, "head_dim": 16},
    "gemma2": {**GROUPED, "head_dim": 16},
    "gemma3_text": {**GROUPED, "head_dim": 16, "sliding_window_pattern": 2},
    "mixtral": {**GROUPED, "num_local_experts": 4},
    "qwen3_moe": {
        **GROUPED, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
        "mlp_only_layers": [0],
    },
    "nanochat": {**GROUPED, "head_dim": 16},
    "bamba": {
        **GROUPED, "num_hidden_layers": 3, "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 16,
        "mamba_d_state": 16, "mamba_chunk_size": 16,
    },
    "olmo": GROUPED,
    "olmo3": {**GROUPED, "num_hidden_layers": 4},
    "stablelm": GROUPED,
    "cohere": {**GROUPED, "use_qk_norm": True},
    "cohere2": {**GROUPED, "num_hidden_layers": 3, "sliding_window_pattern": 2},
    "glm": {**GROUPED, "head_dim": 16},
    "glm4": {**GROUPED, "head_dim": 16},
    "smollm3": {**GROUPED, "num_hidden_layers": 4},
    "arcee": GROUPED,
    "seed_oss": {**GROUPED, "head_dim": 16, "attention_dropout": 0.0, "residual_dropout": 0.0},
    "ministral3": {**GROUPED, "head_dim": 16},
    "helium": {**GROUPED, "head_dim": 16},
    "exaone4": {**GROUPED, "num_hidden_layers": 4},
    "hunyuan_v1_dense": {**GROUPED, "head_dim": 16},
    "ernie4_5": {**GROUPED, "head_dim": 16},
    "nemotron": {**GROUPED, "head_dim": 16},
    "gpt_neo": {
        **WIDTHS, "num_heads": 4, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 20,
        "max_position_embeddings": 128,
    },
    "gpt_bigcode": {**GPT2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "codegen": {**GPT2, "rotary_dim": 8},
    "olmoe": {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2},
    "granitemoe": {**GROUPED, "num_local_experts": 4},
    "glm4_moe": {
        **GROUPED, "head_dim": 16, "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": 24, "first_k_dense_replace": 1,
    },
    "cwm": {**GROUPED, "head_dim": 16, "num_hidden_layers": 4},
    "hyperclovax": GROUPED,
    "jais2": GROUPED,
    "vaultgemma": {**GROUPED, "head_dim": 16},
    "flex_olmo": {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2},
    "exaone_moe": {
        **GROUPED, "head_dim": 16, "num_hidden_layers": 4, "num_experts": 8, "n_group": 2, "topk_group": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    },
    "gpt_oss": {**GROUPED, "head_dim": 16, "num_local_experts": 4},
    "llama4_text": {
        **GROUPED, "head_dim": 16, "num_local_experts": 4, "num_hidden_layers": 4, "attention_chunk_size": 20,
        "moe_layers": [1, 3], "intermediate_size_mlp": 120,
    },
    "deepseek_v3": {
        **WIDTHS, "num_hidden_layers": 2, "first_k_dense_replace": 1, "num_key_value_heads": 4, "kv_lora_rank": 40,
        "q_lora_rank": 56, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 24, "n_routed_experts": 8,
        "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    },
}  # fmt: skip
EAGER_ONLY = {
    "gptj",
    "bloom",
    "gemma2",
    "gpt_oss",
    "gpt_neo",
    "codegen",
    "vaultgemma",
}  # transformers refuses torch's fused attention


def config_of(model_type: str, **values: Any) -> dict[str, Any]:
    """What config.json holds."""
    return {"model_type": model_type, "pad_token_id": None, **SMALL[model_type], **values}


def build(config: dict[str, Any], *, attention: str = "flash", dtype: str = "float32") -> nn.Module:
    """The causal language model of a config, in training."""
    values = {"bos_token_id": 1, "eos_token_id": 2, **config}
    implementation = "sdpa" if attention == "flash" else attention
    made = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation=implementation)
    return model.to(getattr(torch, dtype)).train()


@contextlib.contextmanager
def as_on_cuda() -> Iterator[None]:
    """What torch does otherwise on a CPU: dropout keeps a mask of bools, and autocast has powers and softmax in float32."""
    dropout, power, square, softmax = nn.functional.dropout, torch.pow, torch.square, torch.softmax

    def masked(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        return torch.native_dropout(x, p, training)[0] if training and p else x

    def wide(x: Any) -> Any:
        return x.float() if torch.is_autocast_enabled("cpu") and isinstance(x, torch.Tensor) else x

    nn.functional.dropout = masked
    torch.pow = lambda x, exponent: power(wide(x), exponent)
    torch.square = lambda x: torch.pow(x, 2)
    torch.softmax = lambda x, dim: softmax(wide(x), dim)
    try:
        yield
    finally:
        nn.functional.dropout, torch.pow, torch.square, torch.softmax = dropout, power, square, softmax


def local(tensor: torch.Tensor) -> torch.Tensor:
    """What this rank holds of a tensor."""
    return getattr(tensor, "_local_tensor", tensor)


def allocated(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the storages behind what this rank holds, each once: the padding of shards too."""
    storages = [local(tensor).untyped_storage() for tensor in tensors]
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def most_allocated(run: Callable[[], Any]) -> int:
    """The most bytes that torch's allocator gave out while `run` ran, beyond those at its start."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    most = now = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def saved_bytes(model: nn.Module, batch: int, sequence: int, *, mixed: bool = False, recompute: bool = False) -> int:
    """Bytes of the storages kept for backward, each once, parameters and buffers left out.

    Where blocks are computed again, what they are called with beside their input is kept too, by reference.
    """
    own = {local(tensor).untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = local(tensor).untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage  # held, so that no other storage takes its place
        return tensor

    if recompute:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of another name, which the oldest transformers 5 lacks
            model.gradient_checkpointing_enable()
        for module in model.modules():
            if again := getattr(module, "_gradient_checkpointing_func", None):

                def noting(function: Any, *args: Any, again: Any = again) -> Any:
                    for leaf in tree_leaves(getattr(function, "keywords", {})):
                        if isinstance(leaf, torch.Tensor):
                            pack(leaf)
                    return again(function, *args)

                module._gradient_checkpointing_func = noting
    ids = torch.arange(batch * sequence).reshape(batch, sequence) % 50 + 3
    precision = torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext()
    with as_on_cuda(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), precision:
        output = model(ids, labels=ids, use_cache=False)
    total = sum(storage.nbytes() for storage in kept.values())
    del output
    return total


class Alive(TorchDispatchMode):
    """Counts the bytes that operations make and nobody has let go, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {
            leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        }
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if storage._cdata not in given and storage._cdata not in self._sizes:
                    self._sizes[storage._cdata] = storage.nbytes()
                    self.now += storage.nbytes()
                    weakref.finalize(storage, self._let_go, storage._cdata)
        self.peak = max(self.peak, self.now)
        return out

    def _let_go(self, key: int) -> None:
        self.now -= self._sizes.pop(key, 0)
