"""Right counts in layouts that a reader follows without thinking: nobody is accused."""

import pytest

import tallystick

RIGHT = {
    "a column of ratios": (
        "| | small | medium | ratio |\n|---|---|---|---|\n| embeddings | 39.4M | 52.5M | 1.3 |\n| all layers | 85.1M | 302.3M | 3.6 |\n"
        "| total | 124.4M | 354.8M | 2.9 |\n", "gpt2",
    ),
    "a column of rates": (
        "| part | params | tokens/param |\n|---|---|---|\n| words | 39.4M | 254 |\n| attention | 28.3M | 353 |\n| mlp | 56.7M | 176 |\n"
        "| total | 124.4M | 80 |\n", "gpt2",
    ),
    "whole millions, by the column's head": (
        "| part | params (M) |\n|---|---|\n| embedding | 525 |\n| attention | 1,342 |\n| MLP | 5,637 |\n| norms | 0 |\n| LM head | 525 |\n"
        "| total | 8,030 |\n", "llama-3-8b",
    ),
    "whole millions, by the line above": (
        "Llama 3 8B, in M:\nembedding: 525\nattention: 1,342\nMLP: 5,637\nnorms: 0\nLM head: 525\ntotal: 8,030\n", None,
    ),
    "several products of one number": ("124,439,808 params; ×4 bytes = 497.8 MB, ×2 bytes = 248.9 MB", "gpt2"),
    "several depths of one block": ("Block: 7,087,872. × 12 = 85,054,464. × 24 = 170,108,928 for twice the depth.", "gpt2"),
    "remarks without a blank": (
        "词嵌入: 50257 × 768 = 38,597,376(约 3860万)\n位置嵌入: 1024 × 768 = 786,432(约 79万)\n每层合计约 708.8万\n", "gpt2",
    ),
    "a column of changes": (
        "| | Llama 2 7B | Llama 3 8B | diff |\n|---|---|---|---|\n| attention / layer | 67.1M | 41.9M | -25.2M |\n"
        "| layer | 202.4M | 218.1M | +15.7M |\n| 32 layers | 6.48B | 6.98B | +0.50B |\n", "llama-3-8b",
    ),
    "columns of changes in plain text": (
        "                    Llama 2 7B     Llama 2 70B            diff\nlayer          202,383,360     855,654,400    +653,271,040\n"
        "all layers       6,476,267,520  68,452,352,000 +61,976,084,480\ntotal            6,738,415,616  68,976,648,192 +62,238,232,576\n", None,
    ),
    "a size before the table that it gives": ("vocab 50257 = 38,597,376 params, context of 1024 = 786,432", "gpt2"),
    "the cache of one token": (
        "Memory: 8.03B × 2 bytes = 16.06 GB; KV cache per token 2 × 32 × 1024 × 2 bytes = 131,072 bytes = 128 KB, for 8192 tokens 1 GB. "
        "Total about 17.1 GB.", "llama-3-8b",
    ),
    "a layer whose norms have no line": (
        "Embeddings: 128,256 × 4,096 = 525,336,576\nAttention: 41,943,040\nMLP: 3 × 4,096 × 14,336 = 176,160,768\n"
        "Total per layer: 218,112,000\n", "llama-3-8b",
    ),
    "a count in words": (
        "Attention: four matrices of 768 × 768 = 2,359,296\nMLP: two matrices of 768 × 3072 = 4,718,592\n"
        "Two thirds of 7,077,888 = 4,718,592\nTwelve layers of 7,087,872 = 85,054,464\n4 weight matrices, 768 × 768 = 2,359,296\n", "gpt2",
    ),
    "a count in German words": ("Zwei Matrizen mit 768 × 3072 = 4.718.592\nzwei Drittel von 7.077.888 = 4.718.592", "gpt2"),
    "a sum below its list": ("attn: 4 × 768 × 768 = 2,359,296\nmlp: 8 × 768 × 768 = 4,718,592\n= 7,077,888", "gpt2"),
    "a total before and one after": (
        "Embedding before: 32000 × 4096 = 131,072,000\nEmbedding after: 32064 × 4096 = 131,334,144\nTotal before: 6,738,415,616\n"
        "Total after: 6,738,939,904\n", "llama-2-7b",
    ),
    "rows of LaTeX": (
        "\\begin{tabular}{lrr}\nWord embedding & $30522 \\times 768$ & 23{,}440{,}896 \\\\\nEncoder layer & & 7{,}087{,}872 \\\\\n"
        "All layers & & 85{,}054{,}464 \\\\\n\\midrule\nTotal & & 108{,}495{,}360 \\\\\n\\end{tabular}\n", "bert-base-uncased",
    ),
    "a total before an embedding is longer": (
        "Before: 50257 × 768 = 38,597,376\nAfter: 50304 × 768 = 38,633,472\nExtra: 47 × 768 = 36,096\nTotal before: 124,439,808\n"
        "Total after: 124,439,808 + 36,096 = 124,475,904\n", None,
    ),
    "a layer's sum at the end of its line": (
        "Embeddings: 50257 × 768 = 38,597,376\nOne layer: attention 4 × 768² = 2,359,296, MLP 8 × 768² = 4,718,592, together 7,077,888\n"
        "12 layers: 84,934,656\nTotal: 123,532,032\n", "gpt2",
    ),
    "a product's value on the way": (
        "38,597,376 + 786,432 + 12 × 7,087,872 = 85,054,464 + 1,536 = 124,439,808\n\n"
        "wte 50257 × 768 = 38,597,376 + wpe 1024 × 768 = 786,432 + blocks 12 × 7,087,872 = 85,054,464 + ln_f 1,536 = 124,439,808\n", "gpt2",
    ),
    "parts computed in parentheses": (
        "Block: 7,077,888 + biases (4 × 768 + 3072 + 768 = 6,912) + norms (4 × 768 = 3,072) = 7,087,872", "gpt2",
    ),
    "a part said to be taken twice": (
        "Embedding and head: 131,072,000 each\nLayers: 32 × 202,375,168 = 6,476,005,376\nTotal: 6,738,149,376\n", "llama-7b",
    ),
    "a part that is the same": (
        "Embedding: 32000 × 4096 = 131,072,000\nHead: the same\nLayers: 32 × 202,375,168 = 6,476,005,376\nTotal: 6,738,149,376\n", "llama-7b",
    ),
    "three decimals behind a comma": ("38,597 Mio. + 0,786 Mio. + 85,056 Mio. = 124,44 Mio.", "gpt2"),
    "Indian groups": ("Total: 3,85,97,376 + 7,86,432 + 8,50,54,464 + 1,536 = 12,44,39,808", "gpt2"),
    "a quoted list": (
        "> 1. Embedding: 50257 × 768 = 38.60M\n> 2. Per layer:\n>    1. Attention: 4 × 768² = 2.36M\n>    2. MLP: 8 × 768² = 4.72M\n"
        ">    3. Sum: ≈ 7.08M\n", "gpt2",
    ),
    "a model's name with its size": (
        "GPT-2 1.5B = 1,557,611,200 parameters, GPT-2 124M = 124,439,808 parameters", "gpt2",
    ),
    "tensors of one layer, then all layers": (
        "model.embed_tokens.weight                      [32000, 4096]   131,072,000\n"
        "model.layers.0.self_attn.q_proj.weight         [4096, 4096]     16,777,216\n"
        "model.layers.0.self_attn.k_proj.weight         [1024, 4096]      4,194,304\n"
        "model.layers.0.self_attn.v_proj.weight         [1024, 4096]      4,194,304\n"
        "model.layers.0.self_attn.o_proj.weight         [4096, 4096]     16,777,216\n"
        "model.layers.0.mlp.gate_proj.weight            [14336, 4096]    58,720,256\n"
        "model.layers.0.mlp.up_proj.weight              [14336, 4096]    58,720,256\n"
        "model.layers.0.mlp.down_proj.weight            [4096, 14336]    58,720,256\n"
        "model.layers.0.input_layernorm.weight          [4096]                4,096\n"
        "model.layers.0.post_attention_layernorm.weight [4096]                4,096\n"
        "model.norm.weight                              [4096]                4,096\n"
        "lm_head.weight                                 [32000, 4096]   131,072,000\n"
        "layer 0 subtotal: 218,112,000\n32 layers: 6,979,584,000\ntotal: 7,241,732,096\n", "mistral-7b",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_nobody_is_accused(name):
    text, against = RIGHT[name]
    answer = tallystick.check(f"{text}\n\nHeads: 2 × 3 = 6\n", against=against)
    assert [(one.line, one.right, one.should_be) for one in answer.equations if not one.correct] == []


@pytest.mark.parametrize(
    ("text", "against", "total"),
    [
        ("wte: 50257 × 768 = 38,597,376 → 154.4 MB\nblocks: 12 × 7,087,872 = 85,054,464 → 340.2 MB\ntotal: 124,439,808 → 497.8 MB", "gpt2", 124_439_808),
        ("embed: 131,072,000\n32 layers: 6,476,267,520\nnorm: 4,096\nhead: 131,072,000\ntotal: 6,738,415,616 × 2 bytes = 13.48 GB", "llama-2-7b", 6_738_415_616),
        ("- Words: 39,383,808\n- One block\n  - attention: 2,362,368\n  - MLP: 4,722,432\n  - norms: 3,072\n  - block total: 7,087,872\n"
         "- 12 blocks: 12 × 7,087,872 = 85,054,464\n- Final norm: 1,536\n\nSo the grand total is 124,439,808, i.e. ≈124.4M.", "gpt2", 124_439_808),
        ("Layers: 12 × 48 × 1600² ≈ 1.47 × 10^9. N_total ≈ 1.56 × 10^9 (exact: 1,557,611,200).", "gpt2-xl", 1_557_611_200),
        ("50257 × 768 = 38,597,376 - 38.6M\n12 × 7,087,872 = 85,054,464 - 85.1M\nTotal: 124,439,808 - 124.4M", "gpt2", 124_439_808),
        ("词嵌入: 50257 × 768 = 38,597,376(约 3860万)\n总计: 124,439,808(约 1.24亿)", "gpt2", 124_439_808),
    ],
)  # fmt: skip
def test_an_exact_total_is_claimed_with_what_stands_behind_it(text, against, total):
    assert tallystick.check(text, against=against).total_claimed == total


@pytest.mark.parametrize(
    ("text", "should_be"),
    [
        ("Positions: 1024 x 768 = 786932 - i.e. 0.79M", 786_432),
        ("12 × 7,087,872 = 85,054,164 – 68.4% of the model.", 85_054_464),
        ("Without positions: 124,439,808 - 786,432 = 123,663,376. It's smaller.", 123_653_376),
        ("total: 124,439,808 × 4 bytes = 947.8 MB", 497_759_232),
        ("٥٠٢٥٧ × ٧٦٨ = ٣٨٬٩٩٧٬٣٧٦", 38_597_376),
    ],
)
def test_a_slip_is_found_in_front_of_a_remark(text, should_be):
    equations = tallystick.check(text, against="gpt2").equations
    assert [one.should_be for one in equations if not one.correct] == [should_be]
