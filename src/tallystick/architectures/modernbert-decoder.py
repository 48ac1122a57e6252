"""ModernBERT as a decoder (Weller et al. 2025, "Seq vs Seq: An Open Suite of Paired Encoders and Decoders")."""

from tallystick.anatomy import Windows
from tallystick.architectures._decoder import attention, windows_of
from tallystick.architectures._siblings import BARE, INSTEAD, product, sibling
from tallystick.blueprint import (
    MLP,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    LayerNorm,
    Linear,
    Model,
    Node,
    Stack,
    architecture,
    natural,
)


def _classifier(c: Config) -> dict[str, Node]:
    d, bias = c.hidden_size, c.classifier_bias
    head = Group(dense=product(d, d, bias=bias), norm=LayerNorm(d, bias=c.norm_bias))
    return {"head": head, "classifier": product(d, c.num_labels, bias=bias)}


CLASSIFIER = {"ForSequenceClassification": sibling(f"`head` and `classifier` {INSTEAD}", _classifier, once=True)}


@architecture(
    "modernbert-decoder",
    "ModernBertDecoderForCausalLM",
    siblings=BARE | CLASSIFIER,
    running={"local_attention": natural(128, nullable=True), "global_attn_every_n_layers": 3, "layer_types": None},
    vocab_size=50368,
    hidden_size=768,
    intermediate_size=1152,
    num_hidden_layers=22,
    num_attention_heads=12,
    norm_bias=False,
    attention_bias=False,
    mlp_bias=False,
    classifier_bias=False,
    decoder_bias=True,
    tie_word_embeddings=True,
)
def modernbert_decoder(c: Config) -> Model:
    d, norm = c.hidden_size, LayerNorm(c.hidden_size, bias=c.norm_bias)
    first = _block(c, None)  # the embedding's norm is before it
    return Model(
        model=Group(
            embeddings=Group(tok_embeddings=Embedding(c.vocab_size, d), norm=norm),
            layers=Stack((1, first), (c.num_hidden_layers - 1, _block(c, norm))),
            final_norm=norm,
        ),
        lm_head=Group(dense=Linear(d, d, bias=c.classifier_bias), norm=norm),
        decoder=Head(d, c.vocab_size, bias=c.decoder_bias),
        tie=("decoder.weight", "model.embeddings.tok_embeddings.weight") if c.tie_word_embeddings else None,
    )


def _block(c: Config, norm: Group | None) -> Group:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, bias, count = c.hidden_size, c.intermediate_size, c.mlp_bias, c.num_attention_heads
    return Group(
        attn_norm=norm,
        attn=attention(c, Heads(count, count, d / count, windows=_windows(c)), bias=c.attention_bias, output="Wo"),
        mlp_norm=LayerNorm(d, bias=c.norm_bias),
        mlp=MLP(Wi=Linear(d, 2 * inner, bias=bias), Wo=Linear(inner, d, bias=bias)),  # how both are dropped is not told
    )


def _windows(c: Config) -> Windows:
    """Every third layer sees all, the first one too; the others see half of `local_attention`, which looks both ways."""
    pattern = ((None, 1), (c.local_attention, int(c.global_attn_every_n_layers) - 1))
    return [(window and int(window) // 2, run) for window, run in windows_of(c, pattern, "local_attention")]
