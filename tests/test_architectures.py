"""Every native architecture against the model that is really built: name by name, shape by shape, tie by tie."""

from __future__ import annotations

import contextlib
import inspect
import math
import signal
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import configs
import drawing
from tallystick import architectures
from tallystick.config import maybe
from tallystick.errors import BadInput
from tallystick.ledger import ROLES, Ledger
from tallystick.sources.config import ledger_from_config
from truth import LACKING, Truth, build, default_config, read, truth

drawn = drawing.drawn(25)

# DeepSeek's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

NATIVE = sorted(configs.CONFIGS)
SLOW = drawing.some(NATIVE, 60)  # types of tests that build many models of each
WITHOUT_TRANSFORMERS = {"palm", "book_gpt", "book_llama", "nanogpt"}
EXPERTS = [  # published one expert by one, or under other names
    "mixtral", "deepseek_v2", "deepseek_v3", "qwen3_next", "qwen2_moe", "olmoe", "granitemoe", "granitemoeshared", "phimoe",
    "glm4_moe", "ernie4_5_moe", "hunyuan_v1_moe", "minimax", "minimax_m2",
    *(model_type for model_type, kin in configs.KIN.items() if kin.experts),
]  # fmt: skip

COMMON = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 2,
}  # fmt: skip
MIXED = {**COMMON, "moe_intermediate_size": 6, "shared_expert_intermediate_size": 5}

# Small enough to build once for each key that is flipped.
SMALL: dict[str, dict[str, Any]] = {
    **{model_type: kin.small for model_type, kin in configs.KIN.items()},
    "gpt2": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "gptj": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "gpt_bigcode": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "codegen": {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 2},
    "gpt_neo": {
        "vocab_size": 40, "hidden_size": 16, "num_heads": 2, "num_layers": 2, "attention_types": [[["global"], 2]],
        "max_position_embeddings": 20,
    },
    "mpt": {"vocab_size": 40, "d_model": 16, "n_heads": 2, "n_layers": 2},
    "bloom": {"vocab_size": 40, "hidden_size": 16, "n_head": 2, "n_layer": 2},
    "opt": {"vocab_size": 40, "hidden_size": 16, "ffn_dim": 12, "num_attention_heads": 2, "num_hidden_layers": 2},
    "gemma3n_text": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 4, "num_kv_shared_layers": 1, "vocab_size_per_layer_input": 30,
        "hidden_size_per_layer_input": 6, "laurel_rank": 3,
    },
    "qwen3_next": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "moe_intermediate_size": 6,
        "shared_expert_intermediate_size": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
        "num_hidden_layers": 4, "num_experts": 12, "linear_key_head_dim": 4, "linear_value_head_dim": 6,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    },
    "bamba": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 3, "mamba_n_heads": 4, "mamba_d_state": 6, "attn_layer_indices": [1],
    },
    "deepseek_v3": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "moe_intermediate_size": 6,
        "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 4, "n_routed_experts": 8,
    },
    "qwen2_moe": {**MIXED, "num_experts": 12},
    "olmoe": {**MIXED, "num_experts": 12},
    "phimoe": {**MIXED, "num_local_experts": 4},
    "glm4_moe": {**MIXED, "n_routed_experts": 12},
    "deepseek_v2": {**MIXED, "n_routed_experts": 12, "num_experts_per_tok": 4},
    "ernie4_5_moe": {**MIXED, "moe_num_experts": 12},
    "hunyuan_v1_moe": {**MIXED, "num_experts": 4, "head_dim": 16},
    "minimax": {**MIXED, "block_size": 3},
    "minimax_m2": {**MIXED, "num_local_experts": 12, "head_dim": 4},
    "gpt_oss": {
        "vocab_size": 40, "hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "num_local_experts": 8,
    },
}  # fmt: skip


def small(model_type: str, **more: Any) -> dict[str, Any]:
    """A complete config of a few thousand parameters."""
    values = {**LACKING.get(model_type, {}), **SMALL.get(model_type, COMMON)}
    family = architectures.find(model_type)
    known = {*family.keys, *family.running, "attention_types", "pad_token_id"}  # the first lists the layers
    return {
        "model_type": model_type,
        "pad_token_id": None,
        **{k: v for k, v in values.items() if k in known or k.endswith(".pad_token_id")},
        **more,
    }


def count(values: dict[str, Any], **more: Any) -> Ledger:
    return ledger_from_config(values, {}, source="test", **more)


