"""Wrong arguments are one line that names the function that was called."""

from typing import Any

import pytest

import tallystick
from tallystick.arguments import named
from tallystick.cli.main import main


def said(call):
    with pytest.raises((tallystick.BadInput, TypeError)) as error:
        call()
    line = str(error.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (tallystick.count, "count() missing 1 required positional argument: 'source'"),
        (lambda: tallystick.fit("gpt2"), "fit() missing 1 required positional argument: 'device'"),
        (lambda: tallystick.count("gpt2", n_layr=3), "count(): gpt2 has no key 'n_layr' to set; nearest: n_layer"),
        (lambda: tallystick.memory("gpt2", bacth=8), "memory(): gpt2 has no key 'bacth' to set; nearest option: batch"),
        (lambda: tallystick.fit("gpt2", "h100", squence=8), "fit(): gpt2 has no key 'squence' to set"),
        (lambda: tallystick.memory("gpt2", batch="8"), "memory(): batch is the string '8', expected"),
        (lambda: tallystick.memory("gpt2", dtype=5), "memory(): a number format is 5, expected a name"),
        (lambda: tallystick.memory("gpt2", kv_dtype=5), "memory(): a number format is 5, expected a name"),
        (lambda: tallystick.memory("gpt2", lora=8, targets=5), "memory(): targets is 5, expected names"),
        (lambda: tallystick.memory("gpt2", lora=8, targets=[5]), "memory(): targets is the list [5], expected"),
        (lambda: tallystick.fit("gpt2", None), "fit(): the device is None, expected a name"),
        (lambda: tallystick.compute("gpt2", mode=3), "compute(): mode is 3, expected one of training, inference"),
        (lambda: tallystick.compute(None), "compute(): cannot count None: expected a name"),
        (lambda: tallystick.compare("gpt2", 3), "compare(): cannot count 3: expected a name"),
        (lambda: tallystick.reconcile("gpt2", 1.5), "reconcile(): cannot read 1.5 as a claim"),
        (lambda: tallystick.check(5), "check(): the derivation is 5, expected its text"),
        (lambda: tallystick.check(""), "check(): the derivation is the string '', expected its text"),
        (lambda: tallystick.ties("gpt2", part=3), "ties(): part is 3, expected text"),
        (lambda: tallystick.count("gpt2", real="no"), "count(): real is the string 'no', expected True or False"),
        (lambda: tallystick.formula("a:b", vary=5), "formula(): vary is 5, expected a dictionary"),
        (lambda: tallystick.count("gpt2").by("x"), "Ledger.by(): cannot count by 'x': choose role"),
        (lambda: tallystick.count("gpt2").to_dict(by=3), "Ledger.to_dict(): cannot count by 3"),
    ],
)
def test_a_wrong_argument_is_a_line_that_names_the_function(call, line):
    assert said(call).startswith(line)


def test_of_live_modules_too():
    nn = pytest.importorskip("torch.nn")
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    for call, line in (
        (lambda: tallystick.assert_tied(3), "assert_tied(): the model is 3, expected a torch.nn.Module"),
        (lambda: tallystick.assert_tied(model, "0.weight", 4), "assert_tied(): the name of a parameter is 4, expected"),
        (lambda: tallystick.retie(3), "retie(): the model is 3, expected a torch.nn.Module"),
        (lambda: tallystick.retie(model, "0.weight", "1.weight", optimizer=3), "retie(): the optimizer is 3, expected"),
        (lambda: tallystick.check_optimizer(model, 4), "check_optimizer(): the optimizer is 4, expected"),
        (lambda: tallystick.assert_kept(model, 4), "assert_kept(): the model is 4, expected a torch.nn.Module"),
        (lambda: tallystick.watch(3).__enter__(), "watch(): the model is 3, expected a torch.nn.Module"),
        (lambda: tallystick.memory(model, bacth=3), "memory(): a live module has no config to set bacth in; nearest"),
    ):
        assert said(call).startswith(line)


def test_of_models_too():
    pytest.importorskip("torch")
    from tallystick.course import judge
    from tallystick.models import Decoder, Sampling, TextModel, load_pretrained, save_pretrained, set_dropout
    from tallystick.training.config import TrainConfig

    decoder = Decoder.of("gpt2", vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=6)
    for call, line in (
        (lambda: Decoder("gpt2"), "Decoder(): config is the string 'gpt2', expected DecoderConfig"),
        (lambda: Decoder.of("gpt2", n_layr=2), "Decoder.of(): gpt2 has no key 'n_layr' to set; nearest: n_layer"),
        (lambda: TextModel.load(3), "TextModel.load(): source is 3, expected text or PathLike"),
        (lambda: load_pretrained(3), "load_pretrained(): source is 3, expected text or PathLike"),
        (lambda: save_pretrained(decoder, 4), "save_pretrained(): folder is 4, expected text or PathLike"),
        (lambda: set_dropout(decoder, "x"), "set_dropout(): rate is the string 'x', expected a number"),
        (lambda: Sampling(top_k="x"), "Sampling(): top_k is the string 'x', expected an integer or None"),
        (lambda: TrainConfig(steps=True), "TrainConfig(): steps is True, expected an integer"),
        (lambda: TrainConfig(schedule="x"), "TrainConfig(): schedule is the string 'x', expected cosine, linear"),
        (lambda: judge("mlpp", len), "judge(): unknown model the string 'mlpp'; nearest: mlp; the course has "),
    ):
        assert said(call).startswith(line)


def test_a_type_error_with_right_arguments_stays_one():
    @named
    def broken(number: int, rate: float = 0.0) -> int:
        return number + "1"

    with pytest.raises(TypeError, match="unsupported operand"):
        broken(1, 2)


@pytest.mark.parametrize("error", [AttributeError("head_dim is not declared"), TypeError("unsupported operand")])
def test_an_error_inside_stays_one_where_any_argument_is_right(error):
    @named
    def broken(source: Any) -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        broken("gpt2")


def test_an_error_of_a_file_does_not_name_the_function(tmp_path):
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    assert "memory()" not in said(lambda: tallystick.memory(tmp_path / "config.json"))


def test_the_message_without_the_function_is_kept():
    with pytest.raises(tallystick.BadInput) as error:
        tallystick.memory("gpt2", batch=0)
    assert (error.value.function, error.value.line) == ("memory", "batch is 0, expected a positive integer")


def test_a_command_names_no_function(capsys):
    assert main(["memory", "gpt2", "--dtype", "q4"]) == 2
    assert capsys.readouterr().err.startswith("tallystick: unknown number format 'q4'")
