"""What a run is told: types, presets, settings, and the learning rate that follows."""

import math

import pytest

from tallystick.errors import BadInput
from tallystick.training.config import PRESETS, TrainConfig, configured
from tallystick.training.schedule import rate


def told(settings, **values):
    return configured(values, settings, where="run.toml")


def test_settings_go_over_the_file_and_the_file_over_the_preset():
    config = told({"steps": 7, "model.num_hidden_layers": 2}, preset="nano", batch=4, model={"hidden_size": 64})
    assert (config.steps, config.batch, config.sequence) == (7, 4, PRESETS["nano"]["sequence"])
    assert config.model["num_hidden_layers"] == 2
    assert config.model["hidden_size"] == 64
    assert config.model["intermediate_size"] == PRESETS["nano"]["model"]["intermediate_size"]


def test_another_model_does_not_get_the_keys_of_the_presets():
    assert told({"source": "gpt2"}, preset="nano").model == {}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_config(preset):
    assert isinstance(told({}, preset=preset), TrainConfig)


def test_whole_numbers_are_integers_however_they_are_written():
    config = told({"steps": 1e3, "learning_rate": 1})
    assert (config.steps, config.learning_rate) == (1000, 1.0)
    assert isinstance(config.steps, int)
    assert isinstance(config.learning_rate, float)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": 3}, "unknown key 'step'; nearest: steps"),
        ({"preset": "nanno"}, "there is no preset 'nanno'; nearest: nano"),
        ({"batch": 0}, "batch is 0, expected 1 or more"),
        ({"batch": "8x"}, "batch is the string '8x', expected an integer"),
        ({"batch": True}, "batch is True, expected an integer"),
        ({"steps": 1.5}, "steps is 1.5, expected an integer"),
        ({"schedule": "cosin"}, "schedule is the string 'cosin', expected cosine, linear, wsd, constant"),
        ({"compile": 1}, "compile is 1, expected true or false"),
        ({"model": 3}, "model is 3, expected a table"),
        ({"learning_rate": 0}, "learning_rate is 0.0, expected a number above 0"),
        ({"learning_rate": math.inf}, "expected a number above 0"),
        ({"validation": 1.5}, "validation is 1.5, expected a share from 0 to 1"),
        ({"eval_batches": 0}, "eval_batches is 0, expected 1 or more"),
        ({"seed": -1}, "seed is -1, expected 0 to 4294967295"),
        ({"batch": 8, "accumulate": 3}, "batch 8 is not divisible by accumulate 3"),
    ],
)
def test_what_makes_no_run_is_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        told(settings)
    with pytest.raises(BadInput, match=message):
        told({}, **settings)  # in the file


# -- the learning rate ----------------------------------------------------------------------------


def rates(**keys):
    config = TrainConfig(**{"steps": 100, "warmup": 10, "final": 0.1, **keys})
    return [rate(config, step) for step in range(config.steps + 1)]


@pytest.mark.parametrize("schedule", ["cosine", "linear", "wsd", "constant"])
def test_it_warms_up_in_a_line_and_never_exceeds_one(schedule):
    found = rates(schedule=schedule)
    assert found[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert max(found) == found[10] == 1


def test_cosine_is_half_way_down_in_the_middle_and_ends_at_the_final_share():
    found = rates(schedule="cosine")
    assert found[55] == pytest.approx(0.55)
    assert found[100] == pytest.approx(0.1)
    assert found[10 + 30] == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi / 3)) / 2)


def test_linear_goes_down_in_equal_steps():
    found = rates(schedule="linear")
    assert found[55] == pytest.approx(0.55)
    assert found[20] - found[21] == pytest.approx(found[90] - found[91]) == pytest.approx(0.01)


def test_wsd_stays_and_goes_down_at_the_end():
    found = rates(schedule="wsd", decay=0.2)
    assert set(found[10:81]) == {1.0}
    assert found[90] == pytest.approx(0.55)
    assert found[100] == pytest.approx(0.1)


def test_without_warm_up_it_begins_at_one():
    assert rates(warmup=0)[0] == 1
