"""What a training step keeps is what autograd saves when transformers runs a real model."""

import pytest

import tallystick
from measurements import measured
from rotating import MODELS, half_by_commit
from runnable import EAGER_ONLY, SMALL, config_of
from tallystick.answers.memory.activations import logits, recomputed, running_of, saved, unmodelled
from tallystick.answers.memory.prefill import last_logits, prefill
from tallystick.errors import BadInput
from tallystick.runtimes import Load

BATCH, SEQUENCE = 2, 48
DTYPES = {"float32": "pure", "bfloat16": "pure", "autocast": "mixed"}
# Made of the pieces of others: one way to run is enough for each.
ALIKE = [
    "olmo", "olmo3", "stablelm", "cohere", "cohere2", "glm", "glm4", "smollm3", "arcee", "seed_oss", "ministral3", "helium",
    "exaone4", "hunyuan_v1_dense", "ernie4_5", "nemotron", "gpt_neo", "gpt_bigcode", "codegen", "olmoe", "granitemoe",
    "glm4_moe", "cwm", "hyperclovax", "jais2", "vaultgemma", "flex_olmo", "exaone_moe",
]  # fmt: skip
EXACT = [
    "gpt2", "llama", "gemma", "mixtral", "granite", "mistral", "phi3", "qwen2", "qwen3", "gemma2", "gemma3_text", "gpt_oss",
    "llama4_text",
]  # fmt: skip


def ours(config, *, batch=BATCH, sequence=SEQUENCE, how="float32", attention="flash", recompute="none"):
    """What is predicted of the tensors that autograd saves, those of the loss included."""
    ledger = tallystick.count(config)
    dtype = "bfloat16" if how == "autocast" else how
    lines = saved(ledger, batch, sequence, dtype=dtype, attention=attention, recompute=recompute, precision=DTYPES[how])
    loss = [
        line
        for line in logits(ledger, batch, sequence, dtype=dtype)
        if not line.what.startswith(("logits in", "float32 gradients"))  # what the caller holds, what backward makes
    ]
    return sum(line.bytes for line in (*lines, *loss))


def real(config, *, batch=BATCH, sequence=SEQUENCE, how="float32", attention="flash", recompute="none"):
    return measured("autograd_memory:saved", config, batch, sequence, attention=attention, how=how, recompute=recompute)


RUN = [
    (model_type, attention)
    for model_type in SMALL
    if model_type not in ALIKE
    for attention in ("flash", "eager")
    if attention == "eager" or model_type not in EAGER_ONLY
]

ALONE = [(name, "eager" if name in EAGER_ONLY else "flash") for name in ALIKE]


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("how", DTYPES)
@pytest.mark.parametrize(("model_type", "attention"), [run for run in RUN if run[0] in EXACT])
def test_to_the_byte_what_autograd_saves(model_type, attention, how, recompute):
    config = config_of(model_type)
    settings = {"attention": attention, "how": how, "recompute": recompute}
    found = ours(config, **settings)
    if model_type == "gpt2" and how == "bfloat16":  # on a CPU the statistics of a LayerNorm have 16 bits, not 32
        norms = 1 if recompute == "full" else 5
        found -= norms * BATCH * SEQUENCE * 2 * 2
    assert found == real(config, **settings)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("how", DTYPES)
@pytest.mark.parametrize(("model_type", "attention"), [run for run in RUN if run[0] not in EXACT])
def test_near_what_autograd_saves(model_type, attention, how, recompute):
    config = config_of(model_type)
    settings = {"attention": attention, "how": how, "recompute": recompute}
    near = 0.02 if (model_type, how) == ("bamba", "autocast") else 0.008  # factors that two products share
    assert ours(config, **settings) == pytest.approx(real(config, **settings), rel=near)


@pytest.mark.parametrize(
    ("attention", "how", "recompute"),
    [("flash", "bfloat16", "none"), ("eager", "autocast", "none"), ("flash", "float32", "full")],
)
@pytest.mark.parametrize("model_type", ALIKE)
def test_what_autograd_saves_of_models_made_of_the_same_pieces(model_type, attention, how, recompute):
    config = config_of(model_type)
    attention = "eager" if model_type in EAGER_ONLY else attention
    settings = {"attention": attention, "how": how, "recompute": recompute}
    assert ours(config, **settings) == pytest.approx(real(config, **settings), rel=0.008)


