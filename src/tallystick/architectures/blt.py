"""BLT: a byte-level model with a patcher, a local encoder and decoder, and a global model.

The patcher cuts the bytes into patches. The global transformer runs on patches.
Source: Pagnoni et al. 2024, "Byte Latent Transformer".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import Dim, expression_of
from tallystick.core.registry import Config, NestedConfig, architecture, nonnegative, optional

NARROW = {"vocab_size": 260, "hidden_size": 1024, "num_attention_heads": 16, "cross_attn_k": 2}
GROUPED = {"num_key_value_heads": nonnegative(nullable=True)}  # null or 0: one per query head
ENCODER = {
    **NARROW,
    **GROUPED,
    "num_hidden_layers": 1,
    "intermediate_size": nonnegative(nullable=True),
    "cross_attn_all_layers": optional(False),
}
DECODER = {
    **{key: default for key, default in NARROW.items() if key != "vocab_size"},
    **GROUPED,
    "num_hidden_layers": 9,
    "intermediate_size": nonnegative(2816),
    "cross_attn_all_layers": optional(True),
    "hidden_size_global": 2048,
}
GLOBAL = {
    **GROUPED,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_hidden_layers": 25,
    "intermediate_size": nonnegative(5632),
}
PATCHER = {
    **GROUPED,
    "vocab_size": 260,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_hidden_layers": 14,
    "intermediate_size": nonnegative(2048),
}


@architecture(
    "blt",
    "BltForCausalLM",
    vocab_size=260,
    cross_attn_k=2,
    encoder_hash_byte_group_size=None,
    encoder_hash_byte_group_vocab=500002,
    encoder_hash_byte_group_nb_functions=1,
    patch_in_forward=optional(True),
    tie_word_embeddings=False,
    parts={
        "patcher_config": NestedConfig(PATCHER),
        "encoder_config": NestedConfig(ENCODER),
        "decoder_config": NestedConfig(DECODER),
        "global_config": NestedConfig(GLOBAL),
    },
)
def blt(c: Config) -> nn.Model:
    encoder, decoder = c.part("encoder_config"), c.part("decoder_config")
    between, d = c.part("global_config"), encoder.hidden_size
    given = d * c.cross_attn_k  # elements of one patch, from the local encoder
    tied = c.tie_word_embeddings and c.headed
    return nn.Model(
        "the layers between encoder and decoder process patches, not bytes, and the patcher is not trained",
        model=nn.Module(
            local_encoder=nn.Module(
                layers=_layers(encoder),
                patch_embedding_projection=nn.Linear(d, d * encoder.cross_attn_k, bias=False),
                embed_tokens=nn.Embedding(c.vocab_size, decoder.hidden_size)
                if tied
                else nn.Embedding(encoder.vocab_size, d),
                cross_attn_layers=_crossing(encoder),
            ),
            global_transformer=nn.Module(
                layers=_layers(between),
                token_embedding_projection=None
                if given == between.hidden_size
                else nn.Linear(given, between.hidden_size, bias=False),
            ),
            local_decoder=nn.Module(
                layers=_layers(decoder),
                patch_embedding_projection=nn.Linear(
                    decoder.hidden_size_global, decoder.hidden_size * decoder.cross_attn_k, bias=False
                ),
                norm=nn.RMSNorm(decoder.hidden_size),
                cross_attn_layers=_crossing(decoder),
            ),
            encoder_hash_tok_embedding=nn.Embedding(_hashes(c), d),
            patcher=nn.rebuilt(_patcher(c.part("patcher_config")), _untrained) if c.patch_in_forward else None,
        ),
        lm_head=nn.Head(decoder.hidden_size, c.vocab_size),
        tie=("model.local_encoder.embed_tokens.weight", "lm_head.weight") if tied else None,
    )


def _hashes(c: Config) -> int:
    """Rows of the hash embedding: one table per byte group size and hash function."""
    lengths = c.encoder_hash_byte_group_size or [3, 4, 5, 6, 7, 8]
    if not isinstance(lengths, list):
        raise c.refuse("encoder_hash_byte_group_size must list how many bytes are hashed together, or be null")
    rows: int = c.encoder_hash_byte_group_vocab * c.encoder_hash_byte_group_nb_functions * len(lengths)
    return rows


def _attention(c: Config, **norms: nn.Module) -> nn.Attention:
    """Attention without `Heads`: the KV cache size depends on the patch boundaries."""
    d, heads = c.hidden_size, c.num_attention_heads
    size = kit.rounded(d, heads)
    keys = (c.num_key_value_heads or heads) * size
    return nn.Attention(
        q_proj=nn.Linear(d, heads * size, bias=False),
        k_proj=nn.Linear(d, keys, bias=False),
        v_proj=nn.Linear(d, keys, bias=False),
        o_proj=nn.Linear(heads * size, d, bias=False),
        **norms,
    )


def _crossing(c: Config) -> nn.ModuleList:
    """Cross-attention between bytes and patches: in every layer, or once."""
    norm = nn.RMSNorm(c.hidden_size)
    return nn.Repeat(c.num_hidden_layers if c.cross_attn_all_layers else 1, _attention(c, q_norm=norm, k_norm=norm))


def _layers(c: Config) -> nn.ModuleList:
    d = c.hidden_size
    inner = c.intermediate_size or Dim(8 * int(d) // 3, ("floor", expression_of(8 * d), 3))
    block = nn.Module(
        self_attn=_attention(c),
        mlp=kit.gated_mlp(d, inner),
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
    )
    return nn.Repeat(c.num_hidden_layers, block)


def _patcher(c: Config) -> nn.Module:
    """A small byte-level language model; patches begin where the next byte is uncertain."""
    d = c.hidden_size
    return nn.Module(
        layers=_layers(c),
        embed_tokens=nn.Embedding(c.vocab_size, d),
        norm=nn.RMSNorm(d),
        lm_head=nn.Module(weight=nn.Parameter((c.vocab_size, d), "other")),  # the patcher's head, not the model's
    )


def _untrained(node: nn.Node) -> nn.Node:
    return node._replace(trainable=False) if isinstance(node, nn.Tensor) else node
