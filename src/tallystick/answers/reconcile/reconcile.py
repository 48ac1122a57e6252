"""Search for the conventions that make a claimed count true, the simplest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from tallystick.answers.parts import Tags, cells
from tallystick.answers.reconcile.claimed_count import Claim, read_claim
from tallystick.answers.reconcile.conventions import (
    PAPER,
    PUBLISHED,
    UNIQUE,
    Convention,
    Reading,
    adapters,
    conventions,
    listed,
    readings,
)
from tallystick.core.display import Displayed
from tallystick.core.ledger import Ledger

MOST_STEPS = 3
NEAREST = 3  # explanations shown if none gives the claim
STEP_WORTH = 10  # if none gives the claim, each further step must come 10 times nearer
EXACT = 6  # digits of a claim that adapters may explain: at some rank they explain any rounded claim
FAR = 20  # a count that misses the claim by more than 1/20 of the claim explains nothing
# Prefixes of conventions that may explain an exact match, but not a near miss. A claim that is
# nearly right does not count one block, another tokenizer's rows, or other units.
UNLIKELY = ("one-block", "vocabulary-", "bytes-", "binary-", "cut-off", "rounded-")
MOST_PRESETS = 3


@dataclass(frozen=True)
class Step:
    """One convention, and its effect on the count after the steps before it."""

    what: str
    parameters: int
    convention: str  # stable name of the convention
    by: tuple[str, ...]  # papers and libraries that count so


@dataclass(frozen=True)
class Explanation:
    """Steps that lead exactly from the unique count to `value`.

    `residual` is the unexplained rest: 0 if `value` rounds to the claim, otherwise the distance to
    the nearest count that does.
    """

    steps: tuple[Step, ...]
    value: int
    residual: int


@dataclass(frozen=True)
class Preset:
    """A preset that fits the claim, if no explanation for the requested model comes near."""

    name: str
    what: str  # how it is counted; "" if each tensor is counted once
    value: int

    def __str__(self) -> str:
        return f"{' '.join(filter(None, (self.name, self.what)))} ({self.value:,})"


@dataclass(frozen=True, repr=False)
class Reconciliation(Displayed):
    """A claimed count, compared with a model's count, in parameters.

    If some explanations give the claim, those with the fewest steps are kept, the most common
    first. If none does, the nearest are kept, each with its residual.

    >>> import tallystick
    >>> answer = tallystick.reconcile("gpt2", "163M")
    >>> answer.explained, answer.explanations[0].value == 124_439_808 + 50_257 * 768
    (True, True)
    """

    source: str
    claim: str  # as written
    low: int
    high: int  # the counts from low to high round to the claim
    actual: int  # unique parameters
    explanations: tuple[Explanation, ...]
    published: str | None = None  # the publication, if the claim is its known wrong figure
    presets: tuple[Preset, ...] = ()  # presets that fit the claim, if this model is far from it

    @property
    def explained(self) -> bool:
        """Whether any way of counting gives the claim."""
        return any(not explanation.residual for explanation in self.explanations)

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        best = self.explanations[0]
        counted = listed([step.what for step in best.steps])
        also = " also" if self.explained else ""
        known = f"; {self.claim} is{also} {self.published}" if self.published else ""
        if not self.explained and self.far:
            return (
                f"{self.claim} is not a way of counting {self.source} ({self.actual:,} parameters). {self._other_model}"
            )
        if not self.explained:
            least = "at least " if self.low < self.high else ""
            off = f"{least}{abs(best.residual):,} too {'many' if best.residual < 0 else 'few'}"
            nearest = f"; nearest: {counted}, {best.value:,}, {off}" if counted else f", {off}"
            return (
                f"no known counting convention gives {self.claim}:"
                f" {self.source} has {self.actual:,} parameters{nearest}{known}"
            )
        if not counted:
            return f"{self.claim} matches {self.source}: {self.actual:,} parameters ({UNIQUE}){known}"
        return (
            f"{self.claim} is {self.source} {counted}: {best.value:,};"
            f" every tensor counted once gives {self.actual:,}{known}"
        )

    @property
    def far(self) -> bool:
        """Whether even the nearest explanation misses the claim by more than 1/FAR of it."""
        return not self.published and 2 * FAR * abs(self.explanations[0].residual) > self.low + self.high

    @property
    def _other_model(self) -> str:
        """The presets that fit the claim, as a question."""
        if not self.presets:
            return "Is it another model?"
        return f"Is it another model: {' or '.join(map(str, self.presets))}?"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``tallystick reconcile``. Keys may be added, never renamed."""
        out = {**asdict(self), "answer": self.answer, "explained": self.explained}
        out["explanations"] = [
            {**item, "steps": [{**step, "by": list(step["by"])} for step in item["steps"]]}
            for item in out["explanations"]
        ]
        return out


