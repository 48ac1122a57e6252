"""What models share whose layers are of several kinds: which kind each layer is, and the frame around them."""

from collections.abc import Callable, Hashable, Iterable
from itertools import groupby
from typing import TypeVar

from tallystick.blueprint import Config, Embedding, Group, Head, Model, Node, RMSNorm, Stack

K = TypeVar("K", bound=Hashable)

LINEAR, FULL = "linear_attention", "full_attention"
FORMER = {"mamba": LINEAR, "attention": FULL}  # names of before, which transformers still reads

MOST = 1_000_000  # layers that are listed one by one


def layer_kinds(
    c: Config, kinds: tuple[str, ...], pattern: Callable[[int], str] | None, *, by: str = "layer_types"
) -> list[str]:
    """The kind of each layer: as the key `by` lists them, or else by the type's own pattern, where it has one."""
    listed = getattr(c, by)
    if listed is not None:
        return listed_kinds(c, listed, kinds, by=by, count=int(c.num_hidden_layers))
    if pattern is None:
        raise c.refuse(f"{by} is missing")
    return [pattern(layer) for layer in range(listable(c))]


def listed_kinds(c: Config, listed: object, kinds: tuple[str, ...], *, by: str, count: int | None) -> list[str]:
    """The kinds that the key `by` lists, for so many layers, checked; None: for as many as it lists."""
    named = [FORMER.get(str(kind), str(kind)) for kind in listed] if isinstance(listed, list) else []
    if not isinstance(listed, list) or len(named) != (count or len(named)) or not set(named) <= set(kinds):
        of = f" for each of the {count} layers" if count else ""
        raise c.refuse(f"{by} must list {' or '.join(kinds)}{of}")
    return named


def listable(c: Config) -> int:
    """How many layers there are, where each is looked at on its own."""
    if c.num_hidden_layers > MOST:
        raise c.refuse(
            f"num_hidden_layers is {int(c.num_hidden_layers)}: layers of several kinds are counted up to {MOST:,}"
        )
    return int(c.num_hidden_layers)


def in_turns(kinds: Iterable[K], block: Callable[[K], Group], *, depth: int | None = None) -> Stack:
    """A block for each layer by its kind, equal neighbours as one run; `depth` is the key that says how many, if any."""
    runs = [(len(list(run)), block(kind)) for kind, run in groupby(kinds)]
    return Stack((depth or runs[0][0], runs[0][1])) if len(runs) == 1 else Stack(*runs)


def frame(
    c: Config,
    layers: Stack,
    *,
    under: str = "model",
    embedding: str = "embed_tokens",
    norm: str = "final_layernorm",
    tied: bool | None = None,
) -> Model:
    """Token embedding, blocks, final norm and head, under these names; `tied`: None is what the config says."""
    d = c.hidden_size
    body: dict[str, Node] = {embedding: Embedding(c.vocab_size, d), "layers": layers, norm: RMSNorm(d)}
    tie = ("lm_head.weight", f"{under}.{embedding}.weight")
    return Model(
        **{under: Group(**body)},
        lm_head=Head(d, c.vocab_size),
        tie=tie if (c.tie_word_embeddings if tied is None else tied) else None,
    )
