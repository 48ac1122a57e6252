"""The ledger's own arithmetic, on ledgers small enough to count by hand."""

import dataclasses
from fractions import Fraction

import pytest

import tallystick
from tallystick import BadInput, Entry, Ledger
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import Dim
from tallystick.core.entries import Axis
from tallystick.core.evidence import Evidence
from tallystick.core.layout import lay_out


def ledger_of(model, **more):
    return Ledger(lay_out(model, dtype="float32"), source="test", kind="config", **more)


@pytest.fixture
def small():
    """5 × 2 tied, three blocks of 2 × 2 + 2, and a final 2."""
    block = nn.Module(fc=nn.Linear(2, 2))
    return ledger_of(
        nn.Model(
            wte=nn.Embedding(5, 2),
            h=nn.Repeat(3, block),
            ln=nn.Module(weight=nn.Parameter((2,), "norm")),
            lm_head=nn.Head(2, 5),
            tie=("lm_head.weight", "wte.weight"),
        )
    )


def test_totals_by_hand(small):
    assert small.totals == {
        "unique": 30,
        "by_name": 40,
        "trainable": 30,
        "embedding": 10,
        "non_embedding": 20,
        "active": 30,
        "buffers": 0,
        "bytes": 120,
    }


def test_nothing_writes_to_a_ledger(small):
    for field in ("rolled", "source", "kind", "notes", "model", "evidence", "fetched", "something"):
        with pytest.raises(AttributeError):
            setattr(small, field, None)
    ledger = tallystick.count("gpt2")
    for held in (ledger.model.symbols, ledger.evidence.relations, ledger.mismatches):
        with pytest.raises(TypeError):
            held["new"] = 1
    with pytest.raises(AttributeError):
        ledger.model.positions = 7
    with pytest.raises(AttributeError):
        ledger.evidence.doubts = ()
    other = ledger.with_notes("by hand")
    assert (other.notes, ledger.notes) == ((*ledger.notes, "by hand"), ledger.notes)
    assert (other == ledger, dataclasses.replace(other, notes=ledger.notes) == ledger) == (False, True)


def test_a_list_is_taken_as_it_is_now():
    entries = [Entry("w", (3,), "mlp", "float32", "w", 3)]
    ledger = Ledger(
        entries, source="t", kind="config", evidence=Evidence(mismatches={"missing": ["v"], "unexpected": []})
    )
    before = hash(ledger)
    entries.clear()
    assert (ledger.total, hash(ledger), ledger.mismatches) == (3, before, {"missing": ("v",)})


def test_single_tensors_come_in_printing_order(small):
    assert [entry.name for entry in small.entries] == [
        "wte.weight",
        *(f"h.{layer}.fc.{leaf}" for layer in range(3) for leaf in ("weight", "bias")),
        "ln.weight",
        "lm_head.weight",
    ]


def test_breakdowns_add_up_to_the_total(small):
    for what in ("role", "layer", "tensor", "dtype"):
        assert sum(small.by(what).values()) == small.total
        assert sum(row["parameters"] for row in small.rows(what)) == small.total
    assert small.by("layer") == {"wte": 10, "h.0": 6, "h.1": 6, "h.2": 6, "ln": 2, "lm_head": 0}
    assert small.by("role") == {"token_embedding": 10, "norm": 2, "head": 0, "other": 18}


def test_an_unknown_breakdown_is_refused(small):
    with pytest.raises(BadInput, match="colour"):
        small.by("colour")


