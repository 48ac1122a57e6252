"""Saved models, tied and not, and what is found in them."""

import json

import torch
import transformers
from safetensors.torch import load_file, save_file

EMBEDDING = "model.embed_tokens.weight"


HEAD = "lm_head.weight"


TINY = {"vocab_size": 20, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}


def llama(**more):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY, **more))


def saved(model, folder, **settings):
    """What transformers itself saves, with keys of config.json set over it."""
    model.save_pretrained(folder)
    if settings:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


def rewrite(folder, change):
    """The tensors of a saved folder, changed."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"format": "pt"})


def codes(answer):
    return [problem.code for problem in answer.problems]
