"""Why two models differ: causes that sum to the gap of models that others built, each in the right
words.
"""

from __future__ import annotations

import csv
import io
import json
import pickle
import re

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import configs
import drawing
import tallystick
import unpackaged
from checkpoints import write
from measurements import measured
from native import NATIVE, small
from reference import build
from rotating import some_by_commit
from tallystick import BadInput, architectures
from tallystick.answers.compare.key_categories import kind_of_key
from tallystick.cli.main import main

# DeepSeek's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

FAMILIES = {**configs.CONFIGS, **unpackaged.DRAWN}
SLOW = drawing.some(sorted(FAMILIES), 60)  # types of tests that explain many pairs of each
D, VOCABULARY, POSITIONS, LAYERS = 48, 97, 32, 4
SMALL = {"vocab_size": VOCABULARY, "n_positions": POSITIONS, "n_embd": D, "n_layer": LAYERS, "n_head": 4}
BLOCK = 12 * D * D + 13 * D  # GPT-2's: c_attn, two c_proj and c_fc with their biases, and two norms
LLAMA = {"vocab_size": 100, "hidden_size": D, "intermediate_size": 72, "num_attention_heads": 4, "num_hidden_layers": 2}


def gpt2(**more: object) -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(**{**SMALL, "bos_token_id": 0, "eos_token_id": 0, **more}))


def llama_like(model_type: str, **more: object) -> nn.Module:
    return build({"model_type": model_type, "pad_token_id": None, **LLAMA, **more})


def elements(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def true_total(config: dict[str, object]) -> int:
    """What the model that others build of a config has, by tests/measured."""
    return measured("totals:total", config)


def explained(a, b) -> dict[str, int]:
    """The kinds of the causes and what they add, after asking that they sum to the gap of what
    torch counts.
    """
    answer = tallystick.compare(a, b)
    assert sum(cause.parameters for cause in answer.causes) == answer.gap == answer.total_b - answer.total_a
    for model, total in ((a, answer.total_a), (b, answer.total_b)):
        assert not isinstance(model, nn.Module) or elements(model) == total
    kinds: dict[str, int] = {}
    for cause in answer.causes:
        kinds[cause.cause] = kinds.get(cause.cause, 0) + cause.parameters
    return kinds


# -- configs of one family ------------------------------------------------------------------------


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
    changed = sorted(key for key in differing if not isinstance(other[key], dict))  # which holds several keys
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


# -- one model, three forms -----------------------------------------------------------------------


def test_a_config_its_checkpoint_and_its_live_module_are_the_same(tmp_path):
    model = gpt2()
    model.save_pretrained(tmp_path)
    config = {"model_type": "gpt2", **SMALL}
    for a, b in ((config, tmp_path), (tmp_path, model), (model, config)):
        assert explained(a, b) == {}
    (tmp_path / "config.json").unlink()
    for a, b in ((config, tmp_path), (tmp_path, model)):
        assert explained(a, b) == {}
    assert explained(model, gpt2().to(torch.bfloat16)) == {"dtype": 0}


def test_a_vocabulary_resized_in_a_checkpoint_is_the_key_of_its_config(tmp_path):
    gpt2(vocab_size=128).save_pretrained(tmp_path)
    [cause] = tallystick.compare({"model_type": "gpt2", **SMALL}, tmp_path).causes
    assert (cause.keys, cause.parameters) == (("vocab_size",), 31 * D)


def test_a_checkpoint_that_is_not_what_its_config_says_is_explained_by_its_tensors(tmp_path):
    model = gpt2()
    model.save_pretrained(tmp_path)
    state = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    state["transformer.frobnicator"] = state.pop("transformer.ln_f.bias")  # as many parameters, of which one is strange
    save_file(state, tmp_path / "model.safetensors")
    assert explained({"model_type": "gpt2", **SMALL}, tmp_path) == {"norms": -D, "other": D}


# -- surgeries by real libraries ------------------------------------------------------------------


def test_a_replaced_head():
    model = gpt2()
    model.lm_head = nn.Sequential(nn.Linear(D, VOCABULARY, bias=False))
    answer = tallystick.compare(gpt2(), model)
    assert [cause.what for cause in answer.causes] == ["lm_head.0.weight is no longer tied to transformer.wte.weight"]
    assert explained(gpt2(), model) == {"tie-lost": VOCABULARY * D}
    assert explained(model, gpt2()) == {"tie-gained": -VOCABULARY * D}


def test_a_head_untied_under_its_own_name():
    model = gpt2()
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    assert explained({"model_type": "gpt2", **SMALL}, model) == {"tie-lost": VOCABULARY * D}


def test_token_embeddings_resized_with_padding():
    model = gpt2(tie_word_embeddings=False)
    model.resize_token_embeddings(100, pad_to_multiple_of=64)
    before = gpt2(tie_word_embeddings=False)
    assert explained(before, model) == {"vocabulary": 2 * 31 * D}
    del before.config, model.config  # by the tensors alone, the same
    [cause] = tallystick.compare(before, model).causes
    assert cause.what == "vocabulary 97 → 128 (padded to a multiple of 64)"
    assert cause.parameters == 2 * 31 * D


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_lora_and_the_copies_of_modules_to_save():
    peft = pytest.importorskip("peft")
    lora = peft.LoraConfig(r=4, target_modules=["c_attn"], modules_to_save=["lm_head"], fan_in_fan_out=True)
    answer = tallystick.compare(gpt2(), peft.get_peft_model(gpt2(), lora))
    assert [(cause.cause, cause.parameters) for cause in answer.causes] == [
        ("adapters", VOCABULARY * D),
        ("adapters", LAYERS * 4 * (D + 3 * D)),
    ]
    copies, matrices = answer.causes
    assert "modules_to_save" in copies.what
    assert "LoRA" in matrices.what
    assert len(matrices.names) == 2
    merged = peft.get_peft_model(gpt2(), peft.LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True))
    assert explained(gpt2(), merged.merge_and_unload()) == {}


