"""The tying experiment: tied and untied decoders, each at its best settings."""

from tallystick.training.experiment.results import Comparison, Experiment, Interrupted, Moment, Trial, Variant
from tallystick.training.experiment.train_all import tying

__all__ = ["Comparison", "Experiment", "Interrupted", "Moment", "Trial", "Variant", "tying"]
