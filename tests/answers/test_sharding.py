"""What a rank holds, against real ranks: FSDP2 on two and four processes, tensor parallel ones, and
split models.
"""

import re
from itertools import product

import pytest

import tallystick
from autograd_memory import build, saved_bytes
from measurements import measured
from runnable import config_of
from sharded import freeze
from tallystick import BadInput
from tallystick.answers.memory.number_formats import bytes_of
from tallystick.answers.memory.optimizers import state_bytes
from tallystick.answers.memory.pipeline import on_stage, stages
from tallystick.answers.memory.placement import Shards, checked
from tallystick.answers.memory.sharding import divided, shard
from tallystick.core.ledger import Ledger

pytestmark = pytest.mark.usefixtures("preloaded_module")

# Sizes that no number of ranks divides: the last rank's rows are fewer, or none.
ODD = {
    "model_type": "llama", "hidden_size": 20, "intermediate_size": 33, "num_hidden_layers": 3, "num_attention_heads": 5,
    "vocab_size": 101, "tie_word_embeddings": True,
}  # fmt: skip
EVEN = {**ODD, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
MIXTRAL = {
    **EVEN,
    "model_type": "mixtral",
    "num_local_experts": 4,
    "tie_word_embeddings": False,
    "num_hidden_layers": 4,
}


# What is cut: rotary positions and RMSNorm, tied and by hand; and biases, LayerNorm and one matrix
# for queries, keys and values.
LLAMA = {**EVEN, "hidden_size": 64, "intermediate_size": 176, "vocab_size": 210}
CUT = [
    (LLAMA, "flash"),
    ({**LLAMA, "tie_word_embeddings": False}, "eager"),
    (config_of("gpt_neox", tie_word_embeddings=False, vocab_size=210), "flash"),
]


@pytest.fixture(scope="module")
def on_two():
    """What two processes find: under `fully_shard`, under DistributedDataParallel, and cut by a
    plan.
    """
    return measured(
        "sharded:on_ranks", 2, [("fully_sharded", [ODD]), ("replicated", [ODD]), *(("cut", one) for one in CUT)]
    )


def held(source, what="weights", rank=0, **ways):
    """The bytes of a rank of a stage, in float32: of the first unless another is asked for, of the
    fullest stage.
    """
    ledger = source if isinstance(source, Ledger) else tallystick.count(source)
    shards = checked(Shards(**ways), ledger)
    size = (lambda e: state_bytes(e, "adamw", "float32")) if what == "optimizer" else (lambda e: bytes_of(e, None))
    spread = divided(ledger, shards)
    return max(
        sum(map(size, shard(on_stage(spread.parameters, stage), shards, what, rank)))
        for stage in stages(spread, shards.pp)
    )


# -- data parallel --------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "config"), [(2, ODD), (4, {**ODD, "hidden_size": 6, "num_attention_heads": 3})])
def test_fully_shard_gives_every_rank_what_is_predicted(count, config, on_two):
    found = list(on_two[0] if count == 2 else measured("sharded:on_ranks", count, [("fully_sharded", [config])])[0])
    predicted = [
        {what: held(config, what, rank, dp=count, zero=3) for what in ("weights", "gradients", "optimizer")}
        for rank in range(count)
    ]
    assert found == predicted  # the optimizer pads nothing: the last rank has less, with 6 rows of 4 ranks none
    assert found[0]["optimizer"] > found[-1]["optimizer"]
    assert found[0]["weights"] == found[-1]["weights"]
    answer = tallystick.memory(config, mode="training", dp=count, zero=3, sequence=8).to_dict()
    assert [answer[f"{what}_bytes"] for what in found[0]] == list(found[0].values())


def test_what_fully_shard_gathers_is_at_most_what_is_predicted():
    """The most at once beside weights and optimizer, on one of seven ranks: of small vocabularies
    and of large ones.
    """
    sizes = {**ODD, "hidden_size": 66, "intermediate_size": 255, "num_attention_heads": 3}
    configs = [
        {**sizes, "vocab_size": size, "num_hidden_layers": layers} for size, layers in ((301, 8), (1001, 8), (5005, 3))
    ]
    frozen = ["", ".layers."]
    [[found]] = measured("sharded:on_ranks", 1, [("most_while_sharded", [configs, 7, frozen])])
    for (word, config), most in zip(product(frozen, configs), found, strict=True):
        ledger = tallystick.count(freeze(build(config), word))
        answer = tallystick.memory(ledger, mode="training", dp=7, zero=3, sequence=1)
        lasting = sum(line.bytes for line in answer.lines if line.part in ("weights", "optimizer"))
        assert 1 <= (answer.total_bytes - lasting) / most < 1.07


def test_ddp_keeps_buckets_beside_gradients(on_two):
    answer = tallystick.memory(ODD, mode="training", dp=2, sequence=8).to_dict()
    assert [*on_two[1]] == [{what: answer[f"{what}_bytes"] for what in ("gradients", "buckets")}] * 2


def test_of_lora_only_the_adapters_are_in_buckets():
    answer = tallystick.memory(LLAMA, mode="training", dp=2, lora=4, sequence=64).to_dict()
    assert answer["buckets_bytes"] == answer["gradients_bytes"] < answer["weights_bytes"] / 5


# -- tensor parallel ------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(len(CUT)))
def test_tensor_parallel_ranks_hold_what_is_predicted(which, on_two):
    (config, attention), found = CUT[which], on_two[2 + which]
    assert [rank["weights"] for rank in found] == [held(config, tp=2)] * 2
    torn = 210 * 64 * 4 // 2 if config["tie_word_embeddings"] else 0  # torch makes the shard of a tied matrix two
    assert [rank["apart"] - rank["weights"] for rank in found] == [torn] * 2
    answer = tallystick.memory(config, mode="training", tp=2, batch=2, sequence=32, attention=attention)
    of_loss = next(
        line.bytes for line in answer.lines if "log-probabilities" in line.what and "gradients" not in line.what
    )
    assert [rank["saved"] for rank in found] == [answer.to_dict()["activations_bytes"] + of_loss] * 2


PLANNED = (
    "phi", "starcoder2", "llama", "granite", "olmo2", "mistral", "phi3", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text",
    "mixtral", "gpt_neox",
)  # fmt: skip


@pytest.mark.parametrize("model_type", PLANNED)
def test_what_is_cut_is_what_transformers_plans_to_cut(model_type):
    config = config_of(model_type)
    model = build(config, attention="eager")
    ledger = tallystick.count(config)
    entries = divided(ledger, checked(Shards(tp=2), ledger)).entries
    sizes = {entry.name: entry.size for entry in entries}
    for name, parameter in model.named_parameters():
        if ".layers." in name:
            path = re.sub(r"\.\d+(?=\.|$)", ".*", name)
            style = model.tp_plan.get(path) or model.tp_plan.get(path.rpartition(".")[0]) or ""
            rows = parameter.ndim > 1 and "rowwise" in style
            assert sizes[name] == parameter.numel() // (2 if rows or "colwise" in style else 1), (name, style)


def test_a_bias_that_is_added_to_a_sum_over_ranks_stays_whole():
    ledger = divided(tallystick.count(config_of("gpt_oss")), Shards(tp=2))
    sizes = {entry.name: entry.size for entry in ledger.parameters}
    assert sizes["model.layers.{}.mlp.experts.down_proj_bias"] == 4 * 64
    assert sizes["model.layers.{}.mlp.experts.gate_up_proj_bias"] == 4 * 2 * 176 // 2
    assert sizes["model.layers.{}.self_attn.o_proj.bias"] == 64


# -- pipelines ------------------------------------------------------------------------------------


def bytes_in(model, keep):
    return sum(p.numel() * 4 for name, p in model.named_parameters() if keep(name))


@pytest.mark.parametrize("tied", [True, False])
def test_a_stage_of_a_pipeline_holds_its_layers_and_one_end(tied):
    config = {**EVEN, "num_hidden_layers": 4, "tie_word_embeddings": tied}
    model = build(config)
    layer = bytes_in(model, lambda name: ".layers.0." in name)
    vocabulary, norm = 101 * 32 * 4, 32 * 4
    # The last stage has the final norm besides, and the head: tied, a copy of the embedding.
    assert held(config, pp=2) == 2 * layer + vocabulary + norm
    notes = " ".join(tallystick.memory(config, mode="training", pp=2, sequence=8).notes)
    assert ("must sum the gradients" in notes) == tied


def test_a_first_stage_keeps_activations_of_as_many_micro_batches_as_there_are_stages():
    def training(config):
        return tallystick.memory(config, mode="training", batch=2, sequence=16, pp=2)

    four, two = ({**EVEN, "tie_word_embeddings": False, "num_hidden_layers": layers} for layers in (4, 2))
    layers = saved_bytes(build(four), 2, 16) - saved_bytes(build(two), 2, 16)  # of two layers
    stage = training(four)
    of_layers = sum(line.bytes for line in stage.lines if line.what in ("attention", "mlp", "norms"))
    assert of_layers == 2 * layers
    assert stage.to_dict()["logits_bytes"] == 0  # these are on the last stage, which keeps one micro-batch
    assert training({**four, "vocab_size": 5000}).to_dict()["logits_bytes"] > 0  # and so may be the fullest


def test_a_live_model_is_spread_as_its_config_is():
    for config, ways in (
        (EVEN, {"dp": 3, "zero": 3}),
        ({**EVEN, "num_hidden_layers": 4}, {"pp": 2}),
        (MIXTRAL, {"ep": 2}),
    ):
        live, told = (
            tallystick.memory(source, mode="training", sequence=8, dtype="float32", **ways).to_dict()
            for source in (tallystick.count(build(config)), config)
        )
        different = {key for key in told if live[key] != told[key]} - {"source", "notes", "lines"}
        assert different == set()


def test_the_fullest_stage_where_layers_differ():
    config = {
        **EVEN, "model_type": "deepseek_v3", "num_hidden_layers": 4, "first_k_dense_replace": 2, "n_routed_experts": 4, "n_group": 1,
        "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "kv_lora_rank": 8, "q_lora_rank": None,
        "tie_word_embeddings": False,
    }  # fmt: skip
    model = build(config)
    last = bytes_in(
        model, lambda name: ".layers.2." in name or ".layers.3." in name or "lm_head" in name or ".norm." in name
    )
    first = bytes_in(model, lambda name: ".layers.0." in name or ".layers.1." in name or "embed" in name)
    assert last > first
    assert held(config, pp=2) == last


def test_experts_are_spread_and_the_rest_is_whole():
    model = build(MIXTRAL)
    experts = bytes_in(model, lambda name: ".experts." in name)
    assert held(MIXTRAL, ep=2) == bytes_in(model, lambda name: True) - experts // 2
    # Two ranks that hold the same experts share them further; all four share the rest.
    shared = held(MIXTRAL, "weights", ep=2, dp=4, zero=3)
    assert shared == held(MIXTRAL, "weights", dp=4, zero=3)


def test_the_stages_of_zero():
    """Rajbhandari et al. 2020, figure 1: 16 bytes a parameter, of which 12, 14 or all are
    shared.
    """
    config = {**EVEN, "num_hidden_layers": 2}
    total = tallystick.count(config).total

    def states(zero):
        answer = tallystick.memory(config, mode="training", precision="master", dp=64, zero=zero, sequence=8).to_dict()
        return sum(answer[f"{part}_bytes"] for part in ("weights", "gradients", "optimizer")) / total

    whole = tallystick.memory(config, mode="training", precision="master", sequence=8).to_dict()
    assert whole["weights_bytes"] + whole["gradients_bytes"] + whole["optimizer_bytes"] >= 16 * total
    assert states(0) > 16 > states(1) > states(2) > states(3)
    answer = tallystick.memory(config, mode="training", precision="master", dp=64, zero=1, sequence=8).to_dict()
    assert (answer["weights_bytes"], answer["gradients_bytes"]) == (2 * total, 2 * total)


def test_zero_cuts_what_it_lays_end_to_end_where_fully_shard_cuts_rows():
    """Four experts in one tensor, 64 ranks: a row is a whole expert, of which most ranks have
    none.
    """
    experts = [entry for entry in tallystick.count(MIXTRAL).parameters if "gate_up" in entry.name]
    shapes = [shard(experts, Shards(64, zero), "optimizer")[0].shape for zero in (1, 3)]
    assert shapes == [(4, 2, 32), (1, 96, 32)]


# -- what serves ----------------------------------------------------------------------------------


def test_the_cache_is_shared_by_heads_and_layers():
    def cache(config, **ways):
        return tallystick.memory(config, sequence=16, **ways).to_dict()["kv_cache_bytes"]

    assert cache(EVEN) == 2 * cache(EVEN, tp=2)
    four = {**EVEN, "num_hidden_layers": 4}
    assert cache(four) == 4 * cache(four, pp=4)
    assert cache("deepseek-v3") == cache("deepseek-v3", tp=8)  # one latent vector serves all heads
    assert "latent-attention heads are sharded" in " ".join(tallystick.memory("deepseek-v3", tp=8).notes)


HYBRID = {
    **EVEN, "model_type": "bamba", "num_hidden_layers": 8, "attn_layer_indices": [3, 5, 7], "mamba_n_heads": 4,
    "mamba_d_state": 6, "dtype": "float32",
}  # fmt: skip


def test_of_a_hybrid_the_fullest_stage_attends_most_once_sequences_are_long():
    """Layers 4 to 7, of which two attend: two heads of 8 elements, keys and values; the others
    carry a state.
    """
    answer = tallystick.memory(HYBRID, sequence=5000, tp=2, pp=2)
    lines = {line.what: line.bytes for line in answer.lines}
    assert lines["keys and values in float32"] == 2 * 5000 * (2 * 2 * 8) // 2 * 4
    # transformers' plans cut no scan: each rank keeps it whole.
    assert lines["convolution states in float32"] == 2 * (64 + 2 * 6) * 4 * 4
    assert lines["recurrent states in float32"] == 2 * 64 * 6 * 4
    assert "recurrent weights and states are replicated" in " ".join(answer.notes)
    short = {line.what: line.bytes for line in tallystick.memory(HYBRID, sequence=1, tp=2, pp=2).lines}
    assert short["recurrent states in float32"] == 3 * 64 * 6 * 4  # the first stage has more weights


def test_of_a_pattern_of_windows_the_stage_that_sees_most_stands_for_all():
    """Each twelfth layer sees all tokens, the others keep 7: of stages of three, the fourth has one
    that sees all.
    """
    config = {
        **EVEN, "model_type": "gemma3_text", "num_hidden_layers": 45, "head_dim": 8, "sliding_window": 8,
        "sliding_window_pattern": 12, "dtype": "float32",
    }  # fmt: skip
    answer = tallystick.memory(config, sequence=64000, pp=15).to_dict()
    assert answer["kv_cache_bytes"] == (2 * 7 + 64000) * 2 * (2 * 8) * 4


def test_a_stage_that_one_run_of_equal_layers_fills_may_be_the_fullest():
    """Scans are larger than attention; of four stages of four layers the third has nothing else."""
    attending = [*range(6), *range(12, 16)]
    config = {**HYBRID, "num_hidden_layers": 16, "attn_layer_indices": attending, "vocab_size": 8}
    third = bytes_in(build(config), lambda name: any(f".layers.{layer}." in name for layer in range(8, 12)))
    ledger = tallystick.count(config)
    unmodelled = Ledger(ledger.rolled, source="a file", kind=ledger.kind)  # which layers attend is not known
    assert held(config, pp=4) == held(unmodelled, pp=4) == third


@pytest.mark.parametrize("ways", [{}, {"dp": 2}, {"tp": 2}])
def test_a_rank_knows_what_is_no_text(ways):
    """Learned positions of a tower number no tokens: a step keeps 16 ids of 8 bytes, and no
    positions, which turn.
    """
    text = {**EVEN, "head_dim": 8}
    vision = {
        "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28,
        "patch_size": 14,
    }  # fmt: skip
    config = {"text_config": text, "vision_config": vision, "architectures": ["Gemma3ForConditionalGeneration"]}
    answer = tallystick.memory({"model_type": "gemma3", **config}, mode="training", sequence=16, **ways)
    assert [line.bytes for line in answer.lines if line.what == "token ids and positions"] == [16 * 8]


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({"tp": 3}, "has 4 query heads, which 3 tensor parallel ranks do not divide"),
        ({"tp": 4}, "has 2 key and value heads, which 4 tensor parallel ranks do not divide"),
        ({"pp": 2}, "has 3 layers, which 2 pipeline stages do not divide"),
        ({"ep": 2}, "has no experts, too few for 2 expert parallel ranks"),
        ({"zero": 3, "mode": "training"}, "zero 3 needs dp: give the number of data-parallel ranks"),
        ({"zero": 4}, "zero is 4, expected 0 to 3"),
        ({"dp": 0}, "dp is 0, expected a positive integer"),
        ({"dp": 2.0}, "dp is 2.0, expected a positive integer"),
        ({"dp": 2, "zero": 1}, "zero is for training: shard"),
    ],
)
def test_what_cannot_be_spread_so_is_refused(ways, words):
    with pytest.raises(BadInput, match=words):
        tallystick.memory(EVEN, **ways)


def test_a_model_without_layers_has_no_stages():
    with pytest.raises(BadInput, match="has 0 layers, which 2 pipeline stages do not divide"):
        tallystick.memory({"model_type": "bare_bones_lm", "vocab_size": 10, "d_model": 4}, pp=2)


def test_more_ranks_than_experts_are_refused():
    for ep, words in ((8, "has 4 experts, too few for 8"), (3, "has 4 experts, which 3 expert parallel ranks")):
        with pytest.raises(BadInput, match=words):
            tallystick.memory(MIXTRAL, ep=ep)
    with pytest.raises(BadInput, match="dp 3 must be a multiple of ep"):
        tallystick.memory(MIXTRAL, ep=2, dp=3)
