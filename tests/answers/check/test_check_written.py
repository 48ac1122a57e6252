"""Ways of writing a product or a sum: each is right as it stands, and its slip is found."""

import pytest

import tallystick

ASTERISKS = "input embedding 768 ∗ ( 30522 + 512 + 2 ) 768*(30522+512+2) 768(30522+512+2) {0} {0} {0}"
# Name: the line, its number, another number, and what that should be.
WRITTEN = {
    "a formula that ends in a variable": ("dense: I × H + H = 3072 × 768 + 768 = {}", "2,360,064", "2,359,296", 2_360_064),
    "a count of each": ("8 blocks: ~2.2M each = {}", "17.6M", "19.6M", 17_600_000),
    "a rate per layer": ("Low: 4 layers × 20M/layer = {}", "80M", "30M", 80_000_000),
    "a vocabulary": ("Embeddings: 32K vocab × 1536 dim = {}", "49.2M", "47M", 49_152_000),
    "three factors in a label": ("| Scales (12 × 640 × 2) | {} | 0.03MB |", "15K", "17K", 15_360),
    "a product that ends a label": ("| LayerNorm 2： $2 \\times 768$ | {} |", "1,536", "1,516", 1_536),
    "an arrow before a product": ("| One layer | ~218M → × 32 ≈ {} |", "6.98B", "6.28B", 6_976_000_000),
    "about, in a remark": ("Layer: 655,360 + 2,096,640 = 2,752,000 （约 {}）", "2.75M", "9.75M", 2_752_000),
    "a remark on a lone number": ("Total: 2 × 1,063,528,800 = 2,127,057,600\nTotal: 2,127,057,600 parameters (~{})", "2.13B", "3.13B", 2_127_057_600),
    "KiB in Cyrillic": ("KV: 2 × 32 × 8 × 128 × 2 байта = {} КиБ", "128", "256", 131_072),
    "bytes with a letter": ("Weights: 52B × 2B (BF16) = {} GB", "104", "124", 104_000_000_000),
    "a comment of code": ("memory: 50_257 * 768 * 4, // {}", "154MB", "164MB", 154_389_504),
    "mathematics in a component": ('<InlineMath math="50{{,}}257 \\times 768 = {}" />', "38{,}597{,}376", "38{,}579{,}376", 38_597_376),
    "a module of a printed model": ("│   ├── k_proj: Linear(576, 192)            [{} params]", "110,592", "111,592", 110_592),
    "an emphasised result": ("- **INT8** 8,0 Mrd. Parameter × 2 Byte *≈ {} GB*", "16", "18", 16_000_000_000),
    "a product in a comment": ("embedding_params: {}  # 32768 * 768", "25.2M", "26.2M", 25_165_824),
    "a product behind an entry of a dictionary": ('"mlp_per_layer": {},  # 1024×4096 + 4096 + 4096×1024 + 1024', "8393728", "8363728", 8_393_728),
    "a sum of numbers behind a constant": ("all_layers = {}; // 4 * (4198400 + 8393728 + 4096)", "50384896", "50334896", 50_384_896),
    "a product among a label's remarks": ("| Token embedding (50257 × 1280, tied) | {} |", "64,328,960", "64,382,960", 64_328_960),
    "a product before the end of a sentence": (
        "- Pesos: aproximadamente {} MB (190.461.696 parametros x 2 bytes); el archivo ocupa 0,4 GB.", "381", "391", 380_923_392,
    ),
    "addends with letters": (
        "| Attention | 80 layers × (Q 4096×8192 + K/V 2×4096×1024 + O 8192×4096) | {} |", "6.04 B", "6.54 B", 6_039_797_760,
    ),
    "a label's product with words": (
        "| Poids par couche (36 couches × 8 têtes KV × 12800 octets) | {} |", "3,686,400", "3,668,400", 3_686_400,
    ),
    "a labelled comment": ("total += 3072 * 3072 * 2;   // Q: {}", "18.9 MB", "28.9 MB", 18_874_368),
    "a comment with a product": ("calc += n * hidden * 4; // 6 * 768 * 4 = {}", "18432", "18433", 18_432),
    "a prompt of Python": (">>> # one block\n>>> 4 * 768 ** 2 + 4 * 768\n{}", "2362368", "2362388", 2_362_368),
    "a prompt of a notebook": ("In [1]: 50257*768  # words\nOut[1]: {}", "38597376", "38597386", 38_597_376),
    "digits apart": (
        "Words: $\\mathsf {{ V }} \\times \\mathsf {{ H }} = 3 0 , 5 2 2 \\times 7 6 8 = {}$", "2 3 , 4 4 0 , 8 9 6", "2 3 , 4 5 8 , 1 7 6", 23_440_896,
    ),
    "an arrow behind a product": ("MLP: 2 × 768² + 768 → {}", "1,180,416", "1,180,486", 1_180_416),
    "a comment with a sum": ("mlp_2 (down): {}  # 3072 x 768 + 768", "2,360,064", "2,360,084", 2_360_064),
    "a comment with a rounded product": ("layers: {}  # 12 × ~7.09M", "85.1M", "89.1M", 85_080_000),
    "a number per layer": ("- 22 layers × 1,183,872 per layer = {}", "26,045,184", "26,045,284", 26_045_184),
    "a colon and a sign": ("Value (640 × 640):            = {}", "409,600", "449,600", 409_600),
    "a shape above": ("1. **Words**\n   - Shape: 50257 × 768\n   - Parameters: {}", "38,597,376", "38,597,876", 38_597_376),
    "a shape above, with a bias": ("- Shape: (768, 3072)\n- Params: {}", "2,362,368", "2,352,368", 2_362_368),
    "shapes that are added": ("head.weight+bias (1000,256)+(1000) {}", "257,000", "252,000", 257_000),
    "a sum so far": (
        "| Part | Parameters | Cumulative |\n|---|---|---|\n| Words | 104,000 | 104,000 |\n| Positions | 819,200 | 923,200 |\n"
        "| Layers | 368,889,600 | {} |", "369,812,800", "369,912,800", 369_812_800,
    ),
    "asterisks": (ASTERISKS, "23835648", "23835948", 23_835_648),
    "a mixed word": ("Concat之后的Linear层的参数量为64*12*768+768={}", "590592", "590692", 590_592),
    "decimals behind commas, four of each": (
        "a 8,3452 - 8,1875 x 0,98051 = 8,3452 - {} = 0,3173\nb 4,7296 - 4,5000 x 0,98051 = 4,7296 - 4,4123 = 0,3173",
        "8,0279", "8,0239", 8.027925625,
    ),
    "results in parentheses, one with its product": (
        "- SwiGLU: gate (512 * 1536 = 786,432) + up (786,432) + down (786,432) = {}", "2,359,296", "2,350,296", 2_359_296,
    ),
    "results in parentheses, one alone": (
        "- Total: attention ($32 \\times 67M = 2.1B$) + FFN ($32 \\times 8 \\times 117M = 30B$) + words ($\\approx 0.5B$) ≈ {}", "32.6B", "46.7B", 32_600_000_000,
    ),
    "a product, and its number with a rounding": ("| Segments | $2 \\times 768$ | {} ≈ 0.002M |", "1,536", "1,526", 1_536),
    "a factor that is computed": ("P = 2 × 4096² × (1 + 8/32) = 2 × {} × 1.25 = 41,943,040", "16777216", "16757216", 16_777_216),
    "bytes in a drawn chart": ("W[Weights fp32<br/>306.9M x 4B = {} GB]", "1.23", "3.23", 1_227_600_000),
    "a quotient below 1": ("(c) 38.6 M / 124 M ≈ {}", "0.31", "0.71", 38.6 / 124),
    "weights and bytes": ("6.7 billion parameters × 2 bytes (float16) = {} GB", "13.4", "14.4", 13_400_000_000),
    "a product of a head": ("Fusion: 2 × 64 × 64 = {} per head × 8 heads = 65,536", "8,192", "8,152", 8_192),
    "a unit behind a sum": ("12 × (9.0 + 9 + 9) MB = {} MB", "324", "724", 324_000_000),
    "a product next to a setting": ("| K | 8 | experts |\n| (T, K) | T×K = 100×8 = {} (T=100 时) | rows |", "800", "900", 800),
    "a macro of C": ("#define N 768\n#define FFN_DIM (4 * N)  // {}", "3072", "6072", 3_072),
    "a word that ends in x before parentheses": ("Softmax (12 × 64 = {})", "768", "868", 768),
    "two sums of a part": ("Blocks: {} = 28M + 56M = 84M", "84M", "90M", 84_000_000),
    "a setting above a formula": ("hidden: 1024\nintermediate: 4 × hidden = {} (SwiGLU)", "4096", "4026", 4096),
    "bytes among the factors": ("| Adam (FP32) | {} GB | m + v + weights = 4 × 4 bytes × 7B |", "112", "56", 112_000_000_000),
    "bytes before a number with a letter": ("Adam: 4 × 4 bytes × 7B = {} GB", "112", "56", 112_000_000_000),
    "plus": ("Layers: 32 × 218M = 6.98B plus ~1.24 B in embeddings = ~{}", "8.2 B", "7.6 B", 8_220_000_000),
    "an arrow to the sum": ("// ~6.8B × 0.266 ≈ 1.81 GB + embedding 1.24 GB → ~{} total", "3.05 GB", "2.75 GB", 3_050_000_000),
    "a zero behind the point": ("Layers: 12 × 12 × 768² ≈ {}", "84.9M", "80.0M", 84_934_656),
    "full-width commas": ("位置: 1024 × 768 + 30522 × 768 = {}", "24，227，328", "24，227，838", 24_227_328),
    "a row of dashes": ("都是vocab*dim--------也就是21130*128={},很多", "2704640", "16227840", 2_704_640),
    "a repeated factor": ("A: 4 × d_in × d_in = 4 × 512²\nB: 3 × d_in × 7 = {}", "10,752", "10,782", 10_752),
    "a share behind a cut number": ("Embedding: 50,257 × 12,288 = {}      (0.4%)", "617M", "667M", 617_558_016),
    "a power in braces": ("E-step: $10000 \\times 16 \\times 512^2 \\approx {}$", "4 \\times 10^{10}", "6 \\times 10^{10}", 41_943_040_000),
    "a fraction written as a whole": ("Wasted: 0.3 × 590,118,912 = 177,035,674 params × 2 B = {} B", "354,071,347", "354,171,347", 354_071_347.2),
    "a formula of JSX": ("<MB>{{String.raw`39{{,}}383{{,}}808 + 1{{,}}536 = \\mathbf{{{}}}`}}</MB>", "39{,}385{,}344", "39{,}385{,}844", 39_385_344),
    "addends behind their names": ("| Final norm | `gamma 128 + beta 128` | {} |", "256", "156", 256),
    "a factor of named addends": ("Norms: 2 × (gamma 128 + beta 128) = {}", "512", "612", 512),
    "products in a list": ("- MLP: fc(512×2048), proj(2048×512) = {}", "2.10M", "2.70M", 2_097_152),
    "products in a sentence": (
        "- Each block: Q/K/V/O `4 × 512²`, MLP `2 × 512 × 2048`, in total `{}`", "3,145,728", "3,154,728", 3_145_728,
    ),
    "products in the cells of a row": ("| FSDP | 4 GB × 4 | 1 GB × 4 | 2 GB × 4 | {} |", "28 GB", "38 GB", 28_000_000_000),
    "a product in a box": ("│ Words: 201088 × 2880     │ = {}", "579,133,440", "578,133,440", 579_133_440),
    "a row in HTML": (
        "<table><tr><th>Part</th><th>Count</th></tr><tr><td>Words: 65 × 64</td><td>{}</td></tr></table>", "4,160", "4,190", 4_160,
    ),
    "a blank behind a comma": ("Total = 163,840,000 + 5,120 x 2 + 5, 120 + 163,840,000 = {}", "327,695,360", "327,695,630", 327_695_360),
    "a shifted comma": ("Block: 3,200 + 30,8224,00 = {}", "30,825,600", "30,285,600", 30_825_600),
    "a symbol behind its name": ("├── hidden_size (H): 7168\nNorms: 2 × H = {}", "14,336", "14,366", 14_336),
    "a full stop before a plus sign": ("Summe: 48 × 40 963 200 + 48 × 22 400 = {}.   + 998 400 + 0,7M", "1 967 308 800", "1 967 308 300", 1_967_308_800),
    "a rounded result on the next line": (
        "core + table ~= 1,216,430,080 + 268,441,600\n             ~= {}\n", "1,484,871,680", "1,484,865,536", 1_484_871_680,
    ),
    "a count of each behind its number": ("├── 8 x Block: {} (3.15M each)", "25.2M", "28.2M", 25_200_000),
    "a formula with its numbers in a label": ("1. Words (V * d = 151936 * 1280): {}", "194.5M", "199.5M", 194_478_080),
    "two numbers on a line": (
        "- Attention: 4 × 256² = 262,144\n- MLP: 8 × 256² = 524,288\n- Per block: {}, 48 blocks: 37,748,736", "786,432", "786,482", 786_432,
    ),
    "another product behind the result": ("The router has 1280 × 4 = {} and experts with E × 3 × d × f = 4 × 3 × 1280 × 4480 = 68,812,800.", "5,120", "5,620", 5_120),
    "each layer": ("In each layer the output has 256 × 768 + 768 ≈ {} parameters.", "0.20M", "0.70M", 197_376),
    "kibibytes of a quotient": ("= 8,508,230,400 / 1024 KB\n= {} KB", "8,308,818.75", "8,309,803.125", 8_308_818.75),
    "a setting in a row's label": ("| KV cache (seq=32,768) | 約 {} | `2 × 28 × 8 × 128 × 32768 × 2 bytes` |", "3584 MiB", "917 MiB", 3_758_096_384),
    "words for an addend": (
        "- Token embeddings: 65 × 384 = 24,960\n- Positions: 256 × 384 = 98,304\n- Total: 3 blocks × 1.2M + embeddings ≈ {}",
        "3.72M", "10.8M", 3_723_264,
    ),
    "words for the norms": ("Layer: QKV 3 × 768² + FFN 2 × 768 × 3072 + LN ≈ {}", "6.5M", "7.1M", 6_488_064),
    "a name of code for another": ("d = 768\nnorm = 2 * d  # 1,536\nfinal = norm  # {}\nboth = norm + final  # 3,072", "1,536", "1,586", 1_536),
    "a comment of code above one that is right": ("d = 768\nnorm = 2 * d  # {}\nboth = norm + d  # 2,304", "1,536", "1,586", 1_536),
    "a variable of code for another": ("norm = 2 * 2048  # 4,096\nnorms = norm  # 4,096\nlayers = 24 * norms  # {}", "98,304", "98,804", 98_304),
    "words behind a result": (
        "Words: 151,936 × 1,024 = {} params stay fp16 (bnb does not quantize them)", "155.6 M", "145.6 M", 155_582_464,
    ),
    "bytes of two each": ("Gradients (BF16): 202M × 2 ≈ {}", "404 MB", "104 MB", 404_000_000),
    "a rate before the next sentence": ("Cache: 2 × 28 × 8 × 128 × 2 B = **{} / token**. At 768 + 512 = 1280", "112 KiB", "132 KiB", 114_688),
    "a sum of gigabytes": ("13.2 + 1.07 + 0.13 = {} GB", "14.4", "15.4", 14_400_000_000),
    "points of thousands alone": ("- Words: 128.256 × 4.096 = ~{} parâmetros", "525M", "825M", 525_336_576),
    "a shape of real numbers": ("| A | $\\mathbb{{R}}^{{4 \\times 64}} = {}$ Params |", "256", "296", 256),
    "a formula in names and an arrow": ("hidden_size = 576\nhidden_size * hidden_size → {} parameters", "331,776", "431,776", 331_776),
    "a letter that may be a unit": ("T = 1024\nd_model = 1600\nNorm: T × d_model ≈ {} × 10^6", "1.64", "2.64", 1_638_400),
    "results in parentheses that are added": (
        "Block: attention (`4 × 4096² ≈ 67M`) + MLP (`3 × 4096 × 11008 ≈ 135M`) ≈ {}", "202M", "502M", 202_000_000,
    ),
    "layers of the total above": (
        "| q | 1024 × 2048 | 2.10 M |\n| o | 2048 × 1024 | 2.10 M |\n| **total** | | **~4.19 M** |\n× 28 layers = ~{}, plus words", "117.4 M", "147.4 M", 117_320_000,
    ),
    "bytes behind a count": (
        "| Q, K, V | 1,033,344 |\n| Output | 802,816 |\n| **One layer** | **{}** (≈ 4 MB) |", "1,836,160", "1,836,660", 1_836_160,
    ),
    "a product of each": ("Words und Kopf je 32000 × 4096 = {}M, zusammen 0.26B", "131", "151", 131_072_000),
    "a product of each in Chinese": ("embedding 与 lm_head 各 $$32000 \\times 4096 = {}$$M，合计 0.26B", "131", "151", 131_072_000),
    "a share times a hundred percent": ("$$ \\frac{{1,179,648}}{{28,311,552}} \\times 100\\% = {}\\% $$", "4.17", "9.17", 4.1666666666666666),
    "a product in square brackets": ("├── Segments [2 × 4096]: {}", "8,192", "8,592", 8_192),
    "an underscore around what is bold": ("- _embed_tokens_ # 64000 * 4096 = _**{}**_", "262144000", "262744000", 262_144_000),
    "a difference of gigabytes": ("595.15 − 570.76 = {} GB", "24.39", "94.39", 24_390_000_000),
    "bytes of a fraction each": ("one expert = 44,040,192 × 0.5625 = {} MB", "24.77", "94.77", 24_772_608),
    "cut addends": ("All: 1.9 B + 80 M = {}", "2,046,644,800", "2,146,644,800", 1_980_000_000),
    "i.e.": ("Positions: 1024 × 768, i.e. {}", "786,432", "786,732", 786_432),
    "that's in parentheses": ("Final norm: 2 × 768 (that's {})", "1,536", "1,546", 1_536),
    "in French": ("Positions (1 024 × 768, soit {} paramètres)", "786 432", "786 732", 786_432),
    "in Chinese": ("位置嵌入:1024×768,即{}", "786,432", "786,732", 786_432),
    "in Japanese": ("位置埋め込みは1,024×768で{}個", "786,432", "786,732", 786_432),
    "of a sum": ("In total 38.6M + 0.8M + 85.1M is {}.", "124.5M", "134.5M", 124_500_000),
    "plus between large numbers": ("38,597,376 plus 786,432 plus 85,054,464 plus 1,536 is {}.", "124,439,808", "124,539,808", 124_439_808),
    "plus behind a comma": ("12 × 7,087,872 = 85,054,464, plus 39,383,808 of embeddings = {}", "124,438,272", "124,468,272", 124_438_272),
    "names behind rounded numbers": ("23.8M embeddings + 85.1M encoder + 0.6M pooler = {}", "109.5M", "119.5M", 109_500_000),
    "an arrow behind a sum": ("39.4M + 85.1M -> {}", "124.5M", "134.5M", 124_500_000),
    "an arrow behind a rounded product": ("h: 12 x 7.09M -> {}", "85.1M", "95.1M", 85_080_000),
    "an arrow behind a list": ("q 2048×2048 = 4,194,304; k 2048×256 = 524,288 → {}", "4,718,592", "4,719,592", 4_718_592),
    "a count before of": ("12 blocks of 7.09M = {}", "85.1M", "95.1M", 85_080_000),
    "per layer times a count": ("218.1M per layer × 32 = {}", "6.98B", "7.98B", 6_979_200_000),
    "a negative product": ("GQA: 32 * 2 * 4096 * (1024 - 4096) = {}", "-805,306,368", "-805,316,368", -805_306_368),
    "kv heads": ("KV: 2 × 32 layers × 8 kv heads × 128 = {}", "65,536", "65,636", 65_536),
    "a unit with letters behind": ("メモリは6.74B × 2バイト = {}です。", "13.5GB", "16.5GB", 13_480_000_000),
    "mil millones": ("6,74 mil millones × 2 bytes = {} GB", "13,48", "13,78", 13_480_000_000),
    "milliards": ("6,74 Md × 2 octets = {} Go", "13,48", "13,78", 13_480_000_000),
    "hundreds of millions": ("合计: 684.6+5.24≈{}亿", "689.8", "682.8", 68_984_000_000),
    "a verb before bytes": ("In fp32, 60,506,624 × 4 bytes is {}.", "242 MB", "262 MB", 242_026_496),
    "a list in Chinese": ("Q 和 O 各 4096×4096 = 16,777,216,K 和 V 各 4096×1024 = {}", "4,194,304", "4,194,504", 4_194_304),
    "i.e. behind a sum": ("1,050,673,152 + 6,979,584,000, i.e. {}", "8,030,257,152", "8,030,257,252", 8_030_257_152),
    "i.e. behind products": ("2 × 525.3M + 32 × 218.1M, i.e. {}.", "8.03B", "8.30B", 8_029_800_000),
    "a unit before the sign": ("每层 2.181亿 × 32,即 {}。", "69.8亿", "68.9亿", 6_979_200_000),
    "a unit that is a name above": (
        "FLOPs = 2 × d_model × d_ff × 3\n      = 2 × 4096 × 14336 × 3\n      ≈ {} FLOPs per token", "352M", "352B", 352_321_536,
    ),
    "myriads": ("层: 32 × 2亿237万5168 = {}", "64亿7600万5376", "64亿7700万5376", 6_476_005_376),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_a_line_is_read(name):
    line, right, wrong, should_be = WRITTEN[name]
    equations = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{line.format(right)}\n").equations
    assert len(equations) > 1
    assert all(one.correct for one in equations)
    equations = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{line.format(wrong)}\n").equations
    assert [one.should_be for one in equations if not one.correct] == [should_be]


@pytest.mark.parametrize(
    "line",
    [
        "8 blocks of 4 heads: 2.2M each = 17.6M",  # two counts
        "Conv: 3 × 224 × 224 → 196 tokens",
        "Attention 4×768×768，MLP 8×768×768，共7,077,888",  # of both
        "from 12 × 7.09M → 124.4M in all",
        "d=768で12層、ヘッドは12",
        "With 2 × 3 heads + 1, that is 786,432 in each",
        "- Part A: 1.05M\n- Part B: 2.10M\n\nLayer: 1.05M + 2.10M = 3.15M\nLayers: 48 × 3.15M = 151.31M",  # 3.1523M, by its parts
        "x = 2 * 62  # 16 heads in each",
        "Two tables, each 32000 × 4096 = 262M",
        "c_attn (768 x 2304 = 1,769,472) + c_proj (768 x 768 = 589,824) = 2,359,296",
        "Song: 22kHz × 180 秒 = 3,960,000 samples",
        "lr = 2 * 3  # 2017 paper",
        "Weights: 7·10⁹ · 2 = 14 GiB",  # counts 1,000
        "Q: 576 × 576 = 1.26 MB × 30 = 37.8 MB",  # of four bytes each
        "Scores: 8 × 16 × 64 = 8,192 elements ≈ 33 KB",
        "Layers: 12 × 12 × 768² ≈ 85M",
        "total ≈ 124M\n\ntotal ≈ 123.7M",  # with one digit more
        "Total: ~176M parameters (in 4 bits: ~88MB)",
        "Gradient memory: 3B × 4 bytes ≈ 12 GB\nAdam: 3B × 8 bytes ≈ 24 GB\nModel parameters: 3B × 4 bytes (float32) = 12 GB",
        "| Part A | first | ~700 |\n| Part B | second | ~500 |\n| Part C | third | ~500 |\n| Part D | Memory Systems | ~500 |\n"
        "| Part E | fourth | ~600 |\n| Part F | fifth | ~300 |\n| Part G | sixth | ~600 |\n\nTotal ~3,700 lines",
        "- a: 7168 x 1536 = 11.0M\n- b: 1536 x 128 x 192 = 37.7M\n- c: 1024 x 128 x 160 = 21.0M\n- d: 128 x 128 x 7168 = 117.4M\n\n"
        "Total: ~187M per layer. Compare to a standard attention, which would be roughly `4 * h^2 = 205M` per layer.",
    ],
)
def test_a_line_that_is_not_accused(line):
    assert all(one.correct for one in tallystick.check(f"Sizes: 2 × 3 = 6\n\n{line}\n").equations)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Layers: 32 × 218M = 6.98B + 1.24B = 8.22B", (6_976_000_000, 6_980_000_000)),
        ("Scores: 2 × 4096 = 8,192 bytes ≈ 27 GB", (8_192, 8_192)),  # what follows is not judged
    ],
)
def test_where_a_chain_goes_on(line, shown):
    first = tallystick.check(f"Sizes: 2 × 3 = 6\n\n{line}\n").equations[1]
    assert (first.left, first.right, first.correct) == (*shown, True)


@pytest.mark.parametrize("written", ["2(1,600) = 3,200", "4(1,600^2) + 3(1,600)(4,288) + 2(1,600) = 30,825,600"])
def test_a_number_right_before_parentheses_multiplies_what_is_in_them(written):
    answer = tallystick.check(f"- per block: {written}\n")
    assert [one.left for one in answer.equations if one.correct] == [int(written.rpartition("= ")[2].replace(",", ""))]
