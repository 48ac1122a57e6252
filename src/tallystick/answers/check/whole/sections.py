"""Tell the total of a section, a layer or half a model from the total of the whole model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from tallystick.answers.check.chain.rounding import LITTLE
from tallystick.answers.check.claims import OF_MODEL, Claim, is_in_bytes, is_total, measures
from tallystick.answers.check.equations import Judge
from tallystick.answers.check.labels import (
    EMBEDDINGS,
    KINDS,
    OF_ATTENTION,
    OF_EXPERTS,
    OF_MLP,
    OUTSIDE,
    names_part,
    nearest_tags,
    tags_of,
)
from tallystick.derivations.arithmetic import Number, Operation
from tallystick.derivations.statements import COUNT_OF, SIZE, TOTAL, Statement

# "Total Engram: 5.36T (~10%)", "together 1.05B, about 13 percent of all", "23.8M parameters just
# for embeddings"
_SHARE = re.compile(
    r"\d\s?[KMBT]?(?:\W{0,3}\([≈~]?\s?|,?\s(?:[^\W\d]{3,12}\s)?[≈~]?)(?P<percent>\d{1,2}(?:\.\d+)?)\s?(?:%|percent|Prozent|por ciento|pour cent)"
    r"\s?(?:\)|(?:of|von|der|des|del?|du)\b)"
)
_JUST_FOR = re.compile(r"\d\s?[KMBT]?\s+(?:param\w*|weights)\s+(?:just|only|alone) (?:for|in) [^=≈]*$", re.IGNORECASE)
MOST_PARAMETERS = 10**14  # of a model; a larger number counts operations
LEAST_ROWS = 2  # of a table, above their sum
MOST_SHARE = 95  # percent that a part may have of the whole
_RELATES = re.compile(r"[=≈:]")
_COLON = re.compile(r"[:\uff1a]")
# "85M parameters in blocks only"
ONLY = re.compile(
    r"(?<![-\w])(?:only|alone|solo|só|nur|allein|seulement|seuls?|только)(?![-\w])|(?<!不)[只仅]|だけ|만(?=\s|$)",
    re.IGNORECASE,
)
SO_FAR = re.compile(
    r"\b(?:so far|bislang|bisher|jusqu['’]ici|hasta ahora|até agora|fin qui|пока что)\b|到目前为止|目前为止|ここまで|지금까지",
    re.IGNORECASE,
)
_HALF = re.compile(
    r"\b(?:en|de)coder\b(?!.?only)|(?:编|編|解)[码碼]器|(?:エン|デ)コーダ|(?:인|디)코더|\b(?:де)?кодировщик|\b(?:de)?codificador\b"
    r"|\b(?:en|dé)codeur\b",
    re.IGNORECASE,
)  # of a model that has both
# Of the experts: "active_params", "激活参数"
ACTIVE = re.compile(
    r"(?<![^\W_])(?:acti(?:ve|vated|f|fs|vos?|vi)(?![^\W_])|aktiv|активн)|激活|活性|활성", re.IGNORECASE
)
_FROZEN = re.compile(r"\b(?:frozen|eingefroren\w*|gelé\w*|congelad\w*)\b|[冻凍][结結]|замороженн", re.IGNORECASE)
_TRAINED = re.compile(rf"{_FROZEN.pattern}|\b(?:trainable|trained)\b", re.IGNORECASE)
_REMARK = re.compile(r"\([^()]*\)\s*$")  # "Total params (without scales)" counts more than scales
_WITH = re.compile(
    r"\b(?:with|incl\w*|con|mit|avec|com|plus)\b.*|(?:再?加上?|包括|包含|[连連]同)[^，,：:]*[，,]", re.IGNORECASE
)  # "Total with embeddings", "加上嵌入层，总计约" is not an embedding
# "Total: ~176M parameters per layer"
PER_LAYER = re.compile(
    r"\d\s?(?:[KMB]|[mb]illion)?\s+(?:param\w*|weights?)?\s*(?:per |/ ?|in (?:each|one) )(?:\w+ )?(?:layer|block|mlp|ffn|head|expert|module)\b[^=≈]*$"
    r"|\d\s?[KMB万亿億]?\s?(?:个?参数|參數|パラメータ)?\s?/\s?[层層][^=≈]*$"
    r"|\d\s?\S{0,12}\s+(?:\S{4,12}\s+)?(?:на (?:блок|сло)|(?:pro|je) (?:schicht|block)|par (?:couche|bloc)|por (?:capa|bloque|camada|bloco))[^=≈]*$",
    re.IGNORECASE,
)
MOST_LABEL_WORDS = 6  # of a label; a longer one is a sentence
LEAST_OF_MODEL = 20  # a number below 1/20 of the model is not its total if the text has a larger one
MOST_BEHIND = 20  # lines of a section before its total
FAR = 2  # a sum off by over half the model's total is not the whole


def says_total(judge: Judge, statement: Statement, claim: Claim, about: frozenset[str]) -> bool:
    """Return whether a statement labelled as a total counts the whole model.

    A total of a dimension or of a part does not.
    """
    words, remark, inside = words_of(statement).partition("(")
    own = statement.clause if statement.column else statement.plain  # the head of its column
    share = _SHARE.search(own)
    some = ACTIVE.search(f"{words} {_RELATES.split(own)[0]}") or (share and float(share["percent"]) < MOST_SHARE)
    if (some or _is_of_sublayer(judge, about) or _JUST_FOR.search(own)) and not is_near(judge, claim):
        return False
    # "Of the weights of a block the MLP has 67% (56.7M of the total 85M)"
    aside = remark and ")" not in inside and len(words.split()) > MOST_LABEL_WORDS
    trained = _TRAINED.search(words) is not None and any(map(_FROZEN.search, judge.derivation.lines))
    halves = {match[0][:2].lower() for match in _HALF.finditer(words)}
    if aside or SIZE.search(words) or ((trained or len(halves) == 1) and not is_near(judge, claim)):
        return False
    around = _tags_around(statement)
    counts = COUNT_OF.search(statement.label) is not None and not is_near(judge, claim)
    if counts and (around - KINDS or (claim.expression is not None and is_matrix(claim))):
        return False  # "Parameters: 768 × 3072" of the MLP above
    # "- MLP: 768 × 3072 + …", and below it "- total 56,623,104"
    below = names_part(statement.items) and not adds(claim)
    unnamed = not (about or is_near(judge, claim) or OF_MODEL.search(words))
    if below or (unnamed and "one" in around and not _adds_embedding(claim)) or _is_of_layers(judge, claim, about):
        return False  # a table of one layer
    over = claim.expression is None and _is_behind(judge, statement, claim, around)
    part = unnamed and around - KINDS and not over
    if (part or ("block" in about and counts_embeddings(judge, claim))) and not adds(claim):
        return False
    return about <= {"all", "block"} or (adds(claim) and "one" not in about)


def _is_of_layers(judge: Judge, claim: Claim, about: frozenset[str]) -> bool:
    """Return whether a total is of layers alone: the sum of one, or "12 blocks in total"."""
    if claim.match is not None and claim.match.one_layer and not (about or is_near(judge, claim)):
        return True
    return "block" in about <= KINDS and counts_embeddings(judge, claim) and not _adds_embedding(claim)


def is_under_part(statement: Statement) -> bool:
    """Return whether a total without a name stands under a heading that names a part."""
    return not about_of(statement) and bool(_tags_around(statement) - KINDS)


def _tags_around(statement: Statement) -> frozenset[str]:
    """Return the tags of the nearest item or heading above a statement that has any."""
    headings = (*statement.items[:1], statement.heading, statement.section)
    return next((tags for words in headings if (tags := tags_of(words))), frozenset())


def _is_of_sublayer(judge: Judge, about: frozenset[str]) -> bool:
    """Return whether a total is of attention or experts, or of the MLP next to attention."""
    parts = about - KINDS
    if not parts or parts <= OF_ATTENTION or parts <= OF_EXPERTS:
        return bool(parts)
    return parts <= OF_MLP and any(tags_of(line.label) & OF_ATTENTION for line in judge.derivation.statements)


def is_bare(judge: Judge, statement: Statement, claim: Claim) -> bool:
    """Return whether a number is only called the parameters: "| Parameters | 28M |"."""
    bare = claim.expression is None and COUNT_OF.search(statement.label) is not None
    return bare and not is_near(judge, claim)


def _is_behind(judge: Judge, total: Statement, claim: Claim, around: frozenset[str]) -> bool:
    """Return whether a section is over before a total.

    Example: "FFN:", its parts, "MLP head: 102,400", "Total". No layer has an embedding or a head,
    and no head more than its parts.
    """
    lines = judge.derivation.statements
    end = judge.derivation.within(total.line, total.line).start
    begin = max(0, end - MOST_BEHIND)
    if around & OUTSIDE:
        above = zip(lines[begin:end], judge.claims[begin:end], strict=True)
        own = [one.meant for line, one in above if one is not None and line.heading == total.heading]
        return bool(own) and claim.meant > FAR * sum(own)
    for one in reversed(lines[begin:end]):
        if one.heading != total.heading:
            return False
        if tags_of(one.label) & OUTSIDE:
            return True
    return False


def is_of_section(judge: Judge, claim: Claim, largest: Fraction) -> bool:
    """Return whether a claim far from the model's total counts a section, such as the attention.

    No embedding and no head is among its terms, and it is one product, or the text counts
    something larger elsewhere.
    """
    if claim.term is None or is_near(judge, claim):
        return False
    if judge.quantities is None:
        tags = [nearest_tags(term.labels[:1]) for term in claim.term.leaves]
        named = all(one and one - KINDS <= OF_ATTENTION for one in tags)  # and their biases
        return named and len(tags) > 1 and any(one - KINDS for one in tags)
    terms = [claim.term._replace(labels=claim.term.labels[:1])]  # its heading may stand far above it
    for term in terms:
        about = nearest_tags(term.labels)
        # A bias of 768 has the size of a norm of the embedding.
        same = judge.quantities.of(term.value) if term.value > LITTLE * claim.meant else ()
        if (
            about & OUTSIDE
            or not judge.quantities.rows.isdisjoint(term.factors)
            or any(one.tags & OUTSIDE for one in same)
        ):
            return False
        terms += term.parts
    smaller = claim.meant < largest or bool(nearest_tags(claim.term.labels[:1]) - KINDS)  # "MHA in total"
    far_below = claim.meant * LEAST_OF_MODEL < judge.quantities.total and smaller
    return far_below or (claim.expression is not None and not adds(claim))


def is_below_part(judge: Judge, place: int, largest: Fraction) -> bool:
    """Return whether a total is far below the model's, and below a part that is computed later.

    Example: "Total: 67,108,864" of two embeddings, and then "24 × 12.6M = 302M" of one model.
    """
    claim = judge.so_far.at(place)
    if judge.quantities is None or claim.meant * FAR >= largest or is_near(judge, claim):
        return False
    parts = (one.meant for one in judge.claims[place + 1 :] if one and one.expression and not one.kind)
    return any(claim.meant * FAR < part <= judge.quantities.total for part in parts)


def is_part(judge: Judge, claim: Claim) -> bool:
    """Return whether a larger number of parameters is computed from a claim.

    Restatements and conversions to bytes do not count, even of a total; a sum of operations does.
    """
    lines = judge.derivation.statements
    converted = {
        place
        for place in claim.users
        if judge.claims[place - 1] is claim and lines[place - 1].line == lines[place].line and measures(lines[place])
    }
    users = ((lines[place], judge.claims[place]) for place in claim.users if place not in converted)
    return any(
        user and user.meant > claim.meant and (not measures(statement) or (adds(user) and not _is_product(user)))
        for statement, user in users
    )


def is_near(judge: Judge, claim: Claim) -> bool:
    """Return whether a claim is off by less than half the model's total."""
    total = judge.quantities.total if judge.quantities else 0
    if not total or abs(claim.meant - total) * FAR < total:
        return bool(total)
    return not claim.right and abs(claim.stated - total) * FAR < total  # "12 × 768 × 12 = 110M" of BERT


