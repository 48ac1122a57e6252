"""A decoder that knows one sentence by heart: its head reads off each position which byte comes
next.

Written by hand, not trained: `python recital.py` makes the folder `recital`, for `tallystick
generate recital`.
"""

from pathlib import Path

import torch

from tallystick.models import Decoder, save_pretrained
from tallystick.models.tokens import Tokenizer

SENTENCE = "A tally stick was notched with a count and split in two."
CONFIG = {
    "model_type": "gpt2",
    "n_embd": 64,
    "n_positions": 64,
    "n_layer": 1,
    "n_head": 1,
    "tie_word_embeddings": False,
}


def write(folder: Path) -> None:
    """The checkpoint, its tokenizer, and the sentence."""
    tokenizer = Tokenizer.bytes()
    decoder = Decoder.of({**CONFIG, "vocab_size": tokenizer.size})
    with torch.no_grad():
        for parameter in (*decoder.layers.parameters(), decoder.embedding.weight, decoder.head.weight):
            parameter.zero_()
        decoder.positions.weight.copy_(torch.eye(64))
        for position, token in enumerate([*tokenizer.encode(SENTENCE)[1:], tokenizer.end]):
            decoder.head.weight[token, position] = 1.0
    save_pretrained(decoder, folder)
    tokenizer.save(folder)
    (folder / "sentence.txt").write_text(SENTENCE)


if __name__ == "__main__":
    write(Path("recital"))
