"""XLNet: relative positions; query, key and value projections are 3-D tensors.

Source: Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining".
"""

from tallystick.architectures.kit.variants import (
    BARE,
    INSTEAD,
    SUMMARY,
    labels_of_each,
    product,
    spans,
    summary,
    variant,
)
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative

CLASSES = {
    **BARE,
    "ForSequenceClassification": variant(
        f"`sequence_summary` and `logits_proj` {INSTEAD}",
        lambda c: {"sequence_summary": summary(c, c.d_model), "logits_proj": product(c.d_model, c.num_labels)},
        once=True,
        keys=SUMMARY,
    ),
    "ForTokenClassification": variant(f"`classifier` {INSTEAD}", lambda c: labels_of_each(c, c.d_model)),
    "ForQuestionAnsweringSimple": variant(f"`qa_outputs` {INSTEAD}", lambda c: spans(c, c.d_model)),
}


@architecture(
    "xlnet",
    "XLNetLMHeadModel",
    variants=CLASSES,
    aliases={
        "n_token": "vocab_size",
        "hidden_size": "d_model",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    running={"d_head": nonnegative(nullable=True)},
    vocab_size=32000,
    d_model=1024,
    n_layer=24,
    n_head=16,
    d_inner=4096,
    tie_word_embeddings=True,
)
def xlnet(c: Config) -> nn.Model:
    c.require_divisible("d_model", by="n_head")
    d, heads, size = c.d_model, c.n_head, c.d_model / c.n_head
    if c.d_head and c.d_head != size:
        raise c.refuse(f"d_head is {int(c.d_head)}, but d_model divided by the heads is {int(size)}")
    each = {name: nn.Parameter((d, heads, size)) for name in ("q", "k", "v", "o", "r")}  # r projects relative positions
    biases = {name: nn.Parameter((heads, size)) for name in ("r_r_bias", "r_s_bias", "r_w_bias")}
    same_segment = nn.Parameter((2, heads, size), "token_embedding")
    block = nn.Module(
        # No `Heads`: attention reads a memory of hidden states and, in pretraining, two streams.
        rel_attn=nn.Attention(**each, **biases, seg_embed=same_segment, layer_norm=nn.LayerNorm(d)),
        ff=nn.MLP(layer_norm=nn.LayerNorm(d), layer_1=nn.Linear(d, c.d_inner), layer_2=nn.Linear(c.d_inner, d)),
    )
    return nn.Model(
        transformer=nn.Module(
            word_embedding=nn.Embedding(c.vocab_size, d),
            mask_emb=nn.Parameter((1, 1, d), "token_embedding"),
            layer=nn.Repeat(c.n_layer, block),
        ),
        lm_loss=nn.Head(d, c.vocab_size, bias=True),
        tie=("lm_loss.weight", "transformer.word_embedding.weight") if c.tie_word_embeddings else None,
    )
