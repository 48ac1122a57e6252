"""ModernBERT as a decoder.

Source: Weller et al. 2025, "Seq vs Seq: An Open Suite of Paired Encoders and Decoders".
"""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import BARE, INSTEAD, product, variant
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


def _classifier(c: Config) -> dict[str, nn.Node]:
    d, bias = c.hidden_size, c.classifier_bias
    head = nn.Module(dense=product(d, d, bias=bias), norm=nn.LayerNorm(d, bias=c.norm_bias))
    return {"head": head, "classifier": product(d, c.num_labels, bias=bias)}


CLASSIFIER = {"ForSequenceClassification": variant(f"`head` and `classifier` {INSTEAD}", _classifier, once=True)}


@architecture(
    "modernbert-decoder",
    "ModernBertDecoderForCausalLM",
    variants=BARE | CLASSIFIER,
    running={"local_attention": nonnegative(128, nullable=True), "global_attn_every_n_layers": 3, "layer_types": None},
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
def modernbert_decoder(c: Config) -> nn.Model:
    d, norm = c.hidden_size, nn.LayerNorm(c.hidden_size, bias=c.norm_bias)
    first = _block(c, None)  # the embedding's norm replaces its first norm
    return nn.Model(
        model=nn.Module(
            embeddings=nn.Module(tok_embeddings=nn.Embedding(c.vocab_size, d), norm=norm),
            layers=nn.ModuleList((1, first), (c.num_hidden_layers - 1, _block(c, norm))),
            final_norm=norm,
        ),
        lm_head=nn.Module(dense=nn.Linear(d, d, bias=c.classifier_bias), norm=norm),
        decoder=nn.Head(d, c.vocab_size, bias=c.decoder_bias),
        tie=("decoder.weight", "model.embeddings.tok_embeddings.weight") if c.tie_word_embeddings else None,
    )


def _block(c: Config, norm: nn.Module | None) -> nn.Module:
    c.require_divisible("hidden_size", by="num_attention_heads")
    d, inner, bias, count = c.hidden_size, c.intermediate_size, c.mlp_bias, c.num_attention_heads
    return nn.Module(
        attn_norm=norm,
        attn=kit.attention(
            c, nn.Heads(count, count, d / count, windows=_windows(c)), bias=c.attention_bias, output="Wo"
        ),
        mlp_norm=nn.LayerNorm(d, bias=c.norm_bias),
        # No runtime info: activations behind the dropout are not modelled.
        mlp=nn.MLP(Wi=nn.Linear(d, 2 * inner, bias=bias), Wo=nn.Linear(inner, d, bias=bias)),
    )


def _windows(c: Config) -> nn.Windows:
    """Full attention in every third layer, starting at layer 0, by default; windows elsewhere.

    `local_attention` counts both directions, so a causal window is half of it.
    """
    pattern = ((None, 1), (c.local_attention, int(c.global_attn_every_n_layers) - 1))
    return [(window and int(window) // 2, run) for window, run in kit.windows_of(c, pattern, "local_attention")]
