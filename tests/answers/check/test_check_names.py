"""Which quantity of the model a rounded, glued or plainly said number is."""

import pytest

import tallystick
from tallystick.answers.check.labels import tags_of

D, L = 4096, 32


def named(text, against):
    return tallystick.check(f"Sizes: 2 × 3 = 6\n{text}\n", against=against).equations[-1].matches


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Wdown: 11008 × 4096 = 45.1M", "down projection of the MLP of one layer"),
        ("Wgate: 4096 × 11008 = 45.1M", "gate projection of the MLP of one layer"),
        ("### Norms (two a layer)\n32 layers × 202.4M ≈ 6.48B", "32 layers"),
        ("### Stack\nLayers:\n32 × 202.4M = 6.48B", "32 layers"),
        ("total ≈ 6,738,415,616 ≈ 6.74B", "the whole model"),
        ("Rows: 131.1M\nStack: 6,476M\nHead: 131.1M\nTotal: 6.74B", "the whole model"),
        ("activation = 32000 × 4096 = 131,072,000 floats", None),
    ],
)
def test_a_number_of_llama_has_its_name(text, what):
    assert named(text, "llama-2-7b") == what


def test_a_size_is_not_the_bias_of_the_same_size():
    assert named("MLP hidden size: 3,072", "gpt2") is None


def test_the_segment_table_is_not_the_norm_of_the_same_size():
    bert = {"model_type": "bert", "architectures": ["BertModel"]}
    assert named("Segmentation Embedding: 2 × 768 = 1,536", bert) == "segment embedding"


def test_the_shared_expert_has_a_name_of_its_own():
    text = "Shared expert: 3 × 7168 × 2048 = 44.04M params/layer"
    assert named(text, "deepseek-v3") == "shared experts of one layer"


def test_the_exact_number_of_a_total_is_claimed_rather_than_its_rounding():
    answer = tallystick.check("Rows: 2 × 3 = 6\ntotal ≈ 6,738,415,616 ≈ 6.74B\n", against="llama-2-7b")
    assert answer.total_claimed == 6_738_415_616


@pytest.mark.parametrize("word", ["FF", "FFN", "FFNN", "feed-forward"])
def test_each_word_for_the_mlp_is_its_tag(word):
    assert "mlp" in tags_of(f"{word} in total")


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        (
            "o",
            "输出投影 | 出力射影 | 출력 투영 | Ausgabeprojektion | proyección de salida | выходная проекция | O-Projektion",
        ),
        ("v", "V-Projektion | Proyección V | Projeção V | Проекция V | V 投影"),
        (
            "head",
            "输出头 | 分类头 | 出力ヘッド | 출력 헤드 | Ausgabekopf | tête de sortie | cabeza de salida | çıkış katmanı",
        ),
        ("gate", "门控投影 | ゲート射影 | 게이트 투영"),
        ("up", "上投影 | アップ射影 | 업 투영"),
        ("down", "下投影 | ダウン射影 | 다운 투영"),
        ("experts", "especialistas | uzmanlar | esperti | chuyên gia"),
        ("router", "门控网络 | routeur | enrutador | роутер | yönlendirici"),
        ("token", "エンベディング | gömme tablosu | nhúng từ"),
        ("block", "12 слоёв | 12 lớp"),
        ("one", "单个 Block | ein Block | una sola capa | одного слоя | bir katman | Katman toplamı | every layer"),
    ],
)
def test_a_part_has_its_words_in_each_language(tag, words):
    tags = {word: tags_of(word) for word in words.split(" | ")}
    assert [word for word, found in tags.items() if tag not in found] == []
    assert tag == "token" or not [word for word, found in tags.items() if "token" in found]  # V is no vocabulary


