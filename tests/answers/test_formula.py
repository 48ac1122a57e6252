"""The formula against SymPy and against other configs: it must hold at values that it was not
derived from.
"""

import ast
import json
import math
import operator
import re
from fractions import Fraction

import pytest
import sympy
from hypothesis import assume, example, given
from hypothesis import strategies as st

import configs
import tallystick
import unpackaged
from drawing import drawn, some
from native import NATIVE
from rotating import MODELS, drawn_by_commit, half_by_commit
from tallystick.cli.main import main
from tallystick.core.algebra.dims import Dim, ceil, floor
from tallystick.core.description import ModelDescription
from tallystick.core.entries import Entry
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput
from tallystick.presets import PRESETS
from tallystick.sources.configs.config import ledger_from_config

ALL = {**configs.CONFIGS, **unpackaged.DRAWN}
GPT2 = "vocab_size*n_embd + n_positions*n_embd + n_layer*(12*n_embd**2 + 13*n_embd) + 2*n_embd"


# What people write, as SymPy and Python read it.
SYMPY = str.maketrans({",": "", "×": "*", "·": "*", "⌈": "ceiling(", "⌉": ")", "⌊": "floor(", "⌋": ")"})
TEXT = SYMPY | str.maketrans({power: f"**{number}" for number, power in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})


def value_of(formula, symbols):
    """The closed form's value."""
    return worth(formula.expression, symbols)


def worth(expression, symbols):
    """The value of what is written, by Python's exact fractions, in a hundredth of SymPy's time."""
    names = {"exact": Fraction, "floor": math.floor, "ceiling": math.ceil, "__builtins__": {}}
    value = Fraction(eval(exact(expression), names, {name: Fraction(value) for name, value in symbols.items()}))
    assert value.denominator == 1
    return int(value)


def exact(expression):
    """The expression with exact numbers: a quotient of Python's integers is rounded."""
    return re.sub(r"\b\d+\b", r"exact(\g<0>)", expression)


def by_sympy(expression, symbols):
    """What is written as SymPy's expression; sympify reads the same, in twenty times the time."""
    names = {"exact": sympy.Integer, "floor": sympy.floor, "ceiling": sympy.ceiling, "__builtins__": {}}
    return sympy.sympify(eval(exact(expression), names, symbols))


def from_latex(text):
    text = text.replace("{,}", "").replace(r"\times", "*")
    text = re.sub(r"\\mathrm{(.*?)}", lambda name: name[1].replace(r"\_", "_"), text)
    text = re.sub(r"\^{(\d+)}", r"**\1", text).replace(r"\cdot", "*").replace(r"\left(", "(").replace(r"\right)", ")")
    while "{" in text:
        before = text
        text = re.sub(r"\\frac{([^{}]*)}{([^{}]*)}", r"(\1)/(\2)", text)
        text = re.sub(r"\\left\\l(floor|ceil){([^{}]*)}\\right\\r\1", r"\1(\2)", text).replace("ceil(", "ceiling(")
        assert text != before, f"cannot read {text}"
    return text


def blocks(expression):
    """The terms of each sum that is multiplied: the sum of one layer."""
    for node in ast.walk(ast.parse(expression, mode="eval")):
        match node:
            case ast.BinOp(op=ast.Mult(), right=ast.BinOp(op=ast.Add() | ast.Sub()) as total):
                yield [ast.unparse(term) for term in summands(total)]


def names_in(expression):
    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}


def summands(node):
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return [*summands(left), right]
    return [node]


def test_gpt2_reads_as_it_is_taught():
    formula = tallystick.formula("gpt2")
    assert formula.expression == GPT2
    assert formula.text == ("vocab_size·n_embd + n_positions·n_embd + n_layer·(12·n_embd² + 13·n_embd) + 2·n_embd")
    assert formula.value == 124_439_808
    assert formula.symbols == {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12}


