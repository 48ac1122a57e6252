"""Claims that people met, each explained by the simplest conventions, or not at all."""

import csv
import io
import json
import re

import pytest

import tallystick
from reconciled import LLAMA2_C, names_of
from tallystick.answers.reconcile.claimed_count import read_claim
from tallystick.cli.main import main

NANOGPT = {"block_size": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "bias": False}


# -- claims that people met -----------------------------------------------------------------------

KNOWN = [
    # source, claim, the count that was meant, by which conventions
    ("gpt2", "85M", 85_056_000, ["kaplan"]),
    ("gpt2", "84,934,656", 12 * 12 * 768**2, ["block-matrices"]),
    ("gpt2", "124M", 124_439_808, []),
    ("gpt2", "162M", 162_250_752, ["positions", "head-twice"]),
    ("gpt2", "163M", 163_037_184, ["head-twice"]),
    ("gpt2", "123.59M", 123_587_328, ["positions", "bias-free", "vocabulary-50304"]),
    ("gpt2", "137,022,720", 137_022_720, ["causal-masks"]),
    ("gpt2", "118.7M", 124_439_808 * 10**6 // 2**20, ["binary-units"]),
    ("gpt2", "498M", 497_759_232, ["bytes-32-bit"]),
    ("gpt2", "7,087,872", 12 * 768**2 + 13 * 768, ["one-block"]),
    ("gpt2-xl", "1558M", 1_557_611_200, []),
    ("gpt2-xl", "1.5B", 1_475_561_600, ["kaplan"]),
    (NANOGPT, "123.59M", 123_587_328, ["positions"]),
    (NANOGPT, "124,337,664", 124_337_664, ["vocabulary-50257"]),
    ("llama-2-7b", "7B", 6_738_415_616, []),
    ("llama-2-7b", "6.74B", 6_738_415_616, []),
    ("llama-2-7b", "3,500,412,928", 3_500_412_928, ["packed"]),
    ("mixtral-8x7b", "46.7B", 46_702_792_704, []),
    ("mixtral-8x7b", "12.9B", 12_879_925_248, ["active"]),
    ("gpt-oss-20b", "3.6B", 3_608_307_264, ["active-no-lookup"]),
    ("deepseek-v3", "671B", 671_026_404_352, []),
    ("deepseek-v3", "684,489,830,400", 684_489_830_400, ["with-mtp-copies"]),
    ("deepseek-v3", "685B", 684_530_668_632, ["with-mtp-copies", "fp8-scales"]),
    ("palm-540b", "540B", 540_354_281_472, []),
    (LLAMA2_C, "42M", 41_689_600, []),
    (LLAMA2_C, "58.07M", 58_073_600, ["head-twice"]),
    ({**LLAMA2_C, "tie_word_embeddings": False}, "42M", 41_689_600, ["head"]),
    ("gpt-oss-120b", "120B", 120_000_000_000, ["rounded-further"]),
    ("llama-2-70b", "70B", 70_000_000_000, ["rounded-further"]),
    ("qwen2.5-72b", "72B", 72_000_000_000, ["cut-off"]),
    ("gemma-2b", "2B", 1_981_884_416, ["kaplan"]),
    # bitsandbytes#834: Llama 2 in 4 bits, and a LoRA of rank 16 on all linear layers
    ("llama-2-7b", "3540389888", 3_540_389_888, ["packed", "adapters-16-all-linear"]),
    # PEFT's print_trainable_parameters of Llama 2 with its default targets, rank 8 and 64
    ("llama-2-7b", "6,742,609,920", 6_742_609_920, ["adapters-8-q_proj-v_proj"]),
    ("llama-2-7b", "4,194,304", 4_194_304, ["adapters-alone-8-q_proj-v_proj"]),
    ("llama-2-7b", "6,778,392,576", 6_738_415_616 + 39_976_960, ["adapters-16-all-linear"]),
    ("gpt2", "294,912", 8 * 12 * (768 + 2304), ["adapters-alone-8-c_attn"]),  # PEFT's default for GPT-2
    ("gpt2", "124,734,720", 124_439_808 + 294_912, ["adapters-8-c_attn"]),
    # 8x7B and 8x22B as products
    ("mixtral-8x7b", "56B", 56_000_000_000, ["named"]),
    ("mixtral-8x22b", "176B", 176_000_000_000, ["named"]),
    # gpt-oss' model card: 3.61B and 5.13B active, the embedding left out
    ("gpt-oss-20b", "3.61B", 3_608_307_264, ["active-no-lookup"]),
    ("gpt-oss-120b", "5.13B", 5_132_849_472, ["active-no-lookup"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "claim", "value", "conventions"), KNOWN)
def test_a_known_claim_is_explained(source, claim, value, conventions):
    answer = tallystick.reconcile(source, claim)
    best = answer.explanations[0]
    assert answer.explained
    assert (best.value, names_of(best), best.residual) == (value, conventions, 0)


@pytest.mark.parametrize(
    ("source", "claim", "over"),
    [("gpt2", "117M", 6_939_808), ("gpt2-medium", "345M", 9_323_168), ("gpt2-large", "762M", 11_530_080)],
)
def test_a_figure_of_the_gpt2_paper_is_said_to_be_one_and_not_forced(source, claim, over):
    answer = tallystick.reconcile(source, claim)
    assert not answer.explained
    assert [(one.steps, one.residual) for one in answer.explanations] == [((), -over)]
    assert answer.answer.startswith(
        f"no known counting convention gives {claim}: {source} has {answer.actual:,} parameters"
    )
    assert "Radford et al. 2019, table 2" in answer.answer


def test_a_figure_that_a_convention_gives_too_is_said_beside_it():
    assert "1.5B is also the figure of GPT-2's paper" in tallystick.reconcile("gpt2-xl", "1.5B").answer
    assert tallystick.reconcile("gpt2-xl", "1.6B").published is None


def test_what_nothing_explains_is_the_residual():
    answer = tallystick.reconcile("gpt2", "123,550,272")  # a hand calculation whose product is off by 960
    best = answer.explanations[0]
    assert [(step.convention, step.parameters) for step in best.steps] == [
        ("positions", -786_432),
        ("bias-free", -102_144),
    ]
    assert (best.value, best.residual) == (123_551_232, -960)
    assert "960 too many" in answer.answer


# -- claims that nothing explains -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("llama-2-7b", "163M"),
        ("llama-2-7b", "5B"),
        ("gpt2", "1.3B"),
        ("gpt2", "350M"),
        ("mixtral-8x7b", "300M"),
        ("qwen3-8b", "40B"),
    ],
)
def test_a_claim_far_off_is_not_forced(source, claim, capsys):
    """No sum that happens to end near it: one block of a model of 7 billion explains no 163M."""
    answer = tallystick.reconcile(source, claim)
    assert not answer.explained
    assert [one.steps for one in answer.explanations] == [()]
    out = run(capsys, source, claim)
    assert "rounds to" not in out
    assert len(out.splitlines()) == 1


