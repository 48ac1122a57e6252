"""What people write and mean is not called wrong: units left out, shares, rates, shapes, words
among numbers.
"""

import pytest

import tallystick

RIGHT = [
    "Parameters: 64 × 4096 × 71,000 = 18.6",  # in billions
    "Projections: 3 × 2 × 1024 × 1600 × 1600 = 15.7G FLOPs",
    "The table: 196,608 × 1,024 × 2 bytes = 384 MB",  # of 1,048,576 bytes
    "LoRA: 8 × (64 + 64) = 1,024 parameters = 25% of W",
    "Of all modules: 48 × 768 × 16 = 589,824 params = 2,359,296 bytes",
    "Total: 80 × 65,536 ≈ 5.2M params × 4 bytes ≈ 21 MB",
    "Attention (4 matrices) = 0.65M × 4 ≈ 2.6M",
    "max_iters = 54000\n\n```\ntrain.py \\\n  --max_iters=50000 --zero=True\n```",  # set anew
    "For M=N=K that is `2K / 12 = K/6`. K=8192 gives ~1365.3.",  # sets K
    "Bin spacing: f/N = 1000 Hz. k=2 is 2000 Hz",
    "warmup_steps: int = 2000\nlayers: int = 2\ntotal_steps: int = 100000\n",
    "1280×720 frames: ~2.7MB",  # of three bytes each
    "norm = square root of (9 + 16) = square root of 25 = 5",
    "它把性能从 ~13% 提升到 ~31%(实测 30.8%)",
    "A quarter: 470,268,510 / 4 = 117,567,128",
    "q: A(1536 × 8) + B(8 × 1536) = 24,576",
    "Key: 128 -> 32 = 128 × 32 = 4,096",
    "QK = (512 × 64) × (64 × 512) = 512 × 512",
    "k_proj     in=1536  out= 256",
    "| One expert | 3 × 768 × 2048 = 4 718 592 ≈ 4.5M |\n| One layer | 128 × 4.5M = 603 979 776 ≈ 0.6B |",  # of 1,048,576
    "| `q` | 768 × (12×64=768) | 589,824 |\n| `k` | 768 × (4×64=256) | 196,608 |\n| `v` | 768 × 256 | 196,608 |\n"
    "| `o` | 768 × 768 | 589,824 |\n| **Subtotal** | | **1,572,864** |",
    "1. Words (151936 * 256): 38,895,616 (~38.9M)\n2. Positions: 256 * 256 = 65,536\n3. Blocks (6):\n   - Attention: 263,168\n"
    "   - MLP: 525,568\n   - LayerNorms: 1,024\n   - Per block: 789,760 (~0.79M), 6 blocks: 4,738,560 (~4.74M)\n4. Norm: 512\n\n"
    "Total = 43,700,224 (~43.7M) parameters",
    "| Embedding | 50257 × 768 (31% of 124M) | 38,597,376 |\n| MLP | 768 × 3072 | 4,722,432 ≈ 4.7M |",  # both matrices
    "n_layer=12 (68% of 124M)\nMLP: 12 x 4.7M (45% of 124M)\nvocab = 50257 (31% of 124M)",
    "With 85,054,464 params (around 58M of them in the MLP)\n109,482,240 parameters — about 190M less than BERT large",
    "$d_{ff} = 11008 ≈ 8/3 × 4096$",  # rounded up to a multiple of 256
    "d_ff = 8/3 * 1024 = 2730.67 ≈ 2816",
    "batch,seq 8,2048 × 4096 = 67108864\nbatch,seq 4,1024 × 768 = 3145728",
    "The 0.5B parameters = 294 M + 148.375 M = 442.375 M = 0.432 B",  # of 1,024 M
    "2,127,057,600 parameters × 4 bytes = 8,508,230,400 bytes ≈ 7.93 GB",  # 7.924 GiB
    "67.95 GB / 120.8B weights ≈ 4.5 bpw",
    "Savings: 50257×768 = 38,6 млн параметров",
    "Large: 64 * 4096 * (3*16384 + 2*256*40) + 4096*32128 = 18.4e9.",
    "norms: 16×128 = 2K (Q) + 8×128 = 1K (K)",
    "it needs 1 (batch) * 6144 (width) * 2 (bytes, bf16) * 2048 (tokens) * 64 (layers) ~= 1536M",  # of 1,048,576
    "Both: 2,049 + 1,409,286,144 = 1,409,288,193 bytes ≈ 1.31 GB",  # cut, of 2^30
    "Experts (4):      4 × 12.3M     1.57B\nRouter:  8K   262K",  # of one layer, of 32
    "total ≈ 6.77 M\ntotal ≈ 9.93 M",  # of the next model
    "Words: 30522 × 768 ≈ 23.4M + positions 512 × 768 + segments 2 × 768 ≈ 0.4M",  # of the last two
    "| `k_proj` (+bias) | 896 × 128 | 114,816 |",
    "d_model = 768\nd_ff = 2048 = 2.67 × d_model",
    "2 × 151,936 × 2048 × 4\u202fB = 2,489,319,424B",
    "Active: 65.5 + 12×(10.5 + 104) + 65.5 = 1,503M",  # 104 is rounded too
    "| > 8 cards | TP=8 + PP=2+ | within a node |",
    "Total       ~860 GB+        ~160 GB         ~46 GB",
    "Product: 512³ FLOPs ≈ 268M FLOPs",  # of 134M multiplications, each with an addition
    "n = 8192\nd = 64\nBytes = 3n² + 4nd ≈ 3n²",
    "bytes/token = 2 × 80 × 8 × 128 × 2B = 327,680 B",
    "MLP: 2×(320→896) + (896→320) = 2×286K + 286K ≈ 860K",  # each is cut
    "Card: 10GB，加上权重 17.5GB = 27.5GB",
    "| Ecosystem | 4M developers | 1M developers |",
    "P_a = 2 × 100 × 768 = 153,600\nP_b = 3 × 768 × 768 = 1,769,472\nP_c = D = 768\n\n"
    "P_total = P_a + P_b + P_c = 1,923,840",  # one of them is no number of a line
    "Patches: num_patches = grid_size[2] * grid_size[5] = 196",  # items of code, no sizes
    "Bandwidth: 4.8 / 3.35 ≈ 43% more",  # above 1
    "Stride 2: (28 - 3 + 0) / 2 + 1 = 13 × 13",
    "Two 3×3 layers see as much: 3×3 = 5×5",
    "There are 4 neurons, each with 3 weights + 1 bias = 16 learnable parameters.",
    "共享5K + 各自2K = 11K tokens",
    "L = ½(0.85 - 2.0)^2 = 0.661",
    "A = ½×9×1.2 = 5.4",
    "| Conv1 (96 × 11 × 11 × 3) | 34,944 |",  # and 96 biases
    "The exponent: $254−127=127254 - 127 = 127$.",  # copied twice
    'answers = model.generate("23 + 4 × 6 = ?", n=10)',
    "x has shape (30 × 2) = 30 samples, 2 features each",
    "h = \\tanh(1.0 + 0.3697) = 0.8781",
    "arg: arctan((-1)/(-1)) = arctan(1) = 45°",
    "Clock: (1.2MHz / 38KHz) / 3 = 10.5",
    "Training: 7B params × 2T tokens = 8.4 × 10^22 FLOPs",  # six for each
    "<line x1={20} y1={80} x2={70} y2={85}",
    "KV: 2 × 48 × 128K × 2 bytes = 2 × 48 × 131072 × 2",
    "| SoundStream | 2021 | 320 | 75x | 1024 x 8 | first |",
    "| Block 2 | 128 × 56 × 56 | 73,984 |",  # the shape of its output
    "| Weights | 32.5 GB | 32.5 GB |\n| Rest | 4.08 GB | 1.02 GB + 4 bytes |\n| Sum | 36.58 GB | 33.52 GB |",
    "One token:\n  K: 80 × 64 × 128 × 2 bytes = 1.25 MB\n  V: 80 × 64 × 128 × 2 bytes = 1.25 MB\n  Total: 2.5 MB / token",
    "A tip: 20% = 15% + 5% = 30 + 10 = 40.",
    "Rate: 2000 × 1 : 500 × 12.8 = 2000 : 6400",
    "Half of it: $495 = 989 \\div 2$",
    "Each ~6.5 GB/个，3/4/5 模型 ≈39/79/131 GB，随",
    "| Mixtral 8x7B | 47B | ~100 GB |",
    "Its width is (2/3) × 4 × 4096 = 11008",
    "Scores: 32 × 128K × 128K × 2B = 32 × 16,384M × 2 = 1,048,576 MB",
    "One product takes 512x4x5120^2x2/312e12 = 344 microseconds",
    "Base (bf16): $14$~GB. State: $14 \\cdot 4 \\cdot 10^6\n= 56$~MB. Activations at batch~1, bf16: $\\sim 4$~GB.",
    "Total input tokens: 0\nTotal generated tokens: 40805\nTotal generated tokens (again): 40803",
    "t = 600 * 0.5 * 2 = 600\nt = min(2400 * 0.5 * 2, 640) = min(2400, 640) = 640",
    "The eigenvalues are 3\u30011, squared: 3^2\u30011^2 = 9\u30011",
    "BF16 has K=16，64/16=4；FP8 has K=32,128/32=4 steps",
    "Conv 7×7(64) stride=2 + MaxPool 3×3 stride=2",
    "r = 1.31\nTo solve: 0.5 × 105.9 = 0.5 × r × 57.5",
    "rest(187) = (uint8_t)(187 * 3) = 49",
    "To swizzle, XOR: 5 ^ 3 = b0101 ^ b0011 = b0110 = 6",
    "| Optimizer state | 56 GB | 19.3 GB | 65.5% |\n| + 8-bit | 28 GB | 4.9 GB | 82.5% |",
    "There are 28 samples (1 batch) × 12 positions = 336 words",
    "Attention: 64 heads (8 groups) × 128 = 8192",
    "The residual: 2x8 + 2x8 = 2x8 final input",
    "One tile: 1 row x 64 columns = 2 tiles",
    "Output size: 28 * 28 (32-5 + 1) = 28",
    "The weights are 6 (3 5 5 + 1) + 6 (4 5 5 + 1) + 1 (6 5 5 +1) = 1516",  # signs were lost
    "Quantized to -2, stored as -2 + 8 = 6 (0x6)",
    "\\sigma (0.4 + 0.2 × 3.8 + 0.5 × 1.2) = \\sigma (1.76) ≈ 0.85",
    "| C | `2 × 1,536` (3,072) | `N` (1,024) | 4,096 |",  # where it begins, its size, and where it ends
    "P = 8\nw = 7 × 10^9\nbeta = 900\nT = 2 × ((P-1)/P) × ((w × 2)/beta) = 2 × (7/8) × ((7 × 10^9 × 2)/(900 × 10^9)) = 1.75 × 15.56 ms = 27.2 ms",
    "| Part | 350M | 7B | 14B |\n|---|---|---|---|\n| words | 32k × 1024 = 33M | 32k × 4096 = 131M | 32k × 5120 = 164M |\n"
    "| layers | 24 × 12.7M ≈ 305M | 32 × 202M ≈ 6.46B | 40 × 317M ≈ 12.68B |\n| gate | ~0.07M | ~0.27M | ~0.33M |\n"
    "| **total** | **~338M** | **~6.59B** | **~12.84B** |",
    "Active: 0.93 + 30 + 0.1 + 8 × 44M × 58 + 2.6 ≈ 0.93 + 30 + 20.4 + 2.6 ≈ 54B",
    "You store 10 copies of 14GB = 140GB of weights",
    "5 × 5: 25 k^2 vs 9 × 4k^2 = 36k^2",
    "Training takes 9 年 / 8 / 0.6 ≈ 228 天",
    "Two 3 × 3 = 18 weights see as much as 5 × 5",
    "3×3×2 = 5×5 receptive",
    "FC: [1x1x4096]  memory:  4096  weights: 4096*4096 = 16,777,216\nFC: [1x1x4096]  memory:  4096  weights: 25088*4096 = 102,760,448\n"
    "FC: [1x1x1000]  memory:  1000 weights: 4096*1000 = 4,096,000\n\nTOTAL params: 124M parameters",
    "FP16 = 2\nper_token = 2 × 128 × 8 × 128 × 2 = 524,288 bytes ≈ 512 KB (FP16)",
    "attn 2·12288² + 2·(12288·1024) = 327.2M; MLP 3·12288·28672 = 1,056.9M; × 88 = 121.8B",
    "Each: 3 × 4096 × 11008 = 135.3M\nAll: 32 × 135.3M = 4,328M ≈ 4.3B",  # cut from 4,328.5M
    "## LeNet\n\n# 6×1×5×5 + 6 = 156\n# 16×6×5×5 + 16 = 2,416\n# 120×16×5×5 + 120 = 48,120\n# 120×84 + 84 = 10,164\n# 84×10 + 10 = 850\n"
    "\n\n\n\n\nwidth: 256\n\n\n\n\n\ntotal_params: 61,706",  # without the width
    "At the end: e = 1 - exp(-1.278) = 0.722",
    "Block 1: idx = 1 × 256 + 0..255 = 256..511",
    "Energy: ℏω(1 + 1/2) = 3ℏω/2, not one quantum",
    "A slip in a toy: it had 2 × 2 + 2 = 8 instead of 6.",
    "Weights: 7B × 2bytes → 14B × 2bytes = 14GB → 28GB (+14GB)",
    "所以 22B ≈ 8/128 × 235B 加上 attention 和 dense 部分",
    "sum = 0.185\nsum += 0.368 + 1.0 = 1.553",
    "A到达(32 token 提示词 + 16 token 问题 = 3个块)",
    "ω = 585,000 × 6,000,000 = 3.51 × 10^12\n\n| Quantity | Value | Unit |\n|---|---|---|\n| ω | 3.4 × 10^12 | rad/s |",
    "The file has 1503300328 bytes = ~1433 MB",
    "Memory = 2B parameters × 4 bytes each = 8B bytes = 8M KB = 8000 MB = 8 GB",
    "The rack: 72 × 192GB = 13.5 TB",  # of 1,024 GB
    "FLOPs: 36 × (3×2×1024×1280×5120 + 8×1024×1280² + 4×1024²×1280) + 2×50257×1024×1280 = 1,449B + 676.45B + 131B",  # cut
    "weights (TP=8): 17.5 GB\ncache (TP=8): 10 GB\nTotal: 27.5 GB\n\nWith 500K tokens:\n\ncache (TP=8): ~25 GB\nTotal: 42.5 GB",
    "| Model | A | B | C |\n|---|---|---|---|\n| one | 88.6 | 40.1 | 42.1 |\n| two | 88.6 | 40.0 | 42.2 |\n| three | 88.8 | 40.5 | 42.6 |\n"
    "| four | 88.8 | 40.4 | 42.9 |\n| five | 88.6 | 40.3 | 42.4 |",  # scores
    "gate = 576 × 1,536 = 884,736\n\nup = 576 × 1,536 = 884,736\n\ndown = 1,536 × 576 = 884,736\n\nMLP Total = 884,736 × 3 = 2,654,208",
    "\\begin{aligned}\nP &= 12 \\times 7087872 \\\\\n&\\quad + 38597376 \\\\\n&= 123651840\n\\end{aligned}",
    "# Words: 50257 × 288 = 14.5M... too much.\n# With d = 144: words = 50257 × 144 = 7.2M\n"
    "# Per layer: 4 × 144 × 144 + 3 × 144 × 384 = 249K\n# 8 layers = 2.0M → total ~9.2M",
    "| Scout | 17B × 16 experts | 109B | ~17B |",  # a model's name
    "Mixtral 8×7B 는 메모리 ≈ 90GB. 양자화해도 24GB+.",
    "m = 4\nStages: m × 16 MB × 2 (forward + backward) = 32m MB",
    "| 2x5 (2 core × 5 repeats) | 16 | 1.3519 |",
    "sda: ios=0/18, ticks=0/25313632, in_queue=25414292, util=98%\nsdb: ios=3/18, ticks=6/25211632, in_queue=25321112, util=98%",
    "# bf16 mixed: params + grads = 2+2, Adam = 4+4 = 12, total ~14",
    "Step 4: 237 × 6 = 1,442  ← ERROR! Should be 1,422",
    "block_size = 16, kv_dim = 4\n\n| Cache | `block_size × kv_dim × 4 × 2` = `16 × 4 × 4 × 2` | 512 B |\n"
    "| Other | `slots × kv_dim × 4 × 2` = `16 × 4 × 4 × 2` | 512 B |",
    "ffn_dim = round_to_64(256 * 8/3) = 704",
    "n = 3(pi/L)^2/8 = 3",
    "Q weight: 256×256 = 65,536 params\nK weight: 256×256 = 36 KB",  # in blocks of Q4_0
    "| Subtotal per layer | ~890,000 | ~668,000 |\n| × 4 layers | 3,560,000 | 2,670,000 |",
    "Blocks: 10 × (attention + MLP): ~3.1M each = 31M",
    "A picture of 1024² (= 4,096 tokens) is the default",
    # copied from a browser: drawn, as LaTeX, and drawn again
    r"层参数=6.71×107+1.34×108=2.01×108 （约2亿）\text{层参数} = 6.71 \times 10^7 + 1.34 \times 10^8 = 2.01 \times 10^8 \, \text{（约2亿）}"
    "层参数=6.71×107+1.34×108=2.01×108（约2亿）",
    r"参数=d⋅vocab_size=4096⋅50000=2.048×108 （约2亿）\text{参数} = d \cdot \text{vocab\_size} = 4096 \cdot 50000 = 2.048 \times 10^8 \text{（约2亿）}"
    "参数=d⋅vocab_size=4096⋅50000=2.048×108（约2亿）",
    "宽度为1/32 = 7x7的特征图",
    "面积：60×2=120，120×1=120",  # a comma between two equations
    "The output is `(batch, 1000/32 = 31.25, 224/32 = 7, 2048)`, or (1000/25 = 40, 200/25 = 8)",
    "Message(content='1. 60 × 2 = 120\\n2. 120 × 1 = 120\\n\\nDone')",
    "```\n    Subtotal per layer:      ~148,848\n    × 4 layers =                ~595,400   89.4%\n```",
    "## All\n- Words: 8192 × 512 = 4,194,304\n- Head: 512 × 8192 = 4,194,304\n- 16 scalars\n- Total: 8,388,624",
    "k_proj: 768×384 = 0.30M",  # of 0.295M
    "Single Block (~7.08M):\n├── Norms: 768 × 4 = 3,072\n├── QKV + bias: 768 × 2304 = 1,771,776\n├── Out + bias: 768 × 768 = 590,592\n├── Up + bias: 768 × 3072 = 2,362,368\n"
    "└── Down + bias: 3072 × 768 = 2,360,064\n\nHead: none",  # cut
    "Embeddings: 350 × 256 = 89,600\n\nSingle Block (~786K):\n├── Attention: 256 × 1024 = 262,144\n├── MLP: 256 × 2048 = 524,288\n\n"
    "4 Blocks:   4 × 786K     = ~3.14M\nFinal norm:              = 512\n\nTotal: ~3.23M parameters",
    "| Part | Formula | Count |\n|---|---|---|\n| Input | 8192 × 1024 | 8.39M |\n| Attention / layer | 4 × 1024 × 1024 | 4.19M |\n"
    "| MLP / layer | 2 × 1024 × 2048 | 4.19M |\n| Norms / layer | 2 × 2 × 1024 | 4.1K |\n| One layer |  | 8.39M |\n| 4 layers | 4 × 8.39M | 33.57M |",
    "- Tokens: 50257 · 640 → ~32.16M\n- Layer:\n  - Attention per block: 4 · 640^2 + 4 · 640 → ~1.64M\n  - FFN: 2 · 640 · 1280 + 1280 + 640 → ~1.64M\n"
    "  - LayerNorm: 2 · 2 · 640 → ~2.6K\n  - Total per block: ~3.28M\n- All layers (×36): ~118.22M",
    # a vocabulary of 16,384 is not the number of the positions
    "| Input | 16384 x 256 = 4194304 |\n| Positions | 64 x 256 = 16384 |\n| Layers | 8 x 525312 = 4202496 |\n| Final norm | 2 x 256 = 512 |\n"
    "| LM head | 256 x 16384 = 4194304 |\n| Total parameters | 12608000 |",
    "| 4 small + 2 large layers | 6 × 7,356,416 | 44,138,496 |",
    "Active = 26.54M + 4 × 24.88M + 0.37M + 2 × 2,880 = 26.54 + 99.52 + 0.37 + 0.006 ≈ 126.4M",
    "- words: 150000 × 4096 × 2 = ~1.23 GB\n- each of the layers:\n  - attention: four matrices\n  - MLP: 14336 × 4096 × 4 = ~235 MB\n  - norms: ~16 MB each\n- total per layer: ~350 MB\n"
    "- 32 layers: ~11.2 GB\n- head: ~64 MB\n\nTotal ~12.5 GB",  # not the sum of the last four: 11.5
    "# MLP 256 → 1024 → 256  -> fc1 256×1024+1024 + fc2 -> 1024×256+256 = 263,168+262,400=525,568",
    "KV: 2 heads of 128\n48 layers x 4,096 tokens = 805,306,368 B = 768 MiB",
    "`n_layers=32, d_model=4096, d_ff=11008`\nMLP: 2 × d_model × d_ff = 8 × d_model²",
    "24,576,000  (words)\n70,791,168  (8 layers)\n+      768  (norm)\n───────────\n95,367,936  ✓",
    "Each of 6 layers:\n- attention\n  - 4 × 512 × 512 = 1,048,576\n- MLP\n  - 512 × 2048 + 2048 × 512 = 2,097,152\n\n= `18,874,368`",
    "- Words: 32K × 1024 = 32M\n- Attention (per layer):\n  - in: 1024 × 3072 = 3.1M\n  - out: 1024 × 1024 = 1.0M\n  - Subtotal: 4.1M × 24 layers = 98.4M",
    "**Per layer:**\n- Q: 1024 × 1024 = 1.05M\n- O: 1024 × 1024 = 1.05M\n- Attention total: ~2.1M\n- Experts:\n  - up: 1024 × 2048 = 2.1M\n"
    "  - Each: 6.3M. 8 experts: 50.4M. Active: 2 experts = 12.6M.\n  - Router: 1024 × 8 = 8K\n  - MoE total: ~56.7M\n\nTotal per layer: ~58.8M",
    "| K | d × m | 1,048,576 |\n| V | d × m | 1,048,576 |\n| O | d × n | 2,097,152 |\n| Per-layer total | | 4,194,304 |",
    "d = 1024\n\n| Gate | d × d | 1,048,576 |\n| Up | d × d | 1,048,576 |\n| Norm | d | 1,024 |\n| Per-layer total | | 2,098,176 |",
    "gate: 4096 × 14336 = 58,720,256 ≈ 58.72M\nup: 4096 × 14336 = 58,720,256 ≈ 58.72M\ndown: 14336 × 4096 = 58,720,256 ≈ 58.72M\n"
    "MLP total: 58.72M × 3 = 176,160,768 ≈ 176.16M",
    "- 词嵌入：8192 × 128 = 1.05M\n- K 投影：128 × 128 = 16.4K\n- V 投影：128 × 128 = 16.4K\n单层总参数：32.8K",
    "Embedding: 8192 × 256 = 2.10M\nAttention: 4 × 256 × 256 = 262.1K\nMLP: 3 × 256 × 512 = 393.2K\nLayer: 655.4K\n6 layers: 3.93M\nTotal: 6.03M",
    "n_layers = 16\n\nper_layer = 25.96 million\nall_layers = n_layers * per_layer = 415.38 million",
    "Attention weights per block: 4 × 768 × 768 = 2,359,296\nAttention biases per block: 4 × 768 = 3,072\nMLP weights per block: 2 × 768 × 3072 = 4,718,592\n"
    "MLP biases per block: 3072 + 768 = 3,840\nLayerNorms per block: 2 × 2 × 768 = 3,072\nBlock total: 7,087,872",
    "Attention: 4 × 2048² = 16,777,216\nMLP: 2 × 2048 × 8192 = 33,554,432\nNorms: 2 × 2 × 2048 = 8,192\n"
    "One layer: 16,777,216 + 33,554,432 + 8,192 = 50,339,840\n6 layers: 6 × 50,339,840 = 302,039,040\nFinal norm: 2 × 2048 = 4,096\nTotal: 302,043,136",
    "Words:     8,192 ? 512 = 4,194,304\nBlock (?6):\n  - Norm:    512 ? 2 = 1,024\n  - QKV:     512 ? (3?512) = 786,432\nTotal:     ? 4.98M",
    "embedding (Embedding)   (None, 128, 256)    65536\nblock_0 (Block)   (None, 128, 256)    789760\nlayer_norm (LayerNorm)   (None, 128, 256)    512\n"
    "dense (Dense)   (None, 128, 256)    65536\n==========\nTotal params: 921,344",
    "wte.weight      torch.Size([256, 384]) 98304\nh.0.c_attn.weight   torch.Size([384, 1152]) 442368\nh.0.c_attn.bias     torch.Size([1152]) 1152\n"
    "h.1.c_attn.weight   torch.Size([384, 1152]) 442368\nh.1.c_attn.bias     torch.Size([1152]) 1152\nTotal parameters: 985344",
    "GPT(\n  (wte): Embedding(5000, 128)  # 640000\n  (h): ModuleList(\n    (0-1): 2 x Block(  # 82304 each\n      (ln): LayerNorm((128,))  # 256\n"
    "      (up): Linear(128, 512)  # 66048\n      (proj): Linear(128, 128)  # 16512\n    )\n  )\n)\nTotal: 805632",
    "| GPUs | Models |\n|---|---|\n| 1 × 24 GB | 7-8B |\n| TP=2, PP=1 | 13B–34B |",
]