def assert_equal(values: dict[str, Any], true: Truth | None = None) -> Ledger:
    """Our ledger of a config says what the built model holds, to the last tensor."""
    ledger, true = count(values), true or truth(values)
    entries = ledger.entries
    shapes = {entry.name: tuple(map(int, entry.shape)) for entry in entries if not entry.buffer}
    assert shapes == true.shapes, values
    assert len({entry.name for entry in entries}) == len(entries), values
    assert {frozenset(tie.names) for tie in ledger.ties} == true.ties, values
    assert {entry.name: tuple(entry.shape) for entry in entries if entry.buffer} == true.buffers, values

    totals = ledger.totals
    sizes = {name: math.prod(shape) for name, shape in true.shapes.items()}
    assert ledger.total == totals["unique"] == true.total, values
    assert totals["trainable"] == true.trainable, values
    assert totals["by_name"] == sum(sizes.values()), values
    assert totals["buffers"] == sum(map(math.prod, true.buffers.values())), values
    assert totals["embedding"] + totals["non_embedding"] == true.total, values
    assert sum(ledger.by("role").values()) == sum(ledger.by("tensor").values()) == true.total, values
    assert 0 < totals["active"] <= true.total, values
    return ledger


# -- against the model that is built --------------------------------------------------------------


def test_every_native_type_is_tested():
    teaching = set(architectures.TEACHING)  # these have a test file of their own
    assert set(architectures.known()) == set(NATIVE) | WITHOUT_TRANSFORMERS | teaching
    for name in architectures.known():
        assert architectures.find(name).name == name
        file = "teaching" if name in teaching else name
        assert architectures.find(name).build.__module__ == f"tallystick.architectures.{file}"


@pytest.mark.parametrize("model_type", NATIVE)
def test_default_config(model_type: str):
    """A config.json that says nothing but its type, and what its default lacks."""
    values = {"model_type": model_type, **LACKING.get(model_type, {})}
    model = build(values)
    assert architectures.find(model_type).class_name == type(model).__name__
    assert_equal(values, read(model))


@pytest.mark.parametrize("model_type", LACKING)
def test_a_default_that_makes_no_model_is_refused(model_type: str):
    with pytest.raises((AssertionError, AttributeError, KeyError, TypeError)):
        build({"model_type": model_type})
    with pytest.raises(BadInput, match=f"^test: {next(iter(LACKING[model_type]))} is missing"):
        count({"model_type": model_type})


@pytest.mark.parametrize("model_type", SLOW)
def test_default_config_as_transformers_writes_it(model_type: str):
    """All keys with their values, those that `__post_init__` computes included."""
    values = default_config(model_type).to_dict()
    assert_equal(values, truth(values))


@pytest.mark.parametrize("model_type", NATIVE)
@given(data=st.data())
@drawn
def test_drawn_configs(model_type: str, data: st.DataObject):
    assert_equal(data.draw(configs.CONFIGS[model_type]))


@pytest.mark.parametrize("model_type", sorted(configs.SKELETONS))
@given(data=st.data())
@drawn
def test_drawn_configs_of_classes_that_are_no_package(model_type: str, data: st.DataObject):
    assert_equal(data.draw(configs.SKELETONS[model_type]))


# -- options that nobody declared -----------------------------------------------------------------


def other_values(value: object) -> list[object]:
    """What a bool, an integer or a null could be instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value, 0]
    return [True, False, 1, 2, 4]


def undeclared(model_type: str) -> list[str]:
    """The bools, integers and nulls of a type's config that our architecture does not read, and those of its class."""
    family, config = architectures.find(model_type), default_config(model_type)
    parameters = {name: p.default for name, p in inspect.signature(type(config).__init__).parameters.items()}
    written = drawing.dotted({**parameters, **config.to_dict()})
    read = set(family.keys) | set(family.aliases)
    read |= {key for part in family.parts.values() if part.beside for key in part.keys}
    return sorted(
        key for key, value in written.items()
        if key not in read and not key.endswith("dtype") and (value is None or isinstance(value, (bool, int)))
    )  # fmt: skip


@pytest.mark.parametrize("model_type", SLOW)
def test_no_option_is_missed(model_type: str):
    """No other key of the config changes a tensor, and all that we read stands in it."""
    built = 0
    base = small(model_type)
    whole = drawing.dotted(default_config(model_type).to_dict())
    for key in undeclared(model_type):
        for value in other_values(whole.get(key)):
            values = {**base, key: value}
            try:
                true = truth(values)
            except Exception:  # no such model: any reason will do
                continue
            assert_equal(values, true)
            built += 1
    assert built > 0


@pytest.mark.parametrize("model_type", NATIVE)
def test_every_declared_key_changes_a_tensor(model_type: str):
    """What an architecture declares is an option of the type, and each one matters in some config."""
    family, base = architectures.find(model_type), small(model_type)
    # These matter only where others are set, or not to shapes at all.
    with_others = {
        "falcon": {"num_kv_heads": {"new_decoder_architecture": True}},
        "gpt_bigcode": {"add_cross_attention": {"multi_query": False}},
        "opt": {"_remove_final_layer_norm": {"do_layer_norm_before": True}},
        "qwen3_moe": {"intermediate_size": {"mlp_only_layers": [0]}},
        "qwen2_moe": {"intermediate_size": {"mlp_only_layers": [0]}},
        "ernie4_5_moe": {"moe_layer_interval": {"moe_layer_start_index": 0}},
        "deepseek_v2": {"intermediate_size": {"first_k_dense_replace": 1}},
        "qwen3_next": {"intermediate_size": {"mlp_only_layers": [0]}},
        "gemma3n_text": {"layer_types": {"num_kv_shared_layers": 6}},  # more than there are
        "llama4_text": {"intermediate_size_mlp": {"moe_layers": [0]}},
        **{kind: kin.needs for kind, kin in configs.KIN.items()},
    }.get(model_type, {})
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
        **(configs.KIN[model_type].others if model_type in configs.KIN else {}),
    }
    for key, default in family.keys.items():
        if key.rpartition(".")[2] in heads:
            continue
        context = {**base, **with_others.get(key, {})}
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


