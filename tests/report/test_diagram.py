"""The diagram has the area of each part to scale, and shows what a model is made of: ties, heads,
experts, windows, kinds of blocks. The counts are products of published sizes.
"""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest

import tallystick
from tallystick.core.anatomy import Attending, Heads
from tallystick.core.description import ModelDescription
from tallystick.core.entries import Axis, Entry
from tallystick.core.ledger import Ledger
from tallystick.presets import PRESETS
from tallystick.report.charts.diagram import draw_model

SVG = "{http://www.w3.org/2000/svg}"
EXPERT = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)")

# Of all layers together. GPT-2: Radford et al. 2019; the others: the configs on their model cards.
SIZES = {
    "gpt2": {
        "transformer.wte.weight": 50_257 * 768,
        "transformer.wpe.weight": 1024 * 768,
        "transformer.h.*.attn.c_attn.weight": 12 * (768 * 2304 + 2304 + 768 * 768 + 768),
        "transformer.h.*.mlp.c_fc.weight": 12 * (768 * 3072 + 3072 + 3072 * 768 + 768),
        "transformer.h.*.ln_1.weight": 12 * 2 * 768,
        "transformer.ln_f.weight": 2 * 768,
    },
    "llama-3-8b": {
        "model.embed_tokens.weight": 128_256 * 4096,
        "model.layers.*.self_attn.q_proj.weight": 32 * 2 * (4096 * 4096 + 1024 * 4096),
        "model.layers.*.mlp.up_proj.weight": 32 * 3 * 14_336 * 4096,
        "model.layers.*.input_layernorm.weight": 32 * 4096,
        "lm_head.weight": 128_256 * 4096,
    },
    "mixtral-8x7b": {
        "model.embed_tokens.weight": 32_000 * 4096,
        "model.layers.*.self_attn.k_proj.weight": 32 * 2 * (4096 * 4096 + 1024 * 4096),
        "model.layers.*.mlp.gate.weight": 32 * 8 * 4096,
        "model.layers.*.mlp.experts.down_proj": 32 * 8 * 3 * 14_336 * 4096,
    },
    "deepseek-v3": {
        "model.embed_tokens.weight": 129_280 * 7168,
        "model.layers.*.mlp.experts.down_proj": 58 * 256 * 3 * 2048 * 7168,
        "model.layers.*.mlp.shared_experts.up_proj.weight": 58 * 3 * 2048 * 7168,
        "model.layers.*.mlp.gate_proj.weight": 3 * 3 * 18_432 * 7168,
        "lm_head.weight": 129_280 * 7168,
    },
    "gemma-3-1b": {
        "model.embed_tokens.weight": 262_144 * 1152,
        "model.norm.weight": 1152,
    },
}
TOTALS = {
    "gpt2": 124_439_808,
    "llama-3-8b": 8_030_261_248,
    "mixtral-8x7b": 46_702_792_704,
    "deepseek-v3": 671_026_404_352,
    "gemma-3-1b": 999_885_952,
}


def drawn(model, **options):
    return ElementTree.fromstring(draw_model(tallystick.count(model) if isinstance(model, str) else model, **options))


def places(element):
    """The place of each box to scale: x, y, width, height; experts are boxes of one path."""
    for box in element.iter(f"{SVG}rect"):
        yield tuple(float(box.get(name)) for name in ("x", "y", "width", "height"))
    for line in element.iter(f"{SVG}path"):
        if line.get("class") == "experts":
            yield from (tuple(map(float, box)) for box in EXPERT.findall(line.get("d")))


def area(element):
    return sum(width * height for _, _, width, height in places(element))


def parts(picture, tensor):
    """The groups that hold a tensor, in which it is counted."""
    found = [one for one in picture.iter(f"{SVG}g") if tensor in (one.get("data-tensor") or "").split()]
    return [one for one in found if one.get("data-tie") is None]


def named(part):
    """The boxes of an attention by the start of what they say."""
    return [(box.findtext(f"{SVG}title"), box) for box in part.iter(f"{SVG}rect") if box.findtext(f"{SVG}title")]


def block_counts(picture):
    return [int(one.get("data-layers")) for one in picture.iter(f"{SVG}g") if one.get("data-layers")]