@pytest.mark.parametrize(
    ("text", "against", "what"),
    [
        ("### Experts\nLayer total = 7,077,888", "gpt2", "attention and MLP of one layer, without biases"),
        ("The norms are negligible:\nblocks = 12 × 12 × 768² = 84,934,656", "gpt2", None),
        ("32개 블록: 202M × 32 = 6.5B", "llama-2-7b", "32 layers"),
        ("Check the whole: 218.1 M × 32 layers = 6.98 B", "llama-3-8b", "32 layers"),
        ("32 层：218.10M × 32 = 6,979.3M", "llama-3-8b", None),
        ("### FFN\nW1: 768 × 3072 = 2,359,296", "gpt2", "up projection of the MLP of one layer, without its bias"),
        ("attention q,k,v,o: 41,943,040 ≈ 42 M", "llama-3-8b", "attention of one layer"),
        ("### Step 2: 埋め込み層\n* 1,024位置 × 768次元 = 786,432個のパラメータ", "gpt2", "position embedding"),
        ("一层 134 MFLOP；FFN 三个矩阵 3 × 4096 × 11008 = 135.3M", "llama-2-7b", "MLP of one layer"),
        ("### Position\n参数: context_length × emb_dim = 1024 × 768 = 786,432", "gpt2", "position embedding"),
    ],
)
def test_words_around_a_number_name_it(text, against, what):
    stack = f"attention and MLP of {32 if 'llama' in against else 12} layers"
    found = named(text, against)
    assert found == what if what else found.startswith(stack)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("#### FeedForward\n- Linear1: 768 × 3072 + 3072 = 2,362,368", "up projection of the MLP of one layer"),
        ("#### FeedForward\n- Linear2: 3072 × 768 + 768 = 2,360,064", "down projection of the MLP of one layer"),
        ("#### LayerNorm 2\n- subtotal: 1,536", "norm norm2 of one layer"),
    ],
)
def test_numbered_layers_of_a_module_have_their_parts_names(text, what):
    book = {
        "vocab_size": 50257, "context_length": 1024, "emb_dim": 768,
        "n_heads": 12, "n_layers": 12, "drop_rate": 0.1, "qkv_bias": False,
    }  # fmt: skip
    assert named(text, book) == what


PRINTED = {
    "transformer.wte.weight torch.Size([50257, 768]) 38597376": "token embedding",
    "transformer.h.0.ln_1.weight torch.Size([768]) 768": "norm ln_1 scales of one layer",
    "transformer.h.0.ln_2.bias torch.Size([768]) 768": "norm ln_2 shifts of one layer",
    "transformer.h.0.attn.c_attn.bias torch.Size([2304]) 2304": "query, key and value projection biases of one layer",
    "transformer.h.0.attn.c_proj.bias: 768": "attention output projection biases of one layer",
    "transformer.h.0.mlp.c_proj.weight   (3072, 768)   2,359,296": "down projection of the MLP of one layer, without its bias",
    "transformer.h.0.mlp.c_proj.bias     (768,)              768": "down projection of the MLP biases of one layer",
    "| transformer.ln_f.bias | 768 | [768] |": "final norm shifts",
}


@pytest.mark.parametrize("line", PRINTED)
def test_a_tensor_is_known_by_its_name(line):
    """As printed from `named_parameters()`: many tensors have 768 elements."""
    answer = tallystick.check(f"{line}\nTotal: 124,439,808\n", against="gpt2")
    first, *_ = answer.equations
    assert (first.correct, first.matches) == (True, PRINTED[line])


@pytest.mark.parametrize(
    ("label", "what"), [("A", None), ("Q of the model, without LoRA", "query projection of one layer")]
)
def test_a_matrix_of_an_adapter_is_not_one_of_the_model(label, what):
    rank = 32 if what is None else 4096
    text = f"### LoRA matrices\n{label}: 4096 × {rank} = {4096 * rank:,}"
    assert named(text, "llama-2-7b") == what


ITEMS = """\
1. **Embedding Layer**
    - Calculation: `32000 × 4096 = 131,072,000`
2. **Layers**
    - **Attention (67.1M per layer)**
        - **Q Projection**: `width × (heads × size)`
            - `4096 × (32 × 128) = 16,777,216`
        - **O Projection**: `(heads × size) × width`
            - `(32 × 128) × 4096 = 16,777,216`
        - Total per layer: `4 × 16.78M = 67.1M`
    - **MLP**
        - Across 32 layers: `135.3M × 32 = 4.33B`
"""


def test_a_number_has_the_name_of_the_item_that_it_stands_under():
    answer = tallystick.check(ITEMS, against="llama-2-7b")
    assert {one.line: one.matches for one in answer.equations} == {
        2: "token embedding",
        4: "attention of one layer",
        6: "query projection of one layer",
        8: "attention output projection of one layer",
        9: "attention of one layer",
        11: "MLP of 32 layers",
    }
    assert all(one.correct for one in answer.equations)


@pytest.mark.parametrize("title", ["### Step 2: 埋め込み層（39,383,808個）", "**Embeddings (39,383,808 parameters):**"])
def test_a_headings_number_is_named_and_not_added(title):
    text = f"{title}\n\nTokens: 50257 × 768 = 38,597,376\nPositions: 1024 × 768 = 786,432\nTotal: 39,383,808\n"
    answer = tallystick.check(text, against="gpt2")
    assert answer.equations[0].matches == "embeddings of tokens and positions"
    assert [one.correct for one in answer.equations] == [True] * 4