# -- experts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", EXPERTS)
@given(data=st.data())
@drawn
def test_both_layouts_of_experts_count_the_same(model_type: str, data: st.DataObject):
    values = data.draw(configs.CONFIGS[model_type])
    fused, single = count(values), count(values, published=True)
    assert single.totals == fused.totals
    assert single.by("role") == fused.by("role")
    assert [tie.parameters for tie in single.ties] == [tie.parameters for tie in fused.ties]  # a head may be renamed


def test_published_names_of_mixtral():
    values = small("mixtral", num_local_experts=2)
    shapes = {entry.name: tuple(entry.shape) for entry in count(values, published=True).entries}
    assert {name.removeprefix("model.layers.1."): shape for name, shape in shapes.items() if ".1.block_" in name} == {
        "block_sparse_moe.gate.weight": (2, 16),
        "block_sparse_moe.experts.0.w1.weight": (12, 16),
        "block_sparse_moe.experts.0.w3.weight": (12, 16),
        "block_sparse_moe.experts.0.w2.weight": (16, 12),
        "block_sparse_moe.experts.1.w1.weight": (12, 16),
        "block_sparse_moe.experts.1.w3.weight": (12, 16),
        "block_sparse_moe.experts.1.w2.weight": (16, 12),
    }


def test_published_names_of_deepseek_v3():
    values = small("deepseek_v3", n_routed_experts=1, num_experts_per_tok=1)
    shapes = {entry.name: tuple(entry.shape) for entry in count(values, published=True).entries}
    assert {name.removeprefix("model.layers.3."): shape for name, shape in shapes.items() if ".3.mlp" in name} == {
        "mlp.experts.0.gate_proj.weight": (6, 16),
        "mlp.experts.0.up_proj.weight": (6, 16),
        "mlp.experts.0.down_proj.weight": (16, 6),
        "mlp.gate.weight": (1, 16),
        "mlp.gate.e_score_correction_bias": (1,),
        "mlp.shared_experts.gate_proj.weight": (6, 16),
        "mlp.shared_experts.up_proj.weight": (6, 16),
        "mlp.shared_experts.down_proj.weight": (16, 6),
    }


@pytest.mark.parametrize(
    ("model_type", "more", "published"),
    [
        (
            "phimoe",
            {"num_local_experts": 1, "num_experts_per_tok": 1},
            {
                "gate.weight": (1, 16), "experts.0.w1.weight": (12, 16), "experts.0.w3.weight": (12, 16),
                "experts.0.w2.weight": (16, 12),
            },
        ),
        (
            "granitemoe",
            {"num_local_experts": 2},
            {"router.layer.weight": (2, 16), "input_linear.weight": (2, 24, 16), "output_linear.weight": (2, 16, 12)},
        ),
    ],
)  # fmt: skip
def test_published_names_of_block_sparse_moe(model_type: str, more: dict[str, Any], published: dict[str, Any]):
    shapes = {entry.name: tuple(entry.shape) for entry in count(small(model_type, **more), published=True).entries}
    prefix = "model.layers.1.block_sparse_moe."
    assert {name.removeprefix(prefix): shape for name, shape in shapes.items() if name.startswith(prefix)} == published


@pytest.mark.parametrize("model_type", [name for name in EXPERTS if name != "granitemoe"])
def test_published_names_are_those_that_transformers_writes(model_type: str, tmp_path: Path):
    """It saves a model as it was published, whatever it calls the tensors itself."""
    values = {**small(model_type), "num_hidden_layers": 2}
    real = build(values).to_empty(device="cpu")
    real.tie_weights()
    real.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        stored = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118, no dictionary
    entries = count(values, published=True).entries
    assert stored == {entry.name: tuple(entry.shape) for entry in entries if entry.storage == entry.name}


@pytest.mark.parametrize(
    ("model_type", "used", "of"),
    [
        ("mixtral", "num_experts_per_tok", "num_local_experts"),
        ("gpt_oss", "num_experts_per_tok", "num_local_experts"),
        ("deepseek_v3", "num_experts_per_tok", "n_routed_experts"),
        ("ernie4_5_moe", "moe_k", "moe_num_experts"),
        ("hunyuan_v1_moe", "moe_topk", "num_experts"),
    ],
)
def test_a_token_uses_no_more_experts_than_there_are(model_type: str, used: str, of: str):
    values = small(model_type, **{used: 5, of: 4})
    with pytest.raises(BadInput, match=f"test: {used} = 5 is more than {of} = 4"):
        count(values)
    assert count({**values, used: 4}).totals["active"] == count(values | {used: 4}).total


