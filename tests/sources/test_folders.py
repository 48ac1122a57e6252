"""Folders as people have them: copies, layouts, classifiers, and what configs and indexes say
wrongly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

from checkpoint_models import (
    LLAMA,
    LLAMA_BODY,
    LLAMA_SIZES,
    LLAMA_UNTIED,
    MORE,
    llama_shapes,
    noted,
    parameters,
    refused,
    sharded,
    small_model,
)
from checkpoints import write, write_config, write_sharded
from tallystick import architectures, count, ties

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


# -- flags that are absent, heads that are stored all the same ------------------------------------

TIED_BY_DEFAULT = ["bloom", "falcon", "gemma", "gemma2", "gemma3_text"]


@pytest.mark.parametrize("equal", [True, False], ids=["a duplicate", "trained apart"])
@pytest.mark.parametrize("model_type", TIED_BY_DEFAULT)
def test_a_stored_head_where_the_flag_is_absent_is_told_by_its_bytes(tmp_path: Path, model_type: str, equal: bool):
    model = small_model(model_type)
    assert model.config.tie_word_embeddings
    embedding = model.get_input_embeddings().weight.detach()
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config.pop("tie_word_embeddings", None)
    write_config(tmp_path, config)
    assert count(tmp_path).total == parameters(model)
    assert ties(tmp_path).verdict == "consistent"
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - the library's own object
    save_file(
        {**tensors, "lm_head.weight": embedding.clone() if equal else embedding + 1}, tmp_path / "model.safetensors"
    )
    ledger, answer = count(tmp_path), ties(tmp_path)
    assert ledger.total == parameters(model)
    assert ledger.totals["stored"] == ledger.total + ledger.totals["buffers"] + embedding.numel()
    assert [problem.code for problem in answer.problems] == [
        "duplicate-in-file" if equal else "config-says-tied-file-differs"
    ]


@pytest.mark.parametrize("kept", [EMBEDDING, HEAD])
def test_an_alias_in_the_metadata_holds_in_either_direction(tmp_path: Path, kept: str):
    dropped = HEAD if kept == EMBEDDING else EMBEDDING
    shapes = {name: shape for name, shape in llama_shapes().items() if name != dropped}
    write(tmp_path / "model.safetensors", shapes, metadata={"format": "pt", dropped: kept})
    alone = count(tmp_path / "model.safetensors")
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    for ledger in (alone, count(tmp_path)):
        assert (ledger.total, ledger.totals["by_name"]) == (LLAMA_BODY + 160, LLAMA_BODY + 320)
        assert [set(tie.names) for tie in ledger.ties] == [{EMBEDDING, HEAD}]
        assert ledger.mismatches == {}
        assert ledger.totals["embedding"] == 160
    assert ties(tmp_path).verdict == "consistent"


# -- what indexes and configs say wrongly ---------------------------------------------------------


def test_an_index_that_says_the_truth_is_not_mentioned(tmp_path: Path):
    sharded(tmp_path, total_parameters=LLAMA_UNTIED)
    assert (
        json.loads((tmp_path / "model.safetensors.index.json").read_text())["metadata"]["total_size"]
        == 4 * LLAMA_UNTIED
    )
    assert count(tmp_path).notes == ()


def test_sizes_in_an_index_that_are_not_those_of_its_files_are_said(tmp_path: Path):
    sharded(tmp_path, total_size=4096, total_parameters=LLAMA_UNTIED - 7)
    ledger = count(tmp_path)
    assert ledger.total == LLAMA_UNTIED
    assert noted(ledger, f"says total_size 4,096, but its files hold {4 * LLAMA_UNTIED:,} bytes of tensors")
    assert noted(ledger, f"says total_parameters {LLAMA_UNTIED - 7:,}: 7 fewer")


def test_an_index_that_counts_a_tied_head_twice(tmp_path: Path):
    shapes = list(llama_shapes(head=False).items())
    write_config(tmp_path, {**LLAMA, "tie_word_embeddings": True})
    index = write_sharded(tmp_path, dict(shapes[:15]), dict(shapes[15:]))
    told = json.loads(index.read_text())
    told["metadata"]["total_parameters"] = LLAMA_BODY + 320
    index.write_text(json.dumps(told))
    assert noted(count(tmp_path), f"says total_parameters {LLAMA_BODY + 320:,}: if every name is counted")


@pytest.mark.parametrize(
    "metadata", [None, [], "x", {"total_size": "4"}, {"total_size": None}, {"total_size": [4]}], ids=str
)
def test_odd_metadata_of_an_index_changes_nothing(tmp_path: Path, metadata: Any):
    index = sharded(tmp_path)
    index.write_text(json.dumps({**json.loads(index.read_text()), "metadata": metadata}))
    assert (count(tmp_path).total, count(tmp_path).notes) == (LLAMA_UNTIED, ())


@pytest.mark.parametrize(
    ("stated", "stored", "said"),
    [
        ("bfloat16", {"model.": "F16", "lm_head": "F16"}, f"the config says bfloat16, but the tensors are {LLAMA_UNTIED:,} in float16"),
        (
            "float16",
            {"model.layers": "BF16"},
            f"the config says float16, but the tensors are 328 in float32, {LLAMA_UNTIED - 328:,} in bfloat16",
        ),
        ("float32", {"model.": "BF16", "lm_head": "BF16"}, f"the config says float32, but the tensors are {LLAMA_UNTIED:,} in bfloat16"),
        ("bfloat16", {"model.": "BF16", "lm_head": "BF16"}, None),
        (None, {"model.": "F16", "lm_head": "F16"}, None),
    ],
)  # fmt: skip
def test_dtypes_are_told_from_the_tensors(tmp_path: Path, stated: str | None, stored: dict[str, str], said: str | None):
    shapes = llama_shapes()
    dtypes = {name: word for name in shapes for start, word in stored.items() if name.startswith(start)}
    write(tmp_path / "model.safetensors", shapes, dtypes=dtypes)
    write_config(tmp_path, {**LLAMA, "torch_dtype": stated})
    ledger = count(tmp_path)
    assert sum(ledger.by("dtype").values()) == LLAMA_UNTIED
    assert [note for note in ledger.notes if note.startswith("the config says")] == ([said] if said else [])


def test_a_few_wider_tensors_are_no_lie_of_the_config(tmp_path: Path):
    """Norms and the biases of routers are often in float32."""
    dtypes = dict.fromkeys(llama_shapes(), "BF16") | {"model.norm.weight": "F32"}
    write(tmp_path / "model.safetensors", llama_shapes(), dtypes=dtypes)
    write_config(tmp_path, {**LLAMA, "dtype": "bfloat16"})
    assert count(tmp_path).notes == ()


# -- layouts that one model has had ---------------------------------------------------------------

KINDS = sorted({*MORE, "llama", "phimoe", "granitemoe", "qwen3_moe", "gemma3_text"})


@pytest.mark.parametrize("model_type", KINDS)
def test_each_layout_of_names_is_that_of_the_one_model(tmp_path: Path, model_type: str):
    """As transformers publishes a model and as it holds it, with and without the names of the
    modules around it.
    """
    assert model_type in architectures.known()
    model = small_model(model_type)
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        published = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    tied = model.all_tied_weights_keys if model.config.tie_word_embeddings else ()
    today = {name: tuple(one.shape) for name, one in model.state_dict().items() if name not in tied}
    base = f"{model.base_model_prefix}."
    for shapes in (published, today):
        bare = {name.removeprefix(base): shape for name, shape in shapes.items()}
        layouts = [shapes, bare, {f"language_model.{name}": shape for name, shape in shapes.items()}]
        if base == "model.":
            heads = {name for name in shapes if not name.startswith(base)}
            layouts += [
                {
                    name if name in heads else f"{outer}{name.removeprefix(base)}": shape
                    for name, shape in shapes.items()
                }
                for outer in ("model.language_model.", "transformer.")
            ]
        for layout in layouts:
            write(tmp_path / "model.safetensors", layout)
            ledger = count(tmp_path)
            assert (ledger.total, ledger.mismatches) == (parameters(model), {}), next(iter(layout))


# -- what is in a weight map and no parameter -----------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq", "model.layers.0.self_attn.k_scale",
        "model.layers.1.self_attn.q_proj.input_scale", "model.layers.0.mlp.up_proj.SCB", "model.layers.0.mlp.up_proj.weight_format",
        "model.layers.0.mlp.up_proj.weight.absmax", "model.layers.0.mlp.up_proj.weight.quant_map",
        "model.layers.0.mlp.up_proj.weight.nested_absmax", "model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4",
        "model.layers.0.mlp.up_proj.qzeros", "model.layers.0.mlp.up_proj.scales", "model.layers.0.mlp.up_proj.g_idx",
        "model.layers.0.mlp.up_proj.biases", "model.layers.0.mlp.up_proj.weight_shape", "model.layers.0.mlp.up_proj.weight_scale",
        "model.layers.0.mlp.up_proj.weight_scale_inv", "model.layers.0.mlp.up_proj.weight_zero_point",
    ],
)  # fmt: skip
def test_buffers_and_the_state_of_quantisation_are_no_parameters(tmp_path: Path, name: str):
    for config in (LLAMA, None):
        folder = tmp_path / str(config is None)
        folder.mkdir()
        write(folder / "model.safetensors", {**llama_shapes(), name: (5,)})
        if config is not None:
            write_config(folder, config)
        ledger = count(folder)
        assert (ledger.total, ledger.totals["buffers"]) == (LLAMA_UNTIED, 5)
        assert ledger.mismatches == {}


def test_biases_are_parameters(tmp_path: Path):
    ledger = count(write(tmp_path / "model.safetensors", {"h.0.mlp.up_proj.bias": (5,), "h.0.mlp.gate.bias": (5,)}))
    assert (ledger.total, ledger.totals["buffers"]) == (10, 0)


# -- what is no one model -------------------------------------------------------------------------


def pipeline(folder: Path) -> None:
    """As diffusers saves one."""
    for part in ("unet", "vae", "text_encoder", "scheduler"):
        (folder / part).mkdir()
        if part != "scheduler":
            write_config(folder / part, {"_class_name": "Model"})
            write(folder / part / "diffusion_pytorch_model.safetensors", {"conv.weight": (2, 2)})


def test_a_pipeline_of_diffusers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pipeline(tmp_path)
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
    for command in ("count", "ties", "memory"):
        assert (
            "is a diffusers pipeline, not a single model; name a model in it: 'text_encoder', 'unet', 'vae'"
            in refused(capsys, command, str(tmp_path))
        )


def test_a_folder_of_models_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pipeline(tmp_path)
    said = refused(capsys, "count", str(tmp_path))
    assert "holds neither a config.json nor weights; name a model in it: 'text_encoder', 'unet', 'vae'" in said


# -- heads of other kinds -------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("stated", [True, False], ids=["by its config", "though its config says otherwise"])
@pytest.mark.parametrize(
    "kind", ["LlamaForSequenceClassification", "LlamaForTokenClassification", "LlamaForQuestionAnswering"]
)
def test_a_classifier_has_lost_no_head(tmp_path: Path, kind: str, stated: bool, tied: bool):
    model = getattr(transformers, kind)(transformers.LlamaConfig(**LLAMA_SIZES, tie_word_embeddings=tied))
    model.save_pretrained(tmp_path)
    if not stated:
        config = json.loads((tmp_path / "config.json").read_text())
        write_config(tmp_path, {**config, "architectures": ["LlamaForCausalLM"]})
    ledger, answer = count(tmp_path), ties(tmp_path)
    assert (ledger.total, ledger.ties, ledger.mismatches) == (parameters(model), (), {})
    assert (answer.verdict, answer.problems) == ("consistent", ())


@pytest.mark.parametrize("head", ["out_proj.weight", "score.weight", "v_head.summary.weight", "reward_head.weight"])
def test_a_reward_model_has_lost_no_head(tmp_path: Path, head: str):
    write(tmp_path / "model.safetensors", {**llama_shapes(head=False), head: (1, 8)})
    write_config(tmp_path, LLAMA)
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches) == (LLAMA_BODY + 160 + 8, {})
    assert noted(ledger, f"instead of an LM head: {head} (8 parameters)")
    assert ties(tmp_path).problems == ()


def test_a_value_head_beside_an_lm_head_is_not_described(tmp_path: Path):
    write(tmp_path / "model.safetensors", {**llama_shapes(), "v_head.summary.weight": (1, 8)})
    write_config(tmp_path, LLAMA)
    assert count(tmp_path).mismatches == {"unexpected": ("v_head.summary.weight",)}


def test_a_head_that_is_lost_is_still_said_to_be(tmp_path: Path):
    """No other head is there, and an output projection of attention is none."""
    shapes = {name.replace("o_proj", "out_proj"): shape for name, shape in llama_shapes(head=False).items()}
    write(tmp_path / "model.safetensors", shapes)
    write_config(tmp_path, LLAMA)
    assert "lm_head.weight" in count(tmp_path).mismatches["missing"]