NANO = {"vocab_size": 211, "block_size": 64, "n_layer": 2, "n_head": 4, "n_embd": 64}
BOOK = {"vocab_size": 211, "context_length": 64, "emb_dim": 64, "n_heads": 4, "n_layers": 2}
LLAMA_BOOK = {**BOOK, "hidden_dim": 176}
PALM = {"vocab_size": 211, "d_model": 64, "n_layers": 2, "n_heads": 4, "head_dim": 16}


@pytest.mark.parametrize("how", DTYPES)
@pytest.mark.parametrize(
    ("model_type", "values"),
    [
        ("nanogpt", {**NANO, "dropout": 0.0}),
        ("nanogpt", {**NANO, "dropout": 0.0, "bias": False}),
        ("book_gpt", {**BOOK, "drop_rate": 0.0}),
        ("book_gpt", {**BOOK, "drop_rate": 0.1, "qkv_bias": True}),
        ("book_llama", LLAMA_BOOK),
        ("book_llama", {**LLAMA_BOOK, "n_kv_groups": 2, "head_dim": 24, "qk_norm": True}),
        ("palm", PALM),
        ("palm", {**PALM, "head_dim": 8, "d_ff": 176, "norm_scale": True}),
    ],
)
def test_what_autograd_saves_of_models_that_are_taught(model_type, values, how):
    """Ours of PaLM, in 16 bits, has cosines and sines cast anew in each layer: 1.9% of a model as
    small as this.
    """

    import torch

    from autograd_memory import saved_bytes
    from handwritten import learner

    model = learner(model_type, **values).to(torch.bfloat16 if how == "bfloat16" else torch.float32)
    measured = saved_bytes(model, BATCH, SEQUENCE, mixed=how == "autocast")
    assert ours({"model_type": model_type, **values}, how=how) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("model_type", "values", "attention", "batch", "sequence"),
    [
        ("gpt2", {}, "eager", 1, 17),
        ("gpt2", {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}, "eager", 2, 24),
        ("gpt2", {"resid_pdrop": 0.1, "embd_pdrop": 0.0, "attn_pdrop": 0.0}, "flash", 2, 24),
        ("gpt2", {"activation_function": "relu"}, "flash", 2, 24),
        ("gpt2", {"activation_function": "quick_gelu"}, "flash", 2, 24),
        ("llama", {}, "flash", 4, 64),
        ("llama", {"head_dim": 24, "num_key_value_heads": 4, "intermediate_size": 40}, "eager", 1, 64),
        ("llama", {"hidden_act": "gelu_new"}, "flash", 3, 24),
        ("llama", {"hidden_act": "relu"}, "flash", 3, 24),
        ("gpt_neox", {"use_parallel_residual": False}, "flash", 2, 24),
        ("gpt_neox", {}, "eager", 1, 24),
        ("opt", {"dropout": 0.1, "attention_dropout": 0.1}, "eager", 2, 24),
        ("opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 32}, "flash", 2, 24),
        ("phi", {"qk_layernorm": True}, "flash", 2, 24),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}, "eager", 2, 24),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}, "flash", 2, 24),
        ("falcon", {"multi_query": False}, "flash", 2, 24),
        ("falcon", {"parallel_attn": False, "alibi": True, "multi_query": False}, "eager", 2, 24),
        ("mistral", {"sliding_window": 7}, "flash", 2, 24),
        ("mistral", {"sliding_window": 24}, "flash", 2, 24),
        ("mistral", {"sliding_window": 25}, "flash", 2, 24),
        ("phi3", {"sliding_window": 7}, "flash", 2, 24),
        ("qwen2", {"sliding_window": 7, "use_sliding_window": True, "max_window_layers": 1}, "flash", 2, 24),
        ("gemma2", {"attn_logit_softcapping": None, "final_logit_softcapping": None}, "eager", 2, 24),
        ("gemma3_text", {"sliding_window": 7, "sliding_window_pattern": 3, "num_hidden_layers": 3}, "flash", 2, 24),
        ("llama4_text", {"use_qk_norm": False, "attn_temperature_tuning": False}, "flash", 2, 24),
        ("llama4_text", {"no_rope_layers": [0, 1, 0, 1], "num_experts_per_tok": 2}, "eager", 2, 24),
        ("llama4_text", {"attention_chunk_size": 25, "moe_layers": None}, "flash", 1, 24),
        ("mixtral", {"num_experts_per_tok": 3}, "flash", 2, 24),
        ("deepseek_v3", {"q_lora_rank": None}, "flash", 2, 24),
        ("stablelm", {"use_parallel_residual": True, "hidden_dropout": 0.1}, "flash", 2, 24),
        ("stablelm", {"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 10000.0}}, "flash", 2, 24),
        ("cohere", {"use_qk_norm": False}, "eager", 2, 24),
        ("smollm3", {"use_sliding_window": True, "sliding_window": 7}, "flash", 2, 24),
        ("smollm3", {"use_sliding_window": True, "sliding_window": 7, "no_rope_layers": [0, 0, 1, 1]}, "flash", 2, 24),
        ("gpt_bigcode", {"multi_query": False}, "eager", 2, 24),
        ("gpt_bigcode", {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}, "eager", 2, 24),
        ("gpt_neo", {"attention_types": [[["global"], 2]], "attention_dropout": 0.1}, "eager", 2, 24),
        ("gpt_neo", {"resid_dropout": 0.1, "embed_dropout": 0.1}, "eager", 2, 24),
        ("seed_oss", {"residual_dropout": 0.1, "attention_dropout": 0.1}, "eager", 2, 24),
        ("olmo3", {"sliding_window": 7}, "flash", 2, 24),
        ("exaone4", {"sliding_window": 7, "sliding_window_pattern": 2}, "flash", 2, 24),
    ],
    ids=lambda part: "-".join(map(str, part.items())) if isinstance(part, dict) else str(part),
)
def test_what_a_config_changes_is_seen(model_type, values, attention, batch, sequence):
    config = config_of(model_type, **values)
    settings = {"attention": attention, "batch": batch, "sequence": sequence}
    near = 0.002 if model_type != "deepseek_v3" else 0.008
    assert ours(config, **settings) == pytest.approx(real(config, **settings), rel=near)