def test_a_claim_far_off_names_the_models_that_it_fits():
    answer = tallystick.reconcile("llama-2-7b", "163M")
    found = [(one.name, one.what, one.value) for one in answer.presets]
    assert ("gpt2", "with the tied head counted twice", 163_037_184) in found
    assert answer.answer.startswith(
        "163M is not a way of counting llama-2-7b (6,738,415,616 parameters). Is it another model:"
        " gpt2 with the tied head counted twice (163,037,184)"
    )
    answer = tallystick.reconcile("llama-2-7b", "124M")
    assert [(one.name, one.what) for one in answer.presets] == [("gpt2", "")]
    assert answer.answer.endswith("Is it another model: gpt2 (124,439,808)?")
    names = [one.name for one in tallystick.reconcile("llama-2-7b", "8B").presets]
    assert names[:2] == ["llama-3-8b", "llama-3.1-8b"]  # 8.03 billion each: the nearest first
    assert tallystick.reconcile("gpt2", "117M").presets == ()  # it is known whose figure that is
    assert tallystick.reconcile("gpt2", "3").answer.endswith("124,439,808 parameters). Is it another model?")
    assert tallystick.reconcile("gpt2", "124M").presets == ()


def test_what_is_not_explained_of_a_rounded_claim_is_a_least_figure(capsys):
    out = run(capsys, "llama-3.1-8b", "4.56B")  # unsloth#1584: in 4 bits it is 4,540,600,320
    assert "rounds to" not in out
    assert re.search(r"not explained: at least +\+14,399,680", out)
    assert "at least 14,399,680 too few" in out
    answer = tallystick.reconcile("llama-3.1-8b", "4.56B")
    assert [names_of(one) for one in answer.explanations] == [["packed"], []]


