"""The text's total, and what it leaves out of the model."""
