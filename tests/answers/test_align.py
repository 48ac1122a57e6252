"""Two models laid beside each other: what belongs together, and what is left alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from tallystick.answers.compare.align import Pair, align, in_common, unwrapped
from tallystick.answers.compare.tensor_groups import tensor_groups
from tallystick.core.entries import Axis, Entry
from tallystick.sources.roles.from_names import role_of

Shapes = Mapping[str, Sequence[int]]


def entries(shapes: Shapes, **more: object) -> list[Entry]:
    return [
        Entry(name, tuple(shape), role_of(name), "float32", name, math.prod(shape), **more)
        for name, shape in shapes.items()
    ]


def pairs(a: Shapes, b: Shapes) -> list[Pair]:
    return align(tensor_groups(entries(a)), tensor_groups(entries(b)))


def names(found: Sequence[Pair]) -> set[tuple[str, str]]:
    return {(" + ".join(p.name for p in pair.a), " + ".join(p.name for p in pair.b)) for pair in found}


# -- groups ----------------------------------------------------------------------------------------


def test_single_tensors_and_rolled_up_ones_make_the_same_parts():
    rolled = entries({"h.{}.attn.c_attn.weight": (4, 12)})[0]._replace(axes=(Axis(0, 3),))
    singles = entries({f"h.{layer}.attn.c_attn.weight": (4, 12) for layer in range(3)})
    assert tensor_groups([rolled]) == tensor_groups(singles)
    [group] = tensor_groups(singles)
    assert (group.name, group.layers, group.each, group.parameters) == (
        "h.{}.attn.c_attn.weight",
        Axis(0, 3),
        1,
        3 * 48,
    )


def test_experts_are_copies_in_a_layer_and_other_numbers_are_names():
    experts = {f"h.{layer}.mlp.experts.{expert}.w1.weight": (2, 3) for layer in (0, 1) for expert in range(5)}
    [group] = tensor_groups(entries(experts))
    assert (group.layers, group.each, group.experts, group.parameters) == (Axis(0, 2), 5, 5, 60)
    sequential = {f"h.{layer}.ff.layers.{place}.weight": (4, 4) for layer in (0, 1) for place in (0, 2)}
    assert [group.name for group in tensor_groups(entries(sequential))] == [
        "h.{}.ff.layers.0.weight", "h.{}.ff.layers.2.weight",
    ]  # fmt: skip


def test_the_number_of_a_replaced_head_is_no_layer():
    [group] = tensor_groups(entries({"lm_head.0.weight": (9, 4)}))
    assert (group.name, group.layered) == ("lm_head.0.weight", False)


def test_a_tie_is_held_by_the_embedding_whichever_name_comes_first():
    head, embedding = entries({"lm_head.weight": (9, 4), "wte.weight": (9, 4)})
    head_first = tensor_groups([head, embedding._replace(storage="lm_head.weight", unique=0)])
    assert [(group.name, group.unique, group.holder) for group in head_first] == [
        ("lm_head.weight", 0, "wte.weight"), ("wte.weight", 36, ""),
    ]  # fmt: skip


def test_a_thousand_billion_layers_are_one_part():
    [group] = tensor_groups([entries({"h.{}.ln_1.weight": (4,)})[0]._replace(axes=(Axis(0, 10**12),))])
    assert group.parameters == 4 * 10**12


@pytest.mark.parametrize("name", ["h." + "9" * 5000 + ".weight", ".".join("0" * 200) + ".weight", "{}.weight", ".", ""])
def test_names_that_only_look_numbered_stand_for_themselves(name):
    assert sum(group.parameters for group in tensor_groups(entries({name: (2, 3)}))) == 6


# -- pairs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "module.h.0.attn.c_attn.weight",
        "_orig_mod.module.h.0.attn.c_attn.weight",
        "base_model.model.h.0.attn.c_attn.base_layer.weight",
        "h.0.attn.c_attn.original_module.weight",
        "_fsdp_wrapped_module.h.0._checkpoint_wrapped_module.attn.c_attn.weight",
        "h.0.attn.c_attn.qweight",
    ],
)
def test_wrappers_are_no_part_of_a_name(name):
    assert unwrapped(name) == "h.0.attn.c_attn.weight"


def test_a_word_that_only_ends_like_a_wrapper_stays():
    assert unwrapped("submodule.weight") == "submodule.weight"


def test_layers_are_paired_as_far_as_both_have_them():
    found = pairs(
        {f"h.{layer}.ln_1.weight": (4,) for layer in range(5)},
        {f"h.{layer}.ln_1.weight": (4,) for layer in range(2, 9)},
    )
    assert sorted((bool(pair.a), bool(pair.b), (pair.a or pair.b)[0].layers) for pair in found) == [
        (False, True, Axis(5, 4)), (True, False, Axis(0, 2)), (True, True, Axis(2, 3)),
    ]  # fmt: skip


def test_experts_of_several_shapes_are_their_own_counterparts():
    pruned = {f"h.0.mlp.experts.{expert}.w1.weight": (2 + expert % 3, 3) for expert in range(6)}
    found = pairs(pruned, dict(reversed(pruned.items())))
    assert [pair.a == pair.b for pair in found] == [True] * 3


def test_names_come_before_shapes():
    """Keys before queries in one model, after them in the other; all four are squares."""
    a = {f"h.0.attn.{name}.weight": (4, 4) for name in ("k_proj", "v_proj", "q_proj", "out_proj")}
    b = {f"l.0.att.{name}.weight": (4, 4) for name in ("W_query", "W_key", "W_value", "out_proj")}
    assert names(pairs(a, b)) == {
        ("h.{}.attn.k_proj.weight", "l.{}.att.W_key.weight"),
        ("h.{}.attn.v_proj.weight", "l.{}.att.W_value.weight"),
        ("h.{}.attn.q_proj.weight", "l.{}.att.W_query.weight"),
        ("h.{}.attn.out_proj.weight", "l.{}.att.out_proj.weight"),
    }


def test_a_transposed_pair_keeps_its_order():
    a = {"h.0.mlp.c_fc.weight": (4, 16), "h.0.mlp.c_proj.weight": (16, 4)}
    b = {"l.0.ff.layers.0.weight": (16, 4), "l.0.ff.layers.2.weight": (4, 16)}
    assert names(pairs(a, b)) == {
        ("h.{}.mlp.c_fc.weight", "l.{}.ff.layers.0.weight"),
        ("h.{}.mlp.c_proj.weight", "l.{}.ff.layers.2.weight"),
    }


def test_split_projections_are_laid_beside_the_fused_one_in_either_direction():
    fused = {"h.0.attn.c_attn.weight": (4, 12), "h.0.attn.c_attn.bias": (12,)}
    split = {f"h.0.attn.{name}.{kind}": (4, 4)[: 1 + (kind == "weight")]
             for kind in ("weight", "bias") for name in ("q_proj", "k_proj", "v_proj")}  # fmt: skip
    weights = " + ".join(f"h.{{}}.attn.{name}.weight" for name in ("q_proj", "k_proj", "v_proj"))
    biases = weights.replace("weight", "bias")
    assert names(pairs(fused, split)) == {("h.{}.attn.c_attn.weight", weights), ("h.{}.attn.c_attn.bias", biases)}
    assert names(pairs(split, fused)) == {(weights, "h.{}.attn.c_attn.weight"), (biases, "h.{}.attn.c_attn.bias")}


def test_a_plain_mlp_is_laid_beside_all_of_a_gated_one_but_its_gate():
    plain = {"h.0.mlp.fc1.weight": (16, 4), "h.0.mlp.fc2.weight": (4, 16)}
    gated = {
        "h.0.mlp.gate_proj.weight": (16, 4),
        "h.0.mlp.up_proj.weight": (16, 4),
        "h.0.mlp.down_proj.weight": (4, 16),
    }
    assert names(pairs(plain, gated)) == {
        ("h.{}.mlp.fc1.weight", "h.{}.mlp.up_proj.weight"),
        ("h.{}.mlp.fc2.weight", "h.{}.mlp.down_proj.weight"),
        ("", "h.{}.mlp.gate_proj.weight"),
    }


def test_matrices_whose_names_tell_different_things_are_not_one():
    found = pairs({"h.0.attn.odd.weight": (4, 4)}, {"h.0.mlp.strange.weight": (4, 4)})
    assert names(found) == {("h.{}.attn.odd.weight", ""), ("", "h.{}.mlp.strange.weight")}
    unnamed = pairs({"h.0.attn.odd.weight": (4, 4)}, {"h.0.strange.weight": (4, 4)})
    assert names(unnamed) == {("h.{}.attn.odd.weight", "h.{}.strange.weight")}


def test_experts_numbered_last_are_those_that_are_stacked():
    """As in a list of experts for each of their matrices; their role is found by the router."""
    listed = {f"b.{layer}.ff.fc{place}.{expert}.weight": (4, 12)[:: -1 if place < 3 else 1]
              for layer in (0, 1) for place in (1, 2, 3) for expert in range(70)}  # fmt: skip
    of_experts = [entry._replace(role="experts") for entry in entries(listed)]
    groups = tensor_groups(of_experts)
    assert [(group.title, group.word, group.slot, group.each) for group in groups] == [
        ("b.*.ff.fc1.*.weight", "fc1", "gate", 70),
        ("b.*.ff.fc2.*.weight", "fc2", "up", 70),
        ("b.*.ff.fc3.*.weight", "fc3", "down", 70),
    ]
    stacked = entries({f"l.{layer}.mlp.experts.{name}": shape for layer in (0, 1)
                       for name, shape in (("gate_up_proj", (70, 24, 4)), ("down_proj", (70, 4, 12)))})  # fmt: skip
    assert names(align(tensor_groups(stacked), groups)) == {
        ("l.{}.mlp.experts.gate_up_proj", "b.{}.ff.fc1.{}.weight + b.{}.ff.fc2.{}.weight"),
        ("l.{}.mlp.experts.down_proj", "b.{}.ff.fc3.{}.weight"),
    }


@pytest.mark.parametrize(
    ("shapes", "slots"),
    [
        ({"fc1": (16, 4), "fc2": (4, 16)}, ("up", "down")),
        ({"fc1": (32, 4), "fc2": (4, 16)}, ("gate_up", "down")),
        ({"down": (4, 16), "gate_and_up": (32, 4)}, ("down", None)),
        ({"w12": (32, 4), "w3": (4, 16)}, ("gate_up", "down")),
        ({"w1": (16, 4), "w2": (4, 16), "w3": (16, 4)}, ("gate", "down", "up")),
        ({"w1": (16, 4), "w2": (16, 4), "w3": (4, 16)}, ("gate", "up", "down")),
        ({"w1": (4, 4), "w2": (4, 4), "w3": (4, 4)}, ("gate", "down", "up")),
        ({"lin_a": (4, 4), "lin_b": (4, 4), "lin_c": (4, 4)}, ("gate", "up", "down")),
        ({"w1": (16, 4), "w2": (4, 16)}, ("up", "down")),
        ({"c_fc_0": (16, 4), "c_fc_1": (16, 4), "c_proj": (4, 16)}, ("gate", "up", "down")),
        ({"fc1": (16, 4), "fc2": (4, 15)}, (None, None)),
    ],
)
def test_an_mlp_whose_names_leave_it_open_is_told_by_its_sizes(shapes, slots):
    found = tensor_groups(entries({f"h.0.mlp.{name}.weight": shape for name, shape in shapes.items()}))
    assert tuple(group.slot for group in found) == slots


def test_an_adapter_is_nobodys_counterpart():
    found = pairs({"h.0.attn.odd.weight": (4, 4)}, {"h.0.attn.c_attn.lora_A.default.weight": (4, 4)})
    assert all(not pair.a or not pair.b for pair in found)


def test_vectors_of_like_purpose_are_nothing_in_common():
    assert not in_common(pairs({"h.0.ln_1.weight": (4,)}, {"layers.0.bn_norm.weight": (4,)}))
    assert in_common(pairs({"wte.weight": (9, 4)}, {"tok_emb.weight": (8, 3)}))


def test_each_layer_of_each_part_is_laid_out_once():
    a = {f"h.{layer}.attn.{name}.weight": (4, 4 + layer % 3) for layer in range(7) for name in ("q_proj", "odd", "wo")}
    b = {
        f"l.{layer}.attn.{name}.weight": (4, 5 - layer % 2) for layer in range(5) for name in ("qkv", "odd", "out", "x")
    }
    found = pairs(a, b)
    for side, shapes in (("a", a), ("b", b)):
        assert sum(group.parameters for pair in found for group in getattr(pair, side)) == sum(
            map(math.prod, shapes.values())
        )
