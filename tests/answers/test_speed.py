"""Bounds on speed: by hand, and no published run exceeds them (`figures/speed.csv`)."""

import contextlib
import csv
import io
import json
import shlex
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

import tallystick
from rotating import half_by_commit
from tallystick.answers.devices import DEVICES
from tallystick.answers.serve.speed import touched
from tallystick.cli.main import main

with (Path(__file__).parent / "figures" / "speed.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))
H100 = {"name": "card", "memory": "80GB", "flops": 1e15, "bandwidth": 3e12}


PAGE = Path(__file__).parents[2] / "docs" / "commands" / "serve.md"


def planned(source="llama-3.1-8b", device=H100, **options):
    return tallystick.serve(source, engine="vllm", device=device, **{"max_model_len": 8192, **options})


@pytest.mark.parametrize(
    "row",
    half_by_commit(ROWS, "src/tallystick/answers/serve/", "src/tallystick/answers/devices.py"),
    ids=lambda row: f"{row['project']} {row['model'][:40]}",
)
def test_no_published_run_exceeds_the_bound(row):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main([*shlex.split(row["command"]), "--format", "json"])
    answer = json.loads(out.getvalue(), object_hook=lambda found: SimpleNamespace(**found))
    bound = eval(row["value"], {"__builtins__": {}}, vars(answer))
    assert float(row["theirs"]) <= bound
    assert row["share"] == f"{float(row['theirs']) / bound:.3f}"  # the page says what the last release said


def test_there_are_enough_runs_of_enough_engines_and_devices():
    assert len(ROWS) >= 75
    assert len({row["project"] for row in ROWS}) >= 6
    assert len({row["command"].split("--device ")[1].split()[0] for row in ROWS}) >= 11


def test_a_step_reads_all_weights_but_the_embedding_and_the_cache():
    one, _ = planned(input_tokens=1000, output_tokens=1).speed.decoding
    weights = 2 * (8_030_261_248 - 128_256 * 4096)
    assert (one.weights_bytes, one.kv_cache_bytes) == (weights, 1000 * 131_072)
    assert one.tokens_per_second == pytest.approx(3e12 / (weights + 1000 * 131_072))
    assert one.limit == "memory bandwidth"


def test_a_tied_head_is_read():
    tied = planned("qwen3-0.6b").speed.decoding[0]
    assert tied.weights_bytes == 2 * 596_049_920


def test_many_sequences_are_limited_by_products():
    *_, many = planned(device={**H100, "flops": 1e13}, input_tokens=100, output_tokens=1).speed.decoding
    assert many.limit == "matrix products"
    assert many.tokens_per_second == pytest.approx(1e13 / (many.flops / many.batch))


def test_a_prompt_is_limited_by_products_and_has_one_row_of_logits():
    prefill = planned(input_tokens=4096, output_tokens=1).speed.prefill
    blocks = 2 * 4096 * (8_030_261_248 - 2 * 128_256 * 4096 - 65 * 4096)
    scores = 2 * 2 * 32 * 32 * 128 * (4096 * 4097 // 2)
    assert prefill.flops == blocks + scores + 2 * 128_256 * 4096
    assert prefill.seconds == pytest.approx(prefill.flops / 1e15)


def test_a_batch_has_no_more_than_the_engine_schedules():
    assert planned(max_num_seqs=16).speed.decoding[-1].batch == 16


def test_only_the_experts_that_are_used_are_read():
    one, many = planned("qwen3-30b-a3b", device={**H100, "memory": "141GB"}).speed.decoding
    assert one.weights_bytes == pytest.approx(2 * 3.04e9, rel=0.01)  # 3.35 B are active, 0.31 B of them looked up
    assert many.weights_bytes > 0.9 * 2 * 30.2e9
    assert touched(1 / 8, 1) == 1 / 8
    assert touched(1 / 8, 2) == 1 / 8 + 7 / 64


def test_devices_share_the_work_and_stages_pass_it_on():
    one, two, stages = (planned(**ranks).speed.decoding[0] for ranks in ({}, {"tp": 2}, {"pp": 2}))
    assert two.tokens_per_second == pytest.approx(2 * one.tokens_per_second)
    assert one.tokens_per_second < stages.tokens_per_second < 1.02 * one.tokens_per_second


def test_narrow_weights_have_the_rate_of_their_products():
    speed = {form: planned(device="h100", quantization=form).speed for form in ("fp8", "awq")}
    assert speed["fp8"].peak_flops == DEVICES["h100"].flops_8 == 2 * DEVICES["h100"].flops + 0.1e12
    assert speed["awq"].peak_flops == DEVICES["h100"].flops
    assert speed["awq"].products == "16-bit products"
    blackwell = tallystick.serve("gpt-oss-20b", engine="vllm", device="b200", max_model_len=8192).speed
    assert blackwell.products == "4-bit products"


def test_windows_and_states_are_read_as_they_are_kept():
    windowed = planned("gemma-3-12b", input_tokens=8000, output_tokens=1).speed.decoding[0]
    assert windowed.kv_cache_bytes == (8 * 8000 + 40 * 1023) * 8192
    assert planned("qwen3.5-27b", input_tokens=1, output_tokens=1).speed.decoding[0].kv_cache_bytes > 2 * 48 * 2**20


def test_without_rates_or_a_start_nothing_is_said():
    assert planned(device="80GB").speed is None
    assert planned(device="h100", max_model_len=131072, gpu_memory_utilization=0.2).speed is None


def test_every_bound_says_how_and_from_where():
    speed = planned(device="h100", tp=2).speed
    assert all(bound.formula and "H100 data sheet" in bound.source for bound in speed.bounds)
    assert "decoding cannot exceed" in speed.bounds[0].line
    assert "communication between devices takes no time" in speed.assumptions
    assert json.loads(json.dumps(speed.to_dict()))["decoding"][0]["batch"] == 1


def test_the_page_says_which_shares_were_reached():
    page = PAGE.read_text(encoding="utf-8")
    found = {}
    for row in ROWS:
        ranks = int(row["command"].split("--tp ")[1].split()[0]) if "--tp " in row["command"] else 1
        what = {"speed.prefill": "reading prompts", "speed.decoding[-1]": "output of many"}.get(
            row["value"].rpartition(".")[0],
            f"decoding one request on {'one device' if ranks == 1 else 'several devices'}",
        )
        found.setdefault(what, []).append(float(row["share"]))
    for what, shares in found.items():
        numbers = f"| {len(shares)} | {min(shares):.0%} to {max(shares):.0%} | {median(shares):.0%} |"
        assert any(line.startswith(f"| {what}") and line.endswith(numbers) for line in page.splitlines()), (
            what,
            numbers,
        )
