"""Quantities of a model that people write down: by module, role and kind, per layer and in all.

>>> from tallystick import count
>>> found = Quantities(count("gpt2")).of(Fraction(7_077_888))[0]
>>> found.what
'attention output projection of 12 layers, without its bias'
>>> found.names
('transformer.h.*.attn.c_proj.weight',)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from math import log
from typing import NamedTuple

from tallystick.answers.check.labels import KINDS, SEVERAL, tags_of
from tallystick.answers.compare.tensor_group import TensorGroup
from tallystick.answers.compare.tensor_groups import tensor_groups
from tallystick.answers.parts import kind_of
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.core.tensor_names import template_of
from tallystick.derivations.arithmetic import Value

NAMED = {
    "token": "token embedding",
    "position": "position embedding",
    "head": "head",
    "q": "query projection",
    "k": "key projection",
    "v": "value projection",
    "qkv": "query, key and value projections",
    "o": "attention output projection",
    "attention": "attention",
    "gate": "gate projection of the MLP",
    "up": "up projection of the MLP",
    "down": "down projection of the MLP",
    "mlp": "MLP",
    "experts": "experts",
    "router": "router",
    "norm": "norms",
    "final": "final norm",
    "segment": "segment embedding",
    "pooler": "pooler",
}

_ROLES = {"token_embedding": "token", "position_embedding": "position"}
_PACKED = {"gate_up": ("gate", "up"), "qkv": ("q", "k", "v"), "kv": ("k", "v")}

VAGUE = Fraction(1, 20)  # relative rounding above which a number, such as 7B, is too vague to match

_SEGMENT = re.compile(r"token_type|segment")
_PARTLY = re.compile(
    r"\b(?:only|approx\w*|dominant|mostly|main|matri\w+|weights?|per (?:head|token|expert))\b|[≈~]", re.IGNORECASE
)


class Atom(NamedTuple):
    """The smallest quantity a text may count: one kind of tensor of one module, in all layers."""

    tag: str  # a key of NAMED, or the module's own name
    role: str
    kind: str  # matrix, bias, scale, shift or vector
    name: str  # with * for the layer index
    shape: tuple[int, ...]
    copies: int  # tensors
    layers: int  # 1 outside of layers
    parameters: int  # unique parameters
    final: bool  # whether it is a norm outside the layers
    experts: int = 1  # in each layer
    active: Fraction = Fraction(1)  # share of the experts that one token uses


class Quantity(NamedTuple):
    """Some atoms that people count together, over all layers or in one layer."""

    what: str
    parameters: int
    names: tuple[str, ...]
    atoms: frozenset[int]
    tags: frozenset[str]
    factors: tuple[int, ...]  # copies and shape of its only tensor; () for several tensors
    one_layer: bool = False
    tied_to: str = ""

    @property
    def component(self) -> frozenset[str]:
        """Tags of its component, without the kind of tensor and the number of layers."""
        return self.tags - KINDS

    @property
    def is_projection(self) -> bool:
        """Whether it is some, but not all, matrices of an attention or MLP module."""
        return len(self.component) > 1 and len(self.component & {"attention", "mlp", "experts"}) == 1


class Quantities:
    """All quantities of a ledger, indexed by their number of parameters."""

    def __init__(self, ledger: Ledger) -> None:
        self.total = ledger.total
        self.atoms = _atoms(ledger)
        self.tied = _tied(ledger)
        self.all: list[Quantity] = []
        self.whole: list[Quantity] = []  # over all layers
        self._by_number: dict[int, list[Quantity]] = {}
        self._seen: set[tuple[frozenset[int], int]] = set()
        self._collect()

    def of(self, number: Fraction, spread: Fraction = Fraction(0)) -> list[Quantity]:
        """Return the quantities with this many parameters, the most usual meaning first.

        Args:
            number: parameters.
            spread: largest allowed difference. If nonzero, only quantities over all layers match.
        """
        if not spread:
            return self._by_number.get(int(number), []) if number.denominator == 1 else []
        return [quantity for quantity in self.whole if abs(quantity.parameters - number) <= spread]

    def best(
        self,
        number: Fraction,
        labels: Sequence[str],
        factors: tuple[int, ...] = (),
        matched: Collection[Quantity | None] = (),
    ) -> Quantity | None:
        """Return the quantity that a text means by a number, or None if none has that number.

        Args:
            number: parameters.
            labels: texts that may name the quantity, nearest first.
            factors: the factors of the product that gave the number, in ascending order.
            matched: quantities that earlier lines stated; others are preferred.
        """
        about = next((tags for label in labels if (tags := tags_of(label)) - KINDS), frozenset())
        found = [quantity for quantity in self.of(number) if _may_be(quantity, about)]
        tied = (quantity for quantity in self.tied if quantity.parameters == number and quantity.tags <= about)
        return next(tied, None) or max(
            found,
            key=lambda quantity: (fit(quantity, labels, factors), quantity not in matched),
            default=None,
        )

    def stated(self, number: Value, labels: Sequence[str]) -> Quantity | None:
        """Return the quantity that a lone number states: the best match of its labels.

        Return None if the labels name nothing, or nothing whose number is within the rounding.

        Args:
            number: the stated value, with its bounds.
            labels: texts that may name the quantity, nearest first.
        """
        if number.high - number.low > VAGUE * abs(number.exact):
            return None
        named = [tags for label in labels if (tags := tags_of(label))]
        # "12 layers" under "Norms" are whole layers, if their number fits.
        for about in [*named[:1], *(tags for tags in named[1:] if tags - KINDS)]:
            found = [
                quantity
                for quantity in self.all
                if number.low <= quantity.parameters <= number.high
                and (quantity.component & about or not (quantity.component or about - KINDS))
            ]
            if found or about - KINDS:
                return max(found, key=lambda quantity: fit(quantity, labels), default=None)
        return None

    def whole_model(self, number: Value) -> Quantity | None:
        """Return the whole model if the number of a total fits it, else None."""
        return next((one for one in self.of(Fraction(self.total)) if number.low <= self.total <= number.high), None)

    def labelled(self, labels: Sequence[str]) -> list[Quantity]:
        """Return the quantities over all layers that the labels name, whatever their number."""
        wanted = next((tags for label in labels if (tags := tags_of(label) - KINDS)), None)
        return [quantity for quantity in self.whole if quantity.tags - KINDS == wanted]

    def meant(self, label: str, number: Fraction) -> Quantity | None:
        """Return the quantity that a label names: all of one component, in one layer or in all.

        Return None if it names nothing, or nothing for certain. If the label does not say how many
        layers, the quantity nearer to `number` is returned.
        """
        about = tags_of(label)
        if number <= 0 or not about - KINDS or _PARTLY.search(label):
            return None
        kinds = about & {"bias", "scale", "shift"}
        layers = {True} if "one" in about else {False} if "all" in about else {True, False}
        found = [
            quantity
            for quantity in self.all
            if quantity.tags - KINDS == about - KINDS
            and quantity.tags & {"bias", "scale", "shift"} == kinds
            and quantity.one_layer in layers
        ]
        largest = {quantity.one_layer: quantity for quantity in sorted(found, key=lambda found: found.parameters)}
        return min(largest.values(), key=lambda quantity: abs(log(quantity.parameters) - log(number)), default=None)

    # -- which there are --------------------------------------------------------------------------

    def _collect(self) -> None:
        atoms = self.atoms
        by_tag: dict[str, set[int]] = {}
        for place, atom in enumerate(atoms):
            by_tag.setdefault(atom.tag, set()).add(place)
        roles = {
            role: {place for place, atom in enumerate(atoms) if atom.role == role} for role in {a.role for a in atoms}
        }
        norms = roles.get("norm", set())
        in_layers = {place for place, atom in enumerate(atoms) if atom.layers > 1 or "*" in atom.name}
        self._put("the whole model", "", set(range(len(atoms))), ())
        for tag in ("token", "position", "segment", "head", "pooler"):
            self._add(NAMED[tag], by_tag.get(tag, set()), {tag})
        embeddings = set().union(*(by_tag.get(tag, set()) for tag in ("token", "position", "segment")))
        below = {place for place in roles.get("norm", set()) - in_layers if "embed" in atoms[place].name}
        self._add(
            "embeddings of tokens and positions", embeddings - by_tag.get("segment", set()), {"token", "position"}
        )
        self._add("embeddings", embeddings, {"token", "position", "segment"})
        self._add("embeddings with their norm", embeddings | below, {"token", "position", "segment", "norm"})
        if by_tag.get("head"):  # absent if the head is tied
            self._add("token embedding and LM head", by_tag.get("token", set()) | by_tag["head"], {"token", "head"})
        self._add("attention", roles.get("attention", set()), {"attention"})
        self._add("MLP", roles.get("mlp", set()), {"mlp"})
        self._add("experts", roles.get("experts", set()), {"experts"})
        self._experts(roles.get("experts", set()))
        self._add(
            "shared experts",
            {place for place, atom in enumerate(atoms) if "shared" in atom.name},
            {"experts", "shared"},
        )
        self._add("router", roles.get("router", set()), {"router"})
        for tags, words in (
            ("o", NAMED["o"]), ("q k v", NAMED["qkv"]), ("q", NAMED["q"]), ("k", NAMED["k"]), ("v", NAMED["v"]),
            ("k v", "key and value projections"), ("q o", "query and attention output projections"),
        ):  # fmt: skip
            self._union(tags.split(), words, by_tag, roles.get("attention", set()), "attention")
        for role in ("mlp", "experts"):
            for tags, words in (
                ("up", "up projection"), ("down", "down projection"), ("gate", "gate projection"), ("gate up", "gate and up projections"),
            ):  # fmt: skip
                self._union(
                    tags.split(),
                    f"{words} of the {'MLP' if role == 'mlp' else role}",
                    by_tag,
                    roles.get(role, set()),
                    role,
                )
        self._add("norms", norms, {"norm"})
        self._add("norms", norms & in_layers, {"norm", "block"})
        for place in sorted(norms & in_layers):
            same = {
                other for other in norms if atoms[other].name.rpartition(".")[0] == atoms[place].name.rpartition(".")[0]
            }
            self._add(f"norm {_module(atoms[place].name)}", same, {"norm", "block", "module"})
        self._add("norm of the embeddings", below, {"norm", "token"})
        outside = norms - in_layers - below
        one = len({atoms[place].name.rpartition(".")[0] for place in outside}) == 1
        self._add("final norm" if one else "norms outside of the layers", outside, {"norm", "final"})
        for tag in by_tag.keys() - NAMED.keys():
            self._add(tag, by_tag[tag], tags_of(tag))
        self._add(
            "attention and MLP" if not roles.get("experts") else "layers without their norms",
            in_layers - norms,
            {"attention", "mlp", "block"},
        )
        for kinds, words in (
            ({"matrix", "vector", "scale", "shift", "bias"}, ""),
            ({"matrix", "vector", "scale", "shift"}, ", without biases"),
            ({"matrix", "vector", "scale"}, ", without biases and norm shifts"),
            ({"matrix", "vector", "scale", "bias"}, ", without norm shifts"),
        ):
            places = {place for place in in_layers if atoms[place].kind in kinds}
            self._put("the blocks", words, places, {"block"})
        self._add("the model", set(range(len(atoms))), ())

    def _experts(self, places: set[int]) -> None:
        """Register one expert of one layer, and the experts that a token is routed to."""
        shares = {self.atoms[place].layers * self.atoms[place].experts for place in places}
        active = {self.atoms[place].active for place in places}
        if len(shares) == len(active) == 1 and (share := shares.pop()):
            self._register("one expert of one layer", places, {"experts", "one", "single"}, share=share)
            layers = {self.atoms[place].layers for place in places}
            if len(layers) == 1 and (used := active.pop()) and used < 1:
                self._register(
                    "active experts of one layer", places, {"experts", "one"}, share=int(layers.pop() / used)
                )

    def _union(self, tags: list[str], words: str, by_tag: dict[str, set[int]], within: set[int], role: str) -> None:
        if all(by_tag.get(tag, set()) & within for tag in tags):
            known = {"qkv"} if tags == ["q", "k", "v"] else set(tags)
            self._add(words, set().union(*(by_tag[tag] for tag in tags)) & within, {role, *known})

    def _add(self, phrase: str, places: set[int], tags: Iterable[str]) -> None:
        """Register some atoms by kind, then as a whole."""
        of = {
            kind: {place for place in places if self.atoms[place].kind == kind} for kind in ("bias", "scale", "shift")
        }
        single = len({self.atoms[place].name.rpartition(".")[0] for place in places}) == 1
        if of["bias"] and places - of["bias"]:
            self._put(phrase, ", without its bias" if single else ", without biases", places - of["bias"], tags)
            self._put(f"{phrase.removesuffix('s')} biases", "", of["bias"], {*tags, "bias"})
        if of["scale"] and of["shift"] and places == of["scale"] | of["shift"]:
            for kind in ("scale", "shift"):
                self._put(f"{phrase.removesuffix('s')} {kind}s", "", of[kind], {*tags, kind})
        self._put(phrase, "", places, tags)

    def _put(self, phrase: str, kind: str, places: set[int], tags: Iterable[str]) -> None:
        layers = {self.atoms[place].layers for place in places if "*" in self.atoms[place].name}
        count = layers.pop() if len(layers) == 1 else 0
        inside = all("*" in self.atoms[place].name for place in places)
        if count and inside:
            of = f" of {count} layers" if count > 1 else " of 1 layer"
            what = f"{count} layers" if phrase == "the blocks" else phrase + of
            self._register(f"{what}{kind}", places, tags)
            if count > 1:
                what = "one layer" if phrase == "the blocks" else f"{phrase} of one layer"
                self._register(f"{what}{kind}", places, {*tags, "one"}, share=count)
        else:
            self._register(f"{phrase}{kind}", places, tags)

    def _register(self, what: str, places: set[int], tags: Iterable[str], *, share: int = 1) -> None:
        key = (frozenset(places), share)
        parameters = sum(self.atoms[place].parameters for place in places)
        if not parameters or key in self._seen:
            return
        self._seen.add(key)
        factors: tuple[int, ...] = ()
        atom = max((self.atoms[place] for place in places), key=lambda atom: atom.parameters)
        if len({self.atoms[place].tag for place in places}) == 1 and len(places) <= 2:
            factors = tuple(sorted(size for size in (atom.copies // share, *atom.shape) if size != 1))
        names = tuple(dict.fromkeys(self.atoms[place].name for place in sorted(places)))
        quantity = Quantity(what, parameters // share, names, frozenset(places), frozenset(tags), factors, share > 1)
        self.all.append(quantity)
        self._by_number.setdefault(quantity.parameters, []).append(quantity)
        if share == 1:
            self.whole.append(quantity)


def _may_be(quantity: Quantity, about: frozenset[str]) -> bool:
    """Return whether a label's tags do not contradict a quantity."""
    asked, held = about - KINDS, quantity.tags - KINDS
    return not (asked and held) or bool(asked & held)