def reconcile(ledger: Ledger, claim: str | int, presets: Callable[[], Iterable[Ledger]] = tuple) -> Reconciliation:
    """Find the conventions that make `claim` true of a ledger.

    A claim with few digits matches much by chance. So an explanation has at most as many steps as
    the claim has digits, and at most three. More steps are tried only if fewer do not suffice.

    Args:
        ledger: the model.
        claim: the claimed count, as text or an integer.
        presets: a function that returns the ledgers to try if the claim is far off.

    Raises:
        BadInput: for a claim that is not a number of parameters.
    """
    read = read_claim(claim)
    search = _Search(ledger, read)
    explanations: list[Explanation] = []
    for steps in range(min(MOST_STEPS, read.digits) + 1):
        level = search.explanations(steps)
        if reached := [one for one in level if not one.residual]:
            explanations = reached
            break
        explanations += level
    else:
        explanations = _nearest(explanations, read)
    published = PAPER if read.low <= PUBLISHED.get(ledger.total, 0) <= read.high else None
    answer = Reconciliation(
        ledger.source, read.text, read.low, read.high, int(ledger.total), tuple(explanations), published
    )
    return replace(answer, presets=_fitting(presets(), read)) if answer.far else answer


def _nearest(explanations: list[Explanation], claim: Claim) -> list[Explanation]:
    """Return the likely explanations that come near the claim, or only the count as it is."""
    as_it_is, *others = explanations
    shown = [as_it_is]
    likely = [one for one in others if not any(step.convention.startswith(UNLIKELY) for step in one.steps)]
    for one in sorted(likely, key=_distance):
        simpler = min(_distance(other) for other in shown if len(other.steps) < len(one.steps))
        if FAR * abs(one.residual) <= claim.value and _distance(one) <= simpler:
            shown.append(one)
    return sorted(shown, key=_distance)[:NEAREST] if len(shown) > 1 else shown


def _distance(explanation: Explanation) -> int:
    worth: int = STEP_WORTH ** len(explanation.steps)
    return abs(explanation.residual) * worth


def _fitting(ledgers: Iterable[Ledger], claim: Claim) -> tuple[Preset, ...]:
    """Return the presets that fit the claim as they are, or with a tied head counted twice."""
    once, twice = [], []
    for ledger in ledgers:
        total = int(ledger.total)
        if not claim.low / 2 <= total <= claim.high:  # a tied head at most doubles the count
            continue
        head = next((one for one in conventions(ledger) if one.name in ("head-twice", "own-head")), None)
        if claim.low <= total <= claim.high:
            once.append(Preset(ledger.source, "", total))
        elif head is not None and claim.low <= total + head.adds <= claim.high:
            twice.append(Preset(ledger.source, head.what, total + head.adds))
    return tuple(sorted(once or twice, key=lambda one: abs(one.value - claim.value))[:MOST_PRESETS])


class _Search:
    """Search over all sums of a given number of steps for one ledger."""

    def __init__(self, ledger: Ledger, claim: Claim) -> None:
        self.claim = claim
        self.total = int(ledger.total)
        self.cells = cells(ledger)
        read = list(readings(claim))
        usual = [reading for reading in read if reading.usual]
        others = [reading for reading in read if not reading.usual]
        self.ways: tuple[Convention | Reading, ...] = (*usual, *conventions(ledger), *others)
        self.few = len(self.ways)
        if claim.unit == 1 and claim.digits >= EXACT:
            self.ways += tuple(adapters(ledger))
        self.seen: set[tuple[object, ...]] = set()  # effects of simpler sums

    def explanations(self, steps: int) -> list[Explanation]:
        """Return the explanations with this many steps and a new effect, the most common first."""
        found = []
        ways = len(self.ways) if steps < MOST_STEPS else self.few
        for chosen in combinations(range(ways), steps):
            taken = self._steps([self.ways[place] for place in chosen])
            if taken is not None:
                value = self.total + sum(step.parameters for step in taken)
                residual = min(max(value, self.claim.low), self.claim.high) - value
                found.append((sum(chosen), abs(value - self.claim.value), Explanation(taken, value, residual)))
        return [explanation for *_, explanation in sorted(found, key=lambda one: one[:2])]

    def _steps(self, ways: list[Convention | Reading]) -> tuple[Step, ...] | None:
        """Turn ways of counting into steps, each with its own effect; None if they conflict."""
        steps: list[Step] = []
        left: set[Tags] = set()
        read: list[str] = []
        about: list[str] = []
        value = self.total
        for way in sorted(ways, key=lambda way: isinstance(way, Reading)):  # apply conventions before readings
            about += [way.about] if way.about else []
            if isinstance(way, Reading):
                read.append(way.name)
                by: tuple[str, ...] = ()
                parameters = way.apply(value) - value
            else:
                by = way.by
                parameters = way.adds - sum(self.cells[tags] for tags in way.leaves - left)
                left |= way.leaves
            value += parameters
            steps.append(Step(way.what, parameters, way.name, by))
        depends = {tags for way in ways if isinstance(way, Convention) for tags in way.of}
        added = frozenset(way.name for way in ways if isinstance(way, Convention) and way.adds)
        done = (frozenset(left), frozenset(about), added, value)
        clash = len(read) > 1 or len(set(about)) < len(about) or depends & left
        if clash or (steps and value <= 0) or done in self.seen:
            return None
        self.seen.add(done)
        return tuple(steps)
