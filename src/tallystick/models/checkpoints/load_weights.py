"""Fill a decoder with stored tensors: match names and shapes, then map or copy values.

No values are read before all names, shapes and dtypes fit. A tensor with the decoder's dtype and
layout stays mapped to its file. Others are copied some rows at a time, so that a model is hardly
ever in memory twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tallystick.errors import BadInput, quoted
from tallystick.models.checkpoints.conversion import Taken, pour, stored_by, take, viewed
from tallystick.models.checkpoints.lazy_tensors import Held
from tallystick.models.checkpoints.names import Slice, Stored
from tallystick.models.config import DecoderConfig
from tallystick.models.decoder import Decoder
from tallystick.models.families import changed
from tallystick.sources.roles.from_names import is_buffer

_EMBEDDING, _HEAD = Slice("embedding.weight", None), Slice("head.weight", None)


def assembled(
    config: DecoderConfig,
    held: Mapping[str, Held],
    *,
    where: str,
    tie: bool | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    check_finite: bool = False,
) -> Decoder:
    """Return the decoder of a config with stored weights, in evaluation mode.

    Args:
        config: the checkpoint's config.
        held: the tensors, by the family's names.
        where: what the user named, for messages.
        tie: whether to tie the head to the embedding; None follows the config, if the
            tensors agree with it.
        dtype: dtype of the decoder; None keeps the tensors'.
        device: device of the decoder.
        check_finite: whether to refuse NaN and infinity.

    Raises:
        BadInput: with the name of every tensor that is missing, unexpected, of another shape
            or not finite.
    """
    decoder = _unfilled(config)
    layout = stored_by(decoder)
    held = _fitting(layout, held, decoder, where)
    config, held = _with_head(config, layout, held, where, tie)
    if config != decoder.config:
        decoder = _unfilled(config)
    dtype = _dtype_of(held, where, dtype)
    if check_finite:
        _refuse_unfinite(held, where)
    decoder.load_state_dict(_filled(layout, held, decoder, dtype, torch.device(device)), assign=True)
    decoder.eval()
    return decoder


class _NothingDrawn(TorchFunctionMode):
    """A mode without initialisation, which on the meta device only imports half the compiler."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return None if getattr(func, "__module__", "") == nn.init.__name__ else func(*args, **(kwargs or {}))


def _unfilled(config: DecoderConfig) -> Decoder:
    with torch.device("meta"), _NothingDrawn():
        return Decoder(config)


def _fitting(layout: Mapping[str, Stored], held: Mapping[str, Held], decoder: Decoder, where: str) -> dict[str, Held]:
    """Return the tensors that the decoder takes; raise one BadInput for all that do not fit.

    The head may be missing, or the embedding if there is a head: `_with_head` checks the tie.
    """
    done: Taken = {}
    # In the order of the layout: the first of two names for one tensor is taken.
    taken = {name: held[name] for name, one in layout.items() if name in held and take(one, done)}
    covered = {part for name in taken for part in layout[name].parts}
    unexpected = [name for name, one in held.items() if name not in taken and not is_buffer(name, one.shape)]
    misshaped = [
        f"{name} {one.shape}, but {layout[name].shape} in the config"
        for name, one in taken.items()
        if one.shape != layout[name].shape
    ]
    excused = {_HEAD, _EMBEDDING} if not covered.isdisjoint({_HEAD, _EMBEDDING}) else {_HEAD}
    missing = _missing(layout, decoder, covered | excused, roots={name.split(".", 1)[0] for name in taken})
    wrong = {"missing": missing, "unexpected": unexpected, "with another shape": misshaped}
    if any(wrong.values()):
        said = "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names)
        raise BadInput(f"{where} does not match its config: {said}", code="mismatch")
    return taken


def _missing(layout: Mapping[str, Stored], decoder: Decoder, covered: set[Slice], roots: set[str]) -> Iterable[str]:
    """Return the missing tensors' names, in the naming style that the file uses."""
    names: dict[Slice, list[str]] = {}
    for name, stored in layout.items():
        for part in stored.parts:
            names.setdefault(part, []).append(name)
    absent = []
    for ours, tensor in decoder.state_dict().items():
        whole = Slice(ours, None)
        each = [part for part in (Slice(ours, place) for place in range(len(tensor))) if part in names]
        if whole in covered or (each and covered.issuperset(each)):
            continue
        absent += [part for part in each if part not in covered] if whole not in names or covered & {*each} else [whole]
    return dict.fromkeys(max(names[part], key=lambda name: name.split(".", 1)[0] in roots) for part in absent)


