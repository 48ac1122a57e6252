"""CTRL (Keskar et al. 2019, "CTRL: A Conditional Transformer Language Model for Controllable Generation")."""

from tallystick.architectures._decoder import rounded
from tallystick.architectures._siblings import BARE, INSTEAD, product, sibling
from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Repeat,
    architecture,
)

CLASSIFIER = {
    "ForSequenceClassification": sibling(
        f"`classifier` {INSTEAD}", lambda c: {"classifier": product(c.n_embd, c.num_labels, bias=False)}
    )
}


@architecture(
    "ctrl",
    "CTRLLMHeadModel",
    siblings=BARE | CLASSIFIER,
    aliases={"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"},
    vocab_size=246534,
    n_embd=1280,
    dff=8192,
    n_layer=48,
    n_head=16,
    tie_word_embeddings=True,
)
def ctrl(c: Config) -> Model:
    d = c.n_embd
    block = Group(
        multi_head_attention=Attention(
            Heads(c.n_head, c.n_head, rounded(d, c.n_head), rotary=0),
            Wq=Linear(d, d),
            Wk=Linear(d, d),
            Wv=Linear(d, d),
            dense=Linear(d, d),
        ),
        ffn=MLP(**{"0": Linear(d, c.dff), "2": Linear(c.dff, d)}),
        layernorm1=LayerNorm(d),
        layernorm2=LayerNorm(d),
    )
    return Model(
        transformer=Group(w=Embedding(c.vocab_size, d), h=Repeat(c.n_layer, block), layernorm=LayerNorm(d)),
        lm_head=Head(d, c.vocab_size, bias=True),
        tie=("lm_head.weight", "transformer.w.weight") if c.tie_word_embeddings else None,
    )
