"""Read a blueprint: its tensors, attention, recurrent states and running parts.

>>> block = nn.Module(ln_1=nn.LayerNorm(4), mlp=nn.MLP(c_fc=nn.Linear(4, 16)))
>>> [entry.name for entry in lay_out(nn.Model(h=nn.Repeat(2, block)), dtype="float32")]
['h.{}.ln_1.weight', 'h.{}.ln_1.bias', 'h.{}.mlp.c_fc.weight', 'h.{}.mlp.c_fc.bias']
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tallystick.core import anatomy
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import expression_of
from tallystick.core.anatomy import Attending, ChunkedScan, Heads, Mixing, Recurring, RunningPart
from tallystick.core.description import ModelDescription
from tallystick.core.entries import Axis, Entry

if TYPE_CHECKING:
    from fractions import Fraction

G = TypeVar("G", bound=nn.Module)


def read(model: nn.Model, *, dtype: str) -> tuple[list[Entry], ModelDescription]:
    """Return the tensors of a blueprint and the description of its layers, in one walk.

    Args:
        model: the blueprint.
        dtype: dtype of all entries.

    Returns:
        The entries in printing order, stacks rolled up; and the description.
    """
    sites = list(walk(model))
    return _entries(model, sites, dtype), ModelDescription(
        attending=tuple(_attending(sites)),
        recurring=tuple(_recurring(sites)),
        mixing=tuple(_mixing(sites)),
        parts=_parts(sites),
        irregular=model.irregular,
        towers=_prefixes(sites, nn.Tower),
        unlearned=_prefixes(sites, nn.IndexerModule),
    )


def lay_out(model: nn.Model, *, dtype: str) -> list[Entry]:
    """Return every tensor of a model as an `Entry`, stacks rolled up, in printing order.

    Args:
        model: the blueprint.
        dtype: dtype of all entries.
    """
    return _entries(model, walk(model), dtype)


def parts(model: nn.Model) -> tuple[RunningPart, ...]:
    """Return the parts that run, stacks rolled up, in printing order.

    Return nothing unless an MLP or router says how it runs, and every scan is a `ChunkedScan`.
    """
    return _parts(list(walk(model)))


# -- the walk -------------------------------------------------------------------------------------


class Site(NamedTuple):
    """One node of the tree, with its name and its ancestors."""

    node: nn.Node
    name: str
    role: str  # role of the tensors inside
    active: Fraction | None  # share of these tensors that one token uses; None is all
    storage: str  # name of the first node with this storage
    axes: tuple[Axis, ...]  # number ranges in the name
    around: tuple[nn.Module | nn.ModuleList, ...]  # ancestors, outermost first

    @property
    def layers(self) -> Axis:
        """Layer numbers of the outermost stack around the node."""
        return self.axes[0] if self.axes else Axis(0, 1)

    @property
    def parent(self) -> nn.Module | nn.ModuleList | None:
        """The node directly above."""
        return self.around[-1] if self.around else None

    def inside(self, *kinds: type[nn.Module | nn.ModuleList]) -> bool:
        """Return whether an ancestor is of one of these kinds."""
        return any(isinstance(one, kinds) for one in self.around)


def walk(node: nn.Node) -> Iterator[Site]:
    """Yield every node of a tree in printing order, parents before children."""

    def below(
        node: nn.Node,
        name: str,
        role: str,
        active: Fraction | None,
        storage: str,
        axes: tuple[Axis, ...],
        around: tuple[nn.Module | nn.ModuleList, ...],
    ) -> Iterator[Site]:
        role = node.role or role
        if isinstance(node, nn.Tensor):
            yield Site(node, name, role, active, storage, axes, around)
            return
        active = node.active or active
        storage = node.of if isinstance(node, nn.Shared) else storage
        yield Site(node, name, role, active, storage, axes, around)
        around = (*around, node)
        if isinstance(node, nn.Module):
            for child, inner in node.children.items():
                yield from below(inner, _within(name, child), role, active, _within(storage, child), axes, around)
            return
        start = 0
        for count, block in node.runs:
            if count:
                numbers = (*axes, Axis(start, count))
                yield from below(block, f"{name}.{{}}", role, active, f"{storage}.{{}}", numbers, around)
            start += int(count)

    return below(node, "", "other", None, "", (), ())


def _within(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _outermost(sites: Iterable[Site], kind: type[G]) -> Iterator[tuple[Site, G]]:
    """Yield the modules of a kind that are inside no other module of that kind, and no tower."""
    for site in sites:
        if isinstance(site.node, kind) and not site.inside(kind, nn.Tower):
            yield site, site.node


# -- its tensors ----------------------------------------------------------------------------------


def _entries(model: nn.Model, sites: Iterable[Site], dtype: str) -> list[Entry]:
    return [_entry(model, site, site.node, dtype) for site in sites if isinstance(site.node, nn.Tensor)]


def _entry(model: nn.Model, site: Site, tensor: nn.Tensor, dtype: str) -> Entry:
    storage = model.ties.get(site.name, site.storage)
    tied = storage not in (site.name, _numbered(site.name, site.axes))
    return Entry(
        name=site.name,
        shape=tensor.shape,
        role=site.role,
        dtype=dtype,
        storage=storage,
        unique=0 if tied else int(math.prod(tensor.shape)),
        trainable=tensor.trainable,
        buffer=tensor.buffer,
        active=site.active,
        axes=site.axes,
    )


def _numbered(name: str, axes: tuple[Axis, ...]) -> str:
    """Fill each ``{}`` with the first number of its axis."""
    for axis in axes:
        name = name.replace("{}", str(int(axis.start)), 1)
    return name


def _prefixes(sites: Iterable[Site], kind: type[nn.Module]) -> tuple[str, ...]:
    """Return the name prefixes of the modules of a kind."""
    return tuple(f"{site.name}." for site, _ in _outermost(sites, kind))


# -- layers ---------------------------------------------------------------------------------------


def _attending(sites: Iterable[Site]) -> Iterator[Attending]:
    """Yield the attention of every layer."""
    for site, node in _outermost(sites, nn.Attention):
        if node.heads:
            yield Attending(site.name, site.layers.start, site.layers.length, node.heads)


def _recurring(sites: Iterable[Site]) -> Iterator[Recurring]:
    """Yield the scan of every layer that has one."""
    for site, node in _outermost(sites, nn.Scan):
        yield Recurring(site.name, site.layers.start, site.layers.length, node.keeps)


def _mixing(sites: Iterable[Site]) -> Iterator[Mixing]:
    """Yield the products of each layer that neither its weights nor its attention show."""
    for site, node in _outermost(sites, nn.TokenMixer):
        start, length = map(int, site.layers)
        yield Mixing(site.name, start, length, int(node.multiplications))


def _parts(sites: list[Site]) -> tuple[RunningPart, ...]:
    feeds = any(mlp.runs for _, mlp in _outermost(sites, nn.MLP))
    feeds = feeds or any(router.runs for _, router in _outermost(sites, nn.Router))
    scans = all(isinstance(one.keeps.runs, ChunkedScan) for one in _recurring(sites))
    if not (feeds and scans):
        return ()
    return tuple(_part(site, what) for site in sites if _runs_itself(site) and (what := _runs(site)))


def _part(site: Site, what: Any) -> RunningPart:
    layers = math.prod(int(axis.length) for axis in site.axes)
    return RunningPart(site.name, layers, what, site.axes[-1].start if site.axes else None, _shares_input(site))


def _runs_itself(site: Site) -> bool:
    """Return whether a module runs by itself, not as a piece of a module around it."""
    if (
        not isinstance(site.node, nn.Module)
        or isinstance(site.node, nn.Tower)
        or site.inside(nn.Tower, nn.ExpertList, nn.Scan)
    ):
        return False
    return not (isinstance(site.node, nn.Projection) and _in_block(site).inside(nn.Attention, nn.MLP))


def _in_block(site: Site) -> Site:
    """Return the site with only the ancestors inside its numbered block."""
    stacks = [place for place, one in enumerate(site.around) if isinstance(one, nn.ModuleList)]
    return site._replace(around=site.around[stacks[-1] + 1 :]) if stacks else site


def _runs(site: Site) -> Any:
    """Return how a module runs by itself; None if only its children run."""
    node = site.node
    if isinstance(node, nn.Attention) and node.heads:
        return _reading(node, node.heads)
    if isinstance(node, nn.Scan):
        return node.keeps.runs
    if isinstance(node, nn.Norm) and isinstance(site.parent, nn.Attention):
        return node.runs._replace(inner=True)  # reads heads there; the same norm outside reads the token
    return getattr(node, "runs", None)


def _reading(node: nn.Attention, heads: Heads) -> anatomy.AttentionRun:
    """Find which projections of an attention read the token, by the formulas of their widths.

    The output projection reads the result of all heads instead. Of the others, a projection reads
    the token if its input width has the same formula as the first one's.
    """
    reads = [projection.runs.reads for _, projection in _outermost(walk(node), nn.Projection)]
    given = heads.queries * heads.value_size
    likeness = [(width == given, expression_of(width) == expression_of(given)) for width in reads]
    reads.pop(likeness.index(max(likeness)))
    token, *others = reads
    waists = tuple(width for width in others if expression_of(width) != expression_of(token))
    return anatomy.AttentionRun(heads, token, len(reads) - len(waists), waists)


def _shares_input(site: Site) -> bool:
    """Return whether a child of a parallel block reads the same input as another child.

    That is each norm after the first; with a single norm, it is the MLP.
    """
    block = site.parent
    if not isinstance(block, nn.ParallelBlock):
        return False
    norms = [child for child, node in block.children.items() if isinstance(node, nn.Norm)]
    name = site.name.rpartition(".")[2]
    return name in norms[1:] or (isinstance(site.node, nn.MLP) and len(norms) == 1)
