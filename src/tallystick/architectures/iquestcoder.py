"""IQuest-Coder-V1 (IQuest Lab 2026): Llama with sizes of its own."""

from tallystick.architectures._decoder import SILU
from tallystick.architectures.llama import llama
from tallystick.blueprint import Config, Model, architecture, maybe


@architecture(
    "iquestcoder",
    "LlamaForCausalLM",
    running=SILU,
    vocab_size=76800,
    hidden_size=5120,
    intermediate_size=27648,
    num_hidden_layers=80,
    num_attention_heads=40,
    num_key_value_heads=maybe(8),
    head_dim=maybe(128),
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def iquestcoder(c: Config) -> Model:
    return llama(c)
