"""Why two configs differ: causes that sum to the gap of models that others built, each in the right
words.
"""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import configs
import drawing
import tallystick
import unpackaged
from compared_models import LLAMA, SMALL, D
from measurements import measured
from native import NATIVE, small
from rotating import some_by_commit
from tallystick import architectures
from tallystick.answers.compare.key_categories import kind_of_key

# DeepSeek's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

FAMILIES = {**configs.CONFIGS, **unpackaged.DRAWN}
SLOW = drawing.some(sorted(FAMILIES), 60)  # types of tests that explain many pairs of each


def true_total(config: dict[str, object]) -> int:
    """What the model that others build of a config has, by tests/measured."""
    return measured("totals:total", config)


@pytest.mark.parametrize("model_type", some_by_commit(SLOW, 10))
@given(data=st.data())
@drawing.drawn(8)
def test_the_causes_of_two_configs_sum_to_the_difference_of_the_true_counts(model_type, data):
    a, b = data.draw(FAMILIES[model_type]), data.draw(FAMILIES[model_type])
    answer = tallystick.compare(a, b)
    assert sum(cause.parameters for cause in answer.causes) == answer.gap == true_total(b) - true_total(a)
    keys = {key for key in {*a, *b} if a.get(key, drawing.ABSENT) != b.get(key, drawing.ABSENT)}
    differing = {architectures.find(model_type).aliases.get(key, key) for key in keys}
    for cause in answer.causes:
        assert cause.keys, (a, b)
        assert {key.partition(".")[0] for key in cause.keys} <= {key.partition(".")[0] for key in differing}, (a, b)


@pytest.mark.parametrize("model_type", some_by_commit(SLOW, 10))
@given(data=st.data())
@drawing.drawn(8)
def test_one_key_changed_is_the_first_cause(model_type, data):
    a, other = data.draw(FAMILIES[model_type]), data.draw(FAMILIES[model_type])
    idle = {"model_type", "pad_token_id", "drop_rate"}
    differing = {key for key in other.keys() - idle if other[key] != a.get(key, drawing.ABSENT)}
    parts = {name.partition(".")[0] for name in a if "." in name}
    changed = sorted(key for key in differing - parts if not isinstance(other[key], dict))  # which hold several keys
    assume(changed)
    key = data.draw(st.sampled_from(changed))
    b = {**a, key: other[key]}
    part, dot, _ = key.rpartition(".")
    assume(not dot or any(name.startswith(f"{part}.") for name in a))  # a part that comes with its key is a cause too
    try:
        answer = tallystick.compare(a, b)
        gap = true_total(b) - true_total(a)
    except Exception:  # heads that do not divide the width, or more experts used than there are
        assume(False)
    assume(gap)
    [cause] = answer.causes
    assert cause.keys == (architectures.find(model_type).aliases.get(key, key),)
    assert cause.parameters == gap


@given(data=st.data())
@drawing.drawn(60)
def test_the_causes_of_any_two_families_sum_to_the_gap(data):
    a, b = (tallystick.count(data.draw(FAMILIES[data.draw(st.sampled_from(sorted(FAMILIES)))])) for _ in "ab")
    answer = tallystick.compare(a, b)
    assert sum(cause.parameters for cause in answer.causes) == answer.gap == b.total - a.total
    assert sum(row.parameters for row in answer.tensors) == answer.gap
    assert not tallystick.compare(a, a).causes
    unexplained = {name for cause in answer.causes if cause.cause == "other" for name in cause.names}
    # OPT puts a projection between embedding and layers, Gemma 3n keeps several streams and mixes
    # them, and ProphetNet has a vector for each token ahead: no role is made for these.
    beside = tuple(re.sub(r"\b\d+\b", "*", name) for family in configs.FAMILIES.values() for name in family.beside)
    assert all(
        name.startswith(beside)
        or re.search(r"\.project_(in|out)\.|\.altup|\.laurel\.|\.per_layer_|\.ngram_|_tower\.", name)
        for name in unexplained
    )


def test_a_model_of_any_type_is_rebuilt_from_its_config():
    """Also where a config must state a key that changes no tensor, as DBRX's its rotary base."""
    for model_type in NATIVE:
        assert tallystick.compare(small(model_type), small(model_type)).causes == ()
    a, b = ({**small("dbrx"), "n_layers": layers} for layers in (2, 3))
    [cause] = tallystick.compare(a, b).causes
    assert cause.keys == ("n_layers",)
    copied = pickle.loads(pickle.dumps(tallystick.count(a)))
    assert tallystick.compare(copied, b).causes == (cause,)


