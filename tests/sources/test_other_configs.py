"""Configs of other kinds than Hugging Face's: Meta's, Mistral's, litgpt's, and OpenVINO's
folders.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import drawing
from checkpoints import write, write_config
from hostile import refusal
from tallystick import BadInput, count
from tallystick.cli.main import main

LLAMA_2_7B = {"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-05, "vocab_size": -1}
LLAMA_2_70B = {
    "dim": 8192, "multiple_of": 4096, "ffn_dim_multiplier": 1.3, "n_heads": 64, "n_kv_heads": 8, "n_layers": 80,
    "norm_eps": 1e-05, "vocab_size": -1,
}  # fmt: skip
LLAMA_3_8B = {
    "dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024,
    "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0,
}  # fmt: skip
MISTRAL_7B = {
    "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
    "norm_eps": 1e-05, "sliding_window": 4096, "vocab_size": 32000,
}  # fmt: skip
MIXTRAL_8X7B = {**MISTRAL_7B, "moe": {"num_experts_per_tok": 2, "num_experts": 8}}

# What the models' cards and papers say, to the last parameter, as Hugging Face counts their
# safetensors.
PUBLISHED = [
    (LLAMA_2_7B, 6_738_415_616), (LLAMA_2_70B, 68_976_648_192), (LLAMA_3_8B, 8_030_261_248),
    (MISTRAL_7B, 7_241_732_096), (MIXTRAL_8X7B, 46_702_792_704),
]  # fmt: skip


@pytest.mark.parametrize(("params", "published"), PUBLISHED)
def test_params_are_read_as_the_published_models(tmp_path: Path, params: dict[str, Any], published: int):
    (tmp_path / "params.json").write_text(json.dumps(params))
    for source in (params, tmp_path / "params.json", tmp_path):
        assert count(source).total == published


def test_a_mixture_of_mistrals_uses_two_experts():
    assert count(MIXTRAL_8X7B).totals["active"] == 12_879_925_248  # Mistral's "12.9B active"


def meta_like(params: dict[str, Any], rows: int) -> dict[str, torch.Tensor]:
    """The tensors that Meta's own model has, by the shapes in its code."""
    d, heads = params["dim"], params["n_heads"]
    keys = params.get("n_kv_heads", heads)
    hidden = int(2 * 4 * d / 3)
    hidden = int(params.get("ffn_dim_multiplier", 1) * hidden)
    multiple = params["multiple_of"]
    hidden = multiple * ((hidden + multiple - 1) // multiple)
    shapes: dict[str, tuple[int, ...]] = {
        "tok_embeddings.weight": (rows, d),
        "norm.weight": (d,),
        "output.weight": (rows, d),
    }
    for layer in range(params["n_layers"]):
        block = {
            "attention.wq": (d, d), "attention.wk": (d // heads * keys, d), "attention.wv": (d // heads * keys, d),
            "attention.wo": (d, d), "feed_forward.w1": (hidden, d), "feed_forward.w2": (d, hidden),
            "feed_forward.w3": (hidden, d), "attention_norm": (d,), "ffn_norm": (d,),
        }  # fmt: skip
        shapes |= {f"layers.{layer}.{name}.weight": shape for name, shape in block.items()}
    return {name: torch.zeros(shape) for name, shape in shapes.items()}


@given(data=st.data())
@drawing.drawn(25)
def test_any_params_count_what_their_own_model_has(data):
    keys = data.draw(st.sampled_from([1, 2, 4]))
    params = {
        "dim": 4 * data.draw(st.integers(1, 12)), "n_layers": data.draw(st.integers(1, 4)), "n_heads": 4, "n_kv_heads": keys,
        "multiple_of": data.draw(st.integers(1, 40)), "vocab_size": data.draw(st.integers(1, 99)), "norm_eps": 1e-6,
    }  # fmt: skip
    if data.draw(st.booleans()):
        params["ffn_dim_multiplier"] = data.draw(st.sampled_from([0.5, 1.0, 1.3, 1.75, 2]))
    shapes = meta_like(params, params["vocab_size"])
    assert count(params).total == sum(math.prod(tensor.shape) for tensor in shapes.values())


def test_what_is_set_is_set_in_the_words_of_the_config():
    assert count(LLAMA_2_7B, vocab_size=128).total == 6_738_415_616 - 2 * (32_000 - 128) * 4096
    assert count(LLAMA_2_7B, n_layers=1, dtype="float16").by("dtype").keys() == {"float16"}
    with pytest.raises(BadInput, match="hidden_size"):
        count(LLAMA_2_7B, hidden_size=8)


SMALL = {"dim": 16, "n_layers": 2, "n_heads": 4, "multiple_of": 8, "vocab_size": -1, "norm_eps": 1e-5}


def test_a_folder_of_metas_is_its_weights_with_its_params(tmp_path: Path):
    state = meta_like(SMALL, 40)
    torch.save(state, tmp_path / "consolidated.00.pth")
    (tmp_path / "params.json").write_text(json.dumps(SMALL))
    ledger = count(tmp_path)
    assert ledger.total == sum(tensor.numel() for tensor in state.values())
    assert "params.json describes the same number of parameters" in ledger.notes
    (tmp_path / "params.json").write_text(json.dumps({**SMALL, "n_layers": 3}))
    assert any(
        note.startswith("params.json describes ") and "the weights hold" in note for note in count(tmp_path).notes
    )


def test_slices_of_every_tensor_are_counted_from_the_params(tmp_path: Path):
    for number in range(3):
        torch.save({"tok_embeddings.weight": torch.zeros(4, 4)}, tmp_path / f"consolidated.{number:02}.pth")
    (tmp_path / "params.json").write_text(json.dumps({**SMALL, "vocab_size": 40}))
    ledger = count(tmp_path)
    assert ledger.total == sum(tensor.numel() for tensor in meta_like(SMALL, 40).values())
    assert any(
        "'consolidated.00.pth' and 2 more files hold slices of tensors and were not read" in n for n in ledger.notes
    )


def test_a_file_of_that_name_may_be_of_anything(tmp_path: Path):
    torch.save({"w": torch.zeros(3)}, tmp_path / "model.pt")
    for text in ('{"lr": 0.1}', "no JSON", "[]"):
        (tmp_path / "params.json").write_text(text)
        assert (count(tmp_path).total, count(tmp_path).notes) == (3, count(tmp_path / "model.pt").notes)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"vision_encoder": {}}, "a params.json of Meta or Mistral with 'vision_encoder', which is not supported"),
        ({"moe_args": {}, "lora": 1}, "'moe_args', 'lora'"),
        ({"model_type": "mamba"}, "model_type the string 'mamba'"),
        ({"n_heads": None}, "n_heads is missing, expected a positive integer"),
        ({"dim": "4096"}, "dim is the string '4096'"),
        ({"n_kv_heads": True}, "n_kv_heads is True"),
        ({"ffn_dim_multiplier": float("inf")}, "ffn_dim_multiplier is inf"),
        ({"ffn_dim_multiplier": float("nan")}, "ffn_dim_multiplier is nan"),
        ({"multiple_of": 0}, "multiple_of is 0"),
        ({"moe": 8}, "moe is 8, expected an object with num_experts"),
        ({"moe": {"num_experts": 8}}, "num_experts_per_tok is missing"),
    ],
)
def test_params_that_are_not_read_are_refused_by_name(tmp_path: Path, more: dict[str, Any], message: str):
    (tmp_path / "params.json").write_text(json.dumps({**SMALL, **more}))
    assert message in refusal(tmp_path / "params.json")


