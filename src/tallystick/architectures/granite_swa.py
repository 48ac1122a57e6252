"""Granite SWASH (IBM Research 2026): Granite with windows, and a sink for each head."""

from tallystick.architectures._decoder import attention, decoder, gated_mlp, heads, pre_norm, windows_of
from tallystick.blueprint import Attention, Config, Model, RMSNorm, Tensor, architecture, maybe, natural

RUNNING = {"sliding_window": natural(128, nullable=True), "layer_types": None}


@architecture(
    "granite_swa",
    "GraniteSWAForCausalLM",
    running=RUNNING,
    vocab_size=100352,
    hidden_size=2560,
    intermediate_size=8192,
    num_hidden_layers=24,
    num_attention_heads=20,
    num_key_value_heads=maybe(4),
    head_dim=maybe(),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=True,
)
def granite_swa(c: Config) -> Model:
    d = c.hidden_size
    mlp = gated_mlp(d, c.intermediate_size, bias=c.mlp_bias)  # positions differ by layer: what that keeps is not told
    return decoder(c, pre_norm(attends(c), mlp, RMSNorm(d)))


def attends(c: Config) -> Attention:
    """Every fourth layer sees all, the others a window. A sink is one more score, which lets a head attend to nothing."""
    runs = heads(c, windows=windows_of(c, ((None, 1), (c.sliding_window, 3))), sinks=True)
    return attention(c, runs, bias=c.attention_bias, sinks=Tensor((c.num_attention_heads,)))
