"""Explain why two models differ in size, by causes that sum exactly to the difference."""