def test_a_window_leaves_one_mask_where_blocks_are_computed_again():
    config = config_of("mistral", sliding_window=7)
    assert ours(config, recompute="full") == real(config, recompute="full")


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_only_kinds_of_layers_that_there_are_have_masks_and_positions(recompute):
    """Gemma 3's first layer that sees all is the last in its pattern."""
    config = config_of("gemma3_text", sliding_window_pattern=3)
    settings = {"attention": "eager", "recompute": recompute}
    assert ours(config, **settings) == real(config, **settings)


def test_what_follows_a_power_is_in_float32_under_autocast():
    config = config_of("llama", hidden_act="gelu_new")
    assert ours(config, how="autocast") == real(config, how="autocast")


@pytest.fixture
def again(monkeypatch):
    """The name of an attention of transformers whose scores are computed again, under torch's
    checkpoint.
    """
    from torch.utils.checkpoint import checkpoint
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama.modeling_llama import eager_attention_forward

    def attend_again(module, query, key, value, mask, scaling, **_):
        def attend(query, key, value):
            return eager_attention_forward(module, query, key, value, mask, scaling)[0]

        return checkpoint(attend, query, key, value, use_reentrant=False), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "again", attend_again)
    return "again"


@pytest.mark.parametrize("config", [config_of("llama"), config_of("mistral", sliding_window=7)], ids=["all", "window"])
def test_scores_alone_are_computed_again(config, again):
    """Selective recomputation: the attention between its projections, run under torch's
    checkpoint.
    """

    from autograd_memory import build, saved_bytes

    found = saved_bytes(build(config, attention=again), BATCH, SEQUENCE)
    assert ours(config, attention="eager", recompute="selective") == found


@pytest.mark.parametrize(("model_type", "attention"), [("gpt2", "eager"), ("llama", "flash"), ("mixtral", "flash")])
def test_a_block_computed_again_is_what_one_more_layer_keeps(model_type, attention):
    depth = "n_layer" if model_type == "gpt2" else "num_hidden_layers"
    two, three = (real(config_of(model_type, **{depth: layers}), attention=attention) for layers in (2, 3))
    lines = recomputed(
        tallystick.count(config_of(model_type)),
        BATCH,
        SEQUENCE,
        dtype="float32",
        attention=attention,
        recompute="full",
    )
    assert [line.bytes for line in lines if line.what == "one layer, recomputed"] == [three - two]


def test_layers_of_the_same_number_in_two_stacks_are_computed_again_one_by_one():
    ledger = tallystick.count("gpt2")
    parts, load = ledger.model.parts, Load(BATCH, SEQUENCE, 4, recompute="full")
    others = [part._replace(name=f"encoder.{part.name}") for part in parts]
    running = running_of(ledger)
    assert running.recomputed([*parts, *others], load) == running.recomputed(parts, load)


