"""The public functions that explain a count: `count`, `formula`, `compare`, `reconcile` and more.

Each takes a source in any form, and imports what answers it when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tallystick.arguments import named
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, shown

if TYPE_CHECKING:
    from os import PathLike

    from tallystick.answers.check.check import Check
    from tallystick.answers.compare.compare import Comparison
    from tallystick.answers.formula import Formula
    from tallystick.answers.reconcile.reconcile import Reconciliation
    from tallystick.answers.ties.ties import Ties


@named
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
            - a factory: ``"package.module:factory"``;
            - a `Ledger`, which is returned as it is.
        part: ``"text"`` counts only the language model of a multimodal model, from its config, or
            for a folder from its weights. None counts the whole model.
        real: build a factory's model in real memory. By default it is built on the meta device,
            which takes no memory, if that gives the same tensors.
        **overrides: config keys that override the source's own; arguments of the factory.

    Returns:
        The ledger: every tensor, in elements and bytes, with totals, ties and notes.

    Raises:
        BadInput: if the source cannot be read or contradicts itself. The message is one line.

    >>> count("gpt2")
    <Ledger of gpt2: 124,439,808 parameters>
    >>> book = {"emb_dim": 768, "n_heads": 12, "n_layers": 12, "context_length": 1024}
    >>> count({**book, "vocab_size": 50257}).total
    163009536
    """
    return ledger_of(source, part, real, overrides)


