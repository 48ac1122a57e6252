"""The few figures that stay in sight: parameters, memory, KV cache and FLOPs, and their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from tallystick.answers.compute.compute import Compute
from tallystick.answers.memory.answer import Memory
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.report.numbers import exact, in_bytes, in_flops, in_gigabytes, percent, rough
from tallystick.web import questions
from tallystick.web.request import PageRequest

A = TypeVar("A", Memory, Compute)


@dataclass(frozen=True)
class Figures:
    """The figures of one model and run; None where there is none, or the options forbid it."""

    source: str
    parameters: int
    active: int | None  # None if all are
    memory: int | None  # bytes at the peak
    mode: str
    device: str | None
    room: int | None  # bytes that the device has for tensors
    cache: int | None  # bytes of KV cache for one more token
    flops: int | None  # forward, per token
    training_flops: int | None  # forward and backward, per token


def figures(ledger: Ledger, memory: Memory | None, compute: Compute | None) -> Figures:
    """Return a model's figures.

    Args:
        ledger: the model.
        memory: of its run; None if the run's options are invalid.
        compute: of its run.
    """
    active = ledger.totals["active"]
    device = None if memory is None else memory.device
    return Figures(
        source=ledger.source,
        parameters=ledger.total,
        active=None if active == ledger.total else active,
        memory=None if memory is None else memory.total_bytes,
        mode="" if memory is None else memory.mode,
        device=None if device is None else device.name,
        room=None if device is None else device.room,
        cache=None if memory is None else memory.kv_cache_bytes_per_token,
        flops=None if compute is None else compute.forward_flops // compute.tokens,
        training_flops=None if compute is None else compute.training_flops // compute.tokens,
    )


def strip(asked: PageRequest) -> dict[str, str]:
    """Return the figures of the model as HTML, with their changes against a pinned one."""
    now = _of(asked, questions.memory, questions.compute, asked.ledger())
    if not asked.compares:
        return {"html": drawn(now, None)}
    other = asked.ledger("other", "other_set")
    pinned = _of(
        asked,
        lambda asked: questions.memory_of(other, asked),
        lambda asked: questions.compute_of(other, asked),
        other,
    )
    return {"html": drawn(now, pinned)}


def _of(
    asked: PageRequest,
    memory: Callable[[PageRequest], Memory],
    compute: Callable[[PageRequest], Compute],
    ledger: Ledger,
) -> Figures:
    return figures(ledger, _without_error(lambda: memory(asked)), _without_error(lambda: compute(asked)))


def _without_error(ask: Callable[[], A]) -> A | None:
    """Return an answer; None for options that its own section calls invalid."""
    try:
        return ask()
    except BadInput:
        return None


def drawn(now: Figures, pinned: Figures | None) -> str:
    """Return the figures as a list of terms.

    Args:
        now: of the model that is shown.
        pinned: of another, to say the changes against; None says none.
    """
    return f'<dl class="figures">{"".join(_cells(now, pinned))}</dl>'


def _cells(now: Figures, pinned: Figures | None) -> Iterator[str]:
    def change(name: str, write: Callable[[int], str]) -> str:
        before, after = getattr(pinned, name, None), getattr(now, name)
        if pinned is None or before is None or after is None:
            return ""
        return changed(after - before, before, write, pinned.source)

    some = f"{rough(now.active)} active for one token" if now.active is not None else exact(now.parameters)
    yield _cell("parameters", rough(now.parameters), some, change("parameters", rough))
    if now.memory is not None:
        yield _cell(_where(now), in_gigabytes(now.memory), _free(now), change("memory", in_gigabytes), _meter(now))
    if now.cache is not None:
        yield _cell("KV cache", _short(now.cache), "for each token", change("cache", _short))
    if now.flops is not None and now.training_flops is not None:
        said = f"{in_flops(now.training_flops)} in training"
        yield _cell("FLOPs per token", in_flops(now.flops), said, change("flops", in_flops))


def _cell(name: str, figure: str, said: str, change: str, more: str = "") -> str:
    small = f'<dd class="note">{escape(said)}</dd>' if said else ""
    return f"<div><dt>{escape(name)}</dt><dd class=figure>{escape(figure)}</dd>{change}{more}{small}</div>"


def changed(by: int, before: int, write: Callable[[int], str], source: str) -> str:
    """Return a change with its sign and share, in words for a screen reader too.

    >>> changed(-200, 1000, str, "gpt2")
    '<dd class=change title="against gpt2">−200 (−20.0%)</dd>'
    """
    sign = "−" if by < 0 else "+" if by else "±"
    share = f" ({sign}{percent(abs(by) / before)})" if by and before else ""
    return f'<dd class=change title="against {escape(source)}">{sign}{escape(write(abs(by)))}{share}</dd>'


def _where(now: Figures) -> str:
    return f"{now.mode} on {now.device}" if now.device else f"{now.mode} memory"


def _free(now: Figures) -> str:
    if now.room is None or now.memory is None:
        return "no device chosen"
    left = now.room - now.memory
    if left < 0:
        return f"{in_gigabytes(-left)} too much"
    return f"{in_gigabytes(left)} of {in_gigabytes(now.room)} free"


def _meter(now: Figures) -> str:
    """Return a bar of how much of the device is in use."""
    if now.room is None or now.memory is None:
        return ""
    share = min(now.memory / now.room, 1)
    full = " full" if now.memory > now.room else ""
    return (
        f'<dd aria-hidden="true"><svg class="meter{full}" viewBox="0 0 100 4" preserveAspectRatio="none">'
        f'<rect width="{100 * share:.1f}" height="4"/></svg></dd>'
    )


def _short(number: int) -> str:
    """Return bytes in the decimal unit alone."""
    return in_bytes(number).partition(" (")[0]
