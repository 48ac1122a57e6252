"""BigBird (Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences"): BERT's tensors, and a pooler that transformers builds too."""

from tallystick.architectures._bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.blueprint import Config, Group, Linear, Model, architecture
from tallystick.errors import shown

KINDS = ("block_sparse", "original_full")


@architecture(
    "big_bird",
    "BigBirdForCausalLM",
    scored=False,
    running={"attention_type": "block_sparse"},
    **KEYS | {"vocab_size": 50358, "max_position_embeddings": 4096},
    use_bias=True,
)
def big_bird(c: Config) -> Model:
    if c.attention_type not in KINDS:
        raise c.refuse(f"attention_type is {shown(c.attention_type)}, expected {' or '.join(KINDS)}")
    d = c.hidden_size
    # How it attends is not told: some blocks see others by chance, and the pooler runs for one token of a sequence.
    stack = layers(c, heads(c), told=False, bias=c.use_bias)
    return with_cls(c, "bert", Group(embeddings=embeddings(c), encoder=Group(layer=stack), pooler=Linear(d, d)))