def test_gpt2_formula_at_the_other_sizes():
    formula = tallystick.formula("gpt2")
    for d, layers, truth in ((1024, 24, 354_823_168), (1280, 36, 774_030_080), (1600, 48, 1_557_611_200)):
        other = {**formula.symbols, "n_embd": d, "n_layer": layers}
        assert int(sympy.sympify(formula.expression).subs(other)) == value_of(formula, other) == truth


@pytest.mark.parametrize(
    "name", half_by_commit(PRESETS, *MODELS, "src/tallystick/answers/formula.py", "src/tallystick/presets/")
)
def test_every_preset_has_a_formula_that_gives_its_count(name):
    ledger = tallystick.count(name)
    formula = tallystick.formula(ledger)
    assert value_of(formula, formula.symbols) == formula.value == ledger.total
    assert sum(step.value for step in formula.steps) == formula.value
    assert names_in(formula.expression) - {"floor", "ceiling"} <= set(formula.symbols)


def test_of_each_default_the_formula_has_the_count():
    """What drawn configs set, a default may leave to another key: the encoder's width of BLT."""
    wrong = []
    for model_type in NATIVE:
        try:
            found = tallystick.formula({"model_type": model_type})
        except BadInput:  # transformers builds no model of its default
            continue
        if not value_of(found, found.symbols) == found.value == tallystick.count({"model_type": model_type}).total:
            wrong.append(model_type)
    assert wrong == []


@pytest.mark.parametrize("model_type", ["gpt2", "falcon", "bamba", "gemma3n_text", "deepseek_v4", "blip-2"])
def test_sympy_reads_the_expression(model_type):
    formula = tallystick.formula({"model_type": model_type})
    names = {name: sympy.Symbol(name) for name in formula.symbols}  # SymPy has a function of the name expand
    read = sympy.sympify(formula.expression, names)
    assert read == by_sympy(formula.expression, names)
    assert read.subs(formula.symbols) == formula.value


@pytest.mark.parametrize("model_type", some(sorted(ALL), 60))
@drawn_by_commit(4)
@given(data=st.data())
def test_the_steps_and_the_expression_agree_for_any_config(model_type, data):
    ledger = ledger_from_config(data.draw(ALL[model_type]), {}, source="test")
    formula = tallystick.formula(ledger)
    assert value_of(formula, formula.symbols) == formula.value == ledger.total
    assert worth(from_latex(formula.latex), formula.symbols) == formula.value
    assert worth(formula.text.translate(TEXT), formula.symbols) == formula.value
    for step in formula.steps:
        assert worth(step.expression, formula.symbols) == step.value
        assert worth(step.substituted.translate(SYMPY), {}) == step.value


@pytest.mark.parametrize(
    "model_type", half_by_commit(sorted(ALL), *MODELS, "src/tallystick/answers/formula.py", "src/tallystick/presets/")
)
@drawn(1)
@given(data=st.data())
def test_the_closed_form_is_the_sum_of_the_steps_for_any_sizes(model_type, data):
    """SymPy expands both, and finds no like terms left within a block."""
    formula = tallystick.formula(ledger_from_config(data.draw(ALL[model_type]), {}, source="test"))
    names = {name: sympy.Symbol(name, positive=True, integer=True) for name in formula.symbols}
    steps = sympy.Add(*(by_sympy(step.expression, names) for step in formula.steps))
    assert sympy.expand(by_sympy(formula.expression, names) - steps) == 0
    for terms in blocks(formula.expression):
        read = [by_sympy(term, names) for term in terms]
        assert all(term == sympy.expand(term) for term in read)
        assert len({term.as_coeff_Mul()[1] for term in read}) == len(read)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("llama", {"hidden_size": 96, "num_attention_heads": 6, "num_hidden_layers": 5, "vocab_size": 77}),
        ("llama", {"intermediate_size": 50, "num_hidden_layers": 1}),
        ("mixtral", {"num_local_experts": 5, "intermediate_size": 9, "num_key_value_heads": 4}),
        ("deepseek_v3", {"first_k_dense_replace": 7, "n_routed_experts": 12, "n_shared_experts": 3, "q_lora_rank": 5}),
        ("deepseek_v3", {"first_k_dense_replace": 61, "kv_lora_rank": 3, "v_head_dim": 4}),
        ("gpt_oss", {"num_local_experts": 9, "head_dim": 16, "hidden_size": 20}),
        ("falcon", {"hidden_size": 142, "vocab_size": 5}),
        ("opt", {"max_position_embeddings": 9, "ffn_dim": 8}),
        ("gemma2", {"head_dim": 10, "num_key_value_heads": 2}),
        ("bamba", {"mamba_d_conv": 5, "mamba_n_groups": 2, "num_hidden_layers": 9}),
    ],
)
def test_the_formula_of_one_config_gives_the_count_of_another(model_type, changes):
    formula = tallystick.formula({"model_type": model_type})
    other = tallystick.count({"model_type": model_type, **changes})
    assert value_of(formula, {**formula.symbols, **changes}) == other.total != formula.value


