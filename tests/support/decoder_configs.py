"""Small random configs of every family of decoders, drawn over each option that changes a logit.

Not so small that a norm divides by next to nothing: what float32 leaves out would then be seen in
the logits.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from decoders import VOCABULARY
from drawing import ABSENT, nullable, sometimes

Config = dict[str, Any]

FLAG = st.booleans()
WINDOW = st.integers(1, 50)
CAP = st.sampled_from([None, 2.0, 30.0])
FACTOR = st.sampled_from([1.5, 4.0])
ROPES = {
    "default": st.just({}),
    "linear": st.fixed_dictionaries({"factor": FACTOR}),
    "dynamic": st.fixed_dictionaries({"factor": FACTOR}),
    "llama3": st.fixed_dictionaries(
        {"factor": FACTOR, "low_freq_factor": st.just(1.0), "high_freq_factor": st.just(4.0)}
    ),
    "yarn": st.fixed_dictionaries(
        {"factor": FACTOR},
        optional={
            "beta_fast": st.sampled_from([16.0, 32.0]),
            "mscale": st.sampled_from([0.7, 1.0]),
            "mscale_all_dim": st.sampled_from([0.5, 1.0]),
            "attention_factor": st.sampled_from([0.9, 1.2]),
            "truncate": FLAG,
        },
    ),
    "longrope": st.just({}),
}
STRETCHED = ("llama3", "yarn", "longrope")
WINDOWED = {"use_sliding_window": FLAG, "sliding_window": WINDOW, "max_window_layers": st.integers(0, 3)}
MORE = {
    "llama": {"attention_bias": FLAG, "mlp_bias": FLAG, "hidden_act": st.sampled_from(["silu", "gelu", "relu"])},
    "mistral": {"sliding_window": nullable(WINDOW)},
    "qwen2": WINDOWED,
    "qwen3": {"attention_bias": FLAG, **WINDOWED},
    "gemma": {"attention_bias": FLAG, "hidden_act": st.sampled_from(["gelu", "gelu_pytorch_tanh", "silu"])},
    "gemma2": {
        "attention_bias": FLAG,
        "sliding_window": WINDOW,
        "attn_logit_softcapping": CAP,
        "final_logit_softcapping": CAP,
        "query_pre_attn_scalar": st.sampled_from([4, 100]),
        "hidden_activation": st.sampled_from(["gelu_pytorch_tanh", "silu"]),
    },
    "phi3": {"sliding_window": nullable(WINDOW)},
    "olmo2": {"attention_bias": FLAG},
    "nanochat": {"attention_bias": FLAG, "final_logit_softcapping": CAP, "hidden_act": st.sampled_from(["relu2", "gelu"])},
    "mixtral": {"sliding_window": nullable(WINDOW), "num_local_experts": st.integers(2, 5)},
    "qwen3_moe": {
        "attention_bias": FLAG,
        "use_sliding_window": FLAG,
        "sliding_window": WINDOW,
        "num_experts": st.integers(2, 5),
        "norm_topk_prob": FLAG,
        "decoder_sparse_step": st.integers(1, 2),
        "mlp_only_layers": st.sampled_from([None, [0], [0, 2]]),
        "moe_intermediate_size": st.sampled_from([4, 40]),
    },
}  # fmt: skip
SPARSE = ("mixtral", "qwen3_moe")
PATTERNED = ("qwen2", "qwen3", "gemma2")  # may list the kind of each layer
HEAD_ALWAYS = ("qwen3", "gemma", "gemma2", *SPARSE)  # the type's default is not the width shared out
HEAD_NEVER = ("phi3", "olmo2", "nanochat")


@st.composite
def drawn_config(draw: DrawFn, model_type: str) -> Config:
    """A config.json of a family."""
    groups, kv = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    heads, size, layers = groups * kv, draw(st.sampled_from([8, 12, 16])), draw(st.integers(1, 3))
    values: Config = {
        "vocab_size": VOCABULARY,
        "pad_token_id": None,
        **_present(draw, tie_word_embeddings=FLAG, **MORE.get(model_type, {})),
    }
    if model_type == "gpt2":
        more = _present(
            draw,
            n_inner=nullable(st.integers(16, 90)),
            activation_function=st.sampled_from(["gelu_new", "gelu", "relu"]),
            scale_attn_weights=FLAG,
            layer_norm_epsilon=st.sampled_from([1e-5, 1e-2]),
        )
        return {**values, "n_embd": heads * size, "n_head": heads, "n_layer": layers, "n_positions": 40, **more}
    width = heads * size
    values |= {
        "hidden_size": width + width % 4 if model_type in SPARSE else width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "num_hidden_layers": layers,
        # transformers' own experts need rows of a multiple of 16 bytes.
        "intermediate_size": draw(st.sampled_from([16, 80]) if model_type in SPARSE else st.integers(16, 90)),
        "max_position_embeddings": draw(st.sampled_from([16, 40, 64])),
        **_present(draw, rms_norm_eps=st.sampled_from([1e-6, 1e-2])),
    }
    if model_type in HEAD_ALWAYS or (model_type not in HEAD_NEVER and draw(FLAG)):
        size = values["head_dim"] = draw(st.sampled_from([8, 10]))
    if model_type in PATTERNED and values.get("use_sliding_window", model_type == "gemma2") and draw(FLAG):
        kinds = st.sampled_from(["sliding_attention", "full_attention"])
        values["layer_types"] = draw(st.lists(kinds, min_size=layers, max_size=layers))
    if model_type in SPARSE:
        values["num_experts_per_tok"] = draw(st.integers(1, 2))  # of two at least
    return {**values, **draw(rope(model_type, size))}


@st.composite
def rope(draw: DrawFn, model_type: str, size: int) -> Config:
    """Rotary positions for heads of a size, in one object or as older configs say them; the keys of
    the config itself.
    """
    kind = draw(st.sampled_from(["default", "longrope"] if model_type == "phi3" else sorted(ROPES)))
    says, outside = draw(ROPES[kind]), {}
    if model_type == "phi3" and size % 4 == 0 and draw(FLAG):
        size //= 2
        share = {"partial_rotary_factor": 0.5}
        says, outside = ({**says, **share}, {}) if draw(FLAG) else (says, share)
    if kind == "longrope":
        factors = {"short_factor": [1.0, 1.1], "long_factor": [1.0, 3.0]}
        lists = {
            key: st.lists(st.sampled_from(of), min_size=size // 2, max_size=size // 2) for key, of in factors.items()
        }
        says = {**says, **{key: draw(each) for key, each in lists.items()}}
    if kind in STRETCHED and draw(FLAG):
        made_for = {"original_max_position_embeddings": draw(st.sampled_from([8, 32]))}
        inside = model_type != "phi3" and draw(FLAG)
        says, outside = ({**says, **made_for}, outside) if inside else (says, {**outside, **made_for})
    if model_type == "phi3" and kind == "longrope":
        kind = draw(st.sampled_from(["longrope", "yarn"]))  # both are the first, in a Phi-3
    theta = _present(draw, rope_theta=st.sampled_from([100.0, 10000.0]))
    if draw(FLAG):
        return {"rope_parameters": {"rope_type": kind, **theta, **says}, **outside}
    return {"rope_scaling": {"type": kind, **says} if kind != "default" or says else None, **theta, **outside}


def _present(draw: DrawFn, **values: Any) -> Config:
    """Each of them drawn, some left to the type's default."""
    found = {key: draw(sometimes(value)) for key, value in values.items()}
    return {key: value for key, value in found.items() if value is not ABSENT}
