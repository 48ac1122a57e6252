"""Training steps beside nanoGPT's and a plain loop over transformers' GPT-2: tokens per second and
peak memory.

    python benchmarks/training.py --nanogpt PATH          # a clone of nanoGPT, commit 3adf61e
    python benchmarks/training.py --nanogpt PATH --cuda   # GPT-2 124M, sequence 1024
    python benchmarks/training.py --shape 124m --case "bfloat16 eager"

A step is forward, backward, clipping to norm 1, AdamW and dropping the gradients, on the same
random tokens, without dropout. Each contestant runs in a process of its own, in turns, round after
round; the rounds' medians are printed. nanoGPT and transformers have nanoGPT's optimizer: AdamW in
two groups, fused on CUDA alone. Memory on a CPU is the kernel's peak (VmHWM), less what was there
once everything was imported and before the model was built; on CUDA, the allocator's. Tokens per
second of the processor say more than those by the clock where others use the machine, with
OMP_NUM_THREADS=1 alone: threads that wait for each other work, too. The share is that of the rate
of bare matrix products of the same shape as the head's, measured in the same process. Exits with 1
where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

VOCABULARY = 50257
SHAPES = {  # layers, width, heads, batch, sequence
    "small": (6, 384, 6, 8, 256),
    "124m": (12, 768, 12, 2, 512),
    "cuda": (12, 768, 12, 16, 1024),
}
CASES = ["float32 eager", "bfloat16 eager", "float32 compiled", "bfloat16 compiled"]
WHO = ["tallystick", "nanogpt", "transformers"]
CPU_TARGETS = {"eager": (1.25, 0.55), "compiled": (1.1, 0.8)}  # times nanoGPT's speed, times its memory
CUDA_TARGETS = {"compiled": (1.15, 0.6)}


def main() -> int:
    """Print the table; 1 where tallystick misses a target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nanogpt", help="path of a clone of nanoGPT; without it, it is left out")
    parser.add_argument("--cuda", action="store_true", help="on a CUDA device, compiled, in bfloat16")
    parser.add_argument("--shape", choices=["small", "124m"], action="append")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="timed steps of each round, after two that are not")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(_measured(*asked.one, nanogpt=asked.nanogpt, steps=asked.steps)))
        return 0
    shapes = ["cuda"] if asked.cuda else asked.shape or ["small", "124m"]
    cases = ["bfloat16 compiled"] if asked.cuda else asked.case or CASES
    missed = False
    for shape in shapes:
        layers, width, heads, batch, sequence = SHAPES[shape]
        print(f"\n{layers} layers, width {width}, {heads} heads, vocabulary {VOCABULARY:,}, batch {batch} × {sequence}")
        print(
            f"{'':20}{'':14}{'tokens/s':>10}{'spread':>16}{'per CPU-s':>11}{'of GEMM':>9}{'peak MB':>9}{'speed':>8}{'memory':>8}"
        )
        for case in cases:
            missed |= _compared(shape, case, asked)
    return int(missed)


def _compared(shape: str, case: str, asked: argparse.Namespace) -> bool:
    """One case, in rounds of all contestants; whether a target was missed."""
    who = [one for one in WHO if one != "nanogpt" or asked.nanogpt]
    rounds: dict[str, list[dict[str, float]]] = {one: [] for one in who}
    for _ in range(asked.rounds):
        for one in who:
            rounds[one].append(_in_a_process(shape, case, one, asked))
    middle = {
        one: {key: statistics.median(found[key] for found in results) for key in results[0]}
        for one, results in rounds.items()
    }
    ours, missed = middle["tallystick"], False
    for one in who:
        its = middle[one]
        speeds = [found["speed"] for found in rounds[one]]
        beside = (
            f"{ours['speed'] / its['speed']:7.2f}×{ours['peak'] / its['peak']:7.2f}×" if one != "tallystick" else ""
        )
        spread = f"{min(speeds):,.0f}–{max(speeds):,.0f}"
        label = case if one == "tallystick" else ""
        print(
            f"{label:20}{one:14}{its['speed']:10,.0f}{spread:>16}{its['worked']:11,.0f}"
            f"{its['share']:9.0%}{its['peak'] / 1e6:9,.0f}{beside}",
            flush=True,
        )
        target = (CUDA_TARGETS if asked.cuda else CPU_TARGETS).get(case.split()[1])
        if one == "nanogpt" and target:
            missed |= ours["speed"] < target[0] * its["speed"] or ours["peak"] > target[1] * its["peak"]
    return missed


