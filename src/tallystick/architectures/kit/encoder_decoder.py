"""BART-style encoder-decoder variants: an encoder added to the decoder, and their heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tallystick.architectures.kit.variants import INSTEAD, bare, product, two_products, under
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, ModelVariant

ALIASES = {"num_attention_heads": "encoder_attention_heads", "num_hidden_layers": "encoder_layers"}
IRREGULAR = "the encoder processes its own input tokens"
SHARED = "model.shared.weight"


def whole(
    layers: int,
    inner: int,
    heads: int,
    *,
    classifies: bool = True,
    attention: Callable[[Config], nn.Attention] | None = None,
    prompts: Callable[[Config], Mapping[str, nn.Node]] | None = None,
    count: int = 2,
    more: Mapping[str, Any] | None = None,
) -> dict[str, ModelVariant]:
    """Return the variants of a type whose causal language model is `beside_encoder`.

    Args:
        layers: the default of `encoder_layers`.
        inner: the default of `encoder_ffn_dim`.
        heads: the default of `encoder_attention_heads`.
        classifies: whether there are variants that classify sequences and spans.
        attention: builds the encoder's attention, if it differs from the decoder's.
        prompts: builds the decoder's learned prompts.
        count: the default of `num_labels`.
        more: further config keys of the variants, with their defaults.
    """
    keys = {"encoder_layers": layers, "encoder_ffn_dim": inner, "encoder_attention_heads": heads, **(more or {})}

    def variant(
        words: str, make: Callable[[Config, nn.Model], nn.Model], labels: Mapping[str, int] | None = None
    ) -> ModelVariant:
        def made(c: Config, model: nn.Model) -> nn.Model:
            return make(c, _with_encoder(c, model, attention, prompts(c) if prompts else {}))

        return ModelVariant(made, f"an encoder in addition to the decoder{words}", {**keys, **(labels or {})}, ALIASES)

    classes = {
        "Model": variant(", and no LM head", lambda c, model: bare(model, IRREGULAR)),
        "ForConditionalGeneration": variant("", _with_lm_head),
    }
    if classifies:
        classes |= {
            "ForSequenceClassification": variant(
                f", and `classification_head` {INSTEAD}", _of_sequences, {"num_labels": count}
            ),
            "ForQuestionAnswering": variant(f", and `qa_outputs` {INSTEAD}", _of_spans),
        }
    return classes


def _with_encoder(
    c: Config, model: nn.Model, attention: Callable[[Config], nn.Attention] | None, prompts: Mapping[str, nn.Node]
) -> nn.Model:
    """The model with an encoder: the decoder's layers without cross-attention, other MLP sizes."""
    c.require_divisible("d_model", by="encoder_attention_heads")
    body = _group(model.children["model"])
    decoder = _group(body.children["decoder"])
    stack = decoder.children["layers"]
    assert isinstance(stack, nn.ModuleList)  # noqa: S101  # `beside_encoder` builds it so
    ((depth, block),) = stack.runs
    block = _group(block)
    attends = block.children["self_attn"]
    assert isinstance(attends, nn.Attention)  # noqa: S101
    silent = attends.replace(heads=None)  # no runtime info: the lengths of encoder and decoder sequences are unknown
    d, inner = c.d_model, c.encoder_ffn_dim
    own: dict[str, nn.Node] = {
        "self_attn": attention(c) if attention else silent,
        "fc1": nn.MLP(**nn.Linear(d, inner).children),
        "fc2": nn.MLP(**nn.Linear(inner, d).children),
    }
    kept = {name: node for name, node in block.children.items() if not name.startswith("encoder_attn")}
    layers = nn.Repeat(c.encoder_layers, nn.Module(**{**kept, **own}))
    encoder = nn.Module(**{**decoder.children, "layers": layers})
    listens = nn.Repeat(depth, block.with_children(self_attn=silent))
    whole = {
        "shared": nn.Embedding(c.vocab_size, d),
        "encoder": encoder,
        "decoder": decoder.with_children(layers=listens, **prompts),
    }
    tables = [f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
    ties = dict.fromkeys(tables, SHARED) if c.tie_word_embeddings else {}
    return model.with_children(model=nn.Module(**whole)).replace(ties=ties)


def _with_lm_head(c: Config, model: nn.Model) -> nn.Model:
    built = under(
        model, IRREGULAR, final_logits_bias=nn.Buffer(1, c.vocab_size), lm_head=nn.Head(c.d_model, c.vocab_size)
    )
    if c.tie_word_embeddings:
        return built.replace(ties={**built.ties, "lm_head.weight": SHARED})
    return built


def _of_sequences(c: Config, model: nn.Model) -> nn.Model:
    return under(model, IRREGULAR, classification_head=two_products(c.d_model, c.d_model, c.num_labels))


def _of_spans(c: Config, model: nn.Model) -> nn.Model:
    """Start and end of the answer: two outputs, whatever `num_labels` is."""
    return under(model, IRREGULAR, qa_outputs=product(c.d_model, 2))


def _group(node: nn.Node) -> nn.Module:
    assert isinstance(node, nn.Module)  # noqa: S101  # `beside_encoder` builds it so
    return node
