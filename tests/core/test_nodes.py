"""Nodes that do not change: one of them in several places is read at each as what it is there."""

import copy
import pickle
from fractions import Fraction
from itertools import product

import pytest

from tallystick import architectures
from tallystick.architectures.aliases import ALIASES
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import Dim
from tallystick.core.anatomy import FeedForward, Heads
from tallystick.core.layout import parts, read
from tallystick.core.registry import REGISTRY, alias, register_alias


def block(kind, inside, before, after):
    attends = nn.Attention(Heads(4, 4, 8), q_proj=nn.Linear(32, 32), o_proj=nn.Linear(32, 32), q_norm=inside)
    return nn.Model(
        h=nn.Repeat(
            2,
            kind(
                norm_1=before, attn=attends, norm_2=after, mlp=nn.MLP(FeedForward(32, 64, "gelu"), fc=nn.Linear(32, 64))
            ),
        )
    )


@pytest.mark.parametrize(("kind", "norm"), list(product([nn.Module, nn.ParallelBlock], [nn.RMSNorm, nn.LayerNorm])))
def test_one_norm_in_three_places_is_three_norms(kind, norm):
    apart, one = block(kind, norm(32), norm(32), norm(32)), norm(32)
    assert parts(block(kind, one, one, one)) == parts(apart)


def test_a_norm_reads_heads_only_where_it_is_in_an_attention():
    one = nn.RMSNorm(32)
    inner = {part.name: part.what.inner for part in parts(block(nn.Module, one, one, one)) if "norm" in part.name}
    assert inner == {"h.{}.norm_1": False, "h.{}.attn.q_norm": True, "h.{}.norm_2": False}


class Counted(dict):
    """Children that count how often they are gone through."""

    times = 0

    def items(self):
        self.times += 1
        return super().items()


def test_one_walk_reads_everything():
    """Tensors, heads, scans and parts are read together, however many questions are asked of the
    tree.
    """
    whole = block(nn.Module, nn.RMSNorm(32), nn.RMSNorm(32), nn.RMSNorm(32))
    children = Counted(whole.children)
    entries, model = read(whole.replace(children=children), dtype="float32")
    assert children.times == 1
    assert (len(entries), [one.name for one in model.attending]) == (9, ["h.{}.attn"])
    assert model.parts == parts(whole)


NODES = [
    nn.Module(a=nn.Linear(2, 3)),
    nn.Attention(None, a=nn.Linear(2, 3)),
    nn.MLP(None, a=nn.Linear(2, 3)),
    nn.Experts(1, 2, a=nn.Parameter((2, 3))),
    nn.TokenMixer(3),
    nn.Shared("h.0", a=nn.Linear(2, 3)),
    nn.Repeat(2, nn.Linear(2, 3)),
    nn.Model("", a=nn.Head(2, 3), tie=("a", "b")),
    nn.Dropout(3, 0.1),
    nn.Linear(2, 3),
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
                held["new"] = nn.Parameter((1,))


def test_a_copy_has_other_fields_and_the_original_has_its_own():
    attends = nn.Attention(Heads(4, 4, 8), q_proj=nn.Linear(32, 32), o_proj=nn.Linear(32, 32))
    silent = attends.replace(heads=None)
    assert (silent.heads, attends.heads) == (None, Heads(4, 4, 8))
    assert isinstance(silent, nn.Attention)
    assert list(silent.children) == ["q_proj", "o_proj"]


def test_children_are_replaced_in_place_added_behind_and_left_out():
    group = nn.Module(a=nn.Parameter((1,)), b=nn.Parameter((2,)), c=nn.Parameter((3,)))
    other = group.with_children(b=nn.Parameter((5,)), a=None, d=nn.Parameter((4,)))
    assert {name: child.shape for name, child in other.children.items()} == {"b": (5,), "c": (3,), "d": (4,)}
    assert list(group.children) == ["a", "b", "c"]


def test_a_tree_is_rebuilt_and_the_first_one_stays():
    experts = nn.Experts(1, 4, w=nn.Parameter((4, 2, 2)))
    tree = nn.Model(h=nn.Repeat(3, nn.Module(norm=nn.RMSNorm(2), experts=experts)), tie={"x": "y"})
    frozen = nn.rebuilt(tree, lambda node: node._replace(trainable=False) if isinstance(node, nn.Tensor) else node)
    ((_, before),), ((count, after),) = tree.children["h"].runs, frozen.children["h"].runs
    assert count == 3
    assert before.children["experts"].children["w"].trainable
    assert not after.children["experts"].children["w"].trainable
    assert after.children["experts"].active == Fraction(1, 4)
    assert frozen.ties == {"x": "y"}


def test_an_alias_is_its_family_with_other_defaults():
    family, other = architectures.find("bart"), architectures.find("plbart")
    assert other.build is family.build
    assert {
        **family.keys,
        **{key: other.keys[key] for key in ALIASES["plbart"].keys if key in family.keys},
    } == other.keys
    assert other.variants["Model"].keys["encoder_layers"] == 6  # transformers' PLBartConfig
    assert family.variants["Model"].keys["encoder_layers"] == 12  # its BartConfig


def test_an_alias_states_no_key_that_its_family_does_not_read():
    with pytest.raises(TypeError, match=r"near states hidden_width, which gpt2 does not read"):
        register_alias("near", alias("NearForCausalLM", like="gpt2", hidden_width=3), architectures.find("gpt2"))
    assert "near" not in REGISTRY


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda dim: pickle.loads(pickle.dumps(dim))])
def test_a_dim_keeps_its_expression_when_it_is_copied(copied):
    dim = 3 * Dim(768, "n_embd") + 1
    assert repr(copied(dim)) == repr(dim) == "Dim(2305, '3*n_embd + 1')"