@pytest.mark.parametrize(
    "line",
    [
        "| Total Parameters | 2.6B | 1.0B | -62% (smaller) |",
        "change = -0.62 = 2.6B",
        "| Non-embed | ~85M | ~50.7M | -40% |",
        "slope = -1.4648/3 ≈ -0.4883",
    ],
)
def test_nothing_far_apart_is_called_right(line):
    sides = [
        (one.left, one.right) for one in tallystick.check(f"Sizes: 2 × 768 = 1,536\n{line}\n").equations if one.correct
    ]
    assert all(abs(left - right) <= abs(left) / 100 for left, right in sides)


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_meant_is_not_wrong(text):
    answer = tallystick.check(f"Sizes: 2 × 768 = 1,536\n{text}\n")
    assert [equation for equation in answer.equations if not equation.correct] == []


def test_a_rounded_total_is_no_sum_of_other_sections_but_for_a_digit():
    text = (
        "## Small\n\nWords: 10000 × 512 = 5.12M\nLayers: 12 × 15.6M = 187.2M\nHead: 512 × 10000 = 5.12M\n\n"
        "## Base\n\n```\nd_model: 768\nTotal params: ~183M\n```\n\n## Medium\n\n```\nd_model: 1024\nTotal params: ~350M\n```\n"
    )
    assert all(equation.correct for equation in tallystick.check(text).equations)


