"""ZAYA1 (Anthony et al. 2025, "Training Foundation Models on a Full-Stack AMD Platform"): attention behind short convolutions."""

from tallystick.anatomy import EVERYTHING, Windows
from tallystick.architectures._decoder import decoder, heads, in_runs, mixture, rounded
from tallystick.architectures._layers import listed
from tallystick.blueprint import (
    Attention,
    Buffer,
    Config,
    Group,
    Linear,
    Model,
    Recurrence,
    RMSNorm,
    Router,
    Scan,
    Stack,
    Tensor,
    architecture,
    natural,
)

KINDS = ("hybrid", "hybrid_sliding")
CCA = "Figliolia et al. 2025, Compressed Convolutional Attention"


@architecture(
    "zaya",
    "ZayaForCausalLM",
    running={"sliding_window": natural(None, nullable=True), "layer_types": None},
    vocab_size=262272,
    hidden_size=2048,
    moe_intermediate_size=2048,
    num_hidden_layers=40,
    num_attention_heads=8,
    num_key_value_heads=2,
    head_dim=128,
    cca_time0=2,
    cca_time1=2,
    num_experts=16,
    num_experts_per_tok=1,
    router_hidden_size=256,
    attention_bias=False,
    lm_head_bias=False,
    tie_word_embeddings=True,
)
def zaya(c: Config) -> Model:
    if c.num_experts_per_tok > 1:
        raise c.refuse(
            f"num_experts_per_tok is {int(c.num_experts_per_tok)}, and transformers builds such a model for 1 alone"
        )
    d = c.hidden_size
    layers = Stack((1, _block(c, first=True)), (c.num_hidden_layers - 1, _block(c)))
    return decoder(
        c,
        layers,
        head_bias=c.lm_head_bias,
        input_hidden_states_scale=Tensor((d,)),
        input_hidden_states_bias=Tensor((d,)),
    )


def _block(c: Config, *, first: bool = False) -> Group:
    d = c.hidden_size
    moe = mixture(c, c.moe_intermediate_size, 1, c.num_experts, names=None)
    return Group(
        self_attn=_attention(c),
        mlp=Group(gate=_router(c, first), experts=moe.children["experts"]),
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        post_attention_residual_scale=_residual(d),
        post_mlp_residual_scale=_residual(d),
    )


def _residual(d: int) -> Group:
    """Scales and shifts of both that are added up."""
    names = ("hidden_states_scale", "hidden_states_bias", "residual_scale", "residual_bias")
    return Group(**{name: Tensor((d,)) for name in names})


def _router(c: Config, first: bool) -> Router:
    """Scores by an MLP, mixed with those of the layer before; one more than there are experts, for none of them."""
    width, of = c.router_hidden_size, c.num_experts + 1
    return Router(
        None,
        down_proj=Linear(c.hidden_size, width),
        router_states_scale=None if first else Tensor((width,)),
        router_mlp=Group(
            norm=RMSNorm(width),
            fc1=Linear(width, width),
            fc2=Linear(width, width),
            out_proj=Linear(width, of, bias=False),
        ),
        balancing_biases=Buffer(of),
    )


def _attention(c: Config) -> Attention:
    """Compressed convolutional attention: queries and keys go through two convolutions, and half of each value is that of
    the token before. So a cache holds the last inputs of the convolutions too, and those values.
    """
    d, runs, bias = c.hidden_size, heads(c, windows=_windows(c)), c.attention_bias
    queries, keys = runs.queries * runs.size, runs.keys * runs.size
    half, channels = rounded(keys, 2), queries + keys
    return Attention(
        runs,
        o_proj=Linear(queries, d, bias=bias),
        qkv_proj=Group(
            q_proj=Linear(d, queries, bias=bias),
            k_proj=Linear(d, keys, bias=bias),
            v_proj_current=Linear(d, half, bias=bias),
            v_proj_delayed=Linear(d, half, bias=bias),
            conv_qk_depthwise=_convolution(channels, 1, c.cca_time0),
            conv_qk_grouped=_convolution(channels, runs.size, c.cca_time1),
            kept=Scan(Recurrence((c.cca_time0 + c.cca_time1 - 2) * channels, half, CCA, wide=False)),
        ),
        qk_norm=Group(temp=Tensor((runs.keys,), "norm")),
    )


def _convolution(channels: int, reads: int, kernel: int) -> Group:
    """Each channel reads so many channels, at so many tokens."""
    return Group(weight=Tensor((channels, reads, kernel), "conv"), bias=Tensor((channels,), "conv"))


def _windows(c: Config) -> Windows:
    if c.layer_types is None:
        return EVERYTHING
    kinds = listed(c, "layer_types", KINDS, str)
    if KINDS[1] in kinds and c.sliding_window is None:
        raise c.refuse("layer_types lists hybrid_sliding, for which sliding_window must be stated")
    return in_runs((kind == KINDS[1] for kind in kinds), c.sliding_window, None)
