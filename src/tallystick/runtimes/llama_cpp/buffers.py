"""Sizes of llama.cpp's buffers on each device: weights, KV cache and recurrent states."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from tallystick.core.anatomy import Attending
from tallystick.runtimes.engines import Rank, Settings
from tallystick.runtimes.llama_cpp.graph import COPIES, Graph, Layer
from tallystick.runtimes.llama_cpp.releases import release

STEP = 512  # --ubatch-size
PADDED = 256  # cells of a context are a multiple of this (src/llama-context.cpp, GGML_PAD(n_ctx, 256))
FLOAT = 4
HOST = -1  # the host's memory, instead of a device's number
# Types whose windows llama.cpp does not use: each layer keeps every token (src/llama-model.cpp).
WHOLE = ("phi3", "mistral", "mixtral", "starcoder2", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe")


class Part(NamedTuple):
    """The KV cache of equal layers in one place."""

    device: int  # its number, or HOST
    layers: int
    cells: int  # of all slots
    bytes: int
    windowed: bool

    @property
    def where(self) -> str:
        """The place, as the log names it."""
        return "CPU" if self.device == HOST else f"CUDA{self.device}"


def cells(tokens: int) -> int:
    """Return the cells of a context: a multiple of 256."""
    return -(-tokens // PADDED) * PADDED


class Buffers:
    """All buffers of one model. Sizes are in bytes; of devices, in a list by number."""

    def __init__(self, rank: Rank, settings: Settings) -> None:
        self.rank, self.release = rank, release(settings.version)
        self.fused = not settings.eager
        self.windowed = settings.hybrid and self.release.windows and rank.architecture not in WHOLE
        self._slots(settings)
        self._layers(settings)
        self.projector = settings.projector if self.layers else 0
        self.experts_on_host = settings.experts_on_host
        self._weights(settings)
        self.parts = tuple(self._caches(settings))
        self.states = self._states()
        self.graph = self._graph(settings)
        self.computes = [self._compute(number) for number in range(len(self.shares))]
        self.host_compute = self.graph.host()
        self.output = self.requests * rank.vocabulary * FLOAT

    def _graph(self, settings: Settings) -> Graph:
        """Return the graph of the longest step. A pipeline over devices keeps copies of its inputs.

        `pipeline_parallel` in src/llama-context.cpp.
        """
        several = len([share for share in self.shares if share]) > 1
        whole = self.layers > len(self.rank.layers) and not settings.kv_on_host and not self.moved
        outputs = min(self.requests, self.step) if self.release.few_outputs else self.step
        masks = sorted({(part.windowed, part.cells // self.streams) for part in self.parts})
        copies = COPIES if several and whole else 1
        return Graph(self.step, outputs, self.fused, self.release, self.rank, tuple(masks), copies)

    def _slots(self, settings: Settings) -> None:
        """Divide the context between the slots (src/llama-context.cpp, n_ctx_seq)."""
        self.requests = settings.max_num_seqs or self.release.slots
        shared = settings.unified if settings.unified is not None else settings.max_num_seqs is None
        self.streams = 1 if shared or not self.release.streams else self.requests
        self.each = cells(-(-(settings.max_model_len or 0) // self.streams))
        self.context = self.each * self.streams
        self.step = min(settings.max_num_batched_tokens or STEP, self.context)

    def _layers(self, settings: Settings) -> None:
        """Give each layer its device (src/llama-model.cpp, get_layer_buft_list)."""
        count = len(self.rank.layers)
        asked = count + 1 if settings.layers_on_device is None else settings.layers_on_device
        self.layers = min(asked, count + 1)  # the head is the last of them
        head = self.layers > count or (self.release.head_first and self.layers > 0)
        self.has_head = head
        self.first = count - min(self.layers - head, count) if self.release.head_first else max(count - self.layers, 0)
        self.shares = settings.shares or (1.0,)
        ends = [end / sum(self.shares) for end in accumulate(self.shares)]
        most = len(self.shares) - 1
        self.place = [
            HOST if number < self.first else min(bisect_right(ends, (number - self.first) / self.layers), most)
            for number in range(count)
        ]
        last = (count - self.first) / max(self.layers, 1)
        self.head_place = min(bisect_right(ends, last), most) if head else HOST

    @property
    def device(self) -> int:
        """All buffers on the first device."""
        return self.held(0)

    def held(self, number: int) -> int:
        """Return all buffers on a device."""
        return self.weights[number] + self.kept(number) + self.states[number] + self.computes[number][0]

    @property
    def host(self) -> int:
        """Weights and KV cache in the host's memory."""
        return self.host_weights + self.kept(HOST)

    def kept(self, number: int) -> int:
        """Return the bytes of the KV cache on a device, or in the host's memory."""
        return sum(part.bytes for part in self.parts if part.device == number)

    @property
    def mask_cells(self) -> int:
        """Cells of the attention masks: one mask for each kind of layers."""
        return self.graph.cells

    @property
    def per_token(self) -> int:
        """Bytes of one more cell in all layers without a window."""
        return sum(part.bytes // part.cells for part in self.parts if part.cells == self.context)

    def _weights(self, settings: Settings) -> None:
        """Split the weights: the last layers are on devices, the token embedding never is."""
        rank, head = self.rank, self.rank.head if self.has_head else 0
        self.weights = [0] * len(self.shares)
        for number, size in zip(self.place, rank.layers, strict=True):
            if number != HOST:
                self.weights[number] += size
        if head:
            self.weights[self.head_place] += head
        self.weights[0] += self.projector
        self.host_weights = sum(rank.layers[: self.first]) + rank.embedding
        self.host_weights += 0 if head or rank.tied else rank.head
        self.moved = self._moved(settings)
        for layer, size in self.moved.items():
            self.weights[self.place[layer]] -= size
        # The host maps the file from the first of its tensors to the last, with those between them.
        if self.moved:
            self.host_weights += sum(rank.layers[self.first : max(self.moved) + 1])

    def _moved(self, settings: Settings) -> dict[int, int]:
        """Return the bytes of each layer on a device whose tensors are in the host's memory."""
        moved: dict[int, int] = {}
        for layer, size in enumerate(self.rank.routed_layers[: self.experts_on_host]):  # --n-cpu-moe
            if layer >= self.first and size:
                moved[layer] = size
        for layer, name, size in self.rank.tensors:
            where = next((where for pattern, where in settings.overrides if re.search(pattern, name)), "")
            if where.upper().startswith("CPU") and layer >= self.first and layer >= self.experts_on_host:
                moved[layer] = moved.get(layer, 0) + size
        return moved

    def _caches(self, settings: Settings) -> list[Part]:
        found: dict[tuple[int, bool, int], list[int]] = {}
        for one in self.rank.attending:
            for number in range(int(one.start), int(one.start) + int(one.layers)):
                window = self._window(one, number)
                held = self._cells(window) * self.streams
                size = round(held * self._width(one, settings))
                if size:
                    place = HOST if settings.kv_on_host else self.place[number]
                    found.setdefault((place, window is not None, held), []).append(size)
        order = sorted(found, key=lambda key: (key[1], -key[2], key[0]))
        return [Part(key[0], len(found[key]), key[2], sum(found[key]), key[1]) for key in order]

    @cached_property
    def _computed(self) -> list[Layer]:
        """What each layer computes."""
        routed = self.rank.routed_layers
        layers = [Layer(None, None, number < len(routed) and routed[number] > 0) for number in range(len(self.place))]
        for one in self.rank.attending:
            for number in range(int(one.start), int(one.start) + int(one.layers)):
                window = self._window(one, number)
                mask = (window is not None, self._cells(window))
                layers[number] = layers[number]._replace(heads=one.heads, mask=mask)
        return layers

    def _window(self, one: Attending, number: int) -> int | None:
        """Return the window of a layer; None if it keeps every token."""
        if not self.windowed:
            return None
        window = next(iter(one._replace(start=number, layers=1).windows()))
        return None if window is None else int(window)

    def _width(self, one: Attending, settings: Settings) -> float:
        """Return the bytes of a cell in one layer: keys and values may have types of their own."""
        heads = one.heads
        values = settings.kv_width if settings.value_width is None else settings.value_width
        if heads.latent is not None:
            if self.release.latent:
                return int(heads.kept) * settings.kv_width
            return int(heads.queries) * (int(heads.size) * settings.kv_width + int(heads.value_size) * values)
        keys = int(heads.keys) * int(heads.size)
        return keys * settings.kv_width + (int(heads.kept) - keys) * values

    def _cells(self, window: int | None) -> int:
        """Return the cells of a layer in one stream; a window has room for one step more.

        `llama_kv_cache_iswa` in src/llama-kv-cache-iswa.cpp.
        """
        if window is None:
            return self.each
        held = window * (self.requests if self.streams == 1 else 1) + self.step
        padding = PADDED if self.fused else self.release.window_padding
        return min(-(-held // padding) * padding, self.each)

    def _states(self) -> list[int]:
        """Return the bytes of recurrent states, all in float32 (src/llama-memory-recurrent.cpp).

        They are where their layer is; the last of the list is the host's.
        """
        totals = [0] * (len(self.shares) + 1)
        for run in self.rank.recurring:
            inputs = int(run.keeps.inputs) * (self.rank.kernel - 1) // self.rank.kernel
            for number in range(int(run.start), int(run.start) + int(run.layers)):
                totals[self.place[number]] += (inputs + int(run.keeps.state)) * FLOAT * self.requests
        return totals

    def _compute(self, number: int) -> tuple[int, str]:
        """Return the bytes of the largest graph on a device, and what fills them."""
        head = number == self.head_place
        if number not in self.place and not head:
            return 0, ""
        copied = 0
        if self.head_place == HOST and number == self.place[-1]:  # a head on the host is copied for long steps
            head, copied = True, self.rank.embedding if self.rank.tied else self.rank.head
        layers = [layer for layer, place in zip(self._computed, self.place, strict=True) if place == number]
        return self.graph.device(layers, head=head, copied=copied)
