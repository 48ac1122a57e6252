"""How fast a decoder writes, beside transformers, nanoGPT's method and the memory; and GPT-2's
logits at its real sizes.

    python benchmarks/generation.py            # GPT-2 XL stands in memory twice: 12.5 GB
    python benchmarks/generation.py --cuda     # the speed alone, on a CUDA device
    python benchmarks/generation.py --only speed | parity

Greedy text at the shape of GPT-2 124M, batch 1, random weights, the same for all. The contestants
take turns, and a row is the median of its rounds. A token takes every weight once, so the bound is
what a bare matrix-vector product gets out of the memory, over a matrix as large as all weights that
a token takes; beside it, what it gets out of the decoder's own matrices, one after the other, and
nothing between them. Which kernel reads bfloat16 weights fastest is up to the processor, whose name
stands above the tables: figures of one machine are no other's. Exits with 1 where a target is
missed.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn.functional import linear

from tallystick.models import Decoder
from tallystick.models.generation import generate
from tallystick.models.layers.kernels import kernel_for

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from decoders import ours

ROUNDS, PROMPT, TOKENS, RECOMPUTED, PRODUCTS = 7, 16, 96, 12, 10
AHEAD = {"float32": 1.0, "bfloat16": 1.0}  # of transformers, in tokens/s, on any processor
SHARE = 0.8  # of the memory's speed
SIZES = {  # layers, width, heads
    "gpt2": (12, 768, 12),
    "gpt2-medium": (24, 1024, 16),
    "gpt2-large": (36, 1280, 20),
    "gpt2-xl": (48, 1600, 25),
}
ABSOLUTE, RELATIVE = 1e-4, 1e-5


def speed(device: str) -> bool:
    """A table for each dtype; whether all targets are met."""
    met = True
    print(f"{processor()}, {torch.backends.cpu.get_cpu_capability()}, PyTorch {torch.__version__}")
    for name, ahead in AHEAD.items():
        model = _gpt2("gpt2", getattr(torch, name))
        decoder = ours(model).to(dtype=getattr(torch, name), device=device)
        model.to(device)
        prompt = torch.randint(decoder.config.vocab_size, (PROMPT,)).tolist()
        weights = sum(one.nbytes for key, one in decoder.named_parameters() if key != "positions.weight")
        bare, own = _products(weights, decoder), {"torch.mv, its own matrices": partial(_own_products, decoder)}
        tasks = {
            "tallystick": partial(_ours, decoder, prompt),
            "tallystick, compiled": partial(_ours, decoder, prompt, compiled=True),
            "transformers": partial(_theirs, model, prompt),
            "nanoGPT's method": partial(_recomputed, decoder, prompt),
        }
        if name == "float32" and _ours(decoder, prompt) != _theirs(model, prompt):
            raise SystemExit("tallystick and transformers write different tokens")
        seconds = _by_turns({**tasks, **bare, **own}, device)
        bound = weights / min(seconds[key] for key in bare)
        if name == "bfloat16" and device == "cpu":
            print(f"\na lone token is multiplied by {kernel_for(decoder.embedding.weight).__name__.strip('_')}")
        print(f"\n{name} on {device}, {torch.get_num_threads()} threads, {weights / 1e6:.0f} MB of weights per token")
        print(f"{'':27}{'tokens/s':>10}{'GB/s':>8}{'of the bound':>14}")
        for key in tasks:
            each = weights / seconds[key]
            print(f"{key:27}{1 / seconds[key]:10.1f}{each / 1e9:8.1f}{each / bound:14.0%}")
        for key in (*bare, *own):
            print(f"{key:27}{'':7}{weights / seconds[key] / 1e9:8.1f}{weights / seconds[key] / bound:14.0%}")
        fastest = min(seconds[key] for key in tasks if key.startswith("tallystick"))
        ratio, share = seconds["transformers"] / fastest, weights / fastest / bound
        met &= ratio >= ahead and share > SHARE
        print(
            f"{ratio:.2f} times transformers (target {ahead}), {share:.0%} of the bound (target {SHARE:.0%})",
            flush=True,
        )
    return met


def processor() -> str:
    """The processor's name, and whether it has the units that multiply bfloat16 matrices."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return platform.processor() or platform.machine()
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    units = [unit for unit in ("amx_bf16", "avx512_bf16") if unit in said.get("flags", "").split()]
    return f"{said.get('model name', platform.machine())} with {' and '.join(units) or 'no bfloat16 units'}"


