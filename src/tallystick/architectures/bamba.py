"""Bamba (IBM, Princeton, CMU and UIUC 2024, "Bamba: Inference-Efficient Hybrid Mamba2 Model"): Mamba 2, and attention here and there."""

from tallystick.architectures._decoder import SILU, attention, gated_mlp, head_dim, heads
from tallystick.blueprint import (
    Config,
    Embedding,
    Group,
    Head,
    Linear,
    Model,
    Recurrence,
    RMSNorm,
    Scan,
    Scanning,
    Stack,
    Tensor,
    architecture,
    maybe,
    natural,
)
from tallystick.errors import shown


@architecture(
    "bamba",
    "BambaForCausalLM",
    running={**SILU, "mamba_d_head": "auto", "mamba_chunk_size": natural(256)},
    vocab_size=128000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=maybe(8),
    head_dim=maybe(),
    attn_layer_indices=None,
    mamba_n_heads=128,
    mamba_n_groups=1,
    mamba_d_state=256,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_conv_bias=True,
    mamba_proj_bias=False,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def bamba(c: Config) -> Model:
    d = c.hidden_size
    runs: list[tuple[int, Group]] = []
    first = 0  # layer of the next run
    for number in _attending(c):
        runs.append((number - first, _block(c, mamba=_mamba(c))))
        runs.append(
            (
                1,
                _block(
                    c,
                    self_attn=attention(
                        c, heads(c, rotary=int(head_dim(c)) // 2, handed_on=True), bias=c.attention_bias
                    ),
                ),
            )
        )
        first = number + 1
    runs.append((c.num_hidden_layers - first if first else c.num_hidden_layers, _block(c, mamba=_mamba(c))))
    return Model(
        model=Group(embed_tokens=Embedding(c.vocab_size, d), layers=Stack(*runs), final_layernorm=RMSNorm(d)),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def _attending(c: Config) -> list[int]:
    """The numbers of the layers that attend, in order; transformers passes over those that are no layer's."""
    listed = c.attn_layer_indices or []
    if not isinstance(listed, list) or not all(type(number) is int for number in listed):
        raise c.refuse("attn_layer_indices must list the numbers of the layers that attend, or be null")
    return sorted({number for number in listed if 0 <= number < c.num_hidden_layers})


def _block(c: Config, **mixer: Group) -> Group:
    d = c.hidden_size
    return Group(
        feed_forward=gated_mlp(d, c.intermediate_size, c.hidden_act, bias=c.mlp_bias),
        input_layernorm=RMSNorm(d),
        pre_ff_layernorm=RMSNorm(d),
        **mixer,
    )


def _mamba(c: Config) -> Scan:
    """Mamba 2 (Dao and Gu 2024, "Transformers are SSMs", section 7): gate, inputs, B, C and steps from one projection."""
    d, inner, heads = c.hidden_size, c.mamba_expand * c.hidden_size, c.mamba_n_heads
    size, rest = divmod(int(inner), int(heads))
    if rest:
        raise c.refuse(f"mamba_expand·hidden_size = {int(inner)} is not divisible by mamba_n_heads = {int(heads)}")
    if c.mamba_d_head not in ("auto", size):
        raise c.refuse(
            f"mamba_d_head is {shown(c.mamba_d_head)}, but mamba_expand·hidden_size shared out among the heads is {size}"
        )
    convolved = inner + 2 * c.mamba_n_groups * c.mamba_d_state
    return Scan(
        Recurrence(
            inputs=convolved * c.mamba_d_conv,
            state=inner * c.mamba_d_state,
            source="Dao and Gu 2024, Transformers are SSMs, section 7",
            runs=Scanning(
                reads=d,
                heads=heads,
                size=size,
                rows=c.mamba_d_state,
                groups=c.mamba_n_groups,
                kernel=c.mamba_d_conv,
                chunk=c.mamba_chunk_size,
            )
            if c.mamba_chunk_size
            else None,  # it can be built, but does not run
        ),
        conv1d=Group(
            weight=Tensor((convolved, 1, c.mamba_d_conv), "conv"),
            bias=Tensor((convolved,), "conv") if c.mamba_conv_bias else None,
        ),
        in_proj=Linear(d, inner + convolved + heads, bias=c.mamba_proj_bias),
        norm=RMSNorm(inner),
        out_proj=Linear(inner, d, bias=c.mamba_proj_bias),
        dt_bias=Tensor((heads,)),
        A_log=Tensor((heads,)),
        D=Tensor((heads,)),
    )
