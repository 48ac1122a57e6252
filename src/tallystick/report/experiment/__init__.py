"""A tying experiment as a Markdown page with tables and a picture."""

from tallystick.report.experiment.page import page
from tallystick.report.experiment.picture import drawable, drawn

__all__ = ["drawable", "drawn", "page"]
