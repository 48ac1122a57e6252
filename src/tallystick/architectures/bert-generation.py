"""The decoder of BERT for generation.

Source: Rothe et al. 2019, "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks".
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_lm_head
from tallystick.architectures.kit.variants import BARE
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

SIZES = {
    "vocab_size": 50358,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
OWN = {key: default for key, default in (KEYS | SIZES).items() if key != "type_vocab_size"}


@architecture("bert-generation", "BertGenerationDecoder", variants={"Encoder": BARE["Model"]}, **OWN)
def bert_generation(c: Config) -> nn.Model:
    encoder = nn.Module(embeddings=embeddings(c, types=False), encoder=nn.Module(layer=layers(c, heads(c))))
    return with_lm_head(c, "bert", encoder)