# -- roles ----------------------------------------------------------------------------------------


def role_of(ledger: Ledger, ending: str) -> set[str]:
    return {entry.role for entry in ledger.entries if entry.name.endswith(ending)}


# What Gemma 3n has beside attention and MLP.
OTHER = (
    *[f"model.layers.{n}.{name}" for n in range(35) for name in ("altup.", "laurel.", "per_layer_")],
    "model.altup_",
    "model.per_layer_model_projection.",
    *(beginning for kin in configs.KIN.values() for beginning in kin.beside),
)


@pytest.mark.parametrize("model_type", [*NATIVE, *sorted(WITHOUT_TRANSFORMERS)])
def test_every_tensor_has_a_role(model_type: str):
    required = {
        "palm": {"d_model": 8, "n_layers": 1, "n_heads": 2},
        "book_gpt": {"vocab_size": 9, "context_length": 4, "emb_dim": 8, "n_layers": 1, "n_heads": 2},
        "book_llama": {
            "vocab_size": 9, "context_length": 4, "emb_dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 2,
        },
    }.get(model_type, LACKING.get(model_type, {}))  # fmt: skip
    for entry in count({"model_type": model_type, **required}).entries:
        assert entry.role in ROLES, entry.name
        assert entry.role != "other" or entry.name.startswith(OTHER), entry.name


@pytest.mark.parametrize(
    ("values", "ending", "role"),
    [
        (small("qwen3"), "q_norm.weight", "norm"),
        (small("olmo2"), "k_norm.weight", "norm"),
        (small("phi", qk_layernorm=True), "q_layernorm.bias", "norm"),
        (small("deepseek_v3"), "kv_a_layernorm.weight", "norm"),
        (small("gpt_oss"), "sinks", "attention"),
        (small("gpt_oss"), "router.bias", "router"),
        (small("gpt_oss"), "down_proj_bias", "experts"),
        (small("deepseek_v3"), "shared_experts.up_proj.weight", "mlp"),
        (small("deepseek_v3"), "mlp.gate.weight", "router"),
        (small("gemma3n_text"), "embed_tokens_per_layer.weight", "token_embedding"),
        (small("gemma3n_text"), "laurel.post_laurel_norm.weight", "norm"),
        (small("gemma3n_text"), "altup.modality_router.weight", "other"),
        (small("qwen3_next"), "linear_attn.in_proj_qkvz.weight", "ssm"),
        (small("qwen3_next"), "shared_expert_gate.weight", "router"),
        (small("bamba"), "mamba.A_log", "ssm"),
        (small("bamba"), "mamba.in_proj.weight", "ssm"),
        (small("bamba"), "conv1d.bias", "conv"),
        (small("bamba"), "mamba.norm.weight", "norm"),
        (small("opt", word_embed_proj_dim=4), "project_in.weight", "other"),
        (small("opt", word_embed_proj_dim=4), "project_out.weight", "other"),
        (small("opt"), "fc1.bias", "mlp"),
        (small("opt"), "embed_positions.weight", "position_embedding"),
        (small("phi"), "lm_head.bias", "head"),
        (small("ernie4_5_moe", use_bias=True), "lm_head.bias", "head"),
        (small("ernie4_5_moe"), "moe_statics.e_score_correction_bias", "router"),
        (small("minimax"), "self_attn.output_gate.weight", "ssm"),
        (small("apertus"), "act_fn.alpha_p", "mlp"),
        (small("stablelm", qk_layernorm=True), "q_layernorm.norms.1.weight", "norm"),
        (small("granitemoeshared", shared_intermediate_size=6), "shared_mlp.input_linear.weight", "mlp"),
        (small("hunyuan_v1_moe"), "gate.wg.weight", "router"),
        (small("gptj"), "lm_head.bias", "head"),
        (small("bloom"), "word_embeddings_layernorm.weight", "norm"),
        (small("gpt2", add_cross_attention=True), "crossattention.q_attn.bias", "attention"),
        (small("afmoe"), "mlp.expert_bias", "router"),
        (small("dbrx"), "experts.mlp.w1", "experts"),
        (small("doge", is_moe=True, num_experts=9, num_experts_per_tok=2), "up_embed.weight", "experts"),
        (small("doge", is_moe=True, num_experts=9, num_experts_per_tok=2), "mlp.up_proj.weight", "mlp"),
        (small("flint"), "self_attn.sinks", "attention"),
        (small("laguna"), "self_attn.g_proj.weight", "attention"),
        (small("zaya"), "conv_qk_grouped.weight", "conv"),
        (small("zaya"), "router_mlp.fc1.bias", "router"),
        (small("deepseek_v32"), "indexer.wk.weight", "attention"),
        (small("deepseek_v32"), "indexer.k_norm.bias", "norm"),
        (small("deepseek_v4"), "compressor.position_bias", "attention"),
        (small("deepseek_v4"), "attn_hc.fn", "other"),
        (small("deepseek_v4"), "gate.tid2eid", "router"),
        (small("hy_v3"), "mlp.e_score_correction_bias", "router"),
        (small("axk2"), "input_layernorm.norm.weight", "norm"),
        (small("axk2"), "input_layernorm.mlp.fc1.weight", "other"),
        (small("jetmoe"), "self_attention.experts.input_linear.weight", "experts"),
        (small("jetmoe"), "self_attention.experts.bias", "attention"),
        (small("jetmoe"), "mlp.bias", "mlp"),
        (small("inkling_text"), "k_sconv.conv1d.weight", "conv"),
        (small("inkling_text"), "shared_experts.up_proj", "mlp"),
        (small("inkling_text"), "rel_logits_proj.proj", "attention"),
        (small("bart"), "encoder_attn.k_proj.bias", "attention"),
        (small("pegasus"), "embed_positions.weight", "position_embedding"),
        (small("whisper"), "proj_out.weight", "head"),
        (small("prophetnet"), "ngram_embeddings.weight", "other"),
        (small("blt"), "encoder_hash_tok_embedding.weight", "token_embedding"),
        (small("blt"), "patcher.lm_head.weight", "other"),
    ],
)
def test_roles(values: dict[str, Any], ending: str, role: str):
    assert role_of(count(values), ending) == {role}