def adds(claim: Claim) -> bool:
    """Return whether a claim is a sum; a difference is not a total."""
    parts = claim.term.parts if claim.term is not None else ()
    return len(parts) > 1 and all(part.value > 0 for part in parts)


def _adds_embedding(claim: Claim) -> bool:
    """Return whether an addend of a sum is an embedding or the head, which no layer has."""
    parts = claim.term.parts if claim.term is not None else ()
    return any(tags_of(label) & OUTSIDE for part in parts for label in part.labels[:1])


def is_matrix(claim: Claim) -> bool:
    """Return whether a sum is one product with its bias: "768 × 768 + 768"."""
    parts = claim.term.parts if claim.term is not None else ()
    return sum(part.value > LITTLE * claim.stated for part in parts) < 2


def about_of(statement: Statement) -> frozenset[str]:
    """Return the tags of a label; for "Total: embedding + 12 × block" those before the colon."""
    label = words_of(statement) if is_total(statement) else statement.label
    if PER_LAYER.search(statement.clause):
        label = f"{label} per layer"
    before, *colon = _COLON.split(label, maxsplit=1)
    words = before if colon and TOTAL.search(before) else label
    if TOTAL.search(words):
        words = _WITH.sub("", _REMARK.sub("", words))
    return tags_of(words)


