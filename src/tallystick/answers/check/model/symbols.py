"""Sizes of a model under each name that texts and configs use for them."""

from __future__ import annotations

from tallystick.core.ledger import Ledger
from tallystick.core.size_names import SAME

# Names that texts also use for another size: a shorter sequence, the width, any nn.Embedding's.
_VAGUE = frozenset(
    ["seq_len", "max_len", "max_length", "max_seq_len", "hidden_dim", "n_hidden", "d_hidden", "num_embeddings"]
)
TEXT = "text_config_"  # prefix of the symbols of a nested language model


def sizes(ledger: Ledger) -> dict[str, int]:
    """Return the config keys used in the shapes, with their values, and their aliases.

    Aliases with two meanings are omitted: "layers" is also a unit.

    >>> from tallystick import count
    >>> sizes(count("gpt2"))["d_model"]
    768
    """
    symbols = ledger.model.symbols
    found = {name: int(value) for name, value in symbols.items()}
    # For a multimodal model, the plain names mean the sizes of its language model.
    found |= {name.removeprefix(TEXT): value for name, value in found.items() if name.startswith(TEXT)} | found
    met = set[str]()  # a name of two sizes means the first: `d_ff` the inner size, never the width
    for names in SAME:
        for value in [found[name] for name in names if name in found][:1]:
            found |= {name: value for name in names if "_" in name and name not in found.keys() | _VAGUE | met}
        met |= set(names)
    return {_camel(name): value for name, value in found.items()} | found


def _camel(name: str) -> str:
    """Return a name as other languages than Python spell it: vocabSize."""
    first, *rest = name.split("_")
    return "".join([first, *(one.title() for one in rest)])
