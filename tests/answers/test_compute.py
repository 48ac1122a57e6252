"""Operations are those that torch's own counter sees while real models run, forward and
backward.
"""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import configs
import tallystick
from checkpoints import write
from drawing import drawn, some
from measurements import measured
from rotating import MODELS, half_by_commit
from small_decoders import SMALL, WIDTHS
from tallystick.answers.compute.attention import visible
from tallystick.answers.compute.compute import compute
from tallystick.answers.workload import positions
from tallystick.cli.main import main

# AFMoE's config can ask for no shared expert: transformers then builds matrices without a row.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

GROUPED_FALCON = {**WIDTHS, "num_hidden_layers": 3, "new_decoder_architecture": True, "num_kv_heads": 2}
EAGER_ONLY = {  # which have no SDPA attention
    "bloom", "gemma2", "gpt_oss", "gptj", "gpt_neo", "codegen", "mpt", "gpt_neox_japanese", "xglm",
}  # fmt: skip
EACH = [
    (attention, model_type, values)
    for model_type, values in [*SMALL, ("falcon", GROUPED_FALCON)]
    for attention in ("eager", "sdpa")
    if attention == "eager" or model_type not in EAGER_ONLY
]


@pytest.mark.parametrize(
    ("attention", "model_type", "values"),
    half_by_commit(EACH, *MODELS, "src/tallystick/answers/compute/"),
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_as_many_operations_as_torch_counts(attention, model_type, values):
    values = {**values, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
    values = {"model_type": model_type, **values}
    ledger, lengths = tallystick.count(values), ((1, 5), (3, 12))
    for (batch, sequence), found in zip(
        lengths, measured("operations:counted", values, lengths, attention), strict=True
    ):
        forward, backward, fused = found
        answer = compute(ledger, batch=batch, sequence=sequence)
        assert answer.complete
        assert answer.forward_flops == forward
        assert (answer.flash_training_flops if fused else answer.training_flops) - answer.forward_flops == backward


DENSE = sorted(name for name, family in configs.FAMILIES.items() if family.attends and family.counted)
RUNS = {name: family.runs for name, family in configs.FAMILIES.items()}


@pytest.mark.parametrize("model_type", half_by_commit(some(DENSE, 50), *MODELS, "src/tallystick/answers/compute/"))
@drawn(6)
@given(data=st.data())
def test_as_many_as_torch_counts_for_drawn_configs(model_type, data):
    small = {"vocab_size": 60, "bos_token_id": None, "eos_token_id": None}
    values = {**small, **data.draw(configs.CONFIGS[model_type]), **RUNS.get(model_type, {})}
    ledger = tallystick.count(values)
    batch, sequence = data.draw(st.integers(1, 3)), data.draw(st.integers(1, min(9, positions(ledger) or 9)))
    [(forward, backward, _)] = measured("operations:counted", values, [(batch, sequence)], "eager")
    answer = compute(ledger, batch=batch, sequence=sequence)
    assert (answer.forward_flops, answer.backward_flops) == (forward, backward)


def test_experts_that_transformers_runs_for_nothing_are_not_counted():
    """Llama 4's experts read every token there, scaled by 0 where they are not chosen."""

    from operations import built, run

    values = {**LLAMA, "num_local_experts": 4, "moe_layers": [1]}
    forward, backward, _ = run(built("llama4_text", values, "eager"), 2, 7)
    answer = compute(tallystick.count({"model_type": "llama4_text", **values}), batch=2, sequence=7)
    experts = [product for product in answer.lines if product.part == "experts"]
    assert (forward - answer.forward_flops, backward - answer.backward_flops) == (
        3 * sum(product.forward_flops for product in experts),
        3 * sum(product.backward_flops for product in experts),
    )
    assert any("all experts would cost 4 times the FLOPs" in note for note in answer.notes)


def test_a_model_whose_layers_take_a_token_more_than_once_is_not_complete():
    """ProphetNet's projections read each token three times: once for itself, and for the next
    two.
    """
    answer = compute(tallystick.count({"model_type": "prophetnet"}), sequence=5)
    assert not answer.complete
    assert any("process each token 2 + 1 times" in note for note in answer.notes)


def test_sines_that_are_stored_and_never_trained_freeze_nothing():
    answer = compute(tallystick.count({"model_type": "pegasus"}), sequence=5)
    assert answer.backward_flops == 2 * answer.forward_flops
    assert answer.approximations  # which a model that is frozen in part has none of


def test_what_is_left_out_of_a_scan_is_said():
    answer = compute(tallystick.count({"model_type": "kimi_linear"}), sequence=5)
    assert not answer.complete
    assert any("recurrent scans are not counted" in note for note in answer.notes)
    assert not any("the source does not" in note for note in answer.notes)


MAMBA_2 = {**WIDTHS, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 4}
SCANS = [
    ("bamba", {}),
    ("bamba", {"attn_layer_indices": [1]}),
    ("bamba", {"mamba_n_groups": 2, "mamba_d_conv": 3}),
    ("bamba", {"mamba_chunk_size": 256}),
    ("falcon_h1", {"mamba_d_ssm": 64, "mamba_rms_norm": True}),
    ("mamba2", {"num_heads": 4, "head_dim": 16, "state_size": 8, "chunk_size": 4, "n_groups": 2}),
]


@pytest.mark.parametrize(("model_type", "values"), SCANS, ids=str)
@pytest.mark.parametrize(("batch", "sequence"), [(1, 8), (3, 10), (2, 3)])
def test_scans_take_as_many_as_torch_counts(model_type, values, batch, sequence):
    """But for the gradient of a convolution's weight: torch counts it as if each channel read all
    channels.
    """
    values = {**MAMBA_2, "num_key_value_heads": 2, "num_hidden_layers": 3, "pad_token_id": None, **values}
    forward, backward, channels, convolved, convolved_back = measured(
        "operations:counted_of_scans", {"model_type": model_type, **values}, batch, sequence
    )
    assert convolved_back == (channels + 1) * convolved
    answer = compute(tallystick.count({"model_type": model_type, **values}), batch=batch, sequence=sequence)
    assert answer.complete
    assert not answer.notes
    assert answer.forward_flops == forward
    assert answer.backward_flops == backward - (channels - 1) * convolved
    assert answer.needed_flops < answer.forward_flops


@pytest.mark.parametrize("sequence", [150, 64, 3])
def test_a_delta_rule_needs_the_pairs_of_a_chunk_that_a_position_sees(sequence):
    """Counted pair by pair: keys with keys, queries with keys and weights with values; and at each
    position three products with the state.
    """
    heads, keys, values, layers, batch = 6, 8, 5, 3, 2
    sizes = {
        "linear_num_value_heads": heads, "linear_num_key_heads": 3, "linear_key_head_dim": keys, "linear_value_head_dim": values,
        "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 100,
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 8,
    }  # fmt: skip
    answer = compute(tallystick.count({"model_type": "qwen3_next", **sizes}), batch=batch, sequence=sequence)
    pairs = sum(one // 64 == other // 64 for one in range(sequence) for other in range(one + 1))
    scan = [product.needed_flops for product in answer.lines if "linear_attn: " in product.what]
    assert len(scan) == 7
    assert sum(scan) == 2 * batch * heads * layers * (pairs * (2 * keys + values) + 3 * sequence * keys * values)


def test_what_is_multiplied_element_by_element_is_no_matrix_product():
    """Mamba's decays have two axes, and none that a token is multiplied with."""
    answer = compute(tallystick.count({"model_type": "mamba"}), sequence=5)
    weights = {product.what.partition("mixer.")[2] for product in answer.lines if product.part == "ssm"} - {""}
    assert weights == {f"{name}.weight" for name in ("in_proj", "x_proj", "dt_proj", "out_proj")}


# -- what is trained ------------------------------------------------------------------------------

LLAMA = {**WIDTHS, "num_hidden_layers": 3, "num_key_value_heads": 2, "pad_token_id": None, "tie_word_embeddings": False}


def test_the_experts_that_are_batched_take_as_many():
    from operations import built, run

    values = {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2}
    model = built("mixtral", values, "eager")
    model.set_experts_implementation("batched_mm")
    forward, backward, _ = run(model, 2, 7)
    answer = compute(tallystick.count({"model_type": "mixtral", **values}), batch=2, sequence=7)
    assert (answer.forward_flops, answer.backward_flops) == (forward, backward)


@pytest.mark.parametrize(
    "trained",
    [
        ["lm_head.weight"],
        ["model.layers.1.", "model.layers.2.", "model.norm.weight", "lm_head.weight"],
        ["model.layers.0.mlp.down_proj.weight"],
        ["model.embed_tokens.weight"],
        [],
    ],
    ids=["the head", "upper layers", "one matrix", "the embedding", "nothing"],
)
def test_frozen_weights_take_no_gradient(trained):
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from operations import built

    model = built("llama", LLAMA, "eager")
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith(tuple(trained))
    tokens = torch.arange(7)[None] + 3
    with FlopCounterMode(display=False) as counter:
        logits = model(tokens, use_cache=False).logits
        if trained:
            logits.sum().backward()
    answer = compute(tallystick.count(model), sequence=7)
    # The norm before q_proj prints after it: so the first gradient of that product's other factor
    # is missed.
    missed = 2 * 7 * 32 * 32 if "model.norm.weight" in trained else 0
    assert answer.training_flops == counter.get_total_flops() - missed
    assert any("to one layer)" in note for note in answer.notes)


# -- what is counted ------------------------------------------------------------------------------


def test_gpt2_by_hand():
    answer = tallystick.compute("gpt2", batch=2)
    tokens, d = 2 * 1024, 768
    parts = {name: part["forward_flops"] for name, part in answer.parts.items()}
    assert parts == {
        "embedding": 0,
        "attention_projections": 2 * tokens * 12 * (3 * d * d + d * d),
        "attention_scores": 2 * tokens * 12 * 1024 * d,
        "attention_values": 2 * tokens * 12 * 1024 * d,
        "mlp": 2 * tokens * 12 * 2 * 4 * d * d,
        "head": 2 * tokens * 50257 * d,
    }
    assert answer.training_flops == 3 * sum(parts.values())


def test_gophers_queries_meet_keys_and_relative_positions():
    """Dai et al. 2019: a product as large as that with the keys. The biases u and v are added."""
    answer = tallystick.compute("gopher-44m", sequence=512)
    scores = {line.what.split(": ")[-1]: line.forward_flops for line in answer.lines if line.part == "attention_scores"}
    assert scores["queries with relative positions"] == scores["queries with keys"]
    assert not any(re.search(r"attention\.[uv]\b", line.what) for line in answer.lines)


def test_tying_saves_no_operation():
    tied, untied = tallystick.compute("gpt2"), tallystick.compute(tallystick.count("gpt2", tie_word_embeddings=False))
    assert tied.parts == untied.parts
    assert "a tied head still costs FLOPs" in tied.notes
    assert not any("tied" in note for note in untied.notes)


def test_a_mask_leaves_what_a_query_sees():
    import torch

    for sequence in (1, 5, 12):
        for window in (None, 1, 4, 12, 30):
            ones = torch.ones(sequence, sequence)
            seen = ones.tril() if window is None else ones.tril() - ones.tril(-window)
            assert visible(sequence, window) == seen.sum()
            number = torch.arange(sequence) // (window or sequence)
            assert visible(sequence, window, chunked=True) == (number[:, None] == number).tril().sum()
    needed = tallystick.compute("mistral-7b", sequence=8192).parts["attention_scores"]["needed_flops"]
    assert needed == 2 * 32 * 32 * 128 * (4096 * 4097 // 2 + 4096 * 4096)


def test_endless_layers_take_no_time():
    answer = tallystick.compute(tallystick.count("gemma-2-9b", num_hidden_layers=10**12), sequence=2)
    assert answer.parts["attention_scores"]["forward_flops"] == 10**12 * 2 * 16 * 2 * 2 * 256


def test_six_times_which_n():
    answer = tallystick.compute("mixtral-8x7b", sequence=4096)
    rules = {rule.what.partition(" (")[0]: rule for rule in answer.approximations}
    assert rules["all parameters"].parameters == 46_702_792_704
    assert rules["active parameters"].parameters == 12_879_925_248
    assert rules["all parameters"].training_flops == 6 * 46_702_792_704 * 4096
    # What is missing there is attention itself: 12 for each layer, head, element and position, as
    # PaLM has it.
    quadratic = 12 * 32 * 32 * 128 * 4096 * 4096
    assert rules["parameters used in matrix products"].training_flops + quadratic == answer.training_flops
    assert rules["all parameters"].ratio == pytest.approx(
        rules["all parameters"].training_flops / answer.training_flops
    )


# -- sources --------------------------------------------------------------------------------------


def test_a_header_without_its_tied_head_is_what_its_config_runs(tmp_path):
    config = {"model_type": "gpt2", "n_embd": 4, "n_head": 2, "n_layer": 1, "n_positions": 8, "vocab_size": 10}
    names = {entry.name: entry.shape for entry in tallystick.count(config).entries if entry.name != "lm_head.weight"}
    write(tmp_path / "model.safetensors", names)
    bare = tallystick.compute(tmp_path)
    assert not bare.complete
    assert any(note.startswith("attention scores and recurrent scans are not counted") for note in bare.notes)
    assert any(note.startswith("no LM head is counted") for note in bare.notes)
    (tmp_path / "config.json").write_text(json.dumps(config))
    whole, told = tallystick.compute(tmp_path), tallystick.compute(config)
    assert whole.complete
    assert whole.parts == told.parts
    assert bare.forward_flops == told.forward_flops - sum(
        told.parts[part]["forward_flops"] for part in ("attention_scores", "attention_values", "head")
    )


def test_packed_weights_compute_what_their_config_says():
    import torch

    from operations import built

    model = built("llama", LLAMA, "eager")
    for layer in model.model.layers:  # two elements of 4 bits in a byte, as bitsandbytes holds them
        packed = torch.zeros(layer.mlp.up_proj.weight.numel() // 2, 1, dtype=torch.uint8)
        layer.mlp.up_proj.weight = torch.nn.Parameter(packed, requires_grad=False)
    told = tallystick.compute({"model_type": "llama", **LLAMA}, sequence=7)
    assert tallystick.compute(model, sequence=7).forward_flops == told.forward_flops


def test_experts_of_which_nobody_tells_how_many_run_are_left_out(tmp_path):
    write(
        tmp_path / "model.safetensors",
        {"model.layers.0.mlp.experts.0.up_proj.weight": (4, 4), "lm_head.weight": (9, 4)},
    )
    answer = tallystick.compute(tmp_path, sequence=3)
    assert not answer.complete
    assert answer.forward_flops == 2 * 3 * 9 * 4
    assert any(note.startswith("experts are not counted") for note in answer.notes)


# -- how long it takes ----------------------------------------------------------------------------


def test_palm_reaches_the_share_that_its_paper_states():
    """Chowdhery et al. 2022, section 4.1 and table 3: 238.3K tokens a second on 6,144 chips are an
    MFU of 46.2%.
    """
    answer = tallystick.compute("palm-540b", sequence=2048, device="tpu-v4", tokens_per_second=238_300 / 6144)
    assert round(answer.rate.mfu, 3) == 0.462


OWN = {"memory": 10**9, "name": "mine", "flops": 1e12, "watts": 100}


def test_time_and_energy_follow_from_the_share_of_the_peak():
    per_token = 3 * 291_648_307_200 // 1024
    rate = tallystick.compute("gpt2", device=OWN, mfu=0.5, tokens="2M").rate
    assert (rate.mode, rate.device, rate.tokens, rate.flops) == ("training", "mine", 2_000_000, 2_000_000 * per_token)
    assert rate.tokens_per_second == pytest.approx(0.5e12 / per_token)
    assert rate.seconds == pytest.approx(2e6 * per_token / 0.5e12)
    assert rate.joules == pytest.approx(100 * rate.seconds)
    assert tallystick.compute("gpt2", device=OWN, tokens_per_second=100).rate.mfu == pytest.approx(per_token / 1e10)
    assert tallystick.compute("gpt2", device=OWN).rate.mfu == 1
    forward = tallystick.compute("gpt2", device=OWN, mode="inference", tokens=1024).rate
    assert forward.flops == 291_648_307_200
    alone = tallystick.compute("gpt2", tokens=10, tokens_per_second=5).rate
    assert (alone.seconds, alone.mfu, alone.joules) == (2, None, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": 0}, "batch is 0, expected a positive integer"),
        ({"sequence": 1025}, "a sequence of 1,025 exceeds the 1,024 learned positions"),
        ({"mfu": 0.4}, "mfu needs a device: it is a share of the device's peak"),
        ({"device": "h100", "mfu": 40}, "mfu is 40, expected a share"),
        ({"device": "h100", "mfu": True}, "mfu is True, expected a positive number"),
        ({"device": "h100", "mfu": float("nan")}, "mfu is nan, expected a positive number"),
        ({"device": "h100", "mfu": 0.4, "tokens_per_second": 5}, "set the same thing: give one of them"),
        ({"device": "h100", "tokens_per_second": 10**9}, "times the peak of h100"),
        ({"device": "24GB"}, "the speed of 24GB is unknown"),
        ({"device": "h1oo"}, "nearest: h100"),
        ({"tokens": "many"}, "tokens is the string 'many', expected a number"),
        ({"tokens": 0}, "tokens is 0, expected a number"),
        ({"tokens": 5, "mode": "trainin"}, "nearest: training"),
    ],
)
def test_what_makes_no_sense_is_said(options, said):
    with pytest.raises(tallystick.BadInput, match=r".") as caught:
        tallystick.compute("gpt2", **options)
    assert said in str(caught.value)


def test_a_model_without_a_matrix_is_refused(tmp_path):
    write(tmp_path / "model.safetensors", {"norm.weight": (4,)})
    with pytest.raises(tallystick.BadInput, match="has no weight matrices"):
        tallystick.compute("embedding")
    with pytest.raises(tallystick.BadInput, match="has no weight matrices"):
        tallystick.compute(tmp_path)


# -- the command ----------------------------------------------------------------------------------


def test_the_command_gives_what_python_gives(capsys):
    assert main(["compute", "gpt2", "--batch", "2", "--tokens", "300B", "--device", "a100", "--format", "json"]) == 0
    answer = tallystick.compute("gpt2", batch=2, tokens="300B", device="a100").to_dict()
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(answer))
    assert answer["forward_flops"] == 2 * 291_648_307_200
    assert sum(line["forward_flops"] for line in answer["lines"]) == answer["forward_flops"]
    assert sum(part["training_flops"] for part in answer["parts"].values()) == answer["training_flops"]


def test_each_product_is_explained(capsys):
    assert main(["compute", "gpt2", "--explain", "--tokens", "300B", "--device", "a100", "--mfu", "0.4"]) == 0
    out = capsys.readouterr().out
    assert "2 × 1,024 tokens × 12 × 768 × 2,304" in out
    assert "2 × 1 × 12 layers × 12 heads × 1,024 × 1,024 × 64" in out
    assert "source: Chowdhery et al. 2022, PaLM, appendix B" in out
    assert "300.0B tokens of training: 256.3 EFLOP" in out
    assert "571 GPU-hours: 23.8 days on one device" in out
    assert main(["compute", "gpt2", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "part,product,formula,forward,backward"


@pytest.mark.parametrize("sequence", [64, 75, 20])
def test_the_last_chunk_of_a_scan_needs_its_own_positions_alone(sequence: int):
    """Each position needs those before it in its chunk, counted here one by one."""
    chunk, layers, heads, size, state = 32, 2, 8, 16, 24
    config = {
        "model_type": "mamba2", "hidden_size": 64, "num_heads": heads, "head_dim": size, "num_hidden_layers": layers, "vocab_size": 100,
        "state_size": state, "chunk_size": chunk, "n_groups": 1,
    }  # fmt: skip
    pairs = sum(position % chunk + 1 for position in range(sequence))
    answer = compute(tallystick.count(config), sequence=sequence)
    needed = {line.what.rpartition(": ")[2]: line.needed_flops for line in answer.lines}
    assert needed["C with B, within chunks"] == 2 * layers * heads * pairs * state
    assert needed["weights with inputs, within chunks"] == 2 * layers * heads * pairs * size
