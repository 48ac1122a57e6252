"""A block, the stack of them, and what is around it: embedding, final norm and head."""

from collections.abc import Container

from tallystick.architectures.kit.attention import in_runs
from tallystick.core import nodes as nn
from tallystick.core.config import MOST_LISTED
from tallystick.core.registry import Config


def pre_norm(self_attn: nn.Attention, mlp: nn.Module, norm: nn.Module) -> nn.Module:
    """Llama's block: attention, then MLP, each behind a norm, and what it gives added to what went in."""
    return nn.Module(self_attn=self_attn, mlp=mlp, input_layernorm=norm, post_attention_layernorm=norm)


def listable(c: Config) -> int:
    """How many layers there are, where each is looked at on its own."""
    if c.num_hidden_layers > MOST_LISTED:
        raise c.refuse(
            f"num_hidden_layers is {int(c.num_hidden_layers)}: layers of several kinds are counted up to {MOST_LISTED:,}",
            code="too-large",
        )
    return int(c.num_hidden_layers)


def two_kinds(c: Config, chosen: Container[int], these: nn.Module, others: nn.Module) -> nn.ModuleList:
    """A stack whose layers are of one kind where their number is among the chosen, and of another elsewhere."""
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
    **beside: nn.Node,
) -> nn.Model:
    """Token embedding, blocks, final norm, what is `beside` them, and a head that can be tied to the embedding."""
    d = c.hidden_size
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            layers=layers if isinstance(layers, nn.ModuleList) else nn.Repeat(c.num_hidden_layers, layers),
            norm=norm or nn.RMSNorm(d),
            **beside,
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
    """Token embedding, blocks, final norm and head, under these names; `tied`: None is what the config says."""
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
    """GPT-2's frame: token embedding, learned positions, blocks, final norm, and a head that can be tied.

    `depth` and `positions` are the keys that say how many layers and positions there are; "": none are learned.
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
    """Refuse a dictionary without a model_type whose keys give away that it describes another class."""
    for key in keys:
        if c.states(key):
            raise c.refuse(f"{key} is no key of {what}: this describes a model that tallystick does not know")