def words_of(statement: Statement) -> str:
    """Return the label, or else the heading, such as "Total per layer:" above its sum."""
    return statement.label or ("" if statement.name else statement.heading)


def counts_embeddings(judge: Judge, claim: Claim) -> bool:
    """Return whether a text counts embeddings that a claim does not use."""
    others = (one for one in judge.claims if one is not None and one is not claim)
    found = (one.match.component for one in others if one.match and not one.used)
    return any(component and component <= EMBEDDINGS for component in found)


def _is_product(claim: Claim) -> bool:
    """Return whether a claim is computed as a product: "66,965,776 × 4 = 267.9 MB"."""
    return isinstance(claim.expression, Operation) and claim.expression.symbols[0] in "*/"


def largest_of(judge: Judge) -> Fraction:
    """Return the largest number that may count parameters among those that a text computes."""
    lines = zip(judge.derivation.statements, judge.claims, strict=True)
    sizes = (claim.meant for line, claim in lines if claim is not None and claim.expression and not measures(line))
    return max((size for size in sizes if size <= MOST_PARAMETERS), default=Fraction(0))


def active_in(judge: Judge) -> frozenset[int]:
    """Return the statements of active parameters alone, and those that use them."""
    lines = enumerate(zip(judge.derivation.statements, judge.claims, strict=True))
    found = [(place, claim) for place, (line, claim) in lines if claim is not None and ACTIVE.search(line.label)]
    return frozenset(place for place, _ in found).union(*(claim.users for _, claim in found))


