"""The pytest fixture and the callbacks of trainers, each in a real run of its host."""

import pytest
import torch
import transformers
from torch import nn

from tallystick.live import NotTied
from tallystick.live.trainer import KeepTied
from tied_checkpoints import llama

USERS_TESTS = """
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

def model():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=20, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2,
        tie_word_embeddings=True,
    ))

def test_tied(assert_tied):
    assert_tied(model())

def test_surgery(assert_tied):
    cut = model()
    cut.lm_head = nn.Sequential(nn.Linear(8, 20, bias=False))
    assert_tied(cut)
"""


def test_the_fixture_fails_a_users_test_with_one_line(pytester):
    pytester.makepyfile(USERS_TESTS)
    done = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    (line,) = [line for line in done.outlines if line.startswith("model.embed_tokens.weight and")]
    assert "lm_head.0.weight are untied" in line
    assert "tallystick.retie(model" in line
    assert "Traceback" not in done.stdout.str()


def trainer(model, folder, *, steps=2):
    data = [{"input_ids": torch.arange(6), "labels": torch.arange(6)}] * 4
    arguments = transformers.TrainingArguments(
        str(folder), max_steps=steps, save_steps=1, per_device_train_batch_size=2, report_to=[], disable_tqdm=True,
        use_cpu=True,
    )  # fmt: skip
    return transformers.Trainer(model, arguments, train_dataset=data, callbacks=[KeepTied()])


def test_a_sound_run_is_left_alone(tmp_path):
    trainer(llama(tie_word_embeddings=True), tmp_path).train()
    assert (tmp_path / "checkpoint-2" / "config.json").exists()
    trainer(llama(tie_word_embeddings=False), tmp_path / "untied").train()


def test_a_run_that_begins_untied_is_stopped(tmp_path):
    model = llama(tie_word_embeddings=True)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    with pytest.raises(NotTied, match=r"^at the start of training: .*lm_head\.weight are copied"):
        trainer(model, tmp_path).train()


def test_a_tie_lost_on_the_way_is_named_at_the_next_save(tmp_path):
    class Cut(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, model=None, **kwargs):
            model.lm_head.weight = nn.Parameter(torch.randn(20, 8))

    run = trainer(llama(tie_word_embeddings=True), tmp_path)
    run.add_callback(Cut())
    with pytest.raises(NotTied, match=r"^after the save at step 1: "):
        run.train()


def test_a_save_that_contradicts_its_config_is_named(tmp_path):
    class Spoil(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, model=None, **kwargs):
            model.config.tie_word_embeddings = False

    run = trainer(llama(tie_word_embeddings=True), tmp_path)
    run.add_callback(Spoil())
    with pytest.raises(NotTied, match="loaders initialise it at random"):
        run.train()


def test_lightning_runs_are_checked_too(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")
    from tallystick.live.lightning import KeepTied as Keep

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = llama(tie_word_embeddings=True)

        def training_step(self, batch, _):
            return self.model(batch, labels=batch).loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(module):
        loader = torch.utils.data.DataLoader([torch.arange(6)] * 4, batch_size=2)
        lightning.Trainer(
            max_epochs=1, callbacks=[Keep()], default_root_dir=tmp_path, logger=False, accelerator="cpu",
            enable_progress_bar=False, enable_model_summary=False,
        ).fit(module, loader)  # fmt: skip

    fit(Module())
    cut = Module()
    cut.model.lm_head.weight = nn.Parameter(torch.randn(20, 8))
    with pytest.raises(NotTied, match=r"^at the start of the fit: .*model\.lm_head\.weight are untied"):
        fit(cut)
