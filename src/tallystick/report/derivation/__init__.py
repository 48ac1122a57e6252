"""Show a checked derivation with marks on its lines, in a terminal and as HTML."""
