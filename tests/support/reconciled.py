"""What the tests of `reconcile` share: the config of llama2.c, and the names of conventions."""

LLAMA2_C = {
    "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
    "intermediate_size": 1376, "vocab_size": 32000, "tie_word_embeddings": True,
}  # fmt: skip


def names_of(explanation):
    return [step.convention for step in explanation.steps]
