"""XLM: each kind of module has its own list; optional adaptive softmax.

Source: Lample and Conneau 2019, "Cross-lingual Language Model Pretraining".
"""

from itertools import pairwise

from tallystick.architectures.kit.variants import BARE, INSTEAD, SUMMARY, labels_of_each, spans, summary, variant
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture
from tallystick.errors import shown

CLASSES = {
    **BARE,
    "ForSequenceClassification": variant(
        f"`sequence_summary` {INSTEAD}",
        lambda c: {"sequence_summary": summary(c, c.emb_dim)},
        once=True,
        keys=SUMMARY | {"summary_proj_to_labels": True},
    ),
    "ForTokenClassification": variant(f"`classifier` {INSTEAD}", lambda c: labels_of_each(c, c.emb_dim)),
    "ForQuestionAnsweringSimple": variant(f"`qa_outputs` {INSTEAD}", lambda c: spans(c, c.emb_dim)),
}


@architecture(
    "xlm",
    "XLMWithLMHeadModel",
    variants=CLASSES,
    aliases={
        "hidden_size": "emb_dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
        "n_words": "vocab_size",
    },
    running={"causal": False, "is_encoder": True},
    vocab_size=30145,
    emb_dim=2048,
    n_layers=12,
    n_heads=16,
    max_position_embeddings=512,
    n_langs=1,
    use_lang_emb=True,
    asm=False,
    asm_cutoffs=(),
    asm_div_value=0.0,
    tie_word_embeddings=True,
)
def xlm(c: Config) -> nn.Model:
    c.require_divisible("emb_dim", by="n_heads")
    if not c.is_encoder:
        raise c.refuse("is_encoder is false, which this type does not support")
    d, layers = c.emb_dim, c.n_layers
    attends = nn.Attention(
        nn.Heads(c.n_heads, c.n_heads, d / c.n_heads, rotary=0, causal=c.causal),
        **{name: nn.Linear(d, d) for name in ("q_lin", "k_lin", "v_lin", "out_lin")},
    )
    norm = nn.LayerNorm(d)
    return nn.Model(
        transformer=nn.Module(
            position_embeddings=nn.PositionEmbedding(c.max_position_embeddings, d),
            embeddings=nn.Embedding(c.vocab_size, d),
            lang_embeddings=nn.Embedding(c.n_langs, d) if c.use_lang_emb and c.n_langs > 1 else None,
            layer_norm_emb=norm,
            attentions=nn.Repeat(layers, attends),
            layer_norm1=nn.Repeat(layers, norm),
            ffns=nn.Repeat(layers, nn.MLP(lin1=nn.Linear(d, 4 * d), lin2=nn.Linear(4 * d, d))),
            layer_norm2=nn.Repeat(layers, norm),
        ),
        pred_layer=nn.Module(proj=_adaptive(c) if c.asm and c.headed else nn.Head(d, c.vocab_size, bias=True)),
        tie=("pred_layer.proj.weight", "transformer.embeddings.weight") if c.tie_word_embeddings else None,
    )


def _adaptive(c: Config) -> nn.Module:
    """An adaptive softmax: a head for frequent tokens, low-rank tails for clusters of others."""
    d, ends = c.emb_dim, (*c.asm_cutoffs, c.vocab_size)
    if len(ends) == 1 or any(first >= then for first, then in pairwise(ends)):
        raise c.refuse("asm = true needs asm_cutoffs, a list of numbers that grow and stay below vocab_size")
    if c.asm_div_value < 1:
        raise c.refuse(f"asm = true needs asm_div_value, a number of 1 or more, not {shown(c.asm_div_value)}")
    clusters = []
    for number, (first, then) in enumerate(pairwise(ends), 1):
        waist = int(int(d) // c.asm_div_value**number)
        both = {"0": nn.Parameter((waist, d), "head"), "1": nn.Parameter((then - first, waist), "head")}
        clusters.append((1, nn.Module(**{name: nn.Module(weight=tensor) for name, tensor in both.items()})))
    return nn.Module(
        # Unused, but transformers ties it.
        weight=nn.Parameter((c.vocab_size, d), "head") if c.tie_word_embeddings else None,
        head=nn.Head(d, ends[0] + len(clusters), bias=True),
        tail=nn.ModuleList(*clusters),
    )
