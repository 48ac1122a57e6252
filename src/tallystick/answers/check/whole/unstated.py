"""Find the total of a text that calls no number its total: its last sum, or what it stores."""

from __future__ import annotations

from fractions import Fraction

from tallystick.answers.check.chain.rounding import ROUND
from tallystick.answers.check.chain.sides import LEAST_REFERENCE
from tallystick.answers.check.chain.variables import MOST_COUNTED
from tallystick.answers.check.claims import Claim, is_in_bytes, is_of_adapters, is_running, is_total, measures
from tallystick.answers.check.equations import Judge
from tallystick.answers.check.labels import tags_of
from tallystick.answers.check.whole.prose import in_prose
from tallystick.answers.check.whole.sections import (
    ONLY,
    about_of,
    active_in,
    adds,
    counts_embeddings,
    factors_of,
    is_matrix,
    is_near,
    is_of_section,
    is_part,
    largest_of,
    says_total,
    sums_rows,
    words_of,
)
from tallystick.derivations.arithmetic import Number, Operation

PER_SQUARE = 12  # weights of a layer, in squares of its width: 4 of attention and 8 of the MLP


def unstated(judge: Judge) -> int | None:
    """Return the total of a text that calls none of its numbers the total, or None."""
    ways = (
        way(judge)
        for way in (_of_adapters, _difference, _last_sum, _root, in_prose, _layers_alone, _estimated, _stored)
    )
    return next((place for place in ways if place is not None), None)


def running(judge: Judge) -> int | None:
    """Return the last of the sums so far that a column of a table has, or None."""
    lines = judge.derivation.statements
    if any(map(is_total, lines)):
        return None
    column = [place for place, line in enumerate(lines) if judge.claims[place] and is_running(line)]
    sums = [judge.so_far.at(place).stated for place in column]
    return column[-1] if len(column) > 1 and sums == sorted(sums) else None


def _of_adapters(judge: Judge) -> int | None:
    """Return the largest adapter number computed from earlier adapter numbers, or None.

    It serves a text about adapters, without a model.
    """
    if judge.quantities is not None:
        return None
    found = set()
    for place, (statement, claim) in enumerate(zip(judge.derivation.statements, judge.claims, strict=True)):
        if claim and adds(claim) and not is_in_bytes(statement) and (place in found or is_of_adapters(statement)):
            found |= {user for user in claim.users if judge.so_far.at(user).meant > claim.meant}
    ends = (place for place in found if not is_in_bytes(judge.derivation.statements[place]))
    largest = max(ends, key=lambda place: (judge.so_far.at(place).meant, place), default=None)
    if largest is not None:
        return largest
    return next((place for place in range(len(judge.claims)) if sums_rows(judge, place)), None)


def _difference(judge: Judge) -> int | None:
    """Return the difference that takes a part from the model's total, or None.

    It serves a text that explains one total by another: "163.0M - 38.6M = 124.4M".
    """
    if judge.quantities is None:
        return None
    whole = Number(Fraction(judge.quantities.total))
    for place, claim in enumerate(judge.claims):
        taken = claim.expression if claim is not None else None
        if isinstance(taken, Operation) and taken.symbols == ("-",) and taken.parts[0] == whole:
            return place
    return None


def _last_sum(judge: Judge) -> int | None:
    """Return the last equation if it adds or repeats layers and is the largest, else None.

    It serves a text without a stated total, and without a model. Bytes, operations and small
    numbers may follow it.
    """
    statements = judge.derivation.statements
    claims = [
        (place, claim)
        for place, claim in enumerate(judge.claims)
        if claim is not None and claim.stated >= LEAST_REFERENCE and not measures(statements[place])
    ]
    if not claims or judge.quantities is not None:
        return None
    place, last = claims[-1]
    statement = statements[place]
    largest = all(claim.meant < last.meant for _, claim in claims[:-1])
    about = about_of(statement)
    layers = "block" in tags_of(words_of(statement)) - {"one"} and _repeats(judge, last)  # "36 layers: 36 × 1.8B"
    plain = (adds(last) or layers or _is_estimate(last)) and not measures(statement) and not about - {"all", "block"}
    matrix = len(claims) == 1 and is_matrix(last) and not _is_estimate(last)
    section = is_part(judge, last) or is_of_section(judge, last, last.meant) or place in active_in(judge)
    section = section or (is_total(statement) and not says_total(judge, statement, last, about))
    return place if largest and plain and not matrix and not section else None


