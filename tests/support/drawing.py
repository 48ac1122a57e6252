"""How small random configs are drawn, over each option of a type that changes a tensor.

A strategy draws a dictionary as config.json holds it. Keys are left out now and then, so that the
default of the type has to fill in; a layer count is always there, as the default would build a
model of full depth.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import HealthCheck, core, settings
from hypothesis import strategies as st
from hypothesis.internal import reflection
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import DrawFn, SearchStrategy

import measurements
from nesting import ABSENT, dotted  # noqa: F401 -- the strategies of nested configs draw in dotted keys

Config = dict[str, Any]

FLAG = st.booleans()
HEADS = st.integers(1, 6)
HEAD = st.sampled_from([2, 4, 6, 8])
INNER = st.integers(1, 40)
LAYERS = st.integers(1, 3)
# Above every type's padding token, which transformers wants inside the vocabulary.
VOCABULARY = st.integers(4, 60)
NULL_FLAG = st.sampled_from([True, False, None])


# More than CI needs, for a search after a change: TALLYSTICK_EXAMPLES=1000 draws anew in every run.
EXAMPLES = os.environ.get("TALLYSTICK_EXAMPLES")

# Else hypothesis draws now and then a number that stands in our code, in what of it this run has
# imported: other configs in a run of one file than in one of all, of which tests/measured/ knows
# none.
if EXAMPLES is None:
    providers._get_local_constants = lambda: providers._local_constants

# For each case of a test hypothesis reads and digests the test's source twice, 2 ms each: once will
# do, as the source is the same.
_digest, _source = core.function_digest, cache(inspect.getsource)
reflection._clean_source = cache(reflection._clean_source)


def _digest_of_case(function: Any) -> bytes:
    with patch.object(inspect, "getsource", _source):
        return _digest(function)


core.function_digest = _digest_of_case

# Which types a slow test takes: the same in every run, unless another seed is set. Printed at the
# end.
SEED = int(os.environ.get("TALLYSTICK_SEED", "0"))


def drawn(examples: int) -> settings:
    """How the tests draw: so many examples, the same in every run."""
    return settings(
        max_examples=int(EXAMPLES or examples),
        derandomize=EXAMPLES is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def some(types: Sequence[str], most: int) -> list[str]:
    """So many of the types, chosen by the seed; all of them in a search after a change.

    Each type has its own rank, by a digest: a new one takes the place of at most one other.
    """
    if EXAMPLES is not None:
        return list(types)
    return sorted(sorted(types, key=lambda name: measurements.digest(f"{SEED} {name}"))[:most])


# Made once of the same values, as hypothesis examines each strategy that it has not seen.
@cache
def sometimes(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """One of `values`, or no such key at all."""
    return st.one_of(values, st.just(ABSENT))


@cache
def nullable(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """One of `values`, null, or no such key at all."""
    return st.one_of(values, st.none(), st.just(ABSENT))


EVEN = st.sampled_from([2, 4, 6, 10, 16])  # rotary positions turn pairs
HEAD_DIM = sometimes(EVEN)
NO_KEY = st.just(ABSENT)


def divisors(number: int) -> list[int]:
    """What divides `number`: the counts of key and value heads that it can be grouped into."""
    return [part for part in range(1, number + 1) if number % part == 0]


def config(model_type: str, **values: Any) -> Config:
    """A config.json without the keys that were drawn to be absent."""
    present = {key: value for key, value in values.items() if value is not ABSENT}
    return {"model_type": model_type, "pad_token_id": None, **present}


@cache
def divisor(number: int) -> SearchStrategy[int]:
    return st.sampled_from(divisors(number))


@cache
def one_of_these(values: tuple[Any, ...]) -> SearchStrategy[Any]:
    return st.sampled_from(values)


# A complete config of a few thousand parameters of a type with Llama's keys.
COMMON = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 2,
}  # fmt: skip


class Family(NamedTuple):
    """What the tests know of one type: how its configs are drawn, and the rest only where it
    differs from the usual.
    """

    drawn: SearchStrategy[Config]
    small: Config = COMMON  # a complete config of a few thousand parameters, without its model_type
    lacking: Mapping[str, Any] = {}  # what the default lacks: transformers builds no model of it
    needs: Mapping[str, Config] = {}  # keys that matter only where others are set, with those
    others: Mapping[str, list[Any]] = {}  # of keys that are no flag and no integer: what else they may be, or with what
    experts: bool = False  # published one expert by one, or under other names than transformers builds
    beside: tuple[str, ...] = ()  # how names begin of tensors that are no attention, MLP, norm or embedding
    aliases: Mapping[str, str] = {}  # other names of keys, which its class takes without saying so
    any_width: bool = False  # heads need not divide the width, though no head size is stated
    attends: bool = True  # the ledger tells how it attends or scans
    # torch counts as many operations for each drawn config as we do: not where experts come in
    # groups, or heads in fours.
    counted: bool = True
    runs: Mapping[str, Any] = {}  # what a drawn config needs to run, not only to be built
    small_runs: Mapping[str, Any] = {}  # what the small config needs to run, after those of `runs`

    def renamed(self, model_type: str) -> Family:
        """The same of another type, whose configs have the same keys."""
        return self._replace(drawn=self.drawn.map(lambda values: {**values, "model_type": model_type}))


@st.composite
def gpt2_like(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """`n_embd` and the like, by those names or by the aliases that transformers takes."""
    names = {"n_embd": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers"}
    heads = draw(HEADS)
    sizes = {"n_embd": heads * draw(HEAD), "n_head": heads, "n_layer": draw(LAYERS)}
    named = {(names[key] if draw(FLAG) else key): size for key, size in sizes.items()}
    return config(
        model_type,
        **named,
        vocab_size=draw(sometimes(VOCABULARY)),
        n_inner=draw(nullable(INNER)),
        tie_word_embeddings=draw(sometimes(FLAG)),
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def llama_like(
    draw: DrawFn,
    model_type: str,
    *,
    head_dim: SearchStrategy[Any] = HEAD_DIM,
    kv: Any = None,
    null_kv: bool = False,
    whole: bool = False,
    **more: SearchStrategy[Any],
) -> Config:
    """Types with `hidden_size`, grouped key and value heads, and a head size that can be stated.

    `kv` is the type's default for key and value heads: None where that is null, ABSENT where they
    must be stated; `null_kv` says that they may be null though it is not; `whole` that heads must
    divide the width even where `head_dim` is stated.
    """
    heads = draw(HEADS)
    grouped = divisor(heads)
    of_type = grouped if kv is ABSENT else nullable(grouped) if kv is None or null_kv else sometimes(grouped)
    key_value = draw(of_type)
    if kv and key_value is ABSENT:
        heads = kv * draw(st.integers(1, 2))
    size = draw(head_dim)
    # Where the head size is not taken from the width, any width will do.
    spare = 0 if whole or size is None or size is ABSENT else draw(st.integers(0, 3))
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * draw(HEAD) + spare,
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=key_value,
        head_dim=size,
        tie_word_embeddings=draw(sometimes(FLAG)),
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def with_experts(
    draw: DrawFn, base: SearchStrategy[Config], of: str, alias: str, used: tuple[str, ...] = ("num_experts_per_tok",)
) -> Config:
    """A config with some experts, of which a token uses some; `of` counts them, by that name or its
    alias.

    `used` are the names of the key that says how many a token uses.
    """
    count = draw(st.integers(1, 9))
    return {
        **draw(base),
        draw(one_of_these((of, alias))): count,
        draw(one_of_these(used)): draw(st.integers(1, count)),
    }


def maybe_flags(*names: str) -> dict[str, SearchStrategy[Any]]:
    return {name: sometimes(FLAG) for name in names}


SIZE_OR_NULL = nullable(EVEN)