def test_runs_of_equal_layers_are_added_up():
    """Two of the layers attend, wherever they are, and all others scan."""
    config = {"model_type": "bamba", "attn_layer_indices": [3, 7]}
    formula = tallystick.formula(config)
    assert formula.expression.count("(num_hidden_layers - 2)*(") == 1
    assert formula.expression.count("2*(") == 1
    assert r"\left(\mathrm{num\_hidden\_layers} - 2\right) \cdot" in formula.latex
    other = tallystick.count({**config, "num_hidden_layers": 11})
    assert value_of(formula, {**formula.symbols, "num_hidden_layers": 11}) == other.total != formula.value


def test_a_stated_default_and_an_absent_one_differ_in_words_only():
    absent = tallystick.formula({"model_type": "gpt2"})
    stated = tallystick.formula({"model_type": "gpt2", "n_inner": 3072})
    assert absent.value == stated.value
    assert "n_inner" in stated.expression
    assert "n_inner" not in absent.expression


def test_the_books_keys_are_the_symbols():
    book = {"vocab_size": 50257, "context_length": 1024, "emb_dim": 768, "n_heads": 12, "n_layers": 12}
    formula = tallystick.formula(book)
    assert formula.value == 163_009_536
    assert {"emb_dim", "n_layers", "context_length", "vocab_size"} <= set(formula.symbols)


def test_steps_show_each_product_with_its_numbers():
    steps = {step.what: step for step in tallystick.formula("gpt2").steps}
    step = steps["transformer.h.*.attn.c_attn.weight"]
    assert (step.role, step.expression, step.value) == ("attention", "n_layer*n_embd*3*n_embd", 21_233_664)
    assert step.substituted == "12 × 768 × 3 × 768"
    assert steps["lm_head.weight (is transformer.wte.weight)"].value == 0


def test_parentheses_where_a_difference_is_multiplied():
    formula = tallystick.formula("deepseek-v3")
    assert "(num_hidden_layers - first_k_dense_replace)*(" in formula.expression
    assert formula.value == 671_026_404_352
    assert formula.latex.count(r"\left(") == 3  # each of the two sums, and the difference before the second


# Values far apart, so that a formula in the wrong keys is off.
KEYS = {"a": 7, "b": 60, "c": 500}
SIZES = st.recursive(
    st.sampled_from([1, 2, 96, *(Dim(value, key) for key, value in KEYS.items())]),
    lambda inner: st.builds(
        lambda make, left, right: make(left, right or 1),
        st.sampled_from([operator.add, operator.mul, floor, ceil]),
        inner,
        inner,
    ),
    max_leaves=5,
)


@given(sizes=st.lists(SIZES, min_size=1, max_size=3))
@example(sizes=[ceil(1 * Dim(500, "c"), 96)])
@example(sizes=[2 * floor(Dim(500, "c"), 1 * Dim(7, "a"))])
@drawn(50)
def test_sizes_computed_in_any_way_have_a_formula_that_python_can_read(sizes):
    value = math.prod(map(int, sizes))
    assume(value)
    entry = Entry("weight", tuple(sizes), "mlp", "float32", "weight", value)
    formula = tallystick.formula(Ledger([entry], source="drawn", kind="config", model=ModelDescription(symbols=KEYS)))
    assert eval(formula.expression, {}, dict(KEYS)) == formula.value == value


