"""RWKV 4 (Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era"): a state for each channel, and no attention."""

from tallystick.anatomy import Stepping
from tallystick.blueprint import (
    MLP,
    Config,
    Embedding,
    Group,
    Head,
    LayerNorm,
    Linear,
    Model,
    Recurrence,
    Scan,
    Stack,
    Tensor,
    architecture,
    maybe,
)


@architecture(
    "rwkv",
    "RwkvForCausalLM",
    vocab_size=50277,
    hidden_size=4096,
    num_hidden_layers=32,
    attention_hidden_size=maybe(),
    intermediate_size=maybe(),
    tie_word_embeddings=False,
)
def rwkv(c: Config) -> Model:
    d = c.hidden_size
    parts = {
        "ln1": LayerNorm(d),
        "ln2": LayerNorm(d),
        "attention": _mixing_times(c),
        "feed_forward": _mixing_channels(c),
    }
    blocks = Stack((1, Group(pre_ln=LayerNorm(d), **parts)), (c.num_hidden_layers - 1, Group(**parts)))
    return Model(
        rwkv=Group(embeddings=Embedding(c.vocab_size, d), blocks=blocks, ln_out=LayerNorm(d)),
        head=Head(d, c.vocab_size),
        tie=("head.weight", "rwkv.embeddings.weight") if c.tie_word_embeddings else None,
    )


def _shares(d: int, *names: str) -> dict[str, Tensor]:
    """How much of the token before goes into each, element by element."""
    return {f"time_mix_{name}": Tensor((1, 1, d)) for name in names}


def _mixing_times(c: Config) -> Scan:
    """For each channel a weighted mean of all values so far: sums above and below, and the largest exponent in them.

    The last token is kept as well: the one here, and the one that the channels are mixed with.
    """
    d, inner = c.hidden_size, c.attention_hidden_size or c.hidden_size
    return Scan(
        Recurrence(
            inputs=2 * d,
            state=3 * inner,
            source="Peng et al. 2023, RWKV, section 3 and appendix D",
            runs=Stepping(0),
        ),
        time_decay=Tensor((inner,)),
        time_first=Tensor((inner,)),
        **_shares(d, "key", "value", "receptance"),
        key=Linear(d, inner, bias=False),
        value=Linear(d, inner, bias=False),
        receptance=Linear(d, inner, bias=False),
        output=Linear(inner, d, bias=False),
    )


def _mixing_channels(c: Config) -> MLP:
    d, inner = c.hidden_size, c.intermediate_size or 4 * c.hidden_size
    return MLP(
        **_shares(d, "key", "receptance"),
        key=Linear(d, inner, bias=False),
        receptance=Linear(d, d, bias=False),
        value=Linear(inner, d, bias=False),
    )
