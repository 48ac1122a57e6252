"""What a rank holds, against real ranks: FSDP2 on two and four processes, tensor parallel ones, and split models."""

import json
import subprocess
import sys

import pytest

import tallystick
from tallystick import BadInput
from tallystick.answers.formats import bytes_of
from tallystick.answers.optimizers import state_bytes
from tallystick.answers.sharding import Shards, checked, shard
from truth import build

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
LIMIT = 120  # seconds

RANK = """
import json, sys
import torch, transformers
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

how, rank, ranks, folder, config = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], json.loads(sys.argv[5])
store = distributed.FileStore(folder + "/store", ranks)
distributed.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
mesh = init_device_mesh("cpu", (ranks,))
torch.manual_seed(0)
config = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
model = transformers.AutoModelForCausalLM.from_config(config)

def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor

def allocated(tensors):
    storages = {one.untyped_storage()._cdata: one.untyped_storage().nbytes() for one in map(local, tensors)}
    return sum(storages.values())

found = {}
if how == "fsdp":
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.tensor([[1, 2, 3]])
    model(ids, labels=ids)["loss"].backward()
    found["gradients"] = allocated(parameter.grad for parameter in model.parameters())
    optimizer.step()
    found["optimizer"] = sum(local(t).nbytes for state in optimizer.state.values() for t in state.values())
else:
    columns = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
    plan = {f"self_attn.{name}" if name[1] == "_" else f"mlp.{name}": ColwiseParallel() for name in columns}
    plan |= {"self_attn.o_proj": RowwiseParallel(), "mlp.down_proj": RowwiseParallel()}
    for layer in model.model.layers:
        parallelize_module(layer, mesh, plan)
    parallelize_module(model, mesh, {"model.embed_tokens": RowwiseParallel(), "lm_head": ColwiseParallel()})
found["weights"] = allocated(model.parameters())
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(found, file)
distributed.destroy_process_group()
"""