def fit(quantity: Quantity, labels: Sequence[str], factors: tuple[int, ...] = ()) -> int:
    """Return a score of how well a quantity fits the labels and the factors of a product.

    Args:
        quantity: the candidate.
        labels: texts that may name it, nearest first; nearer labels weigh more.
        factors: the factors of the product, in ascending order.
    """
    score = 0
    named = False
    for weight, label in zip((12, 4, 2, 1), filter(None, labels), strict=False):
        wanted = tags_of(label)
        about = quantity.tags
        score += weight * (
            2 * len(wanted & about) - 2 * len((wanted - about) - {"block", "all"}) - _unasked(about - wanted)
        )
        score -= 4 * weight * ("module" in about and SEVERAL.search(label) is not None)
        score += weight * ("module" in about and _module(quantity.names[0]).lower() in label.lower())
        named = bool(wanted - KINDS)
        if named:
            break
    if not named and quantity.is_projection and not quantity.one_layer:
        score -= 40  # unnamed, one projection over all layers is an unlikely meaning
    return score + 3 * (bool(factors) and quantity.factors == factors)


def _unasked(tags: frozenset[str]) -> int:
    """Return a penalty for tags that no label mentions, such as biases or the final norm."""
    return len(tags & KINDS) + len(tags & {"bias", "scale", "shift"}) + 3 * len(tags & {"final", "token"})


