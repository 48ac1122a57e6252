"""A derivation judged against a model, statement by statement."""
