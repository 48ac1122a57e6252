"""Reports show answers: in a terminal, in a notebook. They compute nothing."""