@named
def formula(
    source: Any,
    /,
    *,
    part: str | None = None,
    real: bool = False,
    vary: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Formula:
    """Return the closed form of a count in the model's config keys.

    Args:
        source: as for `count`. With `vary`, a factory or ``"package.module:factory"``.
        part: as for `count`.
        real: as for `count`.
        vary: values of some of the factory's arguments. The formula is then derived from models
            built at these: ``{"n_embd": (64, 256, 32), "n_layer": "1:4", "bias": [True, False]}``.
            A tuple is a range from its first to its second number, in steps of the third. A list
            holds values.
        **overrides: as for `count`.

    Returns:
        The expression, its value, and each product in it.

    Raises:
        BadInput: as `count`; and if the factory's tensors follow no formula.

    >>> formula("gpt2").expression
    'vocab_size*n_embd + n_positions*n_embd + n_layer*(12*n_embd**2 + 13*n_embd) + 2*n_embd'
    """
    from tallystick.answers.formula import formula as derive

    if vary is None:
        return derive(ledger_of(source, part, real, overrides))
    if part is not None:
        raise BadInput("part is for a config, and vary for a factory: give one of them", code="conflicting-options")
    from tallystick.sources.factory.sweep import ledger_by_varying

    return derive(ledger_by_varying(source, vary, overrides))


@named
def compare(a: Any, b: Any, /, *, part: str | None = None, real: bool = False, **overrides: Any) -> Comparison:
    """Explain why `b` has more or fewer parameters than `a`: causes that sum to the gap.

    Args:
        a: as for `count`.
        b: as `a`.
        part: as for `count`, of both.
        real: as for `count`.
        **overrides: config keys that override both; for only one of them, pass its `Ledger`.

    Returns:
        The gap in parameters, its causes, and the tensors that differ.

    Raises:
        BadInput: if one cannot be read, or the two have nothing in common.

    >>> compare("gpt2", count("gpt2", tie_word_embeddings=False)).causes[0].what
    'lm_head.weight is no longer tied to transformer.wte.weight'
    """
    from tallystick.answers.compare.compare import compare as explain

    counted = isinstance(a, Ledger) != isinstance(b, Ledger)  # then the arguments are for the other one
    one, other = (
        source if counted and isinstance(source, Ledger) else ledger_of(source, part, real, overrides)
        for source in (a, b)
    )
    return explain(one, other)


@named
def reconcile(
    source: Any, claim: str | int, /, *, part: str | None = None, real: bool = False, **overrides: Any
) -> Reconciliation:
    """Find the ways of counting that give a claimed count, simplest first, as exact sums.

    Args:
        source: as for `count`.
        claim: parameters as people write them: ``"124M"``, ``"6.7B"``, ``"1.5e9"``,
            ``"123,550,272"`` or an integer. The last digit is assumed to be rounded, with a half
            rounded either way. An integer is exact unless it ends in six zeros.
        part: as for `count`.
        real: as for `count`.
        **overrides: as for `count`.

    Returns:
        The explanations, each a sum in parameters, and the answer in one sentence.

    Raises:
        BadInput: if the source cannot be read, or the claim is not a number of parameters.

    >>> [(step.what, step.parameters) for step in reconcile("gpt2", "163M").explanations[0].steps]
    [('with the tied head counted twice', 38597376)]
    """
    from tallystick.answers.reconcile.reconcile import reconcile as explain

    return explain(ledger_of(source, part, real, overrides), claim, _presets)


@cache
def _presets() -> tuple[Ledger, ...]:
    """Count every preset, once in a process."""
    from tallystick.presets import PRESETS

    return tuple(map(count, PRESETS))


@named
def ties(source: Any, /, *, part: str | None = None, **overrides: Any) -> Ties:
    """Return which tensors share storage, which should, and which ties were lost.

    Values are compared if the answer depends on them. A checkpoint's tensors are read in blocks,
    whatever their size; a factory's model is built in real memory.

    Args:
        source: as for `count`.
        part: as for `count`.
        **overrides: as for `count`.

    Returns:
        Groups of names, the verdict, and problems with their remedies.

    Raises:
        BadInput: as `count`.

    >>> ties("gpt2").groups[0].names, ties("gpt2").verdict
    (('transformer.wte.weight', 'lm_head.weight'), 'consistent')
    """
    from tallystick.answers.ties.ties import ties as judge

    return judge(ledger_of(source, part, True, overrides, keep=True))


@named
def check(
    text: str | PathLike[str],
    /,
    against: Any = None,
    *,
    part: str | None = None,
    real: bool = False,
    **overrides: Any,
) -> Check:
    """Find the wrong equations of a derivation, and what its total omits or counts twice.

    Args:
        text: the derivation itself, or the path of its file: a ``Path``, or a string without an
            equation.
        against: the model that it describes, as for `count`. None uses the model whose config the
            text states; of several, the one nearest to its total. If the text states none, only
            the arithmetic is checked.
        part: as for `count`, of `against`.
        real: as for `count`, of `against`.
        **overrides: config keys that override those of `against`.

    Returns:
        The verdict on each equation, and the corrections of the total.

    Raises:
        BadInput: if the text has no equation or cannot be read. The message is one line.

    >>> wrong = check("Token embedding: 50257 × 768 = 38,596,416", against="gpt2").equations[0]
    >>> wrong.correct, wrong.should_be, wrong.matches
    (False, 38597376, 'token embedding')
    """
    from tallystick.answers.check.check import check as judge
    from tallystick.answers.check.check import nearest
    from tallystick.answers.check.model.letters import letters
    from tallystick.answers.check.model.symbols import sizes
    from tallystick.core.budget import one_source
    from tallystick.derivations.reader import open_text, read_derivation
    from tallystick.derivations.statements import lines_of
    from tallystick.sources.pooled import with_pooler
    from tallystick.sources.stated import models

    if against is None and (overrides or part is not None):
        given = ", ".join([*overrides, *(["part"] if part is not None else [])])
        raise BadInput(f"{given} changes the model of `against`, and none is given", code="conflicting-options")
    ledger = None if against is None else ledger_of(against, part, real, overrides)
    source, content = open_text(text)

    def judged(ledger: Ledger | None) -> Check:
        keys = sizes(ledger) if ledger is not None else {}
        with one_source():  # budget of the text: the model has already been read
            keys |= letters(content, keys)
            derivation = read_derivation(content, source=source, known=keys)
            return judge(derivation._replace(lines=lines_of(content)), ledger, keys)

    if ledger is not None:
        return judged(with_pooler(ledger, content))
    with one_source():
        stated = models(content)
    return nearest([judged(model) for model in stated]) if stated else judged(None)


def ledger_of(source: Any, part: str | None, real: bool, overrides: Mapping[str, Any], *, keep: bool = False) -> Ledger:
    """Return the ledger of a source; a ledger is one already, and has no config to change."""
    if not isinstance(real, bool):
        raise BadInput(f"real is {shown(real)}, expected True or False", code="bad-value")
    if isinstance(source, Ledger):
        if overrides or part is not None:
            given = ", ".join([*overrides, *(["part"] if part is not None else [])])
            raise BadInput(
                f"a Ledger is counted already: {given} cannot change it; pass the source that it was counted from",
                code="unknown-key",
            )
        return source
    from tallystick.sources import read

    return read(source, overrides, part, real=real, keep=keep)
