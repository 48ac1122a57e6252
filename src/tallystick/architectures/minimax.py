"""MiniMax-Text-01: lightning attention in every other layer, experts in all.

Source: MiniMax 2025, "MiniMax-01: Scaling Foundation Models with Lightning Attention".
"""

from itertools import groupby

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional

LAYER_KINDS = ("full_attention", "linear_attention")


@architecture(
    "minimax",
    "MiniMaxForCausalLM",
    running={"sliding_window": nonnegative(None, nullable=True)},
    aliases={"num_experts": "num_local_experts"},
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    layer_types=None,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=optional(),
    block_size=256,
    num_local_experts=8,
    num_experts_per_tok=2,
    tie_word_embeddings=False,
)
def minimax(c: Config) -> nn.Model:
    runs = ((kind, len(list(run))) for kind, run in groupby(_kinds(c)))
    return kit.decoder(c, nn.ModuleList(*((layers, _block(c, linear=kind == LAYER_KINDS[1])) for kind, layers in runs)))


def _kinds(c: Config) -> list[str]:
    """Mixer of each layer: as listed, or full and lightning attention alternately."""
    count, listed = int(c.num_hidden_layers), c.layer_types
    if listed is None:
        return [LAYER_KINDS[layer % 2] for layer in range(kit.listable(c))]
    if not isinstance(listed, list) or len(listed) < count or not all(kind in LAYER_KINDS for kind in listed):
        raise c.refuse(f"layer_types must list {' or '.join(LAYER_KINDS)} for each of the {count} layers")
    return listed[:count]


def _block(c: Config, *, linear: bool) -> nn.Module:
    norm = nn.RMSNorm(c.hidden_size)
    moe = kit.mixture(  # no runtime info: activations are not modelled for scan layers
        c, c.intermediate_size, kit.experts_used(c, "num_local_experts"), c.num_local_experts, names=kit.NUMBERED
    )
    return nn.Module(
        self_attn=_lightning(c) if linear else kit.attention(c, _heads(c)),
        input_layernorm=norm,
        post_attention_layernorm=norm,
        **{"block_sparse_moe" if c.published else "mlp": moe},
    )


def _heads(c: Config) -> nn.Heads:
    """Heads; transformers does not cut the cache to a stated window."""
    return kit.heads(c, windows=((c.sliding_window, 1),))


def _lightning(c: Config) -> nn.Scan:
    """Lightning attention: per head, a decaying state of keys × values.

    Source: Qin et al. 2024, "Lightning Attention-2", section 3.
    """
    d, runs, block = c.hidden_size, kit.heads(c), c.block_size
    count, inner = runs.queries, runs.queries * runs.size
    return nn.Scan(
        nn.Recurrence(
            inputs=0,
            state=inner * runs.size,
            source="Qin et al. 2024, Lightning Attention-2, section 3",
            wide=False,
        ),
        norm=nn.RMSNorm(inner),
        qkv_proj=nn.Linear(d, 3 * inner, bias=False),
        out_proj=nn.Linear(inner, d, bias=False),
        output_gate=nn.Linear(d, inner, bias=False),
        # Decay of the state, per token and per block.
        slope_rate=nn.Buffer(count, 1, 1),
        query_decay=nn.Buffer(count, block, 1),
        key_decay=nn.Buffer(count, block, 1),
        diagonal_decay=nn.Buffer(1, count, block, block),
    )
