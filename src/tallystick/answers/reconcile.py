"""Which ways of counting make a claimed count true: sums over a ledger's parts, the simplest first."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from tallystick.answers.claim import Claim, read_claim
from tallystick.answers.conventions import PAPER, PUBLISHED, UNIQUE, Convention, Reading, conventions, listed, readings
from tallystick.answers.parts import Tags, cells
from tallystick.ledger import Ledger

MOST_STEPS = 3
NEAREST = 3  # shown where none reaches the claim
STEP_WORTH = 10  # where none reaches it, a step must bring the count so many times nearer to be shown


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
            off = f"{abs(best.residual):,} too {'many' if best.residual < 0 else 'few'}"
            nearest = f"; {counted} it has {best.value:,}, {off}" if counted else f", {off}"
            known = f"; {self.claim} is {self.published}" if self.published else ""
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


def reconcile(ledger: Ledger, claim: str | int) -> Reconciliation:
    """Which conventions make `claim` true of a ledger; raises `BadInput` where it is no number of parameters.

    A claim of few digits fits much by chance: no explanation has more steps than the claim has digits, nor more than
    three, and none with more steps is looked for where fewer do.
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
        as_it_is = explanations[0]
        nearer = [one for one in explanations if _distance(one) <= _distance(as_it_is)]
        explanations = sorted(nearer, key=_distance)[:NEAREST]
    published = PAPER if read.low <= PUBLISHED.get(ledger.total, 0) <= read.high else None
    return Reconciliation(
        ledger.source, read.text, read.low, read.high, int(ledger.total), tuple(explanations), published
    )


def _distance(explanation: Explanation) -> int:
    worth: int = STEP_WORTH ** len(explanation.steps)
    return abs(explanation.residual) * worth


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
        self.seen: set[tuple[object, ...]] = set()  # what simpler sums did already

    def explanations(self, steps: int) -> list[Explanation]:
        """Those of so many steps that do what none before them did, the commonest conventions first."""
        found = []
        for chosen in combinations(range(len(self.ways)), steps):
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
        done = (frozenset(left), frozenset(about), value)
        clash = len(read) > 1 or len(set(about)) < len(about) or depends & left
        if clash or (steps and value <= 0) or done in self.seen:
            return None
        self.seen.add(done)
        return tuple(steps)
