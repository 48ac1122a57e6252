"""How fast: whole processes, from start to exit, with everything in the file cache.

    python benchmarks/speed.py [--runs 5]

1. A config.json: tallystick against a minimal script that has transformers build the model on the
meta device, and
   against accelerate's estimate; a Python that does nothing is there for scale.
2. A safetensors header of 90,000 tensors: tallystick's whole count against `json.loads`, which
checks nothing, and the
   format's own library, which merely lists names and shapes.
3. The same tensors in 1,000 shards with their index. 4. `tallystick ties` on two equal matrices of
1 GB, which it reads to the last byte, against reading the file in order.

All contenders take turns, so that the machine's noise falls on all alike: trust the ratios, not the
seconds. What has a target in seconds is held to those of the processor's work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

# This process stays small and imports none of those that it times: a child's peak memory is never
# below its parent's.

TARGET_RATIO, TARGET_CONFIG_SECONDS = 40, 0.1  # times faster than the meta-device script, and in itself
TARGET_HEADER_SECONDS, TARGET_HEADER_MB = 0.5, 200
HEADER_TENSORS = 90_000
SHARDS, TARGET_SHARDS_SECONDS = 1000, 2
TARGET_TIES_SPEED, TARGET_TIES_MB = 0.5, 100  # as a share of the speed of reading the file in order

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_positions": 1024,
        "n_embd": 768, "n_layer": 12, "n_head": 12,
    },
    "llama-3-8b": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "max_position_embeddings": 8192, "tie_word_embeddings": False,
    },
    "deepseek_v3": {
        "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 129280,
        "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
        "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "tie_word_embeddings": False,
    },
}  # fmt: skip

LIST_HEADER = """
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], framework="np") as file:
    shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}
print(len(shapes))
"""

LOAD_HEADER = """
import json, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
header.pop("__metadata__", None)
print(len(header))
"""

LIST_SHARDS = """
import glob, sys
from safetensors import safe_open
shapes = {}
for path in glob.glob(sys.argv[1] + "/*.safetensors"):
    with safe_open(path, framework="np") as file:
        shapes |= {name: file.get_slice(name).get_shape() for name in file.keys()}
print(len(shapes))
"""

READ_IN_ORDER = """
import sys
total = 0
with open(sys.argv[1], "rb") as file:
    while block := file.read(1 << 20):
        total += len(block)
