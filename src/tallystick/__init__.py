"""Count the parameters of a language model exactly, and check its tied weights.

>>> import tallystick
>>> tallystick.count("gpt2").total
124439808
>>> tallystick.count("gpt2", tie_word_embeddings=False).total
163037184
"""

from __future__ import annotations

# First, so that Ctrl-C during the other imports ends the command cleanly too.
from tallystick import startup  # isort: skip

if startup.is_command():
    startup.prepare()

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tallystick.core.entries import Entry, Tie
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.version import __version__ as __version__

if TYPE_CHECKING:
    from os import PathLike

    from tallystick.answers.check.check import Check
    from tallystick.answers.compare.compare import Comparison
    from tallystick.answers.compute.compute import Compute
    from tallystick.answers.fit import Fit
    from tallystick.answers.formula import Formula
    from tallystick.answers.memory.memory import Memory
    from tallystick.answers.reconcile.reconcile import Reconciliation
    from tallystick.answers.ties.ties import Ties
    from tallystick.live.check import assert_tied
    from tallystick.live.optimizer import check_optimizer
    from tallystick.live.retie import retie
    from tallystick.live.watch import assert_kept, watch

__all__ = [
    "BadInput",
    "Entry",
    "Ledger",
    "Tie",
    "assert_kept",
    "assert_tied",
    "check",
    "check_optimizer",
    "compare",
    "compute",
    "count",
    "fit",
    "formula",
    "memory",
    "reconcile",
    "retie",
    "ties",
    "watch",
]


def count(source: Any, /, *, part: str | None = None, real: bool = False, **overrides: Any) -> Ledger:
    """Count the parameters of a model, and return its ledger.

    Args:
        source: one of

            - the name of a preset: ``"gpt2"``;
            - the path of a ``config.json``, of weights (``.safetensors``, ``.gguf``, ``.npz``, or a
              file that torch saved), of a shard index, or of a folder with any of these;
            - the address of such a file or folder: ``"hf://org/name@revision"``, ``"https://…"``,
              ``"s3://…"``, ``"gs://…"``. Of remote weights only the headers are fetched;
            - a dictionary of config values, a transformers config, or an ``nn.Module``;
            - a factory: ``"package.module:factory"``.
        part: ``"text"`` counts only the language model of a multimodal model, from its config, or
            for a folder from its weights. None counts the whole model.
        real: build a factory's model in real memory. By default it is built on the meta device,
            which takes no memory, if that gives the same tensors.
        **overrides: config keys that override the source's own; arguments of the factory.

    Raises:
        BadInput: if the source cannot be read or contradicts itself. The message is one line.

    >>> book = {"emb_dim": 768, "n_heads": 12, "n_layers": 12, "context_length": 1024}
    >>> count({**book, "vocab_size": 50257}).total
    163009536
    """
    from tallystick.sources import read
    from tallystick.sources.factory.on_meta import in_real_memory

    with in_real_memory(real):
        return read(source, overrides, part)


def formula(source: Any, /, *, vary: Mapping[str, Any] | None = None, **overrides: Any) -> Formula:
    """Return the closed form of a count in the model's config keys.

    Args:
        source: as for `count`, or a `Ledger`. With `vary`, a factory or
            ``"package.module:factory"``.
        vary: values of some of the factory's arguments. The formula is then derived from models
            built at these: ``{"n_embd": (64, 256, 32), "n_layer": "1:4", "bias": [True, False]}``.
            A tuple is a range from its first to its second number, in steps of the third. A list
            holds values.
        **overrides: as for `count`.

    >>> formula("gpt2").expression
    'vocab_size*n_embd + n_positions*n_embd + n_layer*(12*n_embd**2 + 13*n_embd) + 2*n_embd'
    """
    from tallystick.answers.formula import formula as derive

    if vary is not None:
        from tallystick.sources.factory.sweep import ledger_by_varying

        return derive(ledger_by_varying(source, vary, overrides))
    return derive(source if isinstance(source, Ledger) else count(source, **overrides))


def reconcile(source: Any, claim: str | int, /, **overrides: Any) -> Reconciliation:
    """Find the ways of counting that give a claimed count, simplest first, as exact sums.

    Args:
        source: as for `count`, or a `Ledger`.
        claim: parameters as people write them: ``"124M"``, ``"6.7B"``, ``"1.5e9"``,
            ``"123,550,272"`` or an integer. The last digit is assumed to be rounded, with a half
            rounded either way. An integer is exact unless it ends in six zeros.
        **overrides: config keys that override the source's own; arguments of the factory.

    Raises:
        BadInput: if the source cannot be read, or the claim is not a number of parameters.

    >>> [(step.what, step.parameters) for step in reconcile("gpt2", "163M").explanations[0].steps]
    [('with the tied head counted twice', 38597376)]
    """
    from tallystick.answers.reconcile.reconcile import reconcile as explain
    from tallystick.presets import PRESETS

    ledger = source if isinstance(source, Ledger) else count(source, **overrides)
    return explain(ledger, claim, lambda: map(count, PRESETS))


def memory(source: Any, /, *, device: Any = None, **options: Any) -> Memory:
    """Return the memory needed for inference or training, line by line.

    Args:
        source: as for `count`, or a `Ledger`. To override config keys, pass what `count` returns.
        device: the device that must hold it: a name such as ``"h100"``, bytes such as ``"24GB"``,
            ``"auto"``, or a mapping of figures (see `tallystick.answers.devices.device_of`).
        **options: ``mode``, ``dtype``, ``batch``, ``sequence``, ``kv_dtype``, ``optimizer``,
            ``precision``, ``attention``, ``recompute``, ``loss``, ``lora``, ``targets``: see
            `tallystick.answers.memory.memory.memory`.

    >>> memory("palm-540b", dtype="float16").to_dict()["weights_bytes"]
    1080708562944
    """
    from tallystick.answers.devices import device_of
    from tallystick.answers.memory.memory import memory as measure

    ledger = source if isinstance(source, Ledger) else count(source)
    return measure(ledger, device=None if device is None else device_of(device), **options)


