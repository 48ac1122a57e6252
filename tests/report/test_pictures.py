"""The pictures say what the answers say: areas, bars, marks of ties; and a page of them needs
nothing else.
"""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallystick
from tallystick.cli.main import main
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.presets import PRESETS
from tallystick.report.charts.bars import draw_comparison, draw_explanation, draw_memory
from tallystick.report.charts.tiles import Place, in_a_row, in_rows, squarified
from tallystick.report.charts.treemap import draw_tensors
from tallystick.report.html.mathml import typeset
from tallystick.report.html.page import count_page

SVG = "{http://www.w3.org/2000/svg}"


def tiles(picture):
    """The tiles with what they say."""
    return [(box, box.findtext(f"{SVG}title") or "") for box in ElementTree.fromstring(picture).iter(f"{SVG}rect")]


def tile(picture, start):
    (found,) = [box for box, said in tiles(picture) if said.startswith(start)]
    return found


def area(box):
    return float(box.get("width")) * float(box.get("height"))


def words(picture):
    return [line.text for line in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40), st.floats(20, 2000), st.floats(20, 2000))
def test_areas_are_in_proportion_and_inside(sizes, width, height):
    places = squarified(sizes, Place(3, 5, width, height))
    scale = width * height / (sum(sizes) or 1)
    for size, place in zip(sizes, places, strict=True):
        assert place.width * place.height == pytest.approx(size * scale, abs=1e-6 * width * height)
        assert place.x >= 3 - 1e-6
        assert place.y >= 5 - 1e-6
        assert place.x + place.width <= 3 + width * (1 + 1e-6)
        assert place.y + place.height <= 5 + height * (1 + 1e-6)


def test_no_two_tiles_lie_over_each_other():
    places = squarified([5, 4, 3, 3, 2, 1, 1], Place(0, 0, 100, 60))
    for number, one in enumerate(places):
        for other in places[:number]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(across, down) < 1e-9


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.floats(20, 2000), st.floats(20, 2000))
def test_rows_have_areas_in_proportion_and_are_read_like_a_text(sizes, width, height):
    places = in_rows(sizes, Place(3, 5, width, height))
    scale = width * height / (sum(sizes) or 1)
    for size, place in zip(sizes, places, strict=True):
        assert place.width * place.height == pytest.approx(size * scale, abs=1e-6 * width * height)
        assert place.x + place.width <= 3 + width * (1 + 1e-6)
        assert place.y + place.height <= 5 + height * (1 + 1e-6)
    drawn = [place for place in places if place.width and place.height]
    assert [(place.y, place.x) for place in drawn] == sorted((place.y, place.x) for place in drawn)


def test_layers_are_drawn_in_their_order():
    picture = draw_tensors(tallystick.count("gpt2"), by="role")
    drawn = {said: box for box, said in tiles(picture) if box.get("class") == "mlp"}
    layers = [
        next(box for said, box in drawn.items() if re.match(rf"transformer\.h\.{number}: ", said))
        for number in range(12)
    ]
    places = [(float(box.get("y")), float(box.get("x"))) for box in layers]
    assert places == sorted(places)
    assert len({y for y, _ in places}) > 1


def test_lengths_in_a_row_are_in_proportion():
    assert [place.width for place in in_a_row([1, 0, 3], Place(0, 0, 100, 10))] == [25, 0, 75]


@pytest.mark.parametrize("layout", ["treemap", "icicle"])
def test_a_tied_tensor_is_drawn_once_and_marked_at_both_places(layout):
    picture = draw_tensors(tallystick.count("gpt2"), layout=layout)
    marked = {box.get("class"): said for box, said in tiles(picture) if box.get("data-tie") == "1"}
    assert marked.keys() == {"token_embedding", "head"}
    assert marked["token_embedding"].startswith("transformer.wte.weight: 50,257 × 768, 38,597,376 parameters (31.0%)")
    assert "lm_head.weight is transformer.wte.weight (tied), counted once there" in marked["head"]
    assert [said for _, said in tiles(picture) if said.startswith("lm_head")] == []


