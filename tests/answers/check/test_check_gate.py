"""Two sides are called unequal only where no other reading of the text makes them equal."""

from __future__ import annotations

import pytest

import tallystick

COUNT = "Sizes: 2 × 768 = 1,536\n"

NOT_ACCUSED = [
    "Read: 59 MB / layer = 4.1 GB",  # a rate, then all layers
    "Layer: 3 × 4096 × 11008 = 135,266,304 (≈ 135.2M)",  # cut
    "all = 59 MB/layer + 3 = 4.1 GB",
    "P: 1 / 3 = 0.33",
    "Blocks: 12 × 32 × 4096² ≈ 12 × 32 × 16.7M ≈ 6.4B",  # a factor is cut
    "KV cache: 2 × 32 × 32 × 128 × 256k × 2 = 128 GB at 256k BF16",  # both letters count 1,024
    "K: 4096 × (8 × 128 = 1024) = 4,194,304",
    "Shapes: 3 x 4   4 x 5 = 3 x 5",
    "x2 = 1.000 (exact)    x2 = 1.000 (exact)",
    "x2 = 1.000\nx2 = 1.000 (exact)    x2 = 1.000 (exact)",
    "All: 124,439,808 parameters ≈ 249M",  # in bytes
    "All: 2 * 32000 * 4096 + 32 * 4096^2 * 14.5 = 250M + 7.25B",  # letters of 1,024
    "Boyut: 4096 × 32000 = 131.072.000, 2 × 771,767,296 = 1,543,534,592",  # dots and commas
    "Decoder: 6 × (2.36 + 2.36 + 0.0045 + 0.1 + 4.72) = 57.27M",  # in millions
    "(ffn)160*160*2*12 + (cross)160*160*4*6 + (own)(80*80*4 + 80*80*2)*12 = ~1.69M",
    "Embedding: ~544.5 MB (151936 × 896 × 4 bytes)",
    "Embedding: 519 MB (151936 × 896 × 4 bytes)",  # MiB
    "Active: 40.5 + 6 × (8.44 + 90) + 40.5 = 670M (~0.7B)",  # in millions, with its rounding
    "All: 40.5 + 7,200 + 40.5 = 7281M (~7.3B)",
    "Memory: 121,500,000 × 16 = 1,944,000,000 B = 1854.0 MiB",  # 1853.94, rounded up
    "Wte (30,522,880) + Wpe (524,288) + \\text{LN}_f (1,024) = 31,048,192",
    "layer = 4 × 640 × 640 = 1,638,400 (attention)\n      + 2 × 640 × 2560 = 3,276,800 (MLP)\n"
    "      + 4 × 640 = 2,560 (norms)\n      = 4,917,760 per layer",
    "// embed 32000·640 (20,480,000) + 6 blocks of [norm 1280 + attend\n"
    "// (1,638,400)] = 6·4,917,760 (29,506,560) + head (20,480,000) = 70,466,560",
    "The expert grows from 311M to ≈ 427M (+37%).",
    "专家从 311M 涨到 ≈ 427M（+37%）",
    "Conv2d: 3×16×16×768 = 589,824\n位置: 197×768 = 151,296\n\n每个 Block:\n- QKV: 768×(768×3) = 1,769,472\n- Proj: 768×768 = 589,824\n- fc1: 768×3072 = 2,359,296\n"
    "- fc2: 3072×768 = 2,359,296\n\n单个 Block: ~7M 参数\n12 个 Block: ~84M 参数\n\n"
    "分类头:\n- Linear: 768×1000 = 768,000\n\n总计: ~86M 参数",
    "d_model = 512\nd_ff = 1408\n\n| d_ff | 256 × 5.5 ≈ 8/3 × 512 ≈ 1365 |",
    "d_ff = 2048\n\nA deeper one has 24 layers + d_ff = 1792:",
    "**(d) 32 层** ≈ $1.45 \\times 32 \\approx 46.4\\text{B}$",
    # Numbers that count nothing.
    "skip: -1.5 * 12 = 0.18 of the scale",
    "After 8 steps: 0.35 ^ 8 = 0.0013",
    "BATCH=8 # 4",
    "dim0 = 1336 # = 8 * 167\ndim0 = 1344 # = 21 * 64",
    "height = 640\nwidth = 640\nheight = width = 320",
    "False (66/264 kept)    31.05       1.044x",
    "| ViT-X/15   | 20               | 15x15        |",
    "The rate 2,0e-3 = 5,317 is the best",
    # Superscripts that were lost when the text was copied.
    "| A | 18 | 218 = 262,144 | 218 - 2 |",
    "It counts to 164-1=65535, more than 4 digits do",
    # A number that goes on behind what looks like its end.
    "Hosts = 2^17 = 131, 072",
    "# waste = 2,621,440 / 25,165,824 = 10.41666...%",
    "k = 48*3 - 12 = 100 + 32? No",
    "hidden = 512 * ((7099 + 512 - 1) // 512) = 7168",
    "Shapes: [19x512] x [512x512] or [512x256] = [19x512] or [19x256]",
    "perToken = 2 × 16 × 8 × 64 × 2 = 32,768 bytes = 32.00 KB/tokenpeakBytes = 3 × 32,768 = 98,304 bytes",
    # Sums worked out step by step.
    "Altogether: 2048 + 3072 + 5120 = 2048 + 3072 = 5120 + 5120 = 10240.",
    "36*52: 36*50 = 1800 + 36*2 = 1800 + 72 = 1872",
    "Rows: `30000*1024` = 30_720_000 / 8 (TP=8) => 3_840_000 a rank",
    "Cache: 3 × 1024 × 24 × 2048 × 2 = 301MB (each) × 24 = 7.2GB",
    "Cache: 1 × 1024 × 16 × 1024 × 2 = 32MB (each) × 16 = 0.5GB",
    "vocab_size = 30000\nhidden_size = 640\n30,000 vocab_size × 640 hidden_size = 19,200,000",
    # Other units.
    "Moved: 32,768 tokens × 5120 × 2 bytes = 335 MB a layer",
    "The buffer holds 64 KB = 64 × 1024 / 4 = 16384 numbers",
    "The prompt: 2 * 2 * 1024 * 13B = 52TFLOPs",
    "saved `(8.25 - 8.04)/8.25*100` ~= 2.5% of the time",
    "limit: 3.7 * 1024 * 1024 * 1024 = 3_972_844_748",
    # Counts before a product, types behind names, functions.
    "`load.x4` 加载 4 个 9×9 矩阵 = 324 个 FP16 元素",
    "A 是 24×24 = 9 个 8×8，B 是 24×8 = 3 个 8×8",
    "base = 500\nf32 = 0.125\nrope.base f32 = 500.0",
    r"Choices: $\binom{9}{2} = 36$",
    "batches = 32\nbatches = 9,000 / 32 = 281 batches",
    "$$4k = 9 \\Rightarrow k = 2.25$$",
    # Bytes: B for one byte, KB for 1,024, and rows with a column of them.
    "W4A16: 9B × 0.5B = 4.5 GB",
    "Shared memory per block: 48 KB = 49152 bytes",
    "| Tile | Size |\n|---|---|\n| 64×256×64 | ~48 KB |",
    "4096 x 4096 x 2048 |    9.600 ms |   114.3 TFLOPS | PASS",
    "| `1 × 1` | 0.5 |",
    # Rates and columns: what a unit with a slash says is of another quantity than the next number.
    "Stored in bf16: 1024 x 7168 x 2 = 15MB/layer = 0.4GB total",
    "The link gives 50G (2×25G) ÷ 8 = 6.25 Gbps each",
    "- Price: ~$2/1M tokens = $40 a day",
    "| Variant | 5.25B | +0.25B (+4.9%) |",
    "4096 x 4096 x 4096 |    8.200 ms |   151.3 TFLOPS | PASS",
    "d_model = 4096                      d_model = 512",
    "a gateway ~5 万 = 400 万 ÷ 5 万 = ~80 hosts",
    "N = 4096\nd = 64\n| Scores | 2·N²·d = 17.6G | N²·4 = 64MB |",
    "| Link of type 3 | 16x100 | 400 | old |",
    "| Inner size | 11008 | 2 × 11008 |",
    "| $10^{22}$ | $3.17 \\times 10^{22}$ | too small |",
    "| Image (256×256) | ~1K | quick |",
    "n = 3 × 668,000 = 2,004,000\nAn even number is n = 2k for some k.",
    # Variables that may have other values here, or are units.
    "$$0.95 = 2.47 - 1.28p$$",
    "p = 1\nThe loss: 3.5 = 2.47 - 1.28 p",
    "B = 64\nEffective: 70B × 3.78 = 265B",
    "C = 6 × 7 × 10^9 × 10^12 = 4.2 × 10^22\nThe budget here: $C = 7.3 \\times 10^{22}$",
    "n = 64\ns = 8192\nh = 4096\nV = 2 × n × s × h = 2 × n × 4096 × 6144",
    "Local = 4 * (16 + 16 + (16 * 128)) = 8320 B ≈ 8 KB",
    "head_dim = 768 // 12",  # a quotient of Python's, no comment
    # Numbers that are rounded, cut, or count 1,024.
    "gate = 40 → tanh(1)  ≈ 0.76 → 40 × 0.76 = 30.5",
    "W: 4096 × 4096 = 16.7M\nB: 16 × 4096 = 65K\nW: 4096 × 4096 = 16M",
    "seq_len = 65536   # 64K",
    "Patches: (1280/16) * (720/16) * (25/2) = 80 * 45 * 12 = 43,200",
    "One GPU: 990TFLOPS * 0.4 = 1000 * 10^12 * 0.4 = 400 * 10^12",
    "W8A16:   9B × 1B     = 9 GB   (half: 1/2)",
    "The pods hold `7168 * 32 GB = 229TB`, 2 * 64 * 256 = 33kB each",
    "注意力: 4 × 4096 × 4096 = 6700 万",  # rounded to hundreds of 万
    "Largest: 2^16 × 1.999 ≈ 131072",
    # Ranges and dates.
    "2026-04-23 ~ 2026-04-24",
    "2026/04/23 = day 3, 2026-04-25 ≈ 27",
    "Exponents: 2^-6 ~ 2^9",
    "A text of 1000 字有 ~5000 characters",
    # A function is no size, and digits set apart are one number.
    "d = 11 × log_10(2) = 11 × 0.30103 ≈ 3.31",
    '先心算 $1 2×1 2×7 6 8^2 ≈ 8 5"M"$，加 $5 0 2 5 7×7 6 8≈3 9"M"$',
    "| `c_attn` | (768, 2304) | 1,771,776 |",  # with its bias
    "seq_len = 1024\nTotal: 4 × seq_len^2 + seq_len ≈ 4 × seq_len^2",  # the smaller term is left out, as the sign says
    "k = 1\nRouter: 4096 × 128 =524k, 每个 Expert = 134M",
]

