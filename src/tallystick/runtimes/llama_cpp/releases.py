"""llama.cpp's builds: from which on a rule holds, by the pull request that brought it."""

from __future__ import annotations

from typing import NamedTuple

NEWEST = 11434  # whose sources are read
WINDOWS = 5432  # layers with a window keep no more than it (pull request 13194)
LATENT = 5135  # latent attention caches the latent alone (pull request 12801)
GATES = 5765  # a gated MLP's product has a place of its own (pull request 14158)
STREAMS = 5912  # slots have cells of their own, unless --kv-unified (pull request 14363)
SLOTS = 6926  # llama-server has four slots that share the cells, unless --parallel (pull request 16736)
WINDOW_PADDED = 6980  # windows are a multiple of 256 without FlashAttention too (pull request 17046)
EMBEDS = 7650  # a graph has an input for embeddings (src/llama-graph.cpp, build_inp_embd)
OUTPUTS = 9450  # llama-server computes the logits of one token of each slot (pull request 23861)
HALF_MASKS = 9400  # masks are in float16 with FlashAttention (src/llama-graph.cpp)
MIXED = 11340  # a graph has inputs for images (src/llama-graph.cpp, inp_mixed_embd)
HEAD_FIRST = 7400  # the head is the first layer on a device (src/llama-model.cpp, i_gpu_start)


class Release(NamedTuple):
    """The rules of one build."""

    build: int

    @property
    def windows(self) -> bool:
        """Layers with a window keep no more than it."""
        return self.build >= WINDOWS

    @property
    def latent(self) -> bool:
        """Latent attention caches the latent alone."""
        return self.build >= LATENT

    @property
    def gates(self) -> bool:
        """The product of a gated MLP has a place of its own."""
        return self.build >= GATES

    @property
    def streams(self) -> bool:
        """Slots have cells of their own."""
        return self.build >= STREAMS

    @property
    def slots(self) -> int:
        """llama-server's slots."""
        return 4 if self.build >= SLOTS else 1

    @property
    def half_masks(self) -> bool:
        """Masks are in float16 with FlashAttention."""
        return self.build >= HALF_MASKS

    @property
    def embeds(self) -> bool:
        """A graph has an input for embeddings."""
        return self.build >= EMBEDS

    @property
    def mixed(self) -> bool:
        """A graph has inputs for images."""
        return self.build >= MIXED

    @property
    def few_outputs(self) -> bool:
        """Logits are computed for one token of each slot."""
        return self.build >= OUTPUTS

    @property
    def window_padding(self) -> int:
        """Cells of a window without FlashAttention are a multiple of this."""
        return 256 if self.build >= WINDOW_PADDED else 32

    @property
    def head_first(self) -> bool:
        """The head is the first layer on a device."""
        return self.build >= HEAD_FIRST


def release(version: str | None) -> Release:
    """Return the rules of a build such as ``"b6500"``; of the newest, if it is not one.

    >>> release("b6500").slots, release(None).slots
    (1, 4)
    """
    number = (version or "").lower().removeprefix("b")
    return Release(int(number) if number.isdecimal() and len(number) < 9 else NEWEST)
