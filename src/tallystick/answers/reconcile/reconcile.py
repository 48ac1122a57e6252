"""Which ways of counting make a claimed count true: sums over a ledger's parts, the simplest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
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
from tallystick.core.ledger import Ledger

MOST_STEPS = 3
NEAREST = 3  # shown where none reaches the claim
STEP_WORTH = 10  # where none reaches it, a step must bring the count so many times nearer to be shown
EXACT = 6  # digits of a claim, all given, that adapters may explain: of some rank, they explain any that is rounded
FAR = 20  # a count that misses the claim by more than this part of it, a twentieth, explains nothing
# How the conventions begin that explain a count which is met, but not one that is missed: who nearly gives a number has
# not counted one block, the rows of another tokenizer, or in other units.
UNLIKELY = ("one-block", "vocabulary-", "bytes-", "binary-", "cut-off", "rounded-")
MOST_PRESETS = 3


@dataclass(frozen=True)
class Step:
    """One convention, and what it takes from the count or adds to it after those before it."""

    what: str
    parameters: int
    convention: str  # its stable name
    by: tuple[str, ...]  # who counts so


@dataclass(frozen=True)
class Explanation:
    """Steps that lead from the unique count to `value`, exactly.

    `residual` is what no step explains: 0 where `value` rounds to the claim, else what takes it to the nearest count that
    does.
    """

    steps: tuple[Step, ...]
    value: int
    residual: int


@dataclass(frozen=True)
class Preset:
    """A model of the table that a claim fits, where it fits the one that was asked about in no way."""

    name: str
    what: str  # how it is counted; "" for each tensor once
    value: int

    def __str__(self) -> str:
        return f"{' '.join(filter(None, (self.name, self.what)))} ({self.value:,})"


@dataclass(frozen=True)
class Reconciliation:
    """A claimed count beside the one that a model has, in parameters.

    Where explanations reach the claim, those with the fewest steps are here, the commonest first; where none does, the
    nearest, each with its residual.
    """

    source: str
    claim: str  # as written
    low: int
    high: int  # of the counts that round to the claim
    actual: int  # unique parameters
    explanations: tuple[Explanation, ...]
    published: str | None = None  # whose figure the claim is, where it is known to be no count at all
    presets: tuple[Preset, ...] = ()  # what the claim fits, where this model is far from it

    @property
    def explained(self) -> bool:
        """Whether any way of counting gives the claim."""
        return any(not explanation.residual for explanation in self.explanations)

    @property
    def answer(self) -> str:
        """The whole in one sentence."""
        best = self.explanations[0]
        counted = listed([step.what for step in best.steps])
        if not self.explained:
            least = "at least " if self.low < self.high else ""
            off = f"{least}{abs(best.residual):,} too {'many' if best.residual < 0 else 'few'}"
            nearest = f"; {counted} it has {best.value:,}, {off}" if counted else f", {off}"
            known = f"; {self.claim} is {self.published}" if self.published else ""
            if self.presets:
                known += f"; {self.claim} is {' or '.join(map(str, self.presets))}"
            return f"no convention gives {self.claim}: {self.source} has {self.actual:,} parameters{nearest}{known}"
        if not counted:
            return f"{self.claim} is what {self.source} has: {self.actual:,} parameters, {UNIQUE}"
        known = f"; {self.claim} is also {self.published}" if self.published else ""
        return (
            f"{self.claim} is {self.source} {counted}: {best.value:,};"
            f" each tensor counted once gives {self.actual:,}{known}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``tallystick reconcile``: keys are a contract, added to and never renamed."""
        out = {**asdict(self), "answer": self.answer, "explained": self.explained}
        out["explanations"] = [
            {**item, "steps": [{**step, "by": list(step["by"])} for step in item["steps"]]}
            for item in out["explanations"]
        ]
        return out


def reconcile(ledger: Ledger, claim: str | int, presets: Callable[[], Iterable[Ledger]] = tuple) -> Reconciliation:
    """Which conventions make `claim` true of a ledger; raises `BadInput` where it is no number of parameters.

    A claim of few digits fits much by chance: no explanation has more steps than the claim has digits, nor more than
    three, and none with more steps is looked for where fewer do. `presets` are asked for where the claim is far off.
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
    far = FAR * abs(explanations[0].residual) > read.value and not published
    fitting = _fitting(presets(), read) if far else ()
    return Reconciliation(
        ledger.source, read.text, read.low, read.high, int(ledger.total), tuple(explanations), published, fitting
    )


def _nearest(explanations: list[Explanation], claim: Claim) -> list[Explanation]:
    """Those that nearly reach the claim and that somebody may have meant, or the count as it is."""
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
    """The models that a claim fits as they are, or else with a tied head counted twice, as most tools do."""
    once, twice = [], []
    for ledger in ledgers:
        total = int(ledger.total)
        head = next((one for one in conventions(ledger) if one.name in ("head-twice", "own-head")), None)
        if claim.low <= total <= claim.high:
            once.append(Preset(ledger.source, "", total))
        elif head is not None and claim.low <= total + head.adds <= claim.high:
            twice.append(Preset(ledger.source, head.what, total + head.adds))
    return tuple(sorted(once or twice, key=lambda one: abs(one.value - claim.value))[:MOST_PRESETS])


class _Search:
    """All sums of so many steps over one ledger."""

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
        self.seen: set[tuple[object, ...]] = set()  # what simpler sums did already

    def explanations(self, steps: int) -> list[Explanation]:
        """Those of so many steps that do what none before them did, the commonest conventions first."""
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
        """The ways of counting as steps, each with what it changes after those before it; None where they clash."""
        steps: list[Step] = []
        left: set[Tags] = set()
        read: list[str] = []
        about: list[str] = []
        value = self.total
        for way in sorted(
            ways, key=lambda way: isinstance(way, Reading)
        ):  # a number is written down once it is counted
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