def test_a_live_module_has_its_formula_in_plain_numbers():
    from torch import nn

    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)), nn.Linear(4, 2, bias=False))
    formula = tallystick.formula(tallystick.count(model))
    assert formula.symbols == {}
    assert value_of(formula, {}) == formula.value == 3 * 20 + 8
    assert [step.expression for step in formula.steps] == ["3*4*4", "3*4", "2*4"]


def test_an_overlap_is_no_product():
    import torch
    from torch import nn

    flat = torch.zeros(20)
    model = nn.ParameterDict({"a": nn.Parameter(flat[:12]), "b": nn.Parameter(flat[8:])})
    formula = tallystick.formula(tallystick.count(model))
    assert [(step.expression, step.value) for step in formula.steps] == [("12", 12), ("8", 8)]


def test_json_and_latex_are_whole():
    out = tallystick.formula("gpt2").to_dict()
    assert {"expression", "symbols", "latex", "value", "steps"} <= out.keys()
    assert out["steps"][0].keys() == {"role", "what", "expression", "substituted", "value", "latex"}
    json.dumps(out)
    assert out["latex"].startswith(r"\mathrm{vocab\_size} \cdot \mathrm{n\_embd} + ")
    assert r"\mathrm{n\_embd}^{2}" in out["latex"]
    assert out["latex"].count("{") == out["latex"].count("}")


def test_a_division_reads_as_one():
    formula = tallystick.formula({"model_type": "falcon"})
    assert "2*hidden_size**2/num_attention_heads" in formula.expression
    assert "2·hidden_size²/num_attention_heads" in formula.text


# -- sections -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "transformer-lm", "mlp"])
def test_the_sections_add_up_to_the_value(name):
    formula = tallystick.formula(name)
    assert sum(section.total for section in formula.sections) == formula.value
    for section in formula.sections:
        assert sum(step.value for step in section.steps) == section.parameters
        assert worth(section.expression, formula.symbols) == section.parameters
        assert worth(section.repeats, formula.symbols) * section.parameters == section.total
        sides = [from_latex(side) for side in section.latex.split(" = ")]
        assert {worth(side, formula.symbols) for side in sides} == {section.parameters}


def test_one_block_of_gpt2_is_added_up():
    (block,) = [one for one in tallystick.formula("gpt2").sections if one.layers == 12]
    assert (block.part, block.repeats, block.parameters, block.total) == (
        "transformer.h.0-11",
        "n_layer",
        7_087_872,
        85_054_464,
    )
    assert block.expression == "12*n_embd**2 + 13*n_embd"


def test_the_steps_by_block_on_the_command_line(capsys):
    assert main(["formula", "gpt2", "--steps", "--by", "block"]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if "7,087,872" in line]
    assert line.split() == [
        "sum",
        "of",
        "one",
        "of",
        "transformer.h.0–11",
        "n_layer",
        "·",
        "sum",
        "12",
        "×",
        "7,087,872",
        "7,087,872",
        "85,054,464",
    ]
    assert out.splitlines()[-1].split() == ["total", "124,439,808"]


@pytest.mark.parametrize("by", ["tensor", "block"])
def test_the_steps_in_latex(capsys, by):
    assert main(["formula", "gpt2", "--by", by, "--latex"]) == 0
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert (first, last) == (r"\begin{aligned}", r"\end{aligned}")
    assert all(line.endswith(r" \\") for line in lines[:-1])
    assert any("7{,}087{,}872" in line for line in lines) == (by == "block")
    for line in lines:
        sides = [from_latex(side.removesuffix(r" \\")) for side in line.partition("&: ")[2].split(" = ")]
        values = {worth(side, SIZES) for side in sides}
        assert len(values) == 1, line


SIZES = {"vocab_size": 50_257, "n_positions": 1_024, "n_embd": 768, "n_layer": 12}
