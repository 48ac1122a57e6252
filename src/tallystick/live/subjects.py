"""The small tied models that `survive` runs operations on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.core.budget import one_source
from tallystick.core.config import CONFIG
from tallystick.errors import BadInput
from tallystick.formats import is_weights
from tallystick.live import probe
from tallystick.live.captured_warnings import first_sentence, listening
from tallystick.live.expected_ties import expected_groups
from tallystick.live.shrink_config import small_model
from tallystick.sources.factory import factory
from tallystick.sources.locate import config_in, locate
from tallystick.sources.torch_module.module import ledger_from_module
from tallystick.sources.torch_module.named_parameters import places_of

if TYPE_CHECKING:
    from torch import nn

VOCABULARY, WIDTH = 64, 8
MOST_PARAMETERS = 20_000_000  # limit for a factory's model


class Subject(NamedTuple):
    """A model that can be rebuilt identically, and the two names of its tied tensor."""

    source: str
    build: Callable[[], nn.Module]
    embedding: str
    head: str
    unprobed: str = ""  # why the gradients of both uses cannot be traced; "" if they can

    @property
    def embedding_module(self) -> str:
        """Name of the module that holds the token embedding."""
        return self.embedding.rpartition(".")[0]

    @property
    def head_module(self) -> str:
        """Name of the module that holds the LM head."""
        return self.head.rpartition(".")[0]


def gpt2() -> nn.Module:
    """Return a two-layer GPT-2 with a tied head, and no cache, which export cannot return."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": VOCABULARY, "n_positions": 8, "n_embd": WIDTH, "n_layer": 2, "n_head": 2}
    ids = {"bos_token_id": 0, "eos_token_id": 0}
    return seeded(lambda: GPT2LMHeadModel(GPT2Config(**sizes, **ids, use_cache=False)))


def llama() -> nn.Module:
    """Return a two-layer Llama with a tied head; all other matrices are in nn.Linear modules."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    return seeded(lambda: LlamaForCausalLM(LlamaConfig(**sizes, **heads, use_cache=False, tie_word_embeddings=True)))


def seeded(build: Callable[[], Any]) -> Any:
    """Return `build()` in eval mode with seed 0; the caller's random state is unchanged."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build().eval()


GPT2 = Subject("gpt2", gpt2, "transformer.wte.weight", "lm_head.weight")
SUBJECTS = {
    "gpt2": GPT2,
    "llama": Subject("llama", llama, "model.embed_tokens.weight", "lm_head.weight"),
}


# -- the user's own -------------------------------------------------------------------------------


def subject_of(source: str, settings: Mapping[str, Any]) -> Subject:
    """Return the subject for the source that a user named.

    Args:
        source: a preset, a config or a folder with one; a small model of its type is built,
            with its flags unchanged. Or ``package.module:factory``, whose model is used unchanged.
        settings: config keys that override the source's, or arguments of the factory.

    Raises:
        BadInput: if the model cannot be built, is too large, or ties nothing.
    """
    if is_weights(Path(source).name):
        raise BadInput(f"{source} has weights but no config: name the folder with its {CONFIG}", code="not-a-config")
    with one_source():
        found = locate(source)
        stated = config_in(found)
    build = _from_factory(source, settings) if stated is None else _from_config(stated.values, settings, source)
    with listening():
        model = build()
        if model is build():
            raise BadInput(
                f"{source} returns the same module each time: name a function that builds a new one", code="user-code"
            )
        embedding, head = _tied_pair(model, source)
        gradients, said = probe.gradients(model, embedding, head)
    tokens = len(model.get_parameter(embedding))
    if tokens <= max(probe.SCORED):
        raise BadInput(
            f"{source} has a vocabulary of {tokens}, too few to distinguish embedding from head",
            code="no-answer",
        )
    unprobed = "" if gradients == "one tensor" else first_sentence(said) or gradients
    return Subject(source, build, embedding, head, unprobed)


def _from_factory(source: str, settings: Mapping[str, Any]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model: nn.Module = seeded(lambda: factory.build(source, factory.find(source), settings))
        size = sum(parameter.numel() for parameter in model.parameters())
        if size > MOST_PARAMETERS:  # survive builds the model some two hundred times
            raise BadInput(
                f"{source} builds {size:,} parameters, more than the {MOST_PARAMETERS:,} allowed",
                code="too-large",
            )
        return model

    return build


def _from_config(values: Any, settings: Mapping[str, Any], source: str) -> Callable[[], nn.Module]:
    with listening():
        build = small_model(values, settings, source=source)
    return lambda: seeded(build)


def _tied_pair(model: nn.Module, source: str) -> tuple[str, str]:
    """Return the names of the token embedding and of the head tied to it."""
    places = places_of(model)
    roles = {entry.name: entry.role for entry in ledger_from_module(model).entries}
    pairs: list[tuple[str, str]] = []
    with suppress(BadInput):  # the model does not declare its ties
        pairs = [(first, other) for first, *others in expected_groups(model, places) for other in others]
    for embedding, head in sorted(pairs, key=lambda pair: roles[pair[1]] != "head"):
        found = (roles[embedding], roles[head], len(places[embedding].shape))
        if found[0] == "token_embedding" != found[1] and places[embedding].tensor is places[head].tensor:
            return embedding, head
    raise BadInput(
        f"{source} has no head tied to its token embedding, so there is no tie to test",
        code="no-answer",
    )
