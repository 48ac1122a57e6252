"""How parts of a model run: heads, windows, scans, experts; facts that no shape shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

# A pattern that repeats over the layers, as runs (window, layers in a row). A window is the number
# of visible positions including the own one; None is all earlier ones. Runs, since a config may
# state 10^12 layers.
Windows: TypeAlias = Sequence[tuple[int | None, int]]

EVERYTHING: Windows = ((None, 1),)


class Indexer(NamedTuple):
    """Sparse-attention indexer: selects the positions that each query attends to.

    DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1.
    """

    heads: int  # 0 if the layer reuses the selection of an earlier layer
    size: int  # elements of a query in one head; also of the one key that all heads share, which is cached
    chosen: int  # most positions selected for a query
    weighed: bool = True  # head scores are summed with weights computed from the query: one more product
    wide: bool = False  # its keys are cached in float32, whatever the model's dtype


class Compressor(NamedTuple):
    """KV compressor: merges several distant tokens into one entry.

    DeepSeek-AI 2026, "DeepSeek-V4", section 2.3.
    """

    rate: int  # tokens merged into one entry
    size: int  # elements of one entry, including an indexer's key
    overlapping: bool  # it also reads the tokens of the previous entry


class Heads(NamedTuple):
    """Heads of one attention, and the positions that they attend to."""

    queries: int  # heads of queries
    keys: int  # KV heads: as many as queries (multi-head), fewer (grouped-query), one (multi-query)
    size: int  # elements of a query or key in one head
    values: int | None = None  # elements of a value in one head; None is `size`
    windows: Windows = EVERYTHING
    latent: int | None = None  # elements of a token's compressed latent vector, if keys and values are made of one
    rotary: int | None = None  # elements of a query and key that rotary embedding rotates; None is all
    capped: bool = False  # a tanh caps the scores
    sinks: bool = False  # one extra score for each query, which attends to no position
    dropout: bool = False  # on the attention probabilities
    chunked: bool = False  # windows are chunks: a position attends only within its own chunk
    l2_norm: bool = False  # in layers with a window, queries and keys are L2-normalised without a learned scale
    shares_kv: bool = False  # reuses the keys and values of an earlier layer: computes and caches none
    temperature_tuning: bool = False  # in layers without a window, queries are scaled by their position
    causal: bool = True  # no position attends to later ones; a bidirectional attention has no KV cache
    longest: int | None = None  # most tokens in a sequence, if fewer than the learned positions
    indexer: Indexer | None = None
    compressor: Compressor | None = None
    ahead: int = 0  # prompt positions that the model itself prepends to each sequence
    relative: bool = False  # queries are also multiplied with projected relative positions (Dai et al. 2019)

    @property
    def value_size(self) -> int:
        """Elements of a value in one head."""
        return self.size if self.values is None else self.values

    @property
    def kept(self) -> int:
        """Elements of the KV cache for one token in one layer."""
        if self.shares_kv or not self.causal:
            return 0
        return self.keys * (self.size + self.value_size) if self.latent is None else self.latent


class Attending(NamedTuple):
    """Layers of one stack with equal attention; `name` holds ``{}`` for the layer numbers."""

    name: str
    start: int  # number of the first layer
    layers: int
    heads: Heads

    def windows(self) -> dict[int | None, int]:
        """Return the number of layers by window size; None is full attention.

        >>> Attending("h.{}", 0, 5, Heads(2, 2, 4, windows=((128, 1), (None, 1)))).windows()
        {128: 3, None: 2}
        """
        period = sum(int(run) for _, run in self.heads.windows)
        counts: dict[int | None, int] = {}
        offset = 0

        def before(layer: int, run: int) -> int:
            """Return how many layers below `layer` belong to the run at `offset`."""
            whole, rest = divmod(layer, period)
            return whole * run + min(max(rest - offset, 0), run)

        for window, run in self.heads.windows:
            if found := before(self.start + self.layers, int(run)) - before(self.start, int(run)):
                counts[window] = counts.get(window, 0) + found
            offset += int(run)
        return counts


class ChunkedScan(NamedTuple):
    """Chunked scan of a Mamba 2 layer."""

    reads: int  # elements of the layer's input for one token
    heads: int
    size: int  # elements of a token in one head
    rows: int  # state size: elements of the state for each channel of a head
    groups: int  # groups of heads that share B and C, the projections into and out of the state
    kernel: int  # kernel size of the convolution, in tokens
    chunk: int  # tokens of a chunk, which are multiplied with each other

    @property
    def inner(self) -> int:
        """Elements of a token in all heads."""
        return self.heads * self.size

    @property
    def convolved(self) -> int:
        """Channels of the convolution for one token: the heads' elements, B and C."""
        return self.inner + 2 * self.groups * self.rows

    def chunks(self, sequence: int) -> int:
        """Return the number of chunks of a sequence; the last one is padded."""
        return -(-sequence // int(self.chunk))


class DeltaRule(NamedTuple):
    """Chunked delta rule of a Gated DeltaNet layer."""

    heads: int
    keys: int  # elements of a key in one head
    values: int  # elements of a value in one head
    chunk: int = 64  # tokens of a chunk, which are multiplied with each other


class SequentialScan(NamedTuple):
    """Scan of a layer that processes token by token, without chunks."""

    multiplications: int  # per token, in matrix products; elementwise products are not counted


class Recurrence(NamedTuple):
    """State that one recurrent layer keeps of a sequence, independent of its length."""

    inputs: int  # elements of the convolution state: its last inputs
    state: int  # elements of the recurrent state
    source: str  # paper or code that states these sizes
    runs: ChunkedScan | DeltaRule | SequentialScan | None = None  # None: how it runs is not known
    wide: bool = True  # the recurrent state is in float32, whatever the model's dtype
    wide_inputs: bool = False  # the convolution state is in float32 too


class Recurring(NamedTuple):
    """Recurrent layers of one stack; `name` holds ``{}`` for the layer numbers."""

    name: str
    start: int  # number of the first layer
    layers: int
    keeps: Recurrence


class Mixing(NamedTuple):
    """Products of two activations, which no tensor's shape shows."""

    name: str  # of the mixing module, with {} for the layer numbers
    start: int  # number of the first layer
    layers: int
    multiplications: int  # for one token in one layer


# -- running parts ---------------------------------------------------------------------------------


class Norm(NamedTuple):
    """Normalisation."""

    # layer: LayerNorm | rms: RMSNorm, scaled in the model's dtype | rms32: scaled in float32
    # gemma: RMSNorm in float32, scaled by 1 + weight | bare: RMSNorm without a scale
    # own: RMSNorm, all in the model's dtype | centred: LayerNorm written out, not torch's kernel
    # layer32, centred32: the same, of a float32 copy
    kind: str
    width: int  # elements that share one mean
    times: int = 1  # groups of `width` elements in a token
    inner: bool = False  # inside an attention: normalises the output of a projection
    turned: bool = False  # inside an attention, after rotary embedding
    after: bool = False  # normalises the output of an attention or MLP


class AttentionRun(NamedTuple):
    """Attention, and how its projections read a token."""

    heads: Heads
    reads: int  # elements of the input for one token
    readers: int  # projections that read the input: three, or one fused query-key-value projection
    waists: tuple[int, ...] = ()  # elements of each low-rank bottleneck that further projections read

    @property
    def fused(self) -> bool:
        """Whether queries, keys and values are slices of one tensor."""
        return self.readers == 1 and not self.waists


class FeedForward(NamedTuple):
    """MLP of one position: up projection, activation, down projection."""

    reads: int  # elements of the input for one token
    inner: int
    activation: str  # transformers' name of the activation
    gated: bool = False  # the first up projection's activation gates a second up projection
    fused: bool = False  # gate and up projection are slices of one tensor


class Routing(NamedTuple):
    """Mixture of experts: each token is routed to `used` of the `experts`."""

    feed: FeedForward  # one expert
    experts: int
    used: int
    # softmax: over all experts | chosen: over the selected experts
    # sigmoid: in float32, selected by groups
    # scaled: every expert reads the token, scaled by a sigmoid, or by 0 if not selected
    scoring: str
    weights: str = "float32"  # dtype of the selected experts' weights; "own" is the model's dtype


class Projection(NamedTuple):
    """Matrix product outside attention and MLP, such as the LM head."""

    reads: int
    capped: int = 0  # elements of the result that a tanh caps


class Dropout(NamedTuple):
    """Dropout over the elements of a token."""

    width: int


class RunningPart(NamedTuple):
    """One kind of computation, in all layers that have it."""

    name: str  # with {} for the layer numbers
    layers: int
    what: Norm | AttentionRun | FeedForward | Routing | Projection | Dropout | ChunkedScan
    start: int | None = None  # number of the first layer, None outside of numbered blocks
    shares_input: bool = False  # an earlier part reads the same input