def _with_head(
    config: DecoderConfig, layout: Mapping[str, Stored], held: dict[str, Held], where: str, tie: bool | None
) -> tuple[DecoderConfig, dict[str, Held]]:
    """Return the config with the tie decided, and the tensors with or without a separate head."""
    head = next((name for name in held if layout[name].parts == (_HEAD,)), None)
    table = next((name for name in held if layout[name].parts == (_EMBEDDING,)), None)
    tied = config.tied if tie is None else tie
    names = {part: name for name, stored in reversed([*layout.items()]) for part in stored.parts}
    if not tied and tie is None and (head is None or table is None):
        absent = names[_HEAD if head is None else _EMBEDDING]
        raise BadInput(
            f"{where} holds no {absent}, and its config does not tie the two: pass tie=True if they are tied",
            code="incomplete",
        )
    if tied and tie is None and head and table and not _equal(held[head], held[table]):
        raise BadInput(
            f"the config of {where} ties {head} to {table}, but they hold different values: tie=False keeps"
            " both, tie=True drops the head",
            code="mismatch",
        )
    table_held = held[table] if table else held[head or ""]
    head_held = held[head] if head else table_held
    rest = {name: one for name, one in held.items() if name not in (head, table)}
    weights = {table or names[_EMBEDDING]: table_held} | ({} if tied else {head or names[_HEAD]: head_held})
    if tied != config.tied:
        config = changed(config, tied=tied)
    return config, {**weights, **rest}


def _equal(one: Held, other: Held) -> bool:
    """Return whether two tensors hold the same bits."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return all(
        pair[0] is not None
        and pair[1] is not None
        and torch.equal(pair[0][1].view(torch.uint8), pair[1][1].view(torch.uint8))
        for pair in zip_longest(one.blocks(), other.blocks())
    )


def _dtype_of(held: Mapping[str, Held], where: str, dtype: torch.dtype | None) -> torch.dtype:
    packed = [name for name, one in held.items() if not one.dtype.is_floating_point]
    if packed:
        raise BadInput(
            f"{where} stores {', '.join(packed)} as {_word(held[packed[0]].dtype)}: quantised weights are not"
            " supported; load the original model",
            code="unsupported",
        )
    kinds: dict[torch.dtype, str] = {}
    for name, one in held.items():
        kinds.setdefault(one.dtype, name)
    if dtype is None and len(kinds) > 1:
        mix = " and ".join(f"{_word(kind)} ({name})" for kind, name in kinds.items())
        raise BadInput(f"{where} mixes {mix}: choose the decoder's dtype", code="ambiguous")
    return dtype or next(iter(kinds))


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _refuse_unfinite(held: Mapping[str, Held], where: str) -> None:
    bad = [
        quoted(name)
        for name, one in held.items()
        if not all(torch.isfinite(rows.float()).all() for _, rows in one.blocks())
    ]
    if bad:
        raise BadInput(f"{where} holds NaN or infinity in {', '.join(bad)}", code="malformed")


def _filled(
    layout: Mapping[str, Stored], held: Mapping[str, Held], decoder: Decoder, dtype: torch.dtype, device: torch.device
) -> dict[str, Tensor]:
    """Return values for each of the decoder's tensors."""
    ours = decoder.state_dict()
    values: dict[str, Tensor] = {}
    for name, one in held.items():
        as_it_is = one.dtype == dtype and device.type == "cpu"
        views = viewed(layout[name], one.whole(), ours) if as_it_is else None
        if views is not None:
            values.update(views)
            continue
        for part in layout[name].parts:
            if part.ours not in values:
                values[part.ours] = torch.empty(ours[part.ours].shape, dtype=dtype, device=device)
        for start, rows in one.blocks():
            pour(layout[name], rows, values, start)
    if decoder.config.tied:
        values[_HEAD.ours] = values[_EMBEDDING.ours]
    elif values[_HEAD.ours].data_ptr() == values[_EMBEDDING.ours].data_ptr():  # both from one stored tensor, but untied
        values[_HEAD.ours] = values[_EMBEDDING.ours].clone()
    return values