ACCUSED = [
    ("Hosts = 2^17 = 131,027", 131_072),
    ("Altogether: 2048 + 3072 + 5120 = 10,420", 10_240),
    ("Buffer: 64 × 1024 × 4 = 264,144 bytes", 262_144),
    ("Head: 512 × 9,000 = 4.5M", 4_608_000),
    ("Table: 30,522 × 768 = 23.9M parameters", 23_440_896),
    ("All layers: 16 × 7.5M = 114M", 120_000_000),
    ("All of it: 2 × 50 × 4096 = 904,600 bytes ≈ 27 GB", 409_600),  # what is not judged ends no chain
    ("Attention: 2 × 704 = 2,368", 1_408),  # only numbers
    ("Share: $38{,}597{,}376 / 124{,}000{,}000 \\approx 13\\%$", 3_859_737_600 / 124_000_000),
    ("Altogether 312,612,160 ≈ 132.6M (133 million)", 132_600_000),
    ("n = 64\ns = 4096\nV = 2 × n × s = 2 × 64 × 4069", 4_096),
    ("Embedding: 50257 × 768 = 38,579,376 p", 38_597_376),
    ("Gate: 30 × 0.76 = 23.9", 22.8),
    ("W: 4096 × 4096 = 16.5M", 16_777_216),
    ("Rows: 250 × 16 - 7 = 3,939", 3_993),
    ("wpe = 1024 * 768  // 786,342", 786_432),
    ("Memory: 8,508,230,400 / 1024 KB = 8,309,803.125 KB", 8_308_818.75),  # no unit explains so little
    ("Not picked by 8 tokens: 0.90625^8 = 0.444", 0.90625**8),
    ("12 blocks: (72.8 + 154)G × 12 ≈ 2,668G", 2_721_600_000_000),
    ("Most: 2026 × 768 = 1,555,986", 1_555_968),
    ("total ≈ 38.6 + 106 ≈ 125M", 144_600_000),  # in millions
    ("P ≈ 11.274+1.606 = 72.880B", 12_880_000_000),  # a digit, in billions
    ("12 transformer blocks × (4 × 768² + 8 × 768²) ≈ 12 × 8.85M", 7_077_888),
    ("B: [64 x 4] = 257 parameters", 256),
    ("d_query (128) * d_embed (12,288) = 1,572,964 per head", 1_572_864),
    ("| `c_fc` | (768, 3072) | 2,355,296 |", 2_359_296),
    ("| $W_h^Q$ | $(512, 64)$ | $32168$ |", 32_768),
    ("// 3 * 4096 * 14336 = 176,160,738 ~ 176M", 176_160_768),  # a comment of code
    ("Active: $\\frac{33,816,576}{135,266,304} = 0.28$", 0.25),
    ("P(idle) = 1 - 6/64 = 0.94625", 0.90625),
    ("Azalma: 131.072 / 16.777.216 = %2.78", 0.78125),  # Turkish
    ("$$ 38{,}597{,}376 \\times 4 = 154{,}389{,}504 \\text{ bytes} \\approx 754 \\text{ MB} $$", 154_389_504),
    ("W_V: 4096 × 4096 = 16,777,616 パラメータ / 行列", 16_777_216),
    ("12 layers × 7,087,872 params/layer = 85,054,564 params", 85_054_464),
    ("2 * 8 kv_heads * 128 head_dim * 4096 = 8,388,808", 8_388_608),
    ("Memory: 14 + 84 + 28 = 726 GB", 126_000_000_000),
    ("Layer: 3 × 4096 × 11008 = 135,266,304 (≈ 115.3M)", 135_266_304),
    ("Decoder: 6 × (2.36 + 2.36 + 0.0045 + 0.1 + 4.72) = 54.25M", 57_267_000),
    ("Embedding: ~460 MB (151936 × 896 × 4 bytes)", 544_538_624),
    ("K: 4096 × (8 × 128 = 1024) = 9,194,304", 4_194_304),
    ("K: 4096 × (8 × 128 = 1034) = 4,194,304", 1_024),
    ("All: 124,439,808 parameters ≈ 142M", 124_439_808),
    ("all = inner + layers × per_layer\n    = 39.4M + 12 × 7.3M + 1.5K ≈ 124.4M", 127_001_500),
]


