"""A derivation as it was written, with marks: in a terminal and as HTML."""