# -- atoms ----------------------------------------------------------------------------------------


def _atoms(ledger: Ledger) -> list[Atom]:
    """Return the unique parameters by name, kind and tensor shape.

    A packed projection is split into its parts.
    """
    stacks: dict[tuple[str, tuple[int, ...]], list[Entry]] = {}
    for entry in ledger.parameters:
        if entry.unique:
            shape = tuple(int(size) for size in entry.shape)
            stacks.setdefault((template_of(entry.name)[0].replace("{}", "*"), shape), []).append(entry)
    groups = _groups(ledger.parameters)
    found = []
    for (name, shape), entries in stacks.items():
        layers = sum(int(entry.axes[0].length) if entry.axes else 1 for entry in entries)
        parameters = sum(int(entry.unique) * entry.copies for entry in entries)
        copies, first = sum(entry.copies for entry in entries), entries[0]
        called = template_of(first.called)[0].replace("{}", "*")
        group = groups.get(name) or groups[_open(name)]
        tag = _tag(called, first.role, group.slot)
        final = first.role == "norm" and "*" not in name
        whole = Atom(
            tag,
            first.role,
            kind_of(first),
            name,
            shape,
            copies,
            layers if "*" in name else 1,
            parameters,
            final,
            group.experts,
            Fraction(1) if first.active is None else Fraction(first.active),
        )
        found += _unpacked(whole, stacks)
    return found


