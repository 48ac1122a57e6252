"""Integers that remember their expression: written in notations, expanded into polynomials."""
