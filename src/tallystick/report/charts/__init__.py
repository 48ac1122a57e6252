"""Pictures: bars, treemaps and curves."""