def test_sizes_of_an_example_are_no_slip_where_the_models_own_follow():
    text = "d_model = 512\nd_ff = 2048\nOne: 512 * 2048 = 1,048,576\n\nd_model = 768\nd_ff = 3072\n"
    example = tallystick.check(text, against="gpt2")
    assert [equation for equation in example.equations if not equation.correct] == []
    lone = tallystick.check("d_model = 512\nOne: 768 * 3072 = 2,359,296\n", against="gpt2")
    assert [equation.line for equation in lone.equations if not equation.correct] == [1]


def test_a_variable_has_its_exact_value_and_not_what_it_is_about():
    text = "d = 768\nlayer = 12 × d² + 4 × d\n      ≈ 12 × d²\nall = 16 × layer = 16 × (12 × d² + 4 × d)\n"
    assert all(equation.correct for equation in tallystick.check(text).equations)


def test_a_size_in_a_headings_parentheses_holds_below_it():
    text = "#### One layer (以 d_model=512, num_heads=8 为例)\n\nW: 512 × 512 = 262,144\nMLP (inner = 4 × d_model = 2048):\n"
    assert all(equation.correct for equation in tallystick.check(text, against="gpt2").equations)


@pytest.mark.parametrize(("total", "wrong"), [("46.7B", 0), ("46.9B", 1)])
def test_a_sum_of_rounded_numbers_may_have_the_models_total(total, wrong):
    text = f"Embedding: 4096 × 32000 = 131M\nAll: 131M + 32*1.44B + 131M = {total}\n"
    answer = tallystick.check(text, against="mixtral-8x7b")
    assert sum(not equation.correct for equation in answer.equations) == wrong


