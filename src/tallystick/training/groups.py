"""Optimizer groups: every trainable storage exactly once, split by weight decay.

Matrices are decayed; biases, norms and learned positions are not. Token embedding and head are
decayed, as in the GPT papers and nanoGPT, unless `decay_embedding` is False. nanoGPT decays every
tensor with two dimensions or more, so also learned positions: ``decay="nanogpt"`` does so too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from tallystick.arguments import named
from tallystick.errors import BadInput, quoted
from tallystick.live.relation import sharing
from tallystick.sources.roles.from_names import role_of
from tallystick.sources.torch_module.named_parameters import places_of

VOCABULARY = ("token_embedding", "head")
DECAYS = ("roles", "nanogpt")


@dataclass(frozen=True)
class Groups:
    """The trainable parameters of a model, in groups for an optimizer.

    >>> from tallystick.models.teaching import BareBonesLM
    >>> groups = optimizer_groups(BareBonesLM(50, 4, tie_word_embeddings=True), weight_decay=0.1)
    >>> list(groups.vocabulary), list(groups.plain)
    (['embedding.weight'], ['head.bias'])
    """

    decayed: dict[str, nn.Parameter]  # matrices of the layers; with nanoGPT's rule positions too
    vocabulary: dict[str, nn.Parameter]  # token embedding and head
    plain: dict[str, nn.Parameter]  # biases, norms, positions
    weight_decay: float
    decay_embedding: bool
    tied: tuple[str, ...] = ()  # names of the tied matrix
    decay: Literal["roles", "nanogpt"] = "roles"

    def lists(self) -> list[dict[str, Any]]:
        """Return the parameter groups for a `torch.optim` optimizer."""
        decay = self.weight_decay
        pairs = [(self.decayed, decay), (self.vocabulary, decay if self.decay_embedding else 0.0), (self.plain, 0.0)]
        return [{"params": list(group.values()), "weight_decay": rate} for group, rate in pairs if group]

    def summary(self) -> list[str]:
        """Return one line per group: its size and weight decay."""

        def line(what: str, group: dict[str, nn.Parameter], decay: float) -> str:
            count = sum(parameter.numel() for parameter in group.values())
            return f"{what}: {len(group)} tensors, {count:,} parameters, weight decay {decay:g}"

        called = (
            f"token embedding and head, tied ({' = '.join(self.tied)})" if self.tied else "token embedding and head"
        )
        decay, by_role = self.weight_decay, self.decay == "roles"
        lines = [
            line("matrices of the layers" if by_role else "matrices of the layers, positions", self.decayed, decay)
        ]
        lines.append(line(called, self.vocabulary, decay if self.decay_embedding else 0.0))
        return [*lines, line("biases, norms, positions" if by_role else "biases, norms", self.plain, 0.0)]


@named
def optimizer_groups(
    model: nn.Module,
    weight_decay: float,
    *,
    decay_embedding: bool = True,
    decay: Literal["roles", "nanogpt"] = "roles",
) -> Groups:
    """Return the trainable parameters of a model in groups, each Parameter once.

    The default differs from nanoGPT in one tensor: learned positions. nanoGPT decays them, as
    every tensor with two dimensions or more; by role they are not.

    Args:
        model: a module, wrapped or not.
        weight_decay: weight decay of the decayed groups.
        decay_embedding: whether token embedding and head are decayed.
        decay: ``"roles"`` decays the matrices of products, and the token embedding.
            ``"nanogpt"`` decays every tensor with two dimensions or more, as
            `configure_optimizers` in nanoGPT's model.py does.

    Returns:
        The groups; `Groups.lists` gives them to a `torch.optim` optimizer.

    Raises:
        BadInput: if `decay` is neither, or two Parameters share memory: each step would update
            it twice, with half the gradient each.

    >>> from tallystick.models.teaching import BareBonesLM
    >>> groups = optimizer_groups(BareBonesLM(50, 4, tie_word_embeddings=True), weight_decay=0.1)
    >>> [(len(group["params"]), group["weight_decay"]) for group in groups.lists()]
    [(1, 0.1), (1, 0.0)]
    >>> from tallystick.models import Decoder
    >>> model = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    >>> "positions.weight" in optimizer_groups(model, 0.1).decayed
    False
    >>> "positions.weight" in optimizer_groups(model, 0.1, decay="nanogpt").decayed
    True
    """
    if decay not in DECAYS:
        raise BadInput(f"decay is {quoted(decay)}, expected {' or '.join(DECAYS)}", code="bad-value")
    for (one, other), relation in sharing(places_of(model)).items():
        if relation == "aliased":
            raise BadInput(
                f"{one} and {other} are two Parameters sharing memory, so each step would update it twice: tie"
                f' them first, tallystick.retie(model, "{one}", "{other}")',
                code="cannot-tie",
            )
    names: dict[int, list[str]] = {}
    parameters: dict[int, nn.Parameter] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.requires_grad:
            names.setdefault(id(parameter), []).append(name)
            parameters[id(parameter)] = parameter
    decayed: dict[str, nn.Parameter] = {}
    vocabulary: dict[str, nn.Parameter] = {}
    plain: dict[str, nn.Parameter] = {}
    tied: tuple[str, ...] = ()
    for key, called in names.items():
        parameter, roles = parameters[key], {role_of(name) for name in called}
        if parameter.ndim < 2 or (decay == "roles" and roles & {"position_embedding", "norm"}):
            plain[called[0]] = parameter
        elif roles.intersection(VOCABULARY):
            vocabulary[called[0]] = parameter
            tied = tuple(called) if len(called) > 1 else tied
        else:
            decayed[called[0]] = parameter
    return Groups(decayed, vocabulary, plain, weight_decay, decay_embedding, tied, decay)
