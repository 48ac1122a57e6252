"""RoFormer (Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding"): positions in a frozen table."""

from tallystick.architectures._bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures._bert_siblings import UNPOOLED
from tallystick.architectures._decoder import rounded
from tallystick.blueprint import Config, Group, Linear, Model, Tensor, architecture, maybe


@architecture(
    "roformer",
    "RoFormerForCausalLM",
    siblings=UNPOOLED,
    **KEYS | {"vocab_size": 50000, "max_position_embeddings": 1536},
    embedding_size=maybe(),
)
def roformer(c: Config) -> Model:
    d, size = c.hidden_size, rounded(c.hidden_size, c.num_attention_heads)
    width = c.embedding_size or d
    table = Tensor((c.max_position_embeddings, size), "position_embedding", trainable=False)
    base = Group(
        embeddings=embeddings(c, width, positions=False),
        embeddings_project=Linear(width, d) if width != d else None,
        encoder=Group(embed_positions=Group(weight=table), layer=layers(c, heads(c, size))),
    )
    return with_cls(c, "roformer", base, width=width)
