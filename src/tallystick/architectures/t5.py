"""T5: an encoder and a decoder that share one token embedding; relative positions.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer". T5 v1.1 has a gated MLP and a head that is not tied: `tie_word_embeddings` is false in
its config. transformers 5 builds that head tied, and unties it when it loads a checkpoint.
"""

from tallystick.architectures.kit.encoder_decoder import IRREGULAR
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant, architecture, optional

SIDES = ("encoder", "decoder")


def _without_head(c: Config, model: nn.Model) -> nn.Model:
    ties = {name: of for name, of in model.ties.items() if name != "lm_head.weight"}
    return model.with_children(lm_head=None).replace(ties=ties)


def _encoder(c: Config, model: nn.Model) -> nn.Model:
    ties = {name: of for name, of in model.ties.items() if name.startswith("encoder.")}
    return model.with_children(lm_head=None, decoder=None).replace(ties=ties)


@architecture(
    "t5",
    "T5ForConditionalGeneration",
    variants={
        "Model": ModelVariant(_without_head, "no LM head"),
        "EncoderModel": ModelVariant(_encoder, "the encoder alone"),
    },
    aliases={
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    },
    vocab_size=32128,
    d_model=512,
    d_kv=64,
    d_ff=2048,
    num_layers=6,
    num_decoder_layers=optional(),
    num_heads=8,
    relative_attention_num_buckets=32,
    feed_forward_proj="relu",
    tie_word_embeddings=True,
)
def t5(c: Config) -> nn.Model:
    table = nn.Embedding(c.vocab_size, c.d_model)
    depths = dict(zip(SIDES, (c.num_layers, c.num_decoder_layers or c.num_layers), strict=True))
    tied = [*(f"{side}.embed_tokens.weight" for side in SIDES), *(["lm_head.weight"] if c.tie_word_embeddings else [])]
    return nn.Model(
        IRREGULAR,
        tie=dict.fromkeys(tied, "shared.weight"),
        shared=table,
        **{side: _stack(c, table, depth, reads=side == "decoder") for side, depth in depths.items()},
        lm_head=nn.Head(c.d_model, c.vocab_size),
    )


def _stack(c: Config, table: nn.Module, depth: int, *, reads: bool) -> nn.Module:
    """Return one side; `reads`: each block has cross-attention, which reads the encoder's states.

    Only the first block stores the table of relative positions, and the others use it.
    """
    first, rest = (_block(c, reads=reads, positions=positions) for positions in (True, False))
    block = nn.ModuleList((1, first), *([(depth - 1, rest)] if depth > 1 else []))
    return nn.Module(embed_tokens=table, block=block, final_layer_norm=nn.RMSNorm(c.d_model))


def _block(c: Config, *, reads: bool, positions: bool) -> nn.Module:
    norm = nn.RMSNorm(c.d_model)
    layers = [
        nn.Module(SelfAttention=_attention(c, positions=positions), layer_norm=norm),
        *([nn.Module(EncDecAttention=_attention(c), layer_norm=norm)] if reads else []),
        nn.Module(DenseReluDense=_mlp(c), layer_norm=norm),
    ]
    return nn.Module(layer=nn.ModuleList(*((1, layer) for layer in layers)))


def _attention(c: Config, *, positions: bool = False) -> nn.Attention:
    d, inner = c.d_model, c.num_heads * c.d_kv
    biases = nn.Module(weight=nn.Parameter((c.relative_attention_num_buckets, c.num_heads), "attention"))
    return nn.Attention(
        q=nn.Linear(d, inner, bias=False),
        k=nn.Linear(d, inner, bias=False),
        v=nn.Linear(d, inner, bias=False),
        o=nn.Linear(inner, d, bias=False),
        relative_attention_bias=biases if positions else None,
    )


def _mlp(c: Config) -> nn.MLP:
    d, inner = c.d_model, c.d_ff
    up = ("wi_0", "wi_1") if c.feed_forward_proj.startswith("gated-") else ("wi",)
    return nn.MLP(
        **{name: nn.MLP(**nn.Linear(d, inner, bias=False).children) for name in up},
        wo=nn.MLP(**nn.Linear(inner, d, bias=False).children),
    )
