"""A text read as a derivation: its statements, each with the arithmetic in it. No model is read here."""
