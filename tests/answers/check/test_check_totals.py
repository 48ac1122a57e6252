"""Which number of a text is its total, in the layouts that people use."""

import pytest

import tallystick

# What a text calls its total, or leaves to be found; each with the line and the number, or None.
TOTALS = {
    "a bold item of a numbered list": (
        "4. **Norms**: 2 × 768 = 1,536\n5. **总计**：5M + 52M + ... ≈ **64M**\n", None, 2, 64_000_000,
    ),
    "a total with a setting in camel case": (
        "| `wte` | ~432 |\n| `wpe` | 256 |\n\n**Total** : ~4 192 paramètres (avec vocabSize=27)\n", None, 4, 4_192,
    ),
    "a total that a text opens with, and never comes to": (
        "- **Total parameters**: 46.7B\n- Layers: 32\n\nOne expert: 2 × 4096 × 14336 = 117.44M\n8 experts: 8 × 117.44M = 939.52M\n"
        "32 layers: 32 × 939.52M = 30.06B\n",
        "mixtral-8x7b", None, None,
    ),
    "a total that a text opens with, above its parts": (
        "Total parameters: ~110M\n\n- Words: 30522 × 768 = 23.4M\n- Layers: 12 × 7.09M = 85.1M\n", "bert-base-uncased", 1, 110_000_000,
    ),
    "a rounded total above its parts, two of them equal": (
        "Total parameters: 164M\n\n- Words: 50257 × 768 = 38.6M\n- Positions: 1024 × 768 = 0.8M\n- 12 layers: 12 × 7.1M = 85.2M\n"
        "- Head: 768 × 50257 = 38.6M\n", "gpt2", 1, 164_000_000,
    ),
    "layers of a model called decoder-only": (
        "Attention: 12 × 4 × 768² = 28,311,552\nMLP: 12 × 8 × 768² = 56,623,104\n"
        "All 12 layers of the decoder-only model: 28,311,552 + 56,623,104 = 84,934,656\n", "gpt2", 3, 84_934_656,
    ),
    "all layers of the attention alone": (
        "W_q: 4096 × 4096 = 16,777,216\nW_k: 1024 × 4096 = 4,194,304\nW_v: 1024 × 4096 = 4,194,304\nW_o: 4096 × 4096 = 16,777,216\n"
        "Sum: ~41.9M (per layer)\n32 layers: ~1.34B parameters\n", "llama-3-8b", None, None,
    ),
    "embeddings of a text that breaks off": (
        "The input has in all: 23440896 + 1536 + 393216 + 1536 = 23837184\n\nA head: (768 × 64 + 64) × 3 = 147648\n\n12 heads: 147648 × 12 = 1771776\n",
        "bert-base-uncased", None, None,
    ),
    "a subtotal of the layers, and nothing behind it": (
        "| Part | One | × 32 |\n|---|---|---|\n| Attention | 41,943,040 | 1,342,177,280 |\n| MLP | 135,266,304 | 4,328,521,728 |\n"
        "| Subtotal | 177,209,344 | 5,670,699,008 |\n", "llama-2-7b", None, None,
    ),
    "a model named by its total": ("共享：100 × 128 = 12800\n在 0.8M 总参数的模型中占了约 3%。\n", None, None, None),
    "parts with wide parentheses": (
        "- 注意力：参数量 = 4 × 768² = 2,359,296（约 2.36M）。\n- MLP：参数量 = 2 × 768 × 3072 = 4,718,592（约 4.72M）。\n"
        "- 词嵌入：30,000 × 768 = 23,040,000（约 23.04M）。\n- **总参数**：12 层 × (2.36M + 4.72M) + 23.04M ≈ 108M。\n",
        "bert-base-uncased", 4, 108_000_000,
    ),
    "an estimate of another kind of model": (
        "Example: LLaMA-7B (L=32, d=4096) ≈ 12 × 32 × 4096² ≈ 6.4B params (close to actual 7B)\n", "llama-7b", 1, 6_400_000_000,
    ),
    "a number below a heading and a sentence": (
        "Words: 40478 × 768 = 31.1M\n\n**Total Number of Parameters:**\n\nSumming up the counts of the parts:\n\n**~117 million**\n", "gpt2", 7, 117_000_000,
    ),
    "layers only": (
        "BERT: 4 × 768² = 2.36M\nMLP: 8 × 768² = 4.72M\n12 layers × 7.08M = 85M parameters in blocks only\n", "bert-base-uncased", None, None,
    ),
    "a number, and not the formula below it": (
        "vocab = 50257\nd = 768\nn = 12\nBlocks: 12 × 7.1M ≈ 85M\nTotal: 85M + 38.6M ≈ 124M\n\n"
        "In general:\ntotal = 12 × d^2 × n + vocab × d\n",
        "gpt2", 5, 124_000_000,
    ),
    "a result in a comment, and not the formula above it": (
        "d = 768\nblock = 12 * d * d  # 7,077,888\ntotal = 12 * block + 50257 * d\nprint(total)  # 123,532,032\n",
        "gpt2", 4, 123_532_032,
    ),
    "formulas alone": ("d = 768\nblock = 12 * d * d\ntotal = 12 * block + 50257 * d\n", None, None, None),
    "a total that a later line goes on from": (
        "The file says:\n\nTotal parameters: 99,000,000\n\nI count:\n\nTotal parameters: 124,439,808\n\n"
        "With a longer vocabulary: 124,439,808 + 1,000 × 768 = 125,207,808\n",
        "gpt2", 7, 124_439_808,
    ),
    "parameters, and their bytes behind them": (
        "wte: 50257 × 768 = 38,597,376 floats\nTotal: 124,439,808 floats = ~498 MB\n", "gpt2", 2, 124_439_808,
    ),
    "a table's, above examples of one part": (
        "| Part | Parameters |\n|---|---|\n| Patches | 2,694 |\n| Blocks | 11,833,344 |\n| **TOTAL** | 11,836,038 |\n\n"
        "#### A narrower MLP\n\nWide:\n  Up: 768 × 3072 = 2,359,296\n  Down: 3072 × 768 = 2,359,296\n"
        "  Total: 4,718,592\n\nNarrow:\n  Up: 384 × 1152 = 442,368\n  Down: 1152 × 384 = 442,368\n  Total: 884,736\n",
        None, 5, 11_836_038,
    ),
    "a sentence's, next to another number": (
        "The table has 128,256 × 4,096 = 525M parameters. Add the projection (another 525M), "
        "and you get roughly 8 billion parameters total.\n",
        "llama-3-8b", 1, 8_000_000_000,
    ),
    "far more than the head above it": (
        "Embedding:\n- Parameters: 10,000,400\n\nGRU:\n- Parameters: 453,888\n\nClassification head:\n"
        "- Parameters: 7,700\n\n- Total parameters: 10,461,988\n",
        None, 10, 10_461_988,
    ),
    "with embeddings, in Chinese": (
        "- 词嵌入：$50257 \\times 768 \\approx 0.39$ 亿\n- 每层：$12 \\times 768^2 \\approx 708$ 万\n"
        "- 加上嵌入层，总计约 $1.26$ 亿\n",
        "gpt2", 3, 126_000_000,
    ),
    "all layers, below the total of one": (
        "Per layer:\n- Attention: 4 × 256 × 256 = 262,144\n- MLP: 2 × 256 × 1024 = 524,288\n"
        "Total per layer: 786,432\n\n8 layers: ~6.3M parameters\n",
        None, 6, 6_300_000,
    ),
    "adapters of one matrix, times matrices, times layers": (
        "LoRA of rank 4 on queries and values:\n\n  per matrix   : 4 x (512 + 512) = 4,096\n"
        "  x 2 targets  :                 = 8,192\n  x 24 layers  :                 = 196,608 trainable\n\n"
        "  base model   :                   900,000,000\n",
        None, 5, 196_608,
    ),
    "adapters of one matrix": (
        "Full: 512 × 512 = 262,144 parameters\nLoRA: 512 × 4 + 4 × 512 = 4,096 parameters\n", None, None, None,
    ),
    "full-width parentheses": (
        "总参数量 = 38,597,376（词嵌入） + 786,432（位置嵌入） = 39,383,808\n", None, 1, 39_383_808,
    ),
    "a Japanese label": ("パラメータ数: 512 × 4 + 4 × 2048 ≈ 約1万\n", None, 1, 10_000),
    "a number right behind its word, and its rounding": (
        "这些部分加起来就是39383808,约等于39M。\n", None, 1, 39_383_808,
    ),
    "a number in a sentence": (
        "Embedding: 50257 × 768 ≈ 38.6M\n\nWith the blocks and all else GPT-2 comes to 124.4M.\n", "gpt2", 3, 124_400_000,
    ),
    "an exact total behind a rounded sum": (
        "wte: 38.6M\nwpe: 0.79M\nlayers: 12 × 7.08M = 84.9M\nsum: 38.6 + 0.79 + 84.9 = 124.3M\n\nexact: 124,439,808\n", "gpt2", 6, 124_439_808,
    ),
    "a size that is quoted": (
        "MLP per block: 4,722,432\n× 12 blocks: 56,669,184\n\n≈ 46% of GPT-2 small's 124M total parameters.\n", "gpt2", None, None,
    ),
    "a rounded number that is concluded": (
        "Embedding: 32000·4096 ≈ 131M\nBlocks: 32 · 124M ≈ 3.97B\n\n→ ≈ 6.7B, as published.\n", "llama-7b", 4, 6_700_000_000,
    ),
    "a number that is the name of a model": (
        "Embedding: 50257 × 768 ≈ 38.6M\n\nThis holds for GPT-2 124M and any other 124M model.\n", "gpt2", None, None,
    ),
    "an operand": ("Share: 38,597,376 / 124,439,808 = 31.0%\n", "gpt2", None, None),
    "several numbers, each with its word behind it": (
        "Embedding: 512 × 64 = 32,768\nMLP: 2 × 64 × 256 = 32,768\n"
        "Total: 32,768 embedding, 32,768 other, 65,536 total\n",
        None, 3, 65_536,
    ),
    "a number below its step": (
        "Step 1: Embedding\nTokens: 32000 × 1024 = 32.77M\n\nStep 2: Layers\n2 × 13.24M = 26.48M\n\nStep 3: Total\n59.25M parameters\n", None, 8, 59_250_000,
    ),
    "a total and its bytes, of parts and theirs": (
        "Tokens: 50,000 × 768 = 38.4M params = ~153 MB\nHead: 768 × 50,000 = 38.4M params = ~153 MB\n\nTOTAL: ~76.8M parameters = ~306 MB\n", None, 4, 76_800_000,
    ),
    "a range": ("- Words: 32000 × 2048 = 65.5M\n- Layers: 24 × 44.3M = 1.06B\n- Total: ~1.0-1.2B parameters\n", None, 3, 1_200_000_000),
    "the last of the sums so far": (
        "| Part | Parameters | Running total |\n|---|---|---|\n| Words | 1,024 | 1,024 |\n| 2 layers | 8,192 | 9,216 |\n| Norm | 64 | 9,280 |\n",
        None, 5, 9_280,
    ),
    "a total of embeddings, above the layers": (
        "- Words: 32,768 × 1,024 = 33,554,432\n- Head: 33,554,432\n- Total: 67,108,864\n\n**For 24 blocks:**\n- 24 × 12.6M ≈ 302M\n", "gpt2-medium", 6, 302_000_000,
    ),
    "a total in a sentence behind its parts": (
        "The layers have 6,476,267,520. Add two of 131,072,000 weights and 4096 to get **6,738,415,616**.\n\n"
        "Products: $N=6{,}738{,}415{,}616-131{,}072{,}000=6{,}607{,}343{,}616$\n", "llama-2-7b", 1, 6_738_415_616,
    ),
    "a total next to its bytes": (
        "| Part | Shape | Bytes |\n|---|---|---|\n| Words | 102400 × 2048 | 400 MB |\n| **Total** | **15,706,484,224** | **31,412,968,448 B = 31.41 GB** |\n",
        None, 4, 15_706_484_224,
    ),
    "a check mark behind it": (
        "| Embedding | 100 × 768 = 76,800 |\n| MLP | 2 × 768 × 300 = 460,800 |\n| **Total** | **≈ 538 K** ✓ |\n",
        None, 3, 538_000,
    ),
    "the estimate of a whole model": ("验证: GPT-3 = 12 × 96 × 12288² ≈ 174B ≈ 官方 175B\n", None, 1, 174_000_000_000),
    "a table of what adapters train": (
        "Trained with LoRA:\n\n| Tensor | Count |\n|---|---|\n| Adapters | 73,728 |\n| Embedding | 38,597,376 |\n"
        "| Total trained | ≈ 38,671,000 |\n",
        None, 7, 38_671_000,
    ),
    "the bytes of a sum": (
        "Body: 23,835,648 + 42,527,232 = 66,362,880\nHead: 600,000\nWhole model: 66,962,880\n\n"
        "Memory in float32: `66,962,880 x 4 = 267.9 MB`\n", None, 3, 66_962_880,
    ),
    "a total among layers": (
        "Expert: 3 × 4096 × 14336 = 176,160,768\n# 8 experts = 1,409,286,144 a layer (~1.4B per layer, ~47B total across 32 layers)\n",
        "mixtral-8x7b", 2, 47_000_000_000,
    ),
    "an encoder's total": ("Attention: 4 × 512² = 1,048,576\nEncoder total: 1,048,576 × 6 = 6,291,456\n", None, None, None),
    "attention alone": (
        "| W_Q | 512 × 512 = 262,144 |\n| W_K | 512 × 512 = 262,144 |\n| W^O | 512 × 512 = 262,144 |\n"
        "| Total | 262,144 + 262,144 + 262,144 = 786,432 |\n", None, None, None,
    ),
    "one layer of experts": (
        "모든 Expert: 256 × 12.6M = 3,225.6M ≈ 3.2B\n한 MoE 레이어의 전체 파라미터 ≈ 3.2B + 12.6M ≈ 3.2B\n", None, None, None,
    ),
    "one layer in a table": (
        "单层参数量统计：\n\n| 矩阵 | 参数量 |\n|---|---|\n| Wq | 67.1M |\n| Wo | 67.1M |\n| 合计 | ~134.2M |\n", None, None, None,
    ),
    "a model among layers": (
        "**Parameters per MoE layer:**\n* Experts: 8 × 176.1M ≈ 1.4B\n* **Total model parameter count**: ≈ 46B\n", None, 3, 46_000_000_000,
    ),
    "a line of its own, and not a larger total in a sentence": (
        "It is not the larger model with 235B total parameters.\n\n| Experts | 3 × 4.0B = 12.0B |\n| **Total** | **≈ 35B** |\n",
        None, 4, 35_000_000_000,
    ),
    "active parameters": ("10 × 48 × 4,915,200 = 2,359,296,000\ntotal actif = 2.359296B params\n", None, None, None),
    "the exact number in a sentence, and not a part that is called a total": (
        "Embedding and head: 2 × 128,256 × 4,096 = 1,050,673,152, and so you get 8,030,261,248.\n\n"
        "The blocks total about 7.0B, and the rest about 1.05B.\n", "llama-3-8b", 1, 8_030_261_248,
    ),
    "a Russian sentence": (
        "W_Q: 2048 × 2048 = 4.2 М\nW_K: 2048 × 256 = 524 К\nПлюс норма (4096), приходим к ~3.1 миллиарда.\n",
        "qwen2.5-3b", 3, 3_100_000_000,
    ),
    "a Russian block": (
        "W_Q: 2048 × 2048 = 4.2 М\nW_O: 2048 × 2048 = 4.2 М\nИтого: ~8.4 М параметров на блок\n", None, None, None,
    ),
    "a total with a remark on scales": (
        "| | Value |\n|---|---|\n| Blocks | 26.63 B |\n| Total params (all tensors, excl. scale tensors) | 1,598.84 B |\n",
        None, 4, 1_598_840_000_000,
    ),
    "a total of a few rows, one of which multiplies others": (
        "GPT-2 has 50257 × 768 = 38,597,376 in one table.\n\n| Part | How | Count |\n|---|---|---|\n| Tokens | 7 × 4 | 28 |\n"
        "| One: attention | 4 × 4 × 4 | 64 |\n| One: MLP | 2 × 4 × 8 | 64 |\n| Two blocks | 2 × 128 | 256 |\n| **Total** | | **284** |\n",
        None, 9, 284,
    ),
    "tokens that a model read": ("110M total params, pre-trained on 3.3B tokens\nEmbedding: 768 × 30522 = 23.4M\n", None, 1, 110_000_000),
    "a share of a total": ("Head: 32000 × 4096 = 131M. As a fraction of 7B total parameters this is little.\n", None, None, None),
    "thousands by blanks and decimals by commas": (
        "| q | 3072 × 3072 | 9 437 184 |\n\n* **Totale ≈ 9,054 G parametri**, di cui 0,7 M di router\n", None, 3, 9_054_000_000,
    ),
    "a total with a formula of names": (
        "P_{embed} = 256000 × 18432 = 4.7 × 10^9\n\nP_{rest} = 331.6 × 10^9\n\n**Total parameters:**\n\n"
        "P_{total} = P_{embed} + P_{rest} = 336.3 × 10^9\n",
        None, 7, 336_300_000_000,
    ),
    "a total of totals": (
        "├── Patches: 700 × 1000 = 700K\n└── Blocks: 93 × 1000 × 1000 = 93M\n\nTower total: ~94M\n\n"
        "├── Words: 47 × 1000 × 1000 = 47M\n└── Layers: 313 × 1000 × 1000 = 313M\n\nLanguage model total: ~360M\n\n"
        "| Part | Parameters |\n|---|---|\n| Tower | 94M |\n| Language model | 360M |\n| **Total** | **~454M** |\n",
        None, 15, 454_000_000,
    ),
    "a total whose words speak of memory": (
        "- Words: 32000 × 768 = 24.6M\n- Layers: 8 × 23.5M = 188M\n- Total: ~213M params (leaving room for memory)\n",
        None, 3, 213_000_000,
    ),
    "a total after the items of one block": (
        "Count:\n    - Tokens:    8000 × 256 = 2.05M\n    - Per block:\n        - Attention:  4 × 256 × 256 = 262K\n"
        "        - MLP:        8 × 256 × 256 = 524K\n        - Total per block:  ~786K\n    - All blocks:   4 × 786K = 3.14M\n"
        "    - Final norm:   2 × 256 = 512\n    ---------------------\n    Total:        ~5.2M parameters\n",
        None, 10, 5_200_000,
    ),
    "a Japanese sign for about": ("これらを合計すると：\n135M + 368M + 0.2M ≒ 503M\n", None, 2, 503_000_000),
    "a total derived below one given": (
        "Derive the total parameter count and verify it is approximately 8B.\n\nOne block: 3 × 4096 × 14336 + 2.5 × 4096² = 218.1M\nBlocks: 32 × 218.1M = 6.979B\n"
        "Words: 128256 × 4096 = 0.525B\nTotal: 6.979B + 0.525B = 7.504B\n",
        "llama-3-8b", 6, 7_504_000_000,
    ),
    "a whole below the heading of one layer": (
        "Embedding: 100 × 1024 = 102,400\nPer layer:\n  attention: 4 × 1024² = 4,194,304\n  MLP: 8 × 1024² = 8,388,608\n"
        "  Total per layer: 4,194,304 + 8,388,608 = 12,582,912\nAll: 12 × 12,582,912 = 150,994,944\n\n"
        "Total Parameters = 102,400 + 150,994,944 = 151,097,344\n",
        None, 8, 151_097_344,
    ),
    "a whole below a heading that its layers have ended": (
        "Words: 300 × 512 = 153,600\nPer layer:\n    attention: 4 × 512² = 1,048,576\n    MLP: 8 × 512² = 2,097,152\n"
        "    Total per layer: ~3.15M\n6 layers: 6 × 3.15M = 18.9M\nTop: 512 × 30000 = 15.36M\n\nTotal: ~45M parameters\n",
        None, 9, 45_000_000,
    ),
    "a total of towers that are restated": (
        "# One\n\nWords: 257152 × 2048 = 526.6M\nLayers: 18 × 84.4M = 1.52B\n\nTotal one: 2.05B\n\n"
        "# Two\n\nTokens: 257152 × 1024 = 263.3M\nBlocks: 18 × 12.5M = 225M\n\nTotal two: 488M\n\n"
        "# All\n\nOne: 2.05B\nTwo: 488M\nTower: 400M\n\nTotal model: 2.94B\n",
        None, 21, 2_940_000_000,
    ),
    "a total that is derived, below others": (
        "Target: 250-300M total\nAchieved: ~267M total, ~72M active\n\nLayers: 12 × 17.5M = 210M\nWords: 50000 × 1152 = 57.6M\nTotal: 267.6M\n\n"
        "Active:\n- Layers: 12 × 2.6M = 31.2M\n- Words: 57.6M\n",
        None, 6, 267_600_000,
    ),
    "a whole behind the head, where the last heading is of an MLP": (
        "Transformer × 12 (per layer):\n  QKV: 3 × 512 × 512 = 786,432\n  FFN (SwiGLU):\n    gate: 512 × 2048 = 1,048,576\n"
        "    up: 512 × 2048 = 1,048,576\n\nMLP head: 512 × 200 = 102,400\n\nTOTAL PARAMS: ~50.4M\n",
        None, 9, 50_400_000,
    ),
    "a whole behind columns of parameters and of active ones": (
        "| Part | Each | Total params | Active per token |\n|---|---|---|---|\n| Words (50,000 × 2048) | — | 102.4 M | 102.4 M |\n"
        "| **Total** | | **≈ 2.22 B** | **≈ 1.01 B** |\n\nTotal params: 24 × (16.78 M + 67.11 M) + 204.8 M = 2218.2 M ≈ 2.22 B\n",
        None, 6, 2_220_000_000,
    ),
    "a grid that counts parameters and their memory": (
        "Memory Footprint:\n\n+-----------+------------+-------------+\n| Component | Parameters | Memory (MB) |\n+-----------------------------------┤\n"
        "| Words     |  128,000   |    0.5      |  vocab * d\n| Layers    |  688,128   |    2.7      |\n+-----------------------------------┤\n"
        "| TOTAL     |  816,128   |    3.3      |\n",
        None, 9, 816_128,
    ),
    "a row with a tick and a remark": (
        "| Part | Formula | Params |\n|---|---|---|\n| A | 79 × 192 × 3 × 4096 × 1536 | 286.3 B |\n| B | 80 × 75.5M | 6.04 B |\n"
        "| **Total** | | **≈ 292.3 B** ✓ matches the official 295B |\n",
        None, 5, 292_300_000_000,
    ),
    "a bare total below the total of a part": (
        "## Attention\n\nQ: 576 × 576 = 331,776\nOut: 576 × 792 = 456,192\nMLHA Total: 787,968\n\n## All\n\nTokens: 49,152 × 576 = 28,311,552\n"
        "All layers: 660,804,690\nNorm: 576\n\nTOTAL: ~689,116,818 parameters\n",
        None, 13, 689_116_818,
    ),
    "a variable for the total, and one for some": (
        "words = 32768 * 1664 = 54525952\nlayers = 26 * 33226752 = 863895552\ntotal_params = 54525952 + 863895552 + 708837376 = 1627258880\n"
        "matmul_params = 863895552 + 54525952 = 918421504\n",
        None, 3, 1_627_258_880,
    ),
    "a setting that is no difference": (
        "probs = softmax(logits, dim=-1)\nParameters: V × d = 10,000 × 512 = 5.12M\n\nOther parameters: 8192 × 512 = 4.19M\n", None, None, None,
    ),
    "parameters and their bytes": (
        "Words: 19,000 × 1024 = 19,456,000 params = 38.9 MB\nGrand total: 19,456,000 params = 38.91 MB BF16\n",
        None, 2, 19_456_000,
    ),
    "a sum of attention, of which a bias has the size of a norm": (
        "考虑三种不同的embedding:\n\n1. 参数量为30522*768=23440896\n\nattention\n\n1. Q、K、V的Linear层的参数量为(768*64+64)*3*12=1771776\n\n"
        "2. Linear层的参数量为64*12*768+768=590592\n\n3. 合计参数量为1771776+590592=2362368\n\n"
        "对应的参数为(768*3072+3072)+(3072*768+768)=4722432\n",
        "bert-base-uncased", None, None,
    ),
    "a total with a size in its label": (
        "- Attention: 28.3M\n- MLP: 56.7M\n- Embedding (V=50257): 38.6M\n- **Total (vocab=50257, N=12)**: 123.6M\n",
        None, 4, 123_600_000,
    ),
    "the count from which the total has its bytes": (
        "Embeddings: 512 × 640 = 327,680\nLayers: 5 × 640 × 640 = 2,048,000\nTotal: ~2.4M params × 4 bytes = ~9.5 MB\n",
        None, 3, 2_400_000,
    ),
    "the states of a parameter, which are no billions": (
        "Adam: weights (4B) + gradients (2B) + moments (8B) = 14B/param\n", None, None, None,
    ),
    "a block alone": (
        "Attention: 4 × 64 × 65 = 16,640\nMLP: 2 × 64 × 256 + 320 = 33,088\nComplete block: 16,640 + 33,088 = 49,728\n", None, None, None,
    ),
    "a block alone, in French": (
        "attention : 4 × 64 × 65 = 16 640\nMLP : 2 × 64 × 256 + 320 = 33 088\nbloc complet : 16 640 + 33 088 = 49 728\n", None, None, None,
    ),
    "a total before a sentence about a larger model": (
        "Sizes: 2 × 3 = 6\n12 layers ≈ 44.1M. Embedding 37,000×512 ≈ 18.9M → total ≈ **63.1M** (paper: 65M). Big by the same formula ≈ 214M.\n",
        None, 2, 63_100_000,
    ),
    "all layers of one part": (
        "FFN:\n- Layer 1: 768 × 3072 = 2.36M\n- Layer 2: 3072 × 768 = 2.36M\n- Total per block: ~4.7M\n- Across 12 blocks: ~57M\n",
        None, None, None,
    ),
    "a total of an example": (
        "def init(self, vocab_size=1000, d_model=64):\ntotal = sum(p.numel() for p in model.parameters())\n"
        "print(f'Total parameters: {total}')  # 64,000\n", "gpt2", None, None,
    ),
    "a sum that is some percent of the model": (
        "Beide Tabellen: 128.256 × 4.096 = 525.336.576, zusammen 1.050.673.152, gut 13 Prozent der rund 8 Milliarden Parameter.\n",
        "llama-3-8b", None, None,
    ),
    "the total of one layer without saying so": (
        "// Attention: 4096 × 4096 × 4 = 67,108,864\n// MLP: 4096 × 11008 × 3 = 135,266,304\n// Norms: 4096 × 2 = 8,192\n// Total ≈ 202,383,360\n",
        "llama-7b", None, None,
    ),
    "blocks in total, below the words": (
        "| `wte` | `50257 × 768 ≈ 38.6M` |\n| Each block: attention | `4 × 768 × 768 ≈ 2.36M` |\n| Each block: MLP | `8 × 768 × 768 ≈ 4.72M` |\n"
        "| 12 blocks in total | `≈ 85M` |\n| `lm_head` | shared |\n", "gpt2", None, None,
    ),
    "one sum": ("38,597,376 + 786,432 + 85,056,000 = 124,439,808\n", None, 1, 124_439_808),
}  # fmt: skip