print(total)
"""

OURS, BARE = "tallystick count", "python -c pass"


@dataclass
class Contender:
    """A command, what its processes took, and what it printed last."""

    name: str
    command: list[str]
    answers: tuple[int, ...] = (0,)  # exit codes with which it answers
    seconds: list[float] = field(default_factory=list)  # by the wall's clock
    processor: list[float] = field(default_factory=list)  # seconds of work: what a busy machine disturbs less
    megabytes: list[float] = field(default_factory=list)
    output: str = ""
    error: str = ""

    def run(self, folder: Path) -> None:
        """Run the command once, as a process of its own, and add to what it took."""
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled modules belong to a warm cache
        with (folder / "out").open("w+b") as out, (folder / "err").open("w+b") as err:
            start = time.perf_counter()
            process = subprocess.Popen(self.command, cwd=folder, env=environment, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)  # the peak memory of this process and of no other
            self.seconds.append(time.perf_counter() - start)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.processor.append(usage.ru_utime + usage.ru_stime)
            self.megabytes.append(usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))
            out.seek(0)
            err.seek(0)
            self.output = out.read().decode().strip()
            messages = err.read().decode(errors="replace").strip().splitlines()
            answered = process.returncode in self.answers
            self.error = "" if answered else (messages or [f"exit {process.returncode}"])[-1]

    @property
    def count(self) -> int | None:
        """The parameters that it printed, for ties those of the first group; None where it failed
        or prints none.
        """
        if self.error or not self.output:
            return None
        if not self.output.startswith("{"):
            return int(self.output)
        answer = json.loads(self.output)
        return answer["totals"]["unique"] if "totals" in answer else answer["groups"][0]["parameters"]


def take_turns(contenders: list[Contender], runs: int, folder: Path) -> None:
    """Once each to warm the file cache, unmeasured, then `runs` rounds of all."""
    for contender in contenders:
        contender.run(folder)
        contender.seconds.clear()
        contender.processor.clear()
        contender.megabytes.clear()
    for _ in range(runs):
        for contender in contenders:
            contender.run(folder)


def tallystick() -> list[str]:
    """The console script beside this Python, or else the module."""
    script = Path(sys.executable).with_name("tallystick")
    return [str(script)] if script.exists() else [sys.executable, "-m", "tallystick"]


def race_configs(runs: int, folder: Path) -> None:
    """The first table."""
    peers = str(Path(__file__).resolve().with_name("peers.py"))
    print(f"{'':13}{'median of ' + str(runs):28}{'seconds':>9}{'x tallystick':>14}{'cpu s':>9}{'peak MB':>9}  count")
    for name, values in CONFIGS.items():
        home = folder / name
        home.mkdir()
        (home / "config.json").write_text(json.dumps(values, indent=2))
        contenders = [
            Contender(OURS, [*tallystick(), "count", str(home / "config.json"), "--format", "json"]),
            Contender("transformers, meta device", [sys.executable, peers, "meta", str(home)]),
            Contender("accelerate's estimate", [sys.executable, peers, "accelerate", str(home)]),
            Contender(BARE, [sys.executable, "-c", "pass"]),
        ]
        take_turns(contenders, runs, folder)
        ours, truth = median(contenders[0].seconds), contenders[1].count
        for contender in contenders:
            print_line(name, contender, ours, truth)
        ratio = median(contenders[1].seconds) / ours
        verdict = met(ratio >= TARGET_RATIO)
        print(f"{'':13}{verdict}: {ratio:.1f}x faster than the meta device, target {TARGET_RATIO}x")
        work = median(contenders[0].processor)
        print(f"{'':13}{met(work < TARGET_CONFIG_SECONDS)}: {work:.3f} s of work, target {TARGET_CONFIG_SECONDS}\n")


def print_line(label: str, contender: Contender, ours: float, truth: int | None) -> None:
    """A contender's line of a table, beside the seconds that tallystick took."""
    taken, work = median(contender.seconds), median(contender.processor)
    print(f"{label:13}{contender.name:28}{taken:9.3f}{taken / ours:13.1f}x{work:9.3f}", end="")
    print(f"{max(contender.megabytes):9.0f}  {remark(contender, truth)}")


def remark(contender: Contender, truth: int | None) -> str:
    """A count and whether it is right, or what went wrong."""
    if contender.error:
        return f"failed: {contender.error[:170]}"
    if contender.count is None or truth is None:
        return ""
    verdict = "right" if contender.count == truth else f"wrong by {contender.count - truth:+,}"
    return f"{contender.count:,}, {verdict}"


def met(target: bool) -> str:
    """A target's verdict."""
    return "met" if target else "MISSED"


def name_of(i: int) -> str:
    """The name of one expert's matrix."""
    layer, expert, matrix = i // 768, i // 3 % 256, ("gate_proj", "up_proj", "down_proj")[i % 3]
    return f"model.layers.{layer}.mlp.experts.{expert}.{matrix}.weight"


def write_sparse_checkpoint(path: Path, tensors: range) -> None:
    """A valid file of these experts' weights: terabytes by its header, its data a hole that takes
    no disk.
    """
    shape, size = (2048, 7168), 2048 * 7168 * 2
    with path.open("wb") as file:  # written as it goes: this process must stay small
        file.write(bytes(8) + b'{"__metadata__":{"format":"pt"}')
        for place, i in enumerate(tensors):
            fields = {"dtype": "BF16", "shape": shape, "data_offsets": [place * size, (place + 1) * size]}
            file.write(f',"{name_of(i)}":{json.dumps(fields, separators=(",", ":"))}'.encode())
        file.write(b"}")
        length = file.tell() - 8
        file.seek(0)
        file.write(length.to_bytes(8, "little"))
        file.truncate(8 + length + len(tensors) * size)


