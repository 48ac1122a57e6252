"""What the decoders share: heads, attention, gated MLP, mixture of experts, and the frame around the blocks."""

from collections.abc import Container, Iterable, Mapping
from itertools import groupby
from typing import Any, TypeVar

from tallystick.anatomy import EVERYTHING, Windows
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Dropout,
    Embedding,
    Experts,
    ExpertStack,
    Feed,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Node,
    PositionEmbedding,
    Repeat,
    RMSNorm,
    Router,
    Routing,
    Stack,
    Tensor,
    natural,
)
from tallystick.config import LARGEST, MOST_LISTED
from tallystick.errors import shown

T = TypeVar("T")


def head_dim(c: Config) -> int:
    """The size of one head: stated, or the width shared out among the heads."""
    if not c.head_dim:
        c.require_divisible("hidden_size", by="num_attention_heads")
    size: int = c.head_dim or c.hidden_size / c.num_attention_heads
    return size


def rounded(width: int, heads: int) -> int:
    """The width shared out among the heads, rounded down where they do not divide it: some types are built so."""
    return int(width) // int(heads) if int(width) % int(heads) else width / heads  # type: ignore[return-value]


def key_value_heads(c: Config) -> int:
    """Grouped-query attention's key and value heads; null means one for each query head."""
    if c.num_key_value_heads:
        c.require_divisible("num_attention_heads", by="num_key_value_heads")
    heads: int = c.num_key_value_heads or c.num_attention_heads
    return heads


def heads(c: Config, size: int | None = None, **how: Any) -> Heads:
    """Query heads and grouped key and value heads, all of one size, which run as `how` says: fields of `Heads`."""
    return Heads(c.num_attention_heads, key_value_heads(c), head_dim(c) if size is None else size, **how)


def attention(
    c: Config, runs: Heads, *, bias: bool = False, output_bias: bool | None = None, output: str = "o_proj", **more: Any
) -> Attention:
    """Separate query, key, value and output projections of these heads, and `more` that is in it, such as norms."""
    d, queries, keys = c.hidden_size, runs.queries * runs.size, runs.keys * runs.size
    return Attention(
        runs,
        q_proj=Linear(d, queries, bias=bias),
        k_proj=Linear(d, keys, bias=bias),
        v_proj=Linear(d, keys, bias=bias),
        **{output: Linear(queries, d, bias=bias if output_bias is None else output_bias)},
        **more,
    )


SLIDING = {
    "use_sliding_window": False,
    "sliding_window": natural(4096, nullable=True),
    "max_window_layers": natural(28),
    "layer_types": None,
}


def windows_of(c: Config, pattern: Windows, window: str = "sliding_window") -> Windows:
    """How far each layer sees: as `layer_types` lists it, or else by the type's own pattern; `window` is its key."""
    if c.layer_types is None:
        return pattern
    if not isinstance(c.layer_types, list) or len(c.layer_types) < c.num_hidden_layers:
        raise c.refuse(f"layer_types must list the kind of each of the {int(c.num_hidden_layers)} layers")
    near = [kind in ("sliding_attention", "chunked_attention") for kind in c.layer_types]
    return in_runs(near, getattr(c, window), None)


def in_runs(kinds: Iterable[object], where: T, elsewhere: T) -> list[tuple[T, int]]:
    """One of two for each layer, equal neighbours as one run: `where` its kind is truthy, or `elsewhere`."""
    return [(where if kind else elsewhere, len(list(run))) for kind, run in groupby(map(bool, kinds))]


def late_windows(c: Config) -> Windows:
    """Qwen's windows, where they are on at all: every layer from `max_window_layers` on."""
    if not c.use_sliding_window:
        return EVERYTHING
    first = min(c.max_window_layers, c.num_hidden_layers)
    return windows_of(c, ((None, first), (c.sliding_window, c.num_hidden_layers - first)))


def head_norms(
    runs: Heads, names: tuple[str, str] = ("q_norm", "k_norm"), *, kind: str = "rms", turned: bool = False
) -> dict[str, Any]:
    """The norms of queries and of keys, each head on its own; `kind` and `turned` as in `anatomy.Norm`."""
    return {
        name: RMSNorm(runs.size, kind=kind, times=times, turned=turned)
        for name, times in zip(names, (runs.queries, runs.keys), strict=True)
    }