@pytest.mark.parametrize("name", TOTALS)
def test_the_total_is_what_a_reader_would_take_for_it(name):
    text, model, line, total = TOTALS[name]
    answer = tallystick.check(text, against=model)
    assert (answer.total_line, answer.total_claimed) == (line, total)
    assert all(equation.correct for equation in answer.equations)


def test_a_title_may_have_the_rounding_of_its_total():
    text = (
        "Model (8,455,168 (~8.5M) parameters)\n├── Words [65 × 1024]: 66,560\n├── 2 × Block: 8,388,608 (4,194,304 each)\n"
        "│   ├── Attention: 4,194,304\n│   │   ├── q: 2 × 1024 × 1024 = 2,097,152\n│   │   ├── o: 2 × 1024 × 1024 = 2,097,152\n"
    )
    answer = tallystick.check(text)
    assert [one.left for one in answer.equations if one.line == 1] == [8_455_168, 8_455_168]


@pytest.mark.parametrize(("what", "convention"), [("Rest", None), ("LoRA", "with adapters of rank 1 on c_attn")])
def test_adapters_are_a_convention_of_a_text_that_speaks_of_them(what, convention):
    text = (
        f"Blocks: 12 × 7,087,872 = 85,054,464\n{what}: 12 × 3,072 = 36,864\n"
        "Total: 38,597,376 + 786,432 + 85,054,464 + 1,536 + 36,864 = 124,476,672\n"
    )
    answer = tallystick.check(text, against="gpt2")
    assert answer.total_claimed == 124_476_672
    assert answer.convention == convention