def test_a_miss_is_not_made_of_another_tokenizers_rows_or_of_one_block():
    config = {"model_type": "llama", "hidden_size": 1280, "num_hidden_layers": 20, "num_attention_heads": 10,
              "intermediate_size": 5120, "vocab_size": 32768, "tie_word_embeddings": False}  # fmt: skip
    total = tallystick.count(config).total
    for claim in (total - 31_000_000, total - 1_966_081, total // 2 + 7, total // 20):
        answer = tallystick.reconcile(config, claim)
        assert not answer.explained
        for one in answer.explanations:
            assert not {"vocabulary-32000", "one-block", "one-block-matrices", "cut-off"} & set(names_of(one))
            assert not one.steps or abs(one.residual) * 20 <= claim


def test_adapters_of_two_places_and_ranks_that_are_as_many_are_both_named():
    answer = tallystick.reconcile("llama-2-7b", 33_554_432)
    assert {name for one in answer.explanations for name in names_of(one)} == {
        "adapters-alone-64-q_proj-v_proj",
        "adapters-alone-32-q_proj-k_proj-v_proj-o_proj",
    }


def test_few_digits_are_no_adapters():
    for claim in ("6.78B", "6.742B", "6.7426B"):
        for one in tallystick.reconcile("llama-2-7b", claim).explanations:
            assert not any(name.startswith("adapters") for name in names_of(one))


@pytest.mark.parametrize("source", ["llama-2-7b", "gpt2", "qwen3-8b", "mixtral-8x7b"])
def test_a_number_off_by_one_has_no_new_explanation(source):
    """Of the 60 and more conventions no two happen to give a count one parameter away."""
    total = tallystick.count(source).total
    for off in (-1, 1, 12_345, 1_000_003):
        assert not tallystick.reconcile(source, total + off).explained


def test_palms_count_has_no_norms():
    answer = tallystick.reconcile("palm-540b", "540.35B", norm_scale=True)
    assert names_of(answer.explanations[0]) == ["norms"]
    assert "PaLM" in answer.explanations[0].steps[0].by[0]


def test_the_plain_count_is_chinchillas():
    assert "Hoffmann et al. 2022" in tallystick.reconcile("gpt2", "124M").answer


# -- the search -----------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["gpt2", "llama-3.2-1b", "gpt-oss-20b", "deepseek-v3", "palm-8b"])
@pytest.mark.parametrize("claim", ["1B", "1.2B", "13M", "20.91B", "670.9B", "123,456,789", "999.9G", "1e6"])
def test_every_explanation_is_an_exact_sum(source, claim):
    answer = tallystick.reconcile(source, claim)
    assert answer.explanations
    for one in answer.explanations:
        assert answer.actual + sum(step.parameters for step in one.steps) == one.value > 0
        assert answer.low <= one.value + one.residual <= answer.high
        assert all(step.parameters for step in one.steps)
        assert bool(one.residual) != answer.explained
    if answer.explained:
        assert len({len(one.steps) for one in answer.explanations}) == 1
    assert len({(one.value, tuple(names_of(one))) for one in answer.explanations}) == len(answer.explanations)


def test_a_claim_of_few_digits_gets_few_steps():
    answer = tallystick.reconcile("gemma-7b", "7B")  # 7.75B without embeddings, cut off: two steps for one digit
    assert not answer.explained
    assert [one.steps for one in answer.explanations] == [()]


def test_zeros_after_the_point_are_digits_and_others_may_be_rounded():
    assert tallystick.reconcile("gpt-oss-120b", "116.8B").explained
    assert not tallystick.reconcile("gpt-oss-120b", "120.0B").explained
    assert [read_claim(text).digits for text in ("350M", "2.0B", "120B", "124M", "85,056,000")] == [2, 2, 2, 3, 8]


@pytest.mark.parametrize("claim", [85_056_000 + 47 * 768, 163_037_184 + 47 * 768])
def test_a_vocabulary_is_not_padded_where_it_is_left_out_or_counted_otherwise(claim):
    assert not tallystick.reconcile("gpt2", claim).explained


def test_a_number_is_misread_once_at_most():
    assert not tallystick.reconcile("gpt2", "995M").explained  # 8 × 124.4M


# -- the command line -----------------------------------------------------------------------------


def run(capsys, *arguments):
    assert main(["reconcile", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_first_line_is_the_answer_and_the_table_a_sum(capsys):
    lines = run(capsys, "gpt2", "162M").splitlines()
    assert lines[0] == tallystick.reconcile("gpt2", "162M").answer
    cells = [line.split("  ") for line in lines if "  " in line.strip()]
    numbers = [cell.strip() for line in cells for cell in line if cell.strip().lstrip("+-")[:1].isdigit()]
    assert numbers == ["124,439,808", "-786,432", "+38,597,376", "162,250,752"]


def test_what_is_not_explained_stands_in_the_sum(capsys):
    *_, rest, _, claim = run(capsys, "gpt2", "123,550,272").splitlines()
    assert rest.split() == ["not", "explained", "-960"]
    assert claim.split() == ["the", "claim", "123,550,272"]  # 124,439,808 - 786,432 - 102,144 - 960


def test_json_has_the_documented_keys(capsys):
    out = json.loads(run(capsys, "gpt2", "162M", "--format", "json"))
    assert out == json.loads(json.dumps(tallystick.reconcile("gpt2", "162M").to_dict()))
    assert {
        "source",
        "claim",
        "low",
        "high",
        "actual",
        "explanations",
        "published",
        "presets",
        "answer",
        "explained",
    } == out.keys()
    (one,) = out["explanations"]
    assert one.keys() == {"steps", "value", "residual"}
    assert one["steps"][0].keys() == {"what", "parameters", "convention", "by"}


def test_csv_adds_up(capsys):
    rows = list(csv.DictReader(io.StringIO(run(capsys, "gpt2-xl", "1.5B", "--format", "csv", "--most", "9"))))
    assert len({row["explanation"] for row in rows}) > 3
    for place in {row["explanation"] for row in rows}:
        mine = [row for row in rows if row["explanation"] == place]
        assert sum(int(row["parameters"]) for row in mine) == int(mine[0]["value"])


def test_markdown_is_a_table(capsys):
    lines = [line for line in run(capsys, "gpt2", "162M", "--format", "markdown").splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert "rounds to 162M" in lines[-1]


def test_most_limits_the_explanations_and_set_changes_the_model(capsys):
    out = json.loads(run(capsys, "gpt2", "85M", "--most", "1", "--format", "json"))
    assert len(out["explanations"]) == 1
    out = json.loads(run(capsys, "gpt2", "163M", "--set", "tie_word_embeddings=false", "--format", "json"))
    assert out["explanations"][0]["steps"] == []
    assert main(["reconcile", "gpt2", "85M", "--most", "0"]) == 2