def sums_rows(judge: Judge, place: int) -> bool:
    """Return whether a row called a total is the sum of the rows of its table above it."""
    lines, claim = judge.derivation.statements, judge.claims[place]
    label = lines[place].label
    if claim is None or not TOTAL.search(label) or is_in_bytes(lines[place]):
        return False
    if claim.expression is None and "one" in tags_of(label):
        return False  # "| Total per layer | 113M |"
    rows = list[int]()
    for row in range(place - 1, -1, -1):
        if "|" not in lines[row].plain or lines[row + 1].line - lines[row].last > 1:
            break
        rows.append(row)
    rows = _without_parts(judge, rows)
    counted = len(rows) >= LEAST_ROWS and all(judge.claims[row] is not None for row in rows)
    section = is_of_section(judge, claim, claim.meant)
    return counted and not section and judge.so_far.sum(rows).meets(claim.written)


def _without_parts(judge: Judge, rows: Sequence[int]) -> list[int]:
    """Return rows, the last first, without the parts of another row.

    "2 × 156" multiplies the sum of the rows above it.
    """
    found, parts = list[int](), 0
    for number, row in enumerate(rows):
        if parts:
            parts -= 1
            continue
        found.append(row)
        product = claim.expression if (claim := judge.claims[row]) is not None else None
        if isinstance(product, Operation) and product.symbols == ("*",):
            above = [one.stated if (one := judge.claims[other]) is not None else 0 for other in rows[number + 1 :]]
            sums = list(accumulate(above))[1:]
            factors = [factor.value for factor in product.parts if isinstance(factor, Number)]
            parts = next((sums.index(factor) + 2 for factor in factors if factor in sums), 0)
    return found


def factors_of(claim: Claim) -> list[Fraction]:
    """Return the numbers of a product of two factors, the smaller first, or []."""
    product = claim.expression
    if not (isinstance(product, Operation) and product.symbols == ("*",)):
        return []
    return sorted(part.value for part in product.parts if isinstance(part, Number))