@pytest.mark.parametrize(
    ("text", "model", "part", "parameters"),
    [
        ("Total # of params: 6607.34M", "llama-2-7b", "head", 32_000 * 4096),
        ("Total: 85.84M", "gpt2", "token embedding", 50_257 * 768),
    ],
)
def test_a_lone_total_lacks_the_part_that_makes_the_difference(text, model, part, parameters):
    answer = tallystick.check(text + "\n", against=model)
    assert [(one.what, one.parameters, one.cause) for one in answer.omissions] == [(part, parameters, "left out")]
    assert answer.unexplained == 0
    assert answer.total_claimed + answer.rounding + parameters == answer.total_true


def test_a_lone_total_of_few_digits_says_of_no_part_that_it_is_left_out():
    answer = tallystick.check("Total: 6.6B\n", against="llama-2-7b")
    assert not answer.omissions
    assert answer.unexplained


def test_a_wrong_product_that_is_near_the_model_is_its_total():
    answer = tallystick.check("The parameters of BERT in total are 12 × 768 × 12 = 110M\n", against="bert-base-uncased")
    assert answer.total_claimed == 110_000_000


def test_a_total_with_a_digit_wrong_is_the_total_all_the_same():
    text = (
        "| Tokens | 38,597,376 |\n| Positions | 786,432 |\n| Blocks | 87,054,464 |\n| Norm | 1,536 |\n| **TOTAL** | **124,439,808** |\n\n"
        "Blocks: 12 × 10,250,000 = 123,000,000\n"
    )
    assert tallystick.check(text, against="gpt2").total_line == 5


