"""How a statement refers to those above it."""
