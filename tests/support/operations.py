"""The operations of real models, forward and backward, by torch's own counter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import transformers
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from nesting import nested

transformers.logging.set_verbosity_error()
aten = torch.ops.aten

# torch knows the operations of its fused attention kernels, but not that the one for CPUs is such a
# kernel.
FUSED = {
    aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda g, q, k, v, *_, **__: sdpa_backward_flop_count(
        g, q, k, v
    ),
}


def built(model_type: str, values: dict[str, Any], attention: str) -> nn.Module:
    # Of the three ways in which transformers runs experts, torch counts two; both run those that a
    # token is sent to.
    config = transformers.AutoConfig.for_model(model_type, **nested(values))
    return transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation=attention, experts_implementation="eager"
    )


def run(model: nn.Module, batch: int, sequence: int) -> tuple[int, int, bool]:
    """Operations of the forward and of the backward pass, by torch's counter, and whether a fused
    kernel ran.
    """
    forward, backward, of = counts(model, torch.randint(3, 60, (batch, sequence)) % model.config.vocab_size)
    return forward, backward, any("for_cpu" in str(kernel) for kernel in of)


def counts(model: nn.Module, tokens: torch.Tensor) -> tuple[int, int, dict[Any, int]]:
    """Operations of the forward and of the backward pass, and of both by the kernel."""
    with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
        loss = model(tokens, use_cache=False).logits.sum()
        forward = counter.get_total_flops()
        loss.backward()
    return forward, counter.get_total_flops() - forward, counter.get_flop_counts()["Global"]


# -- what is measured once, and committed ---------------------------------------------------------


def counted(values: dict[str, Any], lengths: Sequence[tuple[int, int]], attention: str) -> list[tuple[int, int, bool]]:
    """What `run` finds for each number of sequences and their length."""
    model = built(values.pop("model_type"), values, attention)
    return [run(model, *length) for length in lengths]


def counted_of_scans(values: dict[str, Any], batch: int, sequence: int) -> tuple[int, int, int, int, int]:
    """Operations forward and backward, the channels of the convolution, and its operations forward
    and backward.
    """
    model = built(values.pop("model_type"), values, "eager")
    forward, backward, of = counts(model, torch.randint(3, 60, (batch, sequence)))
    channels = next(module.in_channels for module in model.modules() if isinstance(module, nn.Conv1d))
    return forward, backward, channels, of[aten.convolution], of[aten.convolution_backward]


def counted_but_for_convolutions(values: dict[str, Any], lengths: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Operations forward and backward; of a convolution, twice its forward's: torch counts each
    channel as reading all.
    """
    model, found = built(values.pop("model_type"), values, "eager"), []
    for length in lengths:
        forward, backward, of = counts(model, torch.randint(3, 20, length))
        convolved = 2 * of.get(aten.convolution, 0) - of.get(aten.convolution_backward, 0)
        found.append((forward, backward + convolved))
    return found