def said(picture):
    return [line.text for line in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize("width", [340, 960])
@pytest.mark.parametrize("model", SIZES)
def test_each_area_is_to_scale(model, width):
    picture = drawn(model, width=width)
    scale = area(picture) / TOTALS[model]
    for tensor, parameters in SIZES[model].items():
        (part,) = parts(picture, tensor)
        assert area(part) == pytest.approx(parameters * scale, rel=0.01, abs=0.05), tensor


@pytest.mark.parametrize("unfolded", [False, True])
@pytest.mark.parametrize("model", ["gpt2", "deepseek-v3", "qwen3-next-80b-a3b", "bert-base-uncased"])
def test_all_areas_together_are_the_same_folded_or_not(model, unfolded):
    tree = drawn(model, width=800, unfolded=unfolded)
    assert area(tree) == pytest.approx(area(drawn(model, width=800)), rel=0.005)
    assert area(tree) == pytest.approx((800 - 66) * 336, rel=0.005)  # less gutters and frames, at 42% of the width


@pytest.mark.parametrize("model", PRESETS)
def test_no_box_is_outside_or_over_another(model):
    picture = drawn(model, width=600)
    boxes = list(places(picture))
    assert all(x >= 0 and y >= 0 and x + w <= 600 and y + h <= float(picture.get("height")) for x, y, w, h in boxes)
    rows = sorted(boxes, key=lambda box: box[1])
    for place, (x, y, w, h) in enumerate(rows):
        for u, v, across, down in rows[place + 1 :]:
            if v >= y + h - 0.02:
                break
            assert min(x + w, u + across) - max(x, u) < 0.02 or min(y + h, v + down) - max(y, v) < 0.02


def test_a_block_is_drawn_once_or_each_layer_of_it():
    folded, unfolded = drawn("gpt2"), drawn("gpt2", unfolded=True)
    assert block_counts(folded) == [12]
    assert len(parts(folded, "transformer.h.*.mlp.c_fc.weight")) == 1
    layers = Counter(box.get("data-layer") for box in unfolded.iter(f"{SVG}rect") if box.get("data-part") == "mlp")
    assert layers == {str(number): 1 for number in range(12)}
    areas = {round(area_of(box), 1) for box in unfolded.iter(f"{SVG}rect") if box.get("data-part") == "attention"}
    assert max(areas) - min(areas) < 0.5
    assert sum(areas) / len(areas) * 12 == pytest.approx(
        area(parts(folded, "transformer.h.*.attn.c_attn.weight")[0]), rel=0.01
    )


def area_of(box):
    return float(box.get("width")) * float(box.get("height"))


def test_a_tied_head_is_the_embedding_again():
    picture = drawn("gpt2")
    (chip,) = [one for one in picture.iter(f"{SVG}g") if one.get("data-tie")]
    assert (chip.get("data-part"), area(chip)) == ("head", 0)
    assert chip.get("data-tensor").split() == ["lm_head.weight", "transformer.wte.weight"]
    assert "counted once" in chip.findtext(f"{SVG}title")
    (arrow,) = [line for line in picture.iter(f"{SVG}path") if line.get("class") == "tie"]
    assert arrow.get("data-tensor") == "transformer.wte.weight"
    assert not [one for one in drawn("llama-3-8b").iter() if one.get("data-tie") or one.get("class") == "tie"]


def test_a_lost_tie_is_drawn_as_a_matrix_of_its_own():
    picture = drawn(tallystick.count("gpt2", tie_word_embeddings=False))
    (head,), (embedding,) = parts(picture, "lm_head.weight"), parts(picture, "transformer.wte.weight")
    assert area(head) == pytest.approx(area(embedding), rel=0.001)


def test_a_kv_head_lies_below_the_queries_that_share_it():
    (attention,) = parts(drawn("llama-3-8b", width=1000), "model.layers.*.self_attn.k_proj.weight")
    boxes = {title.partition(":")[0]: box for title, box in named(attention)}
    assert {name: box.get("data-heads") for name, box in boxes.items()} == {
        "q_proj": "32", "k_proj": "8", "v_proj": "8", "o_proj": "32"
    }  # fmt: skip
    assert boxes["k_proj"].get("width") == boxes["q_proj"].get("width")
    assert 4 * area_of(boxes["k_proj"]) == pytest.approx(area_of(boxes["q_proj"]), rel=0.001)
    assert float(boxes["k_proj"].get("y")) > float(boxes["q_proj"].get("y"))
    assert "32 query heads share 8 KV heads" in said(drawn("llama-3-8b"))


def test_a_fused_projection_is_drawn_as_queries_keys_and_values():
    (attention,) = parts(drawn("falcon-7b"), "transformer.h.*.self_attention.query_key_value.weight")
    heads = [(title.partition(": 32")[0], box.get("data-heads")) for title, box in named(attention)]
    assert heads == [
        ("query_key_value: queries", "71"), ("query_key_value: keys", "1"), ("query_key_value: values", "1"), ("dense", "71")
    ]  # fmt: skip


def test_experts_in_use_and_idle_ones():
    for model, used, of in (("mixtral-8x7b", 2, 8), ("deepseek-v3", 8, 256)):
        (experts,) = parts(drawn(model), "model.layers.*.mlp.experts.down_proj")
        states = {line.get("data-state"): line for line in experts.iter(f"{SVG}path") if line.get("data-state")}
        assert {state: len(list(places(line))) for state, line in states.items()} == {"used": used, "idle": of - used}
        assert area(states["used"]) / area(experts) == pytest.approx(used / of, rel=0.01)


def test_a_latent_is_a_waist():
    attention = parts(drawn("deepseek-v3"), "model.layers.*.self_attn.kv_a_proj_with_mqa.weight")[1]
    boxes = {title.partition(":")[0]: box for title, box in named(attention)}
    assert [name for name, box in boxes.items() if box.get("data-latent")] == ["q_a_proj", "kv_a_proj_with_mqa"]
    assert [name for name, box in boxes.items() if box.get("data-heads") == "128"] == [
        "q_b_proj",
        "kv_b_proj",
        "o_proj",
    ]
    assert float(boxes["kv_a_proj_with_mqa"].get("width")) < float(boxes["kv_b_proj"].get("width"))
    sizes = {"q_b_proj": 24_576 * 1536, "kv_a_proj_with_mqa": 576 * 7168, "o_proj": 7168 * 16_384}
    whole = sum(area_of(boxes[name]) for name in sizes)
    for name, size in sizes.items():
        assert area_of(boxes[name]) / whole == pytest.approx(size / sum(sizes.values()), rel=0.01)


def test_kinds_of_blocks_by_window():
    # Gemma 3: every sixth layer attends to all positions, 4 of 26; all have the same tensors.
    picture = drawn("gemma-3-1b")
    assert block_counts(picture) == [22, 4]
    windowed, full = parts(picture, "model.layers.*.mlp.up_proj.weight")
    assert area(windowed) / area(full) == pytest.approx(22 / 4, rel=0.001)
    assert [line.get("data-mask") for line in picture.iter(f"{SVG}path") if line.get("data-mask")] == ["window", "full"]
    assert any("window of 512" in line for line in said(picture))
    assert "".join(line for line in said(picture) if line in ("A", "B")) == "AAAAAB" * 4 + "AA"  # their order


def test_kinds_of_blocks_by_their_tensors():
    assert block_counts(drawn("deepseek-v3")) == [3, 58]
    # Nemotron 3 Nano: 23 Mamba 2 layers, 23 of experts, 6 of attention.
    assert block_counts(drawn("nemotron-3-nano-30b-a3b")) == [23, 23, 6]
    jamba = tallystick.count({"model_type": "jamba"})
    # Jamba's 32 layers: attention in 1 of 8, experts in 1 of 2, never both at this offset.
    assert sorted(block_counts(drawn(jamba))) == [4, 12, 16]


def single(name, shape, role, **more):
    return Entry(name, shape, role, "float32", name, shape[0] * shape[-1], **more)


def test_a_checkpoint_without_config_is_drawn_by_its_names():
    entries = [single("embed.weight", (10, 8), "token_embedding")]
    for layer in range(3):
        entries.append(single(f"layers.{layer}.attn.qkv.weight", (24, 8), "attention"))
        entries += [single(f"layers.{layer}.moe.experts.{number}.up.weight", (8, 16), "experts") for number in range(4)]
    picture = drawn(Ledger(entries, source="ours", kind="safetensors"))
    assert block_counts(picture) == [3]
    (experts,) = parts(picture, "layers.*.moe.experts.*.up.weight")
    assert len(list(places(experts))) == 4
    assert area(experts) / area(picture) == pytest.approx(3 * 4 * 128 / (80 + 3 * 192 + 3 * 4 * 128), rel=0.01)


@pytest.mark.parametrize(
    ("heads", "mask"),
    [
        (Heads(2, 2, 4), "full"),
        (Heads(2, 2, 4, windows=((16, 1),)), "window"),
        (Heads(2, 2, 4, windows=((16, 1),), chunked=True), "chunks"),
        (Heads(2, 2, 4, causal=False), "both"),
    ],
)
def test_what_a_position_attends_to_is_drawn(heads, mask):
    name = "layers.{}.attn.q.weight"
    entry = Entry(name, (8, 8), "attention", "float32", name, 64, axes=(Axis(0, 2),))
    model = ModelDescription(attending=(Attending("layers.{}.attn", 0, 2, heads),))
    picture = drawn(Ledger([entry], source="ours", kind="config", model=model))
    assert [line.get("data-mask") for line in picture.iter(f"{SVG}path") if line.get("data-mask")] == [mask]


def test_a_million_layers_are_one_block():
    many = tallystick.count("gpt2", n_layer=10**6)
    assert block_counts(drawn(many)) == block_counts(drawn(many, unfolded=True)) == [10**6]
    assert len(draw_model(many)) < 20_000


def test_an_empty_model_and_a_hostile_name_are_drawn():
    drawn(Ledger([], source="nothing", kind="safetensors"))
    name = "<script>&\"'.weight"
    hostile = Ledger([single(name, (4, 4), "other")], source="<b>&", kind="safetensors")
    assert "<script>" not in draw_model(hostile)
    assert parts(drawn(hostile), name)
