"""The keys of a native type: no option of its config is missed, each that is declared matters,
aliases are transformers'.
"""

from __future__ import annotations

import inspect

import pytest

import configs
from measurements import measured
from native import NATIVE, SLOW, assert_equal, count, default_config, other_values, small
from nesting import dotted
from rotating import MODELS, half_by_commit, some_by_commit
from tallystick import architectures

# DeepSeek's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")


def undeclared(model_type: str) -> list[str]:
    """The bools, integers and nulls of a type's config that our architecture does not read, and
    those of its class.
    """
    family, config = architectures.find(model_type), default_config(model_type)
    parameters = {name: p.default for name, p in inspect.signature(type(config).__init__).parameters.items()}
    written = dotted({**parameters, **config.to_dict()})
    read = set(family.keys) | set(family.aliases)
    read |= {key for part in family.parts.values() if part.at_outer_level for key in part.keys}
    return sorted(
        key for key, value in written.items()
        if key not in read and not key.endswith("dtype") and (value is None or isinstance(value, (bool, int)))
    )  # fmt: skip


@pytest.mark.parametrize("model_type", some_by_commit(SLOW, 20))
def test_no_option_is_missed(model_type: str):
    """No other key of the config changes a tensor, and all that we read stands in it."""
    built = 0
    base = small(model_type)
    whole = dotted(default_config(model_type).to_dict())
    for key in undeclared(model_type):
        for value in other_values(whole.get(key)):
            values = {**base, key: value}
            if true := measured("reference:model", values):
                assert_equal(values, true)
                built += 1
    assert built > 0


@pytest.mark.parametrize("model_type", half_by_commit(NATIVE, *MODELS))
def test_every_declared_key_changes_a_tensor(model_type: str):
    """What an architecture declares is an option of the type, and each one matters in some
    config.
    """
    family, base = architectures.find(model_type), small(model_type)
    tested = configs.FAMILIES[model_type]
    heads = {
        "is_decoder",
        "attention_heads",
        "decoder_attention_heads",
        "num_attention_heads",
        "n_head",
        "n_heads",
        "num_heads",
        "num_experts_per_tok",
        "moe_k",
        "moe_topk",
        "rope_parameters",
        "top_k_experts",
        "moe_top_k",
    }
    lists = {
        "attn_layer_indices": [[0], [1, 2]],
        "mlp_only_layers": [[0]],
        "moe_layers": [[0]],
        "moe_layer_end_index": [0],
        "layer_types": [["full_attention"] * 4, ["full_attention", "sliding_attention"] * 2],
        **tested.others,
    }
    for key, default in family.keys.items():
        if key.rpartition(".")[2] in heads:
            continue
        context = {**base, **tested.needs.get(key, {})}
        start = context.get(key, getattr(default, "default", default))
        if key in lists:
            alternatives = lists[key]
        else:
            alternatives = [not start] if isinstance(start, bool) else [start * 2 if start else 2, 2, 1]
        before = [(e.name, e.shape, e.storage) for e in count(context).entries]
        assert any(
            before != [(e.name, e.shape, e.storage) for e in count({**context, **changed}).entries]
            for changed in (
                value if isinstance(value, dict) and key in value else {key: value} for value in alternatives
            )
        ), key


@pytest.mark.parametrize("model_type", half_by_commit(NATIVE, *MODELS))
def test_aliases_are_those_of_transformers(model_type: str):
    """Each of its aliases for a key that changes a tensor, no other, and with both in the file the
    same one wins.
    """
    family, config = architectures.find(model_type), default_config(model_type)
    named = dict(type(config).attribute_map)
    for part in family.parts:
        inside = type(getattr(config, part)).attribute_map if getattr(config, part, None) is not None else {}
        named |= {f"{part}.{alias}": f"{part}.{key}" for alias, key in inside.items()}
    ours, theirs = (
        {alias: key for alias, key in aliases.items() if key in family.keys}
        for aliases in (family.aliases, {**named, **configs.FAMILIES[model_type].aliases})
    )
    assert ours == theirs
    for alias, key in ours.items():
        start = small(model_type).get(key, getattr(config, key, None))
        # The flags of the first must be alike, and are drawn under both names; experts of the
        # second keep the width that the alias does not state, so that they do not run.
        if model_type == "internlm3" or (model_type, key) == ("dbrx", "d_model"):
            continue
        other = not start if isinstance(start, bool) else start[::-1] if isinstance(start, list) else 2 * start
        both = small(model_type, **{key: start, alias: other})
        if model_type == "xlnet":  # else transformers shares out the width before it reads the alias
            both["d_head"] = {"d_model": 16, "n_head": 4}.get(key, 8)
        if (model_type, key) == ("gpt_neo", "num_layers"):
            both["attention_types"] = [[["global"], 2 * start]]
        assert_equal(both)
        alone = {name: value for name, value in both.items() if name != key}
        assert count(alone).total == count(both).total


def test_a_null_alias_states_nothing():
    assert count(small("bloom", n_embed=None)).total == count(small("bloom")).total