@pytest.mark.parametrize("how", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("model_type", "attention"),
    half_by_commit([*RUN, *ALONE], *MODELS, "src/tallystick/answers/memory/", "src/tallystick/runtimes/"),
)
def test_what_is_alive_while_the_first_block_is_computed_again(model_type, attention, how):
    """The logits' gradients are gone by then: a step whose blocks are most of it is at its peak
    there.
    """
    longer = {"n_positions": 256} if "n_positions" in config_of(model_type) else {}
    config, batch, sequence = config_of(model_type, vocab_size=53, max_position_embeddings=256, **longer), 2, 256
    peak = measured(
        "autograd_memory:most_in_backward", config, batch, sequence, attention=attention, how=how, recompute="full"
    )
    settings = {"dtype": how, "attention": attention, "recompute": "full"}
    ledger = tallystick.count(config)
    lines = [*saved(ledger, batch, sequence, **settings), *recomputed(ledger, batch, sequence, **settings)]
    after = ("norms", "other activations")  # the last block
    found = sum(int(line.bytes) for line in lines if line.what not in after)
    # Bloom's scores are added to its positions and its mask while queries, keys and values are
    # still one tensor.
    near = {"bloom": 0.11, "glm4": 0.09, "hyperclovax": 0.09, "exaone_moe": 0.07}
    assert found == pytest.approx(peak, rel=near.get(model_type, 0.065))


def test_the_scores_of_one_layer_are_computed_again(again):
    """Long sequences, so that scores are nearly all that there is: those of one layer, and their
    gradients.
    """

    import torch

    from autograd_memory import Alive, build

    config, sequence = config_of("llama"), 512
    model = build(config, attention=again)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    ids = torch.arange(sequence)[None] % 50 + 3
    with Alive() as alive:
        output = model(ids, labels=ids, use_cache=False)
        alive.peak = 0
        output.loss.backward()
    settings = {"dtype": "float32", "attention": "eager", "recompute": "selective"}
    ledger = tallystick.count(config)
    lines = [*saved(ledger, 1, sequence, **settings), *recomputed(ledger, 1, sequence, **settings)]
    gone = 4 * sequence * (64 + 129 + 64 + 4 * 176 + 129)  # what the head, its norm, the last MLP and its norm keep
    assert sum(line.bytes for line in lines) - gone == pytest.approx(alive.peak, rel=0.03)


@pytest.mark.parametrize("how", ["float32", "bfloat16"])
@pytest.mark.parametrize(("model_type", "attention"), [("gpt2", "flash"), ("llama", "flash"), ("gemma2", "eager")])
def test_what_is_alive_when_backward_begins(model_type, attention, how):
    """A step whose logits are most of it is at its peak there; gradients of parameters are at hand
    already.
    """
    config = config_of(model_type, vocab_size=9000)
    peak = measured("autograd_memory:most_in_backward", config, BATCH, SEQUENCE, attention=attention, how=how)
    ledger = tallystick.count(config)
    lines = [
        *saved(ledger, BATCH, SEQUENCE, dtype=how, attention=attention),
        *logits(ledger, BATCH, SEQUENCE, dtype=how),
    ]
    assert sum(line.bytes for line in lines) == pytest.approx(peak, rel=0.005)


# With narrow MLPs attention is the widest, also in a kernel: but then queries that are normalised
# in copies of 32 bits show, and positions that are looked up for each sequence, which no real model
# is narrow enough for.
PROMPTS = [(*run, inner) for run in RUN for inner in ("own", "narrow")]
PROMPTS = [
    *(
        run
        for run in PROMPTS
        if run[1:] != ("flash", "narrow") or run[0] in ("gpt2", "llama", "phi", "phi3", "deepseek_v3")
    ),
    *((*run, "own") for run in ALONE),
]