def test_a_variable_that_is_a_count_is_named():
    text = "2 × 3 = 6\nnorms = 266,240\nTOTAL = 46,702,792,704\nhidden = 4096\n"
    answer = tallystick.check(text, against="mixtral-8x7b")
    assert {one.line: one.matches for one in answer.equations} == {1: None, 2: "norms", 3: "the whole model"}


@pytest.mark.parametrize("later", ["the table holds 19.3M of 30M total", "Targeting ~30M params in total."])
def test_a_number_that_only_rounds_the_total_is_not_the_total(later):
    text = (
        f"Token embedding: 50257 × 384 = 19.3M\nLayers: 6 × 1.774M = 10.6M\nTotal: 29.95M\n\n256 positions: {later}\n"
    )
    assert tallystick.check(text).total_claimed == 29_950_000


@pytest.mark.parametrize(
    ("said", "total"),
    [
        ("The file has `124,439,808` numbers, or 497,759,232 bytes.", 124_439_808),
        ("Layers: 12 × 7,087,872 = 85,054,464. This and the tables give ≈ 124.4M.", 124_400_000),
        ("Layers: 12 × 7,087,872 = 85,054,464 of a model of about 1B.", None),
    ],
)
def test_the_models_own_count_is_the_total_wherever_it_stands(said, total):
    assert tallystick.check(f"Embedding: 50257 × 768 = 38,597,376\n\n{said}\n", against="gpt2").total_claimed == total


