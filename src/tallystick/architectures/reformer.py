"""Reformer: LSH attention, reversible streams and axial positions.

Source: Kitaev et al. 2020, "Reformer: The Efficient Transformer".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import BARE, INSTEAD, two_products, variant
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown

LAYER_KINDS = {"lsh": ("query_key", "value"), "local": ("query", "key", "value")}  # and their projections
LISTED = ["local", "lsh"] * 3

CLASSIFIER = {
    "ForSequenceClassification": variant(
        f"`classifier` {INSTEAD}",
        lambda c: {"classifier": two_products(2 * c.hidden_size, c.hidden_size, c.num_labels)},
        once=True,
    )
}


@architecture(
    "reformer",
    "ReformerModelWithLMHead",
    variants=BARE | CLASSIFIER,
    running={"local_num_chunks_after": nonnegative(), "lsh_num_chunks_after": nonnegative()},
    vocab_size=320,
    hidden_size=256,
    num_hidden_layers=optional(),
    num_attention_heads=12,
    attention_head_size=64,
    feed_forward_size=512,
    attn_layers=None,
    axial_pos_embds=True,
    axial_pos_shape=(64, 64),
    axial_pos_embds_dim=(64, 192),
    max_position_embeddings=4096,
    is_decoder=False,
)
def reformer(c: Config) -> nn.Model:
    if c.headed and not c.is_decoder:
        raise c.refuse("is_decoder is missing or false: the language model of this type is a decoder")
    d = c.hidden_size
    local = [kind == "local" for kind in _kinds(c)]
    runs = kit.in_runs(local, _block(c, "local"), _block(c, "lsh"))
    layers = c.num_hidden_layers
    stack = (
        nn.ModuleList((layers, runs[0][0]))
        if layers and len(runs) == 1
        else nn.ModuleList(*((n, block) for block, n in runs))
    )
    return nn.Model(
        reformer=nn.Module(
            embeddings=nn.Module(word_embeddings=nn.Embedding(c.vocab_size, d), position_embeddings=_positions(c)),
            encoder=nn.Module(layers=stack, layer_norm=nn.LayerNorm(2 * d)),  # of both streams
        ),
        lm_head=nn.Module(bias=nn.Parameter((c.vocab_size,), "head"), decoder=nn.Head(2 * d, c.vocab_size)),
    )


def _kinds(c: Config) -> list[str]:
    """Attention kind of each layer; a single entry if all layers are equal."""
    listed = LISTED if c.attn_layers is None else c.attn_layers
    if (
        not isinstance(listed, list)
        or not listed
        or not all(isinstance(kind, str) and kind in LAYER_KINDS for kind in listed)
    ):
        raise c.refuse(f"attn_layers is {shown(listed)}, expected a list of {' and '.join(LAYER_KINDS)}")
    for kind in {*listed}:
        if c.is_decoder and getattr(c, f"{kind}_num_chunks_after"):
            raise c.refuse(f"{kind}_num_chunks_after must be 0: a decoder does not attend to later tokens")
    layers = len(listed) if c.num_hidden_layers is None else c.num_hidden_layers
    if len({*listed}) == 1:
        return listed[:1] if c.num_hidden_layers else listed
    if layers > len(listed):
        raise c.refuse(f"attn_layers lists {len(listed)} layers of {int(layers)}")
    return listed[: int(layers)]


def _block(c: Config, kind: str) -> nn.Module:
    d, inner, heads = c.hidden_size, c.feed_forward_size, c.num_attention_heads * c.attention_head_size
    reads = {name: nn.Linear(d, heads, bias=False) for name in LAYER_KINDS[kind]}
    return nn.Module(
        # No `Heads`: what LSH attention reads depends on the hashes of all positions.
        attention=nn.Attention(
            layer_norm=nn.LayerNorm(d),
            self_attention=nn.Module(**reads),
            output=nn.Module(dense=nn.Linear(heads, d, bias=False)),
        ),
        feed_forward=nn.MLP(
            layer_norm=nn.LayerNorm(d),
            dense=nn.Module(dense=nn.Linear(d, inner)),
            output=nn.Module(dense=nn.Linear(inner, d)),
        ),
    )


def _positions(c: Config) -> nn.Module:
    """Learned positions: one table, or one per axis, concatenated."""
    if not c.axial_pos_embds:
        return nn.Module(embedding=nn.PositionEmbedding(c.max_position_embeddings, c.hidden_size))
    shape, widths = c.axial_pos_shape, c.axial_pos_embds_dim
    if sum(map(int, widths)) != c.hidden_size:
        raise c.refuse(f"axial_pos_embds_dim must sum to hidden_size = {int(c.hidden_size)}")
    if len(widths) > len(shape):
        raise c.refuse(f"axial_pos_embds_dim names {len(widths)} axes, axial_pos_shape {len(shape)}")
    tables: dict[str, nn.Node] = {}
    for axis, width in enumerate(widths):
        sizes = [rows if at == axis else 1 for at, rows in enumerate(shape)]
        tables[str(axis)] = nn.Parameter((*sizes, width), "position_embedding")
    return nn.Module(weights=nn.Module(**tables))