def _root(judge: Judge) -> int | None:
    """Return the title of the whole text if its number is judged by the branches below it, or None.

    Example: "GPT (25,083,776)", and below it "├── Token embedding: 3,200,000".
    """
    lines, claims = judge.derivation.statements, judge.claims
    if not (lines and lines[0].titles and claims[0]) or is_in_bytes(lines[0]):
        return None
    sums = any(one.line == lines[0].line and one.right == claims[0].stated for one in judge.equations)
    others = [one.meant for one, line in zip(claims[1:], lines[1:], strict=True) if one and not measures(line)]
    return 0 if sums and max(others, default=Fraction(0)) < claims[0].meant else None


def _layers_alone(judge: Judge) -> int | None:
    """Return the number of all layers, if a text counts nothing else of its model, or None."""
    found = [
        (place, claim)
        for place, claim in enumerate(judge.claims)
        if claim is not None and claim.match is not None and claim.match.is_layers
        if not (claim.match.one_layer or claim.match.stack)
        if claim.expression is not None and not measures(judge.derivation.statements[place])
        if not ONLY.search(judge.derivation.statements[place].plain)
    ]
    largest = largest_of(judge) if found else 0
    ways = (place for place, one in reversed(found) if one.meant >= largest and not counts_embeddings(judge, one))
    return next(ways, None)


def _estimated(judge: Judge) -> int | None:
    """Return the estimate 12·L·d² of a text that computes nothing larger, or None."""
    found = [place for place, one in enumerate(judge.claims) if one and _is_estimate(one) and is_near(judge, one)]
    largest = largest_of(judge) if found else 0
    return next((place for place in found if judge.so_far.at(place).meant >= largest), None)


def _stored(judge: Judge) -> int | None:
    """Return the largest number, if it is exact, stands alone and is stored in bytes, or None.

    Example: "= 2,004,177,600", and below it "2,004,177,600 parameters × 4 bytes".
    """
    counts = {
        place: claim
        for place, claim in enumerate(judge.claims)
        if claim is not None and not measures(judge.derivation.statements[place])
    }
    place = max(counts, key=lambda one: counts[one].stated, default=None)
    if place is None or not counts[place].adds or counts[place].expression is not None:
        return None
    if counts[place].stated % ROUND == 0:
        return None  # "12B parameters × 2 bytes" of a model that the text does not count
    stores = (judge.claims[user] for user in counts[place].users if is_in_bytes(judge.derivation.statements[user]))
    return place if any(one and counts[place].stated in factors_of(one) for one in stores) else None


def _is_estimate(claim: Claim) -> bool:
    """Return whether a claim is the estimate 12·L·d² of a whole model: "12 × 96 × 12288²"."""
    product = claim.expression
    if not (isinstance(product, Operation) and set(product.symbols) == {"*"}):
        return False
    counts = [part.value for part in product.parts if isinstance(part, Number)]
    squares = [part for part in product.parts if isinstance(part, Operation) and part.symbols == ("^",)]
    return PER_SQUARE in counts and len(counts) == 2 and max(counts) <= MOST_COUNTED and len(squares) == 1


def _repeats(judge: Judge, claim: Claim) -> bool:
    """Return whether a claim multiplies an earlier number by a count: "36 × 1.8B"."""
    sizes = factors_of(claim)
    earlier = {one.stated for one in judge.claims if one is not None and one is not claim}
    return len(sizes) == 2 and 1 < sizes[0] <= MOST_COUNTED and sizes[1] >= LEAST_REFERENCE and sizes[1] in earlier
