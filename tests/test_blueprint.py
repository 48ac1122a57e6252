"""Nodes that do not change: one of them in several places is read at each as what it is there."""

import copy
import pickle
from fractions import Fraction
from itertools import product

import pytest

from tallystick.anatomy import Feed, Heads
from tallystick.blueprint import (
    MLP,
    Attention,
    Dropout,
    Experts,
    Group,
    Head,
    LayerNorm,
    Linear,
    Mixer,
    Model,
    Parallel,
    Repeat,
    RMSNorm,
    Shared,
    Tensor,
    rebuilt,
)
from tallystick.dims import Dim
from tallystick.layout import parts, read


def block(kind, inside, before, after):
    attends = Attention(Heads(4, 4, 8), q_proj=Linear(32, 32), o_proj=Linear(32, 32), q_norm=inside)
    return Model(
        h=Repeat(2, kind(norm_1=before, attn=attends, norm_2=after, mlp=MLP(Feed(32, 64, "gelu"), fc=Linear(32, 64))))
    )


@pytest.mark.parametrize(("kind", "norm"), list(product([Group, Parallel], [RMSNorm, LayerNorm])))
def test_one_norm_in_three_places_is_three_norms(kind, norm):
    apart, one = block(kind, norm(32), norm(32), norm(32)), norm(32)
    assert parts(block(kind, one, one, one)) == parts(apart)


def test_a_norm_reads_heads_only_where_it_is_in_an_attention():
    one = RMSNorm(32)
    inner = {part.name: part.what.inner for part in parts(block(Group, one, one, one)) if "norm" in part.name}
    assert inner == {"h.{}.norm_1": False, "h.{}.attn.q_norm": True, "h.{}.norm_2": False}


class Counted(dict):
    """Children that count how often they are gone through."""

    times = 0

    def items(self):
        self.times += 1
        return super().items()


def test_one_walk_reads_everything():
    """Tensors, heads, scans and parts are read together, however many questions are asked of the tree."""
    whole = block(Group, RMSNorm(32), RMSNorm(32), RMSNorm(32))
    children = Counted(whole.children)
    entries, model = read(whole.replace(children=children), dtype="float32")
    assert children.times == 1
    assert (len(entries), [one.name for one in model.attending]) == (9, ["h.{}.attn"])
    assert model.parts == parts(whole)


NODES = [
    Group(a=Linear(2, 3)),
    Attention(None, a=Linear(2, 3)),
    MLP(None, a=Linear(2, 3)),
    Experts(1, 2, a=Tensor((2, 3))),
    Mixer(3),
    Shared("h.0", a=Linear(2, 3)),
    Repeat(2, Linear(2, 3)),
    Model("", a=Head(2, 3), tie=("a", "b")),
    Dropout(3, 0.1),
    Linear(2, 3),
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_no_node_changes(node):
    for field in (*vars(node), "role", "something"):
        with pytest.raises(AttributeError, match=f"{type(node).__name__} is frozen"):
            setattr(node, field, None)
        with pytest.raises(AttributeError):
            delattr(node, field)
    for held in (vars(node).get("children"), vars(node).get("ties")):
        if held is not None:
            with pytest.raises(TypeError):
                held["new"] = Tensor((1,))


def test_a_copy_has_other_fields_and_the_original_has_its_own():
    attends = Attention(Heads(4, 4, 8), q_proj=Linear(32, 32), o_proj=Linear(32, 32))
    silent = attends.replace(heads=None)
    assert (silent.heads, attends.heads) == (None, Heads(4, 4, 8))
    assert isinstance(silent, Attention)
    assert list(silent.children) == ["q_proj", "o_proj"]


def test_children_are_replaced_in_place_added_behind_and_left_out():
    group = Group(a=Tensor((1,)), b=Tensor((2,)), c=Tensor((3,)))
    other = group.with_children(b=Tensor((5,)), a=None, d=Tensor((4,)))
    assert {name: child.shape for name, child in other.children.items()} == {"b": (5,), "c": (3,), "d": (4,)}
    assert list(group.children) == ["a", "b", "c"]


def test_a_tree_is_rebuilt_and_the_first_one_stays():
    experts = Experts(1, 4, w=Tensor((4, 2, 2)))
    tree = Model(h=Repeat(3, Group(norm=RMSNorm(2), experts=experts)), tie={"x": "y"})
    frozen = rebuilt(tree, lambda node: node._replace(trainable=False) if isinstance(node, Tensor) else node)
    ((_, before),), ((count, after),) = tree.children["h"].runs, frozen.children["h"].runs
    assert count == 3
    assert before.children["experts"].children["w"].trainable
    assert not after.children["experts"].children["w"].trainable
    assert after.children["experts"].active == Fraction(1, 4)
    assert frozen.ties == {"x": "y"}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda dim: pickle.loads(pickle.dumps(dim))])
def test_a_dim_keeps_its_expression_when_it_is_copied(copied):
    dim = 3 * Dim(768, "n_embd") + 1
    assert repr(copied(dim)) == repr(dim) == "Dim(2305, '3*n_embd + 1')"