def turned(c: Config, size: int) -> int:
    """Elements of a head that positions turn: a share of them, which `rope_parameters` or the config itself states."""
    stated = c.rope_parameters.get("partial_rotary_factor") if isinstance(c.rope_parameters, dict) else None
    return share_of(c, size, "partial_rotary_factor", stated if isinstance(stated, int | float) else None)


def share_of(c: Config, size: int, name: str, stated: float | None = None) -> int:
    """The whole part of a share of a size, which is stated or stands under a key: not more than all of it."""
    share = getattr(c, name) if stated is None else stated
    if not 0 <= share <= 1:
        raise c.refuse(f"{name} is {shown(share)}, expected a number from 0 to 1")
    return int(int(size) * share)


def times(c: Config, size: int, name: str) -> float:
    """A size times the number under a key, where that is a size too."""
    product = int(size) * float(getattr(c, name))
    if not product <= LARGEST:
        raise c.refuse(f"{name} is {shown(getattr(c, name))}, and a width of that many times {int(size)} cannot be")
    return product


def rope_windows(c: Config, near: int | None, turned: bool) -> Windows:
    """Layers that see `near`, and others that see all: those that positions turn, or those that they do not.

    `no_rope_layers` lists a 1 or 0 for each layer, where it is stated; else every `no_rope_layer_interval`-th is not turned.
    """
    of_turned, of_others = (near, None) if turned else (None, near)
    listed = c.no_rope_layers
    if not listed:
        return (of_turned, int(c.no_rope_layer_interval) - 1), (of_others, 1)
    if not isinstance(listed, list) or len(listed) < c.num_hidden_layers:
        raise c.refuse(f"no_rope_layers must hold a 1 or 0 for each of the {int(c.num_hidden_layers)} layers")
    return in_runs(listed, of_turned, of_others)


SILU = {"hidden_act": "silu"}  # what most gates are activated by


def gated_mlp(d: int, inner: int, activation: str | None = None, *, bias: bool = False) -> MLP:
    """SwiGLU and kin: the gate's activation scales the up projection."""
    return MLP(
        Feed(d, inner, activation, gated=True) if activation else None,
        gate_proj=Linear(d, inner, bias=bias),
        up_proj=Linear(d, inner, bias=bias),
        down_proj=Linear(inner, d, bias=bias),
    )


def fused_gated_mlp(d: int, inner: int, activation: str) -> MLP:
    """The same, gate and up projection in one."""
    return MLP(
        Feed(d, inner, activation, gated=True, fused=True),
        gate_up_proj=Linear(d, 2 * inner, bias=False),
        down_proj=Linear(inner, d, bias=False),
    )


def plain_mlp(
    d: int, inner: int, activation: str, up: str = "up_proj", down: str = "down_proj", *, bias: bool = True
) -> MLP:
    """Up, an activation, down, without a gate."""
    return MLP(Feed(d, inner, activation), **{up: Linear(d, inner, bias=bias), down: Linear(inner, d, bias=bias)})


def pre_norm(self_attn: Attention, mlp: Group, norm: Group) -> Group:
    """Llama's block: attention, then MLP, each behind a norm, and what it gives added to what went in."""
    return Group(self_attn=self_attn, mlp=mlp, input_layernorm=norm, post_attention_layernorm=norm)


def router(reads: int, runs: Routing | None, experts: int, *, bias: bool = False, **more: Any) -> Router:
    """One score for each expert."""
    return Router(runs, **Linear(reads, experts, bias=bias).children, **more)


def experts_used(c: Config, of: str, by: str = "num_experts_per_tok") -> int:
    """How many experts a token goes through, as the key `by` says; it cannot be more than there are, as `of` says."""
    used: int = getattr(c, by)
    if used > getattr(c, of):
        raise c.refuse(f"{by} = {int(used)} is more than {of} = {int(getattr(c, of))}")
    return used


SINGLE = ("gate_proj", "up_proj", "down_proj")  # the matrices of an expert that is held on its own
NUMBERED = ("w1", "w3", "w2")  # as Mixtral calls them