# -- what is refused ------------------------------------------------------------------------------

# A width that the heads do not divide; transformers refuses these, or rounds the head size down and builds a model
# whose heads do not fill its width.
SHARED_OUT = [
    name
    for name in NATIVE
    if "num_attention_heads" in (keys := architectures.find(name).keys)
    and getattr(keys.get("head_dim", maybe()), "nullable", False)
    and name not in ("deepseek_v2", "deepseek_v3", "opt", "glm4_moe", "gpt_neox_japanese")
    and not (name in configs.KIN and configs.KIN[name].any_width)
]
INDIVISIBLE = [
    *[small(name, hidden_size=18, head_dim=None) for name in SHARED_OUT],
    *[small(name, hidden_size=18) for name in ("gemma2", "gemma3_text", "gemma3n_text")],
    small("opt", hidden_size=17),
    small("llama", hidden_size=18, head_dim=4),
    small("gemma2", hidden_size=18, head_dim=4),
    small("phi", hidden_size=18, head_dim=4, qk_layernorm=True),
    small("gpt2", n_embd=17),
    *[small(name, n_embd=17) for name in ("gptj", "gpt_bigcode", "codegen")],
    small("gpt_neo", hidden_size=17),
    small("bloom", hidden_size=17),
    {"model_type": "nanogpt", "n_embd": 17},
    {"model_type": "book_gpt", "vocab_size": 9, "context_length": 4, "emb_dim": 9, "n_layers": 1, "n_heads": 2},
    {"emb_dim": 9, "vocab_size": 9, "context_length": 4, "n_layers": 1, "n_heads": 2, "hidden_dim": 8},
]  # fmt: skip


@pytest.mark.parametrize("values", INDIVISIBLE, ids=lambda values: values.get("model_type", "book_llama"))
def test_heads_that_do_not_divide_the_width_are_refused(values: dict[str, Any]):
    with pytest.raises(BadInput, match=r"^test: \w+ = \d+ is not divisible by \w+ = \d+$"):
        count(values)


WIDTHS = ("n_embd", "d_model", "emb_dim", "hidden_size")


@pytest.mark.parametrize("model_type", sorted(set(NATIVE) - {"blt", "dots3_note"}))  # whose parts have widths too
def test_where_transformers_refuses_heads_so_do_we(model_type: str):
    """And where it does not, and no shape is rounded, the counts agree."""
    known = architectures.find(model_type).keys
    part = "" if any(key in known for key in WIDTHS) else "text_config."
    width = next(part + key for key in WIDTHS if part + key in known)
    stated = {f"{part}head_dim": 4} if f"{part}head_dim" in known else {}
    values = small(model_type, **{width: 17}, **stated)
    try:
        true = truth(values)
    except Exception:  # transformers raises several kinds
        with pytest.raises(BadInput, match="not divisible"):
            count(values)
    else:
        assert_equal(values, true)


GROUPED = [
    name for name in NATIVE if {"num_attention_heads", "num_key_value_heads"} <= set(architectures.find(name).keys)
]


@pytest.mark.parametrize("model_type", GROUPED)
def test_key_value_heads_that_do_not_divide_the_heads_are_refused(model_type: str):
    with pytest.raises(BadInput, match="test: num_attention_heads = 4 is not divisible by num_key_value_heads = 3"):
        count(small(model_type, num_key_value_heads=3))


def test_the_other_spellings_of_grouped_heads_are_refused_too():
    with pytest.raises(BadInput, match="num_attention_heads = 4 is not divisible by num_kv_heads = 3"):
        count(small("falcon", new_decoder_architecture=True, num_kv_heads=3))
    llama = {"emb_dim": 8, "vocab_size": 9, "context_length": 4, "n_layers": 1, "n_heads": 4, "hidden_dim": 8}
    with pytest.raises(BadInput, match="n_heads = 4 is not divisible by n_kv_groups = 3"):
        count({**llama, "n_kv_groups": 3})