def fit(source: Any, /, device: Any, **options: Any) -> Fit:
    """Return whether a model fits on a device, the largest batch, and what would make it fit.

    Args:
        source: as for `memory`.
        device: as for `memory`.
        **options: the options of `memory`.

    >>> fit("llama-3-8b", "rtx4090", sequence=8192).batch
    4
    """
    from tallystick.answers.devices import device_of
    from tallystick.answers.fit import fit as answer

    return answer(source if isinstance(source, Ledger) else count(source), device_of(device), **options)


def compute(
    source: Any, /, *, batch: int = 1, sequence: int | None = None, device: Any = None, **speed: Any
) -> Compute:
    """Return the FLOPs of a model's matrix products by part, and the time that they take.

    Args:
        source: as for `count`, or a `Ledger`. To override config keys, pass what `count` returns.
        batch: sequences in a batch.
        sequence: tokens in a sequence; by default the number of learned positions, or 4,096.
        device: the device that computes, as for `memory`.
        **speed: ``tokens`` of a run, a number or a string such as ``"300B"``; its ``mode``,
            ``"training"`` or ``"inference"``; and ``mfu``, a share of the device's peak, or
            ``tokens_per_second``: see `tallystick.answers.compute.throughput.rate`.

    Raises:
        BadInput: if the source cannot be read, or an option makes no sense.

    >>> compute("gpt2", sequence=1024).forward
    291648307200
    """
    from tallystick.answers.compute.compute import compute as reckon
    from tallystick.answers.devices import device_of

    ledger = source if isinstance(source, Ledger) else count(source)
    return reckon(
        ledger,
        batch=batch,
        sequence=sequence,
        device=None if device is None else device_of(device, any_memory=True),
        **speed,
    )


def ties(source: Any, /, **overrides: Any) -> Ties:
    """Return which tensors share storage, which should, and which ties were lost.

    Values are compared if the answer depends on them. A checkpoint's tensors are read in blocks,
    whatever their size; a factory's model is built in real memory.

    Args:
        source: as for `count`, or a `Ledger`.
        **overrides: as for `count`.

    >>> ties("gpt2").groups[0].names, ties("gpt2").verdict
    (('transformer.wte.weight', 'lm_head.weight'), 'consistent')
    """
    from tallystick.answers.ties.ties import ties as judge
    from tallystick.sources import read
    from tallystick.sources.factory.on_meta import in_real_memory

    if isinstance(source, Ledger):
        return judge(source)
    with in_real_memory():  # values are compared
        return judge(read(source, overrides, keep=True))


def compare(a: Any, b: Any, /, **overrides: Any) -> Comparison:
    """Explain why `b` has more or fewer parameters than `a`: causes that sum to the gap.

    Args:
        a: as for `count`, or a `Ledger`.
        b: as `a`.
        **overrides: config keys that override both; for only one of them, pass its `Ledger`.

    Raises:
        BadInput: if one cannot be read, or the two have nothing in common.

    >>> compare("gpt2", count("gpt2", tie_word_embeddings=False)).causes[0].what
    'lm_head.weight is no longer tied to transformer.wte.weight'
    """
    from tallystick.answers.compare.compare import compare as explain

    one, other = (source if isinstance(source, Ledger) else count(source, **overrides) for source in (a, b))
    return explain(one, other)


def check(text: str | PathLike[str], /, against: Any = None, **overrides: Any) -> Check:
    """Find the wrong equations of a derivation, and what its total omits or counts twice.

    Args:
        text: the derivation itself, or the path of its file: a ``Path``, or a string without an
            equation.
        against: the model that it describes, as for `count`, or a `Ledger`. None uses the model
            whose config the text states; of several, the one nearest to its total. If the text
            states none, only the arithmetic is checked.
        **overrides: config keys that override those of `against`.

    Raises:
        BadInput: if the text has no equation or cannot be read. The message is one line.

    >>> wrong = check("Token embedding: 50257 × 768 = 38,596,416", against="gpt2").equations[0]
    >>> wrong.correct, wrong.should_be, wrong.matches
    (False, 38597376, 'token embedding')
    """
    from tallystick.answers.check.check import check as judge
    from tallystick.answers.check.check import nearest
    from tallystick.answers.check.symbols import sizes
    from tallystick.core.budget import one_source
    from tallystick.derivations.reader import open_text, read_derivation
    from tallystick.derivations.statements import lines_of
    from tallystick.sources.stated import models

    ledger = against if against is None or isinstance(against, Ledger) else count(against, **overrides)
    source, content = open_text(text)

    def judged(ledger: Ledger | None) -> Check:
        keys = sizes(ledger) if ledger is not None else {}
        with one_source():  # budget of the text: the model has already been read
            derivation = read_derivation(content, source=source, known=keys)
            return judge(derivation._replace(lines=lines_of(content)), ledger, keys)

    if ledger is not None:
        return judged(ledger)
    with one_source():
        stated = models(content)
    return nearest([judged(model) for model in stated]) if stated else judged(None)


def __getattr__(name: str) -> Any:
    """Import the functions for live modules on first use: counting a config needs none of them."""
    if name in ("assert_kept", "assert_tied", "check_optimizer", "retie", "watch"):
        from tallystick import live

        return getattr(live, name)
    raise AttributeError(f"module 'tallystick' has no attribute {name!r}")
