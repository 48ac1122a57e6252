"""The commands, one file each. This list has them by group, with the question that each answers."""

from __future__ import annotations

GROUPS = {
    "Explain": {
        "count": "how many parameters a model has, and where they are",
        "formula": "the parameter-count formula, in terms of the config",
        "compare": "why one model has more parameters than another",
        "reconcile": "explain where a published parameter count comes from",
        "check": "which lines of a derivation by hand are wrong",
        "quiz": "count a small model yourself, and get hints",
    },
    "Plan": {
        "memory": "memory needed for inference or training",
        "fit": "will it fit on this GPU, and if not, what would help",
        "serve": "will an engine (vLLM, SGLang, llama.cpp) start with it",
        "compute": "FLOPs per component, GPU-hours and training time",
    },
    "Ties": {
        "ties": "check weight tying: shared, missing and broken ties",
        "survive": "test which library operations break weight tying",
    },
    "Run": {
        "explore": "interactive explorer in your browser",
        "train": "pretrain a small model, or continue from a checkpoint",
        "experiment": "measure what weight tying does to a small model",
        "generate": "generate text from a checkpoint",
        "evaluate": "loss, perplexity and bits per byte of a checkpoint on a text",
    },
    "Names": {
        "presets": "list built-in model names and their sizes",
        "devices": "list GPUs and TPUs with memory, FLOP/s and bandwidth",
        "dtypes": "list number formats of weights and KV cache",
        "help": "help for a command",
    },
}
SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}
COMMANDS = tuple(SUMMARIES)

# What people type for a command, from other tools and in other words.
SYNONYMS = {
    **dict.fromkeys(("list", "models", "ls"), "presets"),
    **dict.fromkeys(("gpus", "gpu", "device"), "devices"),
    **dict.fromkeys(("dtype", "formats", "quantizations"), "dtypes"),
    **dict.fromkeys(("params", "parameters", "info", "summary", "show", "tree", "inspect"), "count"),
    **dict.fromkeys(("diff", "why"), "compare"),
    **dict.fromkeys(("explain", "claim"), "reconcile"),
    **dict.fromkeys(("flops", "flop", "time", "cost"), "compute"),
    **dict.fromkeys(("vram", "ram", "estimate", "estimate-memory", "mem"), "memory"),
    **dict.fromkeys(("fits", "plan", "which-gpu"), "fit"),
    **dict.fromkeys(("vllm", "engine", "deploy", "concurrency"), "serve"),
    **dict.fromkeys(("tied", "tying", "tie"), "ties"),
    **dict.fromkeys(("web", "ui"), "explore"),
    **dict.fromkeys(("pretrain", "finetune"), "train"),
    **dict.fromkeys(("derive", "verify"), "check"),
    **dict.fromkeys(("teach", "course", "exercise", "judge"), "quiz"),
    **dict.fromkeys(("eval", "perplexity"), "evaluate"),
}
