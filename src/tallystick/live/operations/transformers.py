"""Operations: save, load, resize and set embeddings with transformers."""

from __future__ import annotations

from typing import Any

from tallystick.live.operations.registry import NotApplicable, Workspace, operation


@operation("save_pretrained, from_pretrained", "transformers")
def save_pretrained(model: Any, workspace: Workspace) -> Any:
    """Save the model and load it again."""
    return _reloaded(_pretrained(model), workspace)


@operation("replaced head, save_pretrained, from_pretrained", "transformers")
def save_pretrained_untied(model: Any, workspace: Workspace) -> Any:
    """Replace the head, save the model, whose config still says tied, and load it again."""
    return _reloaded(workspace.replace_head(_pretrained(model), workspace.other_head(model)), workspace)


@operation("resize_token_embeddings, larger", "transformers")
def resized_up(model: Any, workspace: Workspace) -> Any:
    """Add 8 tokens."""
    _pretrained(model).resize_token_embeddings(_tokens(model) + 8)
    return model


@operation("resize_token_embeddings, smaller", "transformers")
def resized_down(model: Any, workspace: Workspace) -> Any:
    """Take away 8 tokens."""
    _pretrained(model).resize_token_embeddings(_tokens(model) - 8)
    return model


@operation("resize_token_embeddings, padded", "transformers")
def resized_padded(model: Any, workspace: Workspace) -> Any:
    """Add one token, and pad to a multiple of 16."""
    _pretrained(model).resize_token_embeddings(_tokens(model) + 1, pad_to_multiple_of=16)
    return model


@operation("set_input_embeddings", "transformers")
def input_set(model: Any, workspace: Workspace) -> Any:
    """Set another embedding of the same shape."""
    _pretrained(model).set_input_embeddings(workspace.other_embedding(model))
    return model


@operation("set_input_embeddings, tie_weights", "transformers")
def input_set_and_tied(model: Any, workspace: Workspace) -> Any:
    """Set another embedding, then have the library tie."""
    _pretrained(model).set_input_embeddings(workspace.other_embedding(model))
    model.tie_weights()
    return model


@operation("set_output_embeddings", "transformers")
def output_set(model: Any, workspace: Workspace) -> Any:
    """Set another head of the same shape."""
    _pretrained(model).set_output_embeddings(workspace.other_head(model))
    return model


def _pretrained(model: Any) -> Any:
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        raise NotApplicable(f"{type(model).__name__} is not a transformers model")
    return model


def _tokens(model: Any) -> int:
    return len(model.get_input_embeddings().weight)


def _reloaded(model: Any, workspace: Workspace) -> Any:
    model.save_pretrained(workspace.folder / "model")
    return type(model).from_pretrained(workspace.folder / "model")
