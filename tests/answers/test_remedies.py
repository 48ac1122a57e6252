"""Every remedy that is printed is followed, and the tie holds: for many ways of losing one, in
three layouts of models.
"""

import copy
import re

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from transformers import GPT2Config, GPT2LMHeadModel

import tallystick
from tallystick import assert_tied, check_optimizer, count, ties, watch
from tallystick.live import NotTied, TieLost
from tallystick.training.groups import optimizer_groups

ROWS, WIDTH = 20, 8


class Layout(nn.Module):
    """A tied model: some blocks between an embedding and a head."""

    def __init__(self):
        super().__init__()
        self.build()
        self.set_head(nn.Linear(WIDTH, ROWS, bias=False))
        self.get_head().weight = self.get_embedding().weight

    def forward(self, ids):
        return self.get_head()(self.get_embedding()(ids))


class LikeNanogpt(Layout):
    def build(self):
        block = nn.ModuleDict(
            {"ln_1": nn.LayerNorm(WIDTH), "attn": nn.ModuleDict({"c_attn": nn.Linear(WIDTH, 3 * WIDTH)})}
        )
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(ROWS, WIDTH), "h": nn.ModuleList([block])})

    def get_embedding(self):
        return self.transformer.wte

    def set_embedding(self, module):
        self.transformer["wte"] = module

    def get_head(self):
        return self.lm_head

    def set_head(self, module):
        self.lm_head = module


class LikeLlama(Layout):
    def build(self):
        self.tok_embeddings = nn.Embedding(ROWS, WIDTH)
        attention = nn.ModuleDict(
            {"wq": nn.Linear(WIDTH, WIDTH, bias=False), "wo": nn.Linear(WIDTH, WIDTH, bias=False)}
        )
        self.layers = nn.ModuleList([nn.ModuleDict({"attention": attention, "ffn_norm": nn.LayerNorm(WIDTH)})])

    def get_embedding(self):
        return self.tok_embeddings

    def set_embedding(self, module):
        self.tok_embeddings = module

    def get_head(self):
        return self.output

    def set_head(self, module):
        self.output = module


class LikeMamba(Layout):
    def build(self):
        mixer = nn.ModuleDict({"in_proj": nn.Linear(WIDTH, 4 * WIDTH, bias=False), "x_proj": nn.Linear(2 * WIDTH, 3)})
        layers = nn.ModuleList([nn.ModuleDict({"mixer": mixer, "norm": nn.LayerNorm(WIDTH)})])
        self.backbone = nn.ModuleDict({"embedding": nn.Embedding(ROWS, WIDTH), "layers": layers})

    def get_embedding(self):
        return self.backbone.embedding

    def set_embedding(self, module):
        self.backbone["embedding"] = module

    def get_head(self):
        return self.lm_head

    def set_head(self, module):
        self.lm_head = module


class InTransformers(GPT2LMHeadModel):
    """A model whose config says what is tied."""

    def __init__(self):
        super().__init__(GPT2Config(vocab_size=ROWS, n_positions=4, n_embd=WIDTH, n_layer=1, n_head=2))

    get_embedding, get_head = GPT2LMHeadModel.get_input_embeddings, GPT2LMHeadModel.get_output_embeddings
    set_embedding, set_head = GPT2LMHeadModel.set_input_embeddings, GPT2LMHeadModel.set_output_embeddings


def parameter(model, **how):
    weight = model.get_embedding().weight.detach().clone()
    return nn.Parameter(weight.to(how.get("dtype", weight.dtype)), requires_grad=how.get("grad", True))


def deepcopied(model):
    model.set_head(copy.deepcopy(model.get_head()))


def assigned(model):
    model.load_state_dict({name: one.clone() for name, one in model.state_dict().items()}, assign=True)


def assigned_on_one_memory(model):
    model.load_state_dict(model.state_dict(), assign=True)


def cloned(model):
    model.get_head().weight = parameter(model)


def in_bfloat16(model):
    model.get_head().weight = parameter(model, dtype=torch.bfloat16)


def embedding_in_float64(model):
    model.get_embedding().weight = parameter(model, dtype=torch.float64)


def frozen(model):
    model.get_head().weight = parameter(model, grad=False)


def aliased(model):
    model.get_head().weight = nn.Parameter(model.get_embedding().weight.data)


def aliased_and_frozen(model):
    model.get_head().weight = nn.Parameter(model.get_embedding().weight.data, requires_grad=False)


def replaced(model):
    model.set_head(nn.Linear(WIDTH, ROWS, bias=False))


def embedding_replaced(model):
    model.set_embedding(nn.Embedding(ROWS, WIDTH))


def in_sequential(model):
    model.set_head(nn.Sequential(nn.Dropout(0.0), nn.Linear(WIDTH, ROWS, bias=False)))


def equal_in_sequential(model):
    model.set_head(nn.Sequential(copy.deepcopy(model.get_head())))


def trained_apart(model):
    cloned(model)
    with torch.no_grad():
        model.get_head().weight += 0.5


def to_meta(model):
    model.to("meta")


def half_on_meta(model):
    deepcopied(model)
    model.get_head().to("meta")


def to_empty(model):
    model.to("meta").to_empty(device="cpu")
    nn.init.ones_(model.get_head().weight)
    nn.init.zeros_(model.get_embedding().weight)


def weight_normed(model):
    parametrizations.weight_norm(model.get_head())


