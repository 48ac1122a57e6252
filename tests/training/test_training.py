"""A run: equal to a plain loop, saved and gone on with bit for bit, stopped in order, and refused
before it begins.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from tallystick.errors import BadInput
from tallystick.models import Decoder
from tallystick.training import memory_peak
from tallystick.training.checkpoints import checkpoint
from tallystick.training.run import Diverged, prepared
from tallystick.training.schedule import rate
from training import MODEL, small


def trained(config, **how):
    run = prepared(config, **how)
    return run, list(run.events())


def weights(run):
    return {name: tensor.detach().clone() for name, tensor in run.decoder.named_parameters()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def losses(events):
    return [event.values["loss"] for event in events if event.kind == "step"]


def plainly(config, corpus, steps):
    """The same run as anybody would write it: all logits at once, torch's own loss, an unfused
    optimizer.
    """
    torch.manual_seed(config.seed)
    decoder = Decoder.of({"model_type": "llama"}, vocab_size=257, **config.model)
    decayed = [one for one in decoder.parameters() if one.ndim == 2]
    others = [one for one in decoder.parameters() if one.ndim != 2]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(config.beta1, config.beta2), foreach=False)
    found = []
    for step in range(steps):
        inputs, targets = corpus.train.batch(step, config.batch, config.sequence, seed=config.seed)
        loss = F.cross_entropy(decoder(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), config.clip)
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * rate(config, step)
        optimizer.step()
        found.append(loss.item())
    return found, dict(decoder.named_parameters())


@pytest.mark.parametrize("accumulate", [1, 2])
def test_fifty_steps_are_those_of_a_plain_loop(tmp_path, accumulate):
    """Read in two parts, a batch gives the same gradients as read at once."""
    config = small(tmp_path, steps=50, accumulate=accumulate)
    run, events = trained(config)
    found, ends = plainly(config, run.corpus, 50)
    assert losses(events) == pytest.approx(found, abs=1e-4)
    for name, tensor in weights(run).items():
        torch.testing.assert_close(tensor, ends[name].detach(), atol=1e-4, rtol=0)
    assert found[-1] < found[0] - 1


def test_a_run_gone_on_with_is_one_that_never_stopped(tmp_path):
    """With dropout, so that the state of random numbers matters, too."""
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()

    def config(folder):
        return replace(small(folder, steps=8, save_every=3), source="gpt2", model=gpt2)

    whole, all_events = trained(config(tmp_path / "one"))
    cut = prepared(config(tmp_path / "two"))
    for event in cut.events():
        if event.kind == "saved":
            break
    again, rest = trained(config(tmp_path / "two"), resume="auto")
    assert losses(rest) == losses(all_events)[3:]
    assert_same(weights(again), weights(whole))


def test_muon_goes_on_too(tmp_path):
    config = small(tmp_path, steps=6, save_every=3, optimizer="muon", keep=9)
    whole, events = trained(config)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000006")
    again, rest = trained(config, resume="auto")
    assert losses(rest) == losses(events)[3:]
    assert_same(weights(again), weights(whole))


def test_the_newest_checkpoints_are_kept(tmp_path):
    trained(small(tmp_path, steps=7, save_every=2, keep=2))
    assert [path.name for path in checkpoint.checkpoints(tmp_path / "run")] == ["step-00000007", "step-00000006"]


@pytest.mark.parametrize("harm", ["cut", "changed", "gone", "whole.json"])
def test_a_torn_checkpoint_is_seen_and_the_one_before_is_used(tmp_path, harm):
    config = small(tmp_path, steps=6, save_every=3)
    whole, _ = trained(config)
    newest = tmp_path / "run" / "checkpoints" / "step-00000006"
    shard = next(newest.glob("state/shard-*"))
    content = bytearray(shard.read_bytes())
    if harm == "cut":
        shard.write_bytes(content[:-1])
    elif harm == "changed":
        content[-1] ^= 1
        shard.write_bytes(content)
    elif harm == "gone":
        shard.unlink()
    else:
        (newest / "whole.json").write_text("{")
    run = prepared(config, resume="auto")
    assert run.progress.step == 3
    assert run.torn == [newest]
    list(run.events())
    assert_same(weights(run), weights(whole))


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    run = prepared(small(tmp_path, steps=6, save_every=3))

    def full(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    events, seen = run.events(), []
    while "saved" not in seen:
        seen.append(next(events).kind)
    monkeypatch.setattr(checkpoint, "_save_file", full)
    with pytest.raises(BadInput, match="No space left on device; earlier checkpoints are kept"):
        list(events)
    folder = tmp_path / "run" / "checkpoints"
    assert [path.name for path in folder.iterdir()] == ["step-00000003"]
    assert checkpoint.is_whole(folder / "step-00000003")


def test_a_disk_that_is_full_within_a_file_leaves_the_checkpoint_before_and_nothing_else(tmp_path):
    """Refused by the system itself, in the middle of a file of torch's."""
    events = prepared(small(tmp_path, steps=6, save_every=3)).events()
    assert next(event.step for event in events if event.kind == "saved") == 3
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(
            BadInput, match=r"step-00000006 could not be written: .*File too large.*; earlier checkpoints are kept"
        ):
            list(events)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000003"]