def test_an_untied_head_has_the_area_of_the_embedding():
    picture = draw_tensors(tallystick.count("gpt2", tie_word_embeddings=False), by="tensor", width=1600)
    assert area(tile(picture, "lm_head.weight:")) == pytest.approx(
        area(tile(picture, "transformer.wte.weight:")), rel=0.05
    )
    assert not [box for box, _ in tiles(picture) if box.get("data-tie")]


def test_tensors_stand_in_their_layers_and_these_in_their_roles():
    said = [said for _, said in tiles(draw_tensors(tallystick.count("gpt2"), width=1600))]
    assert "mlp: 56,669,184 parameters (45.5%)" in said
    assert f"transformer.h.11: {2 * 768 * 3072 + 3072 + 768:,} parameters (3.8%)" in said
    assert "transformer.h.11.mlp.c_fc.weight: 768 × 3,072, 2,359,296 parameters (1.9%)" in said
    by_layer = [said for _, said in tiles(draw_tensors(tallystick.count("gpt2"), by="layer", width=1600))]
    assert "transformer.h.11: 7,087,872 parameters (5.7%)" in by_layer


def test_a_million_layers_are_drawn_as_one_stack():
    picture = draw_tensors(tallystick.count("gpt2", n_layer=10**6))
    assert len(tiles(picture)) < 100
    assert any("1,000,000 tensors of 768 × 3,072" in said for _, said in tiles(picture))


def test_an_empty_model_and_a_hostile_name_are_drawn():
    name = "<script>&\"'.weight"
    entry = Entry(name, (4, 4), "other", "float32", name, 16)
    assert any(name in said for _, said in tiles(draw_tensors(Ledger([entry], source="<b>&", kind="safetensors"))))
    assert "<script>" not in count_page(Ledger([entry], source="<b>&", kind="safetensors"))
    ElementTree.fromstring(draw_tensors(Ledger([], source="nothing", kind="safetensors")))


def test_causes_lead_from_one_count_to_the_other():
    picture = draw_comparison(tallystick.compare("llama-2-7b", "llama-3-8b"), width=1000)
    assert words(picture)[1::2] == [
        "6,738,415,616", "+1,308,622,848", "-805,306,368", "+788,529,152", "8,030,261,248"
    ]  # fmt: skip
    bars = {}  # a bar that is broken has two boxes
    for box, _ in tiles(picture):
        start, long = float(box.get("x")), float(box.get("width"))
        bars.setdefault(box.get("y"), []).append((start, start + long))
    ends = [(boxes[0][0], boxes[-1][1]) for boxes in bars.values()]
    assert ends[1][0] == pytest.approx(ends[0][1], abs=0.2)  # more begins where the count ended
    assert ends[2][1] == pytest.approx(ends[1][1], abs=0.2)  # fewer goes back from there
    assert ends[3][0] == pytest.approx(ends[2][0], abs=0.2)
    assert ends[4][1] == pytest.approx(ends[3][1], abs=0.2)


def test_an_axis_that_does_not_begin_at_nothing_says_so():
    close = tallystick.compare("gpt2", tallystick.count("gpt2", n_positions=1000))
    assert words(draw_comparison(close))[-1].startswith("the bars are broken: the first ")
    assert draw_comparison(close).count('class="break"') == 2  # both whole counts
    far = tallystick.compare("gpt2", "gpt2-medium")
    assert not [line for line in words(draw_comparison(far)) if "broken" in line]
    assert 'class="break"' not in draw_comparison(far)


def test_a_claim_is_reached_by_its_steps():
    answer = tallystick.reconcile("gpt2", "163M")
    assert words(draw_explanation(answer, answer.explanations[0]))[1::2] == [
        "124,439,808",
        "+38,597,376",
        "162,500,000 to 163,500,000",
    ]


def test_a_claim_that_nothing_explains_is_drawn_as_what_it_is():
    answer = tallystick.reconcile("llama-2-7b", "163M")
    drawn = words(draw_explanation(answer, answer.explanations[0]))
    assert drawn[2:] == ["not explained: at least", "-6,574,915,616", "claimed: 163M", "162,500,000 to 163,500,000"]
    answer = tallystick.reconcile("gpt2", "123,550,272")
    assert words(draw_explanation(answer, answer.explanations[0]))[-3:-1] == ["claimed: 123,550,272", "123,550,272"]


