"""What a cache keeps is what transformers' own caches hold after a real model has read."""

import pytest
import torch
import transformers

import tallystick
from configs import KIN
from tallystick.answers.activations import running_of
from tallystick.runtimes.transformers.cache import cached
from truth import build, default_config

WIDTHS = {"hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61, "intermediate_size": 12}
GROUPED = {**WIDTHS, "num_key_value_heads": 2}
MIXED = {
    **GROUPED, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
    "intermediate_size": 16,
}  # fmt: skip
GEMMA_3N = {
    **GROUPED, "head_dim": 6, "sliding_window": 7, "vocab_size_per_layer_input": 61, "hidden_size_per_layer_input": 5,
    "laurel_rank": 3,
}  # fmt: skip
BART = {
    "vocab_size": 61, "d_model": 24, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 12,
    "encoder_layers": 2,
}  # fmt: skip
GEMMA_4 = {
    **GROUPED, "head_dim": 6, "global_head_dim": 10, "sliding_window": 7, "vocab_size_per_layer_input": 61,
    "hidden_size_per_layer_input": 5,
}  # fmt: skip
GPT2 = {"n_embd": 24, "n_head": 4, "n_layer": 3, "vocab_size": 61}

SMALL = [
    ("gpt2", {**GPT2, "n_positions": 64}),
    ("gptj", {**GPT2, "rotary_dim": 4}),
    ("bloom", {"hidden_size": 32, "n_head": 4, "n_layer": 2, "vocab_size": 61}),
    ("gpt_neox", {**WIDTHS, "num_hidden_layers": 2}),
    ("opt", {**WIDTHS, "num_hidden_layers": 2, "ffn_dim": 12, "word_embed_proj_dim": 32}),
    ("phi", {**WIDTHS, "num_hidden_layers": 2}),
    ("llama", {**GROUPED, "num_hidden_layers": 3, "head_dim": 6}),
    ("granite", {**GROUPED, "num_hidden_layers": 2}),
    ("olmo2", {**GROUPED, "num_hidden_layers": 2}),
    ("gemma", {**GROUPED, "num_hidden_layers": 3, "head_dim": 6}),
    ("falcon", {**WIDTHS, "num_hidden_layers": 3}),  # multi-query
    ("falcon", {**WIDTHS, "num_hidden_layers": 3, "multi_query": False}),
    ("mistral", {**GROUPED, "num_hidden_layers": 3, "sliding_window": 7}),
    ("mistral", {**GROUPED, "num_hidden_layers": 3, "sliding_window": None}),
    ("mixtral", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("starcoder2", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("phi3", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("gemma2", {**GROUPED, "num_hidden_layers": 5, "head_dim": 6, "sliding_window": 7}),
    ("gemma2", {**GROUPED, "num_hidden_layers": 3, "sliding_window": 7, "layer_types": ["full_attention"] * 3}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 7, "head_dim": 6, "sliding_window": 7}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 7, "sliding_window": 7, "sliding_window_pattern": 2}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 7, "sliding_window": 8, "use_bidirectional_attention": True}),
    ("gemma3_text", {**GROUPED, "num_hidden_layers": 2, "sliding_window": 7, "layer_types": ["full_attention"] * 2}),
    ("gemma3n_text", {**GEMMA_3N, "num_hidden_layers": 7, "num_kv_shared_layers": 2}),
    ("gemma4_text", {**GEMMA_4, "num_hidden_layers": 14, "num_kv_shared_layers": 2}),
    ("gemma4_text", {**GEMMA_4, "num_hidden_layers": 6, "attention_k_eq_v": True, "num_global_key_value_heads": 1}),
    ("gemma3n_text", {**GEMMA_3N, "num_hidden_layers": 3, "num_kv_shared_layers": 0}),
    (
        "gemma3n_text",
        {
            **GEMMA_3N, "num_hidden_layers": 4, "num_kv_shared_layers": 1, "intermediate_size": [8, 9, 9, 12],
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
    ),
    ("llama4_text", {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "num_local_experts": 1, "attention_chunk_size": 7}),
    (
        "llama4_text",
        {
            **GROUPED, "num_hidden_layers": 3, "head_dim": 6, "num_local_experts": 2, "num_experts_per_tok": 2,
            "attention_chunk_size": 5, "no_rope_layers": [0, 1, 1], "moe_layers": [1], "intermediate_size_mlp": 20,
        },
    ),
    ("olmo3", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7}),
    ("stablelm", {**GROUPED, "num_hidden_layers": 2, "qk_layernorm": True}),
    ("cohere2", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "sliding_window_pattern": 3}),
    ("glm", {**GROUPED, "num_hidden_layers": 2, "head_dim": 8}),
    ("smollm3", {**GROUPED, "num_hidden_layers": 5, "use_sliding_window": True, "sliding_window": 7}),
    ("ministral3", {**GROUPED, "num_hidden_layers": 2, "head_dim": 8, "sliding_window": 7}),
    ("exaone4", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7}),
    ("gpt_neo", {**WIDTHS, "num_heads": 4, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 7}),
    ("gpt_bigcode", GPT2),
    ("ctrl", {**GPT2, "dff": 12}),
    ("gpt_neox_japanese", {**WIDTHS, "num_hidden_layers": 2}),
    ("biogpt", {**WIDTHS, "num_hidden_layers": 2}),
    ("xglm", {"vocab_size": 61, "d_model": 24, "num_layers": 2, "attention_heads": 4, "ffn_dim": 12}),
    ("bart", BART),
    ("whisper", BART),
    ("moshi", {**GROUPED, "num_hidden_layers": 3, "ffn_dim": 12, "sliding_window": 7}),
    ("moshi", {**GROUPED, "num_hidden_layers": 3, "ffn_dim": 12, "head_dim": 6}),
    ("gpt_bigcode", {**GPT2, "multi_query": False}),
    ("codegen", {**GPT2, "rotary_dim": 4}),
    ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "vocab_size": 61}),
    ("qwen2_moe", {**MIXED, "num_hidden_layers": 5, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 3}),
    ("olmoe", {**MIXED, "num_hidden_layers": 2}),
    ("granitemoeshared", {**MIXED, "num_hidden_layers": 2, "shared_intermediate_size": 6}),
    ("phimoe", {**MIXED, "num_hidden_layers": 2, "sliding_window": 7}),
    ("glm4_moe", {**MIXED, "num_hidden_layers": 2, "n_routed_experts": 8}),
    ("ernie4_5_moe", {**MIXED, "num_hidden_layers": 2, "moe_num_experts": 4, "moe_k": 2}),
    ("hunyuan_v1_moe", {**MIXED, "num_hidden_layers": 2, "head_dim": 8, "moe_topk": [1, 2]}),
    ("minimax_m2", {**MIXED, "num_hidden_layers": 2, "head_dim": 8}),
    (
        "deepseek_v2",
        {
            **MIXED, "num_hidden_layers": 3, "first_k_dense_replace": 1, "num_key_value_heads": 4, "kv_lora_rank": 10,
            "q_lora_rank": 12, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8, "n_routed_experts": 8,
        },
    ),
    ("apertus", {**GROUPED, "num_hidden_layers": 2}),
    ("bitnet", {**GROUPED, "num_hidden_layers": 2}),
    ("gpt_oss", {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "sliding_window": 7, "num_local_experts": 4}),
    ("qwen2", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "use_sliding_window": False}),
    ("qwen2", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "use_sliding_window": True, "max_window_layers": 3}),
    ("qwen3", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7, "use_sliding_window": True, "max_window_layers": 9}),
    (
        "deepseek_v3",
        {
            **WIDTHS, "num_hidden_layers": 4, "num_key_value_heads": 4, "kv_lora_rank": 10, "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 6, "v_head_dim": 8, "n_routed_experts": 8, "n_group": 2, "topk_group": 1,
            "num_experts_per_tok": 2, "moe_intermediate_size": 8,
        },
    ),
]  # fmt: skip