def test_a_total_above_its_list_is_the_sum_of_the_items():
    """98,304 + 393,216 + 8 × 1,770,240 + 384 + 98,560 = 14,752,384."""
    text = (
        "Number of params: {} ≈ 14.8 M\n\n- Embedding: 256 × 384 = 98,304\n- Positions: 1024 × 384 = 393,216\n"
        "- Blocks: 8 × 1,770,240 = 14,161,920\n- Norm: 384\n- Head: 384 × 256 + 256 = 98,560\n"
    )
    assert tallystick.check(text.format("14,752,384")).total_claimed == 14_752_384


def test_the_smaller_of_two_sums_without_a_name_is_no_total():
    text = "group 2: 20 × 8,650,752 + 5,767,168 = 178,782,208\ngroup 3: 2,883,584 + 20 × 8,650,752 = 175,898,624\n"
    assert tallystick.check(text).total_claimed is None


@pytest.mark.parametrize(
    ("before", "against", "total"),
    [
        ("", "llama-3-8b", 6_979_321_856),
        ("Embedding: 128256 × 4096 = 525,336,576\n", "llama-3-8b", None),
    ],
)
def test_the_number_of_all_layers_is_the_total_of_a_text_that_counts_nothing_else(before, against, total):
    text = (
        f"{before}attention = 4096 × 128 × (32 + 8 + 8 + 32) = 41,943,040\nmlp = 3 × 4096 × 14336 = 176,160,768\n"
        "params per layer = 218,103,808\nper device, 32 layers: 218,103,808 × 32 = 6,979,321,856\n"
        "in FP16: 6,979,321,856 × 2 = 13.96 GB\n"
    )
    assert tallystick.check(text, against=against).total_claimed == total


