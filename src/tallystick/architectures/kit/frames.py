"""Blocks and model frames: token embedding, layer stack, final norm and LM head."""

from collections.abc import Container

from tallystick.architectures.kit.attention import in_runs
from tallystick.core import nodes as nn
from tallystick.core.config import MOST_LISTED
from tallystick.core.registry import Config


def pre_norm(self_attn: nn.Attention, mlp: nn.Module, norm: nn.Module) -> nn.Module:
    """Return Llama's pre-norm block: attention and MLP, each after a norm, with residuals."""
    return nn.Module(self_attn=self_attn, mlp=mlp, input_layernorm=norm, post_attention_layernorm=norm)


def listable(c: Config) -> int:
    """Return the number of layers as an int; refuse more than MOST_LISTED."""
    if c.num_hidden_layers > MOST_LISTED:
        raise c.refuse(
            f"num_hidden_layers is {int(c.num_hidden_layers)}: with several kinds of layers at most"
            f" {MOST_LISTED:,} are counted",
            code="too-large",
        )
    return int(c.num_hidden_layers)


def two_kinds(c: Config, chosen: Container[int], these: nn.Module, others: nn.Module) -> nn.ModuleList:
    """Return a stack in which layers numbered in `chosen` are `these`, all others `others`."""
    runs = in_runs((layer in chosen for layer in range(listable(c))), these, others)
    if len(runs) == 1:
        return nn.Repeat(c.num_hidden_layers, runs[0][0])
    return nn.ModuleList(*((count, block) for block, count in runs))


def decoder(
    c: Config,
    layers: nn.Module | nn.ModuleList,
    norm: nn.Module | None = None,
    *,
    capped: bool = False,
    head_bias: bool = False,
    **extras: nn.Node,
) -> nn.Model:
    """Return Llama's frame: token embedding, layers, final norm, and an LM head that can be tied.

    Args:
        c: the config.
        layers: one block, repeated for all layers, or the whole stack.
        norm: the final norm; None: an RMSNorm.
        capped: whether a tanh bounds the logits.
        head_bias: whether the LM head has a bias.
        extras: further children of ``model``.
    """
    d = c.hidden_size
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            layers=layers if isinstance(layers, nn.ModuleList) else nn.Repeat(c.num_hidden_layers, layers),
            norm=norm or nn.RMSNorm(d),
            **extras,
        ),
        lm_head=nn.Head(d, c.vocab_size, bias=head_bias, capped=capped),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def frame(
    c: Config,
    layers: nn.ModuleList,
    *,
    under: str = "model",
    embedding: str = "embed_tokens",
    norm: str = "final_layernorm",
    tied: bool | None = None,
) -> nn.Model:
    """Return a Llama-like frame under other names.

    Args:
        c: the config.
        layers: the stack of layers.
        under: the name of the body.
        embedding: the name of the token embedding.
        norm: the name of the final norm.
        tied: whether the LM head is tied; None: as `tie_word_embeddings` says.
    """
    d = c.hidden_size
    body: dict[str, nn.Node] = {embedding: nn.Embedding(c.vocab_size, d), "layers": layers, norm: nn.RMSNorm(d)}
    tie = ("lm_head.weight", f"{under}.{embedding}.weight")
    return nn.Model(
        **{under: nn.Module(**body)},
        lm_head=nn.Head(d, c.vocab_size),
        tie=tie if (c.tie_word_embeddings if tied is None else tied) else None,
    )


def transformer(
    c: Config,
    d: int,
    block: nn.Module,
    *,
    depth: str,
    positions: str = "",
    dropout: float = 0.0,
    head_bias: bool = False,
) -> nn.Model:
    """Return GPT-2's frame: embeddings, blocks, final norm, and an LM head that can be tied.

    Args:
        c: the config.
        d: elements of a token.
        block: one layer.
        depth: the config key of the number of layers.
        positions: the config key of the number of learned positions; "": none are learned.
        dropout: the probability of dropout after the embeddings.
        head_bias: whether the LM head has a bias.
    """
    return nn.Model(
        transformer=nn.Module(
            wte=nn.Embedding(c.vocab_size, d),
            wpe=nn.PositionEmbedding(getattr(c, positions), d) if positions else None,
            drop=nn.Dropout(d, dropout),
            h=nn.Repeat(getattr(c, depth), block),
            ln_f=nn.LayerNorm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size, bias=head_bias),
        tie=("lm_head.weight", "transformer.wte.weight") if c.tie_word_embeddings else None,
    )


def refuse_keys(c: Config, what: str, *keys: str) -> None:
    """Refuse a dictionary without a model_type if one of `keys` shows that it is another class."""
    for key in keys:
        if c.states(key):
            raise c.refuse(f"{key} is not a key of {what}: this describes a model that tallystick does not know")