def test_a_variable_that_counts_parameters_has_a_name():
    assert named("attention_per_layer = 67.1M", "llama-2-7b") == "attention of one layer"
    assert named("Embedding (tied with lm_head): 50257 × 768 = 38.6M", "gpt2") == "token embedding"


def test_operations_have_no_name_of_parameters():
    text = "## FLOPs of a token\n\nDense:\n\nAttention: 2 × 4096 × 4096 × 4 = 134M\n"
    assert tallystick.check(text, against="llama-2-7b").equations[0].matches is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("| Embedding vị trí | 786 432 | 0,6% |", "position embedding"),
        ("* norme finale → 1 536", "final norm"),
        ("* 12 strati → 85 054 464", "12 layers"),
        ("| Konum tablosu | 1024 × 768 | 786,432 |", "position embedding"),
        ("| Blok başına: dikkat | 4 × 768 × 769 | 2,362,368 |", "attention of one layer"),
        ("Subtotal attention: 2,362,368 /layer", "attention of one layer"),
        ("attention   2,362,368     ← with 4 biases", "attention of one layer"),
        ("- **每層 7,087,872**：", "one layer"),
        ("786,432 for the positions.", "position embedding"),
        (
            "Per block:\n  LayerNorm 1        (768,) × 2     1,536\n  LayerNorm 2        (768,) × 2     1,536",
            "norm ln_2 of one layer",
        ),
        ("| **Attention** | W_Q | (768, 768) | 589,824 |", "query projection of one layer, without its bias"),
    ],
)
def test_a_number_has_its_name_in_other_layouts_and_languages(text, what):
    assert named(text, "gpt2") == what


def test_sizes_before_and_after_an_arrow_are_no_result():
    answer = tallystick.check("Sizes: 2 × 3 = 6\n- MLP: 768 → 3072\n- hidden 768 → 3072\n", against="gpt2")
    assert [one.line for one in answer.equations] == [1]


UNTIED = {"model_type": "gpt2", "tie_word_embeddings": False}
TABLES = """\
#params in token_embeddings:
vocab_size * d_model = 50257 * 768 = 38597376

#params in lm_head:
vocab_size * d_model = 50257 * 768 = 38597376
"""


def test_a_comment_is_the_heading_of_the_code_below_it():
    answer = tallystick.check(TABLES, against=UNTIED)
    assert [one.matches for one in answer.equations] == ["token embedding"] * 2 + ["head"] * 2


@pytest.mark.parametrize("label", ["", "嵌入层：`vocab_size=50257` × `dim=768`："])
def test_a_table_without_a_name_is_the_embedding_before_it_is_the_head(label):
    text = f"Both:\n{label} 50257 × 768 = 38,597,376\nThe same: 50257 × 768 = 38,597,376"
    answer = tallystick.check(text, against=UNTIED)
    assert [one.matches for one in answer.equations][-2:] == ["token embedding", "head"]


@pytest.mark.parametrize(
    ("text", "against", "what"),
    [
        ("Per block:\n  LN1 (γ, β): 2 × 768 = 1,536", "gpt2", "norm ln_1 of one layer"),
        ("- Attention 层的 LayerNorm\n    参数量: 2 * 768 = 1536", "gpt2", "norm ln_1 of one layer"),
        ("LayerNorm 1: 2 × 768 = 1,536\nLayerNorm 2 (ln2): 768 + 768 = 1,536", "gpt2", "norm ln_2 of one layer"),
        ("Layers: 12 × 7,087,872 = 85,054,464\nNorm: 2 × 768 = 1,536", "gpt2", "final norm"),
        ("3. **Final layer normalization**\n   - RMSNorm scales: **4,096 parameters**", "llama-2-7b", "final norm"),
        ("| `model.norm` | 4096 | **4,096** |", "llama-2-7b", "final norm"),
        ("768 × 2 = 1,536", "bert-base-uncased", None),
        ("K + V: 2 × 12 × 12 × 64 = 18,432", "gpt2", None),
        ("d_ff: 4 × 768 = 3,072", "gpt2", None),
        ("attention biases: 12 × 4 × 768 = 36,864", "gpt2", "attention biases of 12 layers"),
    ],
)
def test_a_number_as_small_as_a_width_is_named_by_its_label_and_place(text, against, what):
    assert named(text, against) == what


