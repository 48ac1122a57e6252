"""Show answers in a terminal, in HTML, in a notebook and as charts. Reports compute nothing."""