@pytest.mark.parametrize("options", [{}, {"mode": "training", "device": "h100"}])
def test_each_moment_has_a_bar_as_long_as_its_bytes(options):
    answer = tallystick.memory("gpt2", **options)
    picture = draw_memory(answer, width=1000)
    most = max(answer.total_bytes, answer.device.memory if answer.device else 0)
    rows = {}
    for box, _ in tiles(picture):
        if box.get("height") == "16":
            rows[box.get("y")] = max(rows.get(box.get("y"), 0), float(box.get("x")) + float(box.get("width")))
    assert list(rows.values()) == pytest.approx([1000 * phase.bytes / most for phase in answer.phases], abs=2)


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_bars_begin_at_nothing_where_a_byte_is_seen(mode):
    tiny = {"model_type": "gpt2", "vocab_size": 2, "n_positions": 1, "n_embd": 1, "n_layer": 1, "n_head": 1}
    answer = tallystick.memory(tiny, mode=mode)
    assert answer.total_bytes < 1000  # at this width a byte is more than a pixel
    bars = {}
    for box, _ in tiles(draw_memory(answer, width=1000)):
        if box.get("height") == "16":
            start = float(box.get("x"))
            bars.setdefault(box.get("y"), []).append((start, start + float(box.get("width"))))
    assert [parts[0][0] for parts in bars.values()] == [0] * len(answer.phases)
    ends = [1000 * phase.bytes / answer.total_bytes for phase in answer.phases]
    assert [parts[-1][1] for parts in bars.values()] == pytest.approx(ends, abs=0.2)


def test_a_formula_is_typeset_in_the_order_in_which_it_is_written():
    markup = typeset(tallystick.formula("gpt2").expression)
    text = "".join(ElementTree.fromstring(f"<all>{markup}</all>").itertext()).replace(" ", "")
    assert text == "vocab_size·n_embd+n_positions·n_embd+n_layer·(12·n_embd2+13·n_embd)+2·n_embd"


@pytest.mark.parametrize(
    ("expression", "markup"),
    [
        ("256*(-(-d//96))", "<mrow><mn>256</mn><mo>·</mo><mrow><mo>⌈</mo><mfrac><mi>d</mi><mn>96</mn></mfrac><mo>⌉</mo></mrow></mrow>"),
        ("a//b", "<mrow><mo>⌊</mo><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>⌋</mo></mrow>"),
        ("(a*b)**2", "<msup><mrow><mo>(</mo><mi>a</mi><mo>·</mo><mi>b</mi><mo>)</mo></mrow><mn>2</mn></msup>"),
        ("max(a, 2)", "<mrow><mi>max</mi><mrow><mo>(</mo><mi>a</mi><mo>,</mo><mn>2</mn><mo>)</mo></mrow></mrow>"),
        ("12345", "<mn>12,345</mn>"),
    ],
)  # fmt: skip
def test_how_arithmetic_is_typeset(expression, markup):
    assert typeset(expression) == f"<math>{markup}</math>"


def test_what_is_taken_away_from_a_difference_keeps_its_parentheses():
    assert "<mo>(</mo><mi>b</mi>" in typeset("a - (b - c)")


@pytest.mark.parametrize("name", ["gpt2", "deepseek-v3", "gemma-2-2b", "opt-350m"])
def test_formulas_of_presets_are_sound_markup(name):
    assert name in PRESETS
    ElementTree.fromstring(f"<all>{typeset(tallystick.formula(name).expression)}</all>")


@pytest.mark.parametrize(
    "command", ["count gpt2", "count gpt2 --by tensor", "compare gpt2 gpt2-medium", "count mixtral-8x7b --by layer"]
)
def test_a_page_is_one_file_that_loads_nothing(command, capsys):
    assert main([*command.split(), "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\s(src|href|on\w+)=", page)
    assert set(re.findall(r"https?://[\w./]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert page.count("<svg ") >= 1


def test_a_page_has_the_numbers_of_the_count(capsys):
    main(["count", "gpt2", "--format", "html"])
    page = capsys.readouterr().out
    for number in ("124,439,808", "163,037,184", "38,597,376", "28,348,416", "56,669,184"):
        assert number in page
    main(["compare", "gpt2", "gpt2-medium", "--format", "html"])
    assert "230,383,360" in capsys.readouterr().out