@pytest.mark.parametrize(("total", "wrong"), [("163M (untied head)", 0), ("124M", 0), ("143M", 1)])
def test_a_total_may_count_a_tied_head(total, wrong):
    text = (
        "- Token embeddings: 50,257 × 768 = 38.6M\n- Position embeddings: 1,024 × 768 = 0.8M\n"
        f"- 12 blocks: 12 × 7,087,872 = 85.1M\n- Final norm: 1,536\n\nTotal: ≈ {total}\n"
    )
    found = [one.line for one in tallystick.check(text, against="gpt2").equations if not one.correct]
    assert found == [6] * wrong


@pytest.mark.parametrize(("number", "total"), [("2,004,177,600", 2_004_177_600), ("2,000,000,000", None)])
def test_an_exact_number_that_is_stored_in_bytes_is_the_total(number, total):
    text = (
        "vocab_size * d_model\n= 50,257 × 1,600 = 80,411,200\n\nInner sum = 7,680,000 + 30,723,200 = 38,403,200\n"
        f"Multiply by num_layers: 48 × 38,403,200 = 1,843,353,600\n\n=\n{number}\n\nIn single precision:\n\n"
        f"{number} parameters × 4 bytes = {int(number.replace(',', '')) * 4:,} bytes\n"
    )
    assert tallystick.check(text, against="gpt2-xl").total_claimed == total