def _groups(entries: Iterable[Entry]) -> dict[str, TensorGroup]:
    """Return the tensor group of each name.

    Keys are the name with every index open, and the name as `template_of` writes it. The slot is
    None if the groups of one name differ in it.
    """
    found: dict[str, TensorGroup] = {}
    for group in tensor_groups(entries):
        for name in {_open(group.name), template_of(group.name.replace("{}", "0"))[0].replace("{}", "*")}:
            before = found.setdefault(name, group)
            if before.slot != group.slot:
                found[name] = before._replace(slot=None)
    return found


def _open(name: str) -> str:
    return re.sub(r"(?<=\.)(?:\d+|\{\}|\*)(?=\.)", "*", name)


def _tag(name: str, role: str, slot: str | None) -> str:
    """Return the tag of a tensor: its projection, its role, or else the name of its module."""
    if slot in NAMED or slot in _PACKED:
        return str(slot)
    if role in _ROLES:
        return "segment" if _SEGMENT.search(name) else _ROLES[role]
    if role in ("head", "norm", "router"):
        return role
    return "pooler" if "pooler" in name else _module(name)


def _module(name: str) -> str:
    """Return the module of a tensor: c_proj for h.*.attn.c_proj.weight.

    For experts.gate_up_proj it is gate_up_proj.
    """
    parts = [part for part in name.split(".") if part != "*"]
    inside = len(parts) > 1 and re.fullmatch(r"weight|bias|scale|shift|gamma|beta", parts[-1])
    return parts[-2] if inside else parts[-1]


