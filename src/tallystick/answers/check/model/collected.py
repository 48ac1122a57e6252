"""Collect the quantities of a model that people write down, by module, role and kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tallystick.answers.check.labels import tags_of
from tallystick.answers.check.model.atoms import NAMED, Atom, module_of
from tallystick.answers.check.model.quantity import Quantity


class Collected:
    """The quantities of some atoms: all of them, and those over all layers."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self.atoms = atoms
        self.all: list[Quantity] = []
        self.whole: list[Quantity] = []  # over all layers
        self._seen: set[tuple[frozenset[int], int]] = set()
        self._collect()

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
            self._add(f"norm {module_of(atoms[place].name)}", same, {"norm", "block", "module"})
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
        if share == 1:
            self.whole.append(quantity)