@pytest.mark.parametrize(
    "override", [{"intermediate_size": 24}, {"num_key_value_heads": 1}, {"skip": ["mlp"]}, {"intermediate_size": 12}]
)
def test_layers_with_sizes_of_their_own_are_refused_as_transformers_does(override: dict[str, Any]):
    values = small("llama", per_layer_config={"0": override})
    try:
        true = truth(values)
    except RuntimeError:
        with pytest.raises(BadInput, match="test: per_layer_config gives single layers their own"):
            count(values)
    else:
        assert_equal(values, true)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"emb_dim": 8, "n_kv_groups": 2}, "n_kv_groups"),
        ({"emb_dim": 8, "num_experts": 4}, "num_experts"),
        ({"emb_dim": 8, "hidden_dim": 8, "num_experts": 4}, "num_experts"),
        ({"emb_dim": 8, "hidden_dim": 8, "query_pre_attn_scalar": 256}, "query_pre_attn_scalar"),
    ],
)
def test_dictionaries_of_other_book_classes_are_refused_not_miscounted(values: dict[str, Any], key: str):
    whole = {"vocab_size": 9, "context_length": 4, "n_layers": 1, "n_heads": 2, **values}
    with pytest.raises(BadInput, match=f"test: {key} is no key of the book's"):
        count(whole)


@pytest.mark.parametrize("key", ["vocab_size", "context_length", "emb_dim", "n_heads", "n_layers"])
def test_the_book_has_no_defaults(key: str):
    values = {"vocab_size": 9, "context_length": 4, "emb_dim": 8, "n_layers": 1, "n_heads": 2}
    del values[key]
    with pytest.raises(BadInput, match=f"test: {key} is missing"):
        count({"model_type": "book_gpt", **values})


# -- aliases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", NATIVE)
def test_aliases_are_those_of_transformers(model_type: str):
    """Each of its aliases for a key that we read, no other, and with both in the file the same one wins."""
    family, config = architectures.find(model_type), default_config(model_type)
    named = dict(type(config).attribute_map)
    for part in family.parts:
        inside = type(getattr(config, part)).attribute_map if getattr(config, part, None) is not None else {}
        named |= {f"{part}.{alias}": f"{part}.{key}" for alias, key in inside.items()}
    theirs = {alias: key for alias, key in named.items() if key in family.keys}
    # In the attribute map of qwen3_moe they stand the other way round, though its field is num_experts.
    legacy = {
        "bloom": {"n_embed": "hidden_size"},
        "falcon": {"n_embed": "hidden_size"},
        "qwen3_moe": {"num_local_experts": "num_experts"},
        **{kind: kin.aliases for kind, kin in configs.KIN.items()},
    }.get(model_type, {})
    assert family.aliases == theirs | legacy
    for alias, key in family.aliases.items():
        start = small(model_type).get(key, getattr(config, key, None))
        # The flags of the first must be alike, and are drawn under both names; experts of the second keep the width that
        # the alias does not state, so that they do not run.
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


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"mamba_n_heads": 3}, r"mamba_expand·hidden_size = 32 is not divisible by mamba_n_heads = 3"),
        ({"mamba_d_head": 5}, "mamba_d_head is 5, but mamba_expand·hidden_size shared out among the heads is 8"),
        ({"mamba_d_head": "8"}, "mamba_d_head is the string '8', but"),
        ({"attn_layer_indices": 1}, "attn_layer_indices must list the numbers of the layers that attend, or be null"),
        ({"attn_layer_indices": [True]}, "attn_layer_indices must list the numbers"),
    ],
)
def test_what_contradicts_itself_in_a_hybrid_is_refused(more: dict[str, Any], why: str):
    with pytest.raises(BadInput, match=f"^test: {why}"):
        count(small("bamba", **more))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"num_kv_shared_layers": 4}, "num_kv_shared_layers = 4 of 4 layers leaves none of a kind to borrow"),
        ({"num_kv_shared_layers": 9}, "num_kv_shared_layers = 9 of 4 layers leaves none of a kind to borrow"),
        ({"num_hidden_layers": 6, "num_kv_shared_layers": 2}, "num_kv_shared_layers = 2 of 6 layers leaves none"),
        (
            {"num_kv_shared_layers": 1, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
            "num_kv_shared_layers = 1 of 4 layers leaves none",
        ),
        ({"intermediate_size": [4, 5, 6]}, "intermediate_size lists 3 widths for 4 layers"),
        ({"intermediate_size": []}, "intermediate_size lists 0 widths for 4 layers"),
        ({"intermediate_size": [4, 5, -1, 6]}, "intermediate_size_2 is -1, expected a positive integer"),
    ],
)
def test_what_transformers_refuses_of_borrowed_layers_is_refused(more: dict[str, Any], why: str):
    values = small("gemma3n_text", **more)
    with pytest.raises(BadInput, match=f"^test: {why}"):
        count(values)
    with pytest.raises((ValueError, RuntimeError)):
        truth(values)


