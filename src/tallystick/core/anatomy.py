"""How the parts of a model run, beside the tensors that they hold: how many heads, which positions, what is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

# How far layers see, the own position included, None for all before it, and how many layers in a row see so far:
# a pattern that repeats over the layers. Runs, since a config may state 10^12 layers.
Windows: TypeAlias = Sequence[tuple[int | None, int]]

EVERYTHING: Windows = ((None, 1),)


class Indexer(NamedTuple):
    """What chooses the positions that each query reads (DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1)."""

    heads: int  # 0 where an earlier layer's choice is read
    size: int  # elements of a query in one head, and of the key that all heads share, which is cached too
    chosen: int  # positions, at most
    weighed: bool = True  # what the heads score is added up by weights of the query, one product more
    wide: bool = False  # its keys are cached in float32, whatever the dtype of the model


class Compressor(NamedTuple):
    """What makes one of several tokens far away (DeepSeek-AI 2026, "DeepSeek-V4", section 2.3)."""

    rate: int  # tokens that become one
    size: int  # elements of that one, the key of an indexer among them
    overlapping: bool  # it reads the tokens of the one before too


class Heads(NamedTuple):
    """The heads of one attention, and which positions they see."""

    queries: int  # heads of queries
    keys: int  # heads of keys and of values: as many (multi-head), fewer (grouped), one (multi-query)
    size: int  # elements of a query or key in one head
    values: int | None = None  # elements of a value in one head; None is `size`
    windows: Windows = EVERYTHING
    latent: int | None = None  # elements that stand for all keys and values of a token, where they are made of fewer
    rotary: int | None = None  # elements of a query and key that their position turns; None is all
    capped: bool = False  # a tanh bounds the scores
    sinks: bool = False  # one more score for each query, which attends to nothing
    dropout: bool = False  # of the probabilities
    chunked: bool = False  # windows are chunks: a position sees those before it in its own
    l2_norm: bool = False  # where a window is seen, queries and keys are brought to one scale that nothing learns
    shares_kv: bool = False  # keys and values are those of an earlier layer: none are made, and none are cached
    temperature_tuning: bool = False  # where everything is seen, queries are scaled by their position
    causal: bool = True  # positions see none behind them; where they do, nothing can be cached
    longest: int | None = None  # tokens of a sequence, where fewer than positions are learned
    indexer: Indexer | None = None
    compressor: Compressor | None = None
    ahead: int = 0  # positions of a prompt that the model itself puts before each sequence

    @property
    def value_size(self) -> int:
        """Elements of a value in one head."""
        return self.size if self.values is None else self.values

    @property
    def kept(self) -> int:
        """Elements that a cache keeps of one token in one layer for its keys and values."""
        if self.shares_kv or not self.causal:
            return 0
        return self.keys * (self.size + self.value_size) if self.latent is None else self.latent


class Attending(NamedTuple):
    """The layers of one stack that attend alike; `name` holds ``{}`` for their numbers."""

    name: str
    start: int  # number of the first layer
    layers: int
    heads: Heads

    def windows(self) -> dict[int | None, int]:
        """How many of the layers see how far.

        >>> Attending("h.{}", 0, 5, Heads(2, 2, 4, windows=((128, 1), (None, 1)))).windows()
        {128: 3, None: 2}
        """
        period = sum(int(run) for _, run in self.heads.windows)
        counts: dict[int | None, int] = {}
        offset = 0

        def before(layer: int, run: int) -> int:
            """Layers below this one that fall into the run at `offset`."""
            whole, rest = divmod(layer, period)
            return whole * run + min(max(rest - offset, 0), run)

        for window, run in self.heads.windows:
            if found := before(self.start + self.layers, int(run)) - before(self.start, int(run)):
                counts[window] = counts.get(window, 0) + found
            offset += int(run)
        return counts


class ChunkedScan(NamedTuple):
    """How a layer of Mamba 2 reads token after token, in chunks."""

    reads: int  # elements of a token
    heads: int
    size: int  # elements of a token in one head
    rows: int  # elements of the state for each of those
    groups: int  # of heads that share what writes into the state, and what reads it
    kernel: int  # tokens that the convolution reads at once
    chunk: int  # tokens that are multiplied with each other

    @property
    def inner(self) -> int:
        """Elements of a token in all heads."""
        return self.heads * self.size

    @property
    def convolved(self) -> int:
        """Elements of a token that go through the convolution: those of the heads, what writes and what reads."""
        return self.inner + 2 * self.groups * self.rows

    def chunks(self, sequence: int) -> int:
        """How many chunks a sequence is cut into, the last one filled up."""
        return -(-sequence // int(self.chunk))


class DeltaRule(NamedTuple):
    """How a layer of Gated DeltaNet reads token after token, in chunks."""

    heads: int
    keys: int  # elements of a key in one head
    values: int  # elements of a value in one head
    chunk: int = 64  # tokens that are multiplied with each other


class SequentialScan(NamedTuple):
    """How a layer reads one token after another, without chunks."""

    multiplications: int  # of each token, in products of matrices; what is multiplied element by element is none


class Recurrence(NamedTuple):
    """What one layer that reads token after token keeps of a sequence, however long it is."""

    inputs: int  # elements of the last inputs of its convolution
    state: int  # elements of its state
    source: str  # where this is from
    runs: ChunkedScan | DeltaRule | SequentialScan | None = None  # None: nobody said how
    wide: bool = True  # the state is in float32, whatever the dtype of the model
    wide_inputs: bool = False  # those inputs are too


class Recurring(NamedTuple):
    """The layers of one stack that read token after token; `name` holds ``{}`` for their numbers."""

    name: str
    start: int  # number of the first layer
    layers: int
    keeps: Recurrence


class Mixing(NamedTuple):
    """Products that no tensor's shape tells: of what goes through, with what is computed of it."""

    name: str  # of what mixes, with {} for the layers' numbers
    start: int  # number of the first layer
    layers: int
    multiplications: int  # for one token in one layer


