"""Conventions of counting parameters: what each leaves out of the unique count or adds.

Each convention is data computed from a ledger. A paper or library is named only if its text or code
says that it counts so. The other conventions are named by what they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from tallystick.answers.lora import is_adapter, with_adapters
from tallystick.answers.parts import Tags, cells, kind_of
from tallystick.answers.reconcile.claimed_count import Claim
from tallystick.core import mtp
from tallystick.core.ledger import Ledger
from tallystick.derivations.arithmetic import trailing_zeros
from tallystick.errors import BadInput

UNIQUE = "every tensor counted once, embeddings included, as in Hoffmann et al. 2022, appendix F"

# Published figures that match no counting convention: a model's unique count -> the figure.
# OpenAI's README of GPT-2 says that they were wrong "due to an error".
PUBLISHED = {
    124_439_808: 117_000_000,
    354_823_168: 345_000_000,
    774_030_080: 762_000_000,
    1_557_611_200: 1_542_000_000,
}
PAPER = "the figure of GPT-2's paper (Radford et al. 2019, table 2), which OpenAI's README calls wrong"

_VOCABULARY = frozenset({"token_embedding", "head"})
_SCALED = frozenset({"attention", "mlp", "experts"})  # roles whose weights DeepSeek-V3's files store in FP8
_TILE = 128  # FP8 weights have one scale per tile of _TILE × _TILE
_PACKED = {"uint8": 2, "int32": 8}  # 4-bit values per element: bitsandbytes; GPTQ and AWQ
_TOKENIZERS = {50257: "GPT-2's", 32000: "Llama's"}  # vocabularies that many models pad
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_FEW = 16  # at most this many experts can be counted as a model each
_RANKS = (8, 16, 32, 64, 4, 128, 256, 2, 1)  # the most common ranks first
# Modules that get adapters: all, or those of LoRA's paper and PEFT's defaults, by module name.
_ADAPTED: dict[str, tuple[str, ...]] = {
    "all linear layers": (),
    "q_proj and v_proj": ("q_proj", "v_proj"),
    "attention": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "c_attn": ("c_attn",),
    "query_key_value": ("query_key_value",),
    "qkv_proj": ("qkv_proj",),
    "query and value": ("query", "value"),
}


class Convention(NamedTuple):
    """A way of counting that differs from counting each tensor once."""

    name: str
    what: str  # in words, such as "without the biases"
    by: tuple[str, ...] = ()  # papers and libraries that count so
    leaves: frozenset[Tags] = frozenset()  # the cells that it leaves out
    adds: int = 0
    of: frozenset[Tags] = frozenset()  # the cells that `adds` depends on: without them it adds nothing
    about: str = ""  # its subject; only one convention per subject can apply


class Reading(NamedTuple):
    """A way of writing a number down, other than by its suffix and rounding."""

    name: str
    what: str
    apply: Callable[[int], int]  # from the count to the written number
    about: str = ""  # its subject, as for a convention
    usual: bool = False  # more common than any convention


def conventions(ledger: Ledger) -> tuple[Convention, ...]:
    """Return the conventions that change this ledger's count, the most common first.

    Conventions with the same effect are merged.
    """
    counts = cells(ledger)
    found: dict[tuple[frozenset[Tags], int], Convention] = {}
    for one in (*_leaving(ledger, counts), *_adding(ledger, counts)):
        if not one.adds and (not one.leaves or one.leaves == counts.keys()):
            continue
        known = found.setdefault((one.leaves, one.adds), one)
        found[one.leaves, one.adds] = known._replace(by=tuple(dict.fromkeys(known.by + one.by)))
    return tuple(found.values())


def readings(claim: Claim) -> Iterator[Reading]:
    """Yield the ways in which a count can be written as this claim, the most common first."""
    zeros = trailing_zeros(claim.value)
    if 1 < claim.unit == 10**claim.scale < 10**zeros:  # 120B can be 117 billion; 120.0B cannot
        yield Reading("rounded-further", "rounded to fewer digits", _rounded(10**zeros), usual=True)
    if claim.unit > 1:
        yield Reading("cut-off", "truncated instead of rounded", _cut_off(claim.unit))
    for size in (2, 4):
        yield Reading(f"bytes-{8 * size}-bit", f"in bytes, at {size} bytes per parameter", _scaled(size, 1), "storage")
    if claim.scale:
        power = claim.scale // 3 * 10
        yield Reading("binary-units", f"with 2^{power} instead of 10^{claim.scale}", _scaled(10**claim.scale, 2**power))


def _rounded(unit: int) -> Callable[[int], int]:
    return lambda count: (count + unit // 2) // unit * unit


def _cut_off(unit: int) -> Callable[[int], int]:
    return lambda count: count // unit * unit


def _scaled(times: int, over: int) -> Callable[[int], int]:
    return lambda count: count * times // over


# -- what is left out -----------------------------------------------------------------------------


def _leaving(ledger: Ledger, counts: Iterable[Tags]) -> Iterator[Convention]:
    words = {"token_embedding": "token embedding", "position_embedding": "learned positions", "head": "head"}
    present = {entry.role for entry in ledger.parameters}  # includes a tied head, which is left out with the embedding

    def leave(name: str, what: str, leaves: Callable[[Tags], object], *by: str) -> Convention:
        return Convention(name, what, by, frozenset(tags for tags in counts if leaves(tags)))

    def without(name: str, roles: Sequence[str], *by: str) -> Convention:
        return leave(name, "without " + listed([words[role] for role in roles if role in present]), _any(*roles), *by)

    token, positions, head = words
    yield without("positions", [positions], "nanoGPT's get_num_params")
    yield without("kaplan", [token, positions, head], "Kaplan et al. 2020, section 1.3")
    yield leave("head", "as if the output head were tied", _any(head), "transformers' AutoModel")
    yield without("exclude-embeddings", [token, positions], "transformers' exclude_embeddings=True")
    yield without("vocabulary", [token, head])
    yield without("token-embedding", [token])
    yield leave("active", "without the experts that a token skips", _any("idle"))
    if any("idle" in tags for tags in counts) and any(
        head in tags for tags in counts
    ):  # a tied embedding is multiplied in full for each token
        what = "without the experts that a token skips and the token embedding"
        yield leave("active-no-lookup", what, _any("idle", token), "gpt-oss' model card")
    what = "without the experts that a token skips and the shared experts"
    yield leave("active-unshared", what, _any("idle", "shared"))
    yield leave("biases", "without biases", _any("bias"))
    yield leave("shifts", "without norm shifts", _any("shift"))
    yield leave("bias-free", "without biases and norm shifts", _any("bias", "shift"), "nanoGPT's bias=False")
    yield leave("norms", "without norms", _any("norm"), "Chowdhery et al. 2022 (PaLM), table 1")
    yield leave("vectors", "without biases and norms", _any("bias", "norm"))
    matrices, last = frozenset({"block", "matrix"}), frozenset({"last", "matrix"})
    what = "counting only the weight matrices inside the blocks"
    yield leave("block-matrices", what, lambda tags: not matrices <= tags, "Kaplan et al. 2020, table 1")
    yield leave("blocks", "counting only the blocks", lambda tags: "block" not in tags)
    yield leave("one-block", "counting only one block", lambda tags: "last" not in tags)
    what = "counting only the weight matrices of one block"
    yield leave("one-block-matrices", what, lambda tags: not last <= tags)
    yield leave("mtp", "without the layers for multi-token prediction", _any("mtp"), "DeepSeek-V3's 671B")
    yield leave("towers", "without the vision or audio tower", _any("tower"))
    yield leave("trainable", "counting only trained parameters", _any("frozen"))


def _any(*words: str) -> Callable[[Tags], frozenset[str]]:
    wanted = frozenset(words)
    return lambda tags: tags & wanted


# -- what is added --------------------------------------------------------------------------------


def _adding(ledger: Ledger, counts: dict[Tags, int]) -> Iterator[Convention]:
    yield from _of_vocabulary(ledger, counts)
    if ledger.filed and ledger.evidence.stored is not None:
        what = "with every stored element, buffers and copies included"
        yield Convention(
            "stored", what, ("the Hub",), adds=ledger.evidence.stored[0] - int(ledger.total), about="storage"
        )
    # Includes scales of packed weights if they are stored, but not if only a config describes them.
    held = (entry for entry in ledger.rolled if entry.buffer and (ledger.filed or entry.packed is None))
    buffers = sum(int(entry.size) * entry.copies for entry in held)
    yield Convention("buffers", "with the state dict's buffers", adds=buffers, about="storage")
    packed = [e for e in ledger.parameters if e.dtype in _PACKED and len(e.shape) > 1]
    if packed:
        inside = sum(int(e.unique) * e.copies * (_PACKED[e.dtype] - 1) for e in packed)
        yield Convention("unpacked", "with each of the packed 4-bit values counted", adds=inside, about="storage")
    else:
        matrices = frozenset(tags for tags in counts if {"block", "matrix"} <= tags)
        half = sum(counts[tags] for tags in matrices) // 2
        what = "with the blocks' matrices in 4 bits, two values to an element"
        yield Convention("packed", what, ("bitsandbytes",), adds=-half, of=matrices, about="storage")
    if not ledger.filed and ledger.model.architecture == "gpt2":
        symbols = ledger.model.symbols
        masks = int(symbols.get("n_layer", 0)) * int(symbols.get("n_positions", 0)) ** 2
        what = "with a causal mask for each block"
        yield Convention("causal-masks", what, ("GPT-2's published files",), adds=masks, about="storage")
    if not ledger.filed and ledger.model.architecture == "deepseek_v3":
        yield from _of_deepseek(ledger, counts)

    yield from _of_experts(ledger, counts)


def _of_experts(ledger: Ledger, counts: dict[Tags, int]) -> Iterator[Convention]:
    """Count a few experts as one model each: Mixtral's 8x7B is 46.7B, and 8 × 7B would be 56B."""
    symbols = ledger.model.symbols
    experts = next((int(symbols[key]) for key in _EXPERTS if key in symbols), 0)
    in_experts = sum(count for tags, count in counts.items() if "experts" in tags)
    if not 1 < experts <= _FEW or not in_experts:
        return
    total = int(ledger.total)
    one = total - in_experts + in_experts // experts
    billions = (one + 10**9 // 2) // 10**9
    every = frozenset(counts)
    if billions:
        what = f"as {experts} models of {billions}B each, which a name such as {experts}x{billions}B suggests"
        yield Convention("named", what, adds=experts * billions * 10**9 - total, of=every, about="experts")
    what = f"as {experts} models, each with all but the other experts"
    yield Convention("separate", what, adds=experts * one - total, of=every, about="experts")


def adapters(ledger: Ledger) -> Iterator[Convention]:
    """Yield LoRA adapters of each usual rank and target: with the model, and alone.

    PEFT prints these counts as `all params` and `trainable params`.

    Args:
        ledger: the model.
    """
    every = frozenset(cells(ledger))
    sizes = {}
    for where, targets in _ADAPTED.items():
        with suppress(BadInput):  # no linear layer, or none with such a name
            entries = with_adapters(ledger.as_described, 1, targets)
            sizes[where] = sum(int(entry.unique) * entry.copies for entry in entries if is_adapter(entry))
    for rank, (where, each) in product(_RANKS, sizes.items()):
        what, slug = f"adapters of rank {rank} on {where}", f"{rank}-{'-'.join(_ADAPTED[where]) or 'all-linear'}"
        yield Convention(f"adapters-{slug}", f"with {what}", ("PEFT",), adds=rank * each, about="adapters")
        what, by = f"counting only the {what}", ("PEFT's trainable params",)
        yield Convention(f"adapters-alone-{slug}", what, by, every, adds=rank * each, about="adapters")


def _of_vocabulary(ledger: Ledger, counts: Iterable[Tags]) -> Iterator[Convention]:
    """Yield conventions that count the head again, or a vocabulary of another size."""
    of = frozenset(tags for tags in counts if tags & _VOCABULARY)
    matrices = [entry for entry in ledger.parameters if entry.role in _VOCABULARY]
    if any(entry.role == "head" for entry in matrices):
        twice = sum(int(entry.size - entry.unique) * entry.copies for entry in matrices)
        what, by = "with the tied head counted twice", ("summing a state dict", "torchinfo up to 1.8.0")
        yield Convention("head-twice", what, by, adds=twice, of=of, about="vocabulary")
    else:  # the head is tied and stored under one name, or there is no head
        own = sum(int(entry.unique) * entry.copies for entry in matrices)
        yield Convention("own-head", "with a separate output head", adds=own, of=of, about="vocabulary")
    rows = next((int(e.shape[0]) for e in matrices if e.role == "token_embedding" and len(e.shape) == 2), 0)
    if not rows:
        return
    each = sum(int(entry.unique) // rows for entry in matrices if rows in entry.shape)
    sizes = {-(-rows // multiple) * multiple: f"padded to a multiple of {multiple}" for multiple in (128, 64)}
    sizes |= {known: f"as in {whose} tokenizer" for known, whose in _TOKENIZERS.items() if 0 < rows - known < 1024}
    for size, words in sizes.items():
        what = f"with {size:,} rows of vocabulary ({words})"
        yield Convention(f"vocabulary-{size}", what, adds=(size - rows) * each, of=of, about="vocabulary")


def _of_deepseek(ledger: Ledger, counts: dict[Tags, int]) -> Iterator[Convention]:
    """Yield what DeepSeek-V3's files hold in addition to the model that its config describes."""
    last = frozenset(tags for tags in counts if "last" in tags)
    matrices = [entry for entry in ledger.parameters if entry.role in _VOCABULARY]
    alone = mtp.parameters_of_one(ledger.parameters)
    copies = sum(int(entry.size) for entry in matrices)
    what, by = "with the layer for multi-token prediction", ("DeepSeek-V3's README",)
    yield Convention("with-mtp", what, by, adds=alone, of=last, about="mtp")
    what += " and its copies of embedding and head"
    yield Convention("with-mtp-copies", what, by, adds=alone + copies, of=last, about="mtp")
    scaled = [e for e in ledger.parameters if e.role in _SCALED and kind_of(e) == "matrix"]
    scales = sum(math.prod(map(int, e.shape[:-2])) * e.copies * _tiles(e.shape[-2:]) for e in scaled)
    what = f"with a scale for each {_TILE} × {_TILE} of the FP8 weights"
    yield Convention("fp8-scales", what, ("DeepSeek-V3's files",), adds=scales, of=last, about="scales")


def _tiles(shape: tuple[int, ...]) -> int:
    """Return the number of tiles that cover a matrix, partial tiles included."""
    return math.prod(-(-int(size) // _TILE) for size in shape)


def listed(words: Sequence[str]) -> str:
    """Join words as a list in a sentence.

    >>> listed(["token embedding", "learned positions", "head"])
    'token embedding, learned positions and head'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
