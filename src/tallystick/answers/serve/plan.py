"""The plan of an engine: what it holds after its start, what it logs, what would help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tallystick.answers.devices import Device
from tallystick.answers.serve.speed import Speed
from tallystick.core.display import Displayed


class Change(NamedTuple):
    """One option set to another value, and what the engine then holds.

    >>> import tallystick
    >>> answer = tallystick.serve("llama-3-70b", engine="vllm", device="h100")
    >>> [change.flags for change in answer.changes]
    ['--tensor-parallel-size 2', '--pipeline-parallel-size 2', '--cpu-offload-gb 66']
    """

    flags: str  # as the engine's command line takes them
    kv_cache_tokens: int
    max_concurrency: float


class Explained(NamedTuple):
    """A line of the log, how its number is computed, and where the rule is from.

    >>> import tallystick
    >>> answer = tallystick.serve("gpt2", engine="vllm", device="t4")
    >>> answer.explained[0].line, answer.explained[0].source
    ('Model loading took 0.23 GiB memory', 'vllm/v1/worker/gpu_worker.py')
    """

    line: str
    formula: str
    source: str


@dataclass(frozen=True, repr=False)
class Serve(Displayed):
    """What one engine holds on one device after its start. All sizes are in bytes.

    >>> import tallystick
    >>> answer = tallystick.serve("llama-3.1-8b", engine="vllm", device="h100", max_model_len=8192)
    >>> answer.starts, answer.lines[0]
    (True, 'Model loading took 14.99 GiB memory')
    """

    source: str
    engine: str
    engine_version: str
    device: Device
    options: dict[str, Any]  # as given or chosen by the engine, by the names of `tallystick.serve`
    weights_bytes: int  # of the first device, as the engine loads them
    activations_bytes: int  # the peak that the engine measures or reserves
    other_bytes: int  # outside of the engine's allocator
    kv_cache_bytes: int  # of the pool; negative if nothing is left for it
    kv_cache_bytes_per_token: int
    kv_cache_tokens: int  # as the engine counts them
    max_concurrency: float  # requests of `max_model_len` tokens
    starts: bool
    limits: tuple[str, ...]
    lines: tuple[str, ...]  # as the engine logs them
    explained: tuple[Explained, ...]
    longest: int  # tokens of the longest request that the pool holds
    requests: int | None  # of `input_tokens` and `output_tokens` at the same time; None if not given
    changes: tuple[Change, ...]  # that would help, each alone
    notes: tuple[str, ...]
    speed: Speed | None = None  # bounds; None if it does not start, or the device's rates are not known
    draft_bytes: int = 0  # of speculative decoding, in `weights_bytes`
    adapters_bytes: int = 0  # slots for LoRA adapters
    experts_bytes: int = 0  # routed experts, in `weights_bytes`
    host_bytes: int = 0  # weights and KV cache of llama.cpp in the host's memory

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick serve``. Keys are a contract: added, never renamed."""
        return {
            "source": self.source,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "device": self.device._asdict(),
            "options": dict(self.options),
            "weights_bytes": self.weights_bytes,
            "activations_bytes": self.activations_bytes,
            "other_bytes": self.other_bytes,
            "kv_cache_bytes": self.kv_cache_bytes,
            "kv_cache_bytes_per_token": self.kv_cache_bytes_per_token,
            "kv_cache_tokens": self.kv_cache_tokens,
            "max_concurrency": self.max_concurrency,
            "starts": self.starts,
            "limits": list(self.limits),
            "lines": list(self.lines),
            "explained": [one._asdict() for one in self.explained],
            "longest": self.longest,
            "requests": self.requests,
            "changes": [one._asdict() for one in self.changes],
            "notes": list(self.notes),
            "speed": None if self.speed is None else self.speed.to_dict(),
            "draft_bytes": self.draft_bytes,
            "adapters_bytes": self.adapters_bytes,
            "experts_bytes": self.experts_bytes,
            "host_bytes": self.host_bytes,
        }