def test_a_block_in_several_places_is_counted_once():
    """Two matrices of 2 × 2, one of them in layers 1, 3 and 4; and a bias that has two names."""
    own, again = (
        nn.Module(own=nn.Linear(2, 2, bias=False)),
        nn.Module(shared=nn.Shared("h.1.shared", fc=nn.Linear(2, 2, bias=False))),
    )
    model = nn.Model(
        h=nn.ModuleList((1, own), (1, again), (1, own), (2, again)),
        bias=nn.Parameter((3,)),
        decoder=nn.Module(bias=nn.Parameter((3,))),
        tie={"decoder.bias": "bias"},
    )
    ledger = ledger_of(model)
    assert ledger.total == 4 + 4 + 4 + 3
    assert [tie.names for tie in ledger.ties] == [
        ("h.1.shared.fc.weight", "h.3.shared.fc.weight", "h.4.shared.fc.weight"),
        ("bias", "decoder.bias"),
    ]
    assert [entry.unique for entry in ledger.entries] == [4, 4, 4, 0, 0, 3, 0]


def test_the_split_does_not_move_with_the_tie():
    tied, untied = tallystick.count("gpt2"), tallystick.count("gpt2", tie_word_embeddings=False)
    assert tied.totals["non_embedding"] == untied.totals["non_embedding"] == 85_056_000
    assert untied.total - tied.total == 38_597_376


def test_stacks_of_two_kinds_are_numbered_on():
    ledger = ledger_of(
        nn.Model(
            h=nn.ModuleList(
                (2, nn.Module(a=nn.Linear(2, 2, bias=False))),
                (1, nn.Module(a=nn.Linear(2, 2, bias=False), b=nn.Linear(1, 1))),
            )
        )
    )
    assert list(ledger.by("layer")) == ["h.0", "h.1", "h.2"]
    assert [entry.name for entry in ledger.entries][-3:] == ["h.2.a.weight", "h.2.b.weight", "h.2.b.bias"]


def test_active_leaves_out_idle_experts():
    ledger = ledger_of(
        nn.Model(h=nn.Repeat(2, nn.Module(e=nn.Experts(1, 4, w=nn.Parameter((4, 3))), x=nn.Linear(2, 2))))
    )
    assert (ledger.total, ledger.totals["active"]) == (36, 18)
    unknown = Ledger([Entry("e", (4,), "experts", "float32", "e", 4)], source="t", kind="safetensors")
    assert unknown.totals["active"] is None
    assert Ledger([unknown.rolled[0]._replace(active=Fraction(1, 4))], source="t", kind="config").totals["active"] == 1


def test_a_tensor_shared_by_all_layers():
    entries = [Entry("h.{}.w", (4,), "mlp", "float32", "h.0.w", 0, axes=(Axis(1, 2),))]
    ledger = Ledger([Entry("h.0.w", (4,), "mlp", "float32", "h.0.w", 4), *entries], source="t", kind="config")
    assert (ledger.total, ledger.totals["by_name"]) == (4, 12)
    assert [(tie.names, tie.parameters) for tie in ledger.ties] == [(("h.0.w", "h.1.w", "h.2.w"), 8)]


def test_parts_of_a_byte_count_whole():
    ledger = Ledger([Entry("w", (3,), "mlp", "float4_e2m1fn", "w", 3)], source="t", kind="config")
    assert ledger.totals["bytes"] == 2


def test_a_trillion_layers_are_counted_and_not_listed():
    ledger = tallystick.count("gpt2", n_layer=10**12)
    assert ledger.total == 50257 * 768 + 1024 * 768 + 10**12 * (12 * 768**2 + 13 * 768) + 2 * 768
    with pytest.raises(BadInput, match="too many to list"):
        ledger.by("tensor")


def test_to_dict_is_the_contract():
    out = tallystick.count("gpt2").to_dict()
    assert list(out) == ["source", "kind", "architecture", "totals", "ties", "components", "notes"]
    assert out["source"] == "gpt2"
    assert out["kind"] == "preset"
    assert out["ties"] == [
        {"names": ["transformer.wte.weight", "lm_head.weight"], "relation": "tied", "parameters": 38_597_376}
    ]
    assert out["components"][0] == {"role": "token_embedding", "parameters": 38_597_376, "share": 0.310169}
    row = tallystick.count("gpt2").to_dict(by="tensor")["rows"][-1]
    assert row["shares_with"] == "transformer.wte.weight"
    assert row["shape"] == [50257, 768]


