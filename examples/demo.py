"""What `make demo` shows: GPT-2 counted and explained, then as a checkpoint, then as a live module
with a new head. What other libraries say on standard error is shown only if a command fails.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parent / ".demo" / "gpt2"


def run(*arguments: str) -> None:
    """Run one command as a user would, and show it."""
    print("\n$ tallystick", *arguments, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *arguments], cwd=HERE, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        sys.stderr.buffer.write(done.stderr)
        sys.exit(done.returncode)


def write_checkpoint(folder: Path) -> None:
    """GPT-2 as published: no `transformer.` before its names, causal masks stored, no head; zeros
    for weights.

    The zeros are a hole in the file, so that its 548 MB take a few kilobytes of disk.
    """
    d, layers, tensors = 768, 12, {"wte.weight": [50257, 768], "wpe.weight": [1024, 768]}
    for layer in range(layers):
        shapes = {
            "ln_1.weight": [d],
            "ln_1.bias": [d],
            "attn.bias": [1, 1, 1024, 1024],
            "attn.c_attn.weight": [d, 3 * d],
            "attn.c_attn.bias": [3 * d],
            "attn.c_proj.weight": [d, d],
            "attn.c_proj.bias": [d],
            "ln_2.weight": [d],
            "ln_2.bias": [d],
            "mlp.c_fc.weight": [d, 4 * d],
            "mlp.c_fc.bias": [4 * d],
            "mlp.c_proj.weight": [4 * d, d],
            "mlp.c_proj.bias": [d],
        }
        tensors |= {f"h.{layer}.{name}": shape for name, shape in shapes.items()}
    tensors |= {"ln_f.weight": [d], "ln_f.bias": [d]}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors.items():
        start, size = end, 4
        for length in shape:
            size *= length
        end += size
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}))


NEXT = """
Try next:
  cd examples; . ../.venv/bin/activate
  tallystick compare gpt2 surgery:replaced_head       why is mine larger?
  tallystick ties surgery:replaced_head               is my tie still there?
  tallystick reconcile gpt2 163M                      which way of counting gives this number?
  tallystick fit llama-3-8b --device rtx4090          does it fit on this GPU?
  tallystick check gpt2_by_hand.md --against gpt2     is my derivation right?
"""


def main() -> None:
    """The three acts."""
    run("count", "gpt2")
    run("formula", "gpt2", "--steps")
    write_checkpoint(FOLDER)
    run("count", os.path.relpath(FOLDER, HERE))
    run("count", "surgery:replaced_head")
    print(NEXT)


if __name__ == "__main__":
    main()