def _in_a_process(shape: str, case: str, who: str, asked: argparse.Namespace) -> dict[str, float]:
    arguments = [sys.executable, __file__, "--one", shape, case, who, "--steps", str(asked.steps)]
    if asked.nanogpt:
        arguments += ["--nanogpt", asked.nanogpt]
    with tempfile.TemporaryDirectory() as compiled:  # nobody finds what another compiled
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": compiled}
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- one contestant, in its own process -----------------------------------------------------------


def _measured(shape: str, case: str, who: str, *, nanogpt: str | None, steps: int) -> dict[str, float]:
    """Tokens per second, the share of bare products' rate, and bytes at the peak."""
    import torch

    from tallystick.training.memory_peak import Peak

    layers, width, _, batch, sequence = SHAPES[shape]
    precision, mode = case.split()
    device = "cuda" if shape == "cuda" else "cpu"
    dtype = getattr(torch, precision)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    tokens = torch.randint(VOCABULARY, (batch, sequence + 1), device=device)
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    rate = _product_rate(width, batch * sequence, dtype, device)
    makers = {"tallystick": _tallystick, "nanogpt": _nanogpt, "transformers": _transformers}
    peak = Peak(torch.device(device))
    model, optimizer, loss_of = makers[who](shape, device, nanogpt)
    called = torch.compile(model) if mode == "compiled" else model

    def step() -> None:
        context = torch.autocast(device, torch.bfloat16) if precision == "bfloat16" else nullcontext()
        with context:
            loss = loss_of(called, inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(2):
        step()
    times, worked = [], time.process_time()
    for _ in range(steps):
        times.append(_seconds(step, device))
    worked = (time.process_time() - worked) / steps
    flops = 6 * batch * sequence * (12 * layers * width**2 + VOCABULARY * width)
    speed = batch * sequence / statistics.median(times)
    share = speed * flops / (batch * sequence) / rate
    return {"speed": speed, "worked": batch * sequence / worked, "share": share, "peak": float(peak.bytes or 0)}


def _seconds(call: Any, device: str) -> float:
    import torch

    began = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _product_rate(width: int, tokens: int, dtype: Any, device: str) -> float:
    """Multiplications and additions per second of the head's product, best of three."""
    import torch

    x = torch.randn(min(tokens, 512), width, dtype=dtype, device=device)
    weight = torch.randn(VOCABULARY, width, dtype=dtype, device=device)
    best = min(_seconds(lambda: x @ weight.T, device) for _ in range(4))
    return float(2 * x.numel() * VOCABULARY / best)


def _tallystick(shape: str, device: str, nanogpt: str | None) -> tuple[Any, Any, Any]:
    import torch

    from tallystick.models import Decoder
    from tallystick.training.groups import optimizer_groups

    layers, width, heads, _, sequence = SHAPES[shape]
    sizes = {"n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": sequence, "vocab_size": VOCABULARY}
    model = Decoder.of("gpt2", **sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0).to(device)
    optimizer = torch.optim.AdamW(optimizer_groups(model, 0.1).lists(), lr=6e-4, betas=(0.9, 0.95), fused=True)
    return model, optimizer, lambda called, inputs, targets: called(inputs, targets)


def _nanogpt(shape: str, device: str, nanogpt: str | None) -> tuple[Any, Any, Any]:
    sys.path.insert(0, str(Path(nanogpt or ".").resolve()))
    from model import GPT, GPTConfig  # the clone's

    layers, width, heads, _, sequence = SHAPES[shape]
    model = GPT(GPTConfig(sequence, VOCABULARY, layers, heads, width, dropout=0.0, bias=True)).to(device)
    optimizer = model.configure_optimizers(0.1, 6e-4, (0.9, 0.95), device)
    return model, optimizer, lambda called, inputs, targets: called(inputs, targets)[1]


def _transformers(shape: str, device: str, nanogpt: str | None) -> tuple[Any, Any, Any]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    layers, width, heads, _, sequence = SHAPES[shape]
    config = GPT2Config(
        n_layer=layers, n_embd=width, n_head=heads, n_positions=sequence, vocab_size=VOCABULARY,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).to(device)
    groups = [
        {"params": [one for one in model.parameters() if one.ndim >= 2], "weight_decay": 0.1},
        {"params": [one for one in model.parameters() if one.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=device == "cuda")
    cross_entropy = torch.nn.functional.cross_entropy
    return (
        model,
        optimizer,
        lambda called, inputs, targets: cross_entropy(called(inputs).logits.flatten(0, 1).float(), targets.flatten()),
    )


if __name__ == "__main__":
    sys.exit(main())