MAMBA = {**GROUPED, "mamba_n_heads": 4, "mamba_d_state": 6}
DELTA = {
    **GROUPED, "head_dim": 6, "num_experts": 4, "num_experts_per_tok": 2, "linear_key_head_dim": 4,
    "linear_value_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
}  # fmt: skip
SCAN = {"hidden_size": 32, "vocab_size": 61, "num_hidden_layers": 2, "state_size": 6}
CCA = {**MIXED, "num_experts_per_tok": 1, "num_hidden_layers": 2, "head_dim": 6, "router_hidden_size": 5}
LATENT = {
    **MIXED, "num_hidden_layers": 5, "num_key_value_heads": 4, "kv_lora_rank": 10, "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4, "v_head_dim": 8,
}  # fmt: skip
SHARED = ["hybrid", "hybrid", "mamba", "hybrid"]
HYBRID = [
    ("zaya", {**CCA, "cca_time1": 3}),
    ("zaya", {**CCA, "sliding_window": 7, "layer_types": ["hybrid_sliding", "hybrid"]}),
    ("qwen3_next", {**DELTA, "num_hidden_layers": 5}),
    ("qwen3_5_text", {**DELTA, "num_hidden_layers": 5}),
    ("qwen3_next", {**DELTA, "num_hidden_layers": 3, "full_attention_interval": 2, "linear_conv_kernel_dim": 3}),
    ("minimax", {**MIXED, "num_hidden_layers": 5, "block_size": 4}),
    ("minimax", {**MIXED, "num_hidden_layers": 2, "layer_types": ["linear_attention"] * 2, "head_dim": 6}),
    ("bamba", {**MAMBA, "num_hidden_layers": 5, "attn_layer_indices": [1, 4]}),
    ("bamba", {**MAMBA, "num_hidden_layers": 2, "attn_layer_indices": [0], "mamba_n_groups": 2, "mamba_d_conv": 3}),
    ("bamba", {**MAMBA, "num_hidden_layers": 2, "attn_layer_indices": [1], "mamba_expand": 3}),
    ("mamba", SCAN),
    ("falcon_mamba", {**SCAN, "conv_kernel": 3}),
    ("mamba2", {**SCAN, "num_heads": 4, "head_dim": 16, "n_groups": 2}),
    ("falcon_h1", {**MAMBA, "num_hidden_layers": 2, "mamba_d_ssm": 24, "mamba_rms_norm": True}),
    ("jamba", {**MIXED, "num_hidden_layers": 5, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 6}),
    (
        "nemotron_h",
        {**MIXED, "head_dim": 6, "mamba_num_heads": 4, "mamba_head_dim": 6, "n_groups": 2, "n_routed_experts": 4},
    ),
    (
        "granitemoehybrid",
        {**MAMBA, **MIXED, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]},
    ),
    ("lfm2", {**GROUPED, "num_hidden_layers": 5, "full_attn_idxs": [1, 4]}),
    ("lfm2_moe", {**MIXED, "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]}),
    ("lfm3", {**GROUPED, "num_hidden_layers": 5, "head_dim": 8, "sliding_window": 7}),
    ("olmo_hybrid", {**GROUPED, "num_hidden_layers": 5, "linear_conv_kernel_dim": 3}),
    ("kimi_linear", {**LATENT, "linear_num_heads": 4, "linear_head_dim": 6}),
    ("bailing_hybrid", {**LATENT, "layer_group_size": 2, "head_dim": 6, "n_group": 2, "topk_group": 1}),
    ("zamba", {**GROUPED, "num_hidden_layers": 4, "layers_block_type": SHARED, "mamba_d_state": 6}),
    ("zamba2", {**GROUPED, "num_hidden_layers": 4, "layers_block_type": SHARED, "n_mamba_heads": 4, "adapter_rank": 2}),
]
# Not run for their operations too: drawn configs of these are.
CACHED = [
    ("cwm", {**GROUPED, "num_hidden_layers": 5, "head_dim": 6, "sliding_window": 7}),
    ("granite_swa", {**GROUPED, "num_hidden_layers": 5, "sliding_window": 7}),
    ("afmoe", {**MIXED, "num_hidden_layers": 5, "sliding_window": 7, "global_attn_every_n_layers": 2}),
    ("diffllama", {**GROUPED, "num_hidden_layers": 2}),
    (
        "laguna",
        {
            **MIXED, "num_hidden_layers": 3, "sliding_window": 7, "num_attention_heads_per_layer": [4, 2, 6],
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    ("flint", {**MIXED, "num_hidden_layers": 8, "sliding_window": 7}),
    ("hrm_text", {**WIDTHS, "num_hidden_layers": 2, "head_dim": 6, "H_cycles": 3, "L_cycles": 2}),
    ("kolibri1", {**MIXED, "num_hidden_layers": 6, "sliding_window": 7}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "values"), [*SMALL, *CACHED], ids=lambda part: part if isinstance(part, str) else ""
)
def test_as_many_bytes_as_transformers_keeps(model_type, values):
    values = {**values, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.AutoConfig.for_model(model_type, **values)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    ledger = tallystick.count({"model_type": model_type, **values})
    for batch, sequence in ((1, 5), (3, 12)):  # within the window, and beyond it
        with torch.no_grad():
            cache = model(torch.randint(3, 60, (batch, sequence)), use_cache=True).past_key_values
        held = [tensor for layer in cache.layers if layer.keys is not None for tensor in (layer.keys, layer.values)]
        assert sum(tensor.untyped_storage().nbytes() for tensor in held) >= sum(tensor.nbytes for tensor in held)
        ours = running_of(ledger).cached(ledger.attending, sequence)
        assert 4 * batch * sum(one.total for one in ours) == sum(t.nbytes for t in held)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("model_type", "values"), HYBRID)
def test_layers_that_carry_a_state_keep_as_much_of_any_sequence(model_type, values, dtype):
    """The last inputs of a convolution in the dtype of the model, the state in float32, one token or many read."""
    values = {**values, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.AutoConfig.for_model(model_type, **values)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().to(getattr(torch, dtype))
    for batch, sequence in ((1, 1), (1, 5), (3, 12)):
        with torch.no_grad():
            read = model(torch.randint(3, 60, (batch, sequence)), use_cache=True)
        cache = read.cache_params if "cache_params" in read else read.past_key_values
        held = [tensor for layer in cache.layers for tensor in held_by(layer)]
        held += [
            tensor for tensor in getattr(cache, "linear_cache", ()) if isinstance(tensor, torch.Tensor)
        ]  # MiniMax's
        answer = tallystick.memory({"model_type": model_type, **values}, dtype=dtype, batch=batch, sequence=sequence)
        assert answer.to_dict()["kv_cache_bytes"] == sum(tensor.nbytes for tensor in held)


OWN = {"rwkv": {}, "xlstm": {"hidden_size": 128, "num_heads": 2}, "recurrent_gemma": {"attention_window_size": 7}}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", ["rwkv", "xlstm", "recurrent_gemma"])
def test_states_that_no_cache_holds_are_counted_too(model_type, dtype):
    """RWKV and xLSTM hand their states on, and the layers of RecurrentGemma hold their own."""
    values = {"model_type": model_type, **GROUPED, "num_hidden_layers": 5, "pad_token_id": None, **OWN[model_type]}
    model = build(values).to_empty(device="cpu").to(getattr(torch, dtype)).eval()
    for batch, sequence in ((1, 1), (1, 5), (3, 12)):
        with torch.no_grad():
            tokens = torch.randint(3, 60, (batch, sequence))
            if model_type == "rwkv":
                held = model(tokens, use_cache=True).state
            elif model_type == "xlstm":
                states = model(tokens, use_cache=True).cache_params.rnn_state
                held = [tensor for layer in states.values() for tensor in layer]
            else:
                cache = transformers.DynamicCache(config=model.config)
                model(tokens, use_cache=True, past_key_values=cache)
                held = [tensor for layer in cache.layers for tensor in held_by(layer)]
                scans = [m for m in model.modules() if hasattr(m, "conv1d_state")]
                held += [tensor for scan in scans for tensor in (scan.conv1d_state, scan.rg_lru.recurrent_states)]
        answer = tallystick.memory(values, dtype=dtype, batch=batch, sequence=sequence)
        assert answer.to_dict()["kv_cache_bytes"] == sum(tensor.nbytes for tensor in held)


def held_by(layer):
    """The tensors of one layer's cache, whichever kind of layer it is; some keep a state beside keys and values."""
    states = [state for kind in ("conv_states", "recurrent_states") for state in getattr(layer, kind, {}).values()]
    held = [*states, *(getattr(layer, name, None) for name in ("keys", "values"))]
    return [tensor for tensor in held if tensor is not None]


def test_layers_alike_are_one_line_and_their_states_do_not_grow_with_the_sequence():
    config = {"model_type": "bamba", **MAMBA, "num_hidden_layers": 9, "attn_layer_indices": [3, 6]}
    answer = tallystick.memory(config, dtype="bfloat16", kv_dtype="int8", sequence=128)
    lines = {line.what: line.formula for line in answer.lines if line.part == "kv_cache"}
    assert lines == {
        "cached keys and values in int8": "1 × 2 layers × 128 tokens × 32 × int8",
        "last inputs of convolutions in bfloat16": "1 × 7 layers × 304 × 2 B",  # (64 + 2·6) channels, the last 4
        "states of recurrent layers in float32": "1 × 7 layers × 384 × 4 B",  # 64 channels of 6
    }
    assert answer.per_token == tallystick.memory(config, dtype="bfloat16", kv_dtype="int8", sequence=4).per_token == 68


def test_a_model_without_attention_has_a_cache_that_no_token_adds_to():
    answer = tallystick.memory({"model_type": "bamba", **MAMBA, "num_hidden_layers": 2}, sequence=10**6)
    assert answer.per_token == 0
    assert not any("no cache is counted" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("kv_dtype", "dtype", "bytes_"),
    [
        ("int2", "bfloat16", 4 * (384 + 2 * 48)),
        ("int4", "bfloat16", 4 * (768 + 2 * 48)),
        ("int4", "float16", 4 * (768 + 2 * 48)),
        ("int4", "float32", 4 * (768 + 2 * 96)),
        ("int8", "bfloat16", 4 * (1536 + 2 * 48)),
        ("int8", "float32", 4 * (1536 + 2 * 96)),
    ],
)
def test_a_quantised_cache_holds_what_transformers_holds(kv_dtype, dtype, bytes_):
    """Measured in transformers 5.23's `QuantizedCache`, by quanto 0.2.7 (2 and 4 bits) and hqq 0.2.8 (4 and 8).

    After 2 × 24 tokens of a Llama with two layers and two heads of 16 for keys, each of four tensors, 1,536 elements,
    is its packed bytes, and 24 scales and 24 zero points in the dtype of the model.
    """
    values = {**GROUPED, "num_hidden_layers": 2, "head_dim": 16, "model_type": "llama"}
    answer = tallystick.memory(values, dtype=dtype, kv_dtype=kv_dtype, batch=2, sequence=24)
    assert answer.to_dict()["kv_cache_bytes"] == bytes_


def test_a_cache_in_8_bit_floats_holds_what_transformers_holds():
    values = {**GROUPED, "num_hidden_layers": 3, "head_dim": 6}
    config = transformers.LlamaConfig(**values)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    cache = transformers.QuantizedCache("fp8", config)
    for length in (4, 1):
        with torch.no_grad():
            model(torch.randint(3, 60, (2, length)), past_key_values=cache, use_cache=True)
    held = [
        part for layer in cache.layers for pair in (layer._quantized_keys, layer._quantized_values) for part in pair
    ]
    answer = tallystick.memory({"model_type": "llama", **values}, kv_dtype="fp8", batch=2, sequence=5)
    assert answer.to_dict()["kv_cache_bytes"] == sum(tensor.nbytes for tensor in held)


def test_a_quantised_window_is_what_transformers_has_not():
    config = transformers.MistralConfig(**GROUPED, num_hidden_layers=2, sliding_window=7)
    with pytest.raises(ValueError, match="only supported for models with only full attention"):
        transformers.QuantizedCache("fp8", config)
    windowed, whole = (
        tallystick.memory({"model_type": "mistral", **GROUPED, "sliding_window": window}, kv_dtype="int4").notes
        for window in (7, None)
    )
    note = "transformers holds no cache in int4 for layers that see a window or carry a state"
    assert note in windowed
    assert note not in whole


def test_groups_are_counted_once_where_transformers_repeats_them():
    """Falcon's new design repeats each head of keys for its queries before it caches them; nothing needs that."""
    values = {**WIDTHS, "num_hidden_layers": 3, "new_decoder_architecture": True, "num_kv_heads": 2}
    (layers,) = cached(tallystick.count({"model_type": "falcon", **values}).attending, 1)
    assert (layers.layers, layers.positions, layers.elements) == (3, 1, 2 * 2 * 8)


def test_every_native_type_says_how_it_attends():
    from tallystick import architectures

    for name in sorted(set(architectures.known()) - set(architectures.TEACHING)):  # some of those have no attention
        if name.startswith("book_") or name == "palm" or (name in KIN and not KIN[name].attends):
            continue
        config = {"model_type": name} if name == "nanogpt" else {"model_type": name, **default_config(name).to_dict()}
        ledger = tallystick.count(config)
        assert ledger.attending or ledger.recurring, name
        read = [entry for entry in ledger.rolled if entry.axes and not entry.name.startswith(ledger.towers)]
        depth = {entry.axes[0].length + entry.axes[0].start for entry in read}
        mix = {n for one in (*ledger.attending, *ledger.recurring) for n in range(one.start, one.start + one.layers)}
        # Nemotron-H's layers may hold an MLP alone, Llama 3.2 Vision's attend to images alone.
        assert mix == set(range(max(depth))) or name in ("nemotron_h", "mllama"), name


def test_a_pattern_of_windows_over_endless_layers_takes_no_memory():
    (one,) = cached(tallystick.count("qwen3-8b", num_hidden_layers=10**12).attending, 2)
    assert one.layers == 10**12
    ledger = tallystick.count("gemma-2-9b", num_hidden_layers=10**12 + 1)
    first, second = cached(ledger.attending, 2)
    assert {first.window: first.layers, second.window: second.layers} == {4096: 5 * 10**11 + 1, None: 5 * 10**11}
