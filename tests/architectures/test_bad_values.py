"""Values of which no model can be built are refused in a line, as transformers refuses them."""

from __future__ import annotations

import contextlib
import signal
from typing import Any

import pytest

import configs
from native import NATIVE, assert_equal, count, small
from reference import build, truth
from rotating import MODELS, half_by_commit
from tallystick import architectures
from tallystick.core.config import optional
from tallystick.errors import BadInput

# DeepSeek's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

# A width that the heads do not divide; transformers refuses these, or rounds the head size down and
# builds a model whose heads do not fill its width.
SHARED_OUT = [
    name
    for name in NATIVE
    if "num_attention_heads" in (keys := architectures.find(name).keys)
    and getattr(keys.get("head_dim", optional()), "nullable", False)
    and name not in ("deepseek_v2", "deepseek_v3", "opt", "glm4_moe", "gpt_neox_japanese")
    and not configs.FAMILIES[name].any_width
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


@pytest.mark.parametrize(
    "model_type", half_by_commit(sorted(set(NATIVE) - {"blt", "dots3_note"}), *MODELS)
)  # whose parts have widths too
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
    with pytest.raises(BadInput, match=f"test: {key} is not a key of the book's"):
        count(whole)


@pytest.mark.parametrize("key", ["vocab_size", "context_length", "emb_dim", "n_heads", "n_layers"])
def test_the_book_has_no_defaults(key: str):
    values = {"vocab_size": 9, "context_length": 4, "emb_dim": 8, "n_layers": 1, "n_heads": 2}
    del values[key]
    with pytest.raises(BadInput, match=f"test: {key} is missing"):
        count({"model_type": "book_gpt", **values})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"mamba_n_heads": 3}, r"mamba_expand·hidden_size = 32 is not divisible by mamba_n_heads = 3"),
        ({"mamba_d_head": 5}, "mamba_d_head is 5, but mamba_expand·hidden_size divided by the heads is 8"),
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
        ({"num_kv_shared_layers": 4}, "num_kv_shared_layers = 4 of 4 layers leaves no layer of a kind to share"),
        ({"num_kv_shared_layers": 9}, "num_kv_shared_layers = 9 of 4 layers leaves no layer of a kind to share"),
        ({"num_hidden_layers": 6, "num_kv_shared_layers": 2}, "num_kv_shared_layers = 2 of 6 layers leaves no layer"),
        (
            {"num_kv_shared_layers": 1, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
            "num_kv_shared_layers = 1 of 4 layers leaves no layer",
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
        ("diffllama", {"num_key_value_heads": 1}, "key and value heads come in pairs, but there are 1"),
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
            "num_experts_per_tok is 2, but transformers supports only 1",
        ),
        (
            "zaya",
            {"layer_types": ["hybrid"]},
            "layer_types must list hybrid or hybrid_sliding for each of the 2 layers",
        ),
        ("zaya", {"layer_types": ["hybrid_sliding"] * 2}, "layer_types lists hybrid_sliding, for which sliding_window"),
        ("dbrx", {"tie_word_embeddings": True}, "tie_word_embeddings is true, which transformers does not support for"),
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
            "compress_rates is the object {}, expected the number of tokens per compressed token under heavily",
        ),
        ("longcat_flash", {"moe_topk": 12}, r"moe_topk = 12 is more than n_routed_experts \+ zero_expert_num = 11"),
        ("cohere2_moe", {"first_k_dense_replace": 5}, "first_k_dense_replace = 5 is more than num_hidden_layers = 4"),
        ("minimax_m3_vl_text", {"moe_layer_freq": [1]}, "the mask for mlp_layer_types is"),
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
        (
            "dots3_note_text",
            {"swa_head_dim": 1},
            "swa_head_dim = 1 is not swa_qk_nope_head_dim = 2 plus the rotary size",
        ),
        ("dots3_note_text", {"moe_layer_freq": [1]}, "moe_layer_freq is .*, expected a positive integer, or a 0 or 1"),
    ],
)
def test_what_makes_no_model_is_refused(model_type: str, more: dict[str, Any], why: str):
    with pytest.raises(BadInput, match=f"^test: {why}"):
        count(small(model_type, **more))


@pytest.mark.parametrize("model_type", half_by_commit(NATIVE, *MODELS))
def test_absurd_counts_are_told_at_once(model_type: str):
    """A million million of anything is counted, or refused in a line: nothing is made for each of
    them.
    """

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


def test_a_window_may_be_null_where_every_layer_attends_in_full():
    values = small("kolibri1")
    values |= {"sliding_window": None, "layer_types": ["full_attention"] * values["num_hidden_layers"]}
    assert count(values).total == sum(weight.numel() for weight in build(values).parameters())