def test_layers_dropped_and_merged():
    cut = gpt2()
    cut.transformer.h = cut.transformer.h[:-2]
    assert explained(gpt2(), cut) == {"layers": -2 * BLOCK}
    assert explained(cut, gpt2()) == {"layers": 2 * BLOCK}
    assert tallystick.compare(gpt2(), cut).causes[0].what == "layers 4 → 2"
    every_third = gpt2()
    every_third.transformer.h = nn.ModuleList(every_third.transformer.h[layer] for layer in (0, 3))
    assert explained(gpt2(), every_third) == {"layers": -2 * BLOCK}


def nanogpt(**more: object) -> nn.Module:
    sizes = {"vocab_size": VOCABULARY, "block_size": POSITIONS, "n_embd": D, "n_layer": LAYERS, "n_head": 4}
    return build({"model_type": "nanogpt", **sizes, **more})


def test_a_nanogpt_style_module_against_the_hugging_face_one():
    answer = tallystick.compare(gpt2(), nanogpt())
    assert explained(gpt2(), nanogpt()) == {}
    assert answer.aligned[-1] == "12 tensors transposed"  # c_attn, c_fc and the MLP's c_proj; the other is square
    assert explained(gpt2(), nanogpt(vocab_size=128, block_size=64, bias=False)) == {
        "vocabulary": 31 * D,
        "positions": 32 * D,
        "biases": -LAYERS * 9 * D,  # 3D, D, 4D and D
        "norms": -(2 * LAYERS + 1) * D,
    }


def test_all_that_scales_with_the_width_is_one_cause():
    wider = nanogpt(n_embd=2 * D)
    assert explained(gpt2(), wider) == {"width": elements(wider) - elements(gpt2())}
    [cause] = tallystick.compare(gpt2(), wider).causes
    assert cause.what == "width 48 → 96"


def test_an_mlp_width_is_the_same_whether_gate_and_up_are_fused():
    wider = llama_like("phi3", intermediate_size=80)
    assert explained(llama_like("llama"), wider) == {"mlp-width": 2 * 3 * D * 8, "projections-fused": 0}
    assert tallystick.compare(llama_like("llama"), wider).causes[0].what == "MLP width 72 → 80"


def test_fused_and_split_projections_are_the_same():
    sizes = {"vocab_size": VOCABULARY, "context_length": POSITIONS, "emb_dim": D, "n_layers": LAYERS, "n_heads": 4}
    book = build({"model_type": "book_gpt", **sizes, "drop_rate": 0.1, "qkv_bias": True, "tie_word_embeddings": True})
    assert explained(gpt2(), book) == {"projections-fused": 0}
    assert explained(book, gpt2()) == {"projections-fused": 0}
    assert not tallystick.compare(gpt2(), book).different
    unbiased = build({"model_type": "book_gpt", **sizes, "drop_rate": 0.1})
    assert explained(gpt2(), unbiased) == {
        "tie-lost": VOCABULARY * D,
        "biases": -LAYERS * 3 * D,
        "projections-fused": 0,
    }
    assert explained(llama_like("llama"), llama_like("phi3")) == {"projections-fused": 0}