COLUMN = """\
Token embedding: 50257 × 768 = 38,597,376
Position embedding: 1024 × 768 = 786,432
12 blocks: 12 × {block} = {blocks}
Final norm: 2 × 768 = 1,536
{more}--------------------------------
Total: {total}
"""
EXACT = {"block": "7,087,872", "blocks": "85,054,464", "more": "", "total": "124,439,808"}


@pytest.mark.parametrize(
    ("change", "should_be"),
    [
        ({"block": "7,084,800", "blocks": "85,017,600"}, 124_402_944),  # and not what is listed, though the model's
        ({"total": "124.0M"}, 124_439_808),
        ({"total": "124.4M"}, None),
        ({}, None),
        ({"block": "7,084,800", "blocks": "85,017,600", "more": "Biases of the attention, 36,864\n"}, None),
        ({"total": "124,402,944", "more": "less the biases: 36,864\n"}, None),
        ({"total": "124,402,944", "more": "Biases: -36,864\n"}, None),
        ({"total": "354,823,168"}, None),  # far from it: another model's
        ({"total": "125M"}, None),  # about
        (
            {"total": "123,653,376", "more": "Tied to it, and not counted, 50257 × 0 = 0\n"},
            None,
        ),  # without the positions
        ({"more": "  of them the norms: 2 × 12 × 1,536 = 36,864\n"}, None),
        ({"block": "7,084,800", "blocks": "85,017,600", "more": "\nSummary\n"}, None),  # underlined
    ],
)
def test_a_total_below_a_drawn_line_is_the_sum_of_the_column(change, should_be):
    answer = tallystick.check(COLUMN.format(**EXACT | change), against="gpt2")
    assert [e.should_be for e in answer.equations if not e.correct] == ([] if should_be is None else [should_be])


