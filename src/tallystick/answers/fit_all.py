"""Test on which devices, and in which dtypes, a model fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from tallystick.answers.devices import DEVICES, Device
from tallystick.answers.fit import MOST, largest
from tallystick.answers.memory.memory import memory
from tallystick.answers.memory.number_formats import format_named
from tallystick.answers.workload import positions
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger

# Usual dtypes of weights by mode; "lora" is training with frozen weights.
USUAL = {
    "inference": ("bfloat16", "int8", "int4"),
    "training": ("float32", "bfloat16"),
    "lora": ("bfloat16", "int8", "nf4"),
}


@dataclass(frozen=True)
class Cell:
    """A model in one dtype on one device.

    >>> from tallystick import fit_all
    >>> fit_all("llama-3-8b", "bf16").devices[0].fits
    False
    """

    device: str
    memory: int  # bytes of the device
    dtype: str
    fits: bool  # with the requested batch and sequence
    total_bytes: int  # of that request
    largest_batch: int | None  # at the requested sequence; 0 if none fits, None if memory is not the limit
    longest_sequence: int | None  # at the requested batch; 0 and None as for largest_batch


@dataclass(frozen=True, repr=False)
class FitAll(Displayed):
    """A model on all devices: one cell per device and dtype, the smallest device first.

    >>> from tallystick import fit_all
    >>> fit_all("llama-3-8b").dtypes
    ('bfloat16', 'int8', 'int4')
    """

    source: str
    mode: str
    batch: int
    sequence: int
    dtypes: tuple[str, ...]
    devices: tuple[Cell, ...]  # one of each device and dtype, the smallest device first
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the request fits on any device."""
        return any(cell.fits for cell in self.devices)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick fit`` without a device. Keys are added, never renamed."""
        return {
            "source": self.source,
            "mode": self.mode,
            "batch": self.batch,
            "sequence": self.sequence,
            "dtypes": list(self.dtypes),
            "fits": self.fits,
            "devices": [asdict(cell) for cell in self.devices],
            "notes": list(self.notes),
        }


def fit_all(
    ledger: Ledger, dtypes: Sequence[str] = (), devices: Iterable[Device] | None = None, **options: Any
) -> FitAll:
    """Find where a model fits: for each device and dtype, the largest batch and longest sequence.

    Args:
        ledger: the model.
        dtypes: of the weights; () takes the usual ones of the mode.
        devices: by default all that are known by name.
        options: other options of `memory`.

    Raises:
        BadInput: as `memory` does.
    """
    mode = options.get("mode", "inference")
    usual = USUAL.get("lora" if options.get("lora") is not None and mode == "training" else mode, ())
    names = tuple(dict.fromkeys(format_named(name) for name in dtypes)) or usual or USUAL["inference"]
    known = sorted(DEVICES.values() if devices is None else devices, key=lambda device: device.room)
    found = {name: _on_each(ledger, known, {**options, "dtype": name}) for name in names}
    asked = memory(ledger, **{**options, "dtype": names[0]})
    return FitAll(
        ledger.source,
        asked.mode,
        asked.batch,
        asked.sequence,
        names,
        tuple(found[name][place] for place in range(len(known)) for name in names),
        asked.notes,
    )


def _on_each(ledger: Ledger, devices: Sequence[Device], options: dict[str, Any]) -> list[Cell]:
    @cache
    def total(option: str, value: int) -> int:
        return memory(ledger, **{**options, option: value}).total_bytes

    asked = memory(ledger, **options)
    most = {"batch": MOST, "sequence": positions(ledger) or MOST}

    def limit(option: str, room: int) -> int | None:
        return largest(lambda value: total(option, value), room, most[option])

    return [
        Cell(
            device.name,
            device.memory,
            options["dtype"],
            asked.total_bytes <= device.room,
            asked.total_bytes,
            limit("batch", device.room),
            limit("sequence", device.room),
        )
        for device in devices
    ]
