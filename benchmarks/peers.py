"""The other counters, each in the way that its own documentation or source has it count a config.

A function imports what it needs and no more, so that as a process of its own it is not slowed by
another's imports:

    python benchmarks/peers.py meta FOLDER          # FOLDER holds a config.json
    python benchmarks/peers.py accelerate FOLDER
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedConfig


def build_on_meta(config: PreTrainedConfig) -> nn.Module:
    """The causal language model of a config, without memory."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def distinct_parameters(model: nn.Module) -> int:
    """The truth that all are compared with: `parameters()` yields a tied tensor once."""
    return sum(parameter.numel() for parameter in model.parameters())


class Estimate(NamedTuple):
    """What accelerate's estimate comes to."""

    total: int  # the bytes that it reports, in float32 values
    parameters: int  # those of the model that it built, its buffers left out: the kindest reading


def accelerate_estimate(config: PreTrainedConfig) -> Estimate:
    """The steps of `accelerate estimate-memory`, which itself needs a model on the hub.

    accelerate 1.15.0, commands/estimate.py: `create_empty_model` builds `AutoModel` (no `auto_map`
    in the config) under `init_empty_weights` in float32, and `gather_data` asks
    `calculate_maximum_sizes` for its bytes.
    """
    import torch
    from accelerate import init_empty_weights
    from accelerate.utils import calculate_maximum_sizes
    from transformers import AutoModel

    with init_empty_weights():
        model = AutoModel.from_config(config, torch_dtype=torch.float32, trust_remote_code=False)
    total_size, _ = calculate_maximum_sizes(model)
    return Estimate(total_size // torch.float32.itemsize, distinct_parameters(model))


def torchinfo_total(model: nn.Module) -> int:
    """Torchinfo's total, without an input: no forward pass is run."""
    from torchinfo import summary

    return summary(model, verbose=0).total_params


class Calflops(NamedTuple):
    """What calflops says of a model."""

    total: int
    ran: bool  # whether its forward pass went through on the meta device


def calflops_total(model: nn.Module) -> Calflops:
    """Calflops' parameter count.

    `calculate_flops` counts before its forward pass and reports after it. Where the pass fails on
    the meta device, the count is taken as calflops 0.3.2 takes it: flops_counter.py starts a
    `CalFlopsPipline` and asks `get_total_params`.
    """
    import torch
    from calflops import calculate_flops
    from calflops.calculate_pipline import CalFlopsPipline

    tokens = torch.zeros((1, 8), dtype=torch.long, device="meta")
    try:
        *_, total = calculate_flops(model, kwargs={"input_ids": tokens}, print_results=False, output_as_string=False)
        return Calflops(total, ran=True)
    except Exception:  # the pass's fault, whatever it is, and not the count's
        pipeline = CalFlopsPipline(model, include_backPropagation=False, compute_bp_factor=2.0)
        pipeline.start_flops_calculate()
        return Calflops(pipeline.get_total_params(), ran=False)


def main() -> None:
    """Count the config of a folder in one of two ways."""
    from transformers import AutoConfig

    way, folder = sys.argv[1:]
    config = AutoConfig.from_pretrained(folder)
    print(distinct_parameters(build_on_meta(config)) if way == "meta" else accelerate_estimate(config).total)


if __name__ == "__main__":
    main()