def test_what_a_killed_save_left_is_cleared(tmp_path):
    trained(small(tmp_path, steps=2))
    left = tmp_path / "run" / "checkpoints" / ".step-00000003.partial"
    left.mkdir()
    (left / "progress.json").write_text("{")
    prepared(small(tmp_path, steps=2), resume="auto")
    assert [path.name for path in left.parent.iterdir()] == ["step-00000002"]


@pytest.mark.parametrize(("kept", "times"), [(1, 2), (2, 3), (9, 4)])
def test_a_disk_without_room_for_the_checkpoints_is_seen_first(tmp_path, monkeypatch, kept, times):
    """All that are kept at once and the one that is being written, of 4 saves; with two moments
    each; and the model.
    """
    config = small(tmp_path, steps=8, save_every=2, keep=kept)
    size = 4 * sum(
        parameter.numel() for parameter in Decoder.of({"model_type": "llama"}, vocab_size=257, **MODEL).parameters()
    )
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=3 * times * size + size - 1))
    with pytest.raises(BadInput, match=f"bytes free, but this run needs at least {3 * times * size + size:,}"):
        prepared(config)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=3 * times * size + size))
    prepared(config)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_stops(tmp_path, number):
    run = prepared(small(tmp_path, steps=50))
    before = signal.getsignal(number)
    kinds = []
    for event in run.events():
        kinds.append(event.kind)
        if event.kind == "step" and event.step == 4:
            os.kill(os.getpid(), number)
    assert kinds[-2:] == ["saved", "stopped"]
    assert run.progress.step == 4
    assert checkpoint.latest(tmp_path / "run")[0].name == "step-00000004"
    assert signal.getsignal(number) is before


def test_a_gradient_that_is_no_number_is_named(tmp_path):
    run = prepared(small(tmp_path))
    with torch.no_grad():
        run.decoder.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    before = weights(run)
    with pytest.raises(Diverged, match="step 1: the loss is not finite"):
        list(run.events())
    run.decoder.zero_grad()
    hook = run.decoder.layers[0].attention.q_proj.weight.register_hook(lambda grad: grad * float("inf"))
    with torch.no_grad():
        run.decoder.layers[1].mlp.up_proj.weight[0, 0] = 0.0
    with pytest.raises(Diverged, match=r"step 1: the gradient of layers.0.attention.q_proj.weight"):
        list(run.events())
    hook.remove()
    assert torch.equal(before["norm.weight"], run.decoder.norm.weight)


def test_evaluation_is_the_mean_over_the_first_batches(tmp_path):
    run = prepared(small(tmp_path, eval_batches=3))
    found = run.evaluate()
    expected = [
        F.cross_entropy(run.decoder(inputs).flatten(0, 1), targets.flatten()).item()
        for inputs, targets in (run.corpus.validation.batch(number, 4, 16, seed=None) for number in range(3))
    ]
    assert found["loss"] == pytest.approx(sum(expected) / 3, rel=1e-5)
    assert found["bits_per_byte"] == pytest.approx(run.corpus.validation.bits_per_byte(found["loss"]))
    assert run.model.training


def test_a_validation_text_of_less_than_a_batch_is_evaluated_too(tmp_path):
    run = prepared(small(tmp_path, batch=512))
    assert run.corpus.validation.batches(512, 16) == 0
    inputs, targets = run.corpus.validation.batch(0, 512, 16, seed=None)
    expected = F.cross_entropy(run.decoder(inputs).flatten(0, 1), targets.flatten()).item()
    assert run.evaluate()["loss"] == pytest.approx(expected, rel=1e-5)


def test_what_is_said_during_a_run(tmp_path):
    _, events = trained(small(tmp_path, steps=4, log_every=2, eval_every=2, save_every=4, sample_every=4))
    kinds = [(event.kind, event.step) for event in events]
    assert kinds == [
        ("step", 2), ("evaluated", 2), ("step", 4), ("evaluated", 4), ("sample", 4), ("saved", 4), ("done", 4),
    ]  # fmt: skip
    assert isinstance(events[4].values["text"], str)


