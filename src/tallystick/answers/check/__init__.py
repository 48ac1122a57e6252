"""Check a derivation against a model, statement by statement."""