PER_LAYER = {
    "a list": (
        "- Tokens: 32000*1024 = 32.8M\n- Positions: 512*1024 = 524K\n\n**Per transformer block**\n\n- Attention: 4*1024² = 4.2M\n"
        "- Feed-forward: 2*1024*2048 = 4.2M\n- Norms / layer: 2*2*1024 = 4K\n- One layer: 8.4M\n\n"
        "- × 4 layers: 4*8.39M = 33.6M\n- Final norm: 2*1024 = 2K\n- Total: {total}M\n",
        "66.9",
    ),
    "a table": (
        "| Part | Parameters |\n|---|---|\n| Embedding (16384 × 1600) | 26.21M |\n| Positions (1024 × 1600) | 1.64M |\n"
        "| Attention (4 × 1600² + 4 × 1600) | 10.25M |\n| MLP (2 × 1600 × 6400 + 6400 + 1600) | 20.49M |\n"
        "| 2 LayerNorms / layer (2 × 2 × 1600) | 6.4K |\n| One layer | 30.74M |\n| 2 blocks (2 × 30.74M) | 61.48M |\n"
        "| Final norm (2 × 1600) | 3.2K |\n| Output head (1600 × 16384) | 26.21M |\n| Gesamt | {total}M |\n",
        "115.55",
    ),
    "a tree": (
        "GPT\n├── Tokens: 50257 × 768 = ~38.60M\n├── Positions: 1024 × 768 = ~786.4K\n├── Transformer layers (×6):\n"
        "│   ├── Attention: 4 × 768 × 768 + 4 × 768 = ~2.36M\n│   ├── MLP: 2 × 768 × 1536 + 1536 + 768 = ~2.36M\n"
        "│   ├── Norms: 2 × 2 × 768 = ~3.1K\n│   └── One layer: ~4.73M\n└── Final norm: 2 × 768 = ~1.5K\nTotal: ~{total}M\n",
        "67.75",
    ),
}


