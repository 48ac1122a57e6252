"""A line or a list says more than its equation was read with: no number there is accused."""

import pytest

import tallystick

RIGHT = {
    # factors behind a number, in words or between
    "times in parentheses": ("QKV: 768×768 (×3) = 1,769,472", "gpt2"),
    "layers in parentheses": ("Block: 12×768² + 13×768 = 7,087,872 (× 12 layers) = 85,054,464", "gpt2"),
    "a count in words behind": ("7,087,872 (12 of them) = 85,054,464", "gpt2"),
    "per layer, then in total": ("Attention: 4 × 768² + 4 × 768 = 2,362,368 per layer = 28,348,416 total", "gpt2"),
    "twice in German": ("MLP: zweimal 768 × 3.072 = 4.718.592", "gpt2"),
    "twice in Russian": ("MLP: дважды 768 × 3072 = 4 718 592", "gpt2"),
    "four times in Chinese": ("注意力: 768 × 768 的四倍 = 2,359,296", "gpt2"),
    "two in Korean": ("MLP: 768×3072 행렬이 두 개 = 4,718,592", "gpt2"),
    "numbers in words": ("Twelve layers times twelve times 768² = 84,934,656.", "gpt2"),
    "a product for each": ("Q 768×768, K 768×768, V 768×768 = 3 × 589,824 = 1,769,472", "gpt2"),
    "a width from a rounded budget": ("target = 1.57M × 2.5 = 3.93M\nmlp_dim = 3.93M / (2 × 768) = 2560", None),
    "two thirds of a result": ("Why 11008? 4 × 4096 = 16384, × 2/3 = 10922.67, rounded up.", "llama-2-7b"),
    "squared in words": ("4 times 768 squared plus 4 times 768 = 2,362,368", "gpt2"),
    "squared in Chinese": ("每层注意力: 4 × 768 的平方 = 2,359,296", "gpt2"),
    "squared in Korean": ("어텐션: 4 × 768의 제곱 = 2,359,296", "gpt2"),
    "named parts": ("MLP: gate, up and down are 4096 × 14336, i.e. 176,160,768 a layer.", "llama-3-8b"),
    "named parts behind": ("768 × 768 (q, k, v, o) → 2,359,296", "gpt2"),
    "a pair": ("A pair of matrices 1024 × 4096, i.e. 8,388,608.", "gpt2-medium"),
    "a count behind": ("Each block has 12 × 1600², which gives 1,474,560,000 for all 48.", "gpt2-xl"),
    "a count behind in German": ("Pro Block 12 × 1600², das ergibt 1.474.560.000 für 48 Blöcke.", "gpt2-xl"),
    "layers in the heading": ("Over 12 layers:\nattn: 4 × 768 × 768 → 28,311,552\nmlp: 8 × 768 × 768 → 56,623,104", "gpt2"),
    "operations in the heading": ("FLOPs per token:\n- qkv: 768 × 2304 → 3,538,944\n- o: 768 × 768 → 1,179,648", "gpt2"),
    "bytes in a column": ("| tensor | shape | dtype | bytes |\n|---|---|---|---|\n| wte | 50257 × 768 | F32 | 154,389,504 |", "gpt2"),
    "several results times layers": ("LoRA r=8: 8 × (4096 + 4096) = 65,536 and 8 × (4096 + 1024) = 40,960, × 32 = 3,407,872", "llama-3-8b"),
    # addends and what is taken away
    "biases in the heading": ("Attention (biases included)\n- c_attn: 768 × 2304 = 1,771,776\n- c_proj: 768 × 768 = 590,592", "gpt2"),
    "a change and a new total": ("Context 1024 → 2048: +1024 × 768 = +786,432 → 125,226,240", "gpt2"),
    "sums over lines": ("50257 × 768 = 38,597,376\n+ 1024 × 768 = 786,432\n= 39,383,808\n+ 12 × 7,087,872 = 85,054,464\n= 124,438,272\n+ ln_f 1,536\n= 124,439,808", "gpt2"),
    "products and biases over lines": ("768 × 2304 + 2304 = 1,771,776\n+ 768 × 768 + 768 = 590,592\n+ 768 × 3072 + 3072 = 2,362,368", "gpt2"),
    "numbered sums so far": ("1. 50257 × 768 = 38,597,376\n2. + 1024 × 768 = 39,383,808\n3. + 12 × 7,087,872 = 124,438,272", "gpt2"),
    "sums so far in words": ("Embeddings: 39,383,808\nAdding 12 × 7,087,872 → 124,438,272", "gpt2"),
    "a name with ×": ("8 × 7B is 46.7B and not 56B, since attention is shared.\nSizes: 2 × 3 = 6", "mixtral-8x7b"),
    "minus in words": ("124,439,808 minus 38,597,376 = 85,842,432", "gpt2"),
    "minus a part": ("Total 124,439,808, minus embeddings 39,383,808 = 85,056,000 non-embedding", "gpt2"),
    "minus on a line below": ("With its own head: 163,037,184\nminus 38,597,376 (tied head) = 124,439,808", "gpt2"),
    "a bias in parentheses": ("c_attn: 768 × 2304 = 1,769,472 (+ bias 2,304) = 1,771,776", "gpt2"),
    "a bias without its number": ("QKV: 768×2304 (+ bias) = 1,771,776", "gpt2"),
    "addends in parentheses": ("blocks: 85,054,464 (+ wte 38,597,376 + wpe 786,432) = 124,438,272", "gpt2"),
    "a comma before the plus": ("MLP up: 2,362,368, + down: 2,360,064 = 4,722,432", "gpt2"),
    "addends with labels": ("wte: 50257 × 768 = 38,597,376, wpe: 1024 × 768 = 786,432, + 12 blocks: 85,054,464 = 124,438,272", "gpt2"),
    "plus in words": ("85,056,000 non-embedding plus embeddings (39,383,808) = 124,439,808", "gpt2"),
    "a semicolon": ("c_attn: 1,769,472 (w) + 2,304 (b); c_proj: 589,824 (w) + 768 (b) = 2,362,368", "gpt2"),
    "an addend in words": ("38.6M + 0.8M + 85.1M + final LN = 124.4M", "gpt2"),
    "layers before an addend": ("词嵌入 38,597,376 + 位置嵌入 786,432 + 12层 85,054,464 = 124,438,272", "gpt2"),
    "a share before an addend": ("attention (33%) 2,362,368 + MLP (67%) 4,722,432 = 7,084,800", "gpt2"),
    "layers behind an addend": ("合計 = 38,597,376(トークン)+ 786,432(位置)+ 85,054,464(12層)= 124,438,272", "gpt2"),
    # lists
    "biases next to a list": ("- QKV: 768 × 2304 = 1,769,472, bias 2304\n- output: 768 × 768 = 589,824, bias 768\n- sum: 2,362,368", "gpt2"),
    "biases in LaTeX": ("- $W_1$: $768 \\times 3072 = 2{,}359{,}296$, $b_1$: 3072\n- $W_2$: $3072 \\times 768 = 2{,}359{,}296$, $b_2$: 768\n- total 4,722,432", "gpt2"),
    "as another line": ("- Q: 16,777,216\n- K: 4,194,304\n- V: same as K\n- O: same as Q\n- Total: 41,943,040", "llama-3-8b"),
    "as another in German": ("- Q: 16.777.216\n- K: 4.194.304\n- V: wie K\n- O: wie Q\n- Summe: 41.943.040", "llama-3-8b"),
    "twice each": ("- q_proj, o_proj: 4096×4096 = 16,777,216 (x2)\n- k_proj, v_proj: 4096×1024 = 4,194,304 (x2)\n- total attention: 41,943,040", "llama-3-8b"),
    "a multiple by name": ("**MLA per layer**: 187,107,328\n**MoE per layer**: 11,320,164,608\n**FFN**: 3 × 7168 × 18432 = 396,361,728\n\n**Sum**\n- 61 × MLA = 11,413,547,008\n- 58 × MoE = 656,569,547,264", None),
    "some of the experts": ("Untouched per token: 120 / 128 experts × 48 layers = 5,760 experts", None),
    "numbers in the sentence above a total": ("Per layer: 41,943,040 + 176,160,768 + 8,192 = 218,112,000.\nOnce more: 41,943,040 + 176,160,768 = 218,103,808, plus 8,192 gives 218,112,000.\nFor 32 layers: 218,112,000 × 32 = 6,979,584,000.\nAdding the input embedding (525,336,576), the final norm (4,096) and the output projection (525,336,576):\n**Total = 8,030,261,248**", "llama-3-8b"),
    "the model's total below some of its parts": ("With d = 1280 that is 12 × 1280² ≈ 19.66M, and for 36 layers ≈ 707.8M. The token embedding adds 50257 × 1280 ≈ 64.3M, the positions 1024 × 1280 ≈ 1.31M. The estimate is 707.8 + 64.3 + 1.3 ≈ 773.4M. Missing are the biases and the LayerNorms:\n    12·d²·L  = 12 × 1,638,400 × 36 = 707,788,800\n    13·d·L   = 599,040\n    2·d      = 2,560\n    ------------------\n    total    = 774,030,080", "gpt2-large"),
    "a part of one of two models": ("| | untied | tied |\n|---|---|---|\n| embedding | 131.1M | 131.1M |\n| layers | 6476.3M | 6476.3M |\n| lm_head | 131.1M | - |\n| total | 6738.4M | 6607.3M |", "llama-2-7b"),
    "a part of the second column": ("| | encoder | decoder |\n|---|---|---|\n| self | 6,291,456 | 6,291,456 |\n| cross | - | 6,291,456 |\n| ff | 12,582,912 | 12,582,912 |\n| sum | 18,874,368 | 25,165,824 |", "t5-small"),
    "an MLP of two attentions": ("| | per layer | × 6 |\n|---|---|---|\n| dec self-attn | 1,048,576 | 6,291,456 |\n| dec cross-attn | 1,048,576 | 6,291,456 |\n| dec ff | 2,097,152 | 12,582,912 |\n| total | — | 25,165,824 |", None),
    "parts between slashes": ("emb = 39.4M / attn = 28.3M / mlp = 56.7M / total = 124.4M", "gpt2"),
    # marks
    "TeX points": ("$N = 38{.}597{.}376 + 786{.}432 + 85{.}054{.}464 + 1{.}536 = 124{.}439{.}808$", "gpt2"),
    "TeX ties": ("N &= 38~597~376 + 786~432 + 85~054~464 + 1536 = 124~439~808", "gpt2"),
    "a sum sign": ("$$N = \\sum_{l=1}^{12} 7{,}087{,}872 + 38{,}597{,}376 + 786{,}432 = 124{,}438{,}272$$", "gpt2"),
    "a footnote": ("- Position: 1024 × 768 = 786,432²", "gpt2"),
    "struck out": ("50257 × 768 = ~~38,596,416~~ 38,597,376", "gpt2"),
    "German millions": ("Chinchilla: 20 × 124,4 Mio. = 2.488 Mio. Token", "gpt2"),
    "German words": ("1.342 Millionen Attention + 5.637 Millionen MLP = 6.979 Millionen = 6,98 Milliarden", "llama-3-8b"),
    "Spanish points": ("32 capas × 218,1 M = 6.979 M + 1.051 M = 8.030 M", "llama-3-8b"),
    "German billions": ("GPT-2 XL: 1.558 Mio. = 1,558 Mrd. Parameter", "gpt2-xl"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "model"), RIGHT.values(), ids=RIGHT)
