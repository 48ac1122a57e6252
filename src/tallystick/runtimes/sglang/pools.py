"""SGLang's pools: bytes of a token, of a recurrent state, and how the pools share the memory.

`DefaultPoolConfigurator` and `HybridSWAPoolConfigurator` in
`python/sglang/srt/model_executor/pool_configurator.py`, `_handle_max_mamba_cache` in
`python/sglang/srt/mem_cache/kv_cache_configurator.py`; until 0.5.12 all of it in
`model_runner_kv_cache_mixin.py` (`get_cell_size_per_token`, `set_num_tokens_hybrid_swa`,
`handle_max_mamba_cache`).
"""

from __future__ import annotations

from typing import NamedTuple

from tallystick.core.anatomy import Attending, Heads
from tallystick.runtimes.engines import Card, Rank, Settings

STATES = 0.9  # bytes of recurrent states for each byte of the KV cache: --mamba-full-memory-ratio
WINDOWED = 0.8  # tokens of windowed layers for each token of the others: --swa-full-tokens-ratio
SLOTS = 3  # state slots of a running request: MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO
GROUP = 128  # elements of the indexer's keys, or of a latent in 8 bits, that share a scale in float32
BLACKWELL = ("b200", "b300", "gb200", "gb300")  # its kernels keep no scales of a latent in 8 bits


class Token(NamedTuple):
    """Bytes of one token in all layers of a device."""

    keys: float
    values: float
    windowed: float  # of both, in the layers that have a pool of their own
    latent: bool

    @property
    def whole(self) -> float:
        """In all layers without such a pool."""
        return self.keys + self.values


class Pools(NamedTuple):
    """Tokens of the pools of one device."""

    tokens: int
    windowed: int  # tokens of the windowed layers' pool; 0 without one
    states: int  # slots of recurrent states
    states_bytes: int


def token_of(rank: Rank, settings: Settings, card: Card, windows: frozenset[str]) -> Token:
    """Return the bytes of one token."""
    keys = values = windowed = 0.0
    latent = False
    drafted = rank.draft.attending if rank.draft is not None else ()
    for one in (*rank.attending, *drafted):
        heads = one.heads
        if not heads.kept:
            continue
        if heads.latent is not None:
            latent = True
            keys += int(one.layers) * _latent(heads, settings, card)
            continue
        both = int(heads.keys) * settings.kv_width
        apart = _layers_with_window(one) if rank.architecture in windows and settings.hybrid else 0
        keys += (int(one.layers) - apart) * both * int(heads.size)
        values += (int(one.layers) - apart) * both * int(heads.value_size)
        windowed += apart * both * (int(heads.size) + int(heads.value_size))
    return Token(keys, values, windowed, latent)


def _layers_with_window(one: Attending) -> int:
    return sum(int(layers) for window, layers in one.windows().items() if window is not None)


def _latent(heads: Heads, settings: Settings, card: Card) -> float:
    """Return the bytes of a token's latent vector in one layer, with its indexer's key.

    `calculate_mla_kv_cache_dim`; the keys of an indexer are in 8 bits.
    """
    size = int(heads.latent or 0)
    if heads.indexer is None:
        return size * settings.kv_width
    index = int(heads.indexer.size)
    rotary = int(heads.rotary or 0)
    scaled = settings.kv_width == 1 and not any(name in card.name.lower() for name in BLACKWELL)
    kept = size - rotary + (size - rotary) // GROUP * 4 + 2 * rotary if scaled else size * settings.kv_width
    return kept + index + index // GROUP * 4


def state_of(rank: Rank) -> int:
    """Return the bytes of one request's recurrent states in all layers of a device."""
    total = 0
    for run in rank.recurring:
        inputs = int(run.keeps.inputs) * (rank.kernel - 1) // rank.kernel
        held = inputs * (4 if run.keeps.wide_inputs else rank.width)
        held += int(run.keeps.state) * (4 if run.keeps.wide else rank.width)
        total += int(run.layers) * held
    return total


def pools_of(available: int, token: Token, state: int, settings: Settings, page: int) -> Pools:
    """Divide the memory that is left between the pools.

    Args:
        available: bytes.
        token: bytes of one token.
        state: bytes of one request's recurrent states.
        settings: the engine's options.
        page: tokens of a page.
    """
    states = held = 0
    if state:
        part = available * STATES / (1 + STATES)
        states = settings.states if settings.states is not None else max(int((part - state) // state), 0)
        held = (states + 1) * state  # one slot pads
    each = token.whole + WINDOWED * token.windowed
    tokens = int((available - held) / each) if each else 0
    if settings.tokens is not None:
        tokens = min(tokens, settings.tokens)
    tokens = tokens // page * page
    windowed = int(tokens * WINDOWED) // page * page if token.windowed else 0
    return Pools(tokens, windowed, states, held)