@pytest.mark.parametrize(
    ("total", "model", "should_be"),
    [
        ("~6.7B", None, 6_573_500_000),
        ("~6.7B", "llama-2-7b", None),  # it is right of the model, whatever the rows leave out
        ("~6.8B", "llama-2-7b", 6_573_500_000),
        ("~6.6B", "llama-2-7b", None),
        ("~12.9B", "llama-2-7b", None),
        ("6.57B", "llama-2-7b", None),
    ],
)
def test_a_total_of_a_table_is_the_sum_of_its_rows(total, model, should_be):
    text = (
        "| Part | Count |\n|---|---|\n| Embedding | 32000 × 4096 = 131M |\n| Attention (32 layers) | 32 × 67M = 2147M |\n"
        "| MLP (32 layers) | 32 × 134.2M = 4295M |\n| Norms | 0.5M |\n| Head | shared |\n"
        + f"| **Total** | {total} |\n"
    )
    answer = tallystick.check(text, against=model)
    assert [e.should_be for e in answer.equations if not e.correct] == ([] if should_be is None else [should_be])


def test_a_table_of_sizes_has_no_sum():
    text = (
        "| | Large | Small |\n|---|---|---|\n| width | 1536 | 1024 |\n| layers | 28 | 20 |\n| inner | 3072 | 1536 |\n"
        "| Parameters in total | ~5,000 | ~2,700 |\n"
    )
    assert all(e.correct for e in tallystick.check(text).equations)


