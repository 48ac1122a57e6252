"""ZAYA1: compressed convolutional attention, and MoE with MLP routers.

Source: Anthony et al. 2025, "Training Foundation Models on a Full-Stack AMD Platform".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

LAYER_KINDS = ("hybrid", "hybrid_sliding")
CCA = "Figliolia et al. 2025, Compressed Convolutional Attention"


@architecture(
    "zaya",
    "ZayaForCausalLM",
    running={"sliding_window": nonnegative(None, nullable=True), "layer_types": None},
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
def zaya(c: Config) -> nn.Model:
    if c.num_experts_per_tok > 1:
        raise c.refuse(f"num_experts_per_tok is {int(c.num_experts_per_tok)}, but transformers supports only 1")
    d = c.hidden_size
    layers = nn.ModuleList((1, _block(c, first=True)), (c.num_hidden_layers - 1, _block(c)))
    return kit.decoder(
        c,
        layers,
        head_bias=c.lm_head_bias,
        input_hidden_states_scale=nn.Parameter((d,)),
        input_hidden_states_bias=nn.Parameter((d,)),
    )


def _block(c: Config, *, first: bool = False) -> nn.Module:
    d = c.hidden_size
    moe = kit.mixture(c, c.moe_intermediate_size, 1, c.num_experts, names=None)
    return nn.Module(
        self_attn=_attention(c),
        mlp=nn.Module(gate=_router(c, first), experts=moe.children["experts"]),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        post_attention_residual_scale=_residual(d),
        post_mlp_residual_scale=_residual(d),
    )


def _residual(d: int) -> nn.Module:
    """Scales and biases of both summands of a residual connection."""
    names = ("hidden_states_scale", "hidden_states_bias", "residual_scale", "residual_bias")
    return nn.Module(**{name: nn.Parameter((d,)) for name in names})


def _router(c: Config, first: bool) -> nn.Router:
    """An MLP router with a residual from the previous layer's router.

    It has num_experts + 1 logits; the additional one skips the experts.
    """
    width, of = c.router_hidden_size, c.num_experts + 1
    return nn.Router(
        None,
        down_proj=nn.Linear(c.hidden_size, width),
        router_states_scale=None if first else nn.Parameter((width,)),
        router_mlp=nn.Module(
            norm=nn.RMSNorm(width),
            fc1=nn.Linear(width, width),
            fc2=nn.Linear(width, width),
            out_proj=nn.Linear(width, of, bias=False),
        ),
        balancing_biases=nn.Buffer(of),
    )


def _attention(c: Config) -> nn.Attention:
    """Compressed convolutional attention: queries and keys pass two convolutions.

    Half of each value comes from the previous token. So the cache also holds the convolutions' last
    inputs and the delayed values.
    """
    d, runs, bias = c.hidden_size, kit.heads(c, windows=_windows(c)), c.attention_bias
    queries, keys = runs.queries * runs.size, runs.keys * runs.size
    half, channels = kit.rounded(keys, 2), queries + keys
    return nn.Attention(
        runs,
        o_proj=nn.Linear(queries, d, bias=bias),
        qkv_proj=nn.Module(
            q_proj=nn.Linear(d, queries, bias=bias),
            k_proj=nn.Linear(d, keys, bias=bias),
            v_proj_current=nn.Linear(d, half, bias=bias),
            v_proj_delayed=nn.Linear(d, half, bias=bias),
            conv_qk_depthwise=_convolution(channels, 1, c.cca_time0),
            conv_qk_grouped=_convolution(channels, runs.size, c.cca_time1),
            kept=nn.Scan(nn.Recurrence((c.cca_time0 + c.cca_time1 - 2) * channels, half, CCA, wide=False)),
        ),
        qk_norm=nn.Module(temp=nn.Parameter((runs.keys,), "norm")),
    )


def _convolution(channels: int, reads: int, kernel: int) -> nn.Module:
    """Grouped causal Conv1d: weight (channels, channels // groups, kernel), bias (channels)."""
    return nn.Module(weight=nn.Parameter((channels, reads, kernel), "conv"), bias=nn.Parameter((channels,), "conv"))


def _windows(c: Config) -> nn.Windows:
    if c.layer_types is None:
        return nn.EVERYTHING
    kinds = kit.listed(c, "layer_types", LAYER_KINDS, str)
    if LAYER_KINDS[1] in kinds and c.sliding_window is None:
        raise c.refuse("layer_types lists hybrid_sliding, for which sliding_window must be stated")
    return kit.in_runs((kind == LAYER_KINDS[1] for kind in kinds), c.sliding_window, None)