@pytest.mark.parametrize(
    ("model_type", "more", "why"),
    [
        ("gpt_bigcode", {"add_cross_attention": True}, "add_cross_attention needs multi_query = false"),
        (
            "hunyuan_v1_moe",
            {"moe_topk": [1, 2], "num_hidden_layers": 3},
            "moe_topk must list, for each of the 3 layers",
        ),
        ("hunyuan_v1_moe", {"moe_topk": [1, 5]}, "moe_topk must list, for each of the 2 layers, .*, and there are 4"),
        ("hunyuan_v1_moe", {"moe_topk": [1, 0]}, "moe_topk_1 is 0, expected a positive integer"),
        ("minimax", {"layer_types": ["full_attention"]}, "layer_types must list full_attention or linear_attention"),
        ("minimax", {"layer_types": ["full_attention", "sliding"]}, "layer_types must list full_attention or linear"),
        (
            "ernie4_5_moe",
            {"moe_layer_end_index": -2},
            "moe_layer_end_index is -2, expected the number of a layer, or -1",
        ),
        ("ernie4_5_moe", {"moe_layer_end_index": "1"}, "moe_layer_end_index is the string '1', expected the number"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers must hold a 1 or 0 for each of the 2 layers"),
        ("olmo3", {"layer_types": ["full_attention"]}, "layer_types must list the kind of each of the 2 layers"),
        ("qwen2_moe", {"mlp_only_layers": 0.5}, "mlp_only_layers is 0.5, expected a list of layers"),
        ("moshi", {"ffn_dim": 5}, "ffn_dim = 5 is not even"),
        ("blt", {"encoder_config": 5}, "encoder_config is 5, expected an object"),
        ("blt", {"encoder_config.hidden_size": -1}, "encoder_config.hidden_size is -1, expected a positive"),
        ("blt", {"encoder_hash_byte_group_size": 3}, "encoder_hash_byte_group_size must list how many bytes"),
        ("hunyuan_v1_dense", {"head_dim": None}, "head_dim is None, expected a positive integer"),
        ("internlm3", {"mlp_bias": True}, r"attention_bias \(or qkv_bias\) and mlp_bias \(or bias\) differ"),
        ("diffllama", {"num_key_value_heads": 1}, "heads of keys and values come in pairs, and there are 1"),
        (
            "mellum",
            {"mlp_layer_types": ["dense"]},
            "mlp_layer_types must list dense or sparse for each of the 2 layers",
        ),
        (
            "laguna",
            {"num_attention_heads_per_layer": [4]},
            "num_attention_heads_per_layer must list, for each of the 2",
        ),
        (
            "laguna",
            {"num_attention_heads_per_layer": [4, 3]},
            "num_attention_heads_per_layer must list, .* a multiple of",
        ),
        ("laguna", {"gating": None}, "gating is None, expected true, false or a word"),
        (
            "zaya",
            {"num_experts_per_tok": 2},
            "num_experts_per_tok is 2, and transformers builds such a model for 1 alone",
        ),
        (
            "zaya",
            {"layer_types": ["hybrid"]},
            "layer_types must list hybrid or hybrid_sliding for each of the 2 layers",
        ),
        ("zaya", {"layer_types": ["hybrid_sliding"] * 2}, "layer_types lists hybrid_sliding, for which sliding_window"),
        ("dbrx", {"tie_word_embeddings": True}, "tie_word_embeddings is true, and transformers builds no such model"),
        ("dbrx", {"attn_config.rope_theta": None}, "attn_config.rope_theta is missing"),
        ("dbrx", {"attn_config.kv_n_heads": 3}, "n_heads = 4 is not divisible by attn_config.kv"),
        (
            "glm4_moe_lite",
            {"mlp_layer_types": ["dense"]},
            "mlp_layer_types must list dense or sparse for each of the 4",
        ),
        ("glm_moe_dsa", {"index_topk_pattern": "FXFF"}, "index_topk_pattern must spell an F or S for each of the 4"),
        ("deepseek_v4", {"compress_ratios": [0, 4, 128, 5]}, "compress_ratios must list 0, 4 or 128 for each of the 4"),
        (
            "deepseek_v4",
            {"compress_rates": {}},
            "compress_rates is the object {}, expected how many tokens become one under heavily",
        ),
        ("longcat_flash", {"moe_topk": 12}, r"moe_topk = 12 is more than n_routed_experts \+ zero_expert_num = 11"),
        ("cohere2_moe", {"first_k_dense_replace": 5}, "first_k_dense_replace = 5 is more than num_hidden_layers = 4"),
        ("minimax_m3_vl_text", {"moe_layer_freq": [1]}, "what marks mlp_layer_types is"),
        ("minimax_m3_vl_text", {"sparse_attention_config": 1}, "sparse_attention_config is 1, expected a dictionary"),
        (
            "cohere_compass_text",
            {"rope_parameters": {}},
            "rope_parameters is the object {}, expected a dictionary that has full",
        ),
        (
            "inkling_text",
            {"local_layer_ids": 1},
            "local_layer_ids must list the numbers of the layers that see a window",
        ),
        (
            "dots3_note_text",
            {"per_layer_config": {"4": {}}},
            "per_layer_config names the string '4', expected the number of one of 4 layers",
        ),
        ("dots3_note_text", {"swa_head_dim": 1}, "swa_head_dim = 1 is not swa_qk_nope_head_dim = 2 and what positions"),
        ("dots3_note_text", {"moe_layer_freq": [1]}, "moe_layer_freq is .*, expected a positive integer, or a 0 or 1"),
    ],
)
def test_what_makes_no_model_is_refused(model_type: str, more: dict[str, Any], why: str):
    with pytest.raises(BadInput, match=f"^test: {why}"):
        count(small(model_type, **more))


@pytest.mark.parametrize("shared", [11, 14, 15])
def test_more_borrowed_layers_than_there_are_as_transformers_builds_them(shared: int):
    """Its default, 15, of a model cut to ten layers: those that lend keep their projections, and no other does."""
    ledger = assert_equal(small("gemma3n_text", num_hidden_layers=10, num_kv_shared_layers=shared))
    assert sum(entry.name.endswith("k_proj.weight") for entry in ledger.entries) == 2


@pytest.mark.parametrize("model_type", NATIVE)
def test_absurd_counts_are_told_at_once(model_type: str):
    """A million million of anything is counted, or refused in a line: nothing is made for each of them."""

    def stop(*_: object) -> None:
        raise TimeoutError  # so that a loop over them all is a failure, and not a run without an end

    signal.signal(signal.SIGALRM, stop)
    for key, declared in architectures.find(model_type).keys.items():
        default = getattr(declared, "default", declared)
        if isinstance(default, bool) or not (default is None or isinstance(default, int)):
            continue
        signal.alarm(60)
        with contextlib.suppress(BadInput):
            assert count(small(model_type, **{key: 10**12})).total > 0
        signal.alarm(0)


def test_a_null_alias_states_nothing():
    assert count(small("bloom", n_embed=None)).total == count(small("bloom")).total


# -- the types that no package builds -------------------------------------------------------------

BOOK_GPT = {
    "vocab_size": 50257, "context_length": 1024, "emb_dim": 768, "n_heads": 12, "n_layers": 12, "drop_rate": 0.1,
    "qkv_bias": False,
}  # fmt: skip
BOOK_LLAMA = {
    "vocab_size": 32000, "context_length": 4096, "emb_dim": 4096, "n_heads": 32, "n_layers": 32, "hidden_dim": 11008,
}  # fmt: skip


def test_book_gpt():
    assert count(BOOK_GPT).architecture == "book_gpt"
    assert count(BOOK_GPT).total == 163_009_536
    assert count({**BOOK_GPT, "tie_word_embeddings": True}).total == 124_412_160
    assert count({**BOOK_GPT, "qkv_bias": True, "tie_word_embeddings": True}).total == 124_439_808


def test_book_llama():
    assert count(BOOK_LLAMA).architecture == "book_llama"
    assert count(BOOK_LLAMA).total == 6_738_415_616
    llama_3 = {**BOOK_LLAMA, "vocab_size": 128_256, "hidden_dim": 14_336, "n_kv_groups": 8}
    assert count(llama_3).total == 8_030_261_248
    qwen_3 = {
        "vocab_size": 151_936, "context_length": 40_960, "emb_dim": 1024, "n_heads": 16, "n_layers": 28,
        "hidden_dim": 3072, "head_dim": 128, "qk_norm": True, "n_kv_groups": 8,
    }  # fmt: skip
    assert count({**qwen_3, "tie_word_embeddings": True}).total == 596_049_920


def test_nanogpt():
    # Its README's 124M: GPT-2's count, with the vocabulary padded from 50,257 to 50,304 rows.
    values = {"block_size": 1024, "n_embd": 768}
    assert count(values).architecture == "nanogpt"
    assert count(values).total == 124_439_808 + (50_304 - 50_257) * 768
    assert count({**values, "vocab_size": 50_257}).total == 124_439_808


def test_palm_by_hand():
    """Section 2.1, for a width of 4096, 16 heads and 32 layers."""
    d, heads, layers = 4096, 16, 32
    swiglu = 3 * d * (4 * d)
    attention = d * heads * 256 + 2 * d * 256 + heads * 256 * d
    by_hand = 256_000 * d + layers * (swiglu + attention)
    values = {"model_type": "palm", "d_model": d, "n_heads": heads, "n_layers": layers}
    assert count(values).total == by_hand
    scaled = count({**values, "norm_scale": True})
    assert scaled.total == by_hand + (layers + 1) * d
    assert not any("bias" in entry.name for entry in scaled.entries)


def test_transformers_has_none_of_these():
    """When it comes to, they belong among the native types, to be compared with it."""
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    assert not WITHOUT_TRANSFORMERS & set(known)
