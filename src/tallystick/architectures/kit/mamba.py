"""Mamba and Mamba 2 mixers, shared by several families."""

from typing import Any

from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import Dim, ceil, expression_of
from tallystick.core.algebra.notations import TEXT, write
from tallystick.core.registry import Config, nonnegative
from tallystick.errors import shown


def rank(c: Config, by: str) -> int:
    """Return the rank of Mamba's step projection: the key `by`, or ceil(hidden_size / 16)."""
    stated: int | None = getattr(c, by)
    return stated or ceil(c.hidden_size, 16)


def short_conv(channels: int, kernel: int, *, bias: bool) -> nn.Module:
    """Return a depthwise causal Conv1d: weight (channels, 1, kernel), bias (channels)."""
    return nn.Module(
        weight=nn.Parameter((channels, 1, kernel), "conv"),
        bias=nn.Parameter((channels,), "conv") if bias else None,
    )


def mamba(
    d: int, inner: int, *, rows: int, kernel: int, rank: int, conv_bias: bool, bias: bool, **norms: nn.Node | None
) -> nn.Scan:
    """Return a Mamba mixer.

    Args:
        d: elements of a token.
        inner: channels of the mixer.
        rows: state size of one channel.
        kernel: tokens that the convolution reads.
        rank: width of the step projection (`dt_rank`).
        conv_bias: whether the convolution has a bias.
        bias: whether the input and output projections have one.
        norms: further children, such as norms.
    """
    return nn.Scan(
        mamba_keeps(inner, rows=rows, kernel=kernel),
        conv1d=short_conv(inner, kernel, bias=conv_bias),
        in_proj=nn.Linear(d, 2 * inner, bias=bias),
        x_proj=nn.Linear(inner, rank + 2 * rows, bias=False),
        dt_proj=nn.Linear(rank, inner),
        A_log=nn.Parameter((inner, rows)),
        D=nn.Parameter((inner,)),
        out_proj=nn.Linear(inner, d, bias=bias),
        **norms,
    )


def mamba_keeps(inner: int, *, rows: int, kernel: int) -> nn.Recurrence:
    """Return the state of one Mamba layer: convolution inputs and SSM state."""
    source = "Gu and Dao 2023, Mamba, section 3.2"
    return nn.Recurrence(inputs=inner * kernel, state=inner * rows, source=source, runs=nn.SequentialScan(inner * rows))


def mamba2(
    d: int,
    inner: int,
    heads: int,
    *,
    groups: int,
    rows: int,
    kernel: int,
    chunk: int,
    conv_bias: bool,
    bias: bool,
    output_bias: bool | None = None,
    norm: bool = True,
) -> nn.Scan:
    """Return a Mamba 2 mixer (Dao and Gu 2024, "Transformers are SSMs", section 7).

    One projection gives the gate, the inputs, B, C and the steps.

    Args:
        d: elements of a token.
        inner: elements of a token in all heads.
        heads: number of heads. If they do not divide `inner`, the model can be built but not run.
        groups: groups of heads that share B and C.
        rows: state size of one channel.
        kernel: tokens that the convolution reads.
        chunk: tokens per chunk; with 0 the model can be built but not run.
        conv_bias: whether the convolution has a bias.
        bias: whether the input projection has one, and the output projection by default.
        output_bias: whether the output projection has one; None: as `bias`.
        norm: whether an RMSNorm follows the heads.
    """
    convolved = inner + 2 * groups * rows
    size, rest = divmod(int(inner), int(heads))
    return nn.Scan(
        nn.Recurrence(
            inputs=convolved * kernel,
            state=inner * rows,
            source="Dao and Gu 2024, Transformers are SSMs, section 7",
            runs=nn.ChunkedScan(reads=d, heads=heads, size=size, rows=rows, groups=groups, kernel=kernel, chunk=chunk)
            if chunk and not rest
            else None,
        ),
        conv1d=short_conv(convolved, kernel, bias=conv_bias),
        in_proj=nn.Linear(d, inner + convolved + heads, bias=bias),
        norm=nn.RMSNorm(inner) if norm else None,
        out_proj=nn.Linear(inner, d, bias=bias if output_bias is None else output_bias),
        dt_bias=nn.Parameter((heads,)),
        A_log=nn.Parameter((heads,)),
        D=nn.Parameter((heads,)),
    )


# Keys of families that combine Mamba 2 with attention (IBM's defaults), and keys that change no
# tensor.
MAMBA2: dict[str, Any] = {
    "mamba_n_heads": 128,
    "mamba_n_groups": 1,
    "mamba_d_state": 256,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
MAMBA2_RUNS: dict[str, Any] = {"mamba_d_head": "auto", "mamba_chunk_size": nonnegative(256)}


def mamba2_of(c: Config, inner: int, *, output_bias: bool | None = None, norm: bool = True) -> nn.Scan:
    """Return the Mamba 2 mixer that the `mamba_...` keys describe."""
    refuse_other_heads(c, inner, "mamba_n_heads", "mamba_d_head")
    return mamba2(
        c.hidden_size,
        inner,
        c.mamba_n_heads,
        groups=c.mamba_n_groups,
        rows=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        chunk=c.mamba_chunk_size,
        conv_bias=c.mamba_conv_bias,
        bias=c.mamba_proj_bias,
        output_bias=output_bias,
        norm=norm,
    )


def refuse_other_heads(c: Config, inner: int, of: str, by: str = "") -> None:
    """Refuse heads that do not divide a width, or a stated head size that is not their quotient.

    Args:
        c: the config.
        inner: the width.
        of: the config key of the number of heads.
        by: the config key of the head size; "": none.
    """
    heads, stated = int(getattr(c, of)), getattr(c, by) if by else "auto"
    stated = int(stated) if isinstance(stated, Dim) else stated
    size, rest = divmod(int(inner), heads)
    width = write(expression_of(inner), TEXT)
    if rest:
        raise c.refuse(f"{width} = {int(inner)} is not divisible by {of} = {heads}", code="indivisible")
    if stated not in ("auto", size):
        raise c.refuse(f"{by} is {shown(stated)}, but {width} divided by the heads is {size}")