def test_nothing_right_is_accused(text, model):
    answer = tallystick.check(f"{text}\n", against=model)
    assert [(one.line, one.right, one.should_be) for one in answer.equations if not one.correct] == []


WRONG = {
    "squared in words": ("4 times 768 squared plus 4 times 768 = 2,362,868", 2_362_368),
    "squared in Chinese": ("每层注意力: 4 × 768 的平方 = 2,395,296", 2_359_296),
    "a sum sign": ("$$N = \\sum_{l=1}^{12} 7{,}087{,}872 + 39{,}383{,}808 = 124{,}483{,}272$$", 124_438_272),
    "layers before an addend": ("词嵌入 38,597,376 + 12层 85,054,464 = 123,615,840", 123_651_840),
    "TeX ties": ("N &= 38~597~376 + 85~054~464 = 123~651~480", 123_651_840),
    "German millions": ("Chinchilla: 20 × 124,4 Mio. = 2.848 Mio. Token", 2_488_000_000),
    "struck out": ("50257 × 768 = ~~38,596,416~~ 38,579,376", 38_597_376),
}


@pytest.mark.parametrize(("text", "right"), WRONG.values(), ids=WRONG)
def test_a_slip_there_is_found(text, right):
    answer = tallystick.check(text, against="gpt2")
    assert [one.should_be for one in answer.equations if not one.correct] == [right]
