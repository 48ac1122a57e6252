"""The types that no package builds, by the counts that their authors publish."""

from __future__ import annotations

import transformers

from native import WITHOUT_TRANSFORMERS, count

BOOK_GPT = {
    "vocab_size": 50257, "context_length": 1024, "emb_dim": 768, "n_heads": 12, "n_layers": 12, "drop_rate": 0.1,
    "qkv_bias": False,
}  # fmt: skip
BOOK_LLAMA = {
    "vocab_size": 32000, "context_length": 4096, "emb_dim": 4096, "n_heads": 32, "n_layers": 32, "hidden_dim": 11008,
}  # fmt: skip


def test_book_gpt():
    assert count(BOOK_GPT).architecture == "book_gpt"
    assert count(BOOK_GPT).total == 163_009_536
    assert count({**BOOK_GPT, "tie_word_embeddings": True}).total == 124_412_160
    assert count({**BOOK_GPT, "qkv_bias": True, "tie_word_embeddings": True}).total == 124_439_808


def test_book_llama():
    assert count(BOOK_LLAMA).architecture == "book_llama"
    assert count(BOOK_LLAMA).total == 6_738_415_616
    llama_3 = {**BOOK_LLAMA, "vocab_size": 128_256, "hidden_dim": 14_336, "n_kv_groups": 8}
    assert count(llama_3).total == 8_030_261_248
    qwen_3 = {
        "vocab_size": 151_936, "context_length": 40_960, "emb_dim": 1024, "n_heads": 16, "n_layers": 28,
        "hidden_dim": 3072, "head_dim": 128, "qk_norm": True, "n_kv_groups": 8,
    }  # fmt: skip
    assert count({**qwen_3, "tie_word_embeddings": True}).total == 596_049_920


def test_nanogpt():
    # Its README's 124M: GPT-2's count, with the vocabulary padded from 50,257 to 50,304 rows.
    values = {"block_size": 1024, "n_embd": 768}
    assert count(values).architecture == "nanogpt"
    assert count(values).total == 124_439_808 + (50_304 - 50_257) * 768
    assert count({**values, "vocab_size": 50_257}).total == 124_439_808


def test_palm_by_hand():
    """Section 2.1, for a width of 4096, 16 heads and 32 layers."""
    d, heads, layers = 4096, 16, 32
    swiglu = 3 * d * (4 * d)
    attention = d * heads * 256 + 2 * d * 256 + heads * 256 * d
    by_hand = 256_000 * d + layers * (swiglu + attention)
    values = {"model_type": "palm", "d_model": d, "n_heads": heads, "n_layers": layers}
    assert count(values).total == by_hand
    scaled = count({**values, "norm_scale": True})
    assert scaled.total == by_hand + (layers + 1) * d
    assert not any("bias" in entry.name for entry in scaled.entries)


def test_transformers_has_none_of_these():
    """When it comes to, they belong among the native types, to be compared with it."""
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    assert not WITHOUT_TRANSFORMERS & set(known)