def test_variables_that_get_their_values_together():
    code = "d, n_head, size = 768, 12, 64\na, b = 3, f(4)\n\nattention = 4 * d * n_head * size  # 2,359,297\n"
    answer = tallystick.check(code)
    assert [(e.line, e.should_be) for e in answer.equations] == [(4, 2_359_296)]


@pytest.mark.parametrize(
    ("above", "layers", "should_be"),
    [
        ("Attention and MLP: 2,362,368 + 4,722,432 = 7,084,800", "12 layers: 85,054,464", None),  # and their norms
        ("Attention and MLP: 2,362,368 + 4,722,432 = 7,084,800", "12 layers: 85,017,600", None),
        ("Total of a layer: 2,362,368 + 4,722,432 = 7,084,800", "12 layers: 85,017,610", 85_017_600),
        ("Attention and MLP: 2,362,368 + 4,722,432 = 7,084,800", "× 12 layers: 85,017,610", 85_017_600),
        ("Total of a layer: ~7.1M", "12 layers: ~85M", None),
    ],
)
def test_layers_are_so_many_times_the_total_of_one(above, layers, should_be):
    answer = tallystick.check(f"{above}\n{layers}\n", against="gpt2")
    assert [e.should_be for e in answer.equations if not e.correct] == ([] if should_be is None else [should_be])


