"""Stories of the page: states that answer a question, each with three sentences about them.

``explore/#story=163m`` opens one. A test compares each figure of the sentences with the library's
answer, and finds it in what the page shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tallystick.web.by_hand import BY_HAND


class Story(NamedTuple):
    """A state of the page, and what it shows."""

    label: str  # in the list
    title: str
    sentences: tuple[str, str, str]
    sections: tuple[str, ...]  # answers to show first, by their names
    state: Mapping[str, Any]  # parts of the page's state that differ from an empty one
    page: str  # of the documentation, without its ending


STORIES: dict[str, Story] = {
    "163m": Story(
        "Why 163M?",
        "Why 163M and not 124M?",
        (
            "GPT-2 has 124,439,808 parameters: its head and its token embedding are one matrix.",
            "A state dict names that matrix twice, and a sum over names adds 38,597,376: 163,037,184.",
            "If you replace the head, its matrix is a new one, and 163,037,184 is the true count.",
        ),
        ("reconcile", "compare"),
        {"model": {"name": "gpt2"}, "claim": "163M", "other": {"name": "gpt2"},
         "other_set": {"tie_word_embeddings": False}},
        "published-counts",
    ),
    "671b": Story(
        "Where 671B go",
        "Where do 671B go, and why are 37B active?",
        (
            "Of DeepSeek-V3's 671,026,404,352 parameters, 653,908,770,816 (97.4%) are experts.",
            "A router sends each token to 8 of the 256 experts in a layer; the others stay idle.",
            "So a token uses 37,552,282,624 parameters, but memory must hold all of them.",
        ),
        ("count", "reconcile"),
        {"model": {"name": "deepseek-v3"}, "claim": "37B"},
        "published-counts",
    ),
    "gqa": Story(
        "What grouped heads save",
        "What do grouped heads save?",
        (
            "In Llama 3 8B, 32 query heads share 8 KV heads: four read the same keys and values.",
            "The KV cache takes 131,072 bytes per token, a fourth of what 32 KV heads would take.",
            "With 32 KV heads the model would also have 805,306,368 more parameters.",
        ),
        ("memory", "compare"),
        {"model": {"name": "llama-3-8b"}, "other": {"name": "llama-3-8b"}, "other_set": {"num_key_value_heads": 32}},
        "memory",
    ),
    "head": Story(
        "Heads of small models",
        "Why does the head weigh so much in small models?",
        (
            "Of Gemma 3 270M's 268,098,176 parameters, 167,772,160 (62.6%) are one matrix: the embedding and the head.",
            "It has a row for each of 262,144 tokens, however few layers the model has.",
            "Nearly all others are in the layers: take some layers away, and the share grows.",
        ),
        ("count", "formula"),
        {"model": {"name": "gemma-3-270m"}},
        "why-tie",
    ),
    "fit": Story(
        "Does it fit my card?",
        "Does it fit my card?",
        (
            "Llama 3 8B in bfloat16 needs 18.1 GB to read a prompt of 8,192 tokens.",
            "An RTX 4090 has 24.7 GB for it: a batch of 4, or one sequence of 34,605 tokens.",
            "Choose your own device, model, dtype or length, and the limits move.",
        ),
        ("fit", "memory"),
        {"model": {"name": "llama-3-8b"}, "run": {"device": "rtx4090", "sequence": 8192}},
        "choose-a-gpu",
    ),
    "hand": Story(
        "A hand count judged",
        "A hand count, judged",
        (
            "Each equation is calculated again, and its numbers are looked up in GPT-2.",
            "Line 17 swaps two digits: 84,943,656 should be 84,934,656, so the total is 9,000 too large.",
            "The norms and the biases are left out too; with them the total is 124,439,808.",
        ),
        ("check",),
        {"model": {"name": "gpt2"}, "text": BY_HAND},
        "teaching",
    ),
    "tying": Story(
        "Tying: two gradients",
        "Tying: one matrix, two gradients",
        (
            "GPT-2 embeds tokens and scores them with one matrix of 38,597,376 parameters.",
            "Each use has a gradient: autograd holds both, 308,779,008 bytes, and adds them in one tensor.",
            "Untied, the head has a matrix of its own, and each matrix gets the gradient of one use alone.",
        ),
        ("memory", "ties"),
        {"model": {"name": "gpt2"}, "run": {"mode": "training"}},
        "why-tie",
    ),
}  # fmt: skip


def story_list() -> list[dict[str, Any]]:
    """Return the stories as the page takes them, each with its name."""
    return [{"name": name, **story._asdict()} for name, story in STORIES.items()]
