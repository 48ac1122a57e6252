"""Tables: as data, fitted to a width, and drawn for a terminal, Markdown, CSV or HTML."""
