"""How near the prediction of what training keeps is to what torch keeps.

    python benchmarks/activations.py          # small models of each type: bytes that autograd saves
    python benchmarks/activations.py --cuda   # GPT-2 124M on a CUDA device: the peak of a step

Exits with 1 if an error is larger than 2% (5% on a device).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

import tallystick
from tallystick.answers.memory.activations import logits, saved

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from autograd_memory import build, saved_bytes
from runnable import EAGER_ONLY, SMALL, config_of

NEAR, NEAR_ON_DEVICE = 0.02, 0.05
RUNS = {"float32": ("float32", "pure"), "bfloat16": ("bfloat16", "pure"), "autocast": ("bfloat16", "mixed")}
BATCHES = (1, 2, 4, 8, 16, 32)
NO_LOGITS = (
    "logits in",
    "float32 gradients",
)  # what the caller holds, and what backward makes: nothing that autograd saves


def small(batch: int, sequence: int) -> float:
    """One row for each type, attention, precision and recomputation; the largest error."""
    worst = 0.0
    print(f"{'type':12} {'attention':9} {'precision':9} {'recompute':9} {'torch':>12} {'tallystick':>12} {'error':>8}")
    for model_type in SMALL:
        for attention in ("flash", "eager"):
            if attention == "flash" and model_type in EAGER_ONLY:
                continue
            for name, (dtype, precision) in RUNS.items():
                for recompute in ("none", "full"):
                    config = config_of(model_type)
                    model = build(config, attention=attention, dtype="float32" if precision == "mixed" else dtype)
                    mixed = precision == "mixed"
                    truth = saved_bytes(model, batch, sequence, mixed=mixed, recompute=recompute == "full")
                    ledger = tallystick.count(config)
                    how = {"attention": attention, "recompute": recompute, "precision": precision}
                    lines = saved(ledger, batch, sequence, dtype=dtype, **how)
                    lines += logits(ledger, batch, sequence, dtype=dtype)
                    ours = sum(line.bytes for line in lines if not line.what.startswith(NO_LOGITS))
                    error = ours / truth - 1
                    worst = max(worst, abs(error))
                    row = f"{model_type:12} {attention:9} {name:9} {recompute:9} {truth:12,} {ours:12,}"
                    print(f"{row} {error:+8.2%}")
    return worst


def on_device(sequence: int) -> float:
    """One row for each batch size, attention and precision; the largest error of the whole peak."""
    worst = 0.0
    print(f"{'batch':>5} {'attention':9} {'precision':9} {'allocated':>16} {'tallystick':>16} {'error':>8}")
    for attention in ("flash", "eager"):
        for name, (dtype, precision) in RUNS.items():
            for batch in BATCHES:
                try:
                    before, peak = _peak(attention, dtype, precision, batch, sequence)
                except torch.cuda.OutOfMemoryError:
                    break
                finally:
                    torch.cuda.empty_cache()
                ledger = tallystick.count("gpt2")
                lines = saved(ledger, batch, sequence, dtype=dtype, attention=attention, precision=precision)
                lines += logits(ledger, batch, sequence, dtype=dtype)
                ours = before + sum(line.bytes for line in lines)
                error = ours / peak - 1
                worst = max(worst, abs(error))
                print(f"{batch:5} {attention:9} {name:9} {peak:16,} {ours:16,} {error:+8.2%}")
    return worst


def _peak(attention: str, dtype: str, precision: str, batch: int, sequence: int) -> tuple[int, int]:
    """Bytes allocated before a step, weights, gradients and AdamW's state, and at most in its two
    passes.
    """
    values: dict[str, Any] = {"attn_implementation": "sdpa" if attention == "flash" else attention}
    model = transformers.AutoModelForCausalLM.from_config(transformers.GPT2Config(), **values)
    model = model.to("cuda", torch.float32 if precision == "mixed" else getattr(torch, dtype)).train()
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(50257, (batch, sequence), device="cuda")
    before = 0
    for _ in range(2):  # the first step makes what the second finds
        optimizer.zero_grad(set_to_none=False)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        mixed = torch.autocast("cuda", torch.bfloat16) if precision == "mixed" else contextlib.nullcontext()
        with mixed:
            output = model(ids, labels=ids, use_cache=False)
        output.loss.backward()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
        del output
        optimizer.step()
    return before, peak


def main() -> int:
    """Print the table that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", action="store_true", help="GPT-2 124M on a CUDA device")
    parser.add_argument("--batch", type=int, default=2, help="of the small models")
    parser.add_argument("--sequence", type=int, help="tokens (48; 1024 on a device)")
    options = parser.parse_args()
    if options.cuda and not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    worst = on_device(options.sequence or 1024) if options.cuda else small(options.batch, options.sequence or 48)
    print(f"\nlargest error {worst:.2%}")
    return int(worst > (NEAR_ON_DEVICE if options.cuda else NEAR))


if __name__ == "__main__":
    sys.exit(main())
