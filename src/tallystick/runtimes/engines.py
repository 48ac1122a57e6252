"""Serving engines: the protocol of a runtime that plans its own memory at its start.

*Model × runtime × placement → bytes, and the lines that the engine logs.* The caller shards the
model; an engine knows its own rules: pages, buffers, defaults. An engine's rules name the file and
function of the engine's source; its measured constants name the logs that they are from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tallystick.core.anatomy import Attending, Recurring

GIB, MIB = 2**30, 2**20


class Experts(NamedTuple):
    """A layer's routed experts on one device."""

    used: int  # experts that one token is routed to
    inner: int  # intermediate size of one expert, after tensor parallelism
    reads: int
    packed: int = 0  # bytes of this device's experts in MXFP4, whose kernels unpack nothing


class Draft(NamedTuple):
    """What speculative decoding adds to one device: a draft model, an EAGLE head or MTP layers."""

    method: str  # draft_model | eagle | eagle3 | mtp
    weights: int  # bytes
    attending: tuple[Attending, ...]  # its layers, which have a KV cache of their own

    @property
    def layers(self) -> int:
        """Layers with a KV cache."""
        return sum(int(one.layers) for one in self.attending)


class Rank(NamedTuple):
    """The shard of a model that one device holds, and sizes of the whole model."""

    weights: int  # bytes, as loaded
    attending: tuple[Attending, ...]
    recurring: tuple[Recurring, ...]
    kernel: int  # tokens that the convolution of a recurrent layer reads
    hidden: int  # size of the residual stream
    inner: int  # largest intermediate size of an MLP on this device
    gated: bool  # that MLP has a gate
    vocabulary: int  # of the whole head
    architecture: str
    positions: int | None  # as the config states them
    stretch: float  # rotary scaling makes that many times as many positions
    experts: Experts | None
    width: int  # bytes of an activation
    first: bool = True  # it holds the token embedding
    last: bool = True  # it holds the head
    layers: tuple[int, ...] = ()  # bytes of each layer's weights
    embedding: int = 0  # bytes of the token and position embeddings
    head: int = 0  # bytes of the head and what else belongs to no layer; of a tied one, a copy
    shared: int = 0  # intermediate size of the experts that every token uses
    fused: bool = False  # queries, keys and values are slices of one tensor
    tied: bool = False  # the head is the token embedding
    reserved: int = 0  # bytes of the weights in the segments of torch's allocator
    attention: int = 0  # bytes of the attention's weights
    routed: int = 0  # bytes of the routed experts' weights
    routed_layers: tuple[int, ...] = ()  # of each layer
    tensors: tuple[tuple[int, str, int], ...] = ()  # llama.cpp's: layer, name in a GGUF file, bytes
    low_rank: int = 0  # bytes of one LoRA adapter of rank 1, on all linear layers
    adapters: int = 0  # bytes of the slots for LoRA adapters
    draft: Draft | None = None
    vision: tuple[tuple[str, int], ...] = ()  # sizes of the vision tower, by the keys of its config


class Settings(NamedTuple):
    """An engine's options. None is the engine's default."""

    version: str | None = None
    tp: int = 1
    pp: int = 1
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    memory_share: float | None = None
    kv_width: float = 2.0  # bytes of a cached element
    value_width: float | None = None  # of the values alone: llama.cpp's --cache-type-v
    kv_dtype: str = "auto"
    block_size: int | None = None
    eager: bool = False
    hybrid: bool = True  # windows free their pages
    kv_bytes: int | None = None  # the pool's size, instead of what the profile run leaves
    offload: int = 0  # bytes of the weights that stay in the host's memory
    layers_on_device: int | None = None  # llama.cpp's -ngl
    experts_on_host: int = 0  # llama.cpp's --n-cpu-moe: number of layers, from the first, with experts on the host
    kv_on_host: bool = False  # llama.cpp's --no-kv-offload
    unified: bool | None = None  # llama.cpp's --kv-unified: all slots share the cells
    shares: tuple[float, ...] = ()  # llama.cpp's --tensor-split: parts of the layers on each device
    projector: int = 0  # bytes of the towers for images and audio: llama.cpp's --mmproj
    overrides: tuple[tuple[str, str], ...] = ()  # llama.cpp's --override-tensor: patterns, and where
    layers_fitted: bool = False  # llama.cpp chooses the layers that fit: --gpu-layers auto
    length_fitted: bool = False  # and a shorter context
    free: int | None = None  # bytes free on the device before the engine starts
    tokens: int | None = None  # most tokens of the pool: SGLang's --max-total-tokens
    blocks: int | None = None  # pages of the pool: vLLM's --num-gpu-blocks-override
    states: int | None = None  # slots of recurrent states: SGLang's --max-mamba-cache-size
    dp: int = 1  # data parallel ranks; of SGLang, of its attention
    speculative: str = ""  # method of speculative decoding
    draft_tokens: int = 0  # tokens that it drafts at once
    prefix_caching: bool = False  # asked for: without, the engine's default
    state_dtype: str = "auto"  # of recurrent states: vLLM's --mamba-ssm-cache-dtype
    towers: bool = True  # the profile run has images


class Card(NamedTuple):
    """A device as an engine sees it."""

    name: str
    memory: int  # bytes, by its driver
    reserved: int = 0  # bytes of it that the driver keeps for each process


class LogLine(NamedTuple):
    """A line that the engine logs, without time stamp and process, and where its number is from."""

    text: str
    formula: str
    source: str


class Served(NamedTuple):
    """An engine's plan. Bytes are of one device, the first; tokens are of the smallest pool."""

    weights: int
    activations: int
    other: int  # memory outside of torch, and CUDA graphs if they are subtracted
    kv: int  # bytes available to the pool; negative if nothing is left
    kv_per_token: int
    kv_tokens: int
    concurrency: float
    blocks: int
    used: dict[str, int | float | str]  # options that the engine chose itself, as it names them
    lines: tuple[LogLine, ...]
    error: str = ""  # the error that ends its start, as the engine words it
    longest: int = 0  # tokens of the longest request that the pool holds
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    host: int = 0  # bytes of weights and KV cache in the host's memory


class Engine(Protocol):
    """A serving engine, and its releases."""

    @property
    def name(self) -> str:
        """Name that users know: ``"vllm"``."""

    @property
    def padded_vocabulary(self) -> int:
        """Rows of embedding and head are padded to a multiple of this."""

    @property
    def caches(self) -> Mapping[str, float | None]:
        """Formats of the KV cache, and bytes of an element; None is as wide as an activation."""

    @property
    def images(self) -> Sequence[str]:
        """Types of models whose largest images its profile run is known to have."""

    @property
    def strict(self) -> bool:
        """Whether a request may not be longer than the model's positions."""

    def release_of(self, version: str | None) -> str:
        """Return the version that is planned: the given one, or the default."""

    def loaded(self, rank: Rank, version: str | None, *, learned: bool) -> Rank:
        """Return a rank with what the engine adds to the weights as it loads them.

        Args:
            rank: one device's shard.
            version: of the engine.
            learned: the model has learned positions.
        """

    def serve(self, ranks: Sequence[Rank], settings: Settings, card: Card) -> Served:
        """Plan an engine's memory as it does at its start.

        Args:
            ranks: one device of each pipeline stage, in order.
            settings: the engine's options.
            card: the device.
        """

    def per_request(self, ranks: Sequence[Rank], settings: Settings, card: Card, tokens: int) -> float:
        """Return how many requests of this length the pool holds at the same time."""