@pytest.mark.parametrize(
    ("text", "against", "what"),
    [
        ("concat: 768*768+768 = 590,592", "bert-base-uncased", "attention output projection of one layer"),
        ("第一层全连接: 768 * 768 * 4 + 768 * 4 = 2362368", "gpt2", "up projection of the MLP of one layer"),
        ("Attention: 4 × 4096 × 4096 × 2 = 134,217,728", "llama-3-8b", None),
        ("K (×32): 32 × 4096² = 536,870,912", "llama-3-8b", None),
        ("mlp/c_proj: 768*768 = 589,824", "gpt2", None),
    ],
)
def test_an_equal_number_of_something_else_is_not_its_name(text, against, what):
    assert named(text, against) == what


ROWS = """\
| Tensor | Shape | Count |
|---|---|---|
| Per block: `attn.q_proj` | (D=4096, D=4096) | 16,777,216 |
| Per block: `attn.k_proj` | (D=4096, D=4096) | 16,777,216 |
| Per block: `attn.v_proj` | (D=4096, D=4096) | 16,777,216 |
"""


def test_a_count_behind_a_shape_is_named_by_its_row():
    found = [one.matches for one in tallystick.check(ROWS, against="llama-2-7b").equations]
    assert found == [f"{name} projection of one layer" for name in ("query", "key", "value")]


def test_two_matrices_of_a_gated_mlp_are_told_without_a_formula():
    answer = tallystick.check("Sizes: 2 × 3 = 6\nFFN per layer: ~90.2M parameters\n", against="llama-2-7b")
    assert answer.equations[-1].label_names.endswith("two matrices are counted, and there are three (gate, up, down)")


def test_labelled_numbers_that_stand_alone_are_judged_by_the_model():
    text = """\
| Part | Shape | Parameters |
|---|---|---|
| Token embedding | (50257, 768) | 38,597,376 |
| 12 blocks of attention | | 28.3M |
| MLP of one layer | | 4,722,432 |
| Head of a classifier | | 1,234,567 |
"""
    answer = tallystick.check(text, against="gpt2")
    assert [(one.line, one.matches) for one in answer.equations] == [
        (3, "token embedding"), (4, "attention of 12 layers, without biases"), (5, "MLP of one layer"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "number", "what"),
    [
        ("word embeddings", 30522 * 768, "token embedding"),
        ("segment embeddings", 2 * 768, "segment embedding"),
        ("embedding LayerNorm", 2 * 768, "norm of the embeddings"),
        ("FFN in", 768 * 3072 + 3072, "up projection of the MLP of one layer"),
        ("FFN out", 3072 * 768 + 768, "down projection of the MLP of one layer"),
        ("pooler", 768 * 768 + 768, "pooler"),
        ("每层注意力 (W_Q, W_K, W_V, W_O)", 4 * (768 * 768 + 768), "attention of one layer"),
    ],
)
def test_the_parts_of_bert_have_their_names(label, number, what):
    bert = {"model_type": "bert", "architectures": ["BertModel"]}
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n{label}: {number} = {number:,}\n", against=bert)
    assert answer.equations[-1].matches == what


def test_one_expert_has_its_name():
    answer = tallystick.check("One expert: 3 × 4096 × 14336 = 176,160,768\n", against="mixtral-8x7b")
    assert answer.equations[-1].matches == "one expert of one layer"


def test_a_label_that_names_another_size_says_so():
    (equation,) = tallystick.check("Positions: 50257 × 768 = 38,597,376\n", against="gpt2").equations
    assert equation.label_names == "position embedding has 786,432"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("ln1b: 12 × 768 = 9,216", "norm ln_1 shifts of 12 layers"),
        ("LayerNorm 2 (scale + bias): 2 × 768 = 1,536", "norm ln_2 of one layer"),
        ("LayerNorm cuối cùng: 2 × 768 = 1.536", "final norm"),
    ],
)
def test_a_norm_is_named_by_its_words(line, what):
    (equation,) = tallystick.check(line, against="gpt2").equations
    assert equation.matches == what


@pytest.mark.parametrize(
    ("heading", "name"),
    [("1.3 Segment matrix", "segment embedding"), ("1.4 Norm of the embeddings", "norm of the embeddings")],
)
def test_an_item_with_the_number_of_a_section_names_what_stands_under_it(heading, name):
    text = f"1. Embedding layer\n    1.1 Tokens\n        Count: 30522 * 768 = 23440896\n    {heading}\n        Count: 2 * 768 = 1536\n"
    assert tallystick.check(text, against="bert-base-uncased").equations[-1].matches == name


def test_a_pooler_is_no_other_matrix_of_its_size():
    """GPT-2 has no pooler, and several matrices of that size."""
    text = "Pooler: 768 × 768 = 589,824\n"
    assert [one.matches for one in tallystick.check(text, against="gpt2").equations] == [None]


