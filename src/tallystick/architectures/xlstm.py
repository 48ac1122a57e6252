"""xLSTM: mLSTM layers with a matrix memory per head.

Source: Beck et al. 2025, "xLSTM 7B: A Recurrent LLM for Fast and Efficient Inference".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import floor
from tallystick.core.registry import Config, architecture, optional
from tallystick.errors import shown

MODES = ("single", "fused")
FINEST = 64  # largest denominator of a factor that the formula shows as a fraction


@architecture(
    "xlstm",
    "xLSTMForCausalLM",
    vocab_size=50304,
    hidden_size=4096,
    embedding_dim=optional(),
    num_hidden_layers=32,
    num_blocks=optional(),
    num_heads=8,
    qk_dim_factor=0.5,
    v_dim_factor=1.0,
    ffn_proj_factor=2.667,
    ffn_round_up_to_multiple_of=64,
    use_bias=False,
    weight_mode="single",
)
def xlstm(c: Config) -> nn.Model:
    if c.weight_mode not in MODES:
        raise c.refuse(f"weight_mode is {shown(c.weight_mode)}, expected {' or '.join(MODES)}")
    d, bias = c.hidden_size, c.use_bias
    block = nn.Module(
        norm_mlstm=nn.LayerNorm(d, bias=bias, kind="rms"),
        mlstm_layer=_memory(c),
        norm_ffn=nn.LayerNorm(d, bias=bias, kind="rms"),
        ffn=_feed_forward(c),
    )
    return nn.Model(
        backbone=nn.Module(
            embeddings=nn.Embedding(c.vocab_size, c.embedding_dim or d),
            blocks=nn.Repeat(c.num_blocks or c.num_hidden_layers, block),
            out_norm=nn.RMSNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size),
    )


def _scaled(width: int, factor: float) -> int:
    """Width times factor, rounded down."""
    over, under = factor.as_integer_ratio()
    if under > FINEST:
        return int(int(width) * factor)
    many = width if over == 1 else over * width
    return many if under == 1 else floor(many, under)


def _memory(c: Config) -> nn.Scan:
    """mLSTM: per head a keys × values matrix, a normaliser of keys, and the largest exponent."""
    d, count, bias = c.hidden_size, c.num_heads, c.use_bias
    keys, values = _scaled(d, c.qk_dim_factor), _scaled(d, c.v_dim_factor)
    if c.weight_mode == "fused":
        reads = {
            "qkv_opreact": nn.Linear(d, 2 * keys + 2 * values, bias=bias),
            "ifgate_preact": nn.Linear(d, 2 * count),
        }
    else:
        widths = {"q": keys, "k": keys, "v": values, "ogate_preact": values}
        reads = {name: nn.Linear(d, width, bias=bias) for name, width in widths.items()}
        reads |= {"igate_preact": nn.Linear(d, count), "fgate_preact": nn.Linear(d, count)}
    of_keys, of_values = int(keys) // int(count), int(values) // int(count)
    return nn.Scan(
        nn.Recurrence(
            inputs=0,
            state=count * (of_keys * of_values + of_keys + 1),
            source="Beck et al. 2025, xLSTM 7B, section 2",
            wide=False,
        ),
        **reads,
        multihead_norm=nn.LayerNorm(count * kit.rounded(values, count), bias=bias),
        out_proj=nn.Linear(values, d, bias=bias),
    )


def _feed_forward(c: Config) -> nn.MLP:
    """SwiGLU; its width is rounded up to a multiple."""
    d, bias, multiple = c.hidden_size, c.use_bias, c.ffn_round_up_to_multiple_of
    inner = multiple * int((kit.times(c, d, "ffn_proj_factor") + int(multiple) - 1) // int(multiple))
    if c.weight_mode == "fused":
        reads = {"proj_up_gate_z": nn.Linear(d, 2 * inner, bias=bias)}
    else:
        reads = {name: nn.Linear(d, inner, bias=bias) for name in ("proj_up_gate", "proj_up")}
    return nn.MLP(**reads, proj_down=nn.Linear(inner, d, bias=bias))
