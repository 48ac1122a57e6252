"""Folders of PEFT adapters: counted alone, with their base named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers

from checkpoint_models import LLAMA, LLAMA_SIZES, noted, refused
from checkpoints import write, write_config
from hostile import mutations, rewritten, survives
from tallystick import count, ties
from tallystick.sources.checkpoint.peft import adapter_notes

ADAPTERS: dict[str, tuple[Any, str]] = {
    "LoRA": (
        lambda: peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]),
        "a PEFT adapter (LORA), rank 4 on q_proj, v_proj (6 modules), for 'somebody/base' (base model not counted)",
    ),
    "LoRA of two ranks": (
        lambda: peft.LoraConfig(r=4, rank_pattern={"v_proj": 2}, target_modules=["q_proj", "v_proj"]),
        "rank 2, 4 on q_proj, v_proj (6 modules)",
    ),
    "LoRA and a whole head": (
        lambda: peft.LoraConfig(r=4, target_modules=["q_proj"], modules_to_save=["lm_head"]),
        "complete tensors in addition: base_model.model.lm_head.weight (160 parameters)",
    ),
    "DoRA": (lambda: peft.LoraConfig(r=4, use_dora=True, target_modules=["down_proj"]), "rank 4 on down_proj (3 modules)"),
    "IA3": (
        lambda: peft.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
        "a PEFT adapter (IA3), for 'somebody/base'",
    ),
    "prompt tuning": (
        lambda: peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=5), "a PEFT adapter (PROMPT_TUNING)",
    ),
    "VeRA": (lambda: peft.VeraConfig(r=4, target_modules=["q_proj"]), "a PEFT adapter (VERA)"),
}  # fmt: skip


def adapted(folder: Path, config: Any) -> Any:
    base = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA_SIZES))
    base.name_or_path = base.config._name_or_path = "somebody/base"
    model = peft.get_peft_model(base, config)
    model.save_pretrained(folder, save_embedding_layers=False)  # which it would look for on the hub
    return model


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_is_counted_alone_and_its_base_named(tmp_path: Path, name: str):
    config, said = ADAPTERS[name]
    model = adapted(tmp_path, config())
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    ledger = count(tmp_path)
    assert ledger.total == trained
    assert noted(ledger, said)
    assert not noted(ledger, "no LM head")
    assert ties(tmp_path).problems == ()

    # A config that a trainer left beside it is the base's, none of whose tensors are expected here.
    write_config(tmp_path, LLAMA)
    assert (count(tmp_path).total, count(tmp_path).described) == (trained, None)


def test_an_adapter_in_a_pickle(tmp_path: Path):
    model = adapted(tmp_path, ADAPTERS["LoRA"][0]())
    (tmp_path / "adapter_model.safetensors").unlink()
    state = peft.get_peft_model_state_dict(model, save_embedding_layers=False)
    torch.save(state, tmp_path / "adapter_model.bin")
    ledger = count(tmp_path)
    assert ledger.total == sum(one.numel() for one in state.values())
    assert ledger.by("role") == {"attention": ledger.total}
    assert noted(ledger, ADAPTERS["LoRA"][1])


def test_an_adapter_whose_config_says_another_rank(tmp_path: Path):
    adapted(tmp_path, ADAPTERS["LoRA"][0]())
    config = tmp_path / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "r": 16}))
    assert noted(count(tmp_path), "adapter_config.json says rank 16, but the tensors have rank 4")
    config.write_text(json.dumps({**json.loads(config.read_text()), "r": 10**4000}))
    assert noted(count(tmp_path), "adapter_config.json says rank an integer of 13288 bits, but the tensors have rank 4")


@pytest.mark.parametrize(
    ("shapes", "config", "words"),
    [
        ({"a.lora_A.weight": (4, 8), "a.lora_B.weight": (8, 3)}, "{}", "have different ranks"),
        ({"a.lora_A.weight": (4, 8)}, "{}", "without its adapter's other matrix"),
        ({"a.lora_A.weight": (), "a.lora_B.weight": ()}, "{}", "have different ranks"),
        ({"a.lora_A.weight": (4, 8), "a.lora_B.weight": (8, 4)}, "[]", "expected an object with a peft_type"),
        ({"a.lora_A.weight": (4, 8), "a.lora_B.weight": (8, 4)}, "{", "is not JSON"),
        ({"a.lora_A.weight": (4, 8), "a.lora_B.weight": (8, 4)}, "", "is empty"),
    ],
)
def test_a_broken_adapter_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shapes: dict[str, tuple[int, ...]], config: str, words: str
):
    write(tmp_path / "adapter_model.safetensors", shapes)
    (tmp_path / "adapter_config.json").write_text(config)
    assert words in refused(capsys, "count", str(tmp_path))


@pytest.mark.parametrize(
    "config", [{}, {"peft_type": 3, "r": "x"}, {"peft_type": "\x1b[2J", "base_model_name_or_path": "\n"}], ids=str
)
def test_an_odd_config_of_an_adapter_is_quoted(tmp_path: Path, config: dict[str, Any]):
    write(tmp_path / "adapter_model.safetensors", {"a.lora_A.weight": (4, 8), "a.lora_B.weight": (8, 4)})
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    ledger = count(tmp_path)
    assert ledger.total == 64
    assert all(note.isprintable() for note in ledger.notes)


@pytest.mark.parametrize("changes", [mutations, rewritten])
def test_a_changed_config_of_an_adapter_is_counted_or_refused(tmp_path: Path, changes: Any):
    modules = {f"base_model.model.h.{layer}.attn.{part}" for layer in range(2) for part in ("q_proj", "v_proj")}
    matrices = {"lora_A.weight": (4, 8), "lora_B.weight": (8, 4)}
    shapes = {f"{module}.{name}": shape for module in sorted(modules) for name, shape in matrices.items()}
    write(tmp_path / "adapter_model.safetensors", {**shapes, "base_model.model.score.weight": (2, 8)})
    said = {
        "peft_type": "LORA", "base_model_name_or_path": "somebody/base", "r": 4, "lora_alpha": 8, "rank_pattern": {},
        "target_modules": ["q_proj", "v_proj"], "modules_to_save": ["score"], "task_type": "CAUSAL_LM",
    }  # fmt: skip
    inputs = changes(json.dumps(said).encode() if changes is mutations else said, most=100)
    config, entries = tmp_path / "adapter_config.json", count(tmp_path / "adapter_model.safetensors").rolled
    assert survives(config, inputs, source=tmp_path, read=lambda _: adapter_notes(config, entries))
