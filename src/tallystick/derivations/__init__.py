"""Read a text as a derivation: its statements and their arithmetic. No model is read here."""
