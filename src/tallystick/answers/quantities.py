"""The quantities of a ledger that people write down: by module, role and kind, over all layers and in one.

>>> from tallystick import count
>>> found = Quantities(count("gpt2")).of(Fraction(7_077_888))[0]
>>> found.what, found.names
('attention output projection of 12 layers, without its bias', ('transformer.h.*.attn.c_proj.weight',))
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from tallystick.answers.labels import KINDS, tags_of
from tallystick.answers.parts import kind_of
from tallystick.ledger import Entry, Ledger
from tallystick.numbering import template_of

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
}

_ROLES = {"token_embedding": "token", "position_embedding": "position"}

# What a module is to its block, by the last part of its name; c_proj is the output of attention and MLP both.
_MODULES = {
    "attention": {
        "qkv": r"c_attn|qkv(_proj)?|Wqkv|query_key_value|in_proj",
        "q": r"q_proj|W_query|q_attn|wq|query",
        "k": r"k_proj|W_key|wk|key",
        "v": r"v_proj|W_value|wv|value",
        "o": r"o_proj|c_proj|out_proj|dense|wo|out",
    },
    "mlp": {
        "gate_up": r"gate_up_proj(_bias)?",
        "gate": r"gate_proj|w1|fc1(?=\.three)",
        "up": r"up_proj|c_fc|fc1|fc_in|dense_h_to_4h|w3|0|fc2(?=\.three)",
        "down": r"down_proj(_bias)?|c_proj|fc2|fc_out|dense_4h_to_h|w2|2|fc3",
    },
}

_PARTLY = re.compile(
    r"\b(?:only|approx\w*|dominant|mostly|main|matri\w+|weights?|per (?:head|token|expert))\b|[≈~]", re.IGNORECASE
)


class Atom(NamedTuple):
    """The smallest thing that a text counts apart: one kind of one module, in all its layers."""

    tag: str  # a key of NAMED, or the module's own name
    role: str
    kind: str  # matrix, bias, scale, shift or vector
    name: str  # with * for the numbers of its layers
    shape: tuple[int, ...]
    copies: int  # tensors
    layers: int  # 1 outside of layers
    parameters: int  # unique ones
    final: bool  # a norm outside of the layers


class Quantity(NamedTuple):
    """Some atoms that people count as one, over all layers or in one of them."""

    what: str
    parameters: int
    names: tuple[str, ...]
    atoms: frozenset[int]
    tags: frozenset[str]
    factors: tuple[int, ...]  # of the only tensor, its layers included; () where there are more
    one_layer: bool = False
    tied_to: str = ""

    @property
    def component(self) -> frozenset[str]:
        """What it is of, whatever the kind of tensor and the number of layers."""
        return self.tags - KINDS


class Quantities:
    """All quantities of a ledger, found by their number."""

    def __init__(self, ledger: Ledger) -> None:
        self.total = ledger.total
        self.atoms = _atoms(ledger)
        self.tied = _tied(ledger)
        self.all: list[Quantity] = []
        self.whole: list[Quantity] = []  # over all layers
        self._by_number: dict[int, list[Quantity]] = {}
        self._seen: set[tuple[frozenset[int], bool]] = set()
        self._collect()

    def of(self, number: Fraction, spread: Fraction = Fraction(0)) -> list[Quantity]:
        """What has so many parameters, give or take `spread`, in the order of what people mean first."""
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
        """What a text means by a number, judged by the words before it, rather what was not `matched` before.

        None where nothing has so many parameters.
        """
        about = tags_of(labels[0])
        found = [quantity for quantity in self.of(number) if _may_be(quantity, about)]
        tied = (quantity for quantity in self.tied if quantity.parameters == number and quantity.tags <= about)
        return next(tied, None) or max(
            found,
            key=lambda quantity: (fit(quantity, labels, factors), quantity not in matched),
            default=None,
        )

    def labelled(self, labels: Sequence[str]) -> list[Quantity]:
        """Whole quantities that are called so, whatever their number."""
        wanted = next((tags for label in labels if (tags := tags_of(label) - KINDS)), None)
        return [quantity for quantity in self.whole if quantity.tags - KINDS == wanted]

    def meant(self, label: str, number: Fraction) -> Quantity | None:
        """What a label names: all of one component, in one layer or in all; None where it names none, or not for sure.

        Where it does not say in how many layers, it is what is nearer to `number`.
        """
        about = tags_of(label)
        if not about - KINDS or _PARTLY.search(label):
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
        return min(largest.values(), key=lambda quantity: abs(quantity.parameters - number), default=None)

    # -- which there are --------------------------------------------------------------------------

    def _collect(self) -> None:
        atoms = self.atoms
        by_tag: dict[str, set[int]] = {}
        for place, atom in enumerate(atoms):
            by_tag.setdefault(atom.tag, set()).add(place)
        roles = {
            role: {place for place, atom in enumerate(atoms) if atom.role == role} for role in {a.role for a in atoms}
        }
        norms, in_layers = (
            roles.get("norm", set()),
            {place for place, atom in enumerate(atoms) if atom.layers > 1 or "*" in atom.name},
        )

        self._put("the whole model", "", set(range(len(atoms))), ())
        for tag in ("token", "position", "head"):
            self._add(NAMED[tag], by_tag.get(tag, set()), {tag})
        self._add(
            "embeddings of tokens and positions",
            by_tag.get("token", set()) | by_tag.get("position", set()),
            {"token", "position"},
        )
        if by_tag.get("head"):  # and none of its own where it is tied
            self._add("token embedding and LM head", by_tag.get("token", set()) | by_tag["head"], {"token", "head"})
        self._add("attention", roles.get("attention", set()), {"attention"})
        self._add("MLP", roles.get("mlp", set()), {"mlp"})
        self._add("experts", roles.get("experts", set()), {"experts"})
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
        outside = norms - in_layers
        one = len({atoms[place].name.rpartition(".")[0] for place in outside}) == 1
        self._add("final norm" if one else "norms outside of the layers", outside, {"norm", "final"})
        for place in sorted(norms & in_layers):
            same = {
                other for other in norms if atoms[other].name.rpartition(".")[0] == atoms[place].name.rpartition(".")[0]
            }
            self._add(f"norm {_module(atoms[place].name)}", same, {"norm", "block", "module"})
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

    def _union(self, tags: list[str], words: str, by_tag: dict[str, set[int]], within: set[int], role: str) -> None:
        if all(by_tag.get(tag, set()) & within for tag in tags):
            known = {"qkv"} if tags == ["q", "k", "v"] else set(tags)
            self._add(words, set().union(*(by_tag[tag] for tag in tags)) & within, {role, *known})

    def _add(self, phrase: str, places: set[int], tags: Iterable[str]) -> None:
        """A scope by kind, then whole."""
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
        key = (frozenset(places), share > 1)
        parameters = sum(self.atoms[place].parameters for place in places)
        if not parameters or key in self._seen:
            return
        self._seen.add(key)
        factors: tuple[int, ...] = ()
        if len(places) == 1:
            atom = self.atoms[next(iter(places))]
            factors = tuple(sorted(size for size in (atom.copies // share, *atom.shape) if size != 1))
        names = tuple(dict.fromkeys(self.atoms[place].name for place in sorted(places)))
        quantity = Quantity(what, parameters // share, names, frozenset(places), frozenset(tags), factors, share > 1)
        self.all.append(quantity)
        self._by_number.setdefault(quantity.parameters, []).append(quantity)
        if share == 1:
            self.whole.append(quantity)


def _may_be(quantity: Quantity, about: frozenset[str]) -> bool:
    """Whether a label says nothing against it."""
    said, held = about - KINDS, quantity.tags - KINDS
    return not (said and held) or bool(said & held)


def fit(quantity: Quantity, labels: Sequence[str], factors: tuple[int, ...] = ()) -> int:
    """How well a quantity is what the labels, nearest first, and the factors of a product say."""
    score = 0
    for weight, label in zip((12, 4, 2, 1), filter(None, labels), strict=False):
        wanted = tags_of(label)
        about = quantity.tags
        score += weight * (
            2 * len(wanted & about) - 2 * len((wanted - about) - {"block", "all"}) - len((about - wanted) & KINDS)
        )
        if wanted - KINDS:
            break
    return score + 3 * (bool(factors) and quantity.factors == factors)


# -- atoms ----------------------------------------------------------------------------------------


def _atoms(ledger: Ledger) -> list[Atom]:
    """Parameters by name, kind and shape of one tensor; packed projections as the parts that they pack."""
    stacks: dict[tuple[str, tuple[int, ...]], list[Entry]] = {}
    for entry in ledger.parameters:
        if entry.unique:
            shape = tuple(int(size) for size in entry.shape)
            stacks.setdefault((template_of(entry.name)[0].replace("{}", "*"), shape), []).append(entry)
    names = {name for name, _ in stacks}
    found = []
    for (name, shape), entries in stacks.items():
        layers = sum(int(entry.axes[0].length) if entry.axes else 1 for entry in entries)
        parameters = sum(int(entry.unique) * entry.copies for entry in entries)
        copies, first = sum(entry.copies for entry in entries), entries[0]
        tag = _tag(template_of(first.called)[0].replace("{}", "*"), first.role, names)
        final = first.role == "norm" and "*" not in name
        whole = Atom(
            tag, first.role, kind_of(first), name, shape, copies, layers if "*" in name else 1, parameters, final
        )
        found += _unpacked(whole, stacks)
    return found


def _tag(name: str, role: str, names: set[str]) -> str:
    module = _module(name)
    kind = {"experts": "mlp"}.get(role, role)
    if f"{name.rpartition('.')[0][: -len(module)]}fc3.weight" in names:
        module += ".three"  # gate, up, down as the book's Llama numbers them
    for tag, pattern in _MODULES.get(kind, {}).items():
        if re.match(rf"(?:{pattern})(?:\.three)?$", module):
            return tag
    if role in _ROLES:
        return _ROLES[role]
    return role if role in ("head", "norm", "router") else module


def _module(name: str) -> str:
    """The module that a tensor is in: c_proj of h.*.attn.c_proj.weight, gate_up_proj of experts.gate_up_proj."""
    parts = [part for part in name.split(".") if part != "*"]
    inside = len(parts) > 1 and re.fullmatch(r"weight|bias|scale|shift|gamma|beta", parts[-1])
    return parts[-2] if inside else parts[-1]


def _unpacked(atom: Atom, stacks: dict[tuple[str, tuple[int, ...]], list[Entry]]) -> list[Atom]:
    """A packed projection as those that it packs, where its shape says how."""
    tags: tuple[str, ...]
    if atom.tag == "gate_up":
        tags = ("gate", "up")
    elif atom.tag == "qkv":
        tags = ("q", "k", "v")
        weight = next((shape for name, shape in stacks if name == atom.name.rpartition(".")[0] + ".weight"), ())
        if len(weight) != 2 or max(weight) != 3 * min(weight):
            return [atom._replace(tag="q k v")]  # grouped heads: how many rows are whose is not told
    else:
        return [atom]
    share = len(tags)
    largest = max(range(len(atom.shape)), key=lambda place: (atom.shape[place] % share == 0, atom.shape[place]))
    shape = tuple(size // share if place == largest else size for place, size in enumerate(atom.shape))
    return [atom._replace(tag=tag, shape=shape, parameters=atom.parameters // share) for tag in tags]


def _tied(ledger: Ledger) -> list[Quantity]:
    """What is tied to another tensor, and holds no parameters of its own."""
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