@pytest.mark.parametrize("name", PER_LAYER)
def test_the_number_of_one_layer_stands_for_its_lines(name):
    text, total = PER_LAYER[name]
    model = {
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": 768,
        "n_inner": 1536,
        "n_layer": 6,
    }
    for against in (None, model):
        found = tallystick.check(text.format(total=total), against=against).equations
        assert [one.text for one in found if not one.correct] == []


@pytest.mark.parametrize(("heads", "total"), [("Per layer | All layers", 165_636_800), ("Model A | Model B", None)])
def test_a_column_of_one_layer_is_of_no_other_model(heads, total):
    text = (
        f"| Part | Formula | {heads} |\n|---|---|---|---|\n| Tokens | 50257 x 1600 | — | 80,411,200 |\n"
        "| Positions | 2048 x 1600 | — | 3,276,800 |\n| Attention | 4 x 1600 x 1600 | 10,240,000 | 40,960,000 |\n"
        "| FFN | 2 x 1600 x 3200 | 10,240,000 | 40,960,000 |\n| Norms | 2 x 2 x 1600 | 6,400 | 25,600 |\n"
        "| Final norm | 2 x 1600 | — | 3,200 |\n| Total | | 20,486,400 | 165,636,800 |\n"
    )
    assert tallystick.check(text).total_claimed == total
