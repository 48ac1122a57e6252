"""Small random configs of the types that read token after token, in each layer or in some."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from drawing import (
    HEAD,
    HEAD_DIM,
    HEADS,
    INNER,
    LAYERS,
    VOCABULARY,
    Config,
    Kin,
    config,
    divisors,
    maybe_flags,
    sometimes,
)

FEW = st.integers(1, 5)
STATE = sometimes(st.integers(1, 9))
KERNEL = sometimes(FEW)
EXPAND = sometimes(st.integers(1, 3))


@st.composite
def mamba(draw: DrawFn, model_type: str) -> Config:
    flags = maybe_flags("use_bias", "use_conv_bias", "tie_word_embeddings")
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=draw(st.integers(1, 40)),
        num_hidden_layers=draw(LAYERS),
        state_size=draw(STATE),
        expand=draw(EXPAND),
        intermediate_size=draw(sometimes(INNER)),
        conv_kernel=draw(KERNEL),
        time_step_rank=draw(sometimes(st.one_of(st.integers(1, 9), st.just("auto")))),
        **{key: draw(value) for key, value in flags.items()},
    )


@st.composite
def mamba2(draw: DrawFn) -> Config:
    heads, size, expand = draw(HEADS), draw(HEAD), draw(st.integers(1, 3))
    flags = maybe_flags("use_bias", "use_conv_bias", "tie_word_embeddings")
    return config(
        "mamba2",
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=heads * size,
        num_hidden_layers=draw(LAYERS),
        num_heads=heads * expand,
        head_dim=size,
        n_groups=draw(sometimes(FEW)),
        state_size=draw(STATE),
        expand=expand,
        conv_kernel=draw(KERNEL),
        **{key: draw(value) for key, value in flags.items()},
    )


@st.composite
def beside_mamba2(draw: DrawFn, model_type: str, **more: SearchStrategy[Any]) -> Config:
    """Widths that the heads of attention and those of Mamba 2 divide."""
    heads, mamba_heads, expand = draw(HEADS), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    width = heads * mamba_heads * draw(HEAD)
    return config(
        model_type,
        vocab_size=draw(sometimes(VOCABULARY)),
        hidden_size=width,
        intermediate_size=draw(sometimes(INNER)),
        num_hidden_layers=draw(LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=draw(st.sampled_from([None, *divisors(heads)])),
        head_dim=draw(HEAD_DIM),
        mamba_n_heads=mamba_heads,
        mamba_d_head=draw(sometimes(st.just("auto"))),
        mamba_n_groups=draw(sometimes(FEW)),
        mamba_d_state=draw(STATE),
        mamba_d_conv=draw(KERNEL),
        mamba_expand=expand,
        **{key: draw(value) for key, value in more.items()},
    )


@st.composite
def falcon_h1(draw: DrawFn) -> Config:
    flags = ("mamba_conv_bias", "mamba_proj_bias", "mamba_rms_norm", "projectors_bias", "attention_bias", "mlp_bias")
    values = draw(beside_mamba2("falcon_h1", **maybe_flags(*flags, "tie_word_embeddings")))
    widths = st.sampled_from([None, *(values["mamba_n_heads"] * size for size in (1, 2, 6))])
    return {**values, "mamba_d_ssm": draw(widths)}


WIDTHS = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2}
HEADED = {**WIDTHS, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2}
MAMBA = {**WIDTHS, "state_size": 6, "time_step_rank": 3}
MAMBA2 = {**HEADED, "mamba_n_heads": 4, "mamba_d_state": 6}

TYPES = {
    "mamba": Kin(mamba("mamba"), MAMBA, others={"time_step_rank": ["auto"]}),
    "falcon_mamba": Kin(mamba("falcon_mamba"), MAMBA, others={"time_step_rank": ["auto"]}),
    "mamba2": Kin(
        mamba2(),
        {**WIDTHS, "num_heads": 4, "head_dim": 8, "n_groups": 2, "state_size": 6},
        others={
            "hidden_size": [{"hidden_size": 32, "head_dim": 16}],
            "head_dim": [{"head_dim": 4, "num_heads": 8}],
            "expand": [{"expand": 1, "head_dim": 4}],
        },
    ),
    "falcon_h1": Kin(falcon_h1(), {**MAMBA2, "mamba_d_ssm": 24}, needs={"mamba_expand": {"mamba_d_ssm": None}}),
}

# A scan runs in loops and products of which torch counts some; test_compute.py has those whose products are known.
KIN = {model_type: kin._replace(counted=False) for model_type, kin in TYPES.items()}