# -- litgpt's -------------------------------------------------------------------------------------

COMMON: dict[str, Any] = {
    "block_size": 4096, "head_size": 128, "hf_config": {"name": "A-7B", "org": "somebody"}, "lm_head_bias": False,
    "n_embd": 4096, "n_expert": 0, "n_expert_per_token": 0, "n_head": 32, "n_layer": 32, "n_query_groups": 32, "name": "A-7B",
    "norm_eps": 1e-05, "padded_vocab_size": 32000, "padding_multiple": 64, "parallel_residual": False, "rope_base": 10000,
    "shared_attention_norm": False, "vocab_size": 32000, "sliding_window_indices": [1, 0], "latent_attention": None,
}  # fmt: skip
LLAMA = {
    "bias": False,
    "norm_class_name": "RMSNorm",
    "mlp_class_name": "LLaMAMLP",
    "intermediate_size": 11008,
    "attn_bias": False,
}
MOE = {
    "mlp_class_name": "LLaMAMoE",
    "intermediate_size": 14336,
    "n_query_groups": 8,
    "n_expert": 8,
    "n_expert_per_token": 2,
}
PYTHIA_410M = {
    "bias": True, "norm_class_name": "LayerNorm", "mlp_class_name": "GptNeoxMLP", "intermediate_size": 4096, "n_embd": 1024,
    "n_layer": 24, "n_head": 16, "n_query_groups": 16, "head_size": 64, "padded_vocab_size": 50304, "parallel_residual": True,
}  # fmt: skip
QWEN_2_5_05B_UNTIED = {
    "attn_bias": True, "intermediate_size": 4864, "n_embd": 896, "n_layer": 24, "n_head": 14, "n_query_groups": 2,
    "head_size": 64, "padded_vocab_size": 151936,
}  # fmt: skip


