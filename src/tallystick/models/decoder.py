"""A decoder: token embedding, blocks, a final norm, and a head that may be the embedding itself.

    decoder = Decoder.of("gpt2", n_layer=6)                 # a preset or a Hugging Face config, with random weights
    decoder = load_pretrained("path/to/gpt2")                # with trained ones (models/checkpoint.py)
    logits = decoder(tokens)                                # (B, T) -> (B, T, V)

In the comments on shapes: B sequences of T tokens, d the width of the model, V rows of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tallystick.errors import BadInput
from tallystick.models.attention import sight
from tallystick.models.block import Block
from tallystick.models.cache import Cache
from tallystick.models.config import DecoderConfig
from tallystick.models.linear import Linear
from tallystick.models.loss import linear_cross_entropy
from tallystick.models.mlp import Experts
from tallystick.models.norm import RMSNorm, norm
from tallystick.models.rotary import check_rope, rotation
from tallystick.models.tied_gradient import looked_up, one_gradient

if TYPE_CHECKING:
    from tallystick.core.ledger import Ledger


class Decoder(nn.Module):
    """A language model of any of the families, as its config says.

    Where the config ties the head, it and the embedding hold one Parameter, and hold it after whatever replaces
    parameters: moving off the meta device, another dtype, ``load_state_dict(assign=True)``.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        c = self.config = config
        if c.rope is not None:
            check_rope(c, c.rope)
        self.embedding = nn.Embedding(c.vocab_size, c.width)
        self.positions = nn.Embedding(c.context, c.width) if c.rope is None else None
        self.embedding_norm = norm(c) if c.embedding_norm else None
        self.dropout = nn.Dropout(c.embedding_dropout)
        self.layers = nn.ModuleList(Block(c, layer) for layer in range(c.layers))
        self.norm = norm(c) if c.final_norm else None
        self.head = Linear(c.width, c.vocab_size, bias=False)
        self.recompute = False  # whether training keeps each layer's input alone, and computes the rest again
        self.tie()
        self.reset_parameters()
        self.register_load_state_dict_post_hook(_tie_again)

    @classmethod
    def of(cls, source: Any, **settings: Any) -> Decoder:
        """A decoder with random weights.

        Args:
            source: a preset's name, a Hugging Face config as a dictionary, or a path to one.
            **settings: config keys to set over it.

        Raises:
            BadInput: for a model type that is no decoder of ours, and values that contradict each other.
        """
        from tallystick.models.families import config_of

        return cls(config_of(source, **settings))

    def tie(self) -> None:
        """Give the head the embedding's Parameter, where the config says so."""
        if self.config.tied:
            self.head.weight = self.embedding.weight

    # Under these names whoever knows transformers' models finds embedding and head, and learns what is meant to be one.

    def get_input_embeddings(self) -> nn.Embedding:
        """The token embedding."""
        return self.embedding

    def get_output_embeddings(self) -> nn.Linear:
        """The head."""
        return self.head

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """The name of the tensor that the config ties, and that of the one that it is."""
        return {"head.weight": "embedding.weight"} if self.config.tied else {}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Decoder:
        super()._apply(fn, recurse)  # replaces the Parameters of each module in turn, knowing nothing of the others
        self.tie()
        return self

    def reset_parameters(self) -> None:
        """Draw all weights anew; one that two modules hold is drawn once, as the embedding's.

        Normal with the config's deviation; smaller by 1/√(2·layers) where a sublayer adds to the residual stream
        (Radford et al. 2019, section 2.3), unless it goes by the inputs. Biases are zero.
        """
        std = self.config.init_std
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear) and module is not self.head:
                scale = module.in_features**-0.5 if std is None else std
                nn.init.normal_(module.weight, std=scale * self._damping(name))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, Experts):
                for key, stacked in module.named_parameters(recurse=False):
                    scale = stacked.shape[-1] ** -0.5 if std is None else std
                    nn.init.normal_(stacked, std=scale * self._damping(key))
            elif isinstance(module, nn.LayerNorm | RMSNorm):
                module.reset_parameters()
        if not self.config.tied:
            nn.init.normal_(self.head.weight, std=self.config.width**-0.5 if std is None else std)
        for table in (self.embedding, self.positions):
            if table is not None:
                nn.init.normal_(table.weight, std=1.0 if std is None else std)

    def _damping(self, name: str) -> float:
        adds = name.endswith(("o_proj", "down_proj"))
        return 1 / math.sqrt(2 * self.config.layers) if adds and self.config.init_std is not None else 1.0

    def forward(
        self,
        tokens: Tensor,
        targets: Tensor | None = None,
        *,
        cache: Cache | None = None,
        padding: Tensor | None = None,
        last: bool = False,
        **loss: Any,
    ) -> Tensor:
        """The logits of the token after each: (B, T) -> (B, T, V), or (B, 1, V) with `last`; or the mean loss.

        Args:
            tokens: ids, (B, T).
            targets: the ids that should come after each, (B, T): asks for their mean loss, which never holds all logits.
            cache: what was read before; it takes these tokens in.
            padding: (B,), how many tokens at the left of each sequence, from its first on, stand for nothing.
            last: whether only the last token's logits are wanted.
            **loss: what else the loss is made of, as in `loss.Options`.

        Raises:
            BadInput: for targets where something took the head's place.
        """
        if targets is None:
            x = self.hidden(tokens, cache=cache, padding=padding)
            return self.logits(x[:, -1:] if last else x)
        if not isinstance(self.head, nn.Linear):  # an adapter around it, which its weight knows nothing of
            raise BadInput(
                f"the head is a {type(self.head).__module__}.{type(self.head).__name__}, and the loss is made from the"
                " weight of a Linear alone: call the decoder without targets, and take the loss of its logits",
                code="unsupported",
            )
        c, embedded, matrix = self.config, None, self.head.weight
        if one_gradient(self.embedding, self.head):
            embedded, matrix = looked_up(matrix, tokens)
        x = self.hidden(tokens, cache=cache, padding=padding, embedded=embedded)
        return linear_cross_entropy(x, matrix, targets, scale=c.logit_scale, cap=c.logit_cap, **loss)

    def hidden(
        self,
        tokens: Tensor,
        *,
        cache: Cache | None = None,
        padding: Tensor | None = None,
        embedded: Tensor | None = None,
    ) -> Tensor:
        """What the head reads: (B, T) -> (B, T, d).

        Args:
            tokens: ids, (B, T).
            cache: what was read before; it takes these tokens in.
            padding: (B,), how many tokens at the left of each sequence stand for nothing.
            embedded: (B, T, d), what `embedding` gives for the tokens, where it was looked up already.
        """
        c, count = self.config, tokens.shape[1]
        start = cache.read if cache else 0
        here = start + torch.arange(count, device=tokens.device)  # (T,)
        positions = here[None] if padding is None else (here - padding[:, None]).clamp(min=0)  # (B or 1, T)
        x = self.embedding(tokens) if embedded is None else embedded
        if c.embedding_scale != 1:  # rounded as Gemma rounds it
            x = x * torch.tensor(c.embedding_scale, dtype=x.dtype, device=x.device)
        if self.positions is not None:
            x = x + self.positions(positions)
        x = self.dropout(x)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        turn = None if c.rope is None else rotation(c, c.rope, positions)
        sees = {}
        for layer in range(c.layers):
            window = c.window(layer)
            if window not in sees:
                seen = cache.layers[layer].positions(start, count).to(here.device) if cache else here
                sees[window] = sight(here, seen, window, padding, gaps=cache.gaps if cache else False)
        for layer, block in enumerate(self.layers):
            kept = cache.layers[layer] if cache else None
            if self.recompute and torch.is_grad_enabled():
                x = checkpoint(block, x, turn, sees[c.window(layer)], use_reentrant=False)
            else:
                x = block(x, turn, sees[c.window(layer)], kept, start)
        if cache:
            cache.read += count
        return x if self.norm is None else self.norm(x)

    def logits(self, x: Tensor) -> Tensor:
        """(…, d) -> (…, V)."""
        c = self.config
        logits = self.head(x)
        if c.logit_scale != 1:
            logits = logits * c.logit_scale
        return logits if c.logit_cap is None else torch.tanh(logits / c.logit_cap) * c.logit_cap

    def cache(self, batch: int, length: int) -> Cache:
        """An empty cache for sequences of up to `length` tokens."""
        weight = self.embedding.weight
        return Cache(self.config, batch, length, dtype=weight.dtype, device=weight.device)

    def ledger(self) -> Ledger:
        """Every parameter, as `tallystick.count` gives it."""
        from tallystick.sources.torch_module.module import ledger_from_module

        return ledger_from_module(self)


def _tie_again(decoder: Decoder, keys: object) -> None:
    """After `load_state_dict`, which assigns to each name in turn."""
    decoder.tie()