def test_a_part_whose_name_has_a_line_below_is_no_setting():
    answer = tallystick.check("ln_1: 768*2=1536\nln_2: 1536\n", against="gpt2")
    assert [(one.line, one.right, one.correct) for one in answer.equations] == [(1, 1536, True), (2, 1536, True)]


@pytest.mark.parametrize(
    ("text", "against", "what"),
    [
        ("# Output\nW_out = H × V = 4096 × 128256 = 525,336,576", "llama-3-8b", "head"),
        ("# GPT-2 (V = 50257, T_max = 1024)\nT_max · d = 1024 · 768 = 786,432", "gpt2", "position embedding"),
        ("## Embeddings\nLayerNorm: 2 × 768 = 1,536", "bert-base-uncased", "norm of the embeddings"),
        ("Norms: 28 × 2 × 1024 = 57,344", "qwen3-0.6b", "norms around attention and MLP of 28 layers"),
    ],
)
def test_sizes_and_headings_do_not_mislead(text, against, what):
    assert named(text, against) == what


def test_an_addend_with_its_result_has_its_own_words():
    text = "Block: attn c_attn 3*768*768 = 1,769,472 + attn c_proj 768*768 = 589,824 + mlp c_fc 768*3072 = 2,359,296\n"
    named = {one.right: one.matches for one in tallystick.check(text, against="gpt2").equations}
    assert named[589_824] == "attention output projection of one layer, without its bias"
    assert named[2_359_296] == "up projection of the MLP of one layer, without its bias"
    assert all(one.left == one.right for one in tallystick.check(text, against="gpt2").equations)


ATTENTION = "model.layers.*.self_attn.{}_proj.weight"
MLP = "model.layers.*.mlp.{}_proj.weight"


@pytest.mark.parametrize(
    ("line", "model", "what", "names"),
    [
        ("| q_proj, o_proj | 4096 × 4096 | 16,777,216 |", "llama-3-8b",
         "each of the query and attention output projections of one layer", [ATTENTION.format(one) for one in "qo"]),
        ("W_K and W_V are each 4096 × 1024 = 4,194,304", "llama-3-8b",
         "each of the key and value projections of one layer", [ATTENTION.format(one) for one in "kv"]),
        ("Query and output each have 4096 × 4096 = 16,777,216", "llama-3-8b",
         "each of the query and attention output projections of one layer", [ATTENTION.format(one) for one in "qo"]),
        ("gate=up=down: 4096 × 14336 = 58,720,256 each", "llama-3-8b",
         "each of the gate, up and down projections of the MLP of one layer", [MLP.format(one) for one in ("gate", "up", "down")]),
        ("attn c_proj: 768 × 768 = 589,824", "gpt2",
         "attention output projection of one layer, without its bias", ["transformer.h.*.attn.c_proj.weight"]),
        ("| `fc3` | `down_proj.weight` | [4096, 14336] | 58,720,256 |", "llama-3-8b",
         "down projection of the MLP of one layer", [MLP.format("down")]),
    ],
)  # fmt: skip
def test_a_number_that_several_matrices_have_each(line, model, what, names):
    equation = tallystick.check(f"{line}\nSizes: 2 × 3 = 6\n", against=model).equations[0]
    assert (equation.matches, sorted(equation.names)) == (what, sorted(names))


@pytest.mark.parametrize("heading", ["Formula (without embedding + LN)", "2.2.2 The output layer"])
def test_a_product_that_only_one_quantity_has_is_named_under_any_heading(heading):
    text = f"## {heading}\n\nParameters: 3072 × 768 + 768 = 2,360,064\n"
    (equation,) = tallystick.check(text, against="gpt2").equations
    assert equation.matches == "down projection of the MLP of one layer"


def test_under_parameters_and_flops_a_line_says_which():
    text = "## Parameters and FLOPs\n\nMLP per layer: 2 × 768 × 3072 = 4,718,592\nFLOPs of the MLP: 2 × 2,359,296 = 4,718,592\n"
    answer = tallystick.check(text, against="gpt2")
    assert [one.matches for one in answer.equations] == ["MLP of one layer, without biases", None]


def test_a_norm_behind_the_embeddings_is_theirs():
    text = "Words: 30522 × 768 = 23,440,896\nSegments: 2 × 768 = 1,536\nLayerNorm: 2 × 768 = 1,536\n"
    answer = tallystick.check(text, against="bert-base-uncased")
    assert [one.matches for one in answer.equations] == [
        "token embedding",
        "segment embedding",
        "norm of the embeddings",
    ]