def quarter_shared(model):
    """Two windows that overlap in one tensor."""
    flat = torch.randn(ROWS + 5, WIDTH)
    model.get_embedding().weight = nn.Parameter(flat[:ROWS])
    model.get_head().weight = nn.Parameter(flat[5:])


WAYS = [
    deepcopied, assigned, assigned_on_one_memory, cloned, in_bfloat16, embedding_in_float64, frozen, aliased, aliased_and_frozen,
    replaced, embedding_replaced, in_sequential, equal_in_sequential, trained_apart, to_meta, half_on_meta, to_empty,
    weight_normed, quarter_shared,
]  # fmt: skip
LAYOUTS = [LikeNanogpt, LikeLlama, LikeMamba, InTransformers]

_CALL = re.compile(r"tallystick\.retie\(model(?:, [^()]*)?\)")


def followed(text, model, **more):
    """Every call that a text advises, called."""
    calls = _CALL.findall(text)
    assert calls, text
    for call in calls:
        eval(call, {"tallystick": tallystick, "model": model, **more})


def is_tied(model, original=None):
    assert_tied(model)
    return ties(model).verdict == "consistent"


def by_assertion(model, operation):
    operation(model)
    with pytest.raises(NotTied) as error:
        assert_tied(model)
    return str(error.value)


def by_watch(model, operation):
    with pytest.raises(TieLost) as error, watch(model):
        operation(model)
    return str(error.value)


def by_ties(model, operation):
    operation(model)
    problems = ties(model).problems
    if not problems:  # values differ, and nothing says that they should not
        assert not isinstance(model, InTransformers)
        assert ties(model).verdict == "unknown"
        pytest.skip("no problem, and so no remedy")
    return " ".join(problem.remedy for problem in problems)


def by_count(model, operation):
    operation(model)
    text = " ".join(count(model).notes)
    if "retie" not in text:
        pytest.skip("no remedy")
    return text


@pytest.mark.parametrize("told", [by_assertion, by_watch, by_ties, by_count])
@pytest.mark.parametrize("operation", WAYS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_remedy_ties_again(layout, operation, told):
    torch.manual_seed(0)
    model = layout()
    assert is_tied(model)
    followed(told(model, operation), model)
    assert is_tied(model)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_resized_side_is_tied_when_what_is_said_is_done(layout):
    model = layout()
    model.set_head(nn.Linear(WIDTH, ROWS + 4, bias=False))
    with pytest.raises(NotTied, match=f"give them the same shape .now {ROWS} and {ROWS + 4} rows") as error:
        assert_tied(model, *(["transformer.wte.weight", "lm_head.weight"] if layout is InTransformers else []))
    with pytest.raises(tallystick.BadInput):
        followed(str(error.value), model)
    model.set_head(nn.Linear(WIDTH, ROWS, bias=False))
    followed(str(error.value), model)
    assert is_tied(model)


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_a_transposed_head_is_tied_when_it_is_a_linear(layout):
    model = layout()
    model.get_head().weight = nn.Parameter(torch.randn(WIDTH, ROWS))
    text = by_assertion(model, lambda model: None)
    assert "give them the same shape (use an nn.Linear head)" in text
    model.set_head(nn.Linear(WIDTH, ROWS, bias=False))
    followed(text, model)
    assert is_tied(model)


@pytest.mark.parametrize("told", [by_assertion, by_ties, by_count])
def test_a_wrapped_model_is_to_be_tied_before(lone_rank, told):
    inner = InTransformers()
    replaced(inner)
    text = told(nn.parallel.DistributedDataParallel(inner), lambda model: None)
    assert "before DistributedDataParallel wraps it" in text
    followed(text, inner)
    assert is_tied(inner)


def test_two_groups_are_each_named():
    """T5-like in that two pairs are meant: each remedy is for its own pair."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = InTransformers(), InTransformers()

    model = Two()
    replaced(model.left)
    replaced(model.right)
    first, second = ties(model).problems
    followed(first.remedy, model)
    assert [problem.names for problem in ties(model).problems] == [second.names]
    followed(second.remedy, model)
    assert ties(model).verdict == "consistent"
    model = Two()
    replaced(model.left)
    replaced(model.right)
    followed(by_count(model, lambda model: None), model)
    assert ties(model).verdict == "consistent"


def test_what_shares_memory_elsewhere_is_named():
    model = nn.Sequential(*(nn.Linear(4, 4, bias=False) for _ in range(3)))
    model[2].weight = nn.Parameter(model[0].weight.data)
    (problem,) = ties(model).problems
    followed(problem.remedy, model)
    assert model[2].weight is model[0].weight


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_remedies_of_the_optimizer(layout):
    model = layout()
    aliased(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (found,) = [one for one in check_optimizer(model, optimizer) if one.code == "aliased-parameters"]
    followed(found.remedy, model, optimizer=optimizer)
    assert is_tied(model)
    assert [one for one in check_optimizer(model, optimizer) if one.problem] == []
    aliased(model)
    with pytest.raises(tallystick.BadInput) as error:
        optimizer_groups(model, 0.1)
    followed(str(error.value), model)
    assert is_tied(model)


def test_modules_to_save_trains_one_of_two():
    from peft import LoraConfig, get_peft_model

    model = LikeNanogpt()
    model.prepare_inputs_for_generation = None
    wrapped = get_peft_model(model, LoraConfig(target_modules=["c_attn"], modules_to_save=["lm_head"], r=2))
    text = by_assertion(wrapped, lambda model: None)
    assert "modules_to_save.default" in text
    followed(text, wrapped)
    assert_tied(wrapped)
