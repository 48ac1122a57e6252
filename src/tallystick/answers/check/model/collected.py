"""Collect the quantities of a model that people write down, by module, role and kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tallystick.answers.check.labels import tags_of
from tallystick.answers.check.model.atoms import NAMED, Atom, module_of
from tallystick.answers.check.model.quantity import Quantity
from tallystick.answers.check.model.stacks import Stack, stacks_of

_OF_HEADS = re.compile(r"\b[qk](?:uery|ey)?_(?:layer_?)?norm\b")


class Collected:
    """The quantities of some atoms: all of them, and those over all layers."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self.atoms = atoms
        self.all: list[Quantity] = []
        self.whole: list[Quantity] = []  # over all layers
        self._seen: set[tuple[frozenset[int], int]] = set()
        self._stack = ""  # whose quantities are being registered
        self.by_tag: dict[str, set[int]] = {}
        for place, atom in enumerate(atoms):
            self.by_tag.setdefault(atom.tag, set()).add(place)
        for stack in stacks_of(atoms):
            self._collect_stack(stack)
        self._stack = ""
        self._collect()

    def _collect(self) -> None:
        roles = {
            role: {place for place, atom in enumerate(self.atoms) if atom.role == role}
            for role in {atom.role for atom in self.atoms}
        }
        norms = roles.get("norm", set())
        in_layers = {place for place, atom in enumerate(self.atoms) if atom.layers > 1 or "*" in atom.name}
        below = {place for place in norms - in_layers if "embed" in self.atoms[place].name}
        self._put("the whole model", "", set(range(len(self.atoms))), ())
        self._vocabulary(below)
        self._add("attention", roles.get("attention", set()), {"attention"})
        self._add("MLP", roles.get("mlp", set()), {"mlp"})
        self._of_experts(roles)
        self._projections(roles)
        self._norms(norms, in_layers, below)
        for tag in self.by_tag.keys() - NAMED.keys():
            self._add(tag, self.by_tag[tag], tags_of(tag))
        if roles.get("experts"):
            self._put("the blocks", ", without norms", in_layers - norms, {"attention", "mlp", "block"})
        else:
            self._add("attention and MLP", in_layers - norms, {"attention", "mlp", "block"})
        self._blocks(in_layers)
        self._add("the model", set(range(len(self.atoms))), ())

    def _collect_stack(self, stack: Stack) -> None:
        """Register the parts of an encoder or a decoder, in its layers and outside of them."""
        self._stack = stack.name
        of = {
            role: {place for place in stack.inside if self.atoms[place].role == role} for role in ("attention", "mlp")
        }
        norms = {place for place in stack.all if self.atoms[place].role == "norm"}
        self._add("attention", of["attention"], {"attention"})
        self._add("self-attention", of["attention"] - stack.cross, {"attention"})
        self._projections({**of, "attention": of["attention"] - stack.cross})
        self._add("MLP", of["mlp"], {"mlp"})
        self._norms(norms, stack.inside, set())
        self._add("attention and MLP", stack.inside - norms, {"attention", "mlp", "block"})
        self._blocks(stack.inside)
        for tag in ("token", "position"):
            self._add(NAMED[tag], self.by_tag.get(tag, set()) & stack.all, {tag})
        self._put("everything", "", stack.all, ())
        self._stack = "cross"
        self._add("attention", of["attention"] & stack.cross, {"attention"})
        self._projections({"attention": of["attention"] & stack.cross})

    def _vocabulary(self, below: set[int]) -> None:
        """Register what is sized by the vocabulary or the positions, and the norm `below` these."""
        for tag in ("token", "position", "segment", "head", "pooler"):
            self._add(NAMED[tag], self.by_tag.get(tag, set()), {tag})
        token, position, segment = (self.by_tag.get(tag, set()) for tag in ("token", "position", "segment"))
        every = token | position | segment
        self._add("embeddings of tokens and positions", every - segment, {"token", "position"})
        self._add("embeddings", every, {"token", "position", "segment"})
        self._add("embeddings with their norm", every | below, {"token", "position", "segment", "norm"})
        if self.by_tag.get("head"):  # absent if the head is tied
            self._add("token embedding and LM head", token | self.by_tag["head"], {"token", "head"})

    def _of_experts(self, roles: Mapping[str, set[int]]) -> None:
        """Register the experts, one of them, those shared by all tokens, and the router."""
        self._add("experts", roles.get("experts", set()), {"experts"})
        self._experts(roles.get("experts", set()))
        shared = {place for place, atom in enumerate(self.atoms) if "shared" in atom.name}
        self._add("shared experts", shared, {"experts", "shared"})
        self._add("router", roles.get("router", set()), {"router"})

    def _projections(self, roles: Mapping[str, set[int]]) -> None:
        """Register the projections of attention, the MLP and the experts, alone and in groups."""
        for tags, words in (
            ("o", NAMED["o"]), ("q k v", NAMED["qkv"]), ("q", NAMED["q"]), ("k", NAMED["k"]), ("v", NAMED["v"]),
            ("k v", "key and value projections"), ("q o", "query and attention output projections"),
        ):  # fmt: skip
            self._union(tags.split(), words, roles.get("attention", set()), "attention")
        for role, whole in (("mlp", "MLP"), ("experts", "experts")):
            for tags, words in (
                ("up", "up projection"), ("down", "down projection"), ("gate", "gate projection"), ("gate up", "gate and up projections"),
            ):  # fmt: skip
                self._union(tags.split(), f"{words} of the {whole}", roles.get(role, set()), role)

    def _norms(self, norms: set[int], in_layers: set[int], below: set[int]) -> None:
        """Register the norms: all, those of the layers, each of these, and the ones around them."""
        self._add("norms", norms, {"norm"})
        self._add("norms", norms & in_layers, {"norm", "block"})
        of_heads = {place for place in norms & in_layers if _OF_HEADS.search(self.atoms[place].name)}
        if of_heads:
            self._add("norms around attention and MLP", norms & in_layers - of_heads, {"norm", "block"})
            self._add("norms of queries and keys", of_heads, {"norm", "block", "q", "k"})
        for place in sorted(norms & in_layers):
            module = self._module(place)
            same = {other for other in norms if self._module(other) == module}
            self._add(f"norm {module_of(self.atoms[place].name)}", same, {"norm", "block", "module"})
        self._add("norm of the embeddings", below, {"norm", "token"})
        outside = norms - in_layers - below
        one = len({self._module(place) for place in outside}) == 1
        self._add("final norm" if one else "norms outside of the layers", outside, {"norm", "final"})

    def _module(self, place: int) -> str:
        return self.atoms[place].name.rpartition(".")[0]

    def _blocks(self, in_layers: set[int]) -> None:
        """Register the layers, with and without their biases and norm shifts."""
        for kinds, words in (
            ({"matrix", "vector", "scale", "shift", "bias"}, ""),
            ({"matrix", "vector", "scale", "shift"}, ", without biases"),
            ({"matrix", "vector", "scale"}, ", without biases and norm shifts"),
            ({"matrix", "vector", "scale", "bias"}, ", without norm shifts"),
        ):
            self._put("the blocks", words, {place for place in in_layers if self.atoms[place].kind in kinds}, {"block"})

    def _experts(self, places: set[int]) -> None:
        """Register one expert of one layer, and the experts that a token is routed to."""
        shares = {self.atoms[place].layers * self.atoms[place].experts for place in places}
        active = {self.atoms[place].active for place in places}
        if len(shares) == len(active) == 1 and (share := shares.pop()):
            self._register("one expert of one layer", places, {"experts", "one", "single"}, share=share, some=True)
            layers = {self.atoms[place].layers for place in places}
            if len(layers) == 1 and (used := active.pop()) and used < 1:
                count = layers.pop()
                one, all_ = "active experts of one layer", f"active experts of {count} layers"
                self._register(one, places, {"experts", "one"}, share=int(count / used), some=True)
                self._register(all_, places, {"experts"}, share=int(1 / used), one_layer=False, some=True)

    def _union(self, tags: list[str], words: str, within: set[int], role: str) -> None:
        """Register the atoms with some tags among those of a role, if each tag has one."""
        if all(self.by_tag.get(tag, set()) & within for tag in tags):
            known = {"qkv"} if tags == ["q", "k", "v"] else set(tags)
            self._add(words, set().union(*(self.by_tag[tag] for tag in tags)) & within, {role, *known})

    def _add(self, phrase: str, places: set[int], tags: Iterable[str]) -> None:
        """Register some atoms by kind, then as a whole."""
        of = {
            kind: {place for place in places if self.atoms[place].kind == kind} for kind in ("bias", "scale", "shift")
        }
        single = len({self._module(place) for place in places}) == 1
        if of["bias"] and places - of["bias"]:
            self._put(phrase, ", without its bias" if single else ", without biases", places - of["bias"], tags)
            self._put(f"{phrase.removesuffix('s')} biases", "", of["bias"], {*tags, "bias"})
        if of["scale"] and of["shift"] and places == of["scale"] | of["shift"]:
            for kind in ("scale", "shift"):
                self._put(f"{phrase.removesuffix('s')} {kind}s", "", of[kind], {*tags, kind})
        self._put(phrase, "", places, tags)

    def _put(self, phrase: str, kind: str, places: set[int], tags: Iterable[str]) -> None:
        if self._stack == "cross":
            phrase = f"cross-attention {phrase.removeprefix('attention')}".replace("  ", " ").rstrip()
        layers = {self.atoms[place].layers for place in places if "*" in self.atoms[place].name}
        count = layers.pop() if len(layers) == 1 else 0
        inside = all("*" in self.atoms[place].name for place in places)
        if count and inside:
            layer = {"": "layer", "cross": "decoder layer"}.get(self._stack, f"{self._stack} layer")
            all_ = f"{count} {layer}{'s' if count > 1 else ''}"
            self._register(f"{all_ if phrase == 'the blocks' else f'{phrase} of {all_}'}{kind}", places, tags)
            if count > 1:
                one = f"one {layer}" if phrase == "the blocks" else f"{phrase} of one {layer}"
                self._register(f"{one}{kind}", places, {*tags, "one"}, share=count)
        else:
            of = f" of the {self._stack}" if self._stack else ""
            self._register(f"{phrase}{of}{kind}", places, tags)

    def _register(
        self,
        what: str,
        places: set[int],
        tags: Iterable[str],
        *,
        share: int = 1,
        one_layer: bool = True,
        some: bool = False,
    ) -> None:
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
        quantity = Quantity(
            what,
            parameters // share,
            names,
            frozenset(places),
            frozenset(tags),
            factors,
            one_layer=share > 1 and one_layer,
            some=some,
            stack=self._stack,
        )
        self.all.append(quantity)
        if share == 1:
            self.whole.append(quantity)
