"""Draw an attention to scale: its heads, its latent, and what a position attends to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tallystick.answers.blocks import Part, Piece
from tallystick.core.anatomy import Heads
from tallystick.report.charts.canvas import GROUND, LINE, Canvas, path, rounded
from tallystick.report.charts.rows import HEADER, HIGH, hair, header, place_of, tooltip_of
from tallystick.report.charts.svg import COLOURS, INK, words
from tallystick.report.charts.tiles import Place
from tallystick.report.numbers import exact

WAIST = 0.3  # width of a low-rank projection, as a share of the full one
NARROWEST = 3.0  # pixels of a head that is drawn apart
MAGNIFIED = 240.0  # pixels


class Slice(NamedTuple):
    """A piece, or queries, keys or values of a fused one."""

    name: str
    piece: Piece
    share: float  # of the piece
    heads: int  # 0 if it is not cut into heads
    waist: bool = False


def draw_heads(canvas: Canvas, part: Part, layers: int, total: int) -> None:
    """Draw each projection as wide as all heads: a KV head lies below the queries that share it."""
    header(canvas, part, layers, total, _described(part), room=22 if part.heads else 0)
    if part.heads:
        _mask(canvas, part.heads, part.window)
    slices = list(_slices(part))
    place = place_of(canvas, part.parameters * layers, HIGH)
    for one, where in zip(slices, _stacked(slices, place, canvas.scale * layers), strict=True):
        kind = {"data_heads": str(one.heads)} if one.heads else {"data_latent": "1"} if one.waist else {}
        canvas.box(one.piece.role, where, _tooltip(one, layers), **kind)
        if one.heads > 1 and where.width / one.heads >= NARROWEST:
            _cells(canvas, where, one.heads)
        canvas.named(one.name, where, over=one.piece.role if one.heads > 1 else "")
        canvas.y = where.y + where.height
    heads = max((one.heads for one in slices), default=0)
    if heads and place.width / heads < NARROWEST:
        _enlarged(canvas, slices, place, canvas.y)
    hair(canvas, place)
    canvas.y += 3


def _slices(part: Part) -> Iterator[Slice]:
    """Yield the projections from top to bottom, fused ones as queries, keys and values."""
    heads = part.heads
    for piece in part.pieces:
        if not piece.parameters:
            continue
        if heads is None or len(piece.shape) != 2:
            yield Slice(piece.name, piece, 1, 0)
            continue
        queries, keys = int(heads.queries), int(heads.keys)
        q, k, v = queries * int(heads.size), keys * int(heads.size), keys * int(heads.value_size)
        space = _space(piece, part)
        if space == q + k + v:
            for name, width, of in (("queries", q, queries), ("keys", k, keys), ("values", v, keys)):
                yield Slice(f"{piece.name}: {name}", piece, width / space, of)
        elif space == k + v and "kv" in piece.name.lower():
            yield Slice(f"{piece.name}: keys", piece, k / space, keys)
            yield Slice(f"{piece.name}: values", piece, v / space, keys)
        elif space % q == 0 or space == queries * int(heads.value_size):
            yield Slice(piece.name, piece, 1, queries)
        elif space in (k, v):
            yield Slice(piece.name, piece, 1, keys)
        elif (
            heads.latent is not None and max(piece.shape) == space and space % queries == 0 and not _reads(piece, part)
        ):
            yield Slice(piece.name, piece, 1, queries)
        else:
            yield Slice(piece.name, piece, 1, 0, waist=heads.latent is not None)


def _reads(piece: Piece, part: Part) -> bool:
    """Return whether a projection reads or writes the token itself, by a width that most have."""
    return _width(part) in piece.shape


def _width(part: Part) -> int:
    """Return the token's width: the size that most of the projections have."""
    sizes = [size for piece in part.pieces if len(piece.shape) == 2 for size in set(piece.shape)]
    return max(sizes, key=sizes.count)


def _space(piece: Piece, part: Part) -> int:
    """Return a projection's size that is not the token's width."""
    one, other = piece.shape
    width = _width(part)
    return other if one == width else one if other == width else max(one, other)


