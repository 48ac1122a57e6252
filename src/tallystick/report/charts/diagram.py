"""Draw a model as it runs, from token to logits, with the area of each part to scale.

A block is drawn once for all its equal layers, with the area of all of them; unfolded, each layer
is drawn. A tied tensor is drawn where it is counted: an arrow leads there from its other use.
"""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.answers.blocks import Kind, Part, Stack, blocks
from tallystick.core.ledger import Ledger
from tallystick.errors import visible
from tallystick.report.charts.canvas import GROUND, LINE, Canvas, arrow, path, rounded
from tallystick.report.charts.rows import HEADER, said_of, tensors_of, with_share, words_of
from tallystick.report.charts.sublayers import draw_part
from tallystick.report.charts.svg import INK, LETTER, cut, element, picture, words
from tallystick.report.charts.tiles import Place, in_a_row, in_rows
from tallystick.report.numbers import exact

STREAM, GUTTER = 12.0, 26.0  # the residual stream's place; left of the boxes
TIES = 24.0  # pixels right of the boxes for arrows to a tied tensor
FRAME = 8.0  # pixels between a block's frame and its parts
CHIP = 24.0  # height of the second use of a tensor
MOST_UNFOLDED = 400  # layers drawn one by one
MOST_RUNS = 200  # runs of layers in the row that shows their order
SHADES = (0.12, 0.42, 0.27, 0.57)  # of the kinds in that row
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw_model(ledger: Ledger, *, width: int = 960, unfolded: bool = False, foldable: bool = False) -> str:
    """Draw a model's parts as SVG, from its input to its output.

    Args:
        ledger: the model.
        width: pixels.
        unfolded: whether each layer is drawn, not one for all of its kind.
        foldable: whether blocks show a mark that they unfold, for a page that does so.
    """
    found = blocks(ledger)
    total = ledger.total
    inner = width - GUTTER - TIES - 2 * FRAME
    tall = max(280.0, min(420.0, width * 0.42))
    canvas = Canvas(GUTTER, width - GUTTER - TIES, inner * tall / (total or 1))
    _ends(canvas, "tokens")
    drawing = _Drawing(canvas, ledger, unfolded=unfolded, foldable=foldable)
    for one in found:
        drawing.stack(one) if isinstance(one, Stack) else drawing.part(one)
    drawing.arrows(width)
    _ends(canvas, "logits" if any(_is_head(one) for one in found) else "output", last=True)
    stream = path(f"M{STREAM} 16V{canvas.y - 19:.1f}", stroke=LINE, stroke_width=1.2, class_="flow")
    label = f"{ledger.source}: {exact(total)} parameters, each part's area to scale. {_spoken(found)}."
    return picture(stream + canvas.content, width, canvas.y, label=label, name="diagram", pointed=foldable)


def _is_head(one: Part | Stack) -> bool:
    return isinstance(one, Part) and one.role == "head"


def _ends(canvas: Canvas, what: str, *, last: bool = False) -> None:
    """Write what goes in or comes out of the model, on the stream."""
    if last:
        canvas.add(arrow(STREAM, canvas.y + 2, "down"))
        canvas.y += 22
    canvas.add(words(what, 0, canvas.y + (-4 if last else 11), class_="quiet"))
    canvas.y += 4 if last else 22


def _spoken(found: Sequence[Part | Stack]) -> str:
    said = []
    for one in found:
        if isinstance(one, Part):
            said.append(f"{words_of(one)} {exact(one.parameters)}")
            continue
        for kind in one.kinds:
            inner = ", ".join(f"{words_of(part)} {exact(part.parameters)}" for part in kind.parts)
            said.append(f"{exact(kind.layers)} blocks of {exact(kind.parameters)} each ({inner})")
    return "; ".join(said[:20])