def mixture(
    c: Config,
    inner: int,
    used: int,
    of: int,
    *,
    scoring: str | None = None,
    weights: str = "float32",
    under: str = "gate",
    names: tuple[str, str, str] | None = SINGLE,
    scores: Mapping[str, Any] | None = None,
    **beside: Node | None,
) -> Group:
    """Gated experts without biases, and the router that chooses among them.

    Args:
        c: the config, of which the width and the activation are read.
        inner: the width inside of an expert.
        used: how many a token goes through.
        of: how many there are.
        scoring: how they are chosen, as in `Routing`; None: that is not told.
        weights: how they are weighted, as in `Routing`.
        under: the router's name.
        names: of gate, up and down where experts are published one by one; None: all of them are in one tensor there too.
        scores: what the router holds beside its matrix.
        beside: what all tokens go through beside them.
    """
    d = c.hidden_size
    expert = Feed(d, inner, c.hidden_act, gated=True, fused=True) if scoring else None
    runs = Routing(expert, of, used, scoring, weights) if expert and scoring else None
    chooses = Router(runs, **Linear(d, of, bias=False).children, **(scores or {}))
    return Group(**{under: chooses}, experts=_experts(c, d, inner, used, of, names), **beside)


def _experts(c: Config, d: int, inner: int, used: int, of: int, names: tuple[str, str, str] | None) -> Node:
    if c.published and names:
        gate, up, down = names
        projections = {gate: Linear(d, inner, bias=False), up: Linear(d, inner, bias=False)}
        return ExpertStack(used, of, Group(**projections, **{down: Linear(inner, d, bias=False)}))
    return Experts(used, of, gate_up_proj=Tensor((of, 2 * inner, d)), down_proj=Tensor((of, d, inner)))


def listable(c: Config) -> int:
    """How many layers there are, where each is looked at on its own."""
    if c.num_hidden_layers > MOST_LISTED:
        raise c.refuse(
            f"num_hidden_layers is {int(c.num_hidden_layers)}: layers of several kinds are counted up to {MOST_LISTED:,}",
            code="too-large",
        )
    return int(c.num_hidden_layers)


def two_kinds(c: Config, chosen: Container[int], these: Group, others: Group) -> Stack:
    """A stack whose layers are of one kind where their number is among the chosen, and of another elsewhere."""
    runs = in_runs((layer in chosen for layer in range(listable(c))), these, others)
    if len(runs) == 1:
        return Repeat(c.num_hidden_layers, runs[0][0])
    return Stack(*((count, block) for block, count in runs))


def decoder(
    c: Config,
    layers: Group | Stack,
    norm: Group | None = None,
    *,
    capped: bool = False,
    head_bias: bool = False,
    **beside: Node,
) -> Model:
    """Token embedding, blocks, final norm, what is `beside` them, and a head that can be tied to the embedding."""
    d = c.hidden_size
    return Model(
        model=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            layers=layers if isinstance(layers, Stack) else Repeat(c.num_hidden_layers, layers),
            norm=norm or RMSNorm(d),
            **beside,
        ),
        lm_head=Head(d, c.vocab_size, bias=head_bias, capped=capped),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


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


def transformer(
    c: Config, d: int, block: Group, *, depth: str, positions: str = "", dropout: float = 0.0, head_bias: bool = False
) -> Model:
    """GPT-2's frame: token embedding, learned positions, blocks, final norm, and a head that can be tied.

    `depth` and `positions` are the keys that say how many layers and positions there are; "": none are learned.
    """
    return Model(
        transformer=Group(
            wte=Embedding(c.vocab_size, d),
            wpe=PositionEmbedding(getattr(c, positions), d) if positions else None,
            drop=Dropout(d, dropout),
            h=Repeat(getattr(c, depth), block),
            ln_f=LayerNorm(d),
        ),
        lm_head=Head(d, c.vocab_size, bias=head_bias),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )


def refuse_keys(c: Config, what: str, *keys: str) -> None:
    """Refuse a dictionary without a model_type whose keys give away that it describes another class."""
    for key in keys:
        if c.states(key):
            raise c.refuse(f"{key} is no key of {what}: this describes a model that tallystick does not know")
