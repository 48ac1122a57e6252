"""What must work with every pair of torch and transformers that tallystick says it runs with:
checks, one function each.

    python tests/support/on_versions.py      # a line of JSON for each check

They need no pytest: `matrix.py` runs them in an environment for each pair, test_versions.py in the
one at hand.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers

import tallystick
from decoders import KINDS, ours, theirs
from small import small_model
from training import small

CHECKS: dict[str, Callable[[Path], None]] = {}
LIVE = (
    "bloom", "falcon", "gemma2", "gpt2", "gpt_neo", "gpt_neox", "gptj", "llama", "mistral", "mixtral", "mpt", "olmo2", "opt",
    "phi3", "qwen2", "qwen2_moe", "qwen3",
)  # fmt: skip
FOREIGN = {  # types that transformers builds for us, in sizes that take no time
    "mt5": {"vocab_size": 100, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4},
    "bart": {
        "vocab_size": 100, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 32,
    },
}  # fmt: skip
TOKENS = torch.arange(14).view(2, 7) * 5 % 97


def check(name: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """A check, which gets an empty folder."""

    def kept(function: Callable[[Path], None]) -> Callable[[Path], None]:
        CHECKS[name] = function
        return function

    return kept


def same(found: Any, expected: Any, what: object) -> None:
    """Fail with both, where they differ."""
    assert found == expected, f"{what}: {found}, expected {expected}"


def near(found: torch.Tensor, expected: torch.Tensor, what: object) -> None:
    """Fail where float32 would not explain it."""
    gap = (found - expected).abs().max().item()
    assert gap <= 1e-5 * max(1.0, expected.abs().max().item()), f"{what}: {gap:.1e} apart"


@check("count, ties: transformers' models")
def live(folder: Path) -> None:
    wrong = [f"{model_type}: {error}" for model_type in LIVE if (error := live_wrong(model_type))]
    assert not wrong, "; ".join(wrong)


def live_wrong(model_type: str) -> str:
    """What is wrong with one type, so that it hides no other."""
    try:
        model = small_model(model_type)
        total = sum(parameter.numel() for parameter in model.parameters())
        same(tallystick.count(model).total, total, "model")
        same(tallystick.count(model.config).total, total, "config")
        same(tallystick.ties(model).verdict, "consistent", "ties")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@check("count, ties: a folder")
def stored(folder: Path) -> None:
    for model_type in ("gpt2", "llama", "mixtral"):
        model = theirs(model_type, **KINDS[model_type])
        model.save_pretrained(folder / model_type)
        total = sum(parameter.numel() for parameter in model.parameters())
        same(tallystick.count(str(folder / model_type)).total, total, model_type)
        same(tallystick.ties(str(folder / model_type)).verdict, "consistent", model_type)


@check("retie, watch, assert_tied")
def retied(folder: Path) -> None:
    model = theirs("gpt2", **KINDS["gpt2"])
    total = sum(parameter.numel() for parameter in model.parameters())
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    tallystick.retie(model)
    same(sum(parameter.numel() for parameter in model.parameters()), total, "parameters")
    tallystick.assert_tied(model)
    with tallystick.watch(model):
        model.resize_token_embeddings(100)


@check("types built by transformers")
def fallback(folder: Path) -> None:
    for model_type, sizes in FOREIGN.items():
        path = folder / f"{model_type}.json"
        model = transformers.AutoModelForSeq2SeqLM.from_config(transformers.AutoConfig.for_model(model_type, **sizes))
        path.write_text(json.dumps({"model_type": model_type, "architectures": [type(model).__name__], **sizes}))
        command = [sys.executable, "-m", "tallystick", "count", path, "--format", "json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        total = sum(parameter.numel() for parameter in model.parameters())
        same(json.loads(done.stdout)["totals"]["unique"], total, model_type)


def decoder(model_type: str, folder: Path) -> None:
    """Loaded and saved, logits and gradients, beside transformers."""
    from tallystick.models import load_pretrained, save_pretrained

    model = theirs(model_type, **KINDS[model_type])
    expected = model(TOKENS, labels=TOKENS)
    expected.loss.backward()
    model.save_pretrained(folder / "theirs")
    loaded = load_pretrained(folder / "theirs")
    near(loaded(TOKENS), expected.logits, "logits")
    twin = ours(model)
    logits = twin(TOKENS)
    torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), TOKENS[:, 1:].flatten()).backward()
    near(twin.embedding.weight.grad, model.get_input_embeddings().weight.grad, "the embedding's gradient")
    save_pretrained(loaded, folder / "ours")
    again, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "ours", output_loading_info=True, attn_implementation="eager"
    )
    same((list(info["missing_keys"]), list(info["unexpected_keys"])), ([], []), "missing, unexpected")
    near(again(TOKENS).logits, expected.logits, "logits of what was saved")


for _type in ("gpt2", "llama", "mixtral"):
    CHECKS[f"models: {_type}"] = lambda folder, model_type=_type: decoder(model_type, folder)


@check("generate")
def written(folder: Path) -> None:
    from tallystick.models.generation import generate

    model = theirs("llama", **KINDS["llama"])
    prompt = [3, 1, 4, 1, 5]
    ids = torch.tensor([prompt])
    expected = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    for dtype in (torch.float32, torch.bfloat16):
        found = generate(ours(model).to(dtype), [prompt], tokens=12)[0]
        assert dtype != torch.float32 or found == expected[0, 5:].tolist(), (found, expected)
        same(len(found), 12, dtype)


@check("train, save, resume")
def trained(folder: Path) -> None:
    from tallystick.training.run import prepared
    from tallystick.training.train import train

    config = small(folder, steps=6, save_every=2)
    weights = []
    for name, stops in (("whole", 0), ("in two", 4)):
        config = replace(config, out=str(folder / name))
        if stops:
            run = prepared(config)
            for event in run.events():
                if (event.kind, event.step) == ("saved", stops):
                    break
            run.close()
        outcome = train(config, resume="auto")
        weights.append((Path(str(outcome.model)) / "model.safetensors").read_bytes())
    assert weights[0] == weights[1], "a run in two parts leaves other weights"


def main() -> None:
    """Run all, one after another, whatever fails."""
    transformers.logging.set_verbosity_error()
    for name, function in CHECKS.items():
        wrong = None
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(Path(folder))
            except Exception as error:
                traceback.print_exc()
                wrong = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        sys.stdout.write(json.dumps({"check": name, "wrong": wrong}) + "\n")


if __name__ == "__main__":
    main()