# -- what runs, part by part --------------------------------------------------------------------------


class Norm(NamedTuple):
    """Elements brought to one scale."""

    # layer: LayerNorm | rms: RMSNorm, scaled in the model's dtype | rms32: in float32 | gemma: float32, 1 + scale | bare: none
    # own: RMSNorm, all in the model's dtype | centred: LayerNorm written by hand
    # layer32, centred32: of a copy in float32
    kind: str
    width: int  # elements that share one mean
    times: int = 1  # such groups in a token
    inner: bool = False  # inside an attention: reads what a projection gives
    turned: bool = False  # inside an attention, behind the turning by positions
    after: bool = False  # reads what an attention or MLP gives


class AttentionRun(NamedTuple):
    """Attention, and how its projections read a token."""

    heads: Heads
    reads: int  # elements of a token
    readers: int  # projections that read them: three, or one that gives queries, keys and values at once
    waists: tuple[int, ...] = ()  # elements of each narrow tensor that further projections read

    @property
    def fused(self) -> bool:
        """Queries, keys and values are slices of one tensor."""
        return self.readers == 1 and not self.waists


class FeedForward(NamedTuple):
    """What each position goes through on its own: up, an activation, down."""

    reads: int  # elements of a token
    inner: int
    activation: str  # in transformers' words
    gated: bool = False  # a second projection up is scaled by the first one's activation
    fused: bool = False  # both are slices of one tensor


class Routing(NamedTuple):
    """Experts, of which a token goes through some."""

    feed: FeedForward  # one expert
    experts: int
    used: int
    # softmax: over all experts | chosen: over those chosen | sigmoid: in float32, by groups | scaled: by a sigmoid, 0
    # for those not chosen, of what all of them read
    scoring: str
    weights: str = "float32"  # of the chosen experts | own: in the model's dtype


class Projection(NamedTuple):
    """A matrix product of its own, such as the head."""

    reads: int
    capped: int = 0  # elements that a tanh bounds


class Dropout(NamedTuple):
    """Elements of a token of which some are zeroed."""

    width: int


class RunningPart(NamedTuple):
    """One thing that runs, in as many layers as have it."""

    name: str  # with {} for the layers' numbers
    layers: int
    what: Norm | AttentionRun | FeedForward | Routing | Projection | Dropout | ChunkedScan
    start: int | None = None  # number of the first layer, None outside of numbered blocks
    again: bool = False  # what it reads is read by an earlier part too
