"""A sum counts what its parts count, also where the model has no quantity of its number."""

import pytest

import tallystick

BY_HAND = """\
- Token embedding: 50257 × 768 = 38,597,376
- Position embedding: 1024 × 768 = 786,432
- Attention per layer: 4 × 768² = 2,359,296
- MLP per layer: 2 × 768 × 3072 = 4,718,592
- Per layer: 2,359,296 + 4,718,592 = 7,077,888
- 12 layers: 12 × 7,077,888 = 84,934,656
"""
WEIGHTS = {f"transformer.h.*.{name}.weight" for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")}
EMBEDDINGS = {"transformer.wte.weight", "transformer.wpe.weight"}


def last(text, against):
    return tallystick.check(text, against=against).equations[-1]


@pytest.mark.parametrize(
    ("total", "what", "names"),
    [
        (
            "Total: 38,597,376 + 786,432 + 84,934,656 = 124,318,464",
            "the model, without biases and norms",
            EMBEDDINGS | WEIGHTS,
        ),
        (
            "Total: 38.6M + 84.9M ≈ 123.5M",
            "token embedding + attention and MLP of 12 layers, without biases",
            {"transformer.wte.weight"} | WEIGHTS,
        ),
        (
            "- Final norm: 2 × 768 = 1,536\n\nTotal: 786,432 + 84,934,656 + 38,597,376 + 1,536 = 124,320,000",
            "the model, without biases and norms of 12 layers",
            EMBEDDINGS | WEIGHTS | {"transformer.ln_f.weight", "transformer.ln_f.bias"},
        ),
        ("| Per layer | 2.36M + 4.72M | 7.08M |", "attention and MLP of one layer, without biases", WEIGHTS),
        ("| All layers | 12 × (2.36M + 4.72M) | 84.96M |", "attention and MLP of 12 layers, without biases", WEIGHTS),
    ],
)
def test_a_sum_counts_what_its_parts_count(total, what, names):
    found = last(f"{BY_HAND}\n{total}\n", "gpt2")
    assert (found.matches, set(found.names)) == (what, names)


def test_a_head_that_is_counted_again_is_a_part_of_its_own():
    head = "- LM head: 768 × 50257 = 38,597,376\n"
    found = last(f"{BY_HAND}{head}\nAll: 38,597,376 + 84,934,656 + 38,597,376 = 162,129,408\n", "gpt2")
    assert found.matches.endswith(" + the head, tied to transformer.wte.weight")
    assert set(found.names) == {"transformer.wte.weight", "lm_head.weight"} | WEIGHTS


def test_layers_without_norms_are_not_whole_ones_though_they_round_alike():
    text = (
        "- Attention: 2 × 4096² + 2 × 4096 × 1024 = 41.94M\n- MLP: 3 × 4096 × 14336 = 176.16M\n"
        "- Per layer: 41.94M + 176.16M = 218.10M\n- 32 layers: 32 × 218.10M = 6.98B\n"
    )
    found = last(text, "llama-3-8b")
    assert found.matches == "attention and MLP of 32 layers"
    assert not any("norm" in name for name in found.names)


def test_a_part_of_one_layer_and_one_of_all_count_nothing_together():
    assert last(f"{BY_HAND}\nBoth: 38,597,376 + 2,359,296 = 40,956,672\n", "gpt2").matches is None


def test_addends_of_a_line_have_names():
    found = tallystick.check("Per block: 12 × 768² + 13 × 768 = 7,077,888 + 9,984 = 7,087,872\n", against="gpt2")
    named = {one.right: one.matches for one in found.equations}
    assert named[7_077_888] == "attention and MLP of one layer, without biases"
    assert named[7_087_872] == "one layer"


def test_a_rounding_behind_a_number_has_its_name():
    found = tallystick.check("- Words: 50257 × 768 = 38,597,376 (≈ 38.6M)\n", against="gpt2").equations
    assert {one.right: one.matches for one in found}[38_600_000] == "token embedding"


def test_a_width_that_is_near_a_formula_stays_what_is_written():
    """11008 is not 8/3 × 4096, but meant: 3 × 4096 × 11008 = 135,266,304."""
    found = last("$d_{ff} = 11008 ≈ 8/3 × 4096$\n\n- MLP: 3 × 4096 × 11008 = 135.3M\n", "llama-2-7b")
    assert (found.left, found.matches) == (135_266_304, "MLP of one layer")


def test_a_rounded_total_is_not_said_to_lack_what_the_text_counts():
    """109M of BERT without biases and norms is 109.1M without positions too."""
    text = (
        "- Words: 30522 × 768 = 23.4M\n- Positions: 512 × 768 = 0.4M\n- Attention per layer: 4 × 768² = 2.36M\n"
        "- MLP per layer: 2 × 768 × 3072 = 4.72M\n- 12 layers: 12 × (2.36M + 4.72M) = 84.9M\n\nTotal: 23.4M + 0.4M + 84.9M ≈ 109M\n"
    )
    assert tallystick.check(text, against="bert-base-uncased").convention is None


def test_active_experts_are_some_of_all():
    """2 of 8 experts: 32 × 2 × 3 × 4096 × 14336 = 11,274,289,152."""
    text = (
        "- Attention: 32 × 41,943,040 = 1,342,177,280\n- Active experts: 32 × 2 × 3 × 4096 × 14336 = 11,274,289,152\n\n"
        "Active: 1,342,177,280 + 11,274,289,152 = 12,616,466,432\n"
    )
    named = [one.matches for one in tallystick.check(text, against="mixtral-8x7b").equations]
    assert named[1:] == ["active experts of 32 layers", "attention of 32 layers + active experts of 32 layers"]


def test_what_a_sum_comes_to_on_the_way_is_not_what_it_counts():
    text = (
        "Per block: 1536 + 1769472 + 2304 + 589824 + 768 + 1536 + 4718592 + 3072 + 768\n= 1536 + 1769472\n"
        "= 1771008 + 2304\n= 1773312\n"
    )
    assert "one layer" not in {
        one.matches for one in tallystick.check(text, against="gpt2").equations if one.left < 2e6
    }


@pytest.mark.parametrize(
    "line",
    [
        "D: y - t = 0.85 - 2.0 = -1.15",
        "E: 5 - 14 + 0 = 5 - 14 = -9",
        "cap = 65536 // (256 * 96) = 65536 // 24576 = 2",
        "A: 1/(60+1) + 1/(60+2) = 0.0164 + 0.0161 = 0.0325",
    ],
)
def test_each_step_of_a_chain_is_an_equation(line):
    """A negative result and a cut quotient are not sums on the way."""
    found = tallystick.check(f"{line}\n").equations
    assert found
    assert all(one.correct for one in found)
    assert found[-1].right == pytest.approx(float(line.rpartition("=")[2]))
