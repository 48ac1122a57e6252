"""Find the projection that a tensor is (q, k, v, gate, up, down): by name, else by shape.

A name such as fc1 or w1 has different meanings in different libraries. Of three equally large
matrices, down is the one with the other orientation, or else the last. Of two, a matrix twice as
large as the other packs gate and up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tallystick.answers.compare.tensor_group import TensorGroup
from tallystick.core.entries import EMBEDDING_ROLES

# Each fused projection, with the projections that it packs.
FUSED = {"qkv": ("q", "k", "v"), "kv": ("k", "v"), "kv_b": ("k_b", "v_b"), "gate_up": ("gate", "up")}

# Prefixes and suffixes around the word for a projection: c_q, to_q, attn_q, q_proj, q_lin,
# ffn_up_exps.
_BEFORE = r"(?:(?:c|w|to|attn|ffn|proj|lin|linear|fc)_)?"
_AFTER = r"(?:_?(?:proj|projection|lin|linear|layer|w|exps|shexp|blocks))?"

_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "attention": (
        ("qkv", r"c_attn|w?_?qkv\w*|query_key_value|in_proj|to_qkv|attn_qkv|w_pack"),
        ("kv_b", rf"{_BEFORE}w?kv_b{_AFTER}"),
        ("k_b", rf"{_BEFORE}w?k_b{_AFTER}"),
        ("v_b", rf"{_BEFORE}w?v_b{_AFTER}"),
        ("kv", rf"{_BEFORE}(w?kv|key_value){_AFTER}"),
        ("q", rf"{_BEFORE}(w?qs?|query|queries){_AFTER}"),
        ("k", rf"{_BEFORE}(w?ks?|keys?){_AFTER}"),
        ("v", rf"{_BEFORE}(w?vs?|values?){_AFTER}"),
        ("o", rf"{_BEFORE}(w?o|out|output){_AFTER}|c_proj|proj|dense"),
    ),
    "mlp": (
        ("gate_up", rf"{_BEFORE}gate_up{_AFTER}|w13"),
        ("gate", rf"{_BEFORE}gate{_AFTER}"),
        ("up", rf"{_BEFORE}up{_AFTER}|c_fc|fc_in|dense_h_to_4h"),
        ("down", rf"{_BEFORE}down{_AFTER}|c_proj|fc_out|dense_4h_to_h"),
    ),
    "norm": (("q", r"(q|query)_?(layer)?norm"), ("k", r"(k|key)_?(layer)?norm")),
}
_WORDS["experts"] = _WORDS["mlp"]
_DENSE = {"intermediate": "up", "output": "down"}  # BERT's intermediate.dense and output.dense
_NUMBERED = {"w1": "gate", "w3": "up", "v1": "up", "w2": "down"}  # Llama's and DBRX's, if the sizes do not decide
_OF_NO_STREAM = re.compile(r"(^|\.)indexer\.")  # DeepSeek's indexer selects the tokens for attention


def projected(groups: Iterable[TensorGroup]) -> list[TensorGroup]:
    """Return the tensor groups, each with its projection as the slot."""
    groups = list(groups)
    by_size = _by_size(groups)
    return [
        group._replace(slot=_by_name(group) or by_size.get((group.role, group.trunk, group.word)) or _usual(group))
        for group in groups
    ]


def _by_name(group: TensorGroup) -> str | None:
    if _OF_NO_STREAM.search(group.name):
        return None
    if group.role == "mlp" and group.word == "dense":
        return _DENSE.get(group.trunk.rpartition(".")[2])
    words = _WORDS.get(group.role, ())
    return next((slot for slot, pattern in words if re.fullmatch(pattern, group.word, re.IGNORECASE)), None)


def _usual(group: TensorGroup) -> str | None:
    """Return the usual projection of a name such as w1, or None.

    Embeddings and heads have the slot "".
    """
    if group.role in EMBEDDING_ROLES:
        return ""
    return _NUMBERED.get(group.word.lower()) if group.role in ("mlp", "experts") else None


def _by_size(groups: Iterable[TensorGroup]) -> dict[tuple[str, str, str], str]:
    """Return projections of MLP matrices with unknown names, by role, module and word.

    A bias has the projection of its matrix.
    """
    modules: dict[tuple[str, str], dict[str, list[TensorGroup]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        if group.role in ("mlp", "experts") and group.kind == "matrix" and not group.buffer:
            modules[group.role, group.trunk][group.word].append(group)
    return {
        (*module, word): slot
        for module, matrices in modules.items()
        if not any(_by_name(ones[0]) for ones in matrices.values()) or len(matrices) == 3
        for word, slot in zip(matrices, _of_module(list(matrices.values())), strict=False)
    }


def _of_module(matrices: Sequence[Sequence[TensorGroup]]) -> Sequence[str]:
    """Return the projections of an MLP's two or three matrices, in order.

    Return () if the sizes do not fit an MLP.
    """
    sizes = [sum(group.size * group.copies for group in ones) for ones in matrices]
    if len(sizes) == 2 and sizes[0] == 2 * sizes[1]:
        return ("gate_up", "down")
    if len(sizes) == 2 and sizes[1] == 2 * sizes[0]:
        return ("down", "gate_up")
    if len(sizes) == 2 and sizes[0] == sizes[1]:
        return ("up", "down")
    if len(sizes) != 3 or len(set(sizes)) != 1:
        return ()
    inner = [ones[0].inner for ones in matrices]
    odd = [place for place in range(3) if inner.count(inner[place]) == 1]
    if len(odd) != 1 and [ones[0].word.lower() for ones in matrices] == ["w1", "w2", "w3"]:
        return ("gate", "down", "up")
    down = odd[0] if len(odd) == 1 else 2
    rest = iter(("gate", "up"))
    return ["down" if place == down else next(rest) for place in range(3)]