class _Drawing:
    """One picture on its canvas."""

    def __init__(self, canvas: Canvas, ledger: Ledger, *, unfolded: bool, foldable: bool) -> None:
        self.canvas, self.total, self.foldable = canvas, ledger.total, foldable
        self.unfolded = unfolded
        self.relations = {name: tie.relation for tie in ledger.ties for name in tie.names}
        self.owners: dict[str, tuple[float, float]] = {}  # the right end and middle of each part, by its tensors
        self.uses: list[tuple[str, float]] = []  # a shared tensor, and where its other use is

    # -- parts outside of blocks -------------------------------------------------------------------

    def part(self, part: Part) -> None:
        """Draw a part, and a chip for each of its tensors that another place holds."""
        canvas = self.canvas
        shared = [piece for piece in part.pieces if piece.shares]
        own = part._replace(pieces=tuple(piece for piece in part.pieces if not piece.shares))
        with canvas.inside(FRAME):
            if own.pieces and own.parameters:
                top = canvas.y
                draw_part(canvas, own, 1, self.total)
                across = own.parameters * canvas.scale / (canvas.y - top - 2)  # of one box, whose name may follow it
                right = canvas.x + across if len(own.pieces) == 1 and across > canvas.width / 2 else canvas.right
                self.owners |= dict.fromkeys(tensors_of(own), (right, (top + canvas.y) / 2 - 1))
            for piece in shared:
                self._chip(part, piece.tensors[0], piece.shares)
        canvas.y += 4

    def _chip(self, part: Part, name: str, of: str) -> None:
        """Draw the second use of a tensor: an outline without an area."""
        canvas = self.canvas
        relation = self.relations.get(name, "tied")
        title = f"{words_of(part)}: {name} is {of} ({relation}): one matrix with two uses, counted once"
        ways = (
            f"{words_of(part)}: the same matrix again ({relation}), counted once",
            f"{words_of(part)}: the same matrix",
        )
        with canvas.part(part.role, title, (name, of), data_tie="1"):
            place = Place(canvas.x, canvas.y, canvas.width, CHIP - 2)
            canvas.add(path(rounded(place), stroke=INK, stroke_dasharray="4 3", class_="chip"))
            said = next((one for one in ways if len(one) * LETTER < canvas.width - 12), ways[-1])
            canvas.write(said, canvas.x + 6, canvas.y + 15, canvas.width - 12)
            self.uses.append((of, canvas.y + CHIP / 2 - 1))
            canvas.y += CHIP

    def arrows(self, width: int) -> None:
        """Draw an arrow from each other use of a tensor to where it is."""
        canvas = self.canvas
        for number, (of, y) in enumerate(self.uses[:3]):
            if of not in self.owners:
                continue
            end, top = self.owners[of]
            x, start = width - 9 - 4 * (min(len(self.uses), 3) - 1 - number), canvas.right - FRAME
            line = f"M{start:.1f} {y:.1f}H{x - 6:.1f}q6 0 6 -6V{top + 6:.1f}q0 -6 -6 -6H{end + 2:.1f}"
            head = f"M{end + 1:.1f} {top:.1f}l6 -4M{end + 1:.1f} {top:.1f}l6 4"
            canvas.add(path(line + head, stroke=INK, stroke_width=1.4, class_="tie", data_tensor=visible(of)))

    # -- blocks ------------------------------------------------------------------------------------

    def stack(self, stack: Stack) -> None:
        """Draw the blocks of a stack: each kind once, or each layer."""
        canvas = self.canvas
        canvas.y += 4
        if len(stack.kinds) > 1:
            self._order(stack)
        if self.unfolded and len(stack.runs) and stack.layers <= MOST_UNFOLDED and stack.layers > 1:
            self._layers(stack)
        else:
            for number, kind in enumerate(stack.kinds):
                self._kind(kind, LETTERS[number % 26] if len(stack.kinds) > 1 else "")
        canvas.y += 4

    def _order(self, stack: Stack) -> None:
        """Draw the order of several kinds: a row with a mark for each layer."""
        canvas = self.canvas
        with canvas.inside(FRAME):
            said = f"{exact(stack.layers)} layers of {len(stack.kinds)} kinds, in this order"
            canvas.write(said, canvas.x, canvas.y + 13, canvas.width)
            canvas.y += HEADER
            if len(stack.runs) <= MOST_RUNS:
                lengths = [length for length, _ in stack.runs]
                place = Place(canvas.x, canvas.y, canvas.width, 14)
                for (length, kind), where in zip(stack.runs, in_a_row(lengths, place), strict=True):
                    self._run(length, kind, where)
                canvas.y += 20

    def _run(self, length: int, kind: int, where: Place) -> None:
        """Draw some equal layers in a row: a cell for each, with the kind's letter."""
        canvas, step = self.canvas, where.width / length
        cells = rounded(Place(where.x + 0.5, where.y, max(where.width - 1, 0.5), where.height), 2)
        canvas.add(path(cells, fill=INK, fill_opacity=SHADES[kind % 4], class_="order"))
        letter = LETTERS[kind % 26]
        if step >= LETTER + 3 and length <= MOST_RUNS:
            canvas.add(
                *(
                    words(letter, where.x + step * (at + 0.5), where.y + 11, text_anchor="middle")
                    for at in range(length)
                )
            )
        elif where.width >= LETTER + 2:
            canvas.add(words(letter, where.x + where.width / 2, where.y + 11, text_anchor="middle"))

    def _kind(self, kind: Kind, letter: str) -> None:
        """Draw the frame of one kind of block, and its parts with the areas of all its layers."""
        canvas, top = self.canvas, self.canvas.y
        canvas.y += 2
        with canvas.collected() as inner, canvas.inside(FRAME):
            self._title(kind, letter)
            self._steps(kind)
        canvas.y += 4
        frame = path(rounded(Place(canvas.x, top, canvas.width, canvas.y - top), 5), stroke=LINE, class_="frame")
        cards = min(kind.layers - 1, 2)
        behind = "".join(self._card(top, 3.0 * at) for at in range(1, cards + 1))
        content = behind + frame + "".join(inner)
        canvas.add(element("g", content, class_="block", data_layers=str(kind.layers)))
        canvas.y += 3 * cards + 4

    def _card(self, top: float, by: float) -> str:
        """Return the edge of a further block behind the drawn one."""
        x, right, bottom = self.canvas.x + 6 + by, self.canvas.right - 4 + by, self.canvas.y + by
        line = f"M{x:.1f} {bottom:.1f}H{right:.1f}q4 0 4 -4V{top + 6 + by:.1f}"
        return path(line, stroke=LINE, stroke_opacity=0.9 - by / 10, class_="card")

    def _title(self, kind: Kind, letter: str) -> None:
        canvas = self.canvas
        number = with_share(kind.layers * kind.parameters, self.total)
        mark = ("▾ " if self.unfolded else "▸ ") if self.foldable and kind.layers > 1 else ""
        name = f"{mark}block {letter}".rstrip() + f" × {exact(kind.layers)}"
        said = f"{exact(kind.parameters)} parameters each"
        space = canvas.width - len(number) * LETTER - 10
        title = words(cut(name, space), canvas.x, canvas.y + 14, font_weight="600")
        used = len(name) * LETTER + 14
        if len(said) * LETTER <= space - used:
            title += words(said, canvas.x + used, canvas.y + 14, class_="quiet")
        title += words(number, canvas.right, canvas.y + 14, text_anchor="end", class_="quiet")
        spot = path(
            rounded(Place(canvas.x - 4, canvas.y - 1, canvas.width + 8, 24), 3), fill="transparent", class_="spot"
        )
        tooltip = f"{exact(kind.layers)} equal blocks with {exact(kind.parameters)} parameters each; Enter or a click unfolds them"
        canvas.add(self._heading(spot + title, tooltip if mark else ""))
        canvas.y += HEADER + 4

    @staticmethod
    def _heading(content: str, tooltip: str) -> str:
        """Return the heading of blocks, which folds them if it says so."""
        if not tooltip:
            return element("g", content, class_="heading")
        return element("g", element("title", tooltip) + content, class_="fold", data_fold="1")

    def _steps(self, kind: Kind) -> None:
        """Draw a block's parts, and where each step reads the stream and adds to it."""
        canvas = self.canvas
        for step in kind.steps:
            start = canvas.y
            for part in step:
                draw_part(canvas, part, kind.layers, self.total)
                self.owners |= dict.fromkeys(tensors_of(part), (canvas.right, canvas.y - 6))
            self._adds(start, canvas.y - 6)
        canvas.y += 2

    def _adds(self, top: float, bottom: float) -> None:
        """Draw a branch from the stream to a step, and back where its output is added."""
        canvas, x = self.canvas, self.canvas.x - 3
        top += 8
        bottom = max(bottom, top + 12)
        line = path(
            f"M{STREAM} {top:.1f}H{x:.1f}M{x + 2:.1f} {bottom:.1f}H{STREAM + 5:.1f}",
            stroke=LINE,
            stroke_width=1.2,
            class_="flow",
        )
        ring = path(
            f"M{STREAM - 5} {bottom:.1f}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0M{STREAM - 3} {bottom:.1f}h6M{STREAM} {bottom - 3:.1f}v6",
            fill="#ffffff", stroke=LINE, stroke_width=1.2, class_="flow ring",
        )  # fmt: skip
        canvas.add(line, arrow(x, top, "right"), ring)

    def _layers(self, stack: Stack) -> None:
        """Draw each layer of a stack in order, with its parts from left to right."""
        canvas, top = self.canvas, self.canvas.y
        numbered = [kind for length, kind in stack.runs for _ in range(length)]
        with canvas.inside(FRAME):
            self._unfolded_title(stack)
            place = Place(canvas.x, canvas.y, canvas.width, stack.parameters * canvas.scale / canvas.width)
            sizes = [stack.kinds[kind].parameters for kind in numbered]
            for number, (kind, where) in enumerate(zip(numbered, in_rows(sizes, place), strict=True)):
                self._layer(number, stack.kinds[kind], where)
            canvas.y += place.height + FRAME
        canvas.add(path(rounded(Place(canvas.x, top, canvas.width, canvas.y - top), 5), stroke=LINE, class_="frame"))
        canvas.y += 4

    def _unfolded_title(self, stack: Stack) -> None:
        canvas = self.canvas
        mark = "▾ " if self.foldable else ""
        share = with_share(stack.parameters, self.total)
        title = words(f"{mark}{exact(stack.layers)} blocks", canvas.x, canvas.y + 16, font_weight="600")
        title += words(share, canvas.right, canvas.y + 16, text_anchor="end", class_="quiet")
        spot = path(rounded(Place(canvas.x - 4, canvas.y, canvas.width + 8, 24), 3), fill="transparent", class_="spot")
        canvas.add(self._heading(spot + title, "Enter or a click folds the blocks" if mark else ""))
        canvas.y += HEADER + 6

    def _layer(self, number: int, kind: Kind, where: Place) -> None:
        """Draw one layer with its parts from left to right."""
        canvas = self.canvas
        parts = [part for part in kind.parts if part.parameters]
        for part, place in zip(parts, in_a_row([part.parameters for part in parts], where), strict=True):
            title = f"layer {number}, {said_of(part, 1, self.total)}"
            canvas.box(part.role, place, title, data_part=part.role, data_layer=str(number))
        canvas.add(path(rounded(where, 0), stroke=GROUND, stroke_width=2, class_="cells"))
        if where.height >= 15 and where.width >= (len(str(number)) + 1) * LETTER:
            canvas.add(words(str(number), where.x + 4, where.y + 13))