@pytest.mark.parametrize("model", ["gpt2-xl", None])
@pytest.mark.parametrize("drawn", ["------------------\n", ""])
def test_a_tied_head_that_is_listed_is_not_added(drawn, model):
    text = (
        "Token embedding: 50257 × 1600 = 80,411,200\nPositions: 1024 × 1600 = 1,638,400\n"
        "48 blocks: 48 × 30,740,800 = 1,475,558,400\nFinal norm: 2 × 1600 = 3,200\n"
        f"Head (tied): 50257 × 1600 = 80,411,200\n{drawn}Total: 1,557,611,200\n"
    )
    answer = tallystick.check(text, against=model)
    assert all(equation.correct for equation in answer.equations)
    assert answer.total_claimed == 1_557_611_200


# Right as they stand, each with its total; what is in them tempts one to add up wrongly.
RIGHT_COLUMNS = {
    "a line of equals signs": (
        "Token-Embedding: 50.257 × 768 = 38.597.376\nPositionen: 1.024 × 768 = 786.432\n"
        "12 Schichten: 12 × 7.087.872 = 85.054.464\nLetzte Normierung: 2 × 768 = 1.536\n==========\nInsgesamt: 124.439.808\n",
        "gpt2", 6, 124_439_808,
    ),
    "parts below their sum": (
        "Embeddings: 82,049,600\n  token: 50257 × 1600 = 80,411,200\n  position: 1024 × 1600 = 1,638,400\n"
        "Blocks: 48 × 30,740,800 = 1,475,558,400\nFinal norm: 2 × 1600 = 3,200\n-----\nTotal: 1,557,611,200\n",
        "gpt2-xl", 7, 1_557_611_200,
    ),
    "two columns of numbers": (
        "| part | how | gpt2 | gpt2-xl |\n|---|---|---|---|\n| wte | 50257 × d | 38,597,376 | 80,411,200 |\n"
        "| wpe | 1024 × 768 | 786,432 | 1,638,400 |\n| blocks | 12 × 7,087,872 | 85,054,464 | 1,475,558,400 |\n"
        "| final | 2 × 768 | 1,536 | 3,200 |\n| Total | | 124,439,808 | 1,557,611,200 |\n",
        "gpt2-xl", 7, 1_557_611_200,
    ),
    "the product of one layer and the number of all": (
        "| part | one layer | all |\n|---|---|---|\n| attention | 4 × 4096² | 2,147,483,648 |\n"
        "| mlp | 3 × 4096 × 11008 | 4,328,521,728 |\n| embeddings | 2 × 32000 × 4096 | 262,144,000 |\n| Total | | 6,738,149,376 |\n",
        None, 6, 6_738_149_376,
    ),
    "a line below which nothing is added": (
        "wte: 50257 × 768 = 38,597,376\nwpe: 1024 × 768 = 786,432\nblocks: 12 × 7,087,872 = 85,054,464\n\n"
        "Summary\n-------\nTotal: 124,439,808\n",
        "gpt2", 7, 124_439_808,
    ),
    "what is taken away": (
        "wte 50257 × 1600 = 80,411,200\nwpe 1024 × 1600 = 1,638,400\nblocks 48 × 30,740,800 = 1,475,558,400\nfinal 3,200\n"
        "lm_head 50257 × 1600 = 80,411,200\ntied  −80,411,200\n──────\nTotal 1,557,611,200\n",
        "gpt2-xl", 8, 1_557_611_200,
    ),
    "numbers of two units": (
        "| 部分 | 計算 | 数 |\n|---|---|---|\n| 埋め込み | 50257 × 768 | 3860万 |\n| 位置 | 1024 × 768 | 79万 |\n"
        "| ブロック | 12 × 708.8万 | 8505万 |\n| 合計 | | 1億2444万 |\n",
        "gpt2", 6, 124_440_000,
    ),
    "a number that is said twice": (
        "合計：  124,412,160個\n        ≈ 124.4M（1億2400万）\n", None, 1, 124_412_160,
    ),
    "a total with its embeddings": (
        "Por capa: 4 × 768² + 8 × 768² = 7.077.888\n12 capas: 85 millones\nTotal con embeddings: 124 millones\n",
        "gpt2", 3, 124_000_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_COLUMNS)
def test_a_right_column_is_not_called_wrong(name):
    text, model, line, total = RIGHT_COLUMNS[name]
    answer = tallystick.check(text, against=model)
    assert [equation for equation in answer.equations if not equation.correct] == []
    assert (answer.total_line, answer.total_claimed) == (line, total)


@pytest.mark.parametrize(
    "text",
    [
        "| Caching | 30-50% | 1 |\n| Cards | 2024-12 | 4K |\n| Routing | 0.2-0.5 | 0.9 |\n",
        "| BLOOM | 2022 | 46 + 13 | languages |\n| SDXL | 2023 | 128 × 128 × 4 | latent |\n",
        "| Full | 14GB | 1 x A100 80GB |\n",
        "if step % 20 == 0 or step == 99:\n",
        "steps = 40\nrun(steps=40)\nRANK=0 STAGE=0 LAYERS=14\nRANK=1 STAGE=0 LAYERS=14\n",
        "Workgroup size:   1024(0x400)\n",
        "a = 3\nb = 5\nIf a·b + a = 0 or 2·a = b, then it holds.\n",
        "(128 × 784) @ (784 × 1) = (128 × 1)\n",
        "With I=128, J=64, K=128: 128 × 64 = 8,192.\n",
        "Combinations: 1024^8 ≈ 10^24\n",
        "Hosts: 16 × 20 × 28 / 2 × 2 = 2,240\n",
        "Sent: 524,288 × 7168 × 2 / 1024³ = 7.00 GB\nActivations: 2 × 7 × 2^30 / 2^30 = 14 GiB\n",
        "Speed: 1830 × 10^6 × 512 × 2 × 528 / 10^12 = 989.43 TFLOPS\n",
    ],
)
def test_pages_around_a_count_are_not_accused(text):
    answer = tallystick.check(f"{text}Embedding: 100 × 768 = 76,800\n")
    assert [equation.text for equation in answer.equations if not equation.correct] == []


def test_a_number_that_is_taken_from_words_is_not_judged():
    text = r"\text{tied} = \text{counted} - \underbrace{|\text{out\_head}|}_{38{,}597{,}376} = 124{,}412{,}160 \approx 124\text{M}"
    equations = tallystick.check(f"{text}\n").equations
    assert [(one.left, one.right, one.correct) for one in equations] == [(124_412_160, 124_000_000, True)]


def test_other_models_next_to_this_one_are_not_its_sum():
    text = (
        "| Size | Value |\n|---|---|\n| Parameters | 124,439,808 |\n| Hidden dim | 768 |\n| Vocabulary | 50,257 |\n\n## Others\n\n"
        "| Feature | This | That | Other |\n|---|---|---|---|\n| Params | 124M | 150M | 170M |\n| Layers | 12 | 16 | 24 |\n"
    )
    assert [one for one in tallystick.check(text, against="gpt2").equations if not one.correct] == []


def test_a_layer_several_times_is_not_all_that_a_total_adds():
    text = (
        "- Tokens: 256×256 → ~65.5K\n- Positions: 512×256 → ~131.1K\n\nPer layer:\n\n- Attention: 4×256^2 + 4×256 → ~263.2K\n"
        "- FFN: 2×256×1024 + 1024 + 256 → ~525.6K\n- LayerNorm: 2×2×256 → ~1.0K\n- Per-layer total: ~789.8K\n\n"
        "- 4 blocks: 4×789.8K → ~3.16M\n- ln_f: 2×256 → ~512\n- Gesamt: ~3.36M\n"
    )
    model = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 512, "n_embd": 256, "n_layer": 4, "n_head": 4}
    assert [one for one in tallystick.check(text, against=model).equations if not one.correct] == []


def test_a_symbol_behind_its_name_multiplies_nothing():
    text = "vocab=50257, d=768\n\nd_model d = 768\nn_layers L = 12\nd_ff d_ff = 4·d = 3072\n"
    assert [one.text for one in tallystick.check(text, against="gpt2").equations if not one.correct] == []
