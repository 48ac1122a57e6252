"""Prepare the text of a derivation: convert its markup, split and join its lines."""