@pytest.mark.parametrize("text", NOT_ACCUSED)
def test_what_another_reading_makes_right_is_not_accused(text):
    answer = tallystick.check(f"{COUNT}{text}\n")
    assert [(one.left, one.right) for one in answer.equations if not one.correct] == []


@pytest.mark.parametrize(("text", "should_be"), ACCUSED)
def test_what_no_reading_makes_right_is_accused(text, should_be):
    answer = tallystick.check(f"{COUNT}{text}\n")
    assert [one.should_be for one in answer.equations if not one.correct] == [should_be]


def test_what_is_not_judged_says_why():
    text = f"{COUNT}A: 218 - 1 = 262,143\nB: 64 KB = 64 × 1024 / 4\nC: -1.5 * 12 = 0.18\nD: BATCH=8 # 4\n"
    reasons = {unread.line: unread.why for unread in tallystick.check(text).unread}
    assert reasons == {
        2: "is right if a superscript was lost",
        3: "converts to another unit",
        4: "relates fractions, or numbers that are not positive, and counts nothing",
        5: "sets one number equal to another, and computes nothing",
    }


def test_two_numbers_of_which_the_model_has_one_are_judged():
    answer = tallystick.check("Final norm = 1,563 = 1,536\n", against="gpt2")
    assert [one.correct for one in answer.equations] == [False]


def test_the_inner_size_of_a_config_without_one_is_not_its_width():
    text = "Sizes:\nd_model = 768\nd_ff = 3072\nMLP: 2 × d_model × d_ff = 4,718,592\n"
    answer = tallystick.check(text, against="gpt2")
    assert [one.correct for one in answer.equations if one.line > 2] == [True]


def test_a_wrong_number_of_bytes_is_accused_whatever_follows_it():
    text = r"$C = 2 × 50 × 8 × 128 × 4096 × 2 = 1,073,741,824 \text{ bytes} = 1.07 \text{ GB (배치 1 기준)}$"
    wrong = [one.should_be for one in tallystick.check(f"{COUNT}{text}\n").equations if not one.correct]
    assert wrong[0] == 838_860_800