def test_grouped_query_heads_fused_or_not():
    fewer = -2 * LLAMA["num_hidden_layers"] * D * D // 2  # half the keys, half the values
    book = {"vocab_size": 100, "context_length": 8, "emb_dim": D, "n_layers": 2, "n_heads": 4, "hidden_dim": 72}
    grouped = build({"model_type": "book_llama", **book, "n_kv_groups": 2})
    assert explained(llama_like("llama"), grouped) == {"kv-heads": fewer}
    fused = llama_like("phi3", num_key_value_heads=2)
    assert explained(llama_like("llama"), fused) == {"kv-heads": fewer, "projections-fused": 0}  # gate and up


def test_gated_against_plain_mlp_and_learned_positions_against_rotary():
    kinds = explained(llama_like("phi", num_attention_heads=4, partial_rotary_factor=0.5), llama_like("llama"))
    assert kinds["mlp-gate"] == 2 * D * 72
    plain = explained(gpt2(n_inner=72), llama_like("llama", num_hidden_layers=LAYERS, vocab_size=VOCABULARY))
    assert plain["positions"] == -POSITIONS * D
    assert plain["mlp-gate"] == LAYERS * D * 72
    assert plain["tie-lost"] == VOCABULARY * D


def test_experts_fused_or_one_by_one(tmp_path):
    fused, dense = llama_like("mixtral", num_local_experts=4, num_key_value_heads=4), llama_like("llama")
    assert explained(fused, dense) == {"experts": -2 * (4 * 3 * D * 72 + 4 * D - 3 * D * 72)}  # and their routers
    more = llama_like("mixtral", num_local_experts=6, num_key_value_heads=4)
    del fused.config, more.config
    assert explained(fused, more) == {"experts": 2 * 2 * (3 * D * 72 + D)}
    split = {}
    for name, tensor in fused.state_dict().items():
        if name.endswith("gate_up_proj"):
            for expert in range(4):
                split |= {f"{name[:-12]}{expert}.{w}.weight": (72, D) for w in ("w1", "w3")}
        elif name.endswith("experts.down_proj"):
            split |= {f"{name[:-9]}{expert}.w2.weight": (D, 72) for expert in range(4)}
        else:
            split[name] = tuple(tensor.shape)
    write(tmp_path / "model.safetensors", split)
    assert explained(fused, tmp_path) == {"projections-fused": 0}


def test_a_dequantised_copy(tmp_path):
    """Half a byte for each value, as bitsandbytes packs them, with the scales beside."""
    state = {name: tensor for name, tensor in gpt2().state_dict().items() if name != "lm_head.weight"}
    packed, saved = {}, 0
    for name, tensor in state.items():
        if tensor.ndim == 2 and ".h." in name:
            packed[name] = torch.zeros(tensor.numel() // 2, 1, dtype=torch.uint8)
            packed[f"{name}.absmax"] = torch.zeros(tensor.numel() // 64)
            saved += tensor.numel() // 2
        else:
            packed[name] = tensor
    save_file(packed, tmp_path / "packed.safetensors")
    save_file(state, tmp_path / "whole.safetensors")
    answer = tallystick.compare(tmp_path / "packed.safetensors", tmp_path / "whole.safetensors")
    assert [(cause.cause, cause.parameters) for cause in answer.causes] == [("packed", saved), ("dtype", 0)]
    assert answer.causes[1].what == "dtype float32 and uint8 → float32"


def test_quantised_by_torchao_the_parameters_stay():
    quantization = pytest.importorskip("torchao.quantization")
    before = llama_like("llama").to_empty(device="cpu")
    after = llama_like("llama").to_empty(device="cpu")
    quantization.quantize_(after, quantization.Int8WeightOnlyConfig())
    assert not tallystick.compare(before, after).different


def test_buffers_counted_as_parameters(tmp_path):
    model = gpt2()
    for block in model.transformer.h:
        block.attn.register_parameter("tril", nn.Parameter(torch.ones(POSITIONS, POSITIONS)))
    assert explained(gpt2(), model) == {"buffers": LAYERS * POSITIONS * POSITIONS}
    frozen = gpt2()
    for block in frozen.transformer.h:
        block.attn.register_buffer("tril", torch.ones(POSITIONS, POSITIONS))
    assert explained(frozen, model) == {"buffers": LAYERS * POSITIONS * POSITIONS}
    assert explained(gpt2(), frozen) == {}


def test_wrapped_models_are_their_own(tmp_path):
    state = {f"module._orig_mod.{name}": tensor for name, tensor in gpt2().state_dict().items()}
    del state["module._orig_mod.lm_head.weight"]
    save_file(state, tmp_path / "model.safetensors")
    assert explained(gpt2(), tmp_path) == {}
    answer = tallystick.compare(gpt2(), tmp_path)
    assert "prefixes and wrappers" in answer.aligned[0]
    assert explained(nn.DataParallel(torch.compile(gpt2())), tmp_path) == {}
    base = gpt2().transformer  # the published file's names, without `transformer.`
    assert explained(gpt2(), base) == {}


# -- what cannot be explained is not forced --------------------------------------------------------


def test_what_nobody_has_a_word_for_is_said_with_its_names():
    model = gpt2()
    model.frobnicator = nn.Bilinear(3, 4, 5)
    [cause] = tallystick.compare(gpt2(), model).causes
    assert (cause.cause, cause.parameters) == ("other", 5 * 3 * 4 + 5)
    assert cause.names == ("frobnicator.weight", "frobnicator.bias")


def image_model() -> nn.Module:
    return nn.ModuleDict({"conv1": nn.Conv2d(3, 8, 3), "bn1": nn.BatchNorm2d(8), "fc": nn.Linear(8, 10)})


@pytest.mark.parametrize("other", [image_model, lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))])
def test_two_models_with_nothing_in_common_are_said_to_be_so(other):
    with pytest.raises(BadInput, match="have no tensors in common"):
        tallystick.compare(gpt2(), other())