def _unpacked(atom: Atom, stacks: dict[tuple[str, tuple[int, ...]], list[Entry]]) -> list[Atom]:
    """Split a packed projection into its parts if its shape shows their sizes."""
    if atom.tag not in _PACKED:
        return [atom]
    tags = _PACKED[atom.tag]
    if atom.tag == "qkv":
        weight = next((shape for name, shape in stacks if name == atom.name.rpartition(".")[0] + ".weight"), ())
        if len(weight) != 2 or max(weight) != 3 * min(weight):
            return [atom._replace(tag="q k v")]  # grouped heads: the shape does not show the row split
    share = len(tags)
    largest = max(range(len(atom.shape)), key=lambda place: (atom.shape[place] % share == 0, atom.shape[place]))
    shape = tuple(size // share if place == largest else size for place, size in enumerate(atom.shape))
    return [atom._replace(tag=tag, shape=shape, parameters=atom.parameters // share) for tag in tags]


def _tied(ledger: Ledger) -> list[Quantity]:
    """Return the tensors tied to another one, which add no unique parameters."""
    return [
        Quantity(
            f"the {entry.role.replace('_', ' ')}, tied to {entry.storage}",
            int(entry.size) * entry.copies,
            (template_of(entry.name)[0].replace("{}", "*"),),
            frozenset(),
            frozenset({_ROLES.get(entry.role, entry.role)}),
            (),
            tied_to=entry.storage,
        )
        for entry in ledger.parameters
        if not entry.unique and entry.storage != entry.name
    ]
