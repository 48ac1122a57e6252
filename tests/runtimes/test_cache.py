"""What a cache keeps is what transformers' own caches hold after a real model has read."""

import pytest

import tallystick
from configs import FAMILIES
from measurements import measured
from native import default_config
from small_decoders import CACHED, GROUPED, HYBRID, MAMBA, SMALL, WIDTHS
from tallystick.answers.memory.activations import running_of
from tallystick.runtimes.transformers.cache import cached
from unpackaged import UNPACKAGED


@pytest.mark.parametrize(
    ("model_type", "values"), [*SMALL, *CACHED], ids=lambda part: part if isinstance(part, str) else ""
)
def test_as_many_bytes_as_transformers_keeps(model_type, values):
    values = {**values, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
    values = {"model_type": model_type, **values}
    ledger = tallystick.count(values)
    lengths = ((1, 5), (3, 12))  # within the window, and beyond it
    for (batch, sequence), held in zip(lengths, measured("cache_memory:keys_and_values", values, lengths), strict=True):
        ours = running_of(ledger).cached(ledger.attending, sequence)
        assert 4 * batch * sum(one.total for one in ours) == held


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("model_type", "values"), HYBRID)
def test_layers_that_carry_a_state_keep_as_much_of_any_sequence(model_type, values, dtype):
    """The last inputs of a convolution in the dtype of the model, the state in float32, one token
    or many read.
    """
    values = {**values, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
    values = {"model_type": model_type, **values}
    lengths = ((1, 1), (1, 5), (3, 12))
    for (batch, sequence), held in zip(
        lengths, measured("cache_memory:of_each_layer", values, lengths, dtype), strict=True
    ):
        answer = tallystick.memory(values, dtype=dtype, batch=batch, sequence=sequence)
        assert answer.to_dict()["kv_cache_bytes"] == held


OWN = {"rwkv": {}, "xlstm": {"hidden_size": 128, "num_heads": 2}, "recurrent_gemma": {"attention_window_size": 7}}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", ["rwkv", "xlstm", "recurrent_gemma"])
def test_states_that_no_cache_holds_are_counted_too(model_type, dtype):
    """RWKV and xLSTM hand their states on, and the layers of RecurrentGemma hold their own."""
    values = {"model_type": model_type, **GROUPED, "num_hidden_layers": 5, "pad_token_id": None, **OWN[model_type]}
    lengths = ((1, 1), (1, 5), (3, 12))
    for (batch, sequence), held in zip(
        lengths, measured("cache_memory:of_no_cache", values, lengths, dtype), strict=True
    ):
        answer = tallystick.memory(values, dtype=dtype, batch=batch, sequence=sequence)
        assert answer.to_dict()["kv_cache_bytes"] == held


def test_layers_alike_are_one_line_and_their_states_do_not_grow_with_the_sequence():
    config = {"model_type": "bamba", **MAMBA, "num_hidden_layers": 9, "attn_layer_indices": [3, 6]}
    answer = tallystick.memory(config, dtype="bfloat16", kv_dtype="int8", sequence=128)
    lines = {line.what: line.formula for line in answer.lines if line.part == "kv_cache"}
    assert lines == {
        "keys and values in int8": "1 × 2 layers × 128 tokens × 32 × int8",
        "convolution states in bfloat16": "1 × 7 layers × 304 × 2 B",  # (64 + 2·6) channels, the last 4
        "recurrent states in float32": "1 × 7 layers × 384 × 4 B",  # 64 channels of 6
    }
    assert (
        answer.kv_cache_bytes_per_token
        == tallystick.memory(config, dtype="bfloat16", kv_dtype="int8", sequence=4).kv_cache_bytes_per_token
        == 68
    )


def test_a_model_without_attention_has_a_cache_that_no_token_adds_to():
    answer = tallystick.memory({"model_type": "bamba", **MAMBA, "num_hidden_layers": 2}, sequence=10**6)
    assert answer.kv_cache_bytes_per_token == 0
    assert not any("no KV cache is counted" in note for note in answer.notes)


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
    """Measured in transformers 5.23's `QuantizedCache`, by quanto 0.2.7 (2 and 4 bits) and hqq
    0.2.8 (4 and 8).

    After 2 × 24 tokens of a Llama with two layers and two heads of 16 for keys, each of four
    tensors, 1,536 elements, is its packed bytes, and 24 scales and 24 zero points in the dtype of
    the model.
    """
    values = {**GROUPED, "num_hidden_layers": 2, "head_dim": 16, "model_type": "llama"}
    answer = tallystick.memory(values, dtype=dtype, kv_dtype=kv_dtype, batch=2, sequence=24)
    assert answer.to_dict()["kv_cache_bytes"] == bytes_


def test_a_cache_in_8_bit_floats_holds_what_transformers_holds():
    import torch
    import transformers

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
    import transformers

    config = transformers.MistralConfig(**GROUPED, num_hidden_layers=2, sliding_window=7)
    with pytest.raises(ValueError, match="only supported for models with only full attention"):
        transformers.QuantizedCache("fp8", config)
    windowed, whole = (
        tallystick.memory({"model_type": "mistral", **GROUPED, "sliding_window": window}, kv_dtype="int4").notes
        for window in (7, None)
    )
    note = "transformers has no int4 cache for sliding-window or recurrent layers"
    assert note in windowed
    assert note not in whole


def test_groups_are_counted_once_where_transformers_repeats_them():
    """Falcon's new design repeats each head of keys for its queries before it caches them; nothing
    needs that.
    """
    values = {**WIDTHS, "num_hidden_layers": 3, "new_decoder_architecture": True, "num_kv_heads": 2}
    (layers,) = cached(tallystick.count({"model_type": "falcon", **values}).attending, 1)
    assert (layers.layers, layers.positions, layers.elements) == (3, 1, 2 * 2 * 8)


def test_every_native_type_says_how_it_attends():
    from tallystick import architectures

    silent = {*architectures.TEACHING, "t5"}  # some have no attention, one reads sequences of two lengths
    for name in sorted(set(architectures.known()) - silent):
        if name in FAMILIES and not FAMILIES[name].attends:
            continue
        config = {
            "model_type": name,
            **(UNPACKAGED[name].small if name in UNPACKAGED else default_config(name).to_dict()),
        }
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
