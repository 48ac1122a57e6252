"""How much memory loading a decoder takes, as a share of its weights, beside transformers'
`from_pretrained`.

    python benchmarks/decoder_memory.py

Checkpoints of some 300 MB with random weights, each loaded by a process of its own after everything
is imported. The peak is the kernel's (VmHWM, which starts anew before the load), less what was
there before; pages of mapped files are in it once they are touched. The second figure is the same
with every weight touched, as a forward pass does. Linux alone can say. Exits with 1 where
tallystick's peak passes the target.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = 1.2

LLAMA = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
    "num_attention_heads": 16, "vocab_size": 32000, "tie_word_embeddings": True,
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_layer": 6}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {  # config, dtype stored, dtype loaded
    "bfloat16 as it is": (LLAMA, "bfloat16", "bfloat16"),
    "float32 to bfloat16": ({**LLAMA, "num_hidden_layers": 3}, "float32", "bfloat16"),
    "GPT-2, transposed": (GPT2, "float32", "float32"),
    "GPT-2, transposed to bfloat16": (GPT2, "float32", "bfloat16"),
}

LOAD = """
import sys
from pathlib import Path
import torch
who, folder, dtype = sys.argv[1:]
if who == "tallystick":
    from tallystick.models import load_pretrained
    load = lambda: load_pretrained(folder, dtype=dtype)
else:
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, config.architectures[0])
    load = lambda: kind.from_pretrained(folder, dtype=getattr(torch, dtype))

def kilobytes(key):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))

def peak():
    return (kilobytes("VmHWM:") - before) * 1024 / weights

before = kilobytes("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")
model = load()
weights = sum(one.nbytes for one in model.parameters())
loaded = peak()
for one in model.parameters():
    one.sum()
print(weights, loaded, peak())
"""


def main() -> int:
    """Print the table; 1 where tallystick misses the target."""
    import torch

    from tallystick.models import Decoder, save_pretrained

    missed = 0
    print(f"{'':32}{'MB':>6}  {'tallystick':>20}  {'transformers':>20}")
    print(f"{'':38}  {'loaded':>10}{'touched':>10}  {'loaded':>10}{'touched':>10}")
    with tempfile.TemporaryDirectory() as scratch:
        for name, (config, stored, loaded) in CASES.items():
            folder = Path(scratch) / name.replace(" ", "-")
            save_pretrained(Decoder.of(config).to(dtype=getattr(torch, stored)), folder)
            ours, theirs = (_measured(who, folder, loaded) for who in ("tallystick", "transformers"))
            cells = "  ".join(f"{one[1]:10.2f}{one[2]:10.2f}" for one in (ours, theirs))
            print(f"{name:32}{ours[0] / 1e6:6.0f}  {cells}")
            missed |= max(ours[1:]) > TARGET
    print(f"target: {TARGET} times the weights")
    return int(missed)


def _measured(who: str, folder: Path, dtype: str) -> tuple[float, ...]:
    """Bytes of the weights, then the peaks as shares of them."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD, who, str(folder), dtype], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return tuple(map(float, done.stdout.split()))


if __name__ == "__main__":
    sys.exit(main())
