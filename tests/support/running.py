"""What configs that are drawn to be built need to run."""

import configs

# What the drawn configs, made to be built, leave to chance and a model that runs cannot: rotated elements go in pairs,
# some of Falcon's keys contradict each other, Phi norms heads of one width alone, heads that do not fill the width of
# Helium and BitNet do not run, and Llama 4 runs experts that nobody counts.
FILLED = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4}
RUNS = {
    "gptj": {"rotary_dim": 2},
    **{name: {"partial_rotary_factor": 1.0} for name in ("stablelm", "glm", "glm4", "nemotron")},
    "phi": {"partial_rotary_factor": 1.0, "qk_layernorm": False},
    **dict.fromkeys(("helium", "bitnet", "olmoe"), FILLED),
    "llama4_text": {"moe_layers": []},
    "falcon": {"num_ln_in_parallel_attn": None, "parallel_attn": True, "num_kv_heads": None},
    **{name: kin.runs for name, kin in configs.KIN.items()},
}