def _gpt2(size: str, dtype: torch.dtype) -> Any:
    """A GPT-2 of transformers with random weights, as the library builds it."""
    layers, width, heads = SIZES[size]
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=heads)
    return transformers.GPT2LMHeadModel(config).to(dtype).eval()


def _ours(decoder: Decoder, prompt: list[int], *, compiled: bool = False) -> list[int]:
    return generate(decoder, [prompt], tokens=TOKENS, compiled=compiled)[0]


@torch.inference_mode()
def _theirs(model: Any, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt], device=model.device)
    written = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        do_sample=False,
        pad_token_id=0,
    )
    return list(written[0, len(prompt) :].tolist())


@torch.inference_mode()
def _recomputed(decoder: Decoder, prompt: list[int]) -> list[int]:
    """As nanoGPT writes, which keeps nothing: for every token the whole text again."""
    ids = torch.tensor([prompt], device=decoder.embedding.weight.device)
    for _ in range(RECOMPUTED):
        ids = torch.cat((ids, decoder(ids, last=True).argmax(-1)), dim=1)
    return list(ids[0, len(prompt) :].tolist())


def _products(weights: int, decoder: Decoder) -> dict[str, Callable[[], list[Any]]]:
    """Ways to multiply a matrix of so many bytes, as wide as the decoder, by a vector."""
    like, width = decoder.embedding.weight.detach(), decoder.config.width
    matrix = torch.randn(weights // like.element_size() // width, width).to(like)
    vector = torch.randn(width).to(like)
    ways = {
        "a bare torch.mv": partial(torch.mv, matrix, vector),
        "a bare F.linear": partial(linear, vector[None], matrix),
    }
    return {key: lambda way=way: [way() for _ in range(PRODUCTS)] for key, way in ways.items()}


@torch.inference_mode()
def _own_products(decoder: Decoder) -> list[Any]:
    """Every matrix that a token takes by a vector; as many products as one token has."""
    layers = [module.weight for module in decoder.modules() if isinstance(module, nn.Linear)]
    vectors = {one.shape[1]: one.new_ones(one.shape[1]) for one in layers}
    for _ in range(PRODUCTS):
        for one in layers:
            torch.mv(one, vectors[one.shape[1]])
    return [None] * PRODUCTS


def _by_turns(tasks: Mapping[str, Callable[[], list[Any]]], device: str) -> dict[str, float]:
    """Seconds for each thing that a task returns, medians of the rounds; a round before them warms
    up.
    """
    rounds: dict[str, list[float]] = {key: [] for key in tasks}
    for number in range(ROUNDS + 1):
        for key, task in tasks.items():
            _wait(device)
            start = time.perf_counter()
            done = len(task())
            _wait(device)
            if number:
                rounds[key].append((time.perf_counter() - start) / done)
    return {key: statistics.median(times) for key, times in rounds.items()}


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@torch.inference_mode()
def parity() -> bool:
    """Logits at GPT-2's four sizes beside transformers' in float32 with written-out attention;
    whether all are near.
    """
    near = True
    print(f"\n{'logits':16}{'parameters':>16}{'absolute':>12}{'relative':>12}")
    for size in SIZES:
        model = _gpt2(size, torch.float32)
        model.set_attn_implementation("eager")
        decoder = ours(model)
        tokens = torch.randint(decoder.config.vocab_size, (1, 32))
        expected = model(tokens).logits
        absolute = (decoder(tokens) - expected).abs().max().item()
        relative = absolute / expected.abs().max().item()
        near &= absolute <= ABSOLUTE and relative <= RELATIVE
        count = sum(one.numel() for one in decoder.parameters())
        print(f"{size:16}{count:16,}{absolute:12.1e}{relative:12.1e}", flush=True)
        del model, decoder  # before the next, larger ones are made
    print(f"targets: {ABSOLUTE:.0e} and {RELATIVE:.0e}, as a share of the largest logit")
    return near


def main() -> int:
    """Print the tables; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--only", choices=("speed", "parity"))
    asked = parser.parse_args()
    transformers.logging.set_verbosity_error()
    met = asked.only == "parity" or speed("cuda" if asked.cuda else "cpu")
    if not asked.cuda and asked.only != "speed":
        met &= parity()
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