def _described(part: Part) -> list[str]:
    """Return what an attention's heads are and attend to, in ways from long to short."""
    heads = part.heads
    if heads is None:
        return []
    queries, keys = int(heads.queries), int(heads.keys)
    long, short = f"{exact(queries)} heads", f"{exact(queries)} heads"
    if heads.latent is not None:
        long += f" from a latent of {exact(int(heads.latent))}"
        short = f"latent of {exact(int(heads.latent))}"
    elif keys < queries:
        long = f"{exact(queries)} query heads share {exact(keys)} KV head{'s' if keys > 1 else ''}"
        short += f", {exact(keys)} KV"
    if heads.shares_kv:
        long += ", KV of an earlier layer"
    if part.window is not None:
        seen = f"{'chunks' if heads.chunked else 'window'} of {exact(part.window)}"
        return [f"{long}, {seen}", f"{short}, {seen}", seen]
    return [long, short] if heads.causal else [f"{long}, in both directions", long, short]


def _tooltip(one: Slice, layers: int) -> str:
    """Return the tooltip of a projection."""
    how = f", {exact(one.heads)} head{'s' if one.heads > 1 else ''}" if one.heads else ", low-rank" if one.waist else ""
    return tooltip_of(one.piece, layers, one.name, how)


def _stacked(slices: Sequence[Slice], place: Place, scale: float) -> list[Place]:
    """Return a place for each projection, below each other; low-rank ones are narrow."""
    places, y = [], place.y
    for one in slices:
        width = place.width * (WAIST if one.waist else 1)
        height = one.piece.parameters * one.share * scale / width if width else 0
        places.append(Place(place.x + (place.width - width) / 2, y, width, height))
        y += height
    return places


def _enlarged(canvas: Canvas, slices: Sequence[Slice], small: Place, bottom: float) -> None:
    """Draw an attention again, next to its boxes and wide enough for its heads; not to scale."""
    left = small.x + small.width + 70
    most = max(one.heads for one in slices)
    width = min(canvas.right - left, max(MAGNIFIED, most * NARROWEST * 1.4))
    if width < most * NARROWEST * 0.7 or width < 2 * small.width:
        return
    whole = Place(left, small.y, width, bottom - small.y)
    total = sum(one.piece.parameters * one.share / (WAIST if one.waist else 1) for one in slices)
    lens = f"M{small.x + small.width + 2:.1f} {small.y:.1f}L{left - 4:.1f} {small.y:.1f}"
    lens += f"M{small.x + small.width + 2:.1f} {bottom:.1f}L{left - 4:.1f} {bottom:.1f}"
    canvas.add(path(lens, stroke=LINE, stroke_width=0.8, stroke_dasharray="2 3", class_="flow"))
    canvas.add(words("enlarged", small.x + small.width + 8, (small.y + bottom) / 2 + 4, class_="quiet"))
    for one, where in zip(slices, _stacked(slices, whole, whole.height * whole.width / total), strict=True):
        role = one.piece.role
        outline = path(
            rounded(where, 0), fill=COLOURS[role], fill_opacity=0.55, class_=role, stroke=GROUND, stroke_width=0.8
        )
        canvas.add(outline)
        if one.heads > 1:
            _cells(canvas, where, one.heads)


def _cells(canvas: Canvas, place: Place, number: int) -> None:
    step = place.width / number
    lines = "".join(f"M{place.x + step * at:.1f} {place.y:.1f}v{place.height:.1f}" for at in range(1, number))
    canvas.add(path(lines, stroke=GROUND, stroke_width=min(1.2, step / 5), class_="cells"))


def _mask(canvas: Canvas, heads: Heads, window: int | None) -> None:
    """Draw which positions (columns) each position (row) attends to, right of the header."""
    size, x, y = 16.0, canvas.right - 16, canvas.y - HEADER + 1
    if not heads.causal:
        seen = f"M{x} {y}h{size}v{size}h{-size}z"
    elif window is None:
        seen = f"M{x} {y}v{size}h{size}z"
    elif heads.chunked:
        half = size / 2
        seen = f"M{x} {y}v{half}h{half}zM{x + half} {y + half}v{half}h{half}z"
    else:
        band = size * 0.3
        seen = f"M{x} {y}v{band}l{size - band} {size - band}h{band}z"
    what = "full" if window is None else "chunks" if heads.chunked else "window"
    canvas.add(path(f"M{x} {y}h{size}v{size}h{-size}z", stroke=INK, stroke_width=0.6, stroke_opacity=0.4))
    canvas.add(path(seen, fill=INK, fill_opacity=0.55, class_="mask", data_mask=what if heads.causal else "both"))