def run_ranks(how, ranks, folder, config):
    """What each of so many real processes holds, in bytes."""
    command = [sys.executable, "-c", RANK, how]
    given = [str(ranks), str(folder), json.dumps(config)]
    running = [
        subprocess.Popen([*command, str(rank), *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(ranks)
    ]
    try:
        for process in running:
            _, error = process.communicate(timeout=LIMIT)
            assert process.returncode == 0, error[-2000:]
    finally:
        for process in running:
            process.kill()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


def held(config, what="weights", **ways):
    """The bytes of the fullest rank, in float32."""
    ledger = tallystick.count(config)
    entries = shard(ledger.parameters, checked(Shards(**ways), ledger), what)
    size = (lambda e: state_bytes(e, "adamw", "float32")) if what == "optimizer" else (lambda e: bytes_of(e, None))
    return sum(map(size, entries))


@pytest.mark.parametrize("ranks", [2, 4])
def test_fully_shard_gives_each_rank_what_is_predicted(tmp_path, ranks):
    found = run_ranks("fsdp", ranks, tmp_path, ODD)
    predicted = {what: held(ODD, what, dp=ranks, zero=3) for what in ("weights", "gradients", "optimizer")}
    for what in ("weights", "gradients"):  # of all ranks the same, since the last rows are padded
        assert [rank[what] for rank in found] == [predicted[what]] * ranks
    states = [rank["optimizer"] for rank in found]  # which pads nothing: the first rank has the most
    assert states[0] == max(states) == predicted["optimizer"] > states[-1]
    answer = tallystick.memory(ODD, mode="training", dp=ranks, zero=3, sequence=8).to_dict()
    assert [answer[f"{what}_bytes"] for what in predicted] == list(predicted.values())


def test_tensor_parallel_ranks_hold_what_is_predicted(tmp_path):
    config = {**EVEN, "vocab_size": 102, "tie_word_embeddings": False}
    found = run_ranks("tp", 2, tmp_path, config)
    assert [rank["weights"] for rank in found] == [held(config, tp=2)] * 2


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
    assert ("must add their gradients" in notes) == tied


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
    """Rajbhandari et al. 2020, figure 1: 16 bytes a parameter, of which 12, 14 or all are shared."""
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


def test_the_cache_is_shared_by_heads_and_layers():
    def cache(config, **ways):
        return tallystick.memory(config, sequence=16, **ways).to_dict()["kv_cache_bytes"]

    assert cache(EVEN) == 2 * cache(EVEN, tp=2)
    four = {**EVEN, "num_hidden_layers": 4}
    assert cache(four) == 4 * cache(four, pp=4)
    assert cache("deepseek-v3") == cache("deepseek-v3", tp=8)  # one latent vector serves all heads


HYBRID = {
    **EVEN, "model_type": "bamba", "num_hidden_layers": 8, "attn_layer_indices": [3, 5, 7], "mamba_n_heads": 4,
    "mamba_d_state": 6, "dtype": "float32",
}  # fmt: skip


def test_of_a_hybrid_the_stage_that_attends_most_stands_for_all():
    """Layers 4 to 7, of which two attend: two heads of 8 elements, keys and values; the others carry a state."""
    lines = {line.what: line.bytes for line in tallystick.memory(HYBRID, sequence=100, tp=2, pp=2).lines}
    assert lines["cached keys and values in float32"] == 2 * 100 * (2 * 2 * 8) // 2 * 4
    assert lines["last inputs of convolutions in float32"] == 2 * (64 + 2 * 6) * 4 * 4
    assert lines["states of recurrent layers in float32"] == 2 * 64 * 6 * 4


def test_two_of_the_largest_layers_are_gathered_however_many_runs_of_them_there_are():
    """Each of these layers is a unit of `fully_shard`; no more than two of them are whole at once."""
    units = [sum(tensor.nbytes for tensor in layer.parameters()) for layer in build(HYBRID).model.layers]
    line = next(
        line
        for line in tallystick.memory(HYBRID, mode="training", sequence=4, dp=2, zero=3).lines
        if line.what == "weights gathered for the layers at work"
    )
    root = 4 * (101 * 32 + 32)  # the embedding, which is the head too, and the last norm
    assert line.bytes == root + 2 * max(units)


def test_ddp_keeps_buckets_beside_gradients():
    answer = tallystick.memory(ODD, mode="training", dp=2, sequence=8).to_dict()
    assert answer["gradients_bytes"] == 2 * 4 * tallystick.count(ODD).total


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({"tp": 3}, "has 4 query heads, which 3 tensor parallel ranks do not divide"),
        ({"tp": 4}, "has 2 key and value heads, which 4 tensor parallel ranks do not divide"),
        ({"pp": 2}, "has 3 layers, which 2 pipeline stages do not divide"),
        ({"ep": 2}, "has no experts, too few for 2 expert parallel ranks"),
        ({"zero": 3, "mode": "training"}, "zero 3 shares among data parallel ranks: say how many with dp"),
        ({"zero": 4}, "zero is 4, expected 0 to 3"),
        ({"dp": 0}, "dp is 0, expected a positive integer"),
        ({"dp": 2.0}, "dp is 2.0, expected a positive integer"),
        ({"dp": 2, "zero": 1}, "zero shares what training keeps"),
    ],
)
def test_what_cannot_be_spread_so_is_refused(ways, words):
    with pytest.raises(BadInput, match=words):
        tallystick.memory(EVEN, **ways)


def test_more_ranks_than_experts_are_refused():
    for ep, words in ((8, "has 4 experts, too few for 8"), (3, "has 4 experts, which 3 expert parallel ranks")):
        with pytest.raises(BadInput, match=words):
            tallystick.memory(MIXTRAL, ep=ep)
    with pytest.raises(BadInput, match="dp 3 must be a multiple of ep"):
        tallystick.memory(MIXTRAL, ep=2, dp=3)