@pytest.mark.parametrize(("prompt", "read"), [("", [256]), ("ab", [97, 98]), ("a" * 100 + "b", [97] * 62 + [98])])
def test_a_sample_goes_on_from_the_prompt_or_from_what_stands_before_a_text(tmp_path, monkeypatch, prompt, read):
    """The token after each text of bytes is the 257th; of a prompt as long as all positions, the
    end is read.
    """
    run, seen = prepared(small(tmp_path, sample_prompt=prompt)), []

    def generated(decoder, prompts, *, tokens, **how):
        seen.extend([*prompts, tokens])
        return [[104, 105]]

    monkeypatch.setattr("tallystick.training.run.generate", generated)
    assert run.sample() == (bytes(read).decode() + "hi" if prompt else "hi")
    assert seen == [read, 64 - len(read)]


def test_recomputed_activations_give_the_same_weights(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    kept, _ = trained(small(tmp_path / "one"))
    again, _ = trained(small(tmp_path / "two", recompute=True))
    for name, tensor in weights(kept).items():
        torch.testing.assert_close(weights(again)[name], tensor)


# -- refused before the first step ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sequence": 65}, "sequence 65 is longer than the 64 positions of the model"),
        ({"model.vocab_size": 100}, "the embedding has 100 rows, but the tokenizer has 257 entries"),
        ({"device": "cuda:7"}, "no device 'cuda:7'"),
        ({"device": "gpu"}, "no device 'gpu': PyTorch .* has cpu"),
        ({"device": "meta"}, "no device 'meta'"),
        ({"model.num_attention_heads": 3}, "^model.hidden_size = 32 is not divisible by num_attention_heads = 3"),
        ({"model.hidden": 3}, "no key 'hidden' to set"),
        ({"source": "lama"}, "there is no preset or file 'lama'"),
        ({"data": "nowhere"}, "no file or folder 'nowhere'"),
    ],
)
def test_what_cannot_be_trained(tmp_path, settings, message):
    with pytest.raises(BadInput, match=message):
        prepared(small(tmp_path, **settings))


def test_a_model_that_cannot_be_is_refused_before_any_text_is_read(tmp_path):
    with pytest.raises(BadInput, match="sequence 65 is longer"):
        prepared(small(tmp_path, sequence=65))
    assert not (tmp_path / "run" / "data").exists()


def test_a_folder_with_checkpoints_is_not_begun_anew(tmp_path):
    trained(small(tmp_path, steps=2))
    with pytest.raises(BadInput, match="holds a run's checkpoints: resume with --resume auto"):
        prepared(small(tmp_path, steps=2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 1.0}, "a run with learning_rate = 0.01"),
        ({"batch": 8}, "batch = 4, but this run has 8"),
        ({"model.hidden_size": 64}, "a run with model.hidden_size = 32, but this run has 64"),
    ],
)
def test_a_run_is_not_gone_on_with_otherwise(tmp_path, settings, message):
    trained(small(tmp_path, steps=2))
    with pytest.raises(BadInput, match=message):
        prepared(small(tmp_path, steps=2, **settings), resume="auto")


def test_a_folder_that_cannot_be_written_is_seen_first(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(BadInput, match="cannot be written"):
        prepared(small(tmp_path))


def test_a_checkpoint_holds_no_pickle_and_each_tensor_once(tmp_path):
    from safetensors import safe_open

    run, _ = trained(small(tmp_path, steps=2))
    folder = checkpoint.checkpoints(tmp_path / "run")[0]
    assert {path.suffix for path in folder.rglob("*.*")} == {".json", ".safetensors"}
    names = [name for path in folder.glob("state/*") for name in safe_open(path, "pt").keys()]  # noqa: SIM118
    assert len(names) == len(set(names)) == 4 * len(list(run.decoder.parameters()))  # itself, two moments, a step
    assert "model.head.weight" not in names
    said = json.loads((folder / "progress.json").read_text())
    assert said["step"] == 2
    assert said["config"]["model"] == MODEL
    assert Path(said["config"]["out"]) == tmp_path / "run"


@pytest.mark.parametrize(("clear", "found"), [("clear", 200_000 * 1024), ("no/clear", None)])
def test_the_peak_of_a_run_is_what_it_takes_above_what_the_process_held(tmp_path, monkeypatch, clear, found):
    status = tmp_path / "status"
    monkeypatch.setattr(memory_peak, "_STATUS", status)
    monkeypatch.setattr(memory_peak, "_CLEAR", tmp_path / clear)
    status.write_text("VmHWM:\t  900000 kB\nVmRSS:\t  600000 kB\n")
    peak = memory_peak.Peak(torch.device("cpu"))
    status.write_text("VmHWM:\t  800000 kB\nVmRSS:\t  700000 kB\n")
    assert peak.bytes == found
