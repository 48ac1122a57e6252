"""Draw a treemap or an icicle of a ledger's tensors, by role or by layer.

A tied tensor is drawn once, where it is counted, with a mark. Its other names are listed below with
the same mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tallystick.core.entries import Entry, Tie
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import layer_of
from tallystick.errors import BadInput
from tallystick.report.charts.svg import INK, LETTER, box, cut, picture, words
from tallystick.report.charts.tiles import Place, in_a_row, in_rows, squarified
from tallystick.report.numbers import exact, percent, rough

LAYOUTS = ("treemap", "icicle")
MOST_TENSORS = 4000  # tensors drawn one by one; above that, all layers of a stack are one tile
MOST_TIES = 6  # ties that get a mark
SMALLEST = 2  # pixels per side; a smaller tile is not drawn, and shows its parent's colour
HEADING, LINE, MARGIN, PADDING = 17, 22, 1.5, 3


class Tile(NamedTuple):
    """A tensor, or a group of tensors."""

    name: str
    role: str
    parameters: int
    tooltip: str = ""
    inner: tuple[Tile, ...] = ()
    mark: str = ""


def draw_tensors(ledger: Ledger, *, by: str = "role", layout: str = "treemap", width: int = 960) -> str:
    """Draw a ledger's parameters as SVG.

    Args:
        ledger: the model.
        by: grouping: ``"role"``, ``"layer"``, or ``"tensor"`` for single tensors.
        layout: ``"treemap"``, areas; or ``"icicle"``, one row per level, in print order.
        width: pixels.

    Raises:
        BadInput: for an unknown layout.
    """
    if layout not in LAYOUTS:
        raise BadInput(f"cannot draw {layout!r}: choose {' or '.join(LAYOUTS)}", code="bad-value")
    ties = [tie for tie in ledger.ties if tie.parameters][:MOST_TIES]
    tiles = _tiles(ledger, by, {tie.names[0]: str(place) for place, tie in enumerate(ties, 1)})
    height = max(260, min(520, int(width * 0.62)))
    whole = Place(0, 0, width, height)
    drawn = "".join(_treemap(tiles, whole, 0) if layout == "treemap" else _icicle(ledger, tiles, whole))
    other = [(place, name, tie) for place, tie in enumerate(ties, 1) for name in tie.names[1:]]
    foot = height + 8
    below = "".join(
        _elsewhere(ledger, mark, name, tie, foot + LINE * row, width) for row, (mark, name, tie) in enumerate(other)
    )
    return picture(
        drawn + below,
        width,
        foot + LINE * len(other) if other else height,
        label=f"{ledger.source}: {exact(ledger.total)} parameters by {by}, as {'areas' if layout == 'treemap' else 'lengths'}."
        f" {_spoken(tiles)}. The table below has the same numbers.",
        name=layout,
    )


# -- what is drawn --------------------------------------------------------------------------------


def _tiles(ledger: Ledger, by: str, marks: dict[str, str]) -> tuple[Tile, ...]:
    total = ledger.total or 1
    single = sum(entry.copies for entry in ledger.parameters) <= MOST_TENSORS
    entries = [entry for entry in (ledger.entries if single else ledger.rolled) if not entry.buffer and entry.unique]
    leaves = [(entry, _leaf(entry, total, marks)) for entry in entries]
    if by == "tensor":
        return tuple(leaf for _, leaf in leaves)
    if by == "layer":
        return _grouped([(layer_of(leaf.name), leaf) for _, leaf in leaves], total)
    roles = [role for role in ledger.by("role") if any(entry.role == role for entry, _ in leaves)]
    found = []
    for role in roles:
        inner = _grouped([(layer_of(leaf.name), leaf) for entry, leaf in leaves if entry.role == role], total)
        found.append(_group(role.replace("_", " "), inner, total))
    return tuple(found)


def _leaf(entry: Entry, total: int, marks: dict[str, str]) -> Tile:
    name, parameters = entry.name.replace("{}", "*"), entry.unique * entry.copies
    shape = " × ".join(exact(int(size)) for size in entry.shape) or "a number"
    times = f"{exact(entry.copies)} tensors of " if entry.copies > 1 else ""
    return Tile(
        name,
        entry.role,
        parameters,
        f"{name}: {times}{shape}, {exact(parameters)} parameters ({percent(parameters / total)})",
        mark=marks.get(entry.name, ""),
    )


def _grouped(leaves: list[tuple[str, Tile]], total: int) -> tuple[Tile, ...]:
    groups: dict[str, list[Tile]] = {}
    for name, leaf in leaves:
        groups.setdefault(name, []).append(leaf)
    return tuple(_group(name, tuple(tiles), total) for name, tiles in groups.items())


def _group(name: str, inner: tuple[Tile, ...], total: int) -> Tile:
    """Return some tiles as one; a single tile without inner tiles stays itself."""
    parameters = sum(tile.parameters for tile in inner)
    largest = max(inner, key=lambda tile: tile.parameters)
    tooltip = f"{name}: {exact(parameters)} parameters ({percent(parameters / total)})"
    if len(inner) == 1 and not largest.inner:
        return largest
    return Tile(name, largest.role, parameters, tooltip, inner)


def _spoken(tiles: tuple[Tile, ...]) -> str:
    most = sorted(tiles, key=lambda tile: -tile.parameters)[:8]
    more = f", and {len(tiles) - len(most)} more" if len(tiles) > len(most) else ""
    return ", ".join(f"{tile.name} {exact(tile.parameters)}" for tile in most) + more


# -- how it is drawn ------------------------------------------------------------------------------


def _treemap(tiles: tuple[Tile, ...], place: Place, depth: int) -> Iterator[str]:
    lay_out = in_rows if _has_layers(tiles) else squarified
    for tile, where in zip(tiles, lay_out([tile.parameters for tile in tiles], place), strict=True):
        at = where.inside(MARGIN if depth == 0 else 0.5)
        if min(at.width, at.height) < SMALLEST:
            continue
        yield _tile(tile, at)
        if not tile.inner:
            yield _label(tile, at)
        elif at.height > 2.5 * HEADING and _short(tile.name, at.width - 2 * PADDING):
            yield _label(tile, at)
            yield from _treemap(tile.inner, at.inside(1, top=HEADING), depth + 1)
        else:
            yield from _treemap(tile.inner, at.inside(1), depth + 1)


def _has_layers(tiles: tuple[Tile, ...]) -> bool:
    """Return whether some tiles are numbered layers, which are read in their order."""
    return sum(tile.name.rpartition(".")[2].isdecimal() for tile in tiles) > 1


def _icicle(ledger: Ledger, tiles: tuple[Tile, ...], place: Place) -> Iterator[str]:
    whole = Tile(ledger.source, "norm", ledger.total, f"{ledger.source}: {exact(ledger.total)} parameters")
    head, levels = place._replace(height=HEADING + 3).inside(0.5), _depth(tiles)
    yield _tile(whole, head)
    yield _label(whole, head)
    band = (place.height - HEADING - 3) / levels
    yield from _row(tiles, Place(place.x, HEADING + 3, place.width, band), levels)


def _row(tiles: tuple[Tile, ...], place: Place, levels: int) -> Iterator[str]:
    for tile, where in zip(tiles, in_a_row([tile.parameters for tile in tiles], place), strict=True):
        # A tensor that is its whole group reaches down to the bottom.
        at = where._replace(height=where.height * (1 if tile.inner else levels)).inside(0.5)
        if at.width < 0.3:
            continue
        yield _tile(tile, at)
        yield _label(tile, at)
        yield from _row(tile.inner, where._replace(y=where.y + where.height), levels - 1)


def _depth(tiles: tuple[Tile, ...]) -> int:
    return 1 + max((_depth(tile.inner) for tile in tiles if tile.inner), default=0)


def _tile(tile: Tile, at: Place) -> str:
    if tile.inner:  # lighter than the tiles inside
        return box(tile.role, *at, tile.tooltip, fill_opacity=0.45)
    if tile.mark:
        return box(tile.role, *at, tile.tooltip, stroke=INK, stroke_width=1.5, data_tie=tile.mark)
    return box(tile.role, *at, tile.tooltip)


def _label(tile: Tile, at: Place) -> str:
    """Return the name if it fits, with the count after or below it if that fits too."""
    if at.height < 14:
        return ""
    room, count = at.width - 2 * PADDING, rough(tile.parameters)
    name = _short(f"{tile.mark} ⇄ {tile.name}" if tile.mark else tile.name, room)
    if not name:
        return ""
    lines = words(name, at.x + PADDING, at.y + 13)
    if (len(name) + len(count) + 2) * LETTER < room:
        return lines + words(count, at.x + at.width - PADDING, at.y + 13, text_anchor="end", class_="quiet")
    if not tile.inner and at.height > 30 and len(count) * LETTER < room:
        return lines + words(count, at.x + PADDING, at.y + 28, class_="quiet")
    return lines


def _short(name: str, room: float) -> str:
    """Return the longest of a name's ends that fits: h.0.mlp.c_fc.weight, c_fc.weight, c_fc."""
    parts = name.split(".")
    ends = (parts, parts[-2:], parts[-1:] if parts[-1].isdecimal() else parts[-2:-1])
    fitting = (".".join(end) for end in ends if end and len(".".join(end)) * LETTER <= room)
    return next(fitting, cut(".".join(ends[-1] or parts), room))


def _elsewhere(ledger: Ledger, mark: int, name: str, tie: Tie, y: float, width: int) -> str:
    """Return an empty tile for another name of a shared tensor."""
    role = next((entry.role for entry in ledger.rolled if entry.name == name), "other")
    said = f"{mark} ⇄ {role.replace('_', ' ')}: {name} is {tie.names[0]} ({tie.relation}), counted once there"
    title = f"{said}; {exact(tie.parameters)} parameters are shared"
    return box(
        role, 1, y, width - 2, LINE - 4, title, fill_opacity=0.25, stroke=INK, stroke_dasharray="4 3", data_tie=str(mark)
    ) + words(cut(said, width - 12), 6, y + 13)  # fmt: skip
