"""The decoder: token embedding, blocks, final norm and an LM head that may be tied.

    decoder = Decoder.of("gpt2", n_layer=6)   # a preset or a Hugging Face config, random weights
    decoder = load_pretrained("path/to/gpt2")  # trained weights (models/checkpoints/loading.py)
    logits = decoder(tokens)                  # (B, T) -> (B, T, V)

Letters in shapes: B sequences of T tokens, d the width of the model, V rows of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tallystick.arguments import named
from tallystick.errors import BadInput
from tallystick.models.cache import Cache
from tallystick.models.config import DecoderConfig
from tallystick.models.layers.attention import sight
from tallystick.models.layers.block import Block
from tallystick.models.layers.linear import Linear
from tallystick.models.layers.mlp import Experts
from tallystick.models.layers.norm import RMSNorm, norm
from tallystick.models.layers.rotary import check_rope, rotation
from tallystick.models.loss import linear_cross_entropy
from tallystick.models.tied_gradient import looked_up, one_gradient

if TYPE_CHECKING:
    from tallystick.core.ledger import Ledger


class Decoder(nn.Module):
    """A decoder language model of any supported family, built from a `DecoderConfig`.

    If the config ties the LM head, head and embedding share one Parameter. They still share it
    after anything that replaces Parameters: moving off the meta device, a change of dtype,
    ``load_state_dict(assign=True)``.

    Args:
        config: sizes and options; `Decoder.of` makes one from a model type and its own keys.

    >>> model = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> model.head.weight is model.embedding.weight
    True
    >>> sum(p.numel() for p in model.parameters())  # 50 * 8 + 6 * 8 + (12 * 8 * 8 + 13 * 8) + 2 * 8
    1336
    """

    config: DecoderConfig
    embedding: nn.Embedding  # weight (V, d)
    positions: nn.Embedding | None  # weight (context, d); None with rotary positions
    embedding_norm: nn.Module | None
    dropout: nn.Dropout
    layers: nn.ModuleList
    norm: nn.Module | None
    head: Linear  # weight (V, d), the embedding's if tied

    @named
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
        self.recompute = False  # activation checkpointing: keep only each layer's input in training
        self.tie()
        self.reset_parameters()
        self.register_load_state_dict_post_hook(_tie_again)

    @classmethod
    @named
    def of(cls, source: Any, **settings: Any) -> Decoder:
        """Return a decoder with random weights.

        Args:
            source: a preset's name, a Hugging Face config as a dictionary, or a path to one.
            **settings: config keys that override the source's values.

        Returns:
            The decoder, on the default device.

        Raises:
            BadInput: if the model type is not supported, or values contradict each other.
        """
        from tallystick.models.families import config_of

        return cls(config_of(source, **settings))

    def tie(self) -> None:
        """Point the head's weight to the embedding's Parameter, if the config ties them."""
        if self.config.tied:
            self.head.weight = self.embedding.weight

    # The method names of transformers' models, by which libraries find embedding, head and ties.

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the token embedding."""
        return self.embedding

    def get_output_embeddings(self) -> nn.Linear:
        """Return the LM head."""
        return self.head

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """Map each tied weight's name to the name of the weight that it shares.

        Args:
            all_submodels: as in transformers; it changes nothing here.
        """
        return {"head.weight": "embedding.weight"} if self.config.tied else {}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Decoder:
        super()._apply(fn, recurse)  # replaces the Parameters of each module in turn, which breaks ties
        self.tie()
        return self

    def reset_parameters(self) -> None:
        """Initialise all weights at random again; a tied weight once, as the embedding.

        Weights are normal with the config's `init_std`. Projections into the residual stream are
        smaller by 1/√(2·layers) (Radford et al. 2019, section 2.3), unless `init_std` is None and
        each deviation follows from the layer's inputs. Biases are zero.
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
        """Return the next-token logits, or the mean loss if there are targets.

        Args:
            tokens: ids, (B, T).
            targets: next ids, (B, T). With them the result is the mean loss; the logits are
                computed in chunks and never held whole.
            cache: keys and values of earlier tokens; these tokens are appended.
            padding: (B,), the number of padding tokens at the left of each sequence.
            last: whether to return the logits of the last token only.
            **loss: further terms of the loss, as in `loss.Options`.

        Returns:
            Logits (B, T, V), or (B, 1, V) with `last`; a scalar if there are targets.

        Raises:
            BadInput: if there are targets and the head is not an ``nn.Linear``.
        """
        if targets is None:
            x = self.hidden(tokens, cache=cache, padding=padding)
            return self.logits(x[:, -1:] if last else x)
        if not isinstance(
            self.head, nn.Linear
        ):  # an adapter around the head: its weight alone would ignore the adapter
            raise BadInput(
                f"the head is a {type(self.head).__module__}.{type(self.head).__name__}, but the loss"
                " needs an nn.Linear: call the decoder without targets, and compute the loss from its logits",
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
        """Return the input of the LM head: (B, T) -> (B, T, d).

        Args:
            tokens: ids, (B, T).
            cache: keys and values of earlier tokens; these tokens are appended.
            padding: (B,), the number of padding tokens at the left of each sequence.
            embedded: (B, T, d), the embedding's output for the tokens, if already computed.
        """
        c, count = self.config, tokens.shape[1]
        start = cache.read if cache else 0
        here = start + torch.arange(count, device=tokens.device)  # (T,)
        positions = here[None] if padding is None else (here - padding[:, None]).clamp(min=0)  # (B or 1, T)
        x = self.embedding(tokens) if embedded is None else embedded
        if c.embedding_scale != 1:  # in the embedding's dtype, as Gemma rounds it
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
        """Return the logits of hidden states: (…, d) -> (…, V).

        Args:
            x: (…, d), as `hidden` returns them.
        """
        c = self.config
        logits = self.head(x)
        if c.logit_scale != 1:
            logits = logits * c.logit_scale
        return logits if c.logit_cap is None else torch.tanh(logits / c.logit_cap) * c.logit_cap

    def cache(self, batch: int, length: int) -> Cache:
        """Return an empty KV cache in the decoder's dtype and on its device.

        Args:
            batch: number of sequences.
            length: most tokens per sequence.
        """
        weight = self.embedding.weight
        return Cache(self.config, batch, length, dtype=weight.dtype, device=weight.device)

    def ledger(self) -> Ledger:
        """Return the ledger of all parameters, as `tallystick.count` reads it."""
        from tallystick.sources.torch_module.module import ledger_from_module

        return ledger_from_module(self)


def _tie_again(decoder: Decoder, keys: object) -> None:
    """Tie again after `load_state_dict`, which assigns each name separately."""
    decoder.tie()
