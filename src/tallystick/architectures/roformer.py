"""RoFormer: BERT with rotary positions in a frozen sinusoidal table.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures.kit.bert_variants import UNPOOLED
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "roformer",
    "RoFormerForCausalLM",
    variants=UNPOOLED,
    **KEYS | {"vocab_size": 50000, "max_position_embeddings": 1536},
    embedding_size=optional(),
)
def roformer(c: Config) -> nn.Model:
    d, size = c.hidden_size, kit.rounded(c.hidden_size, c.num_attention_heads)
    width = c.embedding_size or d
    table = nn.Parameter((c.max_position_embeddings, size), "position_embedding", trainable=False)
    base = nn.Module(
        embeddings=embeddings(c, width, positions=False),
        embeddings_project=nn.Linear(width, d) if width != d else None,
        encoder=nn.Module(embed_positions=nn.Module(weight=table), layer=layers(c, heads(c, size))),
    )
    return with_cls(c, "roformer", base, width=width)
