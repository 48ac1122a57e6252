"""Who says how much memory a model takes: tallystick and its peers, against what torch holds.

    python benchmarks/memory.py                              # the page, printed
    python benchmarks/memory.py --write docs/memory-peers.md

The truth is measured at full size on the meta device, where tensors have bytes and take none: those
of the state dict that transformers builds, each storage once; those of the cache that its model
fills; those of the storages that autograd keeps for the backward pass. All in bfloat16, one
sequence, attention that is not fused. Exits with 1 where tallystick is off by a byte of weights or
cache, or by more than 2% of what training keeps.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import transformers

import tallystick
from memory_peers import CACHE, PEERS, TRAINING, WEIGHTS, Asked
from tallystick.answers.memory.activations import logits, saved
from tallystick.presets import PRESETS

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from activations import NEAR, NO_LOGITS
from autograd_memory import saved_bytes

MODELS = {"gpt2": 1024, "llama-2-7b": 4096, "llama-3-8b": 4096, "mixtral-8x7b": 4096, "deepseek-v3": 4096}
QUANTITIES = {
    WEIGHTS: "Weights",
    CACHE: "Cached keys and values",
    TRAINING: "What a training step keeps for its backward pass",
}

PAGE = """\
# Memory estimates compared

Written by `make bench` ([benchmarks/memory.py](../benchmarks/memory.py)), with torch {torch}, transformers {transformers}, hf-mem {hf_mem},
llm-analysis {llm_analysis} and accelerate {accelerate}. All in bfloat16, one sequence of 4,096 tokens (GPT-2: 1,024), attention that is not fused.

**Measured** is what torch holds, in bytes, at full size on the meta device: the state dict, each storage once; the cache that the model of transformers
fills; the storages that autograd keeps in a forward pass with a loss. Each tool's column shows its error; 0 is exact to the byte,
— means no estimate.

- **hf-mem** is run: its own functions, given the header and the config that it would fetch. GPT-2's config lacks a key that it needs for the cache.
- **llm-analysis** is run: its own methods, with its own config of GPT-2 and Llama 2; of the others with one written for it, its MLP half as wide again, since it
  knows no gate. It ties every head, and knows no latent cache.
- **cookbook** is EleutherAI's [calc_transformer_mem.py](https://github.com/EleutherAI/cookbook/blob/827ee3b/calc/calc_transformer_mem.py), which is not a package:
  its formulas, not its code, with the options that suit each model best.
- **accelerate** is run as its `estimate-memory` does, without the hub: weights alone, of the model without its untied head.
"""


def ask(name: str, sequence: int) -> tuple[Asked, dict[str, int]]:
    """A model, and the truth about it."""
    values = {"pad_token_id": None, **PRESETS[name]}
    values.pop("dtype", None)
    sizes = {key: value for key, value in values.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(values["model_type"], **sizes)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").bfloat16()
        tokens = torch.zeros((1, sequence), dtype=torch.long)
        with torch.no_grad():
            cache = model.eval()(tokens, use_cache=True, logits_to_keep=1).past_key_values
        # A mask is given, of ones: without it transformers looks at values, of which there are
        # none.
        model.register_forward_pre_hook(
            lambda _, given, named: (given, {**named, "attention_mask": torch.ones_like(given[0])}), with_kwargs=True
        )
        training = saved_bytes(model.train(), 1, sequence)
    # From the end, so that a storage goes by its first name, as in a file.
    stored = {tensor.untyped_storage()._cdata: (key, tensor) for key, tensor in reversed(model.state_dict().items())}
    held = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    found = {
        WEIGHTS: sum(tensor.nbytes for _, tensor in stored.values()),
        CACHE: sum(tensor.nbytes for tensor in held),
        TRAINING: training,
    }
    return Asked(name, values, config, {key: tuple(tensor.shape) for key, tensor in stored.values()}, sequence), found


def ours(asked: Asked) -> dict[str, int]:
    """What tallystick says."""
    ledger = tallystick.count(asked.name)
    said = tallystick.memory(ledger, dtype="bfloat16", sequence=asked.sequence).to_dict()
    kept = [
        *saved(
            ledger, 1, asked.sequence, dtype="bfloat16", attention="eager", recompute="none", precision="pure"
        ),
        *logits(ledger, 1, asked.sequence, dtype="bfloat16", loss="full"),
    ]  # fmt: skip
    return {
        WEIGHTS: said["weights_bytes"],
        CACHE: said["kv_cache_bytes"],
        TRAINING: sum(line.bytes for line in kept if not line.what.startswith(NO_LOGITS)),
    }


def off(said: int | None, truth: int) -> str:
    """By how much, in a cell."""
    if said is None:
        return "—"
    if said == truth:
        return "0"
    share = said / truth - 1
    if abs(share) < 0.00005:
        return f"{said - truth:+,} bytes"
    return f"{share:+.1%}" if abs(share) >= 0.0005 else f"{share:+.2%}"


def page(rows: dict[str, dict[str, dict[str, int]]], failures: list[str]) -> str:
    """The tables, a quantity each; `rows` holds what each tool says of each model, the truth under
    ``"measured"``.
    """
    names = ("torch", "transformers", "hf-mem", "llm-analysis", "accelerate")
    text = PAGE.format(**{name.replace("-", "_"): _version(name) for name in names})
    for quantity, title in QUANTITIES.items():
        tools = [
            tool for tool in ("tallystick", *PEERS) if any(quantity in said.get(tool, {}) for said in rows.values())
        ]
        text += f"\n## {title}\n\n| model | measured | {' | '.join(tools)} |\n| --- | ---: |{' ---: |' * len(tools)}\n"
        for name, said in rows.items():
            truth = said["measured"][quantity]
            cells = [off(said.get(tool, {}).get(quantity), truth) for tool in tools]
            text += f"| {name} | {truth:,} | {' | '.join(cells)} |\n"
    return text + ("\n" + "\n".join(failures) + "\n" if failures else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def main() -> int:
    """Ask all, print or write the page, and say whether tallystick was wrong."""
    parser = argparse.ArgumentParser(description="Who says how much memory a model takes.")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    options = parser.parse_args()

    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    rows: dict[str, dict[str, Any]] = {}
    failures = []
    for name, sequence in MODELS.items():
        asked, truth = ask(name, sequence)
        rows[name] = {"measured": truth, "tallystick": ours(asked)}
        for tool, estimate in PEERS.items():
            try:
                rows[name][tool] = estimate(asked)
            except Exception as error:  # a tool may raise whatever it likes
                failures.append(f"- {tool} gives nothing for {name}: {' '.join(str(error).split())[:150]}.")
    text = page(rows, failures)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return int(any(wrong(said["tallystick"], said["measured"]) for said in rows.values()))


def wrong(said: dict[str, int], truth: dict[str, int]) -> bool:
    """Whether tallystick is further off than it may be."""
    exact = all(said[quantity] == truth[quantity] for quantity in (WEIGHTS, CACHE))
    return not exact or abs(said[TRAINING] / truth[TRAINING] - 1) > NEAR


if __name__ == "__main__":
    sys.exit(main())
