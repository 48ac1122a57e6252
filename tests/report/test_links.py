"""What belongs together has the same key: boxes, terms, rows, bytes and FLOPs of a part."""

import re
from xml.etree import ElementTree

import pytest

import tallystick
from tallystick.answers.memory.by_role import weights_by_role
from tallystick.report.charts.bars import draw_memory
from tallystick.report.html.mathml import typeset
from tallystick.report.html.page import compute_section, count_section, formula_section, memory_section
from tallystick.report.terms import Terms


def terms(model):
    """What is marked in a formula, as text with the roles."""
    answer = tallystick.formula(model)
    marked = re.findall(
        r'<mrow data-part="([^"]*)">(.*?)(?=<mrow data-part|</math>)', typeset(answer.expression, Terms(answer))
    )
    return [(re.sub(r"<[^>]*>", "", term), roles.split()) for roles, term in marked]


def test_the_terms_of_gpt2():
    # Of each block attention has 4·d² and 5·d, the MLP 8·d² and 5·d, the norms 4·d.
    assert [roles for _, roles in terms("gpt2")] == [
        ["token_embedding"], ["position_embedding"], ["attention", "mlp"], ["norm", "attention", "mlp"], ["norm"]
    ]  # fmt: skip
    assert terms("gpt2")[2][0].startswith("12·n_embd2")


def test_the_terms_of_an_untied_model_with_experts():
    found = terms("mixtral-8x7b")
    assert [roles for _, roles in found] == [
        ["token_embedding"], ["experts"], ["attention"], ["attention"], ["router"], ["norm"], ["head"], ["norm"]
    ]  # fmt: skip
    assert found[1][0].startswith("3·num_local_experts·intermediate_size·hidden_size")


def test_every_term_of_blocks_in_several_runs_is_marked():
    marks = [roles for _, roles in terms("nemotron-3-nano-30b-a3b")]
    assert {role for roles in marks for role in roles} == {
        "token_embedding", "ssm", "conv", "norm", "experts", "router", "mlp", "attention", "head"
    }  # fmt: skip


def rows(html):
    return re.findall(r'<tr data-part="([^"]*)"', html)


def test_the_rows_of_each_table():
    ledger = tallystick.count("gpt2")
    assert rows(count_section(ledger)) == list(ledger.by("role"))
    assert rows(formula_section(tallystick.formula(ledger))) == [entry.role for entry in ledger.parameters]
    assert "attention" in rows(memory_section(tallystick.memory(ledger)))
    assert rows(compute_section(tallystick.compute(ledger))) == [
        "token_embedding position_embedding", "attention", "attention", "attention", "mlp", "head"
    ]  # fmt: skip


def test_single_tensors_are_linked_by_their_names():
    html = count_section(tallystick.count("gpt2"), by="tensor")
    assert html.count('data-tensor="transformer.h.*.mlp.c_fc.weight"') == 12
    assert 'data-part="head" data-tensor="lm_head.weight"' in html


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("float16", 2)])
def test_the_weights_bytes_are_shared_by_role(dtype, size):
    answer = tallystick.memory("gpt2", dtype=dtype)
    found = weights_by_role(answer)
    assert found["token_embedding"] == size * 50_257 * 768
    assert found["attention"] == size * 12 * (768 * 2304 + 2304 + 768 * 768 + 768)
    assert found["head"] == 0  # tied
    assert sum(found.values()) == answer.weights_bytes


def test_a_role_s_share_of_the_weights_is_as_long_as_its_bytes():
    answer = tallystick.memory("gpt2", mode="training")
    picture = ElementTree.fromstring(draw_memory(answer, width=1000, roles=tallystick.count("gpt2").by("role")))
    shares = [
        one for one in picture.iter() if one.get("class") == "share" and one.get("data-part") == "token_embedding"
    ]
    lengths = [float(re.search(r"h([\d.]+)", one.get("d"))[1]) for one in shares]
    bar = next(float(box.get("width")) for box in picture.iter() if box.get("class") == "weights")
    assert lengths[0] / bar == pytest.approx(38_597_376 / 124_439_808, rel=0.001)