@pytest.mark.parametrize("how", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("model_type", "attention", "inner"),
    half_by_commit(PROMPTS, *MODELS, "src/tallystick/answers/memory/", "src/tallystick/runtimes/"),
)
def test_a_prompt_takes_at_once_what_is_alive(model_type, attention, inner, how):
    longer = {"n_positions" if "n_positions" in config_of(model_type) else "max_position_embeddings": 256}
    thin = {"n_inner": 24, "ffn_dim": 24, "ffn_hidden_size": 24, "intermediate_size": 24}
    if model_type == "llama4_text":
        longer["attention_chunk_size"] = 256  # a cache that is cut to less holds what it was cut from
    config, batch, sequence = config_of(model_type, **longer, **(thin if inner == "narrow" else {})), 2, 256
    peak = measured("autograd_memory:most_in_reading", config, batch, sequence, attention=attention, how=how)
    ledger = tallystick.count(config)
    [layer] = prefill(ledger, batch, sequence, dtype=how, attention=attention)
    [last] = last_logits(ledger, batch, dtype=how)
    width = 4 if how == "float32" else 2
    cache = batch * sum(one.total for one in running_of(ledger).cached(ledger.attending, sequence)) * width
    cache += batch * sum(one.layers * (one.keeps.inputs * width + one.keeps.state * 4) for one in ledger.recurring)
    assert layer.bytes + cache == pytest.approx(peak, rel=0.025)
    assert last.bytes == batch * 211 * width


def test_gpt2_at_full_size_by_hand():
    """GPT-2 124M in float32, 8 × 1,024 tokens: the tensors of one layer, in numbers of 768 elements
    of a token.
    """
    ledger = tallystick.count("gpt2", attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)
    lines = {line.what: line for line in saved(ledger, 8, 1024, dtype="float32")}
    tokens = 8 * 1024
    assert lines["attention"].bytes == 12 * tokens * (5 * 768 + 12) * 4  # read; query, key, value; given; 12 sums
    assert lines["mlp"].bytes == 12 * tokens * (768 + 5 * 3072) * 4
    assert lines["norms"].bytes == 25 * tokens * (768 + 2) * 4
    assert lines["mlp"].formula == "12 layers × 8 × 1,024 tokens × 64,512 B"


@pytest.mark.parametrize(
    ("preset", "chunk", "vocabulary", "width"),
    [
        ("llama-3.1-8b", 256, 128256, 4096),  # 32 times as many logits as the head reads: 8,192 tokens in 32 chunks
        ("gpt2", 128, 50257, 768),  # 66 times as many: 125 tokens, and up to a power of two
    ],
)
def test_a_chunked_loss_never_holds_all_logits(preset, chunk, vocabulary, width):
    held, gradient = logits(tallystick.count(preset), 8, 1024, dtype="bfloat16", loss="chunked")
    assert held.bytes == chunk * vocabulary * 2
    assert gradient.bytes == 8192 * width * 2


def test_endless_layers_take_no_memory():
    half = 10**12 // 2
    values = {"num_hidden_layers": 10**12, "use_sliding_window": True, "max_window_layers": half}
    ledger = tallystick.count({"model_type": "qwen2", **values, "num_key_value_heads": 8})
    once, twice = (
        {line.what: line.bytes for line in saved(ledger, 1, length, dtype="bfloat16")} for length in (4095, 4096)
    )
    assert once["mlp"] == 10**12 * 4095 * (4096 + 4 * 22016) * 2
    assert "window masks" not in once
    assert twice["window masks"] == half * 4096 * (4096 + (32 - 8) * 256) * 2


def test_kernels_that_cap_scores_take_a_window_without_a_mask():
    lines = saved(tallystick.count("gemma-2-9b"), 1, 8192, dtype="bfloat16")
    assert "window masks" not in {line.what for line in lines}


def test_a_model_that_does_not_tell_how_it_runs_has_no_lines_and_a_note():
    import torch

    ledger = tallystick.count(torch.nn.Linear(3, 4))
    assert saved(ledger, 1, 8, dtype="float32") == []
    assert prefill(ledger, 1, 8, dtype="float32") == last_logits(ledger, 1, dtype="float32") == []
    assert unmodelled(ledger) == (f"activations are not counted: {ledger.source} does not describe how its layers run",)
    assert unmodelled(tallystick.count("gpt2")) == ()
    assert unmodelled(tallystick.count({"model_type": "bamba"}))[0].startswith("scans as in transformers'")


def test_a_live_model_tells_by_its_config():
    from autograd_memory import build

    ledger = tallystick.count(build(config_of("llama")))
    assert saved(ledger, 2, 8, dtype="float32") == saved(tallystick.count(config_of("llama")), 2, 8, dtype="float32")


@pytest.mark.parametrize("value", ["0.1", -0.5, True, float("nan"), float("inf"), [0.1]])
def test_a_dropout_that_is_no_share_is_refused(value):
    with pytest.raises(BadInput, match=r"attn_pdrop is .*, expected a number of 0 or more"):
        tallystick.count({"model_type": "gpt2", "attn_pdrop": value})