def test_most_keys_that_an_architecture_reads_have_a_kind():
    """The words of a new one's keys are mostly those of others; a reader is told the key itself in
    any case.
    """
    keys = {key.rpartition(".")[2] for name in architectures.known() for key in architectures.find(name).keys}
    unmodelled = sorted(key for key in keys - {"tie_word_embeddings"} if kind_of_key(key) == "config-key")
    assert len(unmodelled) < len(keys) / 6, unmodelled


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("vocab_size", "vocabulary"), ("type_vocab_size", "token-types"), ("n_layer", "layers"), ("n_embd", "width"),
        ("hidden_size", "width"), ("word_embed_proj_dim", "embedding-width"), ("n_inner", "mlp-width"),
        ("decoder_ffn_dim", "mlp-width"), ("intermediate_size", "mlp-width"), ("moe_intermediate_size", "experts"),
        ("num_attention_heads", "heads"), ("head_dim", "heads"), ("qk_rope_head_dim", "heads"), ("d_head", "heads"),
        ("num_key_value_heads", "kv-heads"), ("kv_n_heads", "kv-heads"), ("multi_query", "kv-heads"), ("num_kv_shared_layers", "kv-sharing"),
        ("q_lora_rank", "latent-attention"), ("index_n_heads", "indexers"), ("mamba_d_state", "scans"),
        ("linear_num_key_heads", "scans"), ("layer_types", "scans"), ("add_cross_attention", "cross-attention"),
        ("attention_bias", "biases"), ("mamba_conv_bias", "biases"), ("use_qk_norm", "norms"), ("parallel_attn", "norms"),
        ("n_positions", "positions"), ("block_size", "positions"), ("decoder_sparse_step", "experts"),
        ("num_hash_layers", "experts"), ("encoder_hash_byte_group_vocab", "hashes"), ("text_config", "parts"),
        ("use_double_wide_mlp", "mlp-width"), ("attention_k_eq_v", "kv-sharing"), ("embedding_dim", "width"),
        ("add_bias_linear", "biases"), ("qk_dim_factor", "heads"), ("v_dim_factor", "heads"),
        ("attention_hidden_size", "heads"), ("num_blocks", "layers"),
        ("somebodys_own", "config-key"),
    ],
)  # fmt: skip
def test_the_kind_of_a_key(key, kind):
    assert kind_of_key(key) == kind


def test_a_tie_that_is_lost_reads_as_the_seed_of_the_project():
    answer = tallystick.compare("gpt2", tallystick.count("gpt2", tie_word_embeddings=False))
    [cause] = answer.causes
    assert cause.what == "lm_head.weight is no longer tied to transformer.wte.weight"
    assert (cause.cause, cause.parameters, cause.keys) == ("tie-lost", 38_597_376, ("tie_word_embeddings",))
    [gained] = tallystick.compare(tallystick.count("gpt2", tie_word_embeddings=False), "gpt2").causes
    assert (gained.cause, gained.parameters) == ("tie-gained", -38_597_376)
    assert gained.what == "lm_head.weight is now tied to transformer.wte.weight"


@pytest.mark.parametrize(("tied_first", "head"), [(True, 128), (False, 97)])
def test_a_tie_is_worth_what_the_untied_head_is_whatever_else_changes(tied_first, head):
    a = {"model_type": "gpt2", **SMALL, "tie_word_embeddings": tied_first}
    b = {"model_type": "gpt2", **SMALL, "tie_word_embeddings": not tied_first, "vocab_size": 128}
    tie, vocabulary = tallystick.compare(a, b).causes
    assert abs(tie.parameters) == head * D
    assert vocabulary.parameters == (128 - 97) * D
    assert vocabulary.what == "vocab_size 97 → 128 (padded to a multiple of 64)"


def test_a_width_and_its_heads_that_no_model_has_alone_are_one_cause():
    a = {"model_type": "gpt2", **SMALL, "n_embd": 64, "n_head": 4}
    answer = tallystick.compare(a, {**a, "n_embd": 66, "n_head": 3})
    assert [cause.keys for cause in answer.causes] == [("n_embd", "n_head")]
    # Where the number of heads changes nothing, and is not needed, it is not named.
    assert [cause.keys for cause in tallystick.compare(a, {**a, "n_embd": 128, "n_head": 8}).causes] == [("n_embd",)]


def test_heads_that_grow_in_number_with_the_width_are_one_cause_with_it():
    a = {"model_type": "llama", **LLAMA, "num_key_value_heads": 2}
    answer = tallystick.compare(a, {**a, "hidden_size": 2 * D, "num_attention_heads": 8})
    assert [cause.keys for cause in answer.causes] == [("hidden_size", "num_attention_heads")]


def test_a_key_that_changes_no_tensor_is_no_cause():
    answer = tallystick.compare("gpt2", tallystick.count("gpt2", n_head=6))
    assert answer.causes == ()
    assert answer.sentence == "B (gpt2) and A (gpt2) both have 124,439,808 parameters"


def test_two_models_of_671_billion_cost_no_more_than_two_of_gpt2(monkeypatch):
    from tallystick.core.entries import Entry

    monkeypatch.setattr(Entry, "unrolled", None)  # to list single tensors is what would cost
    variant = tallystick.count("deepseek-v3", n_routed_experts=384, hidden_size=8192, num_hidden_layers=70)
    assert {cause.cause for cause in tallystick.compare("deepseek-v3", variant).causes} == {
        "experts",
        "width",
        "layers",
    }
    assert tallystick.compare("deepseek-v3", "llama-3.1-405b").gap == 405_853_388_800 - 671_026_404_352


def test_only_tensors_that_differ_are_listed():
    (row,) = tallystick.compare("gpt2", {"model_type": "gpt2", "n_positions": 512}).tensors
    assert (row.name_a, row.shape_a, row.shape_b, row.parameters) == (
        "transformer.wpe.weight", (1024, 768), (512, 768), -512 * 768
    )  # fmt: skip
