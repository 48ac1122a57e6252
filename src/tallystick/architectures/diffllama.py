"""DiffLlama: Llama with differential attention over pairs of heads.

Source: Ye et al. 2024, "Differential Transformer".
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "diffllama",
    "DiffLlamaForCausalLM",
    vocab_size=32000,
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def diffllama(c: Config) -> nn.Model:
    d = c.hidden_size
    mlp = kit.gated_mlp(d, c.intermediate_size)  # activations of the subtraction are not modelled
    return kit.decoder(c, kit.pre_norm(_attention(c), mlp, nn.RMSNorm(d)))


def _attention(c: Config) -> nn.Attention:
    """Differential attention: each query attends twice, once per half of the values.

    Four vectors learn how much of the second result is subtracted.
    """
    runs = kit.heads(c)
    if int(runs.keys) % 2:
        raise c.refuse(f"key and value heads come in pairs, but there are {int(runs.keys)}")
    return nn.Attention(
        nn.Heads(2 * runs.queries, runs.keys, runs.size),
        **kit.attention(c, runs, bias=c.attention_bias).children,
        **{f"lambda_{name}": nn.Parameter((runs.size,)) for name in ("q1", "k1", "q2", "k2")},
    )
