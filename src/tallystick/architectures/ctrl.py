"""CTRL: a GPT-2-like decoder with control codes.

Source: Keskar et al. 2019, "CTRL: A Conditional Transformer Language Model for Controllable
Generation".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import BARE, INSTEAD, product, variant
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture

CLASSIFIER = {
    "ForSequenceClassification": variant(
        f"`classifier` {INSTEAD}", lambda c: {"classifier": product(c.n_embd, c.num_labels, bias=False)}
    )
}


@architecture(
    "ctrl",
    "CTRLLMHeadModel",
    variants=BARE | CLASSIFIER,
    aliases={"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    vocab_size=246534,
    n_embd=1280,
    dff=8192,
    n_layer=48,
    n_head=16,
    tie_word_embeddings=True,
)
def ctrl(c: Config) -> nn.Model:
    d = c.n_embd
    block = nn.Module(
        multi_head_attention=nn.Attention(
            nn.Heads(c.n_head, c.n_head, kit.rounded(d, c.n_head), rotary=0),
            Wq=nn.Linear(d, d),
            Wk=nn.Linear(d, d),
            Wv=nn.Linear(d, d),
            dense=nn.Linear(d, d),
        ),
        ffn=nn.MLP(**{"0": nn.Linear(d, c.dff), "2": nn.Linear(c.dff, d)}),
        layernorm1=nn.LayerNorm(d),
        layernorm2=nn.LayerNorm(d),
    )
    return nn.Model(
        transformer=nn.Module(
            w=nn.Embedding(c.vocab_size, d), h=nn.Repeat(c.n_layer, block), layernorm=nn.LayerNorm(d)
        ),
        lm_head=nn.Head(d, c.vocab_size, bias=True),
        tie=("lm_head.weight", "transformer.w.weight") if c.tie_word_embeddings else None,
    )
