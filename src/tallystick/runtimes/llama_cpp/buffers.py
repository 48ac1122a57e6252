"""Sizes of llama.cpp's buffers: weights, KV cache, recurrent states, and the largest graph."""

from __future__ import annotations

from typing import NamedTuple

from tallystick.runtimes.engines import Rank, Settings

SLOTS = 1  # llama-server's --parallel before it chose 4 by itself
STEP = 512  # --ubatch-size
PADDED = 256  # cells of a context are a multiple of this (src/llama-context.cpp, GGML_PAD(n_ctx, 256))
PADDED_PLAIN = 32  # cells of a window without FlashAttention, in builds before b6980 (pull requests 7257 and 17046)
PADDED_ALWAYS = 6980
FLOAT = 4
# Types whose windows llama.cpp does not use: each layer keeps every token (src/llama-model.cpp).
WHOLE = ("phi3", "mistral", "mixtral", "starcoder2", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe")

# Hidden states alive at the largest attention, beyond the scores: of the logs of Llama-3.1-8B
# (560.00 MiB with 8,192 cells) and Pythia-2.8B (162.00 MiB with 2,048), whose queries, keys and
# values are slices of one tensor.
ALIVE, ALIVE_FUSED_QKV = 4, 6
ALIVE_FUSED = 5  # with FlashAttention, of gpt-oss-20b (1,672.08 MiB with steps of 2,048 tokens)


class Part(NamedTuple):
    """The KV cache of equal layers in one place."""

    where: str  # CUDA0 | CPU
    layers: int
    cells: int
    bytes: int


def cells(tokens: int) -> int:
    """Return the cells of a context: a multiple of 256."""
    return -(-tokens // PADDED) * PADDED


class Buffers:
    """All buffers of one model. Sizes are in bytes."""

    def __init__(self, rank: Rank, settings: Settings) -> None:
        self.rank = rank
        self.step = settings.max_num_batched_tokens or STEP
        self.requests = settings.max_num_seqs or SLOTS
        self.context = cells(settings.max_model_len or 0)
        self.step = min(self.step, self.context)
        self.fused = not settings.eager
        number = (settings.version or "").removeprefix("b")
        self.build = int(number) if number.isdecimal() else None
        count = len(rank.layers)
        asked = count + 1 if settings.layers_on_device is None else settings.layers_on_device
        self.layers = min(asked, count + 1)  # the head is the last of them
        # Builds that choose the layers by themselves put the head first (i_gpu_start in
        # src/llama-model.cpp).
        self.has_head = self.layers > count or (settings.layers_fitted and self.layers > 0)
        self.first = count - min(self.layers - (1 if settings.layers_fitted and self.layers else 0), count)
        self.experts_on_host = settings.experts_on_host
        self._weights()
        self.parts = tuple(self._caches(settings))
        self.states = self._states()
        self.compute, self.why = self._compute() if self.layers else (0, "")
        hidden = self.step * rank.hidden * FLOAT
        self.host_compute = self.step * self.mask_cells * FLOAT + hidden
        self.output = self.requests * rank.vocabulary * FLOAT

    @property
    def cache(self) -> int:
        """KV cache on the device."""
        return sum(part.bytes for part in self.parts if part.where != "CPU")

    @property
    def host(self) -> int:
        """Weights and KV cache in the host's memory."""
        return self.host_weights + sum(part.bytes for part in self.parts if part.where == "CPU")

    @property
    def device(self) -> int:
        """All buffers on the device."""
        return self.weights + self.cache + self.states + self.compute

    @property
    def mask_cells(self) -> int:
        """Cells of the attention masks: one mask for each kind of layers."""
        return sum({part.cells for part in self.parts})

    @property
    def per_token(self) -> int:
        """Bytes of one more cell in all layers without a window."""
        return sum(part.bytes // part.cells for part in self.parts if part.cells == self.context)

    def _weights(self) -> None:
        """Split the weights: the last layers are on the device, the token embedding never is."""
        first, head = self.first, self.rank.head if self.has_head else 0
        self.weights = sum(self.rank.layers[first:]) + head
        self.host_weights = sum(self.rank.layers[:first]) + self.rank.embedding
        self.host_weights += 0 if head or self.rank.tied else self.rank.head
        experts = sum(self.rank.routed_layers[first : self.experts_on_host])  # --n-cpu-moe: of the first layers
        self.weights -= experts
        # The host maps the file from the first of its tensors to the last, with those between them.
        self.host_weights += sum(self.rank.layers[first : self.experts_on_host]) if experts else 0

    def _caches(self, settings: Settings) -> list[Part]:
        found: dict[tuple[str, int], list[int]] = {}
        first = self.first
        for one in self.rank.attending:
            for number in range(int(one.start), int(one.start) + int(one.layers)):
                window = next(iter(one._replace(start=number, layers=1).windows()))
                held = self._cells(window) if settings.hybrid and self.rank.architecture not in WHOLE else self.context
                size = round(held * int(one.heads.kept) * settings.kv_width)
                if size:
                    found.setdefault(("CUDA0" if number >= first else "CPU", held), []).append(size)
        order = sorted(found, key=lambda key: (-key[1], key[0] != "CPU"))
        return [Part(where, len(found[where, held]), held, sum(found[where, held])) for where, held in order]

    def _cells(self, window: int | None) -> int:
        """Return the cells of a layer; a window has room for one step more.

        `llama_kv_cache_iswa` in src/llama-kv-cache-iswa.cpp.
        """
        if window is None:
            return self.context
        held = int(window) * self.requests + self.step
        if self.fused or self.build is None or self.build >= PADDED_ALWAYS:
            return min(cells(held), self.context)
        return min(-(-held // PADDED_PLAIN) * PADDED_PLAIN, self.context)

    def _states(self) -> int:
        """Return the bytes of recurrent states, all in float32 (src/llama-memory-recurrent.cpp).

        They are where their layer is.
        """
        total = 0
        for run in self.rank.recurring:
            inputs = int(run.keeps.inputs) * (self.rank.kernel - 1) // self.rank.kernel
            layers = max(int(run.start) + int(run.layers) - max(int(run.start), self.first), 0)
            total += layers * (inputs + int(run.keeps.state))
        return total * FLOAT * self.requests

    def _compute(self) -> tuple[int, str]:
        """Return the bytes of the largest graph, and what fills them."""
        rank, step = self.rank, self.step
        hidden = step * rank.hidden * FLOAT
        logits = step * rank.vocabulary * FLOAT + hidden
        if not self.has_head:  # a head on the host is copied: the device multiplies long steps
            logits += rank.embedding if rank.tied else rank.head
        masks = step * self.mask_cells * FLOAT
        if self.fused:
            attention = masks + masks // 2 + ALIVE_FUSED * hidden
            what = "masks in float32 and float16"
        else:
            queries = max((int(one.heads.queries) for one in rank.attending), default=0)
            alive = ALIVE_FUSED_QKV if rank.fused else ALIVE
            attention = queries * step * self.context * FLOAT + masks + alive * hidden
            what = f"scores of {queries} heads"
        if logits >= attention:
            return logits, f"logits and hidden states of {step:,} tokens in float32"
        return attention, f"{what}, {step:,} tokens × {self.context:,} cells, and hidden states"