def as_yaml(values: dict[str, Any]) -> str:
    """As PyYAML's ``dump`` writes it: sorted, lists at their key's own indent."""
    lines = []
    for key, value in sorted(values.items()):
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {one}" for name, one in value.items())]
        elif isinstance(value, list):
            lines += [f"{key}:", *(f"- {one}" for one in value)]
        else:
            lines.append(
                f"{key}: {'null' if value is None else str(value).lower() if isinstance(value, bool) else value}"
            )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("more", "published"),
    [
        (LLAMA, 6_738_415_616),
        ({**LLAMA, "n_query_groups": 8, "intermediate_size": 14336}, 7_241_732_096),
        ({**LLAMA, **MOE}, 46_702_792_704),
        (PYTHIA_410M, 405_334_016),
        ({**LLAMA, **QWEN_2_5_05B_UNTIED}, 494_032_768 + 151_936 * 896),
    ],
    ids=["llama", "mistral", "mixtral", "pythia", "qwen"],
)
def test_litgpts_config_is_read_as_the_published_models(tmp_path: Path, more: dict[str, Any], published: int):
    (tmp_path / "model_config.yaml").write_text(as_yaml({**COMMON, **more}))
    assert count(tmp_path / "model_config.yaml").total == count(tmp_path).total == published
    assert count({**COMMON, **more}).total == published  # as its dataclass gives it


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mlp_class_name": "GemmaMLP"}, "litgpt's config of 'A-7B' with mlp_class_name the string 'GemmaMLP'"),
        ({"norm_qk": True}, "with norm_qk True, which is not supported: name lit_model.pth in its folder"),
        ({"bias": True}, "with bias True"),
        ({"latent_attention": {"a": 1}}, "with latent_attention"),
        ({"n_layer": 0}, "n_layer is 0"),
        ({"padded_vocab_size": None}, "padded_vocab_size is missing"),
    ],
)
def test_what_of_litgpt_is_not_read_is_named(tmp_path: Path, more: dict[str, Any], message: str):
    (tmp_path / "model_config.yaml").write_text(as_yaml({**COMMON, **LLAMA, **more}))
    assert message in refusal(tmp_path / "model_config.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model:\n  dim: 3\n", "is not a model config"),
        ("just words\n", "line 1 is not `key: value`"),
        ("a: 1\na: 2\n", "line 2 is a duplicate key"),
        ("{a: 1}\n", "line 1 is not `key: value`"),
        ("\x1b[2J: 1\n", r"\x1b[2J"),
    ],
)
def test_yaml_that_is_no_flat_config_is_one_line(tmp_path: Path, text: str, message: str):
    (tmp_path / "config.yaml").write_text(text)
    assert message in refusal(tmp_path / "config.yaml")


def test_yaml_is_read_as_programs_write_it(tmp_path: Path):
    text = "# made\n---\nmodel_type: 'gpt2'  # quoted\nn_layer: 2\nn_embd: 48  # wide\nn_head: 4\nvocab_size: 97\ntie_word_embeddings: True\n"
    (tmp_path / "a.yml").write_text(text.replace("'gpt2'  # quoted", "gpt2"))
    assert (
        count(tmp_path / "a.yml").total
        == count({"model_type": "gpt2", "n_layer": 2, "n_embd": 48, "n_head": 4, "vocab_size": 97}).total
    )


# -- OpenVINO's -----------------------------------------------------------------------------------


def test_a_folder_of_openvino_is_counted_from_its_config(tmp_path: Path, capsys):
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 48, "n_head": 4, "vocab_size": 97, "n_positions": 32}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for name in ("openvino_model", "openvino_tokenizer", "openvino_detokenizer"):
        (tmp_path / f"{name}.bin").write_bytes(b"\x00\x01" * 50)
        (tmp_path / f"{name}.xml").write_text("<net/>")
    ledger = count(tmp_path)
    # (97 + 32) rows, two blocks of 12 d² + 13 d, and the last norm
    assert ledger.total == (97 + 32) * 48 + 2 * (12 * 48 * 48 + 13 * 48) + 2 * 48
    assert any("counted from the config: weights such as 'openvino_" in note for note in ledger.notes)
    assert "OpenVINO weights, which are not supported" in refusal(tmp_path / "openvino_model.bin")
    assert ".xml files are not supported; name its config.json" in refusal(tmp_path / "openvino_model.xml")
    assert main(["count", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


def test_a_config_of_metas_keys_says_nothing_of_the_names_beside_it(tmp_path: Path) -> None:
    values = {"dim": 8, "n_layers": 1, "n_heads": 2, "vocab_size": 10, "multiple_of": 4, "norm_eps": 1e-5}
    write_config(tmp_path, values)
    write(tmp_path / "model.safetensors", {"tok_embeddings.weight": (10, 8), "layers.0.attention.wq.weight": (8, 8)})
    ledger = count(tmp_path)
    assert (ledger.total, ledger.mismatches) == (10 * 8 + 8 * 8, {})
    assert ledger.notes[0].startswith("the checkpoint's config was not used: ")
    (tmp_path / "model.safetensors").unlink()
    index = {"weight_map": {"tok_embeddings.weight": "model-00001-of-00001.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    ledger = count(tmp_path)
    # By hand, of Llama: rows twice, four matrices of 8 × 8, three of 8 × 24 (⅔ of 32, to a multiple
    # of 4), three norms.
    assert ledger.total == 2 * 10 * 8 + 4 * 8 * 8 + 3 * 8 * 24 + 3 * 8
    assert not [note for note in ledger.notes if "does not name" in note]
