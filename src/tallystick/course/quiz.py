"""Ask how many parameters a model has, and judge the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tallystick import count
from tallystick.architectures import TEACHING, find
from tallystick.arguments import named
from tallystick.course.diagnosis import diagnosed
from tallystick.course.judge import judge, whole_number
from tallystick.course.judgement import Judgement, Trial
from tallystick.course.mistakes import Tried
from tallystick.course.terms import terms_of
from tallystick.course.words import described
from tallystick.course.written import Written
from tallystick.errors import BadInput, nearest, shown
from tallystick.presets import PRESETS

MODELS = tuple(name.replace("_", "-") for name in TEACHING)


@dataclass(frozen=True, repr=False)
class Question:
    """A model in words. Its string is the question; `judge` takes an answer.

    >>> quiz("embedding")
    embedding: An embedding has a vector of d_model numbers for each of vocab_size words.
    How many parameters? As an expression, or with vocab_size = 256, d_model = 5.
    """

    model: str
    words: str
    sizes: dict[str, Any]
    flags: dict[str, Any]  # those that differ from the model's defaults

    @property
    def text(self) -> str:
        """The question."""
        sizes = ", ".join(f"{name} = {value:,}" for name, value in self.sizes.items())
        return f"{self.model}: {self.words}\nHow many parameters? As an expression, or with {sizes}."

    def __repr__(self) -> str:
        return self.text

    def judge(self, answer: int | str | Callable[..., Any]) -> Judgement:
        """Judge a number, an expression or a function.

        Args:
            answer: parameters at `sizes`; or an expression in them as text, such as
                ``"2*vocab_size*d_model"``, or a function of them, which is tried at 100 sizes.

        Returns:
            The judgement, with hints if the answer is wrong.

        Raises:
            BadInput: if a text is neither a number nor an expression.

        >>> quiz("embedding").judge(1280)
        right
        >>> quiz("embedding").judge("vocab_size · d_model")
        right at each of 100 sizes
        """
        function = Written(answer) if isinstance(answer, str) else answer
        if callable(function) and not (isinstance(function, Written) and not function.names):
            return judge(self.model, function, **self.flags)
        value = whole_number(function() if isinstance(function, Written) else function)
        if value is None:
            raise BadInput(f"{shown(answer)} is not a whole number of parameters", code="bad-value")
        return self._number(value)

    def _number(self, value: int) -> Judgement:
        ledger = count({"model_type": self.model.replace("-", "_"), **self.sizes, **self.flags})
        error = value - ledger.total
        trials = (Trial(dict(self.sizes), value, error),)
        if not error:
            return Judgement(True, "right", trials)
        far = f"{abs(error):,} too {'many' if error > 0 else 'few'}"
        found = diagnosed([Tried(terms_of(ledger, ledger.model.symbols), ledger.model.symbols, error)], {})
        return Judgement(False, f"wrong: {value:,} is {far}", trials, found.hints, found.sentence)


@named
def quiz(model: str, /, **sizes: Any) -> Question:
    """Ask for the number of parameters of a teaching model.

    Args:
        model: one of `tallystick.models.teaching`, such as ``"bare-bones-lm"``.
        **sizes: sizes and flags other than those of the preset of that name.

    Returns:
        The question.

    Raises:
        BadInput: if there is no such model, or no model of these sizes.

    >>> quiz("bare-bones-lm", bias=False, tie_weights=True).judge("vocab_size*d_model")
    right at each of 100 sizes
    """
    name = str(model).replace("_", "-")
    if name not in MODELS:
        raise BadInput(
            f"unknown model {shown(model)}{nearest(name, MODELS)}; the quiz has {', '.join(MODELS)}",
            code="unknown-name",
        )
    ledger = count(name, **sizes)  # refuses sizes that make no model
    family = find(name.replace("-", "_"))
    assert family  # noqa: S101  # a name of TEACHING
    stated = {family.aliases.get(key, key): value for key, value in {**PRESETS[name], **sizes}.items()}
    flags = {key: stated.get(key, default) for key, default in family.keys.items() if isinstance(default, bool)}
    used = {key: int(ledger.model.symbols[key]) for key in family.keys if key in stated and key in ledger.model.symbols}
    changed = {key: value for key, value in flags.items() if value != family.keys[key]}
    return Question(name, described(name.replace("-", "_"), {**stated, **flags}), used, changed)
