"""Read the expressions of a line: tokens, words and units, and the trees that they form."""