def test_two_empty_models_are_equal():
    assert tallystick.compare(nn.Sequential(), nn.Sequential()).causes == ()


# -- doors ----------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main(["compare", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_first_line_is_the_answer(run):
    code, out, err = run("gpt2", "gpt2", "--set-b", "tie_word_embeddings=false")
    first, blank, cause, *_ = out.splitlines()
    assert first == (
        "B (gpt2) has 38,597,376 more parameters than A (gpt2) (163,037,184 vs. 124,439,808): "
        "lm_head.weight is no longer tied to transformer.wte.weight"
    )
    assert blank == ""
    assert cause == "  lm_head.weight is no longer tied to transformer.wte.weight: +38,597,376 (tie_word_embeddings)"
    assert (code, err) == (0, "")


def test_the_exit_code_is_1_only_when_asked_and_different(run):
    assert run("gpt2", "gpt2-medium")[0] == 0
    assert run("gpt2", "gpt2-medium", "--exit-code")[0] == 1
    assert run("gpt2", "gpt2", "--exit-code")[0] == 0
    assert run("gpt2", "gpt2", "--exit-code", "--set", "n_layer=2")[0] == 0
    assert run("gpt2", "gpt2", "--exit-code", "--set", "n_layer=2", "--set-a", "n_layer=3")[0] == 1
    assert run("gpt2", "gpt2", "--exit-code", "--set-b", "dtype=bfloat16")[0] == 0


def test_json_has_the_keys_that_are_promised(run):
    _, out, _ = run("gpt2", "llama-2-7b", "--format", "json")
    answer = json.loads(out)
    assert answer == tallystick.compare("gpt2", "llama-2-7b").to_dict()
    assert answer["gap"] == 6_738_415_616 - 124_439_808 == sum(cause["parameters"] for cause in answer["causes"])
    assert {"cause", "what", "parameters", "names"} <= answer["causes"][0].keys()
    assert sum(row["parameters"] for row in answer["tensors"]) == answer["gap"]
    sizes = [abs(cause["parameters"]) for cause in answer["causes"] if not cause["cause"].startswith("tie")]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("more", [(), ("--tensors",)])
def test_csv_adds_up(run, more):
    _, out, _ = run("gpt2", "gpt2-xl", "--format", "csv", *more)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(int(row["parameters"]) for row in rows) == 1_557_611_200 - 124_439_808


def test_tensors_are_listed_on_demand(run):
    for style in ("table", "markdown"):
        _, out, _ = run("gpt2", "gpt2", "--set-b", "n_positions=2048", "--tensors", "--format", style)
        [line] = [line for line in out.splitlines() if "1024 × 768" in line]
        assert "transformer.wpe.weight" in line
        assert "2048 × 768" in line
        assert "+786,432" in line


def test_bad_input_is_one_line(run, tmp_path):
    write(tmp_path / "image.safetensors", {"conv1.weight": (8, 3, 3, 3), "bn1.weight": (8,)})
    for arguments in (
        ("gpt2", "gpt3"),
        ("gpt2", str(tmp_path / "image.safetensors")),
        ("gpt2", "gpt2", "--set-b", "n_embd=7"),
        ("gpt2",),
    ):
        code, out, err = run(*arguments)
        assert code == 2
        assert out == ""
        assert err.startswith("tallystick: ")
        assert err.count("\n") == 1
