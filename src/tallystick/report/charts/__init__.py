"""Charts: bars, treemaps and training curves."""