def race_header(runs: int, folder: Path) -> None:
    """The second table."""
    path = folder / "model.safetensors"
    write_sparse_checkpoint(path, range(HEADER_TENSORS))
    contenders = [
        Contender(OURS, [*tallystick(), "count", str(path), "--format", "json"]),
        Contender("json.loads", [sys.executable, "-c", LOAD_HEADER, str(path)]),
        Contender("safe_open, names and shapes", [sys.executable, "-c", LIST_HEADER, str(path)]),
        Contender(BARE, [sys.executable, "-c", "pass"]),
    ]
    take_turns(contenders, runs, folder)
    truth = HEADER_TENSORS * 2048 * 7168
    print(f"a header of {HEADER_TENSORS:,} tensors, {path.stat().st_size / 1e12:.1f} TB by its words")
    seconds, memory = median(contenders[0].seconds), max(contenders[0].megabytes)
    for contender, expected in zip(contenders, (truth, HEADER_TENSORS, HEADER_TENSORS, None), strict=True):
        print_line("", contender, seconds, expected)
    good = median(contenders[0].processor) < TARGET_HEADER_SECONDS and memory < TARGET_HEADER_MB
    print(f"{'':13}{met(good)}: target {TARGET_HEADER_SECONDS} s of work and {TARGET_HEADER_MB} MB\n")


def race_shards(runs: int, folder: Path) -> None:
    """The third table."""
    home = folder / "shards"
    home.mkdir()
    each = HEADER_TENSORS // SHARDS
    with (home / "model.safetensors.index.json").open("w") as index:
        index.write('{"weight_map": {')
        for shard in range(SHARDS):
            name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
            tensors = range(shard * each, (shard + 1) * each)
            write_sparse_checkpoint(home / name, tensors)
            index.write("," * bool(shard) + ",".join(f'"{name_of(i)}":"{name}"' for i in tensors))
        index.write("}}")
    contenders = [
        Contender(OURS, [*tallystick(), "count", str(home), "--format", "json"]),
        Contender("safe_open, names and shapes", [sys.executable, "-c", LIST_SHARDS, str(home)]),
    ]
    take_turns(contenders, runs, folder)
    print(f"the same in {SHARDS:,} shards")
    seconds, memory = median(contenders[0].seconds), max(contenders[0].megabytes)
    for contender, expected in zip(contenders, (HEADER_TENSORS * 2048 * 7168, HEADER_TENSORS), strict=True):
        print_line("", contender, seconds, expected)
    good = median(contenders[0].processor) < TARGET_SHARDS_SECONDS and memory < TARGET_HEADER_MB
    print(f"{'':13}{met(good)}: target {TARGET_SHARDS_SECONDS} s of work and {TARGET_HEADER_MB} MB\n")


def write_duplicate_head(path: Path) -> None:
    """A head stored beside the equal embedding: 1 GB of noise, twice."""
    shape, block = [2**17, 2**12], os.urandom(2**20)
    names = ("model.embed_tokens.weight", "lm_head.weight")
    header = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [i * 2**30, (i + 1) * 2**30]}
        for i, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(2 * 2**10):
            file.write(block)


def race_ties(runs: int, folder: Path) -> None:
    """The fourth table."""
    path = folder / "duplicate.safetensors"
    write_duplicate_head(path)
    ties = [*tallystick(), "ties", str(path), "--format", "json"]
    contenders = [
        Contender("tallystick ties", ties, answers=(1,)),  # a duplicate is a problem
        Contender("reading it in order", [sys.executable, "-c", READ_IN_ORDER, str(path)]),
    ]
    take_turns(contenders, runs, folder)
    print("ties of a 2 GB checkpoint whose head is stored beside the equal embedding")
    seconds, memory = median(contenders[0].seconds), max(contenders[0].megabytes)
    print_line("", contenders[0], seconds, 2**29)
    print_line("", contenders[1], seconds, path.stat().st_size)
    speed = median(contenders[1].seconds) / seconds
    good = speed > TARGET_TIES_SPEED and memory < TARGET_TIES_MB
    print(
        f"{'':13}{met(good)}: {speed:.2f} of the speed of reading in order, target {TARGET_TIES_SPEED} and {TARGET_TIES_MB} MB"
    )


def main() -> None:
    """All four tables."""
    parser = argparse.ArgumentParser(description="How fast tallystick counts, as a whole process, beside others.")
    parser.add_argument("--runs", type=int, default=5, help="processes of each kind, of which the median counts")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        race_configs(runs, Path(folder))
        race_header(runs, Path(folder))
        race_shards(runs, Path(folder))
        race_ties(runs, Path(folder))


if __name__ == "__main__":
    main()
