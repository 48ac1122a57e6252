"""RWKV 4: a linear recurrence per channel, without attention.

Source: Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era".
"""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "rwkv",
    "RwkvForCausalLM",
    vocab_size=50277,
    hidden_size=4096,
    num_hidden_layers=32,
    attention_hidden_size=optional(),
    intermediate_size=optional(),
    tie_word_embeddings=False,
)
def rwkv(c: Config) -> nn.Model:
    d = c.hidden_size
    parts = {
        "ln1": nn.LayerNorm(d),
        "ln2": nn.LayerNorm(d),
        "attention": _mixing_times(c),
        "feed_forward": _mixing_channels(c),
    }
    blocks = nn.ModuleList(
        (1, nn.Module(pre_ln=nn.LayerNorm(d), **parts)), (c.num_hidden_layers - 1, nn.Module(**parts))
    )
    return nn.Model(
        rwkv=nn.Module(embeddings=nn.Embedding(c.vocab_size, d), blocks=blocks, ln_out=nn.LayerNorm(d)),
        head=nn.Head(d, c.vocab_size),
        tie=("head.weight", "rwkv.embeddings.weight") if c.tie_word_embeddings else None,
    )


def _shares(d: int, *names: str) -> dict[str, nn.Tensor]:
    """Token-shift weights: how much of the previous token goes into each input, per element."""
    return {f"time_mix_{name}": nn.Parameter((1, 1, d)) for name in names}


def _mixing_times(c: Config) -> nn.Scan:
    """Time mixing: per channel, a weighted mean of all previous values.

    The state holds numerator, denominator and largest exponent. The cache also holds the last
    token, for time mixing and for channel mixing.
    """
    d, inner = c.hidden_size, c.attention_hidden_size or c.hidden_size
    return nn.Scan(
        nn.Recurrence(
            inputs=2 * d,
            state=3 * inner,
            source="Peng et al. 2023, RWKV, section 3 and appendix D",
            runs=nn.SequentialScan(0),
        ),
        time_decay=nn.Parameter((inner,)),
        time_first=nn.Parameter((inner,)),
        **_shares(d, "key", "value", "receptance"),
        key=nn.Linear(d, inner, bias=False),
        value=nn.Linear(d, inner, bias=False),
        receptance=nn.Linear(d, inner, bias=False),
        output=nn.Linear(inner, d, bias=False),
    )


def _mixing_channels(c: Config) -> nn.MLP:
    d, inner = c.hidden_size, c.intermediate_size or 4 * c.hidden_size
    return nn.MLP(
        **_shares(d, "key", "receptance"),
        key=nn.Linear(d, inner, bias=False),
        receptance=nn.Linear(d, d, bias=False),
        value=nn.Linear(inner, d, bias=False),
    )
