"""Plan an engine on every device: where it starts, and the tokens and requests that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tallystick.answers.devices import DEVICES, Device
from tallystick.answers.serve.plan import Serve
from tallystick.answers.serve.serve import serve
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput

RANKS = (1, 2, 4, 8)  # tensor parallel sizes of one machine
_OTHER_RULES = "tpu"  # devices on which no engine's rules here hold


@dataclass(frozen=True)
class OnDevice:
    """An engine's plan on one kind of device, on as few as start. Bytes are of one device.

    >>> import tallystick
    >>> tallystick.fit_engine("llama-3.1-8b", engine="vllm", max_model_len=8192).devices[-1].tp
    1
    """

    device: str
    memory: int  # bytes of the device
    starts: bool  # with the options as asked
    tp: int | None  # fewest tensor parallel ranks that start; None if eight do not
    weights_bytes: int  # this and all below: with `tp` ranks; 0 if it does not start
    kv_cache_bytes: int
    kv_cache_tokens: int
    max_concurrency: float  # requests of `max_model_len` tokens
    requests: int | None  # of `input_tokens` and `output_tokens` at the same time; None if not given
    tokens_per_second: float | None  # that decoding of one request cannot exceed; None if not known
    limit: str  # what bounds the requests, or why it does not start
    gpu_layers: int | None = None  # of llama.cpp on the device, the head among them
    host_bytes: int = 0  # weights and KV cache of llama.cpp in the host's memory


@dataclass(frozen=True, repr=False)
class FitEngine(Displayed):
    """An engine on all devices, the smallest device first.

    >>> import tallystick
    >>> answer = tallystick.fit_engine("llama-3-70b", engine="vllm", max_model_len=8192)
    >>> [one.device for one in answer.devices if one.starts][0]
    'b200'
    """

    source: str
    engine: str
    engine_version: str
    options: dict[str, Any]  # as given
    max_model_len: int  # tokens of the longest request
    devices: tuple[OnDevice, ...]
    notes: tuple[str, ...]

    @property
    def starts(self) -> bool:
        """Whether it starts on any device, with the options as asked."""
        return any(one.starts for one in self.devices)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick fit --engine``. Keys are added, never renamed."""
        return {
            "source": self.source,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "options": dict(self.options),
            "max_model_len": self.max_model_len,
            "starts": self.starts,
            "devices": [asdict(one) for one in self.devices],
            "notes": list(self.notes),
        }


def fit_engine(ledger: Ledger, *, engine: str, devices: Iterable[Device] | None = None, **options: Any) -> FitEngine:
    """Plan an engine on each device, with more tensor parallel ranks where it does not start.

    Args:
        ledger: the model.
        engine: as for `serve`.
        devices: by default all GPUs that are known by name.
        **options: other options of `serve`.

    Raises:
        BadInput: as `serve`.
    """
    cards = [card for name, card in DEVICES.items() if not name.startswith(_OTHER_RULES)]
    known = sorted(cards if devices is None else devices, key=lambda device: device.memory)
    plans = [_plans(ledger, engine, device, options) for device in known]
    first = plans[0][0]
    return FitEngine(
        ledger.source,
        first.engine,
        first.engine_version,
        options,
        int(first.options["max_model_len"]),
        tuple(_on(device, *found) for device, found in zip(known, plans, strict=True)),
        first.notes,
    )


def _plans(ledger: Ledger, engine: str, device: Device, options: dict[str, Any]) -> tuple[Serve, Serve | None]:
    """Return the plan as asked, and the one with the fewest ranks that starts."""
    asked = serve(ledger, engine=engine, device=device, advice=False, **options)
    if asked.starts:
        return asked, asked
    for tp in RANKS:
        if tp > options.get("tp", 1):
            try:
                more = serve(ledger, engine=engine, device=device, advice=False, **{**options, "tp": tp})
            except BadInput:  # llama.cpp has no ranks
                break
            if more.starts:
                return asked, more
    return asked, None


def _on(device: Device, asked: Serve, held: Serve | None) -> OnDevice:
    if held is None:
        return OnDevice(device.name, device.memory, False, None, 0, 0, 0, 0.0, None, None, "; ".join(asked.limits))
    speed = None if held.speed is None else held.speed.decoding[0].tokens_per_second
    return OnDevice(
        device.name,
        device.memory,
        asked.starts,
        int(held.options["tp"]),
        held.weights_bytes,
        held.kv_cache_bytes,
        held.kv_cache_tokens,
        held.max_concurrency,
        held.requests,
        speed,
        "; ".join(asked.limits),
        held.options.get("gpu_layers"),
        held.host_bytes,
    )