def test_pandas_and_html():
    ledger = tallystick.count("gpt2")
    frame = ledger.to_pandas()
    assert frame["parameters"].sum() == ledger.total
    assert ledger.to_pandas("role").shape == (6, 3)
    page = tallystick.count({"model_type": "gpt2"})._repr_html_()
    assert "124,439,808" in page
    evil = Ledger(ledger.rolled, source="<script>", kind="config", notes=["<b>"])._repr_html_()
    assert "<script>" not in evil
    assert "<b>" not in evil
    assert "&lt;b&gt;</p>" in evil


# -- a collection of tensors ----------------------------------------------------------------------


def test_a_ledger_is_a_collection_of_its_tensors():
    ledger = tallystick.count("gpt2")
    per_layer, others = 12, 5  # of GPT-2: 12 tensors a layer; two embeddings, the last norm's two, the head
    assert len(ledger) == 12 * per_layer + others == len(list(ledger))
    assert [entry.name for entry in ledger][:2] == ["transformer.wte.weight", "transformer.wpe.weight"]
    entry = ledger["transformer.h.11.mlp.c_fc.weight"]
    assert (entry.name, entry.shape, entry.role) == ("transformer.h.11.mlp.c_fc.weight", (768, 3072), "mlp")
    assert entry in ledger
    assert entry._replace(dtype="float16") not in ledger
    assert "lm_head.weight" in ledger
    assert "lm_head" not in ledger
    assert 0 not in ledger


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("transformer.h.12.ln_1.weight", "transformer.h.11.ln_1.weight"),
        ("transformer.h.3.attn.c_attn.weigth", "transformer.h.3.attn.c_attn.weight"),
        ("wte", "transformer.wte.weight"),
        ("h.7.mlp.c_fc.weight", "transformer.h.7.mlp.c_fc.weight"),
    ],
)
def test_an_unknown_tensor_is_a_key_error_with_the_nearest_name(asked, nearest):
    with pytest.raises(KeyError) as error:
        tallystick.count("gpt2")[asked]
    assert str(error.value).startswith(f"gpt2 has no tensor '{asked}'; nearest: {nearest}")
    assert error.value.code == "unknown-name"


def test_a_tensor_is_looked_up_by_name_alone():
    with pytest.raises(TypeError, match=r"by its name, not by 0; see Ledger\.entries"):
        tallystick.count("gpt2")[0]


def test_equal_ledgers_have_equal_facts():
    ledger = tallystick.count("gpt2")
    assert ledger == tallystick.count("gpt2")
    assert len({ledger, tallystick.count("gpt2")}) == 1
    assert ledger != tallystick.count("gpt2", tie_word_embeddings=False)
    assert ledger != ledger.with_notes("another note")


def test_a_ledger_without_tensors_is_true_and_one_of_a_trillion_layers_has_a_length():
    empty = Ledger((), source="nothing", kind="config")
    assert empty
    assert (len(empty), list(empty)) == (0, [])
    assert len(tallystick.count("gpt2", n_layer=10**12)) == 12 * 10**12 + 5


# -- dims -----------------------------------------------------------------------------------------


def test_a_dim_remembers_where_it_came_from():
    d, heads = Dim(12, "d"), Dim(4, "h")
    assert repr(2 * (d + 1) - heads) == "Dim(22, '2*(d + 1) - h')"
    assert repr(heads * (d / heads)) == "Dim(12, 'h*d/h')"
    assert repr(1 - d) == "Dim(-11, '1 - d')"


def test_a_quotient_must_be_whole():
    with pytest.raises(BadInput, match="d = 12 is not divisible by h = 5"):
        Dim(12, "d") / Dim(5, "h")


@pytest.mark.parametrize(
    "operation", [lambda d: d // 2, lambda d: d % 2, lambda d: d**2, lambda d: -d, lambda d: 2 // d]
)
def test_an_operation_that_would_drop_the_expression_is_refused(operation):
    with pytest.raises(TypeError, match="expression"):
        operation(Dim(12, "d"))
